// Uses of trees that an editor accepts, and those that it rejects.

import { element, node, page, tree, type Tree, type TreeElement, type TreeWriter } from "bine";

const Stars = node(({ count }: { count: number }, { ctx, format }) =>
  format === "text" ? `${count} stars for ${ctx.session.name}` : <b>{"*".repeat(count)}</b>);
const Rule = node(() => "-");
const menu: Tree = tree(<nav><a href="/">Home</a><Stars count={3} /><Rule /></nav>);
const writer: TreeWriter = {
  elements: { "a[href]": (link, content) => <>{content} ({link.attribute("href")})</> },
  text: (text) => (text === "" ? undefined : text),
  node: (kind, data) => (kind === Stars ? `${data.count} of 5` : undefined),
};

export const found: TreeElement[] = menu.findAll("a");
export const count: number = menu.insert("nav", "first", [tree(<i>a</i>), "b", 3]) + menu.remove("i");
export default page(() => {
  const own = menu.clone();
  own.replace("a", "text");
  own.change("nav", (nav) => { nav.setAttribute("hidden", true).append(element("h2", { id: "a" }, "b")); });
  for (const one of own.walk()) console.log(one.kind === "element" ? one.attribute("id") : one.text());
  const first: string | undefined = own.find("nav")?.children()[0]?.xhtml();
  return first === undefined ? own : <main>{own}{own.write(writer)}{own.tableOfContents()}{own.plainText()}</main>;
});

menu.insert("nav", "inside", "a"); // rejected: '"inside"' is not assignable
menu.insert("nav", "last", <p>a</p>); // rejected: is not assignable to parameter of type 'Nodes'
menu.find("a").text(); // rejected: Object is possibly 'null'
menu.attribute("href"); // rejected: Property 'attribute' does not exist on type 'Tree'
menu.write({ element: {} }); // rejected: 'element' does not exist
tree(() => 1); // rejected: is not assignable to parameter of type 'Child'
export const wrong = <p><Stars cuont={3} /></p>; // rejected: 'cuont'
export const without = <p><Stars /></p>; // rejected: Property 'count' is missing

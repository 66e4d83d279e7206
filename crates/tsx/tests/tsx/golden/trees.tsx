import { element, node, raw, tree } from "bine";

export const menu = tree(
  <nav class="wide" hidden>
    <a href="/" class="home">Home &amp; more</a>
    <br />
  </nav>,
);

const Stars = node(({ count }: { count: number }) => <b>{count}</b>);
const Item = ({ name, children }: { name: string; children?: any }) => <li title={name}>{children}</li>;

export const page = (names: string[], address: string) => tree(
  <html lang="en">
    <head>
      <title>{names.length} names</title>
      <style>{"p { color: green }"}</style>
      <script>{raw("let a = 1;")}</script>
    </head>
    <body>
      {menu}
      <a href={address} class="b" {...{ title: "c" }}>d</a>
      <ul>
        {names.map((name) => (
          <li id={name}>{name}</li>
        ))}
        {names.length > 1 && <Item name="x"><i>y</i> z</Item>}
      </ul>
      <pre>{names[0]}</pre>
      <p>Rated <Stars count={3} /></p>
    </body>
  </html>
);

export const parts = () => [tree(<>{"a"}<p>b</p></>), element("h2", {}, tree(<i>c</i>)), <p>{tree(<b>d</b>)}</p>];

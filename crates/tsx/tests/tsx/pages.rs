//! Pages as QuickJS writes them.

use crate::engine::{compiled, page};

/// Checks the markup of an expression in a page.
#[track_caller]
fn check(expression: &str, expected: &str) {
    let source = format!(
        "import {{ raw, Live }} from \"bine\";\nexport default async () => <>{expression}</>;"
    );
    assert_eq!(page(&source).as_deref(), Ok(expected), "{expression}");
}

#[test]
fn merges_constants() {
    check(
        "<p class=\"a\" hidden>b &amp; <b>c</b><br/></p>",
        "<p class=\"a\" hidden=\"\">b &amp; <b>c</b><br /></p>",
    );
    check("<p title=\"&amp;lt;\">&amp;lt;</p>", "<p title=\"&amp;lt;\">&amp;lt;</p>");
    check("<i>{\"a <\"}{`b`}</i>", "<i>a &lt;b</i>");
    check("<td colspan={2}></td>", "<td colspan=\"2\"></td>");
    check("<div />", "<div></div>");
}

#[test]
fn closes_up_lines_as_jsx_does() {
    check("<p>\n  a\n  b {1} {2}\n  <b>c</b>\n</p>", "<p>a b 1 2<b>c</b></p>");
}

#[test]
fn writes_components_with_properties_and_children() {
    let source = "
        const Card = ({ title, children }) => <section><h2>{title}</h2>{children}</section>;
        const parts = { Item: (props) => <li {...props.rest}>{props.children}</li> };
        export default () => (
          <main>
            <Card title=\"A &amp; <\"><p>b</p> c</Card>
            <Card title={1 + 1}>{\"d\"}</Card>
            <ul>{[1, 2].map((n) => <parts.Item rest={{ id: `i${n}` }}>{n}</parts.Item>)}</ul>
          </main>
        );";
    let expected = "<main><section><h2>A &amp; &lt;</h2><p>b</p> c</section><section><h2>2</h2>d</section>\
                    <ul><li id=\"i1\">1</li><li id=\"i2\">2</li></ul></main>";
    assert_eq!(page(source).as_deref(), Ok(expected));
}

#[test]
fn writes_a_doctype_before_the_html_element() {
    let source = "export default () => <html lang=\"en\"><head><title>{1}</title></head><body></body></html>;";
    assert_eq!(
        page(source).as_deref(),
        Ok("<!DOCTYPE html><html lang=\"en\"><head><title>1</title></head><body></body></html>")
    );
}

#[test]
fn adds_the_method_of_a_service_to_its_form() {
    let source = "
        import { page, service } from \"bine\";
        export const post = service((ctx, { body }: { body: string }) => body);
        export default page(() => <div><form action={post}></form><form method=\"get\" action={post}></form></div>);";
    assert_eq!(
        page(source).as_deref(),
        Ok(
            "<div><form action=\"/board/post\" method=\"post\"></form><form method=\"get\" action=\"/board/post\"></form></div>"
        )
    );
}

#[test]
fn runs_the_content_of_a_region() {
    check("<ul><Live><li>{1}</li></Live></ul>", "<ul><li>1</li></ul>");
    check("<Live>{await Promise.resolve(\"<\")}</Live>", "&lt;");
    check("<Live></Live>", "");
    // As a separate value, it is the same region.
    check("{true && <Live><b>{1}</b></Live>}", "<b>1</b>");
    check("{[1, 2].map((n) => <Live>{n}</Live>)}", "12");
    check("{await (async () => <Live>{await Promise.resolve(\"<\")}</Live>)()}", "&lt;");
    check("{((parts) => parts.side)({ side: <Live><i>side</i></Live> })}", "<i>side</i>");
}

#[test]
fn written_attributes_take_precedence_over_a_spread() {
    check("<p id=\"a\" {...{ id: \"b\", title: \"<\" }}>c</p>", "<p id=\"a\" title=\"&lt;\">c</p>");
    check("<a {...{ href: \"javascript:x\" }}>c</a>", "<a href=\"about:invalid#refused\">c</a>");
    check("<p {...null}>c</p>", "<p>c</p>");
    check("<img {...{ src: \"a\", alt: \"\" }} />", "<img src=\"a\" alt=\"\" />");
}

#[test]
fn writes_the_markup_of_a_tree_like_other_markup() {
    let markup = "<main class=\"a &lt;\" hidden>b &amp; <i title={\"c\"} {...{ id: \"d\" }}>{\"<e>\"}</i><br/>\
                  {[1, 2].map((n) => <p id={n}>{n}</p>)}{raw === 1 ? \"f\" : \"g\"}</main>";
    let source = |content: &str| {
        format!("import {{ raw, tree }} from \"bine\";\nexport default () => <>{{{content}}}</>;")
    };
    let written = page(&source(markup)).expect("a page");
    assert!(
        written.starts_with("<main class=\"a &lt;\" hidden=\"\">b &amp; <i title=\"c\" id"),
        "{written}"
    );
    assert_eq!(page(&source(&format!("tree({markup})"))).as_deref(), Ok(&*written));
}

#[test]
fn compiles_markup_to_a_tree_only_within_the_word_of_the_server() {
    let with_import =
        compiled("import { tree as t } from \"bine\"; export const a = [t(<p>a</p>), <p>b</p>];");
    assert!(with_import.code.contains("t($tree($m0)), $html($m1)]"), "{}", with_import.code);
    let own = compiled("const tree = (a) => a; export const a = tree(<p>a</p>);");
    assert!(own.code.contains("tree($html($m0))"), "{}", own.code);
}

#[test]
fn keeps_a_leading_line_feed_of_preformatted_text() {
    check("<pre>{\"\\na\"}</pre>", "<pre>\n\na</pre>");
    check("<pre>{await \"\\na\"}</pre>", "<pre>\n\na</pre>");
    check("<pre>a</pre>", "<pre>a</pre>");
}

#[test]
fn keeps_scripts_as_written() {
    check(
        "<script>\n  let a = \"&amp;\";\n  f(a)\n</script>",
        "<script>\n  let a = \"&amp;\";\n  f(a)\n</script>",
    );
    check("<style>{raw(\"a > b\")}</style>", "<style>a > b</style>");
}

#[test]
fn erases_types_without_a_trace() {
    let source = "
        import type { Page } from \"bine\";
        import { type Text, raw } from \"bine\";
        interface Row { id: number }
        type Rows = Row[]
        declare const unknown: string;
        abstract class Base<T> implements Iterable<T> {
          private readonly items: T[] = [];
          declare missing: string;
          static count?: number
          [\"computed\"]: number = 1
          constructor(first?: T) { if (first !== undefined) this.items.push(first!) }
          abstract name(): string;
          add(this: Base<T>, ...more: T[]): this { this.items.push(...more); return this }
          *[Symbol.iterator](): Iterator<T> { yield* this.items }
        }
        class List extends Base<number> { override name(): string { return \"list\" } }
        function first<T>(list: T[]): T
        function first(list: any) { return list[0] }
        const generic = <T,>(value: T): value is T => true;
        const spread = <
          T,
        >(value: T): Array<
          T
        > => [value];
        let later!: number
        later = first<number>([...new List(1).add(2)]) as number
        ;[later] = [later + 1] satisfies number[]
        const text = later as unknown as string
        (0, generic)(1)
        export default () => <p>{later} {spread(3)} {text!}</p>;";
    assert_eq!(page(source).as_deref(), Ok("<p>2 3 2</p>"));
}

#[test]
fn errors_have_positions_in_the_source() {
    let source = "const fail = (): never => { throw new Error(\"no\") };\nexport default () => (\n  <p class=\"a\">\n    <b>x</b> {fail()}\n  </p>\n);";
    assert_eq!(page(source), Err("1:39: no".to_owned()));
    let source = "export default () => (\n  <p class=\"a\">\n    <b>x</b> {missing}</p>\n);";
    assert_eq!(page(source), Err("3:15: missing is not defined".to_owned()));
    let source = "import { Live } from \"bine\";\nexport default () => (\n  <p>\n    <b>x</b>\n    <Live>{{}}</Live>\n  </p>\n);";
    let hole =
        "an object is not a value for a hole: it takes text, numbers, markup, and lists of these";
    assert_eq!(page(source), Err(format!("5:5: {hole}")));
    let source = "export default () => <p>\u{e4}\u{1f600} {missing}</p>;";
    assert_eq!(page(source), Err("1:29: missing is not defined".to_owned()));
    let source = "type A = 1; const b: A = 1; export default () => <p>x {missing}</p>;";
    assert_eq!(page(source), Err("1:56: missing is not defined".to_owned()));
}

//! Properties: values of holes are written exactly as the writers of Rust write them.

use bine_html::{AttributeValue, Render, Writer, raw};
use proptest::prelude::*;
use rquickjs::Object;

use crate::engine::page_with;

const SOURCE: &str = "import { raw } from \"bine\";
export default ({ value }) => (
  <p title={value} class={[value, null]}>{value}{[value, [value]]}
    <a href={value}>x</a><img src={value} alt=\"\"/><textarea>{value}</textarea>
    <span style={raw(String(value))} {...{ cite: value, \"data-x\": value }}></span></p>
);";

/// The same page, by the writers of Rust.
fn expected<V: Render + AttributeValue>(value: &V, text: &str) -> String {
    let mut out = Vec::new();
    let mut writer = Writer::new(&mut out);
    writer.constant("<p");
    writer.attribute(" title=\"", value);
    writer.attribute(" class=\"", text);
    writer.constant(">");
    (0..3).for_each(|_| value.render(&mut writer));
    writer.constant("<a");
    writer.link(" href=\"", value);
    writer.constant(">x</a><img");
    writer.image(" src=\"", value);
    writer.constant(" alt=\"\" /><textarea>\n");
    value.render(&mut writer);
    writer.constant("</textarea><span");
    writer.code(" style=\"", &raw(text));
    writer.link(" cite=\"", value);
    writer.attribute(" data-x=\"", value);
    writer.constant("></span></p>");
    drop(writer);
    String::from_utf8(out).expect("text")
}

fn text() -> impl Strategy<Value = String> {
    let word = prop_oneof![
        Just("javascript:"),
        Just("data:"),
        Just("data:image/png,"),
        Just("<script>"),
        Just("\""),
        Just("'"),
        Just("&amp;"),
        Just("-->"),
        Just("\t"),
        Just("\n"),
        Just(" "),
        Just("</p>"),
        Just("vbscript:"),
        Just("j"),
        Just("dat"),
        Just("data:image"),
        Just("http://x"),
        Just("\u{1}"),
        Just("\u{2028}"),
        Just("\u{1f600}"),
    ];
    prop_oneof![any::<String>(), prop::collection::vec(word, 0..8).prop_map(|words| words.concat())]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    #[test]
    fn writes_text_as_rust_does(value in text()) {
        // The classes of a list are joined, so the list of one is that text.
        let written = page_with(SOURCE, |given| given.set("value", value.as_str()).unwrap());
        prop_assert_eq!(written, Ok(expected(&value, &value)));
    }

    #[test]
    fn writes_trusted_markup_as_rust_does(value in "[dato\\-n =<>\"/p]{0,24}|.{0,20}") {
        let source = "import { raw } from \"bine\"; export default ({ value }) => <p>{raw(value)}</p>;";
        let written = page_with(source, |given| given.set("value", value.as_str()).unwrap());
        let mut out = Vec::new();
        let mut writer = Writer::new(&mut out);
        writer.constant("<p>");
        raw(&value).render(&mut writer);
        writer.constant("</p>");
        drop(writer);
        prop_assert_eq!(written, Ok(String::from_utf8(out).unwrap()));
    }

    #[test]
    fn writes_numbers_as_rust_does(value in any::<f64>(), whole in any::<i32>()) {
        for value in [value, f64::from(whole), value.trunc(), 1.0 / value] {
            let source = "export default ({ value }) => <p title={value}>{value}</p>;";
            let written = page_with(source, |given| given.set("value", value).unwrap());
            let written = written.expect("a page");
            let mut out = Vec::new();
            value.render(&mut Writer::new(&mut out));
            let expected = String::from_utf8(out).unwrap();
            let inner = written.split(['>', '<']).nth(2).unwrap_or_default();
            prop_assert_eq!(&written, &format!("<p title=\"{inner}\">{inner}</p>"));
            // Two shortest decimals may be equally near; the engine and Rust choose differently.
            prop_assert_eq!(inner.len(), expected.len());
            if !value.is_nan() {
                prop_assert_eq!(inner.parse::<f64>(), Ok(value));
            }
            let digits = |text: &str| text.len() - text.len().min(2);
            prop_assert_eq!(&inner[..digits(inner)], &expected[..digits(&expected)]);
        }
    }
}

/// Checks a page with one value, given as an expression of JavaScript.
#[track_caller]
fn check(markup: &str, value: &str, expected: Result<&str, &str>) {
    let source = format!(
        "import {{ raw }} from \"bine\";\nexport default ({{ evaluate }}) => {{ const value = evaluate(); return {markup}; }};"
    );
    let fill = |given: &Object<'_>| {
        let function: rquickjs::Value<'_> =
            given.ctx().eval(format!("() => ({value})")).expect("a value");
        given.set("evaluate", function).expect("a property");
    };
    let written = page_with(&source, fill);
    let plain = written
        .as_ref()
        .map(String::as_str)
        .map_err(|error| error.split_once(": ").map_or(error.as_str(), |(_, message)| message));
    assert_eq!(plain, expected, "{markup} {value}");
}

#[test]
fn booleans_and_missing_values_write_nothing_in_text() {
    for value in ["true", "false", "null", "undefined", "[]", "\"\"", "[null, [false]]"] {
        check("<p>{value}</p>", value, Ok("<p></p>"));
    }
}

#[test]
fn attributes_are_bare_or_omitted_as_in_rust() {
    check("<p title={value}></p>", "true", Ok("<p title=\"\"></p>"));
    for value in ["false", "null", "undefined", "[]", "[null, false]"] {
        check("<p title={value}></p>", value, Ok("<p></p>"));
    }
    check("<p class={value}></p>", "[\"a\", false, \"b\"]", Ok("<p class=\"a b\"></p>"));
}

#[test]
fn rejects_values_that_a_hole_cannot_show() {
    let hole = "is not a value for a hole: it takes text, numbers, markup, and lists of these";
    check("<p>{value}</p>", "{ toString: () => \"<\" }", Err(&format!("an object {hole}")));
    check("<p>{value}</p>", "() => 1", Err(&format!("a function {hole}")));
    check(
        "<p>{value}</p>",
        "Promise.resolve(1)",
        Err(&format!("a promise (write `{{await ..}}`) {hole}")),
    );
    check(
        "<p title={value}></p>",
        "{}",
        Err(
            "an object is not a value for the attribute `title`: it takes text, numbers and booleans",
        ),
    );
    check(
        "<p title={<b>x</b>}></p>",
        "1",
        Err("markup is not a value for the attribute `title`: it takes text, numbers and booleans"),
    );
    check(
        "<p style={value}></p>",
        "\"a\"",
        Err(
            "text cannot be made safe in an event handler, in `style` or in `srcdoc`: put it into a `data-*` attribute, or wrap it in `raw(..)` if it is trusted",
        ),
    );
    check(
        "<textarea>{((markup) => markup)(<b>x</b>)}</textarea>",
        "1",
        Err("no markup is allowed here, only text is"),
    );
    check("<p {...value}></p>", "{ \"a b\": 1 }", Err("`a b` is no name of an attribute"));
    check(
        "<p {...value}></p>",
        "{ onclick: \"a\" }",
        Err(
            "text cannot be made safe in an event handler, in `style` or in `srcdoc`: put it into a `data-*` attribute, or wrap it in `raw(..)` if it is trusted",
        ),
    );
    check(
        "<p>{value}</p>",
        "(() => { const a = []; a.push(a); return a })()",
        Err("lists are nested more than 64 deep"),
    );
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(50))]

    /// Constants are escaped by the compiler, values of holes by the run-time: both alike.
    #[test]
    fn escapes_constants_as_values(value in text()) {
        let escapes = value.encode_utf16().map(|unit| format!("\\u{unit:04x}"));
        let literal = escapes.collect::<Vec<_>>().concat();
        let source = format!(
            "export default () => {{ const value = \"{literal}\"; \
             return <p title={{\"{literal}\"}}>{{\"{literal}\"}}<b title={{value}}>{{value}}</b></p>; }};"
        );
        let written = page_with(&source, |_| {}).expect("a page");
        let (constant, variable) = written.split_once("<b").expect("a tag");
        let constant = constant.strip_prefix("<p").expect("a tag");
        prop_assert_eq!(Some(constant), variable.strip_suffix("</b></p>"));
    }
}

//! Handlers: their values in markup, and positions in a module that has them.

use bine_tsx::{Position, browser_globals, is_browser_file};

use crate::engine::{compiled, page};

#[test]
fn writes_captured_values_in_an_attribute() {
    let source = "export default () => { const a = [1, { b: \"<'\\\"\" }]; let none; const no = none; return <p onclick={() => alert(a)} onkeyup={() => [a, no]}>a</p>; };";
    let markup = page(source).unwrap();
    let expected = concat!(
        "<p data-on=\"click: run $browser-url 0; keyup: run $browser-url 1\" ",
        "data-with='{\"0\":[1,{\"b\":\"&lt;&#39;\\\"\"}]}'>a</p>",
    );
    assert_eq!(markup, expected);
    let source =
        "export default () => { const a = () => 1; return <p onclick={() => a()}>a</p>; };";
    let error = page(source).unwrap_err();
    assert!(error.ends_with("the handler at 1:68 uses `a`, which is no plain data"), "{error}");
}

/// An exception after markup, in the first line, has its place whatever the length of the URL.
#[test]
fn positions_stay_when_the_url_is_set() {
    let source = "export default () => <p onclick={() => alert(1)}>{boom}</p>;\nconst boom = 1;";
    let mut module = compiled(source);
    let place = |module: &bine_tsx::Module| {
        let first = module.code.lines().next().unwrap();
        let column = first.rfind("boom").unwrap() as u32 + 1;
        module.source_position(Position { line: 1, column })
    };
    let expected = Position { line: 1, column: source.find("boom").unwrap() as u32 + 1 };
    assert_eq!(place(&module), expected);
    for url in ["/a/very/long/address/of/a/module/0123456789abcdef.js", "/a.js"] {
        module.set_browser_url(url);
        assert!(module.code.contains(&format!("data-on=\\\"click: run {url} 0\\\"")));
        assert_eq!(place(&module), expected);
    }
}

#[test]
fn names_of_the_source_are_not_used() {
    let source = "const $captured = 1; export default () => { const a = 1; return <p title=\"$browser-url\" onclick={() => alert(a + $captured)}>a</p>; };";
    let browser = compiled(source).browser.unwrap();
    assert!(
        browser.code.contains("$$captured=>(() => alert($$captured[0] + $captured))"),
        "{}",
        browser.code
    );
    assert!(!browser.code.contains(&browser.unused_name));
}

#[test]
fn files_of_the_browser_may_use_its_globals() {
    assert!(is_browser_file("a.browser.ts") && !is_browser_file("browser.ts"));
    let source = "export const title = () => document.title;";
    assert!(bine_tsx::compile("a.browser.ts", source).is_ok());
    let errors = bine_tsx::compile("a.ts", source).unwrap_err();
    assert_eq!((errors.len(), errors[0].line, errors[0].column), (1, 1, 28));
    for name in browser_globals() {
        let source = format!("export const a = () => {name};");
        assert!(bine_tsx::compile("a.ts", &source).is_err(), "{name}");
    }
}

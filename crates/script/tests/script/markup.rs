//! Markup from templates: pieces, holes and their escapes.

use std::cell::Cell;

use bine_script::{Fault, HostError, HostModule, Markup, MarkupPart, Value};
use proptest::prelude::*;

use crate::support::{Script, Setup, script};

/// The markup of one hole between `<` and `>`, or the message of the exception.
fn check(kind: &str, value: &str, expected: &str) {
    let script = script(&format!(
        "import {{ $markup, $html, raw }} from 'bine:runtime';
         const m = $markup(['<', '>'], [{kind:?}]);
         export const f = () => {{ try {{ return $html(m, {value}) }} catch (e) {{ return e.message }} }};"
    ));
    assert_eq!(script.text("f"), expected, "{kind} {value}");
    script.close();
}

#[test]
fn content_is_escaped() {
    check("t", "'<b> & \"x\" \\'y\\''", "<&lt;b&gt; &amp; &quot;x&quot; &#39;y&#39;>");
    check("t", "'\\u00e9\\u{1f600}\\ud800'", "<\u{e9}\u{1f600}\u{fffd}>");
    check(
        "t",
        "[12, ' ', -2147483648, ' ', 2147483647, ' ', -7]",
        "<12 -2147483648 2147483647 -7>",
    );
    check("t", "-0.5", "<-0.5>");
    check("t", "1e21", "<1e+21>");
    check("t", "[null, undefined, true, false, '', 0, ['a', ['b']]]", "<0ab>");
    check("t", "[raw('<i>'), '<i>']", "<<i>&lt;i&gt;>");
    check("t", "$html(m, '<')", "<<&lt;>>");
    check("t", "String(raw('<i>'))", "<&lt;i&gt;>");
    check("t", "'a'.repeat(3) + raw('<')", "<aaa&lt;>");
}

#[test]
fn values_without_a_text_are_refused() {
    let object = "a page cannot show an object; choose one of its properties";
    check("t", "{}", object);
    check("t", "{ toString() { return '<b>' } }", object);
    check("t", "Object.create(raw('<b>'))", object);
    check("t", "{ __proto__: Object.getPrototypeOf(raw('')) }", object);
    check("t", "new Proxy(raw('<b>'), {})", object);
    check("t", "Promise.resolve(1)", "a page cannot show a promise; await it first");
    check("t", "() => 1", "a page cannot show a function; call it");
    check("t", "Symbol()", "a page cannot show a symbol");
    check(
        "t",
        "Object.defineProperty([], 0, { get() { return raw('<') } })",
        "a page cannot show an array that is nested too deeply or has getters",
    );
    check(
        "t",
        "(() => { let a = []; a.push(a); return a })()",
        "a page cannot show an array that is nested too deeply or has getters",
    );
    check("u", "raw('<b>')", "markup is not allowed here, only text");
    check("u", "'<b>'", "<&lt;b&gt;>");
    check("x", "'alert(1)'", "a script or style cannot show a value, except raw()");
    check("x", "raw('a < b')", "<a < b>");
}

#[test]
fn attributes_are_escaped_or_omitted() {
    check("aclass", "'a \"b\" <'", "< class=\"a &quot;b&quot; &lt;\">");
    check("aclass", "['a', false, null, 'b', 3]", "< class=\"a b 3\">");
    for omitted in ["null", "undefined", "false"] {
        check("adisabled", omitted, "<>");
    }
    check("adisabled", "true", "< disabled=\"\">");
    check("atitle", "raw('<b>')", "markup is not allowed here, only text");
    check("lhref", "'/a?b=1&c'", "< href=\"/a?b=1&amp;c\">");
    check("lhref", "' java\\nscript:alert(1)'", "< href=\"about:invalid#refused\">");
    check("lhref", "['javascript', ':alert(1)']", "< href=\"javascript :alert(1)\">");
    check("lhref", "5", "< href=\"5\">");
    check("isrc", "'data:image/png;base64,AA'", "< src=\"data:image/png;base64,AA\">");
    check("lsrc", "'data:image/png;base64,AA'", "< src=\"about:invalid#refused\">");
    let code =
        "an attribute that the browser runs or applies as style cannot show a value, except raw()";
    check("conclick", "'alert(1)'", code);
    check("cstyle", "raw('color: \"red\"')", "< style=\"color: &quot;red&quot;\">");
}

#[test]
fn forms_send_to_services() {
    check("paction", "'/search'", "< action=\"/search\">");
    check("paction", "{ url: '/board/post' }", "< action=\"/board/post\" method=\"post\">");
    check(
        "paction",
        "Object.assign(() => {}, { url: '/post' })",
        "< action=\"/post\" method=\"post\">",
    );
    check(
        "paction",
        "{ url: 'javascript:x' }",
        "< action=\"about:invalid#refused\" method=\"post\">",
    );
    check("paction", "() => {}", "a form can send to a service or a URL only");
}

#[test]
fn spreads_choose_the_context_by_name() {
    check(
        "sa class",
        "{ href: 'javascript:x', title: '<', class: 'no', hidden: true, id: null, children: 1 }",
        "< href=\"about:invalid#refused\" title=\"&lt;\" hidden=\"\">",
    );
    check(
        "sa",
        "{ onclick: 'alert(1)' }",
        "an attribute that the browser runs or applies as style cannot show a value, except raw()",
    );
    check("sa", "{ 'a b': 1 }", "the attribute `a b` has no valid name");
    check("sa", "{ 'x>': 1 }", "the attribute `x>` has no valid name");
    check(
        "sa",
        "{ get title() { return 'x' } }",
        "the attribute `title` is a getter; pass its value",
    );
    check("sa", "null", "<>");
    check("sa", "'title'", "a spread takes an object with attributes");
}

/// The markup that `f` returns, in one line: `[head]` and `[3..]` are marks.
fn shown(result: Result<Value, Fault>) -> String {
    let markup = match result {
        Ok(Value::Html(markup)) => markup,
        Ok(Value::Text(text)) => return format!("text {text}"),
        other => return format!("{other:?}"),
    };
    let mut shown = String::new();
    for part in markup.parts() {
        match part {
            MarkupPart::Text(text) => shown.push_str(text),
            MarkupPart::HeadEnd => shown.push_str("[head]"),
            MarkupPart::RegionStart(region) => shown.extend(["[", &region.to_string(), ".."]),
            MarkupPart::RegionEnd => shown.push(']'),
        }
    }
    shown
}

/// Runs `f` of a module with a host that makes regions, numbered from 1.
fn with_regions(body: &str) -> (Script, String) {
    let count = Cell::new(0);
    let live = HostModule::new("bine:test").function("live", move |call| {
        match call.call(&call.function(0)?, &[]) {
            Ok(Value::Html(content)) => {
                count.set(count.get() + 1);
                Ok(Value::Html(content.in_region(count.get())))
            }
            Ok(other) => Err(HostError::Type(format!("{} is no region", other.kind()))),
            Err(HostError::Promise(_)) => Ok("async".into()),
            Err(error) => Err(error),
        }
    });
    let mut setup = Setup::of(&[(
        "index.js",
        &format!(
            "import {{ $markup, $html, raw }} from 'bine:runtime';
             import {{ live }} from 'bine:test';
             const page = $markup(['<head>', '</head><body>', '</body>'], ['h', 't']);
             const p = $markup(['<p>', '</p>'], ['t']);
             export const f = () => {{\n{body}\n}};"
        ),
    )]);
    setup.modules.push(live);
    let script = setup.start();
    let f = script.function("f");
    let result = script.run(script.instance.call(&f, &[]));
    let shown = match result {
        Err(fault) => fault.to_string(),
        result => shown(result),
    };
    (script, shown)
}

fn check_regions(body: &str, expected: &str) {
    let (script, found) = with_regions(body);
    assert_eq!(found, expected, "{body}");
    script.close();
}

#[test]
fn marks_keep_their_places() {
    check_regions("return $html(page, 'a & b')", "<head>[head]</head><body>a &amp; b</body>");
    check_regions(
        "return $html(page, [live(() => $html(p, '<')), live(() => raw('<hr>'))])",
        "<head>[head]</head><body>[1..<p>&lt;</p>][2..<hr>]</body>",
    );
    check_regions(
        "return live(() => $html(p, live(() => $html(p, [live(() => $html(p, 1))]))))",
        "[3..<p>[2..<p>[1..<p>1</p>]</p>]</p>]",
    );
    check_regions(
        "const one = live(() => raw('x')); return $html(p, [one, [one, 'y']])",
        "<p>[1..x][1..x]y</p>",
    );
}

#[test]
fn marks_pass_into_content_only() {
    let region = "const region = $html(page, live(() => raw('a<b')));";
    let text = "<head></head><body>a<b</body>";
    let escaped = "&lt;head&gt;&lt;/head&gt;&lt;body&gt;a&lt;b&lt;/body&gt;";
    for (use_of, expected) in [
        ("`${region}`", format!("text {text}")),
        ("region.toString()", format!("text {text}")),
        ("$html(p, `${region}`)", format!("<p>{escaped}</p>")),
        ("raw(String(region))", text.to_owned()),
        (
            "$html($markup(['<script>', '</script>'], ['x']), region)",
            format!("<script>{text}</script>"),
        ),
        ("$html($markup(['<p', '>'], ['cstyle']), region)", format!("<p style=\"{escaped}\">")),
    ] {
        check_regions(&format!("{region} return {use_of}"), &expected);
    }
    for hole in ["u", "atitle", "lhref", "isrc"] {
        let body = format!(
            "{region} try {{ return $html($markup(['', ''], ['{hole}']), region) }} catch (e) {{ return e.message }}"
        );
        check_regions(&body, "text markup is not allowed here, only text");
    }
}

#[test]
fn what_the_content_of_a_region_throws_passes_through() {
    let (script, fault) = with_regions(
        "try { return live(() => {\n  throw new RangeError('inner');\n}) } finally { }",
    );
    assert!(fault.starts_with("RangeError: inner\n    at (anonymous) (index.js:7:"), "{fault}");
    script.close();
    check_regions(
        "const own = { own: 1 };
         try { live(() => live(() => { throw own })) } catch (e) { return `${e === own}` }",
        "text true",
    );
}

#[test]
fn the_host_recognizes_a_promise() {
    check_regions("return live(async () => $html(p, 1))", "text async");
    check_regions(
        "try { live(Promise.resolve(1)) } catch (e) { return `${e.name} ${e.message}` }",
        "text TypeError argument 1 must be a function, not [promise]",
    );
    check_regions(
        "try { live(() => [Promise.resolve(1)]) } catch (e) { return `${e.name} ${e.message}` }",
        "text TypeError the result of the function cannot pass: [0] is a promise; await it first",
    );
}

#[test]
fn markup_passes_from_a_script_and_back() {
    let script = script(
        "import { $markup, $html } from 'bine:runtime';
         const p = $markup(['<p>', '</p>'], ['t']);
         export const wrap = (content) => $html(p, content);",
    );
    let wrap = script.function("wrap");
    let wrapped = |content| {
        let content = Value::Html(content);
        shown(script.run(script.instance.call(&wrap, &[content])))
    };
    assert_eq!(wrapped(Markup::from_text("<b>")), "<p><b></p>");
    assert_eq!(
        wrapped(Markup::from_text("\u{e9}").in_region(u32::MAX)),
        "<p>[4294967295..\u{e9}]</p>"
    );
    assert_eq!(wrapped(Markup::default().in_region(0)), "<p>[0..]</p>");
    script.close();
}

/// An expression that builds markup from texts, holes and regions.
fn expressions() -> impl Strategy<Value = String> {
    let leaf = prop_oneof![
        Just("'text \\xff\\xfe\\xfd\\ud8ff'".to_owned()),
        Just("raw('\\xff\\xfe\\xfd\\x00')".to_owned()),
        Just("$html(page, 1)".to_owned()),
        Just("null".to_owned()),
    ];
    leaf.prop_recursive(6, 40, 4, |inner| {
        prop_oneof![
            inner.clone().prop_map(|one| format!("$html(p, {one})")),
            inner.clone().prop_map(|one| format!("$html(page, {one})")),
            inner.clone().prop_map(|one| format!("live(() => $html(p, {one}))")),
            inner.clone().prop_map(|one| format!("String($html(p, {one}))")),
            prop::collection::vec(inner, 0..4).prop_map(|all| format!("[{}]", all.join(", "))),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    /// However a script nests and joins markup, each begin of a region has its end.
    #[test]
    fn marks_are_balanced(expression in expressions()) {
        let (script, found) = with_regions(&format!("return $html(p, {expression})"));
        script.close();
        // `[` and `]` are in no text of the expressions.
        let mut depth = 0_usize;
        for mark in found.replace("[head]", "").chars() {
            match mark {
                '[' => depth += 1,
                ']' => depth = depth.checked_sub(1).expect("an end without a begin"),
                _ => {}
            }
        }
        prop_assert_eq!(depth, 0, "{}", found);
        let regions = found.matches("..").count();
        prop_assert!(found.starts_with("<p>") && found.ends_with("</p>"), "{}", found);
        prop_assert_eq!(regions, found.replace("[head]", "").matches(']').count());
    }
}

#[test]
fn malformed_templates_are_refused() {
    let script = script(
        "import { $markup, $html } from 'bine:runtime';
         const message = (f) => { try { return f() } catch (e) { return e.message } };
         export const f = () => [
           () => $markup(), () => $markup([''], ['t']), () => $markup(['', ''], ['q']),
           () => $markup(['', ''], ['a']), () => $markup(['', ''], ['aa\"b']), () => $markup(['', ''], ['']),
           () => $markup([1], []), () => $html(), () => $html(99), () => $html(-1, 2), () => $html('0'),
           () => { for (;;) $markup(['x'.repeat(100_000)], []) },
         ].map(message).join('; ');",
    );
    let text = script.text("f");
    let expected = "a template has an array of pieces and an array of holes; \
        a template has one more piece than holes; a hole of a template has an unknown kind; \
        a hole of a template has an unknown kind; a hole of a template has an unknown kind; \
        a hole of a template has an unknown kind; a template has an array of pieces and an array of holes; \
        the first argument is no template; the first argument is no template; \
        the first argument is no template; the first argument is no template; too many templates";
    assert_eq!(text, expected);
    script.close();
}

#[test]
fn reports_large_captured_values_once_for_each_handler() {
    let script = script(
        "import { $markup, $html, $captured } from 'bine:runtime';
         const m = $markup(['<b', '></b>'], ['v3:7 row\\n4:9 note']);
         export const small = () => $html(m, ['a'.repeat(500), 'b'.repeat(500)]);
         export const large = () => $html(m, ['a', 'b'.repeat(1100)]);
         export const other = () => $captured(['c'.repeat(2000)], '8:1 text');
         export const none = () => $captured([], '');",
    );
    script.text("small");
    assert_eq!(script.instance.take_large_captures(), [""; 0]);
    let larger = |name: &str| {
        script.text(name);
        script.text(name);
        script.instance.take_large_captures()
    };
    let reports = larger("large");
    assert_eq!(reports.len(), 1);
    assert!(reports[0].starts_with("the handler at 4:9 passes 1108 bytes"), "{reports:?}");
    assert!(reports[0].contains("`note`"), "{reports:?}");
    let reports = larger("other");
    assert_eq!(reports.len(), 1);
    assert!(
        reports[0].starts_with(
            "the handler at 8:1 passes 2004 bytes of values to the browser with each of its elements, most of them for `text`"
        ),
        "{reports:?}"
    );
    assert_eq!(larger("other"), [""; 0]);
    assert_eq!(script.text("none"), "[]");
    script.close();
}

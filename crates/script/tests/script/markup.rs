//! Markup from templates: pieces, holes and their escapes.

use crate::support::{Setup, script};

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
    check("t", "'\\u00e9\\u{1f600}\\ud800'", "<\u{e9}\u{1f600}\u{fffd}\u{fffd}\u{fffd}>");
    check("t", "12", "<12>");
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

#[test]
fn the_head_of_the_host_is_written_into_each_page() {
    let mut setup = Setup::of(&[(
        "index.js",
        "import { $markup, $html } from 'bine:runtime'; const m = $markup(['<head>', '</head>', ''], ['h', 't']);
         export const f = () => $html(m, 'x');",
    )]);
    setup.head = "<link>".to_owned();
    assert_eq!(setup.start().text("f"), "<head><link></head>x");
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

//! Trees: their nodes from shapes and values, search, changes, writers, and their memory.

use std::rc::Rc;

use bine_html::Tree;
use bine_html::tree::Element;
use bine_script::{Fault, HostModule, Limit, Limits, MarkupPart, Value};

use crate::support::{Script, Setup, script};

/// The words that a test uses, and a tree of a menu and a list.
const START: &str = "
    import { $markup, $html, raw } from 'bine:runtime';
    import { $shape, $tree, element, expand, isDocument, isTree, nodeKind, tree } from 'bine:trees';
    const piece = $markup(['<u>', '</u>'], ['t']);
    const shape = $shape([
        '<nav', '.class menu', '<a', '.href /', \"'Home\", '>', '>',
        '<ul', 't', '>',
    ]);
    const item = $shape(['<li', 'aid', 't', '>']);
    const items = (...names) => names.map((name) => $tree(item, name, name));
    const list = (...names) => $tree(shape, items(...names));
    const written = (value) => String($html($markup(['', ''], ['t']), value));
";

fn with_start(source: &str) -> Script {
    script(&format!("{START}{source}"))
}

/// The text of an expression, or the message of its exception.
fn check(expression: &str, expected: &str) {
    let script = with_start(&format!(
        "export const f = () => {{ try {{ return String({expression}) }} catch (e) {{ return `${{e.name}}: ${{e.message}}` }} }};"
    ));
    assert_eq!(script.text("f"), expected, "{expression}");
    script.close();
}

const MENU: &str = "<nav class=\"menu\"><a href=\"/\">Home</a></nav>";

#[test]
fn a_tree_is_written_as_its_markup() {
    check("list()", &format!("{MENU}<ul></ul>"));
    check(
        "list('a', '<')",
        &format!("{MENU}<ul><li id=\"a\">a</li><li id=\"&lt;\">&lt;</li></ul>"),
    );
    check("written(list())", &format!("{MENU}<ul></ul>"));
    check("written([list().find('a'), ' ', 1])", "<a href=\"/\">Home</a> 1");
    check("tree('<b>')", "&lt;b&gt;");
    check("tree([1, null, ['a', false], $html(piece, '<')])", "1a<u>&lt;</u>");
    check("tree(raw('<i>')).text()", "");
    check(
        "$tree($shape(['!', '<html', '<head', '>', '>']))",
        "<!DOCTYPE html><html><head></head></html>",
    );
    check(
        "$tree($shape(['<br', '>', '<img', '.alt a b', 'isrc', '.id c', '>']), 'data:image/x')",
        "<br /><img alt=\"a b\" src=\"data:image/x\" id=\"c\" />",
    );
    check("$tree($shape(['<script', '\"a < ', 'x', '>']), raw('b'))", "<script>a < b</script>");
    check("$tree($shape(['<pre', 't', '>']), '\\na')", "<pre>\n\na</pre>");
}

#[test]
fn attributes_are_checked_by_their_context() {
    check(
        "$tree($shape(['<a', 'lhref', '>']), 'java\\nscript:x')",
        "<a href=\"about:invalid#refused\"></a>",
    );
    check("$tree($shape(['<a', 'atitle', 'ahidden', '>']), null, true)", "<a hidden=\"\"></a>");
    check(
        "$tree($shape(['<a', 'aclass', '>']), ['a', false, '<\"'])",
        "<a class=\"a &lt;&quot;\"></a>",
    );
    check(
        "$tree($shape(['<form', 'paction', '>']), { url: '/post' })",
        "<form action=\"/post\" method=\"post\"></form>",
    );
    check(
        "$tree($shape(['<p', '.id a', 'sp id', '>']), { id: 'b', title: 'c' })",
        "<p id=\"a\" title=\"c\"></p>",
    );
    check(
        "$tree($shape(['<p', 'cstyle', '>']), raw('a:\"b\"'))",
        "<p style=\"a:&quot;b&quot;\"></p>",
    );
    check(
        "$tree($shape(['<p', 'cstyle', '>']), 'a')",
        "TypeError: an attribute that the browser runs or applies as style cannot show a value, except raw()",
    );
    check(
        "$tree($shape(['<textarea', 'u', '>']), list())",
        "TypeError: a tree is not allowed here, only text: use its text()",
    );
    check(
        "$tree($shape(['<p', 't', '>']), {})",
        "TypeError: a page cannot show an object; choose one of its properties",
    );
    check("$shape(['<p'])", "TypeError: a shape is an array of the compiler's steps");
    check("$shape(['<a b', '>'])", "TypeError: a shape is an array of the compiler's steps");
    check("$shape(['.a b'])", "TypeError: a shape is an array of the compiler's steps");
}

#[test]
fn elements_are_made_by_checked_names() {
    check(
        "element('h' + 2, { id: 'a', title: null }, 'b <', [element('i')])",
        "<h2 id=\"a\">b &lt;<i></i></h2>",
    );
    check(
        "element('p><script')",
        "TypeError: invalid element name \"p><script\": use a letter, then letters, digits, `-`, `_`, `.` or `:`",
    );
    check("element('p', { 'a b': 1 })", "TypeError: the attribute `a b` has no valid name");
    check(
        "element('p', { onclick: 'x' })",
        "TypeError: an attribute that the browser runs or applies as style cannot show a value, except raw()",
    );
    check(
        "element(1)",
        "TypeError: `element` takes a name, attributes and content, as in element(\"h2\", { id: \"a\" }, \"Text\")",
    );
}

#[test]
fn finds_elements_by_selectors() {
    check("list('a', 'b').find('li:last-child').text()", "b");
    check("list('a', 'b').findAll('li, a').map((e) => e.name + e.text())", "aHome,lia,lib");
    check("list().find('p')", "null");
    check("list('x').find('ul').find('li').attribute('ID')", "x");
    check("JSON.stringify(list().find('nav').attributes())", "{\"class\":\"menu\"}");
    check(
        "Object.getPrototypeOf($tree($shape(['<p', '.__proto__ a', '>'])).attributes()) === Object.prototype",
        "true",
    );
    check(
        "[...list('x').walk()].map((n) => n.kind + ':' + (n.name ?? n.text()))",
        "element:nav,element:a,text:Home,element:ul,element:li,text:x",
    );
    check("list('x').find('ul').children().length", "1");
    check("[list().kind, list().name, tree('a').kind, tree(raw('<b>')).kind]", "list,,text,markup");
    for selector in ["a > ", "", "a + b"] {
        let expected = Tree::new().find(selector).unwrap_err();
        check(&format!("list().find('{selector}')"), &format!("TypeError: {expected}"));
    }
    check(
        "list().find('a:hover').text()",
        &format!("TypeError: {}", Tree::new().find("a:hover").unwrap_err()),
    );
    check("list().find()", "TypeError: `find` takes a selector, as in tree.find(\"main > h2\")");
    check(
        "list().attribute('a')",
        "TypeError: this needs one element, as `find` returns it, but the tree has 2 nodes",
    );
    check(
        "list().find.call({}, 'a')",
        "TypeError: this is a method of trees: `tree(<p>..</p>)` makes one",
    );
    check(
        "$tree($shape(['<p', '<li', '>', '>'])).findings()",
        "`<li>` is not allowed in `<p>`: `<li>` belongs in `<menu>`, `<ol>`, `<template>`, `<ul>`",
    );
}

#[test]
fn changes_trees_at_the_matches_of_a_selector() {
    let changed = |change: &str, expected: &str| {
        check(
            &format!(
                "(() => {{ const t = list('a'); const n = {change}; return n + written(t).slice({}) }})()",
                MENU.len()
            ),
            expected,
        );
    };
    changed(
        "t.insert('ul', 'first', items('b'))",
        "1<ul><li id=\"b\">b</li><li id=\"a\">a</li></ul>",
    );
    changed("t.insert('ul', 'last', 'b')", "1<ul><li id=\"a\">a</li>b</ul>");
    changed(
        "t.insert('ul', 'after', tree($html(piece, 1)))",
        "1<ul><li id=\"a\">a</li></ul><u>1</u>",
    );
    changed("t.replace('li', element('li', {}, 'c'))", "1<ul><li>c</li></ul>");
    changed("t.remove('li, p')", "1<ul></ul>");
    changed(
        "t.change('li', (li) => { li.setAttribute('id', 'x\"').append('!') })",
        "1<ul><li id=\"x&quot;\">a!</li></ul>",
    );
    changed("t.change('li', (li) => li.removeAttribute('id'))", "1<ul><li>a</li></ul>");
    changed(
        "t.change('ul', (ul) => { ul.insert('li', 'before', 'b') })",
        "1<ul>b<li id=\"a\">a</li></ul>",
    );
    changed("t.change('p', () => {})", "0<ul><li id=\"a\">a</li></ul>");
    check(
        "list().insert('ul', 'inside', 'a')",
        "TypeError: `insert` takes a place, \"before\", \"first\", \"last\" or \"after\", as in tree.insert(\"main\", \"first\", tree(<p>..</p>))",
    );
    for method in ["insert('ul', 'last', $html(piece, 1))", "insert('ul', 'last')"] {
        check(
            &format!("list().{method}"),
            "TypeError: `insert` takes a tree, text or a list of these: write markup as tree(<p>..</p>), so that selectors find it",
        );
    }
    check(
        "list().change('ul')",
        "TypeError: `change` takes a function, as in tree.change(\"a\", (link) => { link.setAttribute(\"rel\", \"noopener\"); })",
    );
    check(
        "list().find('a').clone().setAttribute('a b', 1)",
        "TypeError: invalid attribute name \"a b\": do not use spaces, quotes, `<`, `>`, `/`, `=` or `&`",
    );
    check(
        "list().find('a').clone().setAttribute('href', 'javascript:x')",
        "<a href=\"about:invalid#refused\">Home</a>",
    );
    check("list().find('a').clone().setAttribute('href', null)", "<a>Home</a>");
}

#[test]
fn structured_clone_of_a_tree_is_an_error() {
    check("structuredClone(list())", "DataCloneError: Tree cannot be cloned");
}

#[test]
fn a_clone_and_what_was_found_stay_as_they_were() {
    check(
        "(() => { const t = list('a'), c = t.clone(), f = t.find('ul'); t.remove('li'); return [t, c, f].map((e) => e.text()) })()",
        "Home,Homea,a",
    );
    let reading = "TypeError: an element that was found is for reading: change it by \
                   `tree.change(selector, (element) => ..)`, or change a `clone()` of it";
    for change in ["setAttribute('id', 1)", "append('a')", "remove('a')", "change('a', () => {})"] {
        check(&format!("list().find('ul').{change}"), reading);
    }
    check(
        "(() => { let kept; const t = list(); t.change('ul', (ul) => { kept = ul }); return kept.append('a') })()",
        "TypeError: the `change` that has passed this element has ended: change it within the function",
    );
}

#[test]
fn a_failed_change_leaves_the_tree_as_it_was() {
    let script = with_start(
        "const t = list('a', 'b');
         const attempt = (run) => { try { run(); } catch (e) { return `${e.message} ${t.text()}` } };
         export const thrown = () => attempt(() => t.change('li', (li) => {
             if (li.text() === 'a') throw new Error('no');
             li.append('!');
         }));
         export const emptied = () => attempt(() => t.change('li', (li) => li.remove('li')));
         export const inside = () => attempt(() => t.change('li', () => t.remove('li')));
         export const later = () => attempt(() => t.change('li', async () => {}));",
    );
    assert_eq!(script.text("thrown"), "no Homeab");
    let expected = "the function of `change` must leave one element: use `replace`, `insert` or `remove` for others Homeab";
    assert_eq!(script.text("emptied"), expected);
    let expected =
        "the tree is being changed: change the element that the function of `change` gets Homeab";
    assert_eq!(script.text("inside"), expected);
    assert_eq!(
        script.text("later"),
        "the function of `change` must not be async: await before it Homeab"
    );
    script.close();
}

/// A call with a context sees trees of the module, and cannot change them.
#[test]
fn trees_of_a_module_are_shared_by_requests() {
    let script = with_start(
        "const menu = list('a');
         export const shown = () => written(menu);
         export const changed = () => { try { menu.remove('li') } catch (e) { return e.message } };
         export const own = () => { const t = menu.clone(); t.remove('li'); return t.text() + menu.text() };",
    );
    let call = |name| {
        let function = script.function(name);
        let result = script.run(script.instance.call_within(&function, &[], Rc::new(())));
        result.unwrap().as_text().unwrap().to_owned()
    };
    let markup = format!("{MENU}<ul><li id=\"a\">a</li></ul>");
    // The markup is kept from the second time on.
    for _ in 0..3 {
        assert_eq!(call("shown"), markup);
    }
    let expected = "this tree was made while the module was loaded, and all requests share it: change a `clone()` of it";
    assert_eq!(call("changed"), expected);
    assert_eq!(call("own"), "HomeHomea");
    script.close();
}

#[test]
fn nodes_are_written_when_their_tree_is() {
    let script = with_start(
        "let count = 0;
         const Stars = nodeKind(({ of }, format) => (count++, format === 'text' ? `${of} stars` : $html(piece, '*'.repeat(of))));
         const t = tree(['a', Stars({ of: 2 }), 'b']);
         const Deep = nodeKind((n) => (n === 0 ? 'end' : tree(Deep(n - 1))));
         export const shown = () => [String(t), String(t), t.plainText().trim(), count].join(' ');
         export const expanded = () => [...expand(t).walk()].map((n) => n.kind).join() + [...t.walk()].map((n) => n.kind).join();
         export const deep = () => `${Deep(30)} ${expand(Deep(30))}`;
         export const other = () => String(t.write({ node: (kind, { of }) => (kind === Stars ? `${of}/5` : undefined) }));",
    );
    assert_eq!(script.text("shown"), "a<u>**</u>b a<u>**</u>b a2 starsb 3");
    assert_eq!(script.text("expanded"), "text,markup,texttext,node,text");
    assert_eq!(script.text("deep"), "end end");
    assert_eq!(script.text("other"), "a2/5b");
    script.close();
}

#[test]
fn errors_of_nodes_have_their_position() {
    let script = script(
        "import { nodeKind, tree } from 'bine:trees';
import { $markup, $html } from 'bine:runtime';
const m = $markup(['', ''], ['t']);
const Bad = nodeKind(() => {
  throw new RangeError('no stars');
});
export const f = () => $html(m, tree(['a', Bad()]));
export const g = () => { try { return tree(Bad()).toString() } catch (e) { return e.constructor === RangeError } };",
    );
    let Err(Fault::Exception(error)) = script.call("f", &[]) else { panic!() };
    assert_eq!((&*error.name, &*error.message), ("RangeError", "no stars"));
    assert_eq!(error.position().unwrap().to_string(), "index.js:5:13");
    assert_eq!(script.call("g", &[]), Ok(Value::Bool(true)));
    script.close();
}

#[test]
fn nodes_that_write_themselves_are_an_error() {
    let message = "TypeError: nodes are written within each other more than 32 levels deep: does one write itself?";
    check("(() => { const N = nodeKind(() => tree(N())); return tree(N()) })()", message);
    check("(() => { const N = nodeKind(() => String(tree(N()))); return tree(N()) })()", message);
    check("(() => { const N = nodeKind(() => N()); return expand(N()) })()", message);
    check(
        "(() => { const N = nodeKind(async () => 'a'); return tree(N()) })()",
        "TypeError: the function of a node must not be async: await before the tree is made",
    );
    check(
        "tree(nodeKind(() => ({}))())",
        "TypeError: a page cannot show an object; choose one of its properties",
    );
}

#[test]
fn writers_replace_elements_and_text() {
    check(
        "list('a').write({ elements: { 'nav a': (link, content) => [content, ` (${link.attribute('href')})`] } })",
        "<nav class=\"menu\">Home (/)</nav><ul><li id=\"a\">a</li></ul>",
    );
    check(
        "list('a', 'b').write({ elements: { 'li:first-child': (li) => li.text().toUpperCase(), li: () => undefined } })",
        &format!("{MENU}<ul>A<li id=\"b\">b</li></ul>"),
    );
    check(
        "list('a').write({ text: (text) => $html(piece, text) })",
        "<nav class=\"menu\"><a href=\"/\"><u>Home</u></a></nav><ul><li id=\"a\"><u>a</u></li></ul>",
    );
    check("list('a').write({ elements: { '*': (e, content) => content } })", "Homea");
    check(
        "$tree($shape(['<script', '\"x', '>', '<p', '>'])).write({ elements: { p: () => 'q' } })",
        "<script>x</script>q",
    );
    check(
        "list().write({ element: {} })",
        "TypeError: a writer has `elements`, `text`, `comment` and `node`, but no `element`",
    );
    check(
        "list().write({ elements: { a: 1 } })",
        "TypeError: the value of the selector \"a\" in a writer is a function",
    );
    check(
        "list().write({ elements: { '::before': () => 1 } })",
        &format!("TypeError: {}", Tree::new().find("::before").unwrap_err()),
    );
    check(
        "list().write({ text: async () => 'a' })",
        "TypeError: the functions of a writer must not be async",
    );
    check(
        "list().write()",
        "TypeError: a writer is an object, as in tree.write({ elements: { \"a[href]\": (link, content) => content } })",
    );
}

#[test]
fn trees_are_written_in_other_formats() {
    let page =
        "$tree($shape(['<h2', '.id a', \"'A & \\u0001\", '>', '<p', \"'b\", '<br', '>', '>']))";
    check(&format!("{page}.xhtml()"), "<h2 id=\"a\">A &amp; \u{fffd}</h2><p>b<br /></p>");
    check(&format!("{page}.plainText()"), "A & \u{1}\n\nb\n");
    check(
        &format!("{page}.tableOfContents()"),
        "<ol><li><a href=\"#a\">A &amp; \u{1}</a></li></ol>",
    );
    check("isDocument($tree($shape(['!', '<html', '>'])))", "true");
    check("isDocument(list()) || isDocument('<html>') || isTree($html(piece, 1))", "false");
}

#[test]
fn marks_the_end_of_the_head_of_a_tree() {
    let script = with_start(
        "const page = $tree($shape(['<html', '<head', '>', '<body', \"'a\", '>', '>']));
         const m = $markup(['', ''], ['t']);
         export const f = () => $html(m, page);
         export const text = () => String($html(m, page));",
    );
    for _ in 0..3 {
        let Ok(Value::Html(markup)) = script.call("f", &[]) else { panic!() };
        let parts: Vec<_> = markup.parts().collect();
        let expected = [
            MarkupPart::Text("<html><head>"),
            MarkupPart::HeadEnd,
            MarkupPart::Text("</head><body>a</body></html>"),
        ];
        assert_eq!(parts, expected);
    }
    assert_eq!(script.text("text"), "<html><head></head><body>a</body></html>");
    script.close();
}

#[test]
fn passes_trees_between_script_and_host() {
    let host = HostModule::new("bine:test")
        .function("made", |_| {
            let mut element = Element::new("p").unwrap();
            element.push("of the host");
            Ok(Value::Tree(element.into()))
        })
        .function("text", |call| match call.value(0)? {
            Value::Tree(tree) => Ok(Value::Text(tree.text())),
            other => Ok(other.kind().into()),
        });
    let mut setup = Setup::of(&[(
        "index.js",
        &format!(
            "{START} import {{ made, text }} from 'bine:test';
             export const f = () => text(list('a')) + text(made().find('p').clone().append('!'));
             export const g = () => {{ try {{ text(tree(nodeKind(() => 'a')())) }} catch (e) {{ return e.message }} }};
             export const kept = () => list('b');"
        ),
    )]);
    setup.modules.push(host);
    let script = setup.start();
    assert_eq!(script.text("f"), "Homeaof the host!");
    let expected = "argument 1 is a tree with nodes of its own, which only the script can write";
    assert_eq!(script.text("g"), expected);
    let Ok(Value::Tree(kept)) = script.call("kept", &[]) else { panic!() };
    script.close();
    // The nodes belong to the host, also after the instance has ended.
    assert_eq!(kept.find("li").unwrap().unwrap().text(), "b");
}

/// An instance with 8 MiB.
fn small(source: &str) -> Script {
    let mut setup = Setup::of(&[("index.js", &format!("{START}{source}"))]);
    setup.limits = Limits { memory: 8 << 20, ..Limits::default() };
    let script = setup.start();
    script.clock.step.set(std::time::Duration::ZERO);
    script.load();
    script
}

#[test]
fn nodes_count_against_the_limit_of_memory() {
    for source in [
        "export const f = () => { const all = []; for (;;) all.push(list('x'.repeat(1000))) };",
        "export const f = () => { const t = list(), more = items(...'a'.repeat(2000)); for (;;) t.insert('ul', 'last', more) };",
        "export const f = () => { const t = list('a'), all = []; for (;;) { all.push(t.clone()); all.at(-1).remove('li'); } };",
        "export const f = () => { const t = list('a'), all = []; for (;;) all.push(t.find('li')) };",
        "const N = nodeKind(() => 'a'); export const f = () => { const all = []; for (;;) all.push(N()) };",
    ] {
        let script = small(source);
        let outcome = script.call("f", &[]);
        let is_ended = matches!(outcome, Err(Fault::Limit(Limit::Memory, _)));
        // A single tree that is too large is an exception.
        let is_refused = matches!(&outcome, Err(Fault::Exception(error))
            if error.message == "a tree larger than the memory of the script");
        assert!(is_ended || is_refused, "{source}: {outcome:?}");
        if is_ended {
            assert_eq!(script.instance.usage().memory, 0, "{source}");
        }
        script.close();
    }
}

#[test]
fn a_tree_within_itself_is_bounded() {
    let script = small(
        "export const f = () => {
             let t = list('a');
             for (let depth = 0; depth < 100; depth++) t = tree([t, t]);
         };
         export const g = () => {
             const t = list('a');
             for (let depth = 0; depth < 100; depth++) t.insert('ul', 'last', t);
         };
         export const once = () => {
             const t = list('a');
             t.insert('ul', 'last', t);
             t.find('ul').clone().append(t);
             return t.text();
         };",
    );
    for name in ["f", "g"] {
        let Err(Fault::Exception(error)) = script.call(name, &[]) else { panic!("{name}") };
        assert_eq!(error.message, "a tree larger than the memory of the script", "{name}");
    }
    assert_eq!(script.text("once"), "HomeaHomea");
    script.close();
}

#[test]
fn frees_every_node_that_is_not_used() {
    let script = small(
        "const N = nodeKind(() => 'a');
         export const f = () => {
             const t = list(...'abcdefgh');
             t.insert('li', 'first', N());
             t.change('li', (li) => { li.append(N()) });
             for (const node of t.clone().walk()) node.kind;
             String(t) + String(t) + t.find('ul').text();
             return 'done';
         };",
    );
    let mut used = Vec::new();
    for _ in 0..20 {
        assert_eq!(script.text("f"), "done");
        script.instance.collect_garbage();
        used.push(script.instance.usage().memory);
    }
    assert_eq!(used[4], used[19], "{used:?}");
    script.close();
}

#[test]
fn a_deep_tree_needs_no_stack() {
    let script = with_start(
        "export const f = () => {
             let t = tree('x');
             for (let depth = 0; depth < 5000; depth++) t = element('i', null, t);
             const length = String(t).length;
             t.change('i > i', (i) => { i.setAttribute('id', 'a') });
             return `${length} ${[...t.walk()].length} ${t.findAll('i').length} ${expand(tree(nodeKind(() => t)())).text()}`;
         };",
    );
    script.clock.step.set(std::time::Duration::ZERO);
    assert_eq!(script.text("f"), "35001 5001 5000 x");
    script.close();
}

#[test]
fn scripts_cannot_take_other_objects_for_trees() {
    let object = "TypeError: a page cannot show an object; choose one of its properties";
    check("written(Object.create(list()))", object);
    check("written({ __proto__: Object.getPrototypeOf(list()) })", object);
    check("written(new Proxy(list(), {}))", object);
    check("Object.isFrozen(Object.getPrototypeOf(list()))", "true");
    check(
        "(() => { 'use strict'; Object.getPrototypeOf(list()).find = 1 })()",
        "TypeError: 'find' is read-only",
    );
    check(
        "(() => { Object.prototype.elements = { a: () => 'x' }; Object.prototype.text = () => 'y'; \
           try { return list().write({}) } finally { delete Object.prototype.elements; delete Object.prototype.text } })()",
        &format!("{MENU}<ul></ul>"),
    );
}

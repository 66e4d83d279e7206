//! Tests of trees.

use alloc::string::{String, ToString as _};
use alloc::sync::Arc;

use super::*;
use crate::raw;

fn element(name: &'static str, children: impl IntoIterator<Item = Node>) -> Element {
    let mut element = Element::new(name).unwrap();
    element.children_mut().extend(children);
    element
}

#[track_caller]
fn check(tree: impl Into<Tree>, expected: &str) {
    assert_eq!(tree.into().to_string(), expected);
}

#[test]
fn writes_trees_as_html_does() {
    let mut link = element("a", ["b & c".into()]);
    link.set_attribute("href", "/?a=1&b=2").unwrap();
    link.set_attribute("hidden", true).unwrap();
    link.set_attribute("title", None::<&str>).unwrap();
    let line = element("br", ["never seen".into()]);
    let nodes = [Node::Doctype, link.into(), line.into(), raw("<hr />").into()];
    check(
        nodes.into_iter().collect::<Tree>(),
        "<!DOCTYPE html><a href=\"/?a=1&amp;b=2\" hidden=\"\">b &amp; c</a><br /><hr />",
    );
}

#[test]
fn replaces_script_urls_and_accepts_only_raw_code() {
    let mut link = Element::new("A").unwrap();
    link.set_attribute("HREF", "javascript:x").unwrap();
    assert_eq!(link.attribute("href"), Some("about:invalid#refused"));
    assert_eq!(link.set_attribute("onClick", "x()"), Err(TreeError::Code("onClick".into())));
    assert_eq!(link.set_attribute("style", raw("x")), Err(TreeError::Code("style".into())));
    link.set_code("onclick", raw("go(\"a\")")).unwrap();
    check(link, "<A HREF=\"about:invalid#refused\" onclick=\"go(&quot;a&quot;)\"></A>");
}

#[test]
fn writes_only_raw_text_in_scripts() {
    let children = || [Node::text("alert(1)"), raw("a < b").into(), element("p", []).into()];
    check(element("script", children()), "<script>a < b</script>");
    check(element("STYLE", children()), "<STYLE>a < b</STYLE>");
}

#[test]
fn comment_text_cannot_end_the_comment() {
    for (text, expected) in [
        ("a", "<!--a-->"),
        ("", "<!-- -->"),
        ("-->", "<!-- - - >-->"),
        (">", "<!-- >-->"),
        ("--!>", "<!-- - -!>-->"),
        ("a-", "<!--a- -->"),
        ("</title>", "<!--< /title>-->"),
    ] {
        check(Node::comment(text), expected);
    }
}

#[test]
fn replaces_attribute_values() {
    let mut field = Element::new("input").unwrap();
    field.set_attribute("value", 1).unwrap();
    field.set_attribute("Value", 2).unwrap();
    assert_eq!(field.attributes().collect::<Vec<_>>(), [("value", "2")]);
    assert!(field.remove_attribute("VALUE") && !field.remove_attribute("value"));
    field.set_attribute("a\"><script>", 1).unwrap_err();
    field.set_attribute("required", true).unwrap();
    field.set_attribute("required", false).unwrap();
    check(field, "<input />");
}

#[test]
fn changes_to_a_clone_share_the_rest() {
    let inner = element("b", ["x".into()]);
    let original = Tree::from(element("p", [inner.clone().into(), inner.into()]));
    let mut clone = original.clone();
    let paragraph = clone.roots_mut()[0].as_element_mut().unwrap();
    paragraph.children_mut()[0].as_element_mut().unwrap().push("y");
    check(original.clone(), "<p><b>x</b><b>x</b></p>");
    check(clone.clone(), "<p><b>xy</b><b>x</b></p>");
    let second = |tree: &Tree| {
        let paragraph = tree.roots()[0].as_element().unwrap();
        paragraph.children()[1].as_element().unwrap().clone()
    };
    assert!(second(&original).is(&second(&clone)));
    assert_ne!(original, clone);
    assert_eq!(original, original.clone());
}

#[test]
fn text_is_unescaped() {
    let tree = Tree::from(element("p", ["a ".into(), element("b", ["<b>".into()]).into()]));
    assert_eq!(tree.text(), "a <b>");
    let kinds: Vec<bool> = tree.walk().map(|node| node.as_element().is_some()).collect();
    assert_eq!(kinds, [true, false, true, false]);
}

struct Twice(&'static str);

impl Expand for Twice {
    fn expand(&self) -> Tree {
        [Node::text(self.0), Node::text(self.0)].into_iter().collect()
    }
}

struct Endless;

impl Expand for Endless {
    fn expand(&self) -> Tree {
        ["x".into(), Node::custom(Self)].into_iter().collect()
    }
}

#[test]
fn expands_custom_nodes_to_a_limited_depth() {
    check(element("p", [Node::custom(Twice("<"))]), "<p>&lt;&lt;</p>");
    check(Node::custom(Endless), &"x".repeat(32));
}

#[test]
fn element_has_its_source_location() {
    let (element, line) = (Element::new("p").unwrap(), line!());
    assert_eq!(
        (element.source_location().file(), element.source_location().line()),
        (file!(), line)
    );
}

/// Regression: recursion in drop, clone or comparison overflows the stack at some hundred thousand
/// levels. A program that builds trees from user input can be made to do so.
#[test]
fn handles_a_million_levels_without_recursion() {
    const DEPTH: usize = 1_000_000;
    let deep = || {
        let mut tree = Tree::from("x");
        for _ in 0..DEPTH {
            let node = tree.roots_mut().pop().unwrap();
            tree.push(element("i", [node]));
        }
        tree
    };
    let (mut tree, other) = (deep(), deep());
    assert_eq!(tree, other);
    let copy = tree.clone();
    tree.roots_mut()[0].as_element_mut().unwrap().set_attribute("id", "top").unwrap();
    assert_ne!(tree, copy);
    assert_eq!(tree.walk().count(), DEPTH + 1);
    assert_eq!(tree.text(), "x");
    assert_eq!(tree.to_string().len(), " id=\"top\"x".len() + DEPTH * "<i></i>".len());
    drop(tree);
    assert_eq!(copy.text(), "x");
    drop((copy, other));
}

#[test]
fn tree_is_an_xml_document_only_if_certain() {
    let page = |node: Node| Tree::from(element("html", [element("p", [node]).into()]));
    assert!(page("a".into()).is_this_document());
    assert!(
        page(element("script", [raw("a < b").into(), raw("c").into()]).into()).is_this_document()
    );
    assert!(!page(raw("<br>").into()).is_this_document());
    assert!(!page(Node::custom(Endless)).is_this_document());
    let scripted = [element("script", ["a".into()]).into(), raw("<br>").into()];
    assert!(!Tree::from(element("html", scripted)).is_this_document());
    assert!(!Tree::from(element("p", [])).is_this_document());
}

#[test]
fn trees_are_send_and_sync() {
    fn crosses<T: Send + Sync + 'static>(_: &T) {}
    crosses(&Tree::new());
    crosses(&Arc::new(Node::custom(Twice(""))));
    let _: String = Tree::new().text();
}

#[test]
fn keeps_handlers_only_in_trusted_markup() {
    let markup = "<p data-on=\"click: show this\">";
    check(Node::Raw(RawMarkup::trusted(markup)), markup);
    check(Node::from(raw(markup)), "<p data&#45;on=\"click: show this\">");
}

#[test]
fn numbers_matches_in_document_order() {
    let item = |name| element("li", [element(name, []).into()]);
    let tree = Tree::from(element("ul", ["a".into(), item("b").into(), item("i").into()]));
    let mut matches = tree.find_all("i, ul").unwrap();
    let mut numbers = alloc::vec::Vec::new();
    while matches.next().is_some() {
        numbers.push(matches.visited());
    }
    assert_eq!(numbers, [1, 5]);
}

#[test]
fn checks_no_tree_without_inspection() {
    use core::sync::atomic::{AtomicUsize, Ordering};
    static COUNT: AtomicUsize = AtomicUsize::new(0);

    let tree = Tree::from(element("p", [element("li", []).into()]));
    let mut out = alloc::vec::Vec::new();
    let mut writer = crate::Writer::new(&mut out);
    writer.inspect_with(|_| {
        COUNT.fetch_add(1, Ordering::Relaxed);
    });
    writer.without_inspection(|writer| tree.render(writer));
    assert_eq!(COUNT.load(Ordering::Relaxed), 0);
    tree.render(&mut writer);
    assert_eq!(COUNT.load(Ordering::Relaxed), 1);
}

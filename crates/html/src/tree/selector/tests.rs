//! Tests of selectors, against a reference implementation that tries all ancestors.

use alloc::string::{String, ToString as _};
use alloc::vec::Vec;

use proptest::prelude::*;

use super::super::{Node, Tree};
use super::*;

fn element(name: &'static str, attributes: &[(&'static str, &str)], children: Vec<Node>) -> Node {
    let mut element = Element::new(name).unwrap();
    for (name, value) in attributes {
        element.set_attribute(*name, *value).unwrap();
    }
    *element.children_mut() = children;
    element.into()
}

fn page() -> Tree {
    let item =
        |id: &str, class: &str, children| element("li", &[("id", id), ("class", class)], children);
    let link = |href: &str| element("a", &[("href", href)], Vec::from(["x".into()]));
    let inner = element("ul", &[], Vec::from([item("c", "new  old", Vec::from([link("/c.pdf")]))]));
    let items =
        Vec::from([item("a", "new", Vec::from([link("/a")])), item("b", "", Vec::from([inner]))]);
    let list = element("ul", &[("data-x", "a b\"c")], items);
    Tree::from(element("main", &[], Vec::from([element("h1", &[], Vec::new()), list])))
}

/// Checks the names and ids of the elements that a selector matches.
#[track_caller]
fn check(selector: &str, expected: &str) {
    let page = page();
    let found = page.find_all(selector).unwrap();
    let names = found.map(|element| match element.attribute("id") {
        Some(id) => [element.name(), "#", id].concat(),
        None => element.name().to_string(),
    });
    assert_eq!(names.collect::<Vec<_>>().join(" "), expected, "{selector}");
}

#[test]
fn matches_each_kind_of_selector() {
    check("h1", "h1");
    check("LI", "li#a li#b li#c");
    check("#b", "li#b");
    check(".new", "li#a li#c");
    check(".old.new", "li#c");
    check("li.new#a", "li#a");
    check("[href]", "a a");
    check("a[href='/a']", "a");
    check("[HREF^=\"/\"]", "a a");
    check("[href$='.pdf']", "a");
    check("[href*=c]", "a");
    check("[class~=old]", "li#c");
    check("[data-x='a b\\\"c']", "ul");
    check("[class='']", "li#b");
    check("[href^='']", "");
    check("*", "main h1 ul li#a a li#b ul li#c a");
}

#[test]
fn matches_by_ancestors() {
    check("li li", "li#c");
    check("li > a", "a a");
    check("ul>li", "li#a li#b li#c");
    check("main > li", "");
    check("main li > ul a", "a");
    check("#a a, #c a , h1", "h1 a a");
    check("ul ul ul", "");
    // The nearest `ul` has no `li` ancestor whose parent is `main > ul`; an outer `ul` has one.
    check("main > ul > li a", "a a");
}

#[test]
fn reports_syntax_errors_with_their_position() {
    let message = |selector: &str| Selector::parse(selector).unwrap_err().to_string();
    assert_eq!(
        message("p >"),
        "the selector \"p >\" is wrong at character 4: expected an element: a name, `*`, `#id`, `.class` or \
         `[attribute]`, found the end"
    );
    assert_eq!(
        message("p:hover"),
        "the selector \"p:hover\" is wrong at character 2: expected `,`, `>`, a space, or more of an element \
         (`.class`, `#id`, `[a=b]`), found ':'"
    );
    assert!(message("a.").contains("expected a class after `.`, found the end"));
    assert!(message("a[b='c]").contains("the quote that ends the value, found the end"));
    assert!(message("a[b!=c]").contains("expected `]`"));
    assert!(message("").contains("character 1"));
    assert!(message("\u{e4}\u{e4} +").contains("character 4"));
    assert!(message(&"a ".repeat(65)).contains("at most 64 elements"));
    assert!(Selector::parse(&"a ".repeat(64)).is_ok());
}

/// The definition of the standard, implemented without regard to speed: it tries all ancestors.
fn matches_path(path: &Path, at: usize, element: usize, ancestors: &[&Element]) -> bool {
    let step = &path.steps[at];
    if !step.conditions.iter().all(|test| test.holds(ancestors[element])) {
        return false;
    }
    if at == 0 {
        return true;
    }
    let outer = if step.is_child {
        element.checked_sub(1)..element.checked_sub(1).map(|_| element)
    } else {
        Some(0)..Some(element)
    };
    let (Some(first), Some(end)) = (outer.start, outer.end) else { return false };
    (first..end).any(|outer| matches_path(path, at - 1, outer, ancestors))
}

fn find_naively<'t>(
    nodes: &'t [Node],
    selector: &Selector,
    ancestors: &mut Vec<&'t Element>,
    found: &mut Vec<&'t Element>,
) {
    for element in nodes.iter().filter_map(Node::as_element) {
        ancestors.push(element);
        let is_match =
            |path: &Path| matches_path(path, path.steps.len() - 1, ancestors.len() - 1, ancestors);
        if selector.alternatives.iter().any(is_match) {
            found.push(element);
        }
        find_naively(element.children(), selector, ancestors, found);
        ancestors.pop();
    }
}

fn trees() -> impl Strategy<Value = Node> {
    let named = || (prop::sample::select(["a", "b", "c"].as_slice()), "[xy]?( [xy])?");
    let leaf = named().prop_map(|(name, class)| element(name, &[("class", &class)], Vec::new()));
    leaf.prop_recursive(6, 40, 4, move |inner| {
        (named(), prop::collection::vec(inner, 0..4))
            .prop_map(|((name, class), children)| element(name, &[("class", &class)], children))
    })
}

proptest! {
    #[test]
    fn matches_agree_with_the_reference(
        tree in trees(),
        selector in "(a|b|c|\\*|\\.x|a\\.y|\\[class\\]|\\[class\\*=x\\])(( | > )(a|b|c|\\*|\\.x|\\.y)){0,4}(, (a|b)( | > )c)?",
    ) {
        let tree = Tree::from(tree);
        let parsed = Selector::parse(&selector).unwrap();
        let mut naive = Vec::new();
        find_naively(tree.roots(), &parsed, &mut Vec::new(), &mut naive);
        let found: Vec<&Element> = tree.find_all(&parsed).unwrap().collect();
        prop_assert_eq!(found.len(), naive.len());
        prop_assert!(found.iter().zip(naive).all(|(found, naive)| found.is(naive)));
    }

    #[test]
    fn parses_or_rejects_any_text(text: String, near in "[a*#.\\[\\]='\"~^$, >\\\\:]{0,12}") {
        for text in [&text, &near] {
            if let Err(error) = Selector::parse(text) {
                prop_assert!(error.to_string().contains("is wrong at character"));
            }
        }
    }
}

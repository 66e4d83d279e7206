//! Tests of selectors, against a reference implementation that tries all ancestors.

use alloc::format;
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
fn matches_by_position_among_siblings() {
    check("li:first-child", "li#a li#c");
    check("li:last-child", "li#b li#c");
    check("main > :nth-child(2)", "ul");
    check("li:nth-child(even)", "li#b");
    check("li:NTH-CHILD( ODD )", "li#a li#c");
    check("ul > li:nth-last-child(2)", "li#a");
    check("main > ul > li:first-child a", "a");
    check("li:nth-child(3)", "");
    check("li:first-child:last-child", "li#c");
    check(":first-child", "main h1 li#a a ul li#c a");
}

/// The elements 1 to 9 of a list that a position selects.
#[track_caller]
fn check_position(position: &str, expected: &str) {
    // Nodes between the elements do not count.
    let items = (1..=9u32).flat_map(|_| ["x".into(), element("li", &[], Vec::new())]);
    let tree = Tree::from(element("ul", &[], items.collect()));
    let items: Vec<&Element> = tree.find_all("li").unwrap().collect();
    let found = tree.find_all(&[":nth-child(", position, ")"].concat()).unwrap();
    let place = |item: &Element| items.iter().position(|other| item.is(other)).map(|at| at + 1);
    let found = found.filter_map(place).map(|number| number.to_string());
    assert_eq!(found.collect::<String>(), expected, "{position}");
}

#[test]
fn parses_positions_as_css_does() {
    for (position, expected) in [
        ("odd", "13579"),
        ("Even", "2468"),
        ("4", "4"),
        ("+4", "4"),
        ("-4", ""),
        ("0", ""),
        ("n", "123456789"),
        ("-n", ""),
        ("-n+3", "123"),
        ("-N + 3", "123"),
        ("n+7", "789"),
        ("n-7", "123456789"),
        ("3n", "369"),
        ("+3n+0", "369"),
        ("3n-1", "258"),
        ("3n - 1", "258"),
        ("3n+ 4", "47"),
        ("0n+5", "5"),
        ("-3n+8", "258"),
        (" 2n+1 ", "13579"),
        ("99999999999999999999n+2", "2"),
        ("-99999999999999999999n-99999999999999999999", ""),
    ] {
        check_position(position, expected);
    }
}

#[test]
fn rejects_malformed_positions() {
    for (position, column, expected) in [
        ("", 12, "expected a position"),
        ("odd", 15, "expected `)`"),
        ("x)", 12, "expected a position"),
        ("+ 2)", 13, "expected a position"),
        ("2 n)", 14, "expected `)`"),
        ("2n 1)", 15, "expected `)`"),
        ("2n+)", 15, "expected a number after the sign"),
        ("2n+-1)", 15, "expected a number after the sign"),
        ("2n+1n)", 16, "expected `)`"),
        ("odder)", 12, "expected a position"),
        ("1.5)", 13, "expected `)`"),
        ("1,2)", 13, "expected `)`"),
    ] {
        let selector = ["p:nth-child(", position].concat();
        let message = Selector::parse(&selector).unwrap_err().to_string();
        let start = format!("{selector:?} is wrong at character {}: {expected}", column + 1);
        assert!(message.contains(&start), "{message}");
    }
    let message = |selector: &str| Selector::parse(selector).unwrap_err().to_string();
    assert!(message("p:nth-child").contains("character 12: expected `(`"));
    assert!(message("p:nth-child (2)").contains("character 12: expected `(`"));
    assert!(message("p:").contains("character 3: expected a pseudo-class after `:`"));
}

#[test]
fn names_parts_that_are_not_supported() {
    for (selector, column, part) in [
        (
            "p:hover",
            2,
            "`:hover`; pseudo-classes are `:first-child`, `:last-child`, `:nth-child(..)`",
        ),
        ("p:not(.a)", 2, "`:not(..)`; pseudo-classes are"),
        ("li a:nth-of-type(2)", 5, "`:nth-of-type(..)`; pseudo-classes are"),
        (":nth-child(2 of p)", 14, "`of` in a position"),
        ("p::before", 2, "pseudo-elements"),
        ("h1 + p", 4, "`+` (the next sibling); combinators are a space and `>`"),
        ("h1~p", 3, "`~` (later siblings)"),
        ("a || b", 3, "`||` (columns)"),
        ("svg|a", 4, "namespaces"),
        ("a\\:b", 2, "an escape"),
    ] {
        let message = Selector::parse(selector).unwrap_err().to_string();
        let start =
            format!("the selector {selector:?} is not supported at character {column}: {part}");
        assert!(message.starts_with(&start), "{message}");
    }
}

#[test]
fn reports_syntax_errors_with_their_position() {
    let message = |selector: &str| Selector::parse(selector).unwrap_err().to_string();
    assert_eq!(
        message("p >"),
        "the selector \"p >\" is wrong at character 4: expected an element: a name, `*`, `#id`, `.class`, \
         `[attribute]` or a position such as `:first-child`, found the end"
    );
    assert_eq!(
        message("p)"),
        "the selector \"p)\" is wrong at character 2: expected `,`, `>`, a space, or more of an element \
         (`.class`, `#id`, `[a=b]`, `:first-child`), found ')'"
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
fn matches_path(path: &Path, at: usize, element: usize, ancestors: &[(&Element, &[Node])]) -> bool {
    let step = &path.steps[at];
    let (own, siblings) = ancestors[element];
    let is_met = |test: &Condition| match test {
        Condition::Position(nth) => is_at(own, siblings, *nth),
        test => test.holds(own, Position::ONLY),
    };
    if !step.conditions.iter().all(is_met) {
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

/// The definition of `An+B`: some `n` gives the position.
fn is_at(element: &Element, siblings: &[Node], nth: nth::Nth) -> bool {
    let mut elements: Vec<&Element> = siblings.iter().filter_map(Node::as_element).collect();
    if nth.is_from_end {
        elements.reverse();
    }
    let before = elements.iter().position(|other| element.is(other)).unwrap();
    let position = i32::try_from(before).unwrap() + 1;
    (0..100).any(|n| nth.step * n + nth.offset == position)
}

fn find_naively<'t>(
    nodes: &'t [Node],
    selector: &Selector,
    ancestors: &mut Vec<(&'t Element, &'t [Node])>,
    found: &mut Vec<&'t Element>,
) {
    for element in nodes.iter().filter_map(Node::as_element) {
        ancestors.push((element, nodes));
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
        selector in "(a|b|c|\\*|\\.x|a\\.y|\\[class\\]|\\[class\\*=x\\])(( | > )(a|b|c|\\*|\\.x|\\.y)(:first-child|:last-child|:nth(-last)?-child\\((-?[1-3]?n([+-][1-4])?|[1-4])\\))?){0,4}(, (a|b)( | > )c)?",
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
    fn parses_each_spelling_of_a_position(
        step in any::<i16>(),
        offset in any::<i16>(),
        sign_blanks in "[ \t]{0,2}",
        is_from_end: bool,
    ) {
        let sign = if offset < 0 { '-' } else { '+' };
        let name = if is_from_end { "nth-last-child" } else { "nth-child" };
        let number = offset.unsigned_abs();
        let text = format!(":{name}( {step}n{sign_blanks}{sign}{sign_blanks}{number}{sign_blanks})");
        let parsed = Selector::parse(&text).unwrap();
        let nth = nth::Nth { step: step.into(), offset: offset.into(), is_from_end };
        prop_assert_eq!(&*parsed.alternatives[0].steps[0].conditions, &[Condition::Position(nth)]);
    }

    #[test]
    fn parses_or_rejects_any_text(
        text: String,
        near in "[a*#.\\[\\]='\"~^$, >\\\\:]{0,12}",
        position in "a:nth-(last-)?child\\([-+ 0-9nod]{0,6}\\)?",
    ) {
        for text in [&text, &near, &position] {
            if let Err(error) = Selector::parse(text) {
                let message = error.to_string();
                let is_told = ["is wrong at character", "is not supported at character"];
                prop_assert!(is_told.iter().any(|told| message.contains(told)), "{}", message);
            }
        }
    }
}

//! Round trips: any tree that HTML allows survives serialization and parsing as HTML and as XML.

use bine_html::tree::{Element, Feed, Node, Tree, Xhtml};
use bine_vocabulary::{self as vocabulary, Categories, Content, Rule, Value};
use proptest::prelude::*;

use crate::read;

/// Elements that an HTML parser changes: it reads their content as text (`iframe`, `noscript`) or
/// stores it elsewhere (`template`), rewrites it (`select`), or parses another language (`svg`).
const CHANGED_BY_PARSERS: [&str; 14] = [
    "iframe",
    "math",
    "noscript",
    "optgroup",
    "option",
    "script",
    "select",
    "selectedcontent",
    "slot",
    "style",
    "svg",
    "template",
    "textarea",
    "title",
];

/// The random choices that determine a tree. The tree ends where the choices end.
struct Tape<'t>(&'t [u16]);

impl Tape<'_> {
    /// A number below `end`.
    fn choice(&mut self, end: usize) -> Option<usize> {
        let (first, rest) = self.0.split_first()?;
        self.0 = rest;
        (end > 0).then(|| usize::from(*first) % end)
    }
}

/// The position in the growing tree: the ancestors, innermost last.
struct Position<'a> {
    names: &'a mut Vec<&'static vocabulary::Element>,
    texts: &'a [String],
}

fn grow(tape: &mut Tape<'_>, around: &mut Position<'_>, content: Content, into: &mut Element) {
    let Some(count) = tape.choice(5) else { return };
    for _ in 0..count {
        match tape.choice(4) {
            Some(0) => grow_text(tape, around, content, into),
            Some(_) => grow_element(tape, around, content, into),
            None => return,
        }
    }
}

fn grow_text(tape: &mut Tape<'_>, around: &Position<'_>, content: Content, into: &mut Element) {
    let Some(text) = tape.choice(around.texts.len()).map(|choice| &around.texts[choice]) else {
        return;
    };
    let last = into.children().last();
    if text.len() % 5 == 4 {
        let words: String = text.chars().filter(char::is_ascii_alphanumeric).collect();
        into.push(Node::comment(["a", &words].concat()));
    } else if content.text && !text.is_empty() && !matches!(last, Some(Node::Text(_))) {
        into.push(text.to_owned());
    }
}

fn grow_element(
    tape: &mut Tape<'_>,
    around: &mut Position<'_>,
    content: Content,
    into: &mut Element,
) {
    let is_present = |name: &str| {
        let mut siblings = into.children().iter().filter_map(Node::as_element);
        content.once.contains(name) && siblings.any(|sibling| sibling.name() == name)
    };
    let may_stand = |element: &&'static vocabulary::Element| {
        may_stand(element, around, content) && !is_present(element.name)
    };
    let known: Vec<_> = vocabulary::elements().iter().filter(may_stand).collect();
    let Some(choice) = tape.choice(known.len()) else { return };
    let known = known[choice];
    let mut element = Element::new(known.name).unwrap();
    for rule in known.rules {
        let name = match *rule {
            Rule::Any(names) => names.iter().next().unwrap(),
            Rule::Needs(name, _) | Rule::In(name, _) => name,
            Rule::Only(..) => continue,
        };
        let value_of = |name: &str| element.attribute(name).map_or(Value::Absent, Value::Is);
        if rule.is_violated(value_of, Some(into.name())) {
            element.set_attribute(name, "x").unwrap();
        }
    }
    for name in ["title", "data-x", "class", "lang"].iter().take(tape.choice(5).unwrap_or_default())
    {
        if let Some(choice) = tape.choice(around.texts.len()) {
            element.set_attribute(*name, &around.texts[choice]).unwrap();
        }
    }
    if !known.void {
        around.names.push(known);
        grow(tape, around, known.content.inherit_from(&content), &mut element);
        around.names.pop();
    }
    into.push(element);
}

fn may_stand(
    element: &'static vocabulary::Element,
    around: &Position<'_>,
    content: Content,
) -> bool {
    let Some(parent) = around.names.last() else { return false };
    let mut categories = element.categories;
    if let Some(sometimes) = element.sometimes
        && sometimes.holds(|_| Value::Absent) != Some(false)
    {
        categories = categories.or(sometimes.categories);
    }
    let stands = if element.parents.is_empty() {
        content.allows(element, categories)
    } else {
        element.parents.contains(parent.name)
    };
    // HTML allows `<tr>` in a table and `<dt>` in a division, but a parser moves them.
    let is_moved = parent.name == "table" && element.name == "tr"
        || parent.name == "div" && ["dt", "dd"].contains(&element.name);
    let is_within = |outer: &&vocabulary::Element| element.within.contains(outer.name);
    stands
        && !is_moved
        && (element.within.is_empty() || around.names.iter().any(is_within))
        && !categories.intersects(Categories::METADATA)
        && element.deprecated.is_none()
        && !CHANGED_BY_PARSERS.contains(&element.name)
        && !around.names.iter().any(|outer| outer.excluded.contains(element, categories))
}

fn page(tape: &[u16], texts: &[String]) -> Tree {
    let body = vocabulary::element("body").unwrap();
    let mut names = vec![body];
    let mut element = Element::new("body").unwrap();
    let mut around = Position { names: &mut names, texts };
    grow(&mut Tape(tape), &mut around, body.content, &mut element);
    let mut title = Element::new("title").unwrap();
    title.push("T & t");
    let mut head = Element::new("head").unwrap();
    let mut html = Element::new("html").unwrap();
    head.push(title);
    html.push(head);
    html.push(element);
    [Node::Doctype, html.into()].into_iter().collect()
}

/// Arbitrary texts, and texts that resemble markup.
fn texts() -> impl Strategy<Value = Vec<String>> {
    let text = prop_oneof![
        any::<String>(),
        "[ \n<>&\"'a-]{0,8}",
        "(</?p>|&lt;|&#0;|]]>|<!--|-->|<script>){1,3}"
    ];
    prop::collection::vec(text, 1..12)
}

fn tape() -> impl Strategy<Value = Vec<u16>> {
    prop::collection::vec(any::<u16>(), 0..300)
}

/// Regression: a browser drops the first line feed of a `textarea`, so each time a user saved the
/// form, the text lost a line.
#[test]
fn keeps_leading_line_feeds() {
    for name in ["pre", "textarea"] {
        for text in ["\nx", "\n\nx", "x\n", "\n"] {
            let mut element = Element::new(name).unwrap();
            element.push(text);
            let page = read::html(&Tree::from(element).to_string());
            assert_eq!(page.find(name).unwrap().unwrap().text(), text);
        }
    }
}

proptest! {
    #[test]
    fn any_tree_survives_html(tape in tape(), texts in texts()) {
        // A parser replaces carriage returns and drops U+0000 (HTML 13.2.3.5, 13.2.6.4.7).
        let texts: Vec<String> = texts.iter().map(|text| text.replace(['\0', '\r'], "")).collect();
        let page = page(&tape, &texts);
        prop_assert_eq!(page.findings(), Vec::new());
        let markup = page.to_string();
        prop_assert_eq!(read::html(&markup), page);
    }

    #[test]
    fn any_tree_survives_xml(tape in tape(), texts in texts()) {
        // Characters that XML does not allow become U+FFFD.
        let held = |char: &char| match char {
            '\t' | '\n' | '\r' => *char,
            '\0'..' ' | '\u{fffe}' | '\u{ffff}' => '\u{fffd}',
            _ => *char,
        };
        let held: Vec<String> =
            texts.iter().map(|text| text.chars().map(|char| held(&char)).collect()).collect();
        let markup = page(&tape, &texts).to_string_with(Xhtml::default());
        prop_assert_eq!(read::xml(&markup), page(&tape, &held));
    }

    #[test]
    fn html_output_parses_as_xml(tape in tape(), texts in texts()) {
        let texts: Vec<String> = texts
            .iter()
            .map(|text| text.chars().filter(|char| *char >= ' ' && *char < '\u{fffe}').collect())
            .collect();
        let page = page(&tape, &texts);
        // XML requires an explicit namespace.
        let markup = page.to_string().replacen("<html>", "<html xmlns=\"http://www.w3.org/1999/xhtml\">", 1);
        prop_assert_eq!(read::xml(&markup), page);
    }

    #[test]
    fn feed_is_xml_for_any_text(tape in tape(), texts in texts(), page_address: String) {
        let text = |place: usize| texts[place % texts.len()].clone();
        let mut article = Element::new("article").unwrap();
        let mut heading = Element::new("h2").unwrap();
        heading.push(text(1));
        article.push(heading);
        let mut time = Element::new("time").unwrap();
        time.set_attribute("datetime", "2026-11-21").unwrap();
        article.push(time);
        article.set_attribute("id", text(2)).unwrap();
        article.children_mut().extend(page(&tape, &texts).roots().iter().cloned());
        let articles = Tree::from(article);
        let feed = Feed {
            title: text(3).into(),
            author: text(4).into(),
            description: text(5).into(),
            page: page_address.into(),
            url: text(6).into(),
        };
        for markup in [articles.to_string_with(feed.clone().atom()), articles.to_string_with(feed.rss())] {
            let document = roxmltree::Document::parse(&markup).unwrap();
            let entries = document.descendants().filter(|node| ["entry", "item"].contains(&node.tag_name().name()));
            prop_assert_eq!(entries.count(), 1);
        }
    }
}

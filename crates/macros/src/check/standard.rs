//! Tests of the checks against the element pages of the HTML standard.
//!
//! Each page has examples of valid markup and of invalid markup. The rules are the standard's, the
//! messages are ours. [`NOT_CHECKED`] lists rules that the checks omit.

use std::collections::BTreeSet;

use bine_vocabulary as vocabulary;

use crate::parse::parse;
use crate::sample::Sample;
use crate::tree::Node;

mod document;
mod edits;
mod embedded;
mod forms;
mod grouping;
mod inputs;
mod interactive;
mod scripting;
mod sections;
mod tables;
mod text;

/// The examples for one page of the standard.
struct Page {
    /// The fragment of the page's URL.
    anchor: &'static str,
    right: &'static [&'static str],
    /// Markup with one error, and a part of its message.
    wrong: &'static [(&'static str, &'static str)],
}

fn pages() -> impl Iterator<Item = &'static Page> {
    let chapters = [
        document::PAGES,
        sections::PAGES,
        grouping::PAGES,
        text::PAGES,
        edits::PAGES,
        embedded::PAGES,
        tables::PAGES,
        forms::PAGES,
        inputs::PAGES,
        interactive::PAGES,
        scripting::PAGES,
    ];
    chapters.into_iter().flatten()
}

/// Rules of the standard that are not checked: they depend on run-time values, define a language of
/// their own, or need human judgment.
const NOT_CHECKED: &[(&str, &str)] = &[
    ("addresses, media queries, types of media, patterns, colors", "their grammar"),
    (
        "srcset, sizes, imagesrcset, imagesizes, coords",
        "their grammar, and how they depend on each other",
    ),
    ("autocomplete, rel, accept, allow, step, content", "their words"),
    ("accesskey, class, headers, itemprop, ping", "that no word occurs twice"),
    (
        "for, form, list, headers, usemap, itemref, aria-..",
        "that the named element exists and has the right kind",
    ),
    ("id, name of map, details and radio buttons", "that it is unique across components"),
    ("itemprop", "that it is within an item"),
    ("h1 to h6", "that no level is skipped"),
    ("dfn, abbr, cite, b, i, s, small, u", "that they are used with their meaning"),
    ("time", "its text if it has no `datetime`"),
    ("base", "that it precedes all elements with URLs"),
    ("meta", "one `charset` and one `description` to a page; `content` without `charset`"),
    ("link", "`type`, `media`, `blocking` and `fetchpriority` by `rel`"),
    ("noscript in a head", "that it contains only `link`, `meta` and `style`"),
    ("embed", "its own parameters, which have quoted names"),
    ("iframe", "the page in its `srcdoc`"),
    ("source", "a source after one that always matches; `sizes` and `media` by the parent"),
    ("track", "one `default` per kind; distinct labels"),
    ("img", "`ismap` within a link; `sizes=\"auto\"` with `loading`"),
    ("table", "`tr` next to `tbody`; overlapping cells; columns without a cell"),
    ("colgroup", "`span` together with `col`"),
    ("option, optgroup", "`label` or text; `label` or `legend`"),
    ("select", "two `selected` without `multiple`; an empty first option if `required`"),
    (
        "input, textarea",
        "`value` within its bounds; `minlength` below `maxlength`; `value` of a file",
    ),
    ("meter, progress", "the order of their numbers"),
    ("label", "a control within one whose `for` names another"),
    ("button", "that `command` suits the element that `commandfor` names"),
    ("datalist", "that it has either options or fallback content"),
    ("ruby", "that `rt` follows its base text, and `rp` encloses it"),
    ("selectedcontent", "that it is in the first `button` of a `select`"),
    ("dialog", "`tabindex` on it"),
    ("script", "`async` without `src`; attributes of data blocks"),
    ("template", "its content; attributes of a shadow root without `shadowrootmode`"),
    ("custom elements, is", "their attributes and their content"),
    ("svg, math", "the nesting of their elements, and the attributes of each"),
    ("role, aria-..", "which of them an element may have"),
    ("holes", "their values; the type of a component determines its content kind"),
];

#[track_caller]
fn messages(markup: &str) -> (usize, String) {
    let sample = Sample::new(markup);
    let mut faults = Vec::new();
    let nodes = parse(&sample.tokens, &mut faults);
    super::check(&nodes, &mut faults);
    (faults.len(), sample.report(&faults))
}

#[test]
fn accepts_markup_that_the_standard_allows() {
    let mut refused = Vec::new();
    for (page, markup) in pages().flat_map(|page| page.right.iter().map(move |one| (page, one))) {
        let (faults, messages) = messages(markup);
        if faults > 0 {
            refused.push(format!("{}: {markup}\n{messages}", page.anchor));
        }
    }
    assert!(refused.is_empty(), "{}", refused.join("\n\n"));
}

#[test]
fn rejects_exactly_the_markup_that_the_standard_forbids() {
    let mut otherwise = Vec::new();
    for (page, one) in pages().flat_map(|page| page.wrong.iter().map(move |one| (page, one))) {
        let (markup, part) = one;
        let (faults, messages) = messages(markup);
        if faults != 1 || !messages.contains(part) {
            otherwise.push(format!("{}: {markup}\nnot {part}, but\n{messages}", page.anchor));
        }
    }
    assert!(otherwise.is_empty(), "{}", otherwise.join("\n\n"));
}

#[test]
fn examples_cover_every_element() {
    let (mut right, mut wrong) = (BTreeSet::new(), BTreeSet::new());
    for page in pages() {
        page.right.iter().for_each(|markup| collect(markup, &mut right));
        page.wrong.iter().for_each(|(markup, _)| collect(markup, &mut wrong));
    }
    for element in vocabulary::elements().iter().filter(|element| element.deprecated.is_none()) {
        assert!(right.contains(element.name), "nothing right has <{}>", element.name);
        assert!(wrong.contains(element.name), "nothing wrong has <{}>", element.name);
    }
}

#[test]
fn each_page_is_unique_and_has_examples() {
    let mut anchors = BTreeSet::new();
    for page in pages() {
        assert!(anchors.insert(page.anchor), "{} twice", page.anchor);
        assert!(!page.right.is_empty() && !page.wrong.is_empty(), "{}", page.anchor);
    }
    assert!(NOT_CHECKED.iter().all(|(what, why)| !what.is_empty() && !why.is_empty()));
}

#[test]
fn suggests_replacements_for_obsolete_elements() {
    for element in vocabulary::elements() {
        let Some(instead) = element.deprecated else { continue };
        let name = element.name;
        let closing = if element.void { String::new() } else { format!("</{name}>") };
        let (_, messages) = messages(&format!("<{name}>{closing}"));
        assert!(
            messages.contains(&format!("`<{name}>` is no longer part of HTML: {instead}")),
            "{messages}"
        );
    }
}

#[test]
fn suggests_replacements_for_obsolete_attributes() {
    for element in vocabulary::elements().iter().filter(|element| element.deprecated.is_none()) {
        for attribute in element.attributes {
            let Some(instead) = attribute.deprecated else { continue };
            let closing = if element.void { String::new() } else { format!("</{}>", element.name) };
            let (_, messages) =
                messages(&format!("<{} {}=\"1\">{closing}", element.name, attribute.name));
            let wanted = format!("`{}` is no longer part of HTML: {instead}", attribute.name);
            assert!(messages.contains(&wanted), "{}: {messages}", element.name);
        }
    }
}

#[test]
fn accepts_every_attribute_with_each_of_its_words() {
    for element in vocabulary::elements().iter().filter(|element| element.deprecated.is_none()) {
        let closing = if element.void { String::new() } else { format!("</{}>", element.name) };
        let own = element.attributes.iter().chain(vocabulary::global_attributes());
        for attribute in own.filter(|attribute| attribute.deprecated.is_none()) {
            let (name, kind) = (attribute.name, attribute.kind);
            // An element's own attribute takes precedence over a global one.
            if element.attribute(name).is_none_or(|found| found.kind != kind) {
                continue;
            }
            let values = kind.words().into_iter().filter(|word| kind.accepts(word));
            for value in values.map(|word| format!("=\"{word}\"")).chain(["={value}".into()]) {
                let (_, messages) = messages(&format!("<{} {name}{value}>{closing}", element.name));
                assert!(!messages.contains(&format!("`{name}` takes")), "{value}: {messages}");
                assert!(!messages.contains("has no attribute"), "{value}: {messages}");
            }
        }
    }
}

/// Collects the names of HTML elements in `markup`.
fn collect(markup: &str, names: &mut BTreeSet<String>) {
    fn walk(nodes: &[Node], names: &mut BTreeSet<String>) {
        for node in nodes {
            if let Node::Element(element) = node {
                names.insert(element.name.clone());
                walk(&element.children, names);
            }
        }
    }
    walk(&parse(&Sample::new(markup).tokens, &mut Vec::new()), names);
}

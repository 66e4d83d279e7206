//! Messages of failed checks: the expectation, the elements close to it, and the text of the page.

use bine_html::tree::{Element, PlainText, Tree};

use super::document::{elements, text_of};
use crate::nearest::nearest;

/// Limits of a message: elements, lines of the page, and characters of each.
const MOST_LISTED: usize = 8;
const MOST_LINES: usize = 40;
const LONGEST: usize = 120;

/// A condition on the text of an element: a text that it contains, or a function.
pub trait Expectation {
    /// Whether the text meets the condition. White space in the text is a single space.
    fn holds(&self, text: &str) -> bool;

    /// Describes the condition for a message, such as `says "hi"`.
    fn shown(&self) -> String;
}

impl Expectation for &str {
    fn holds(&self, text: &str) -> bool {
        text.contains(*self)
    }

    fn shown(&self) -> String {
        format!("says {self:?}")
    }
}

impl Expectation for &String {
    fn holds(&self, text: &str) -> bool {
        (&***self).holds(text)
    }

    fn shown(&self) -> String {
        (&***self).shown()
    }
}

impl Expectation for String {
    fn holds(&self, text: &str) -> bool {
        (&**self).holds(text)
    }

    fn shown(&self) -> String {
        (&**self).shown()
    }
}

impl<F: Fn(&str) -> bool> Expectation for F {
    fn holds(&self, text: &str) -> bool {
        self(text)
    }

    fn shown(&self) -> String {
        "is as wanted".to_owned()
    }
}

/// Reports that no element of the selector meets the condition.
pub(super) fn missing(tree: &Tree, selector: &str, wanted: &impl Expectation) -> String {
    let found = find(tree, selector);
    if found.is_empty() {
        return absent(tree, selector);
    }
    let mut lines = vec![format!("no `{selector}` {}", wanted.shown())];
    lines.push(format!("there {} `{selector}`:\n{}", are(found.len()), listed(&found)));
    let elsewhere = elements(tree.roots()).filter(|one| meets_condition_itself(one, wanted));
    let elsewhere: Vec<&Element> = elsewhere.collect();
    if !elsewhere.is_empty() {
        lines.push(format!("elsewhere there {}:\n{}", are(elsewhere.len()), listed(&elsewhere)));
    }
    lines.join("\n\n")
}

/// Reports that no element matches the selector.
pub(super) fn absent(tree: &Tree, selector: &str) -> String {
    let mut lines = vec![format!("there is no `{selector}`")];
    let known = |of: fn(&Element) -> Vec<String>| {
        let mut names: Vec<String> = elements(tree.roots()).flat_map(of).collect();
        names.sort();
        names.dedup();
        names
    };
    let kinds = known(|element| vec![element.name().to_owned()]);
    let classes = known(|element| words(element, "class", '.'));
    let ids = known(|element| words(element, "id", '#'));
    for name in simple_names(selector) {
        let known = match name.as_bytes()[0] {
            b'.' => &classes,
            b'#' => &ids,
            _ => &kinds,
        };
        if known.iter().any(|own| own.eq_ignore_ascii_case(name)) {
            continue;
        }
        let (meant, all) = (nearest(known.iter().map(|own| &**own), name), known.join(", "));
        let near = match meant {
            // A name of two letters is close to all names.
            Some(meant) if name.len() > 3 => format!("; did you mean `{meant}`?"),
            _ if all.is_empty() => "; it has none of that kind".to_owned(),
            _ => format!("; it has {}", cut(&all)),
        };
        lines.push(format!("nothing on the page is `{name}`{near}"));
    }
    let simplified = without_conditions(selector);
    let near = if simplified == selector { Vec::new() } else { find(tree, &simplified) };
    if !near.is_empty() {
        lines.push(format!("there {} `{simplified}`:\n{}", are(near.len()), listed(&near)));
        return lines.join("\n\n");
    }
    // Name the longest part of the selector that matches.
    let ends =
        selector.match_indices(' ').map(|(end, _)| selector[..end].trim_end_matches([' ', '>']));
    let outer = ends.rev().find(|outer| !outer.ends_with(',') && !find(tree, outer).is_empty());
    if let Some(outer) = outer {
        let found = find(tree, outer);
        lines.push(format!("there {} `{outer}`:\n{}", are(found.len()), listed(&found)));
    }
    lines.join("\n\n")
}

/// Lists elements, one on each line: start tag and text.
pub(super) fn listed(found: &[&Element]) -> String {
    let line = |element: &&Element| {
        let attributes = element.attributes().map(|(name, value)| match value {
            "" => format!(" {name}"),
            value => format!(" {name}={value:?}"),
        });
        let tag = format!("<{}{}", element.name(), attributes.collect::<String>());
        format!("    {}> {}", cut(&tag), cut(&text_of(element)))
    };
    lines_of(found.iter().take(MOST_LISTED).map(line), found.len(), "")
}

/// Describes the current page. Each message ends with it.
pub(super) fn page(tree: &Tree, url: &str, how: &str) -> String {
    let text = tree.to_string_with(PlainText::default());
    let lines: Vec<&str> = text.lines().filter(|line| !line.trim().is_empty()).collect();
    let read = lines.iter().take(MOST_LINES).map(|line| format!("    {}", cut(line)));
    match lines.len() {
        0 => format!("the page is {url} ({how}), and nothing can be read on it"),
        count => {
            let read = lines_of(read, count, " lines");
            format!("the page is {url} ({how}), and reads:\n{read}")
        }
    }
}

/// Joins lines, and adds the number of omitted ones.
fn lines_of(lines: impl Iterator<Item = String>, count: usize, of: &str) -> String {
    let mut lines: Vec<String> = lines.collect();
    if lines.len() < count {
        lines.push(format!("    and {} more{of}", count - lines.len()));
    }
    lines.join("\n")
}

/// Returns all elements of a selector. The caller has already reported a wrong selector.
fn find<'t>(tree: &'t Tree, selector: &str) -> Vec<&'t Element> {
    tree.find_all(selector).map(Iterator::collect).unwrap_or_default()
}

/// Whether an element meets the condition, and no descendant does.
fn meets_condition_itself(element: &Element, wanted: &impl Expectation) -> bool {
    // Skip invisible elements and those that contain the whole page.
    let is_read = !["html", "head", "body", "script", "style", "title"].contains(&element.name());
    is_read
        && wanted.holds(&text_of(element))
        && !elements(element.children()).any(|inner| wanted.holds(&text_of(inner)))
}

fn are(count: usize) -> String {
    if count == 1 { "is one".to_owned() } else { format!("are {count}") }
}

fn words(element: &Element, attribute: &str, mark: char) -> Vec<String> {
    let words = element.attribute(attribute).unwrap_or_default().split_ascii_whitespace();
    words.map(|word| format!("{mark}{word}")).collect()
}

/// Returns a selector without its attributes and positions: `li.new:nth-child(2) > a[href^="/"]`
/// becomes `li.new > a`.
fn without_conditions(selector: &str) -> String {
    let (mut simplified, mut rest) = (String::new(), selector);
    while let Some(place) = rest.find(['[', ':']) {
        simplified.push_str(&rest[..place]);
        rest = after_condition(&rest[place..]);
    }
    simplified.push_str(rest);
    simplified.trim().to_owned()
}

/// Returns the text after the attribute or the pseudo-class at the start of `selector`.
fn after_condition(selector: &str) -> &str {
    if selector.starts_with('[') {
        return selector.split_once(']').map_or("", |(_, rest)| rest);
    }
    let name = selector[1..].trim_start_matches(is_of_a_name);
    match name.strip_prefix('(') {
        Some(position) => position.split_once(')').map_or("", |(_, rest)| rest),
        None => name,
    }
}

fn is_of_a_name(letter: char) -> bool {
    letter.is_alphanumeric() || "-_".contains(letter)
}

/// Returns the types, classes and ids of a selector: `ul.big > #a [x=".b"]` has `ul`, `.big` and
/// `#a`.
fn simple_names(selector: &str) -> Vec<&str> {
    let (mut names, mut rest) = (Vec::new(), selector);
    while let Some(first) = rest.chars().next() {
        if first == '[' || first == ':' {
            rest = after_condition(rest);
            continue;
        }
        let begins = first == '.' || first == '#' || is_of_a_name(first);
        let after = &rest[first.len_utf8()..];
        let end = after.find(|letter| !is_of_a_name(letter)).unwrap_or(after.len());
        if begins {
            names.push(&rest[..first.len_utf8() + end]);
            rest = &after[end..];
        } else {
            rest = after;
        }
    }
    names
}

fn cut(text: &str) -> String {
    match text.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("{}...", &text[..end]),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::super::document::read;
    use super::*;

    fn page_of_messages() -> Tree {
        read(
            "<h1>Ubuntu</h1><ul class=messages><li>hello<li class=new>good <b>day</b></ul><p>hi</p>",
            false,
        )
    }

    #[test]
    fn reports_what_is_missing_and_what_exists() {
        assert_eq!(
            missing(&page_of_messages(), "li", &"hi"),
            "no `li` says \"hi\"\n\n\
             there are 2 `li`:\n    <li> hello\n    <li class=\"new\"> good day\n\n\
             elsewhere there is one:\n    <p> hi"
        );
    }

    #[test]
    fn suggests_names_close_to_the_selector() {
        assert_eq!(
            missing(&page_of_messages(), "ul.message li", &"hi"),
            "there is no `ul.message li`\n\n\
             nothing on the page is `.message`; did you mean `.messages`?"
        );
        assert_eq!(
            absent(&page_of_messages(), "ul.messages > em"),
            "there is no `ul.messages > em`\n\n\
             nothing on the page is `em`; it has b, body, h1, head, html, li, p, ul\n\n\
             there is one `ul.messages`:\n    <ul class=\"messages\"> hello good day"
        );
    }

    #[test]
    fn lists_elements_at_other_positions_or_with_other_attributes() {
        for selector in ["ul > li:nth-child(2n + 7)", "ul > li[class=old]:first-child"] {
            assert_eq!(
                absent(&page_of_messages(), selector),
                format!(
                    "there is no `{selector}`\n\n\
                     there are 2 `ul > li`:\n    <li> hello\n    <li class=\"new\"> good day"
                )
            );
        }
        assert_eq!(absent(&page_of_messages(), "[href]"), "there is no `[href]`");
    }

    #[test]
    fn reports_page_as_text() {
        assert_eq!(
            page(&page_of_messages(), "/board", "status 200"),
            "the page is /board (status 200), and reads:\n    Ubuntu\n    - hello\n    - good day\n    hi"
        );
    }

    #[test]
    fn finds_names_in_selector() {
        assert_eq!(simple_names("ul.big > #a [x=\".b\"], my-x *"), ["ul", ".big", "#a", "my-x"]);
        assert_eq!(simple_names("ul:nth-child(2n+1) .a:first-child.b"), ["ul", ".a", ".b"]);
    }
}

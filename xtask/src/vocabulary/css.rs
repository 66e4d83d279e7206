//! Writes the CSS part of the table: names, and the keywords in the grammar of each property.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context, Result};
use serde_json::Value;

use super::chosen;
use super::table::{Table, quoted, words};

/// Writes everything about CSS.
pub(super) fn write(table: &mut Table, css: &Value) -> Result<()> {
    let grammar = Grammar::read(css)?;
    let mut written = BTreeMap::new();
    for property in list(css, "properties") {
        let name = name_of(property)?;
        let mut found = Found::default();
        match property["syntax"].as_str() {
            Some(syntax) => grammar.search(syntax, &mut found),
            // The grammar is prose, so every name must be accepted.
            None => found.names = true,
        }
        found.numbers |= found.names || chosen::NUMBERS.contains(&name);
        let alias = property["legacyAliasOf"].as_str();
        let alias = alias.map_or("None".to_owned(), |alias| format!("Some({})", quoted(alias)));
        let line = format!(
            "Property {{ name: {}, words: {}, colors: {}, numbers: {}, names: {}, alias_of: {alias} }}",
            quoted(name),
            words(found.words.iter().map(String::as_str)),
            found.colors,
            found.numbers,
            found.names,
        );
        written.insert(name, line);
    }
    let records: Vec<String> = written.into_values().collect();
    table.list("PROPERTIES", "Property", "The properties of CSS.", &records);

    let mut rules: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for rule in list(css, "atrules") {
        let descriptors = rules.entry(name_of(rule)?.trim_start_matches('@')).or_default();
        for descriptor in list(rule, "descriptors") {
            descriptors.insert(name_of(descriptor)?);
        }
    }
    let records: Vec<String> = rules
        .into_iter()
        .map(|(name, found)| {
            format!("AtRule {{ name: {}, descriptors: {} }}", quoted(name), words(found))
        })
        .collect();
    table.list("AT_RULES", "AtRule", "The rules of CSS that begin with `@`.", &records);

    let (mut classes, mut elements) = (BTreeSet::new(), BTreeSet::new());
    for selector in list(css, "selectors") {
        let name = name_of(selector)?;
        if let Some(element) = name.strip_prefix("::") {
            elements.insert(element);
        } else if let Some(class) = name.strip_prefix(':') {
            classes.insert(class);
        }
    }
    let functions: BTreeSet<&str> = list(css, "functions")
        .map(|function| Ok(name_of(function)?.trim_end_matches("()")))
        .collect::<Result<_>>()?;
    let mut names = |name, about, names: BTreeSet<&str>| {
        let records: Vec<String> = names.into_iter().map(quoted).collect();
        table.list(name, "&str", about, &records);
    };
    names("PSEUDO_CLASSES", "The pseudo-classes of CSS, without the colon.", classes);
    names("PSEUDO_ELEMENTS", "The pseudo-elements of CSS, without the colons.", elements);
    names("FUNCTIONS", "The functions of CSS, without the parentheses.", functions);

    let mut found = Found::default();
    grammar.search("<named-color> | <system-color> | currentColor", &mut found);
    table.words("COLORS", "The words for colors.", &Vec::from_iter(found.words));
    let wide: Vec<String> = chosen::WIDE.split(' ').map(str::to_owned).collect();
    table.words("WIDE", "The words that every property takes.", &wide);
    Ok(())
}

/// The value grammar of properties and their types (CSS Values 4, 2).
struct Grammar<'a> {
    types: BTreeMap<&'a str, Vec<&'a str>>,
    properties: BTreeMap<&'a str, &'a str>,
}

/// The facts found in a grammar.
#[derive(Default)]
struct Found {
    words: BTreeSet<String>,
    colors: bool,
    numbers: bool,
    names: bool,
    /// The types already visited, because some are recursive.
    seen: BTreeSet<String>,
}

impl<'a> Grammar<'a> {
    fn read(css: &'a Value) -> Result<Self> {
        let mut types: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
        for one in list(css, "types") {
            // Two specifications may each define a type of the same name; the values of both are
            // accepted.
            let syntaxes = types.entry(name_of(one)?).or_default();
            syntaxes.extend(one["syntax"].as_str());
        }
        types.extend(chosen::GRAMMAR.iter().map(|(name, syntax)| (*name, vec![*syntax])));
        let mut properties = BTreeMap::new();
        for one in list(css, "properties") {
            properties.extend(one["syntax"].as_str().map(|syntax| (one["name"].as_str(), syntax)));
        }
        let properties = properties.into_iter().filter_map(|(name, syntax)| Some((name?, syntax)));
        Ok(Self { types, properties: properties.collect() })
    }

    /// Adds the values of a grammar, outside of functions.
    fn search(&self, syntax: &str, found: &mut Found) {
        let mut rest = syntax;
        while let Some(char) = rest.chars().next() {
            match char {
                '<' => {
                    let (inside, after) = rest[1..].split_once('>').unwrap_or((&rest[1..], ""));
                    self.search_type(inside, found);
                    rest = after;
                }
                // A literal character.
                '\'' => rest = rest[1..].split_once('\'').map_or("", |(_, after)| after),
                '-' | '_' | 'a'..='z' | 'A'..='Z' => {
                    let is_part = |char: char| char.is_ascii_alphanumeric() || "-_".contains(char);
                    let end = rest.find(|char| !is_part(char)).unwrap_or(rest.len());
                    let (word, after) = rest.split_at(end);
                    if after.starts_with('(') {
                        rest = after_function(after);
                    } else {
                        found.words.insert(word.to_owned());
                        rest = after;
                    }
                }
                // Part of a multiplier, not of a keyword: `{1,4}`.
                '0'..='9' => {
                    rest = rest.trim_start_matches(|char: char| char.is_ascii_alphanumeric());
                }
                _ => rest = &rest[char.len_utf8()..],
            }
        }
    }

    /// Adds the values of `<inside>`: a type, perhaps with a range, or a property in quotes.
    fn search_type(&self, inside: &str, found: &mut Found) {
        let name = inside.split([' ', '[']).next().unwrap_or_default();
        if name == "color" {
            found.colors = true;
            return;
        }
        found.numbers |= ["integer", "number"].contains(&name);
        // A function is not a keyword.
        if name.ends_with("()") || !found.seen.insert(name.to_owned()) {
            return;
        }
        if let Some(property) = name.strip_prefix('\'') {
            match self.properties.get(property.trim_end_matches('\'')) {
                Some(syntax) => self.search(syntax, found),
                None => found.names = true,
            }
            return;
        }
        match self.types.get(name).map(Vec::as_slice) {
            Some([]) | None => found.names |= !chosen::WITHOUT_WORDS.contains(&name),
            Some(syntaxes) => {
                for syntax in syntaxes {
                    self.search(syntax, found);
                }
            }
        }
    }
}

/// The text after the parenthesis that closes the first character of `text`.
fn after_function(text: &str) -> &str {
    let mut depth = 0;
    for (at, char) in text.char_indices() {
        match char {
            '(' => depth += 1,
            ')' => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return &text[at + 1..];
        }
    }
    ""
}

fn list<'a>(of: &'a Value, key: &str) -> impl Iterator<Item = &'a Value> + use<'a> {
    of[key].as_array().into_iter().flatten()
}

fn name_of(one: &Value) -> Result<&str> {
    one["name"].as_str().context("an entry has no name")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{Found, Grammar};

    #[track_caller]
    fn check(syntax: &str, words: &[&str], colors: bool, names: bool) {
        let css = json!({
            "types": [
                { "name": "side", "syntax": "left | <side> | right" },
                { "name": "custom-ident" },
            ],
            "properties": [{ "name": "a", "syntax": "none | <length [0,1]>" }],
        });
        let mut found = Found::default();
        Grammar::read(&css).expect("names").search(syntax, &mut found);
        assert_eq!(Vec::from_iter(&found.words), words, "{syntax}");
        assert_eq!((found.colors, found.names), (colors, names), "{syntax}");
    }

    #[test]
    fn finds_numbers_without_a_unit() {
        let css = json!({ "types": [{ "name": "share", "syntax": "<number [0,1]> | <percentage>" }], "properties": [] });
        let takes_numbers = |syntax: &str| {
            let mut found = Found::default();
            Grammar::read(&css).expect("names").search(syntax, &mut found);
            found.numbers
        };
        assert!(takes_numbers("auto | <share>{1,4}") && takes_numbers("<integer>"));
        assert!(!takes_numbers("<length> | <percentage> | f(<number>)"));
    }

    #[test]
    fn finds_keywords_in_types_and_properties_but_not_in_functions() {
        check("auto | <side>{1,4}", &["auto", "left", "right"], false, false);
        check("<'a'># || fit-content(<side> | [none])", &["none"], false, false);
        check("<color>? '[' x ']'", &["x"], true, false);
        check("flow-root && <custom-ident>", &["flow-root"], false, true);
        check("<unknown>", &[], false, true);
    }
}

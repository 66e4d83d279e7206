//! Formats the table: one line per entry, sorted by name.

use std::fmt::Write as _;

use anyhow::{Result, ensure};

use super::Package;

/// The text of the table, built step by step.
pub(super) struct Table {
    text: String,
}

impl Table {
    /// Starts with the header: purpose, sources and abbreviations.
    pub(super) fn new(packages: &[Package]) -> Self {
        let mut text = String::from(HEAD);
        for Package { name, version, license, owner } in packages {
            writeln!(text, "//! - {name} {version} ({license}; {owner})").expect(STRINGS_GROW);
        }
        text.push_str(SHORTHAND);
        Self { text }
    }

    /// Adds a list of records. Each record is a Rust expression that may have several lines.
    pub(super) fn list(&mut self, name: &str, kind: &str, about: &str, records: &[String]) {
        let length = records.len();
        writeln!(self.text, "\n/// {about}\npub(crate) static {name}: [{kind}; {length}] = [")
            .expect(STRINGS_GROW);
        for record in records {
            writeln!(self.text, "    {record},").expect(STRINGS_GROW);
        }
        self.text.push_str("];\n");
    }

    /// Adds a set of words.
    pub(super) fn words(&mut self, name: &str, about: &str, words: &[String]) {
        let words = quoted(&words.join(" "));
        writeln!(self.text, "\n/// {about}\npub(crate) const {name}: Words = words({words});")
            .expect(STRINGS_GROW);
    }

    /// Returns the whole text.
    pub(super) fn finish(self) -> Result<String> {
        ensure!(self.text.is_ascii(), "a name is not ASCII");
        Ok(self.text)
    }
}

const STRINGS_GROW: &str = "writing to a string cannot fail";

const HEAD: &str = "\
//! Decides what names the standards have: made by `cargo xtask vocabulary`, not to be changed by hand.
//!
//! What it was made from; what the sources lack or see otherwise is in xtask/src/vocabulary/chosen.rs:
";

const SHORTHAND: &str = "
use crate::Kind::{
    Boolean, Fragment, Id, Ids, Integer, Language, Moment, Number, Positive, Roles, Script, Style, Text, TextOrNone, Url,
    Whole, WordList, Words as OneOf, WordsOrNone, WordsOrText,
};
use crate::{AtRule, Attribute, Categories, Content, Element, Excluded, Given, Kind, Property, Role, Rule, Sometimes, Words};

const NONE: Categories = Categories::NONE;
const METADATA: Categories = Categories::METADATA;
const FLOW: Categories = Categories::FLOW;
const PHRASING: Categories = Categories::PHRASING;
const EMBEDDED: Categories = Categories::EMBEDDED;
const INTERACTIVE: Categories = Categories::INTERACTIVE;
const HEADING: Categories = Categories::HEADING;
const SECTIONING: Categories = Categories::SECTIONING;
const SCRIPT: Categories = Categories::SCRIPT_SUPPORTING;
const PART: Categories = Categories::PART;
const LABELABLE: Categories = Categories::LABELABLE;

/// What the elements have in common that say nothing else.
const ELEMENT: Element = Element {
    name: \"\", void: false, categories: NONE, sometimes: None, content: Content::NOTHING,
    excluded: Excluded { categories: NONE, elements: words(\"\") },
    parents: words(\"\"), within: words(\"\"), around: words(\"\"), order: words(\"\"), needs: words(\"\"),
    rules: &[], deprecated: None, attributes: &[],
};

const fn words(text: &'static str) -> Words {
    Words::new(text)
}

const fn attribute(name: &'static str, kind: Kind) -> Attribute {
    Attribute { name, kind, deprecated: None, types: words(\"\") }
}

const fn beside(name: &'static str, kind: Kind, types: Words) -> Attribute {
    Attribute { name, kind, deprecated: None, types }
}

const fn deprecated(name: &'static str, kind: Kind, instead: &'static str) -> Attribute {
    Attribute { name, kind, deprecated: Some(instead), types: words(\"\") }
}
";

/// A Rust string literal.
pub(super) fn quoted(text: &str) -> String {
    format!("{text:?}")
}

/// A set of words as a Rust expression.
pub(super) fn words<'a>(words: impl IntoIterator<Item = &'a str>) -> String {
    let words: Vec<&str> = words.into_iter().collect();
    format!("words({})", quoted(&words.join(" ")))
}

//! The kinds of attribute values, as html-validate and the standard define them.

use std::collections::BTreeSet;

use anyhow::{Result, bail};
use serde_json::Value;

use super::table;

/// The values of an attribute: a kind of the vocabulary crate, with its words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Kind {
    name: &'static str,
    words: BTreeSet<String>,
}

impl Kind {
    /// A kind without words.
    pub(super) fn plain(name: &'static str) -> Self {
        Self { name, words: BTreeSet::new() }
    }

    /// A kind with words, separated by spaces.
    pub(super) fn with(name: &'static str, words: &str) -> Self {
        Self { name, words: words.split_ascii_whitespace().map(str::to_owned).collect() }
    }

    /// The kind as a Rust expression.
    pub(super) fn rust(&self) -> String {
        // The table's name for it; `Words` is a type there.
        let name = if self.name == "Words" { "OneOf" } else { self.name };
        if self.words.is_empty() {
            return name.to_owned();
        }
        format!("{name}({})", table::words(self.words.iter().map(String::as_str)))
    }
}

/// Reads html-validate's facts about the values of an attribute; `None` means any text.
pub(super) fn validated(facts: &Value) -> Result<Option<Kind>> {
    let is = |key: &str| facts[key] == true;
    if is("boolean") {
        return Ok(Some(Kind::plain("Boolean")));
    }
    let values = facts["enum"].as_array().map_or(&[][..], Vec::as_slice);
    let mut words = BTreeSet::new();
    let mut patterns = Vec::new();
    for value in values {
        match value.as_str() {
            Some(text) => match text.strip_prefix('/').and_then(|text| text.strip_suffix('/')) {
                Some(pattern) => patterns.push(pattern),
                None => _ = words.insert(text.to_owned()),
            },
            None => match value["pattern"]["pattern"].as_str().or(value["pattern"].as_str()) {
                Some(pattern) => patterns.push(pattern),
                None => bail!("{value} is neither a word nor a pattern"),
            },
        }
    }
    let may_be_empty = words.remove("") || is("omit");
    if facts["reference"] == "id" {
        return Ok(Some(Kind::plain(if is("list") { "Ids" } else { "Id" })));
    }
    if !words.is_empty() {
        let name = match (is("list"), patterns.is_empty(), may_be_empty) {
            (true, ..) => "WordList",
            (_, false, _) => "WordsOrText",
            (.., true) => "WordsOrNone",
            _ => "Words",
        };
        return Ok(Some(Kind { name, words }));
    }
    let Some(pattern) = patterns.first() else { return Ok(None) };
    Ok(Some(match *pattern {
        r"^\d+$" => Kind::plain("Whole"),
        r"-?\d+" => Kind::plain("Integer"),
        r"^-?(\d+(\.\d+)?|\.\d+)(E[+-]?\d+)?$" => Kind::plain("Number"),
        "^[0-8]$" => Kind::with("Words", "0 1 2 3 4 5 6 7 8"),
        r"^\S+$" => Kind::plain("Id"),
        "^.+$" if may_be_empty => Kind::plain("TextOrNone"),
        // Any text of some form.
        "." | ".*" | "^.+$" | "[^]+" | r"\S+" | r"^\s*\S+\s*$" | "^[^_].*$" => return Ok(None),
        other => bail!("unknown pattern {other}; add it to {}", file!()),
    }))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{Kind, validated};

    #[track_caller]
    fn check(facts: &serde_json::Value, kind: Option<&str>) {
        let found = validated(facts).expect("a known form");
        assert_eq!(found.as_ref().map(Kind::rust).as_deref(), kind, "{facts}");
    }

    #[test]
    fn maps_words_patterns_and_references_to_kinds() {
        check(&json!({}), None);
        check(&json!({ "boolean": true }), Some("Boolean"));
        check(&json!({ "enum": ["b", "a"] }), Some(r#"OneOf(words("a b"))"#));
        check(&json!({ "enum": ["", "a"] }), Some(r#"WordsOrNone(words("a"))"#));
        check(&json!({ "enum": ["a", "/^--/"] }), Some(r#"WordsOrText(words("a"))"#));
        check(&json!({ "enum": ["a"], "list": true }), Some(r#"WordList(words("a"))"#));
        check(
            &json!({ "enum": [{ "name": "n", "pattern": { "pattern": r"^\d+$" } }] }),
            Some("Whole"),
        );
        check(&json!({ "enum": [{ "pattern": "." }] }), None);
        let id = json!([{ "name": "a valid id", "pattern": { "pattern": r"^\S+$" } }]);
        check(&json!({ "enum": id, "reference": "id", "list": true }), Some("Ids"));
    }

    #[test]
    fn rejects_an_unknown_pattern() {
        assert!(validated(&json!({ "enum": ["/^new$/"] })).is_err());
    }
}

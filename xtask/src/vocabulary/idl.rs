//! Reads the attributes that the interfaces of the standards reflect.

use std::collections::BTreeMap;

use anyhow::Result;

use super::kind::Kind;

/// Shipped specifications whose interfaces add attributes or event handlers to HTML. Except in the
/// first, every member with custom element reactions is an attribute, whether marked as reflecting
/// or not.
const SPECIFICATIONS: [&str; 10] = [
    "html",
    "css-animations",
    "css-transitions",
    "css-scroll-snap-2",
    "html-media-capture",
    "picture-in-picture",
    "pointerevents",
    "remote-playback",
    "selection-api",
    "touch-events",
];

/// An attribute of an interface.
pub(super) struct Reflected {
    /// The name in markup.
    pub(super) name: String,
    pub(super) kind: Kind,
    /// Whether the standard has removed it.
    pub(super) obsolete: bool,
}

/// The facts about markup in the interfaces.
#[derive(Default)]
pub(super) struct Interfaces {
    reflected: BTreeMap<String, Vec<Reflected>>,
    /// Members with custom element reactions that are not marked as reflecting an attribute.
    unmarked: BTreeMap<String, Vec<String>>,
    handlers: BTreeMap<String, Vec<String>>,
    /// The parent of an interface and its mixins.
    parts: BTreeMap<String, Vec<String>>,
}

impl Interfaces {
    /// Reads every specification; `text` returns the text of one.
    pub(super) fn read(text: impl Fn(&str) -> Result<String>) -> Result<Self> {
        let mut interfaces = Self::default();
        for specification in SPECIFICATIONS {
            interfaces.add(&text(specification)?, specification == "html");
        }
        Ok(interfaces)
    }

    /// The attributes that an interface reflects: its own, those of its mixins, and the inherited
    /// ones except those of every element.
    pub(super) fn reflected(&self, interface: &str) -> Vec<&Reflected> {
        self.with_parts(interface)
            .into_iter()
            .filter_map(|part| self.reflected.get(part))
            .flatten()
            .collect()
    }

    /// The lower-case names of members that may be attributes, for the same interfaces as
    /// [`Self::reflected`].
    pub(super) fn unmarked(&self, interface: &str) -> Vec<&str> {
        let parts = self.with_parts(interface).into_iter();
        parts.filter_map(|part| self.unmarked.get(part)).flatten().map(String::as_str).collect()
    }

    /// The `on..` attributes of a mixin.
    pub(super) fn handlers(&self, mixin: &str) -> &[String] {
        self.handlers.get(mixin).map_or(&[], Vec::as_slice)
    }

    fn with_parts<'a>(&'a self, interface: &'a str) -> Vec<&'a str> {
        let mut all = vec![interface];
        for part in self.parts.get(interface).into_iter().flatten() {
            if !["HTMLElement", "Element"].contains(&part.as_str()) {
                all.extend(self.with_parts(part));
            }
        }
        all
    }

    /// Reads a specification line by line: the files have one member per line.
    fn add(&mut self, text: &str, is_html: bool) {
        let mut open = String::new();
        let mut is_partial = false;
        for line in text.lines() {
            let line = line.split("//").next().unwrap_or_default().trim();
            let bare = line.strip_prefix("partial ");
            if let Some(head) = bare.unwrap_or(line).strip_prefix("interface ") {
                is_partial = bare.is_some();
                let head = head.strip_prefix("mixin ").unwrap_or(head);
                let (name, parent) = head.split_once(':').unwrap_or((head, ""));
                name.trim_end_matches(['{', ' ']).clone_into(&mut open);
                if !parent.is_empty() {
                    let parent = parent.trim_matches(['{', ' ']).to_owned();
                    self.parts.entry(open.clone()).or_default().push(parent);
                }
            } else if let Some((interface, mixin)) = line.split_once(" includes ") {
                let mixin = mixin.trim_end_matches(';').to_owned();
                self.parts.entry(interface.to_owned()).or_default().push(mixin);
            } else if let Some((marks, member)) = line.split_once("attribute ") {
                // The main block of an interface has the current members; partial blocks have the
                // removed ones.
                self.add_member(
                    &open,
                    marks,
                    member,
                    Member { is_html, obsolete: is_html && is_partial },
                );
            }
        }
    }

    fn add_member(&mut self, interface: &str, marks: &str, member: &str, place: Member) {
        let Some((kind, name)) = member.trim_end_matches(';').rsplit_once(' ') else { return };
        if kind.ends_with("EventHandler") {
            self.handlers.entry(interface.to_owned()).or_default().push(name.to_owned());
            return;
        }
        let lower = name.to_ascii_lowercase();
        let given = marks.split("Reflect=\"").nth(1).and_then(|rest| rest.split('"').next());
        let is_marked =
            marks.contains("Reflect") || (!place.is_html && marks.contains("CEReactions"));
        if is_marked {
            let name = given.map_or(lower, str::to_owned);
            let reflected =
                Reflected { name, kind: kind_of(marks, kind), obsolete: place.obsolete };
            self.reflected.entry(interface.to_owned()).or_default().push(reflected);
        } else if marks.contains("CEReactions") {
            self.unmarked.entry(interface.to_owned()).or_default().push(lower);
        }
    }
}

/// The place of a member's definition.
#[derive(Clone, Copy)]
struct Member {
    is_html: bool,
    obsolete: bool,
}

/// The values of an attribute that is reflected as a member of this type.
fn kind_of(marks: &str, kind: &str) -> Kind {
    Kind::plain(match kind.trim_end_matches('?') {
        "boolean" => "Boolean",
        _ if marks.contains("ReflectURL") => "Url",
        // The getter, which is defined in prose, makes it absolute.
        "USVString" if marks.contains("ReflectSetter") => "Url",
        "long" if marks.contains("ReflectNonNegative") => "Whole",
        "long" => "Integer",
        "unsigned long" => "Whole",
        "double" => "Number",
        "Element" => "Id",
        _ => "Text",
    })
}

#[cfg(test)]
mod tests {
    use super::{Interfaces, Kind};

    const SAMPLE: &str = r#"
interface mixin Links {
  [CEReactions, ReflectSetter] stringifier attribute USVString href;
};
interface HTMLA : HTMLElement { // a comment
  [CEReactions, Reflect="http-equiv"] attribute DOMString httpEquiv;
  [CEReactions, ReflectNonNegative] attribute long maxLength;
  [CEReactions] attribute DOMString text;
  attribute EventHandler onclick;
};
HTMLA includes Links;
partial interface HTMLA {
  [CEReactions, Reflect] attribute DOMString align;
};
"#;

    #[test]
    fn lists_reflected_attributes_with_kind_and_obsolescence() {
        let mut interfaces = Interfaces::default();
        interfaces.add(SAMPLE, true);
        let found: Vec<_> = interfaces
            .reflected("HTMLA")
            .iter()
            .map(|one| (one.name.as_str(), one.kind.clone(), one.obsolete))
            .collect();
        let expected = |name, kind, obsolete| (name, Kind::plain(kind), obsolete);
        assert_eq!(
            found,
            [
                expected("http-equiv", "Text", false),
                expected("maxlength", "Whole", false),
                expected("align", "Text", true),
                expected("href", "Url", false),
            ]
        );
        assert_eq!(interfaces.unmarked("HTMLA"), ["text"]);
        assert_eq!(interfaces.handlers("HTMLA"), ["onclick"]);
    }
}

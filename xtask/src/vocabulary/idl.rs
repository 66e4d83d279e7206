//! Decides which attributes of markup the standards' interfaces reflect.

use std::collections::BTreeMap;

use anyhow::Result;

use super::kind::Kind;

/// Specifications that browsers have shipped, whose interfaces add attributes or event handlers to HTML. In all but
/// the first, what has reactions of custom elements is an attribute, marked as reflecting or not.
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
    /// Whether the standard has done away with it.
    pub(super) obsolete: bool,
}

/// What the interfaces say of markup.
#[derive(Default)]
pub(super) struct Interfaces {
    reflected: BTreeMap<String, Vec<Reflected>>,
    /// What has reactions of custom elements but says of no attribute that it reflects it.
    unmarked: BTreeMap<String, Vec<String>>,
    handlers: BTreeMap<String, Vec<String>>,
    /// The interface that one inherits from, and the mixins that it includes.
    parts: BTreeMap<String, Vec<String>>,
}

impl Interfaces {
    /// Reads every specification, whose text `text` tells.
    pub(super) fn read(text: impl Fn(&str) -> Result<String>) -> Result<Self> {
        let mut interfaces = Self::default();
        for specification in SPECIFICATIONS {
            interfaces.add(&text(specification)?, specification == "html");
        }
        Ok(interfaces)
    }

    /// The attributes that an interface reflects: its own, those of its mixins, those it inherits up to but without
    /// what every element has.
    pub(super) fn reflected(&self, interface: &str) -> Vec<&Reflected> {
        self.with_parts(interface)
            .into_iter()
            .filter_map(|part| self.reflected.get(part))
            .flatten()
            .collect()
    }

    /// The names, in small letters, of what may be an attribute, as [`Self::reflected`].
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

    /// Reads a specification line by line: the files have one member to a line.
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
                // Whatever the standard still has stands in an interface's own block; what it had, in later ones.
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

/// Where a member stands.
#[derive(Clone, Copy)]
struct Member {
    is_html: bool,
    obsolete: bool,
}

/// What an attribute takes that is reflected as a member of this type.
fn kind_of(marks: &str, kind: &str) -> Kind {
    Kind::plain(match kind.trim_end_matches('?') {
        "boolean" => "Boolean",
        _ if marks.contains("ReflectURL") => "Url",
        // The getter, which is told in prose, makes it absolute.
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
    fn what_an_interface_reflects_is_told_with_its_kind_and_whether_it_is_obsolete() {
        let mut interfaces = Interfaces::default();
        interfaces.add(SAMPLE, true);
        let found: Vec<_> = interfaces
            .reflected("HTMLA")
            .iter()
            .map(|one| (one.name.as_str(), one.kind.clone(), one.obsolete))
            .collect();
        let told = |name, kind, obsolete| (name, Kind::plain(kind), obsolete);
        assert_eq!(
            found,
            [
                told("http-equiv", "Text", false),
                told("maxlength", "Whole", false),
                told("align", "Text", true),
                told("href", "Url", false),
            ]
        );
        assert_eq!(interfaces.unmarked("HTMLA"), ["text"]);
        assert_eq!(interfaces.handlers("HTMLA"), ["onclick"]);
    }
}

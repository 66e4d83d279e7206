//! The types of elements and attributes for editors of TSX, written from the tables.
//! `UPDATE_GOLDENS=1` writes them.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;
use std::{env, fs};

use bine_vocabulary::{
    Attribute, Context, Element, Foreign, Kind, MATHML, SVG, Words, elements, global_attributes,
    is_raw_text, states,
};

/// The file, from the folder of this crate.
const FILE: &str = "../cli/starter/types/elements.d.ts";

#[test]
fn matches_the_types_for_editors() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(FILE);
    let types = types();
    if env::var_os("UPDATE_GOLDENS").is_some() {
        fs::write(&path, &types).expect("the folder of the types");
    }
    let committed = fs::read_to_string(&path).expect("the types");
    let same = committed == types;
    assert!(same, "run it with UPDATE_GOLDENS=1: {FILE} differs from the tables");
}

/// The whole file.
fn types() -> String {
    let mut to = "// The elements of HTML, SVG and MathML with their attributes. A test of the crate\n\
                  // `vocabulary` writes this file from the tables of that crate.\n\n\
                  import type { Address, Child, Code, Flag, Numeric, OneOf, Text, TextChild, TextOrBare, Trusted } from \"./markup.d.ts\";\n"
        .to_owned();
    // `jsx-runtime.d.ts` has the types of handlers, which depend on the element.
    interface(&mut to, "Common", "", states().iter().map(|known| property("", known)));
    let global = global_attributes().iter().filter(|known| known.deprecated.is_none());
    interface(&mut to, "Global", "Common", global.map(|known| property("", known)));
    for (name, foreign) in [("Svg", &SVG), ("MathMl", &MATHML)] {
        let attributes = foreign.attributes.iter().map(|name| foreign_property(name));
        interface(&mut to, name, "Common", attributes.chain([children("Child")]));
    }
    interface(&mut to, "Plain", "Global", [children("Child")].into_iter());
    let mut names = BTreeMap::new();
    for element in elements().iter().filter(|element| element.deprecated.is_none()) {
        names.insert(element.name, own_type(&mut to, element));
    }
    for (name, foreign) in [("Svg", &SVG), ("MathMl", &MATHML)] {
        add_foreign(&mut to, &mut names, name, foreign);
    }
    let all = names.iter().map(|(name, of)| format!("{}: {of};", key(name)));
    to.push_str("\nexport interface Elements {\n");
    all.for_each(|line| writeln!(to, "  {line}").expect("a string takes all text"));
    to + "}\n"
}

/// Writes the interface of an element, and returns its name.
fn own_type(to: &mut String, element: &Element) -> String {
    let attributes: Vec<&Attribute> =
        element.attributes.iter().filter(|known| known.deprecated.is_none()).collect();
    let content = content(element);
    if attributes.is_empty() && content == Some("Child") {
        return "Plain".to_owned();
    }
    let name = format!("{}Element", capitalized(element.name));
    let replaced = attributes
        .iter()
        .filter(|own| global_attributes().iter().any(|global| global.name == own.name))
        .map(|own| format!("{:?}", own.name))
        .collect::<Vec<_>>();
    let base = match replaced.as_slice() {
        [] => "Global".to_owned(),
        replaced => format!("Omit<Global, {}>", replaced.join(" | ")),
    };
    let own = attributes.into_iter().map(|known| property(element.name, known));
    interface(to, &name, &base, own.chain(content.map(children)));
    name
}

/// The type of the content of an element, `None` for an element without content.
fn content(element: &Element) -> Option<&'static str> {
    let content = &element.content;
    let is_text = content.text && content.categories.is_empty() && content.elements.is_empty();
    if element.void {
        None
    } else if is_raw_text(element.name) {
        Some("Trusted | string")
    } else if is_text && !content.transparent {
        Some("TextChild")
    } else {
        Some("Child")
    }
}

/// Adds the elements of another language, except for names with a dash, which have the type of custom
/// elements. Those that HTML has too get the attributes of both.
fn add_foreign(
    to: &mut String,
    names: &mut BTreeMap<&'static str, String>,
    name: &str,
    foreign: &Foreign,
) {
    for element in foreign.elements.iter().filter(|element| !element.contains('-')) {
        let of = match names.get(element) {
            None => name.to_owned(),
            Some(own) => {
                let both = format!("{name}{}", capitalized(element));
                let bases = format!("{own}, Omit<{name}, keyof {own}>");
                interface(to, &both, &bases, [].into_iter());
                both
            }
        };
        names.insert(element, of);
    }
}

fn interface(to: &mut String, name: &str, base: &str, properties: impl Iterator<Item = String>) {
    let base = if base.is_empty() { String::new() } else { format!(" extends {base}") };
    write!(to, "\ninterface {name}{base} {{\n").expect("a string takes all text");
    properties.for_each(|line| writeln!(to, "  {line}").expect("a string takes all text"));
    to.push_str("}\n");
}

fn property(element: &str, attribute: &Attribute) -> String {
    format!("{}?: {};", key(attribute.name), value(element, attribute))
}

fn foreign_property(name: &str) -> String {
    let of = match Context::of("", name) {
        Context::Text => "Text",
        Context::Link | Context::Image => "Address",
        Context::Code => "Code",
    };
    format!("{}?: {of};", key(name))
}

fn children(of: &str) -> String {
    format!("children?: {of};")
}

/// The type of the value of an attribute.
fn value(element: &str, attribute: &Attribute) -> String {
    if Context::of(element, attribute.name) == Context::Code {
        return "Code".to_owned();
    }
    match attribute.kind {
        Kind::Boolean => "Flag".to_owned(),
        Kind::Url => "Address".to_owned(),
        Kind::Whole | Kind::Positive | Kind::Integer | Kind::Number => "Numeric".to_owned(),
        Kind::Words(words) => one_of(words),
        Kind::WordsOrNone(words) => format!("{} | true", one_of(words)),
        Kind::TextOrNone => "TextOrBare".to_owned(),
        Kind::Style | Kind::Script => "Code".to_owned(),
        Kind::Text
        | Kind::Id
        | Kind::Ids
        | Kind::Fragment
        | Kind::Language
        | Kind::Moment(_)
        | Kind::WordsOrText(_)
        | Kind::WordList(_)
        | Kind::Roles => "Text".to_owned(),
    }
}

fn one_of(words: Words) -> String {
    let words: Vec<String> = words.iter().map(|word| format!("{word:?}")).collect();
    format!("OneOf<{}>", words.join(" | "))
}

/// A name as a property: in quotes unless it is an identifier.
fn key(name: &str) -> String {
    let is_plain = name.bytes().all(|byte| byte.is_ascii_alphanumeric());
    if is_plain { name.to_owned() } else { format!("{name:?}") }
}

fn capitalized(name: &str) -> String {
    let (first, rest) = name.split_at(1);
    first.to_ascii_uppercase() + rest
}

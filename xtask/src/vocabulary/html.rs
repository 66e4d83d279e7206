//! Decides what the table says of HTML's elements, attributes and event handlers.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;

use super::idl::Interfaces;
use super::kind::{self, Kind};
use super::table::{Table, quoted, words};
use super::{chosen, words as listed};

/// The categories: html-validate's key, its word in lists, ours.
const CATEGORIES: [(&str, &str, &str); 8] = [
    ("metadata", "@meta", "METADATA"),
    ("flow", "@flow", "FLOW"),
    ("phrasing", "@phrasing", "PHRASING"),
    ("embedded", "@embedded", "EMBEDDED"),
    ("interactive", "@interactive", "INTERACTIVE"),
    ("heading", "@heading", "HEADING"),
    ("sectioning", "@sectioning", "SECTIONING"),
    ("scriptSupporting", "@script", "SCRIPT"),
];

/// What is known of an element.
#[derive(Default)]
struct Element {
    void: bool,
    categories: BTreeSet<&'static str>,
    sometimes: BTreeSet<&'static str>,
    given: Vec<String>,
    content: Content,
    excluded: Allowed,
    parents: BTreeSet<String>,
    within: BTreeSet<String>,
    required: BTreeSet<String>,
    deprecated: Option<&'static str>,
    attributes: Attributes,
}

/// Categories and elements.
#[derive(Default)]
struct Allowed {
    categories: BTreeSet<&'static str>,
    elements: BTreeSet<String>,
}

#[derive(Default)]
struct Content {
    allowed: Allowed,
    once: BTreeSet<String>,
    text: bool,
    transparent: bool,
    anything: bool,
}

type Attributes = BTreeMap<String, Attribute>;

struct Attribute {
    kind: Kind,
    deprecated: Option<&'static str>,
}

/// Writes elements, attributes that all have, and event handlers.
pub(super) fn write(
    table: &mut Table,
    validated: &Value,
    standard: &Value,
    interfaces: &Interfaces,
) -> Result<()> {
    let globals = attributes("*", &validated["*"], Some("HTMLElement"), interfaces)?;
    let mut elements = BTreeMap::new();
    for facts in standard["elements"].as_array().into_iter().flatten() {
        let name = facts["name"].as_str().context("an element has no name")?;
        let element = element(name, facts, &validated[name], interfaces)
            .with_context(|| format!("the element {name}"))?;
        elements.insert(name, element);
    }
    settle_parents(&mut elements);
    for element in elements.values_mut() {
        element.attributes.retain(|name, own| {
            globals
                .get(name)
                .is_none_or(|global| global.kind != own.kind || own.deprecated.is_some())
        });
    }
    check_names(&elements, &globals)?;

    let records: Vec<String> = elements.iter().map(|(name, element)| element.rust(name)).collect();
    table.list("ELEMENTS", "Element", "The elements of HTML.", &records);
    let records: Vec<String> = globals.iter().map(|(name, one)| one.rust(name)).collect();
    let about = "The attributes of every element.";
    table.list("GLOBAL_ATTRIBUTES", "Attribute", about, &records);
    let handlers: BTreeSet<&String> = interfaces.handlers("GlobalEventHandlers").iter().collect();
    let records: Vec<String> =
        handlers.into_iter().map(|name| format!("attribute({}, Script)", quoted(name))).collect();
    let about = "What every element may answer an event with.";
    table.list("EVENT_HANDLERS", "Attribute", about, &records);
    Ok(())
}

/// What is known of an element, but for what others say of it.
fn element(
    name: &str,
    standard: &Value,
    facts: &Value,
    interfaces: &Interfaces,
) -> Result<Element> {
    let mut element = Element { void: facts["void"] == true, ..Element::default() };
    let is_obsolete = standard["obsolete"] == true || !facts["deprecated"].is_null();
    if is_obsolete {
        let instead = chosen::ELEMENTS.iter().find(|(element, _)| *element == name);
        element.deprecated =
            Some(instead.context("it is deprecated; say in chosen.rs for what")?.1);
    }
    categorize(name, facts, &mut element)?;
    if element.categories.is_empty() {
        // An element that is told of as deprecated shall not be told of as misplaced too.
        let any = if is_obsolete { &["FLOW", "PHRASING"][..] } else { &["PART"] };
        element.categories.extend(any);
    }
    element.content = content(name, facts, element.void || name == "iframe", is_obsolete)?;
    for rule in facts["permittedDescendants"].as_array().into_iter().flatten() {
        let excluded =
            rule["exclude"].as_str().map_or_else(|| listed(&rule["exclude"]), |one| vec![one]);
        for word in excluded {
            element.excluded.add(if word == "@form" { "form" } else { word })?;
        }
    }
    element.parents = listed(&facts["permittedParent"]).into_iter().map(str::to_owned).collect();
    for path in listed(&facts["requiredAncestors"]) {
        element.within.extend(path.split(" > ").next().map(str::to_owned));
    }
    for (_, around) in chosen::WITHIN.iter().filter(|(element, _)| *element == name) {
        element.within.extend(around.split(' ').map(str::to_owned));
    }
    // SVG and MathML have lists of their own, for their outermost elements too.
    if !["svg", "math"].contains(&name) {
        // What is reflected by the interface of every element is every element's.
        let own = standard["interface"].as_str().filter(|interface| *interface != "HTMLElement");
        element.attributes = attributes(name, facts, own, interfaces)?;
        if is_obsolete {
            element.attributes.values_mut().for_each(|attribute| attribute.deprecated = None);
        }
    }
    if name == "body" {
        for handler in interfaces.handlers("WindowEventHandlers") {
            let attribute = Attribute { kind: Kind::plain("Script"), deprecated: None };
            element.attributes.insert(handler.clone(), attribute);
        }
    }
    for (attribute, facts) in facts["attributes"].as_object().into_iter().flatten() {
        if !is_obsolete
            && facts["required"] == true
            && !chosen::NOT_REQUIRED.contains(&(name, attribute))
        {
            element.required.insert(attribute.clone());
        }
    }
    let chosen = chosen::REQUIRED.iter().filter(|(element, _)| *element == name);
    element.required.extend(chosen.map(|(_, attributes)| (*attributes).to_owned()));
    Ok(element)
}

/// The categories that an element always has, and those that hang on an attribute.
fn categorize(name: &str, facts: &Value, element: &mut Element) -> Result<()> {
    for (key, _, category) in CATEGORIES {
        let fact = &facts[key];
        if *fact == true {
            if !chosen::NOT_IN.contains(&(name, key)) {
                element.categories.insert(category);
            }
            continue;
        }
        let Some(code) = fact["code"].as_str() else { continue };
        let body =
            code.split_once("return ").map_or(code, |(_, body)| body).trim_end_matches([' ', '}']);
        // The last is what `within` says already.
        let given = match body {
            "linkBodyOk(node);" => vec![
                "Given::Present(\"itemprop\")".to_owned(),
                format!("Given::Among(\"rel\", {})", words(chosen::BODY_OK.split(' '))),
            ],
            "node.getAttribute(\"type\") !== \"hidden\";" => {
                vec!["Given::Except(\"type\", \"hidden\")".to_owned()]
            }
            "Boolean(node.closest(\"map\"));" => {
                element.categories.insert(category);
                continue;
            }
            _ => {
                let inside = body.strip_prefix("node.hasAttribute(\"");
                let Some(attribute) = inside.and_then(|rest| rest.strip_suffix("\");")) else {
                    bail!("it is {key} by a rule that is new: {code}")
                };
                vec![format!("Given::Present({})", quoted(attribute))]
            }
        };
        ensure!(element.given.is_empty() || element.given == given, "two rules: {code}");
        element.given = given;
        element.sometimes.insert(category);
    }
    Ok(())
}

/// What may stand directly in an element.
fn content(name: &str, facts: &Value, is_empty: bool, is_obsolete: bool) -> Result<Content> {
    let mut content = Content::default();
    let mut add = |word: &str| -> Result<()> {
        let single = word.strip_suffix('?');
        if let Some(single) = single.filter(|single| !single.starts_with('@')) {
            content.once.insert(single.to_owned());
        }
        content.allowed.add(single.unwrap_or(word))
    };
    for word in listed(&facts["permittedContent"]) {
        if !chosen::NO_ELEMENTS.contains(&word) {
            add(word)?;
        }
    }
    for (_, more) in chosen::CONTENT.iter().filter(|(element, _)| *element == name) {
        more.iter().try_for_each(|word| add(word))?;
    }
    let is_said = !facts["permittedContent"].is_null() || !content.allowed.is_empty();
    if chosen::TEXT.contains(&name) {
        content.text = true;
    } else if facts["transparent"] == true || facts["transparent"].is_array() {
        // What is around decides of the rest.
        content.allowed.categories.clear();
        content.transparent = true;
    } else if chosen::ANYTHING.contains(&name) || (is_obsolete && !is_said && !is_empty) {
        content.anything = true;
    } else {
        ensure!(is_said || is_empty, "nobody says what may stand in it; chosen.rs could");
        let categories = &content.allowed.categories;
        content.text = categories.contains("FLOW") || categories.contains("PHRASING");
    }
    Ok(content)
}

impl Allowed {
    /// Adds an element, or a category with its `@`.
    fn add(&mut self, word: &str) -> Result<()> {
        if word.starts_with('@') {
            let known = CATEGORIES.iter().find(|(_, own, _)| *own == word);
            self.categories.insert(known.with_context(|| format!("{word} is no category"))?.2);
        } else {
            self.elements.insert(word.to_owned());
        }
        Ok(())
    }

    fn is_empty(&self) -> bool {
        self.categories.is_empty() && self.elements.is_empty()
    }
}

/// What is part of certain elements stands in those that name it, and in a template.
fn settle_parents(elements: &mut BTreeMap<&str, Element>) {
    let parts: Vec<&str> = elements
        .iter()
        .filter(|(_, element)| element.categories.contains("PART") && element.parents.is_empty())
        .map(|(name, _)| *name)
        .collect();
    for part in parts {
        let mut parents: BTreeSet<String> = elements
            .iter()
            .filter(|(_, element)| element.content.allowed.elements.contains(part))
            .map(|(name, _)| (*name).to_owned())
            .collect();
        // The root has no parent at all.
        if !parents.is_empty() {
            parents.insert("template".to_owned());
        }
        if let Some(element) = elements.get_mut(part) {
            element.parents = parents;
        }
    }
}

/// The attributes of an element by its own facts and its interface's; `*` stands for every element.
fn attributes(
    name: &str,
    facts: &Value,
    interface: Option<&str>,
    interfaces: &Interfaces,
) -> Result<Attributes> {
    let mut found = Attributes::new();
    for one in interface.into_iter().flat_map(|one| interfaces.reflected(one)) {
        let deprecated = one.obsolete.then(|| instead(name, &one.name)).transpose()?;
        found.insert(one.name.clone(), Attribute { kind: one.kind.clone(), deprecated });
    }
    for (attribute, facts) in facts["attributes"].as_object().into_iter().flatten() {
        // Families have lists of their own.
        if attribute.ends_with('*') || attribute.starts_with("aria-") {
            continue;
        }
        let kind = kind::validated(facts).with_context(|| attribute.clone())?;
        let known = found.remove(attribute);
        let deprecated = match known.as_ref().and_then(|known| known.deprecated) {
            None if facts["deprecated"] == true => Some(instead(name, attribute)?),
            other => other,
        };
        let known = known.map(|known| known.kind);
        let kind = kind.or(known).unwrap_or_else(|| Kind::plain("Text"));
        found.insert(attribute.clone(), Attribute { kind, deprecated });
    }
    for (_, attribute, kind, words) in chosen::KINDS.iter().filter(|(element, ..)| *element == name)
    {
        let kind = Kind::with(kind, words);
        found.insert((*attribute).to_owned(), Attribute { kind, deprecated: None });
    }
    // What the standard tells in prose must not be lost: another source has it, or a person has looked at it.
    for member in interface.into_iter().flat_map(|one| interfaces.unmarked(one)) {
        let is_known = found.contains_key(member) || chosen::MEMBERS.contains(&member);
        ensure!(is_known, "nobody says whether {member} is an attribute; chosen.rs could");
    }
    Ok(found)
}

/// What to write instead of a deprecated attribute; svg and math have theirs elsewhere.
fn instead(element: &str, attribute: &str) -> Result<&'static str> {
    let of = |owner: &str| {
        let found = chosen::ATTRIBUTES
            .iter()
            .find(|(other, name, _)| *other == owner && *name == attribute);
        found.map(|(.., instead)| *instead)
    };
    let is_obsolete = chosen::ELEMENTS.iter().any(|(name, _)| *name == element);
    of(element)
        .or_else(|| of(""))
        .or(is_obsolete.then_some(""))
        .with_context(|| format!("{attribute} is deprecated; say in chosen.rs for what"))
}

/// Every element that a rule names must be one.
fn check_names(elements: &BTreeMap<&str, Element>, globals: &Attributes) -> Result<()> {
    for (name, element) in elements {
        let content = &element.content;
        let lists = [
            &content.allowed.elements,
            &element.excluded.elements,
            &element.parents,
            &element.within,
        ];
        for other in lists.into_iter().flatten() {
            ensure!(
                elements.contains_key(other.as_str()),
                "{name} speaks of {other}, which is no element"
            );
        }
        for attribute in element.required.iter().flat_map(|one| one.split(['|', '?'])) {
            let is_known =
                [&element.attributes, globals].iter().any(|list| list.contains_key(attribute));
            ensure!(is_known, "{name} must have {attribute}, which it cannot have");
        }
    }
    Ok(())
}

impl Element {
    /// The record: what is as usual is left out.
    fn rust(&self, name: &str) -> String {
        let mut text = format!("Element {{ name: {}", quoted(name));
        let mut field = |name: &str, value: String| {
            text.push_str(", ");
            text.push_str(name);
            text.push_str(": ");
            text.push_str(&value);
        };
        let texts = |set: &BTreeSet<String>| words(set.iter().map(String::as_str));
        if self.void {
            field("void", "true".to_owned());
        }
        field("categories", categories(&self.categories));
        if !self.sometimes.is_empty() {
            let given = self.given.join(", ");
            let sometimes = categories(&self.sometimes);
            let value = format!("Some(Sometimes {{ categories: {sometimes}, given: &[{given}] }})");
            field("sometimes", value);
        }
        if let Some(content) = self.content.rust() {
            field("content", content);
        }
        if !self.excluded.is_empty() {
            let (categories, elements) =
                (categories(&self.excluded.categories), texts(&self.excluded.elements));
            let value = format!("Excluded {{ categories: {categories}, elements: {elements} }}");
            field("excluded", value);
        }
        let sets =
            [("parents", &self.parents), ("within", &self.within), ("required", &self.required)];
        for (name, set) in sets {
            if !set.is_empty() {
                field(name, texts(set));
            }
        }
        if let Some(instead) = self.deprecated {
            field("deprecated", format!("Some({})", quoted(instead)));
        }
        if !self.attributes.is_empty() {
            let records: Vec<String> =
                self.attributes.iter().map(|(name, attribute)| attribute.rust(name)).collect();
            field("attributes", format!("&[\n        {},\n    ]", records.join(",\n        ")));
        }
        text + ", ..ELEMENT }"
    }
}

impl Content {
    /// The field's value, if it is not that nothing may stand there.
    fn rust(&self) -> Option<String> {
        if self.anything {
            return Some("Content::ANYTHING".to_owned());
        }
        let mut fields = Vec::new();
        if !self.allowed.categories.is_empty() {
            fields.push(format!("categories: {}", categories(&self.allowed.categories)));
        }
        for (name, set) in [("elements", &self.allowed.elements), ("once", &self.once)] {
            if !set.is_empty() {
                fields.push(format!("{name}: {}", words(set.iter().map(String::as_str))));
            }
        }
        for (name, is) in [("text", self.text), ("transparent", self.transparent)] {
            if is {
                fields.push(format!("{name}: true"));
            }
        }
        (!fields.is_empty())
            .then(|| format!("Content {{ {}, ..Content::NOTHING }}", fields.join(", ")))
    }
}

impl Attribute {
    fn rust(&self, name: &str) -> String {
        let (name, kind) = (quoted(name), self.kind.rust());
        match self.deprecated {
            Some(instead) => format!("deprecated({name}, {kind}, {})", quoted(instead)),
            None => format!("attribute({name}, {kind})"),
        }
    }
}

/// A set of categories as an expression, in the order of ours.
fn categories(set: &BTreeSet<&'static str>) -> String {
    let order = CATEGORIES.iter().map(|(.., name)| *name).chain(["PART"]);
    let mut names = order.filter(|name| set.contains(name));
    let first = names.next().unwrap_or("NONE").to_owned();
    names.fold(first, |text, name| format!("{text}.or({name})"))
}

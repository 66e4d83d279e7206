//! Writes the elements, attributes and event handlers of HTML.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context, Result, bail, ensure};
use serde_json::{Value, json};

use super::idl::Interfaces;
use super::kind::{self, Kind};
use super::table::{Table, quoted, words};
use super::{chosen, words as listed};

/// The categories: html-validate's key, its name in lists, ours.
const CATEGORIES: [(&str, &str, &str); 9] = [
    ("metadata", "@meta", "METADATA"),
    ("flow", "@flow", "FLOW"),
    ("phrasing", "@phrasing", "PHRASING"),
    ("embedded", "@embedded", "EMBEDDED"),
    ("interactive", "@interactive", "INTERACTIVE"),
    ("heading", "@heading", "HEADING"),
    ("sectioning", "@sectioning", "SECTIONING"),
    ("scriptSupporting", "@script", "SCRIPT"),
    ("labelable", "@labelable", "LABELABLE"),
];

/// The facts about an element.
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
    around: BTreeSet<String>,
    /// The required order of the children.
    order: Vec<String>,
    needs: BTreeSet<String>,
    /// As Rust expressions.
    rules: Vec<String>,
    deprecated: Option<&'static str>,
    attributes: Attributes,
}

/// Allowed categories and elements.
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
    types: &'static str,
}

impl Attribute {
    /// An attribute that is neither deprecated nor bound to a `type`.
    fn plain(kind: Kind) -> Self {
        Self { kind, deprecated: None, types: "" }
    }
}

/// Writes the elements, the global attributes and the event handlers.
pub(super) fn write(
    table: &mut Table,
    validated: &Value,
    standard: &Value,
    interfaces: &Interfaces,
) -> Result<()> {
    let globals = attributes("*", &validated["*"], Some("HTMLElement"), interfaces)?;
    let mut elements = BTreeMap::new();
    // `math` and `svg`, which are listed in their own specifications.
    let foreign = ["math", "svg"].map(|name| json!({ "name": name }));
    for facts in standard["elements"].as_array().into_iter().flatten().chain(&foreign) {
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
    check_names(&elements)?;

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
    let about = "What the attributes of every element say of each other.";
    table.list("GLOBAL_RULES", "Rule", about, &rules("", &Value::Null));
    Ok(())
}

/// Collects the facts about one element from its own entries.
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
            Some(instead.context("it is deprecated; add its replacement to chosen.rs")?.1);
    }
    categorize(name, facts, &mut element)?;
    if element.categories.is_empty() {
        // The compiler reports a deprecated element as deprecated only, not as misplaced too.
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
    let chosen = chosen::AROUND.iter().filter(|(element, _)| *element == name);
    element.around.extend(chosen.flat_map(|(_, around)| around.split(' ').map(str::to_owned)));
    element.order = order(facts);
    let needs = listed(&facts["requiredContent"]).into_iter().filter(|_| !is_obsolete);
    let chosen = chosen::NEEDS.iter().filter(|(element, _)| *element == name);
    element.needs = needs
        .chain(chosen.map(|(_, needed)| *needed))
        .filter(|needed| !chosen::NOT_NEEDED.contains(&(name, needed)))
        .map(|needed| needed.replace("@heading", chosen::HEADINGS))
        .collect();
    // The attributes of SVG and MathML have lists of their own.
    if !["svg", "math"].contains(&name) {
        // The attributes reflected by `HTMLElement` are global.
        let own = standard["interface"].as_str().filter(|interface| *interface != "HTMLElement");
        element.attributes = attributes(name, facts, own, interfaces)?;
        if is_obsolete {
            element.attributes.values_mut().for_each(|attribute| attribute.deprecated = None);
        }
    }
    if name == "body" {
        for handler in interfaces.handlers("WindowEventHandlers") {
            element.attributes.insert(handler.clone(), Attribute::plain(Kind::plain("Script")));
        }
    }
    if !is_obsolete {
        element.rules = rules(name, &facts["attributes"]);
    }
    Ok(element)
}

/// Adds the categories that an element always has, and those that depend on an attribute.
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
        // `within` already has the last rule.
        let given = match body {
            "linkBodyOk(node);" => vec![
                "Given::Present(\"itemprop\")".to_owned(),
                format!("Given::Among(\"rel\", {})", words(chosen::BODY_OK.split(' '))),
            ],
            "node.getAttribute(\"type\") !== \"hidden\";" => {
                vec!["Given::Except(\"type\", words(\"hidden\"))".to_owned()]
            }
            "Boolean(node.closest(\"map\"));" => {
                element.categories.insert(category);
                continue;
            }
            _ => {
                let inside = body.strip_prefix("node.hasAttribute(\"");
                let Some(attribute) = inside.and_then(|rest| rest.strip_suffix("\");")) else {
                    bail!("unknown rule for {key}: {code}")
                };
                let more = chosen::GIVEN.iter().filter(|(element, _)| *element == name);
                let all = more.map(|(_, attribute)| *attribute).chain([attribute]);
                all.map(|attribute| format!("Given::Present({})", quoted(attribute))).collect()
            }
        };
        ensure!(element.given.is_empty() || element.given == given, "two different rules: {code}");
        element.given = given;
        element.sometimes.insert(category);
    }
    Ok(())
}

/// Rules between the attributes of an element; no name: rules for global attributes.
fn rules(name: &str, facts: &Value) -> Vec<String> {
    let facts = facts.as_object().into_iter().flatten();
    let required = facts.filter(|(attribute, facts)| {
        facts["required"] == true && !chosen::NOT_REQUIRED.contains(&(name, attribute))
    });
    let chosen = chosen::REQUIRED.iter().filter(|(element, _)| *element == name);
    let any: BTreeSet<&str> = required
        .map(|(attribute, _)| attribute.as_str())
        .chain(chosen.map(|(_, attributes)| *attributes))
        .collect();
    let mut rules: Vec<String> =
        any.into_iter().map(|names| format!("Rule::Any({})", words(names.split(' ')))).collect();
    for (_, attribute, when) in chosen::NEEDED.iter().filter(|(element, ..)| *element == name) {
        rules.push(format!("Rule::Needs({}, {})", quoted(attribute), given(when)));
    }
    for (_, attributes, when) in chosen::ONLY.iter().filter(|(element, ..)| *element == name) {
        let attributes = words(attributes.split(' '));
        rules.push(format!("Rule::Only({attributes}, {})", given(when)));
    }
    for (_, attribute, parents) in chosen::IN.iter().filter(|(element, ..)| *element == name) {
        let parents = words(parents.split(' '));
        rules.push(format!("Rule::In({}, {parents})", quoted(attribute)));
    }
    rules
}

fn given(when: &chosen::When) -> String {
    let listed =
        |other: &str, among: &str| format!("({}, {})", quoted(other), words(among.split(' ')));
    match when {
        chosen::When::There(other) => format!("Given::Present({})", quoted(other)),
        chosen::When::Has(other, among) => format!("Given::Among{}", listed(other, among)),
        chosen::When::HasNot(other, among) => format!("Given::Except{}", listed(other, among)),
    }
}

/// The order of an element's children; `*` means a category or a choice.
fn order(facts: &Value) -> Vec<String> {
    let is_current = |name: &&str| chosen::ELEMENTS.iter().all(|(obsolete, _)| obsolete != name);
    let named = |name: &str| match name {
        any if any.starts_with('@') || any.contains(',') => "*".to_owned(),
        one => one.to_owned(),
    };
    let order: Vec<String> =
        listed(&facts["permittedOrder"]).into_iter().filter(is_current).map(named).collect();
    if order.iter().all(|name| name == "*") { Vec::new() } else { order }
}

/// The allowed children of an element.
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
        content.allowed.categories.clear();
        content.text = true;
    } else if facts["transparent"] == true || facts["transparent"].is_array() {
        // The parent decides about the rest.
        content.allowed.categories.clear();
        content.transparent = true;
    } else if chosen::ANYTHING.contains(&name) || (is_obsolete && !is_said && !is_empty) {
        content.anything = true;
    } else {
        ensure!(is_said || is_empty, "no source defines its content; add it to chosen.rs");
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
            self.categories.insert(known.with_context(|| format!("{word} is not a category"))?.2);
        } else {
            self.elements.insert(word.to_owned());
        }
        Ok(())
    }

    fn is_empty(&self) -> bool {
        self.categories.is_empty() && self.elements.is_empty()
    }
}

/// A part of other elements is allowed in the elements that name it, and in a template.
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
        // The root has no parent.
        if !parents.is_empty() {
            parents.insert("template".to_owned());
        }
        if let Some(element) = elements.get_mut(part) {
            element.parents = parents;
        }
    }
}

/// The attributes of an element, from its own facts and its interface; `*` means every element.
fn attributes(
    name: &str,
    facts: &Value,
    interface: Option<&str>,
    interfaces: &Interfaces,
) -> Result<Attributes> {
    let mut found = Attributes::new();
    for one in interface.into_iter().flat_map(|one| interfaces.reflected(one)) {
        let deprecated = one.obsolete.then(|| instead(name, &one.name)).transpose()?;
        found.insert(
            one.name.clone(),
            Attribute { deprecated, ..Attribute::plain(one.kind.clone()) },
        );
    }
    for (attribute, facts) in facts["attributes"].as_object().into_iter().flatten() {
        // Families of attributes have their own lists.
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
        found.insert(attribute.clone(), Attribute { deprecated, ..Attribute::plain(kind) });
    }
    for (_, attribute, kind, words) in chosen::KINDS.iter().filter(|(element, ..)| *element == name)
    {
        found.insert((*attribute).to_owned(), Attribute::plain(Kind::with(kind, words)));
    }
    for (_, attributes) in chosen::OBSOLETE.iter().filter(|(element, _)| *element == name) {
        for attribute in attributes.split(' ') {
            let known = found.remove(attribute).map(|known| known.kind);
            let deprecated = Some(instead(name, attribute)?);
            let kind = known.unwrap_or_else(|| Kind::plain("Text"));
            found.insert(attribute.to_owned(), Attribute { deprecated, ..Attribute::plain(kind) });
        }
    }
    found.retain(|attribute, _| !chosen::NOT_ON.contains(&(name, attribute)));
    for (_, attribute, types) in chosen::TYPES.iter().filter(|(element, ..)| *element == name) {
        found.get_mut(*attribute).with_context(|| format!("there is no {attribute}"))?.types =
            types;
    }
    // An attribute that the standard defines in prose must be in a second source, or in the
    // corrections by hand.
    for member in interface.into_iter().flat_map(|one| interfaces.unmarked(one)) {
        let is_known = found.contains_key(member) || chosen::MEMBERS.contains(&member);
        ensure!(
            is_known,
            "no source defines whether {member} is an attribute; add it to chosen.rs"
        );
    }
    Ok(found)
}

/// The replacement of a deprecated attribute.
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
        .with_context(|| format!("{attribute} is deprecated; add its replacement to chosen.rs"))
}

/// Checks that every element named by a rule exists.
fn check_names(elements: &BTreeMap<&str, Element>) -> Result<()> {
    for (name, element) in elements {
        let content = &element.content;
        let lists = [
            &content.allowed.elements,
            &element.excluded.elements,
            &element.parents,
            &element.within,
            &element.around,
        ];
        let needs = element.needs.iter().flat_map(|one| one.split('|'));
        let order = element.order.iter().map(String::as_str).filter(|one| *one != "*");
        let named = lists.into_iter().flatten().map(String::as_str).chain(needs).chain(order);
        for other in named {
            ensure!(elements.contains_key(other), "{name} names {other}, which is not an element");
        }
    }
    Ok(())
}

impl Element {
    /// The element as a Rust expression, without fields that have their default.
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
            let categories = categories(&self.excluded.categories);
            let elements = texts(&self.excluded.elements);
            let value = format!("Excluded {{ categories: {categories}, elements: {elements} }}");
            field("excluded", value);
        }
        let sets = [
            ("parents", &self.parents),
            ("within", &self.within),
            ("around", &self.around),
            ("needs", &self.needs),
        ];
        for (name, set) in sets {
            if !set.is_empty() {
                field(name, texts(set));
            }
        }
        if !self.order.is_empty() {
            field("order", words(self.order.iter().map(String::as_str)));
        }
        if !self.rules.is_empty() {
            field("rules", format!("&[{}]", self.rules.join(", ")));
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
    /// The value of the field, unless no content is allowed.
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
            None if self.types.is_empty() => format!("attribute({name}, {kind})"),
            None => format!("beside({name}, {kind}, {})", words(self.types.split(' '))),
        }
    }
}

/// A set of categories as a Rust expression, in the order of `CATEGORIES`.
fn categories(set: &BTreeSet<&'static str>) -> String {
    let order = CATEGORIES.iter().map(|(.., name)| *name).chain(["PART"]);
    let mut names = order.filter(|name| set.contains(name));
    let first = names.next().unwrap_or("NONE").to_owned();
    names.fold(first, |text, name| format!("{text}.or({name})"))
}

//! The fields of a form that names a service, and the limits that each of them can show.
//!
//! The limits are those of the service's arguments, which are known when the program runs.

use std::collections::HashMap;

use super::service_path;
use crate::token::Token;
use crate::tree::{Attribute, Element, Node, Value};

/// A form whose action may be a service.
pub(super) struct ServiceForm {
    action: Vec<Token>,
    /// The number of fields with each name: radio buttons, and others.
    fields: HashMap<String, (usize, usize)>,
}

/// The limits that a field may have.
pub(super) struct FieldLimits {
    pub(super) service: Vec<Token>,
    pub(super) name: String,
    /// The limits of this kind of field that its author has not written.
    pub(super) flags: u8,
}

/// The attributes, each with its flag, which `bine::service::limits` has too.
const ATTRIBUTES: [(&str, u8); 6] =
    [("required", 1), ("minlength", 2), ("maxlength", 4), ("min", 8), ("max", 16), ("step", 32)];

impl ServiceForm {
    /// `None`: the form names no service, or a button of it sends it to another address, which may
    /// have other limits.
    pub(super) fn of(form: &Element) -> Option<Self> {
        let Value::Hole(action) = &form.attribute("action")?.value else { return None };
        service_path(action)?;
        let mut own = Self { action: action.clone(), fields: HashMap::new() };
        own.count(&form.children, 1)?;
        Some(own)
    }

    /// Counts the fields. In a loop each one counts twice. `None`: a button has its own address.
    fn count(&mut self, nodes: &[Node], turns: usize) -> Option<()> {
        for node in nodes {
            match node {
                Node::Element(element) | Node::Live(element) => {
                    if element.attribute("formaction").is_some() {
                        return None;
                    }
                    if let Some(name) = text(element, "name") {
                        let (radios, others) = self.fields.entry(name.to_owned()).or_default();
                        *(if is_radio(element) { radios } else { others }) += turns;
                    }
                    self.count(&element.children, turns)?;
                }
                Node::For { body, .. } => self.count(body, 2)?,
                Node::If { branches, otherwise } => {
                    for branch in branches {
                        self.count(&branch.body, turns)?;
                    }
                    self.count(otherwise, turns)?;
                }
                Node::Match { arms, .. } => {
                    for arm in arms {
                        self.count(&arm.body, turns)?;
                    }
                }
                _ => {}
            }
        }
        Some(())
    }

    /// The limits of a field; `None` if it can have none. Of several fields with one name, a service
    /// may read only one.
    pub(super) fn limits(&self, field: &Element) -> Option<FieldLimits> {
        let name = text(field, "name")?;
        let is_alone = match self.fields.get(name)? {
            (_, 0) => is_radio(field),
            (0, 1) => true,
            _ => false,
        };
        let possible = possible(field).filter(|_| is_alone)?;
        let flag = |(name, flag): &(&str, u8)| {
            let is_free = possible.contains(name) && field.attribute(name).is_none();
            if is_free { *flag } else { 0 }
        };
        let flags = ATTRIBUTES.iter().map(flag).sum();
        let service = self.action.clone();
        (flags > 0).then(|| FieldLimits { service, name: name.to_owned(), flags })
    }
}

/// The limits that HTML defines for this field.
fn possible(field: &Element) -> Option<&'static [&'static str]> {
    // A browser counts a line break as one character and sends two, so that a text area can be
    // shorter for the browser than for the server.
    match field.name.as_str() {
        "textarea" => return Some(&["required", "maxlength"]),
        "select" => return is_select_with_placeholder(field).then_some(&["required"]),
        "input" => {}
        _ => return None,
    }
    let kind = match field.attribute("type") {
        None => "text".to_owned(),
        Some(Attribute { value: Value::Text(kind), .. }) => kind.to_ascii_lowercase(),
        Some(_) => return None,
    };
    match &*kind {
        "text" | "search" | "url" | "tel" | "email" | "password" => {
            Some(&["required", "minlength", "maxlength"])
        }
        "number" => Some(&["required", "min", "max", "step"]),
        "range" => Some(&["min", "max"]),
        "date" | "month" | "week" | "time" | "datetime-local" | "radio" => Some(&["required"]),
        _ => None,
    }
}

/// Whether the first option of a `<select>` has an empty value: HTML allows `required` only then.
fn is_select_with_placeholder(field: &Element) -> bool {
    let first = field.children.iter().find(|child| !matches!(child, Node::Text(..)));
    let is_empty = |option: &Element| option.name == "option" && text(option, "value") == Some("");
    matches!(first, Some(Node::Element(option)) if is_empty(option))
        && field.attribute("multiple").is_none()
}

fn is_radio(field: &Element) -> bool {
    text(field, "type").is_some_and(|kind| kind.eq_ignore_ascii_case("radio"))
}

/// The text of an attribute, if it is constant.
fn text<'e>(element: &'e Element, name: &str) -> Option<&'e str> {
    match &element.attribute(name)?.value {
        Value::Text(text) => Some(text),
        _ => None,
    }
}

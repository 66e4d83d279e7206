//! Form submission: fields with the visitor's input, validated as a browser does (HTML 4.10.21 and
//! 4.10.22).

use std::borrow::Cow;

use bine_html::tree::{Element, Node, Tree};
use bine_http::Method;

use super::address::encoded;
use super::document::{elements, text_of};
use super::values;
use crate::nearest::nearest;

/// A form to be submitted.
pub(super) struct PageForm<'t> {
    form: &'t Element,
    /// Fields and buttons in document order.
    controls: Vec<FormControl<'t>>,
}

/// A file that the visitor chose for a field.
#[derive(Debug)]
pub(super) struct ChosenFile {
    /// The name of the field.
    pub(super) field: String,
    pub(super) name: String,
    pub(super) media_type: String,
    pub(super) content: Vec<u8>,
}

/// The entry for a file field without a file (HTML 4.10.21.4).
static NO_FILE: ChosenFile = ChosenFile {
    field: String::new(),
    name: String::new(),
    media_type: String::new(),
    content: Vec::new(),
};

/// One entry of the form's data.
struct Entry<'e> {
    name: Cow<'e, str>,
    value: Cow<'e, str>,
    /// The file, for a file field.
    file: Option<&'e ChosenFile>,
}

impl<'e> Entry<'e> {
    fn new(name: &'e str, value: &'e str) -> Self {
        Self { name: with_crlf(name), value: with_crlf(value), file: None }
    }

    fn of_file(name: &'e str, file: &'e ChosenFile) -> Self {
        Self { name: with_crlf(name), value: Cow::Borrowed(&file.name), file: Some(file) }
    }
}

/// The request that a form makes.
#[derive(PartialEq, Eq, Debug)]
pub(super) struct Submission {
    pub(super) method: Method,
    /// The address in the page's words, not yet resolved.
    pub(super) action: String,
    /// The query for GET; for POST the content with its media type.
    pub(super) query: String,
    pub(super) content: Option<(String, Vec<u8>)>,
}

struct FormControl<'t> {
    element: &'t Element,
    kind: ControlKind,
    name: &'t str,
    /// Whether the browser omits the control.
    is_disabled: bool,
    /// The values to send; for files, their names.
    values: Vec<String>,
    files: Vec<&'t ChosenFile>,
    is_filled: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum ControlKind {
    /// Text, numbers, dates and similar.
    Text,
    Hidden,
    /// A checkbox or radio button.
    Check,
    Select,
    File,
    Button,
}

/// Boundary of multipart content. No value in a test contains it.
const BOUNDARY: &str = "---------------------------bine-test-5d1f0c9a7e3b";

impl<'t> PageForm<'t> {
    /// Collects the form's controls on its page, with the chosen files.
    pub(super) fn of(tree: &'t Tree, form: &'t Element, chosen: &'t [ChosenFile]) -> Self {
        let id = form.attribute("id").filter(|id| !id.is_empty());
        let inside: Vec<&Element> = elements(form.children()).collect();
        let is_in = |element: &Element| inside.iter().any(|own| std::ptr::eq(*own, element));
        let off: Vec<&Element> = elements(tree.roots())
            .filter(|set| set.name() == "fieldset" && set.attribute("disabled").is_some())
            .flat_map(disabled_by)
            .collect();
        let all = elements(tree.roots()).filter_map(|element| {
            let owner = element.attribute("form");
            let belongs = if owner.is_some() { owner == id } else { is_in(element) };
            let is_in_disabled_fieldset = off.iter().any(|own| std::ptr::eq(*own, element));
            belongs.then(|| FormControl::of(element, is_in_disabled_fieldset, chosen)).flatten()
        });
        Self { controls: all.collect(), form }
    }

    /// Fills in the first unfilled field with this name, or selects the choice with this value.
    ///
    /// # Errors
    ///
    /// The form has no such field or choice. The message lists those it has.
    pub(super) fn fill(&mut self, name: &str, value: &str) -> Result<(), String> {
        if self.controls.iter().all(|control| control.name != name) {
            let mut names: Vec<&str> = Vec::new();
            for control in &self.controls {
                if !control.name.is_empty() && !names.contains(&control.name) {
                    names.push(control.name);
                }
            }
            let meant = nearest(names.iter().copied(), name);
            let meant =
                meant.map_or_else(String::new, |meant| format!("; did you mean `{meant}`?"));
            let has = if names.is_empty() { "none".to_owned() } else { names.join(", ") };
            return Err(format!("the form has no field `{name}`{meant} (its fields: {has})"));
        }
        let named = self.controls.iter().filter(|control| control.name == name);
        let choices: Vec<String> = named.flat_map(FormControl::choices).collect();
        let mut named = self.controls.iter_mut().filter(|control| control.name == name);
        let taken = named.find(|control| control.takes(value));
        let Some(control) = taken else {
            let why = if choices.is_empty() {
                "it is filled already, or no visitor can fill it (hidden, disabled or read-only)"
                    .to_owned()
            } else {
                let meant = nearest(choices.iter().map(|choice| &**choice), value);
                let meant =
                    meant.map_or_else(String::new, |meant| format!("; did you mean {meant:?}?"));
                format!("it takes {}{meant}", quoted(&choices))
            };
            return Err(format!("the field `{name}` does not take {value:?}: {why}"));
        };
        control.fill(value);
        if control.is_radio() {
            let chosen = control.element;
            for other in self.controls.iter_mut().filter(|other| other.name == name) {
                if other.is_radio() && !std::ptr::eq(other.element, chosen) {
                    other.values.clear();
                }
            }
        }
        Ok(())
    }

    /// Returns the submit button: the one that the test named, else the first.
    ///
    /// # Errors
    ///
    /// The button is disabled, so that a browser sends no request (HTML 4.10.21.2).
    pub(super) fn button(&self) -> Result<Option<&'t Element>, String> {
        let mut buttons = self.controls.iter().filter(|own| own.kind == ControlKind::Button);
        let filled = buttons.clone().find(|button| button.is_filled);
        match filled.or_else(|| buttons.next()) {
            Some(button) if button.is_disabled => {
                Err("its first button is disabled (another is pressed by `tab.click(..)`)"
                    .to_owned())
            }
            button => Ok(button.map(|button| button.element)),
        }
    }

    /// Returns the request for a press of `button`.
    ///
    /// # Errors
    ///
    /// Why a browser would not submit the form.
    pub(super) fn submission(&self, button: Option<&Element>) -> Result<Submission, String> {
        let said = |name: &str, of_button: &str| {
            let by_button = button.and_then(|button| button.attribute(of_button));
            by_button.or_else(|| self.form.attribute(name)).unwrap_or_default().to_owned()
        };
        let is_checked = self.form.attribute("novalidate").is_none()
            && button.is_none_or(|button| button.attribute("formnovalidate").is_none());
        if is_checked {
            self.controls.iter().try_for_each(|control| control.check(&self.controls))?;
        }
        let mut entries: Vec<Entry<'_>> = Vec::new();
        for control in self.controls.iter().filter(|own| !own.is_disabled && !own.name.is_empty()) {
            let name = control.name;
            let is_pressed = button.is_some_and(|button| std::ptr::eq(button, control.element));
            match control.kind {
                ControlKind::Button if is_pressed => {
                    let value = control.element.attribute("value").unwrap_or_default();
                    entries.push(Entry::new(name, value));
                }
                ControlKind::Button => {}
                ControlKind::File => {
                    let files = control.files.iter();
                    entries.extend(files.map(|file| Entry::of_file(name, file)));
                }
                _ => entries.extend(control.values.iter().map(|value| Entry::new(name, value))),
            }
        }
        let pairs = entries.iter().map(|entry| (&*entry.name, &*entry.value));
        let action = said("action", "formaction");
        let method = said("method", "formmethod").to_ascii_lowercase();
        match &*method {
            "post" => {
                let content = if said("enctype", "formenctype") == "multipart/form-data" {
                    (format!("multipart/form-data; boundary={BOUNDARY}"), multipart(&entries))
                } else {
                    ("application/x-www-form-urlencoded".to_owned(), encoded(pairs).into_bytes())
                };
                let query = String::new();
                Ok(Submission { method: Method::Post, action, query, content: Some(content) })
            }
            "dialog" => Err("a form with method=\"dialog\" is not sent anywhere".to_owned()),
            _ => {
                let query = encoded(pairs);
                Ok(Submission { method: Method::Get, action, query, content: None })
            }
        }
    }
}

/// Returns what a disabled `<fieldset>` disables: all its elements except those in its first legend
/// (HTML 4.10.15).
fn disabled_by(set: &Element) -> Vec<&Element> {
    let legend = set
        .children()
        .iter()
        .position(|child| matches!(child, Node::Element(element) if element.name() == "legend"));
    let parts = set.children().iter().enumerate();
    let parts = parts.filter(|(place, _)| Some(*place) != legend);
    parts.flat_map(|(_, part)| elements(std::slice::from_ref(part))).collect()
}

/// Converts line ends to CR LF, as a form sends them (HTML 4.10.21.8).
fn with_crlf(text: &str) -> Cow<'_, str> {
    if text.contains(['\r', '\n']) {
        Cow::Owned(with_lf(text).replace('\n', "\r\n"))
    } else {
        Cow::Borrowed(text)
    }
}

/// Converts line ends to LF, as the length limits count them.
fn with_lf(text: &str) -> String {
    text.replace("\r\n", "\n").replace('\r', "\n")
}

/// Encodes a form as `multipart/form-data` (RFC 7578).
fn multipart(entries: &[Entry<'_>]) -> Vec<u8> {
    let plain = |name: &str| name.replace('"', "%22").replace('\r', "%0D").replace('\n', "%0A");
    let mut content = Vec::new();
    for Entry { name, value, file } in entries {
        let head =
            format!("--{BOUNDARY}\r\nContent-Disposition: form-data; name=\"{}\"", plain(name));
        content.extend(head.bytes());
        if let Some(file) = file {
            let kind = match &*file.media_type {
                "" => "application/octet-stream",
                kind => kind,
            };
            let of_file = format!("; filename=\"{}\"\r\nContent-Type: {kind}", plain(value));
            content.extend(of_file.bytes());
        }
        content.extend(b"\r\n\r\n");
        content.extend(file.map_or(value.as_bytes(), |file| &*file.content));
        content.extend(b"\r\n");
    }
    content.extend(format!("--{BOUNDARY}--\r\n").bytes());
    content
}

impl<'t> FormControl<'t> {
    /// Returns `None` for an element that forms do not send.
    fn of(
        element: &'t Element,
        is_in_disabled_fieldset: bool,
        chosen: &'t [ChosenFile],
    ) -> Option<Self> {
        let of_type = element.attribute("type").unwrap_or_default().to_ascii_lowercase();
        let kind = match (element.name(), &*of_type) {
            ("input", "hidden") => ControlKind::Hidden,
            ("input", "checkbox" | "radio") => ControlKind::Check,
            ("input", "file") => ControlKind::File,
            ("input", "submit" | "image") | ("button", "" | "submit") => ControlKind::Button,
            ("input", "button" | "reset") | ("button", _) => return None,
            ("input" | "textarea", _) => ControlKind::Text,
            ("select", _) => ControlKind::Select,
            _ => return None,
        };
        let name = element.attribute("name").unwrap_or_default();
        let is_disabled = is_in_disabled_fieldset || element.attribute("disabled").is_some();
        let (values, files) = (Vec::new(), Vec::new());
        let mut own = Self { element, kind, name, is_disabled, values, files, is_filled: false };
        own.values = own.default_values();
        if kind == ControlKind::File {
            own.files = chosen.iter().filter(|chosen| chosen.field == name).collect();
            if own.files.is_empty() {
                own.files.push(&NO_FILE);
            }
            own.values = own.files.iter().map(|file| file.name.clone()).collect();
        }
        Some(own)
    }

    /// Returns the values that the control sends without input.
    fn default_values(&self) -> Vec<String> {
        let value = || self.element.attribute("value").unwrap_or_default().to_owned();
        match self.kind {
            ControlKind::Button | ControlKind::File => Vec::new(),
            ControlKind::Check if self.element.attribute("checked").is_none() => Vec::new(),
            ControlKind::Check => self.choices(),
            ControlKind::Text if self.element.name() == "textarea" => vec![self.element.text()],
            ControlKind::Text => vec![values::initial(self.element, &value())],
            ControlKind::Hidden => vec![value()],
            ControlKind::Select => {
                let open =
                    || options(self.element).filter(|one| one.attribute("disabled").is_none());
                let chosen = open().filter(|option| option.attribute("selected").is_some());
                let chosen: Vec<String> = chosen.map(option_value).collect();
                match chosen.last() {
                    _ if self.is_multiple() => chosen,
                    Some(last) => vec![last.clone()],
                    None => open().next().map(option_value).into_iter().collect(),
                }
            }
        }
    }

    /// Returns the values to choose from; empty if the field takes any.
    fn choices(&self) -> Vec<String> {
        match self.kind {
            ControlKind::Check => vec![self.element.attribute("value").unwrap_or("on").to_owned()],
            ControlKind::Button => {
                vec![self.element.attribute("value").unwrap_or_default().to_owned()]
            }
            ControlKind::Select => options(self.element)
                .filter(|option| option.attribute("disabled").is_none())
                .map(option_value)
                .collect(),
            ControlKind::Text | ControlKind::Hidden | ControlKind::File => Vec::new(),
        }
    }

    fn takes(&self, value: &str) -> bool {
        if self.is_disabled || self.element.attribute("readonly").is_some() {
            return false;
        }
        match self.kind {
            ControlKind::Text => !self.is_filled,
            ControlKind::Hidden | ControlKind::File => false,
            ControlKind::Check | ControlKind::Button => {
                self.is_unchecking(value) || self.choices().iter().any(|own| own == value)
            }
            ControlKind::Select => {
                (!self.is_filled || self.is_multiple())
                    && self.choices().iter().any(|own| own == value)
            }
        }
    }

    fn fill(&mut self, value: &str) {
        // The visitor's first choice replaces the default.
        if !(self.is_filled && self.is_multiple()) {
            self.values.clear();
        }
        if !self.is_unchecking(value) {
            self.values.push(value.to_owned());
        }
        self.is_filled = true;
    }

    /// Returns why a browser would not submit a form with this control's value.
    fn check(&self, all: &[Self]) -> Result<(), String> {
        let is_fixed = self.is_disabled || self.element.attribute("readonly").is_some();
        if is_fixed || matches!(self.kind, ControlKind::Hidden | ControlKind::Button) {
            return Ok(());
        }
        let name = self.name;
        let is_empty = if self.is_radio() {
            let group = all.iter().filter(|other| other.is_radio() && other.name == name);
            group.flat_map(|other| &other.values).next().is_none()
        } else {
            self.values.iter().all(String::is_empty)
        };
        if is_empty && self.element.attribute("required").is_some() {
            return Err(format!("`{name}` is required and empty"));
        }
        if self.kind != ControlKind::Text || is_empty {
            return Ok(());
        }
        for value in &self.values {
            if let Some(fault) = values::problem(self.element, value) {
                return Err(format!("`{name}` {fault}, not {value:?}"));
            }
        }
        // Browsers check the length only of typed values.
        if !self.is_filled {
            return Ok(());
        }
        // Lengths count UTF-16 code units.
        let length: usize =
            self.values.iter().map(|value| with_lf(value).encode_utf16().count()).sum();
        let limit = |name: &str| self.element.attribute(name)?.trim().parse::<usize>().ok();
        match (limit("minlength"), limit("maxlength")) {
            (Some(least), _) if length < least => {
                Err(format!("`{name}` takes at least {least} characters, not {length}"))
            }
            (_, Some(most)) if length > most => {
                Err(format!("`{name}` takes at most {most} characters, not {length}"))
            }
            _ => Ok(()),
        }
    }

    /// An empty value unchecks a checkbox.
    fn is_unchecking(&self, value: &str) -> bool {
        self.kind == ControlKind::Check && !self.is_radio() && value.is_empty()
    }

    fn is_radio(&self) -> bool {
        self.kind == ControlKind::Check
            && self.element.attribute("type").is_some_and(|own| own.eq_ignore_ascii_case("radio"))
    }

    fn is_multiple(&self) -> bool {
        self.element.attribute("multiple").is_some()
    }
}

fn options(select: &Element) -> impl Iterator<Item = &Element> {
    elements(select.children()).filter(|option| option.name() == "option")
}

fn option_value(option: &Element) -> String {
    option.attribute("value").map_or_else(|| text_of(option), ToOwned::to_owned)
}

fn quoted(texts: &[String]) -> String {
    texts.iter().map(|text| format!("{text:?}")).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn converts_line_ends_of_fields_but_not_of_files() {
        let (media_type, content) = ("text/plain".to_owned(), b"4\n5".to_vec());
        let file = ChosenFile { field: "f".into(), name: "n".into(), media_type, content };
        let entries = [Entry::new("a", "1\n2\r3"), Entry::of_file("f", &file)];
        let sent = String::from_utf8(multipart(&entries)).unwrap();
        let expected = "name=\"a\"\r\n\r\n1\r\n2\r\n3\r\n--";
        assert!(sent.contains(expected) && sent.contains("\r\n\r\n4\n5\r\n--"), "{sent}");
    }
}

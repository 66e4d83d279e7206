//! Puts the values and the messages of a rejected form into the markup of its page.
//!
//! Any writer may produce the page, also a frozen page or a tree, so the edit works on its bytes.
//! It reads tags only, and copies all other bytes unchanged.

use std::borrow::Cow;
use std::collections::HashMap;
use std::ops::Range;

use crate::percent_encoding::percent_encode;

/// A rejected form, and the reasons.
pub(super) struct RejectedForm<'f> {
    /// Path and query of the page of the form.
    pub(super) page: &'f str,
    /// The texts that were sent, in order, under their names.
    pub(super) fields: &'f [(String, String)],
    /// The messages for fields: name, label, text.
    pub(super) errors: &'f [FieldMessage<'f>],
    /// The message for the whole form, if no field has one.
    pub(super) message: &'f str,
    /// Whether this address is the one that the form was sent to.
    pub(super) is_own: &'f dyn Fn(&str) -> bool,
    /// Whether this path is that of a service, which answers no GET.
    pub(super) is_service: &'f dyn Fn(&str) -> bool,
}

/// A message for one field.
pub(super) struct FieldMessage<'f> {
    pub(super) name: &'f str,
    pub(super) label: &'f str,
    pub(super) text: &'f str,
}

/// The name of the query parameter by which the address of a form names the page of the form, when
/// the address of the document is that of a service.
pub(super) const PAGE: &str = "_page";

/// A tag in a page.
struct Tag<'p> {
    /// Its bytes in the page.
    place: Range<usize>,
    name: &'p str,
    is_end: bool,
    /// Whether it ends in `/>`.
    is_empty: bool,
    attributes: Vec<TagAttribute<'p>>,
}

struct TagAttribute<'p> {
    name: &'p str,
    /// The value as written, without quotes.
    value: Option<&'p str>,
    /// The whole attribute as written.
    text: &'p str,
}

/// Iterates over the tags of a page. Skips comments, and the content of elements without markup.
struct Tags<'p> {
    page: &'p str,
    at: usize,
    /// The element whose end tag is next, because it contains text only.
    text_only: Option<&'p str>,
}

/// Elements whose content is text.
const TEXT_ONLY: [&str; 4] = ["script", "style", "textarea", "title"];

impl<'p> Iterator for Tags<'p> {
    type Item = Tag<'p>;

    fn next(&mut self) -> Option<Tag<'p>> {
        loop {
            let rest = &self.page[self.at..];
            let start = self.at + rest.find('<')?;
            let inside = &self.page[start + 1..];
            if let Some(name) = self.text_only {
                let end = inside.strip_prefix('/').and_then(|end| end.get(..name.len()));
                if !end.is_some_and(|end| end.eq_ignore_ascii_case(name)) {
                    self.at = start + 1;
                    continue;
                }
                self.text_only = None;
            }
            if let Some(comment) = inside.strip_prefix("!--") {
                self.at = start + 4 + comment.find("-->")?;
                continue;
            }
            let is_end = inside.starts_with('/');
            let name_start = start + 1 + usize::from(is_end);
            if !self.page[name_start..].starts_with(|letter: char| letter.is_ascii_alphabetic()) {
                self.at = start + 1;
                continue;
            }
            let tag = read_tag(self.page, start, name_start, is_end)?;
            self.at = tag.place.end;
            let is_text = |name: &&&str| tag.name.eq_ignore_ascii_case(name);
            if !is_end && !tag.is_empty && TEXT_ONLY.iter().any(|name| is_text(&name)) {
                self.text_only = Some(tag.name);
            }
            return Some(tag);
        }
    }
}

/// Reads a tag (HTML 13.2.5.6 to 13.2.5.40). `None`: the page ends within it.
fn read_tag(page: &str, start: usize, name_start: usize, is_end: bool) -> Option<Tag<'_>> {
    let bytes = page.as_bytes();
    let skip = |mut at: usize, stop: &dyn Fn(u8) -> bool| {
        while at < bytes.len() && !stop(bytes[at]) {
            at += 1;
        }
        (at < bytes.len()).then_some(at)
    };
    let is_space = |byte: u8| byte.is_ascii_whitespace();
    let mut at = skip(name_start, &|byte| is_space(byte) || matches!(byte, b'/' | b'>'))?;
    let (name, mut attributes, mut is_empty) = (&page[name_start..at], Vec::new(), false);
    loop {
        at = skip(at, &|byte| !is_space(byte))?;
        match bytes[at] {
            b'>' => break,
            b'/' => {
                is_empty = bytes.get(at + 1) == Some(&b'>');
                at += 1;
                continue;
            }
            _ => {}
        }
        let begin = at;
        at = skip(at + 1, &|byte| is_space(byte) || matches!(byte, b'/' | b'>' | b'='))?;
        let name = &page[begin..at];
        let after = skip(at, &|byte| !is_space(byte))?;
        let mut value = None;
        if bytes[after] == b'=' {
            let first = skip(after + 1, &|byte| !is_space(byte))?;
            let quote = bytes[first];
            if matches!(quote, b'"' | b'\'') {
                let last = skip(first + 1, &|byte| byte == quote)?;
                value = Some(&page[first + 1..last]);
                at = last + 1;
            } else {
                at = skip(first, &|byte| is_space(byte) || byte == b'>')?;
                value = Some(&page[first..at]);
            }
        }
        attributes.push(TagAttribute { name, value, text: &page[begin..at] });
    }
    Some(Tag { place: start..at + 1, name, is_end, is_empty, attributes })
}

impl Tag<'_> {
    fn is(&self, name: &str) -> bool {
        self.name.eq_ignore_ascii_case(name)
    }

    fn has(&self, name: &str) -> bool {
        self.attributes.iter().any(|own| own.name.eq_ignore_ascii_case(name))
    }

    /// The value of an attribute. An attribute without one has an empty value.
    fn value(&self, name: &str) -> Option<Cow<'_, str>> {
        let own = self.attributes.iter().find(|own| own.name.eq_ignore_ascii_case(name))?;
        Some(decoded(own.value.unwrap_or_default()))
    }

    fn input_type(&self) -> String {
        self.value("type").unwrap_or_default().to_ascii_lowercase()
    }

    /// Whether it is a field that can have a message.
    fn is_field(&self) -> bool {
        !self.is_end
            && (["textarea", "select", "button"].iter().any(|name| self.is(name))
                || self.is("input") && self.input_type() != "hidden")
    }

    /// Writes the tag with other attributes: `None` removes one.
    fn write(&self, changes: &[(&str, Option<Cow<'_, str>>)], to: &mut String) {
        to.push('<');
        to.push_str(self.name);
        for own in &self.attributes {
            if !changes.iter().any(|(name, _)| own.name.eq_ignore_ascii_case(name)) {
                to.push(' ');
                to.push_str(own.text);
            }
        }
        for (name, value) in changes {
            if let Some(value) = value {
                to.push(' ');
                to.push_str(name);
                to.push_str("=\"");
                escape(value, to);
                to.push('"');
            }
        }
        to.push_str(if self.is_empty { " />" } else { ">" });
    }
}

/// The form in the page that was sent.
struct OwnForm {
    /// From its start tag to the start of its end tag.
    place: Range<usize>,
    /// The names of its fields, without the hidden ones.
    names: Vec<String>,
}

/// A form while the page is searched.
struct Candidate {
    form: OwnForm,
    is_own: bool,
    has_other_values: bool,
}

/// Returns the page with the values and the messages of the form. `None`: the page has no such form.
pub(super) fn return_form(page: &str, rejected: &RejectedForm<'_>) -> Option<String> {
    let form = find(page, rejected)?;
    Some(Editor::new(page, rejected, form).edit())
}

/// Finds the form by its address and its hidden fields, which the visitor cannot have changed: a list
/// may have one such form for each row.
fn find(page: &str, rejected: &RejectedForm<'_>) -> Option<OwnForm> {
    let mut open: Option<Candidate> = None;
    for tag in (Tags { page, at: 0, text_only: None }) {
        if tag.is("form") {
            let begins = !tag.is_end;
            if let Some(mut done) = open.take() {
                done.form.place.end = tag.place.start;
                if done.is_own && !done.has_other_values {
                    return Some(done.form);
                }
            }
            let is_post = tag.value("method").is_some_and(|own| own.eq_ignore_ascii_case("post"));
            if begins && is_post {
                // A form without an address is sent to the address of its page.
                let action = tag.value("action").unwrap_or_default();
                let action = absolute(rejected.page, &action).map_or(action, Cow::Owned);
                let is_own = (rejected.is_own)(&action);
                let form = OwnForm { place: tag.place, names: Vec::new() };
                open = Some(Candidate { form, is_own, has_other_values: false });
            }
            continue;
        }
        let Some(candidate) = open.as_mut().filter(|_| !tag.is_end) else { continue };
        if let Some(action) = tag.value("formaction") {
            candidate.is_own |= (rejected.is_own)(&action);
        }
        let Some(name) = tag.value("name") else { continue };
        if tag.is_field() {
            candidate.form.names.push(name.into_owned());
        } else if tag.is("input") && !tag.has("disabled") {
            let value = tag.value("value").unwrap_or_default();
            let sent = |(own, text): &(String, String)| {
                *own == name && with_line_feeds(text) == with_line_feeds(&value)
            };
            candidate.has_other_values |= !rejected.fields.iter().any(sent);
        }
    }
    None
}

struct Editor<'p, 'f> {
    page: &'p str,
    rejected: &'f RejectedForm<'f>,
    form: OwnForm,
    out: String,
    /// The end of the bytes of the page that are in `out`.
    copied: usize,
    /// How many values of each name are in fields already.
    used: HashMap<String, usize>,
    /// The notes of fields that have not been written yet.
    pending: String,
    /// The number of open elements after which the pending notes follow.
    label_depth: usize,
    is_in_paragraph: bool,
    /// The errors that are written, by position.
    written: Vec<bool>,
    /// The values that the open `select` displays.
    selected: Option<Vec<String>>,
}

impl<'p, 'f> Editor<'p, 'f> {
    fn new(page: &'p str, rejected: &'f RejectedForm<'f>, form: OwnForm) -> Self {
        Self {
            page,
            rejected,
            form,
            out: String::with_capacity(page.len() + 1024),
            copied: 0,
            used: HashMap::new(),
            pending: String::new(),
            label_depth: 0,
            is_in_paragraph: false,
            written: vec![false; rejected.errors.len()],
            selected: None,
        }
    }

    fn edit(mut self) -> String {
        let tags = Tags { page: self.page, at: 0, text_only: None };
        for tag in tags {
            let is_inside = self.form.place.contains(&tag.place.start)
                && tag.place.start > self.form.place.start;
            if tag.is("p") {
                self.is_in_paragraph = !tag.is_end;
            }
            if tag.place.start == self.form.place.end {
                self.copy_to(tag.place.start);
                self.end_form();
            }
            if tag.is_end {
                self.copy_to(tag.place.end);
                if is_inside {
                    self.end_element(&tag);
                }
                continue;
            }
            let mut changes = self.page_changes(&tag);
            if is_inside {
                if tag.is("label") {
                    self.label_depth += 1;
                }
                self.field_changes(&tag, &mut changes);
            }
            if !changes.is_empty() {
                self.copy_to(tag.place.start);
                tag.write(&changes, &mut self.out);
                self.copied = tag.place.end;
            }
            if is_inside && tag.is("textarea") && !tag.is_empty {
                self.fill_textarea(&tag);
            }
            if is_inside && (tag.is("input") || tag.is_empty) {
                self.copy_to(tag.place.end);
                self.put_notes();
            }
        }
        self.copy_to(self.page.len());
        self.out
    }

    fn copy_to(&mut self, end: usize) {
        // The content of a filled field is skipped.
        if end > self.copied {
            self.out.push_str(&self.page[self.copied..end]);
            self.copied = end;
        }
    }

    /// Changes to any tag of the page. The address of the document is now that of the form, so that
    /// relative addresses need their page, and so do the forms of services.
    fn page_changes(&self, tag: &Tag<'p>) -> Vec<(&'static str, Option<Cow<'p, str>>)> {
        let page = self.rejected.page;
        let mut changes = Vec::new();
        if tag.has("autofocus") {
            changes.push(("autofocus", None));
        }
        for name in ["action", "formaction", "href", "src"] {
            let Some(value) = tag.value(name) else { continue };
            let value = value.into_owned();
            let is_form = name.ends_with("action");
            let absolute = absolute(page, &value);
            let target = absolute.as_ref().unwrap_or(&value);
            if is_form && target.starts_with('/') && (self.rejected.is_service)(target) {
                let path = target.split('?').next().unwrap_or_default();
                let page = percent_encode(page);
                changes.push((name, Some(format!("{path}?{PAGE}={page}").into())));
            } else if let Some(absolute) = absolute {
                changes.push((name, Some(absolute.into())));
            }
        }
        changes
    }

    /// Changes to a tag in the form.
    fn field_changes(
        &mut self,
        tag: &Tag<'p>,
        changes: &mut Vec<(&'static str, Option<Cow<'p, str>>)>,
    ) {
        if tag.is("option") {
            return self.select_option(tag, changes);
        }
        let Some(name) = tag.value("name").filter(|_| tag.is_field()).map(Cow::into_owned) else {
            return;
        };
        self.mark(tag, &name, changes);
        if tag.has("disabled") {
            return;
        }
        if tag.is("select") {
            let values = self.rejected.fields.iter().filter(|(own, _)| *own == name);
            self.selected = Some(values.map(|(_, value)| value.clone()).collect());
        } else if tag.is("input") {
            self.fill_input(tag, &name, changes);
        }
    }

    /// Marks a field that has messages, and keeps its notes for the place after it.
    fn mark(
        &mut self,
        tag: &Tag<'p>,
        name: &str,
        changes: &mut Vec<(&'static str, Option<Cow<'p, str>>)>,
    ) {
        let first = self.first_with_field();
        let described = tag.value("aria-describedby").unwrap_or_default().into_owned();
        let mut ids: Vec<String> = described.split_whitespace().map(str::to_owned).collect();
        for (place, error) in self.rejected.errors.iter().enumerate() {
            if error.name != name || self.written[place] {
                continue;
            }
            self.written[place] = true;
            let id = format!("invalid-{}", place + 1);
            let note = note(&id, error.text, self.is_in_paragraph, false);
            self.pending.push_str(&note);
            ids.push(id);
            if first == Some(place) {
                changes.retain(|(name, _)| *name != "autofocus");
                changes.push(("autofocus", Some("".into())));
            }
            for (name, value) in
                [("aria-invalid", "true".to_owned()), ("aria-describedby", ids.join(" "))]
            {
                changes.retain(|(own, _)| *own != name);
                changes.push((name, Some(value.into())));
            }
        }
    }

    /// The position of the first error whose field is in the form.
    fn first_with_field(&self) -> Option<usize> {
        let has_field = |error: &FieldMessage<'_>| self.has_field(error.name);
        self.rejected.errors.iter().position(has_field)
    }

    fn has_field(&self, name: &str) -> bool {
        self.form.names.iter().any(|own| own == name)
    }

    /// Never fills passwords and files.
    fn fill_input(
        &mut self,
        tag: &Tag<'p>,
        name: &str,
        changes: &mut Vec<(&'static str, Option<Cow<'p, str>>)>,
    ) {
        match &*tag.input_type() {
            "password" | "file" | "submit" | "image" | "reset" | "button" => {}
            "checkbox" | "radio" => {
                let value = tag.value("value").unwrap_or(Cow::Borrowed("on"));
                let is_sent = |(own, text): &(String, String)| *own == name && *text == *value;
                let is_checked = self.rejected.fields.iter().any(is_sent);
                if is_checked != tag.has("checked") {
                    changes.push(("checked", is_checked.then_some("".into())));
                }
            }
            _ => {
                if let Some(value) = self.next_value(name) {
                    changes.push(("value", Some(value.into())));
                }
            }
        }
    }

    /// The next value of this name that no earlier field displays.
    fn next_value(&mut self, name: &str) -> Option<String> {
        let mut values = self.rejected.fields.iter().filter(|(own, _)| *own == name);
        let used = self.used.entry(name.to_owned()).or_default();
        let value = values.nth(*used).map(|(_, value)| value.clone());
        *used += 1;
        value
    }

    fn fill_textarea(&mut self, tag: &Tag<'p>) {
        let Some(name) = tag.value("name").filter(|_| !tag.has("disabled")) else { return };
        let Some(value) = self.next_value(&name) else { return };
        self.copy_to(tag.place.end);
        // A browser drops a line feed after the start tag.
        self.out.push('\n');
        escape(&with_line_feeds(&value), &mut self.out);
        let rest = &self.page[tag.place.end..];
        let ends = rest.match_indices("</").map(|(place, _)| place);
        let is_own = |place: &usize| {
            let name = rest.get(place + 2..place + 10);
            name.is_some_and(|name| name.eq_ignore_ascii_case("textarea"))
        };
        self.copied = tag.place.end + { ends }.find(is_own).unwrap_or(rest.len());
    }

    fn select_option(
        &self,
        tag: &Tag<'p>,
        changes: &mut Vec<(&'static str, Option<Cow<'p, str>>)>,
    ) {
        let Some(values) = &self.selected else { return };
        let value = tag.value("value").map_or_else(
            || {
                let rest = &self.page[tag.place.end..];
                let text = decoded(rest.split('<').next().unwrap_or_default());
                text.split_whitespace().collect::<Vec<_>>().join(" ")
            },
            Cow::into_owned,
        );
        let is_selected = values.contains(&value);
        if is_selected != tag.has("selected") {
            changes.push(("selected", is_selected.then_some("".into())));
        }
    }

    fn end_element(&mut self, tag: &Tag<'_>) {
        if tag.is("label") {
            self.label_depth = self.label_depth.saturating_sub(1);
        }
        if tag.is("select") {
            self.selected = None;
        }
        if ["label", "select", "textarea", "button"].iter().any(|name| tag.is(name)) {
            self.put_notes();
        }
    }

    /// Writes the notes after a field, or after the label around it.
    fn put_notes(&mut self) {
        if self.label_depth == 0 {
            self.out.push_str(&std::mem::take(&mut self.pending));
        }
    }

    /// Writes the messages without a field at the end of the form.
    fn end_form(&mut self) {
        self.label_depth = 0;
        self.put_notes();
        let left = self.rejected.errors.iter().zip(&self.written).filter(|(_, written)| !**written);
        let left: Vec<_> =
            left.map(|(error, _)| format!("{}: {}", error.label, error.text)).collect();
        let text = if self.rejected.errors.is_empty() {
            self.rejected.message.to_owned()
        } else {
            left.join(" ")
        };
        if !text.is_empty() {
            let is_first = self.first_with_field().is_none();
            self.out.push_str(&note("invalid-0", &text, self.is_in_paragraph, is_first));
        }
    }
}

/// A message. A paragraph cannot be in a paragraph.
fn note(id: &str, text: &str, is_in_paragraph: bool, has_focus: bool) -> String {
    let element = if is_in_paragraph { "span" } else { "p" };
    let focus = if has_focus { " tabindex=\"-1\" autofocus=\"\"" } else { "" };
    let mut note = format!("<{element} class=\"problem\" role=\"alert\" id=\"{id}\"{focus}>");
    escape(text, &mut note);
    note + &format!("</{element}>")
}

/// The address without a scheme or a host, as a path of this site. `None`: it does not depend on the
/// address of the document.
fn absolute(page: &str, address: &str) -> Option<String> {
    let path = page.split('?').next().unwrap_or_default();
    let has_scheme = address
        .find(|letter: char| !letter.is_ascii_alphanumeric() && !"+-.".contains(letter))
        .is_some_and(|end| address[end..].starts_with(':'));
    match address.as_bytes().first() {
        None => Some(page.to_owned()),
        Some(b'/' | b'\\' | b'#') => None,
        _ if has_scheme || address.starts_with(|letter: char| letter <= ' ') => None,
        Some(b'?') => Some(format!("{path}{address}")),
        _ => {
            let folder = path.rfind('/').map_or("/", |end| &path[..=end]);
            Some(format!("{folder}{address}"))
        }
    }
}

fn with_line_feeds(text: &str) -> Cow<'_, str> {
    if text.contains('\r') { text.replace("\r\n", "\n").into() } else { text.into() }
}

fn escape(text: &str, to: &mut String) {
    for letter in text.chars() {
        match letter {
            '&' => to.push_str("&amp;"),
            '<' => to.push_str("&lt;"),
            '>' => to.push_str("&gt;"),
            '"' => to.push_str("&quot;"),
            '\'' => to.push_str("&#39;"),
            letter => to.push(letter),
        }
    }
}

/// Decodes the character references that the writers of pages produce. Other references stay as
/// they are.
fn decoded(text: &str) -> Cow<'_, str> {
    if !text.contains('&') {
        return text.into();
    }
    let (mut decoded, mut rest) = (String::with_capacity(text.len()), text);
    while let Some(start) = rest.find('&') {
        decoded.push_str(&rest[..start]);
        rest = &rest[start..];
        let reference = rest.find(';').filter(|end| *end <= 10).map(|end| (&rest[1..end], end + 1));
        let letter = reference.and_then(|(name, end)| Some((referenced(name)?, end)));
        let (letter, end) = letter.unwrap_or(('&', 1));
        decoded.push(letter);
        rest = &rest[end..];
    }
    decoded.push_str(rest);
    decoded.into()
}

fn referenced(name: &str) -> Option<char> {
    match name {
        "amp" => Some('&'),
        "lt" => Some('<'),
        "gt" => Some('>'),
        "quot" => Some('"'),
        "apos" => Some('\''),
        "nbsp" => Some('\u{a0}'),
        _ => {
            let number = name.strip_prefix('#')?;
            let code = match number.strip_prefix(['x', 'X']) {
                Some(digits) => u32::from_str_radix(digits, 16),
                None => number.parse(),
            };
            char::from_u32(code.ok()?)
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn returned(page: &str, fields: &[(&str, &str)], errors: &[(&str, &str)]) -> Option<String> {
        let own = |(name, text): &(&str, &str)| ((*name).to_owned(), (*text).to_owned());
        let fields: Vec<_> = fields.iter().map(own).collect();
        let errors = errors.iter().map(|(name, text)| FieldMessage { name, label: name, text });
        let rejected = RejectedForm {
            page: "/a/b?c",
            fields: &fields,
            errors: &errors.collect::<Vec<_>>(),
            message: "no",
            is_own: &|address| address == "/own",
            is_service: &|_| false,
        };
        return_form(page, &rejected)
    }

    #[track_caller]
    fn check(content: &str, fields: &[(&str, &str)], errors: &[(&str, &str)], expected: &str) {
        let page =
            |content: &str| format!("<form method=POST action='/own'>{content}</form>\u{e4}");
        assert_eq!(returned(&page(content), fields, errors), Some(page(expected)));
    }

    #[test]
    fn fills_fields_of_any_spelling() {
        let errors = [("z", "no")];
        let end = "<p class=\"problem\" role=\"alert\" id=\"invalid-0\" tabindex=\"-1\" autofocus=\"\">z: no</p>";
        for (content, expected) in [
            ("<INPUT NAME=a>", "<INPUT NAME=a value=\"1\">"),
            ("<input name='a' value=\"x\"/>", "<input name='a' value=\"1\" />"),
            ("<input\nname = \"a\" disabled>", "<input\nname = \"a\" disabled>"),
            (
                "<input name=a><input name=a>",
                "<input name=a value=\"1\"><input name=a value=\"2\">",
            ),
            ("<input name=a type=password>", "<input name=a type=password>"),
            ("<input name=a type=FILE>", "<input name=a type=FILE>"),
            (
                "<input type=radio name=a value=2><input type=radio name=a value=3 checked>",
                "<input type=radio name=a value=2 checked=\"\"><input type=radio name=a value=3>",
            ),
            (
                "<select name=a multiple><option>1<option value='&#x32;'>b<option selected>c</select>",
                "<select name=a multiple><option selected=\"\">1<option value='&#x32;' selected=\"\">b<option>c</select>",
            ),
            ("<textarea name=a>\n<input name=a></TEXTAREA>", "<textarea name=a>\n1</TEXTAREA>"),
            ("<!-- <input name=a> -->", "<!-- <input name=a> -->"),
            ("<script>'<input name=a>'</script>", "<script>'<input name=a>'</script>"),
            ("<a href=x>1</a> < b", "<a href=\"/a/x\">1</a> < b"),
        ] {
            check(content, &[("a", "1"), ("a", "2")], &errors, &format!("{expected}{end}"));
        }
    }

    #[test]
    fn puts_messages_after_the_label_of_their_field() {
        check(
            "<label>A <select name=a><option>1</select></label> <label>B <input name=b></label>",
            &[("a", "1")],
            &[("b", "<b>"), ("b", "c")],
            "<label>A <select name=a><option selected=\"\">1</select></label> <label>B <input name=b autofocus=\"\" aria-invalid=\"true\" aria-describedby=\"invalid-1 invalid-2\"></label><p class=\"problem\" role=\"alert\" id=\"invalid-1\">&lt;b&gt;</p><p class=\"problem\" role=\"alert\" id=\"invalid-2\">c</p>",
        );
        check(
            "<textarea name=a></textarea>",
            &[],
            &[("a", "b")],
            "<textarea name=a autofocus=\"\" aria-invalid=\"true\" aria-describedby=\"invalid-1\"></textarea><p class=\"problem\" role=\"alert\" id=\"invalid-1\">b</p>",
        );
    }

    #[test]
    fn returns_no_page_without_the_form() {
        for page in [
            "",
            "<form method=post action=/other><input name=a></form>",
            "<form action=/own></form>",
            "<form method=post action=/own>",
            "<form method=post action=/own><input type=hidden name=a value=2></form>",
            "<textarea><form method=post action=/own></form></textarea>",
        ] {
            assert_eq!(returned(page, &[("a", "1")], &[]), None, "{page}");
        }
        let button = "<form method=post action=/other><button formaction=/own></button></form>";
        assert!(returned(button, &[], &[]).is_some());
    }

    #[test]
    fn relative_addresses_refer_to_the_page() {
        for (address, expected) in [
            ("", Some("/a/b?c")),
            ("?d", Some("/a/b?d")),
            ("d/e", Some("/a/d/e")),
            ("../d", Some("/a/../d")),
            ("d:e", None),
            ("/d", None),
            ("//d", None),
            ("#d", None),
            ("https://d", None),
        ] {
            assert_eq!(absolute("/a/b?c", address).as_deref(), expected, "{address}");
        }
    }

    proptest! {
        #[test]
        fn edits_any_page_without_markup_from_its_values(
            parts in prop::collection::vec(
                prop_oneof![
                    Just("<"), Just(">"), Just("</"), Just("/>"), Just("="), Just("\""), Just("'"), Just(" "),
                    Just("input"), Just("name=a"), Just("textarea"), Just("</textarea>"), Just("<!--"), Just("-->"),
                    Just("<select name=a>"), Just("<option>"), Just("&amp;"), Just("&#9999999;"), Just("\u{e4}"),
                    Just("<form method=post action=/own>"), Just("</form>"), Just("<label>"), Just("</label>"),
                ],
                0..30,
            ),
            value in ".{0,8}",
        ) {
            let content = parts.concat();
            let value = format!("<x>{value}\"'");
            for page in [content.clone(), format!("<form method=post action=/own>{content}</form>")] {
                if let Some(page) = returned(&page, &[("a", &value)], &[("a", &value)]) {
                    prop_assert!(!page.contains("<x>"));
                }
            }
        }
    }
}

//! Reads form fields as arguments.

use std::fmt;
use std::ops::Deref;

use bine_html::{Attribute, AttributeValue, Render, Writer};
use bine_server::{self as server, Incoming};

#[cfg(feature = "script")]
use super::Upload;
use super::multipart::{self, BodySource, SpooledBody};
use super::wrapped::{one_of_pairs, reads_like_its_value, texts, value};
use super::{FromRequest, FromText, MOST_BODY, Needs, Rejection, RequestParts};
use crate::visitor_message::VisitorMessage;

/// An argument from the form field of its name: `body: Form<Text>` is the text of `<textarea
/// name="body">`.
///
/// Both encodings of forms work: url-encoded and `enctype="multipart/form-data"`. `Form<Option<T>>`
/// may be missing; any other type is required. If the field occurs more than once, the first one
/// counts.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Form<T>(pub T);

reads_like_its_value!(Form);

impl<T: FromText> FromRequest for Form<T> {
    fn from_request(request: &mut RequestParts<'_>, name: &'static str) -> Result<Self, Rejection> {
        let kind = request.incoming.head.field_text("content-type").unwrap_or_default();
        let boundary = multipart::boundary(kind);
        let body = match (request.incoming.body, &boundary) {
            // A form with files may be long; its text fields are not.
            (server::Body::OnDisk(spool), Some(boundary)) => {
                return from_part(boundary, SpooledBody::new(spool), name).map(Self);
            }
            _ => request.body(name)?,
        };
        if let Some(boundary) = &boundary {
            return from_part(boundary, &*body, name).map(Self);
        }
        if !body.is_empty() && !is_urlencoded(kind) {
            return Err(Rejection::invalid(name, VisitorMessage::NoForm {}));
        }
        let text = str::from_utf8(&body)
            .map_err(|_| Rejection::invalid(name, VisitorMessage::NotUtf8 {}))?;
        one_of_pairs(text, name, "form").map(Self)
    }

    fn needs(needs: &mut Needs) {
        needs.body(MOST_BODY);
        needs.form = true;
    }
}

/// All fields of a form that is in memory, as names and texts in the order sent.
///
/// # Errors
///
/// Returns the reason, as a sentence.
pub(crate) fn fields(kind: &str, body: &[u8]) -> Result<Vec<(String, String)>, String> {
    let Some(boundary) = multipart::boundary(kind) else {
        let text = str::from_utf8(body).map_err(|_| "the form is not UTF-8 text")?;
        return texts(text, "form");
    };
    let mut parts =
        multipart::Parts::new(&boundary, body).map_err(|reason| format!("the form {reason}"))?;
    let mut fields = Vec::new();
    while let Some(part) = parts.next() {
        let part = part.map_err(|reason| format!("the form {reason}"))?;
        if part.file_name.as_deref().is_some_and(|name| !name.is_empty()) {
            return Err(format!("`{}` is a file: a page takes it, as `Upload`", part.name));
        }
        let content = parts.content(&part).expect("it is in memory");
        let text =
            str::from_utf8(content).map_err(|_| format!("`{}` is not UTF-8 text", part.name))?;
        fields.push((part.name, text.to_owned()));
    }
    Ok(fields)
}

/// All texts and files of a form with files that is in memory, each by the name of its field. `None`: it
/// is no form with files.
#[cfg(feature = "script")]
pub(crate) fn fields_and_files(kind: &str, body: &[u8]) -> Option<Result<TextsAndFiles, String>> {
    let boundary = multipart::boundary(kind)?;
    Some(read_parts(&boundary, body).map_err(|reason| format!("the form {reason}")))
}

/// The texts and the files of a form.
#[cfg(feature = "script")]
type TextsAndFiles = (Vec<(String, String)>, Vec<(String, Upload)>);

#[cfg(feature = "script")]
fn read_parts(boundary: &str, body: &[u8]) -> Result<TextsAndFiles, String> {
    let mut parts = multipart::Parts::new(boundary, body)?;
    let (mut fields, mut files, mut left) = (Vec::new(), Vec::new(), MOST_BODY);
    while let Some(part) = parts.next() {
        let part = part?;
        let content = parts.content(&part).map_err(|error| error.to_string())?;
        if part.file_name.is_some() {
            files.extend(Upload::of_part(&part, content).map(|file| (part.name, file)));
            continue;
        }
        // Texts have the limit that they have in a form without files.
        let length = content.len() as u64;
        left = left.checked_sub(length).ok_or("has more than a mebibyte of text")?;
        let text = str::from_utf8(content)
            .map_err(|_| format!("has `{}`, which is not UTF-8 text", part.name))?;
        fields.push((part.name, text.to_owned()));
    }
    Ok((fields, files))
}

/// The texts of a form, without its files, as names and texts in the order sent. `None`: the content
/// is no form that can be read, or its texts are too long.
pub(crate) fn text_fields(request: &Incoming<'_>) -> Option<Vec<(String, String)>> {
    let kind = request.head.field_text("content-type").unwrap_or_default();
    let boundary = multipart::boundary(kind);
    match (request.body, boundary) {
        (server::Body::OnDisk(spool), Some(boundary)) => {
            text_parts(&boundary, SpooledBody::new(spool))
        }
        (server::Body::InMemory(bytes), Some(boundary)) => text_parts(&boundary, bytes),
        (server::Body::InMemory(bytes), None) if is_urlencoded(kind) => {
            texts(str::from_utf8(bytes).ok()?, "form").ok()
        }
        (server::Body::None, None) => Some(Vec::new()),
        _ => None,
    }
}

fn text_parts(boundary: &str, body: impl BodySource) -> Option<Vec<(String, String)>> {
    let mut parts = multipart::Parts::new(boundary, body).ok()?;
    let (mut fields, mut left) = (Vec::new(), MOST_BODY);
    while let Some(part) = parts.next() {
        let part = part.ok()?;
        if part.file_name.is_some() {
            continue;
        }
        left = left.checked_sub(part.content.end - part.content.start)?;
        let text = str::from_utf8(parts.content(&part).ok()?).ok()?.to_owned();
        fields.push((part.name, text));
    }
    Some(fields)
}

/// The value of the part called `name`.
fn from_part<T: FromText>(
    boundary: &str,
    body: impl BodySource,
    name: &'static str,
) -> Result<T, Rejection> {
    let mut parts = multipart::parts(boundary, body, name)?;
    let Some(part) = multipart::find_part(&mut parts, name)? else {
        return value(name, None, "form");
    };
    if part.content.end - part.content.start > MOST_BODY {
        return Err(Rejection::invalid(name, VisitorMessage::TooLong {}));
    }
    let content = parts.content(&part).map_err(|error| {
        Rejection::invalid(name, VisitorMessage::Unreadable { reason: error.to_string() })
    })?;
    let text = str::from_utf8(content)
        .map_err(|_| Rejection::invalid(name, VisitorMessage::NotUtf8 {}))?;
    value(name, Some(text), "form")
}

fn is_urlencoded(kind: &str) -> bool {
    let kind = kind.split(';').next().unwrap_or_default().trim();
    kind.eq_ignore_ascii_case("application/x-www-form-urlencoded")
}

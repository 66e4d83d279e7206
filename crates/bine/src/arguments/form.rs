//! Decides how the fields and files of a form reach a handler.

use std::io;
use std::path::Path;

use bine_http::query;
use bine_pipeline as pipeline;

use super::multipart::{self, Part, Parts};
use super::wrapped::value;
use super::{Argument, Arguments, FromText, Needs, Rejection};
use crate::request::MOST_BODY;

/// The most bytes of a form with files.
const MOST_UPLOAD: u64 = 16 << 20;

/// An argument from a form's field of its name: `body: Form<Text>` takes what stands in
/// `<textarea name="body">`.
///
/// Forms come url-encoded or in parts (`enctype="multipart/form-data"`). `Form<Option<T>>` may be missing; any
/// other must be there, and the first one counts.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Form<T>(pub T);

/// A file from a form's field of its name: `picture: Upload` takes what was chosen in
/// `<input type="file" name="picture">`, in a form with `enctype="multipart/form-data"`.
///
/// `Option<Upload>` may be missing, as it is when no file was chosen. A form with files has at most 16 MiB.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Upload {
    file_name: String,
    media_type: String,
    content: Vec<u8>,
}

impl Upload {
    /// The last part of the name that the file has where it comes from, or nothing. It is the peer's word: use
    /// it to show, not as the name of a file of yours.
    pub fn file_name(&self) -> &str {
        &self.file_name
    }

    /// What the peer says it is, or `application/octet-stream`.
    pub fn media_type(&self) -> &str {
        &self.media_type
    }

    /// All of it.
    pub fn content(&self) -> &[u8] {
        &self.content
    }

    /// Writes it to a new file. It blocks: a page that saves is a plain `fn`, or calls this in
    /// [`blocking`](crate::blocking).
    ///
    /// # Errors
    ///
    /// There is such a file already, or it cannot be written.
    pub fn save(&self, path: impl AsRef<Path>) -> io::Result<()> {
        io::Write::write_all(&mut std::fs::File::create_new(path)?, &self.content)
    }
}

impl<T: FromText> Argument for Form<T> {
    fn take(request: &mut Arguments<'_>, name: &'static str) -> Result<Self, Rejection> {
        let body = body(request)?;
        let kind = request.incoming.head.field_text("content-type").unwrap_or_default();
        if let Some(boundary) = multipart::boundary(kind) {
            let part = find_part(&boundary, body, name)?;
            let text = part.map(|part| str::from_utf8(part.content)).transpose();
            let text = text.map_err(|_| Rejection::bad(name, "is not UTF-8 text"))?;
            return value(name, text, "form").map(Self);
        }
        if !body.is_empty() && !is_urlencoded(kind) {
            return Err(Rejection::bad(name, "is missing: the body is not a form"));
        }
        let text = str::from_utf8(body).map_err(|_| Rejection::bad(name, "is in no text"))?;
        let found = query::pairs(text).find(|(key, _)| key.is(name)).map(|(_, value)| value);
        let text = found.map(|value| value.decode()).transpose();
        let text = text.map_err(|_| Rejection::bad(name, "is not encoded UTF-8 text"))?;
        value(name, text.as_deref(), "form").map(Self)
    }

    fn needs(needs: &mut Needs) {
        needs.body(MOST_BODY);
    }
}

impl Argument for Option<Upload> {
    fn take(request: &mut Arguments<'_>, name: &'static str) -> Result<Self, Rejection> {
        let body = body(request)?;
        let kind = request.incoming.head.field_text("content-type").unwrap_or_default();
        let Some(boundary) = multipart::boundary(kind) else {
            let reason = "is missing: send the form as `multipart/form-data`";
            return Err(Rejection::bad(name, reason));
        };
        let part = find_part(&boundary, body, name)?;
        // Without a choice browsers send a part without a name and without content.
        let part =
            part.filter(|part| part.file_name.as_deref() != Some("") || !part.content.is_empty());
        Ok(part.map(|part| Upload {
            file_name: base_name(part.file_name.as_deref().unwrap_or_default()),
            media_type: part.media_type.unwrap_or("application/octet-stream").to_owned(),
            content: part.content.to_vec(),
        }))
    }

    fn needs(needs: &mut Needs) {
        needs.body(MOST_UPLOAD);
    }
}

impl Argument for Upload {
    fn take(request: &mut Arguments<'_>, name: &'static str) -> Result<Self, Rejection> {
        let upload = <Option<Self> as Argument>::take(request, name)?;
        upload.ok_or_else(|| Rejection::bad(name, "is missing from the form"))
    }

    fn needs(needs: &mut Needs) {
        <Option<Self> as Argument>::needs(needs);
    }
}

fn body<'a>(request: &Arguments<'a>) -> Result<&'a [u8], Rejection> {
    match request.incoming.body {
        pipeline::Body::None => Ok(b""),
        // The route knows how much all its arguments take.
        pipeline::Body::Coming => Err(Rejection::NeedsBody { limit: MOST_BODY }),
        pipeline::Body::Here(bytes) => Ok(bytes),
    }
}

fn find_part<'b>(
    boundary: &str,
    body: &'b [u8],
    name: &'static str,
) -> Result<Option<Part<'b>>, Rejection> {
    let wrong =
        |reason: &str| Rejection::bad(name, format!("is not to be found: the form {reason}"));
    for part in Parts::new(boundary, body).map_err(|reason| wrong(&reason))? {
        let part = part.map_err(wrong)?;
        if part.name == name {
            return Ok(Some(part));
        }
    }
    Ok(None)
}

fn is_urlencoded(kind: &str) -> bool {
    let kind = kind.split(';').next().unwrap_or_default().trim();
    kind.eq_ignore_ascii_case("application/x-www-form-urlencoded")
}

/// Some programs send a whole path, with the separators of their own system.
fn base_name(name: &str) -> String {
    let base = name.rsplit(['/', '\\']).next().unwrap_or_default();
    base.chars().filter(|letter| !letter.is_control()).collect()
}

#[cfg(test)]
mod tests {
    use super::base_name;

    #[test]
    fn of_a_path_the_last_part_is_kept() {
        assert_eq!(base_name("/etc/passwd"), "passwd");
        assert_eq!(base_name("C:\\fakepath\\a b.txt"), "a b.txt");
        assert_eq!(base_name("../.."), "..");
        assert_eq!(base_name("a\r\nb\0"), "ab");
    }
}

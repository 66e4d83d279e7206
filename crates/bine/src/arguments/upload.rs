//! Decides how a file from a form reaches a handler: from memory while it is short, from disk when it is not.

use std::borrow::Cow;
use std::fs::{self, File};
use std::io::{self, Read};
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use bine_server::{self as server, Spool};

use super::multipart::{self, Filed, Part, Parts, Source};
use super::{Argument, Arguments, Needs, Rejection};

/// The most bytes of a form with files in memory.
const MOST_UPLOAD: u64 = 16 << 20;

/// A file from a form's field of its name: `picture: Upload` takes what was chosen in
/// `<input type="file" name="picture">`, in a form with `enctype="multipart/form-data"`.
///
/// `Option<Upload>` may be missing, as it is when no file was chosen.
///
/// A page that is a plain `fn` takes forms of up to 100 MB (`most-upload`): what is longer than 256 KiB comes by way of
/// a file without a name in the folder for temporary files (`spool`). An `async fn` must not wait for a disk, and takes
/// forms of up to 16 MiB, in memory.
#[derive(Clone, Debug)]
pub struct Upload {
    file_name: String,
    media_type: String,
    content: Content,
}

#[derive(Clone, Debug)]
enum Content {
    Here(Vec<u8>),
    Filed(Arc<Spool>, Range<u64>),
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

    /// Its length in bytes.
    pub const fn length(&self) -> u64 {
        match &self.content {
            Content::Here(bytes) => bytes.len() as u64,
            Content::Filed(_, range) => range.end - range.start,
        }
    }

    /// All of it, in memory.
    ///
    /// # Errors
    ///
    /// The disk does not give it back.
    pub fn content(&self) -> io::Result<Cow<'_, [u8]>> {
        match &self.content {
            Content::Here(bytes) => Ok(Cow::Borrowed(bytes)),
            Content::Filed(spool, range) => {
                let mut bytes = vec![0; self.length() as usize];
                multipart::read_exactly(spool, &mut bytes, range.start)?;
                Ok(Cow::Owned(bytes))
            }
        }
    }

    /// It, from its beginning, a piece at a time. Reading may wait for the disk.
    pub fn reader(&self) -> impl Read + '_ {
        Reader { upload: self, at: 0 }
    }

    /// Writes it to a new file. It blocks: a page that saves is a plain `fn`, or calls this in
    /// [`blocking`](crate::blocking).
    ///
    /// # Errors
    ///
    /// There is such a file already, or it cannot be written; then nothing is left of it.
    pub fn save(&self, path: impl AsRef<Path>) -> io::Result<()> {
        let path = path.as_ref();
        let mut file = File::create_new(path)?;
        let copied = io::copy(&mut self.reader(), &mut file);
        if copied.is_err() {
            // The reason why it could not be written is worth more than why it could not be removed.
            let _ = fs::remove_file(path);
        }
        copied.map(drop)
    }
}

struct Reader<'u> {
    upload: &'u Upload,
    at: u64,
}

impl Read for Reader<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = match &self.upload.content {
            Content::Here(bytes) => (&bytes[self.at as usize..]).read(buffer)?,
            Content::Filed(spool, range) => {
                let left = range.end - range.start - self.at;
                let most = buffer.len().min(usize::try_from(left).unwrap_or(usize::MAX));
                spool.read_at(&mut buffer[..most], range.start + self.at)?
            }
        };
        self.at += count as u64;
        Ok(count)
    }
}

impl Argument for Option<Upload> {
    fn take(request: &mut Arguments<'_>, name: &'static str) -> Result<Self, Rejection> {
        let kind = request.incoming.head.field_text("content-type").unwrap_or_default();
        let boundary = multipart::boundary(kind).ok_or_else(|| {
            Rejection::bad(name, "is missing: send the form as `multipart/form-data`")
        });
        match request.incoming.body {
            // The route knows how much all its arguments take.
            server::Body::Coming => Err(Rejection::NeedsBody { limit: MOST_UPLOAD }),
            server::Body::None => {
                find(&boundary?, &b""[..], name, |_, _| Ok(Content::Here(vec![])))
            }
            server::Body::Here(bytes) => find(&boundary?, bytes, name, |parts, part| {
                Ok(Content::Here(parts.content(part)?.to_vec()))
            }),
            server::Body::Filed(spool) => find(&boundary?, Filed::new(spool), name, |_, part| {
                Ok(Content::Filed(Arc::clone(spool), part.content.clone()))
            }),
        }
    }

    fn needs(needs: &mut Needs) {
        needs.body(MOST_UPLOAD);
        needs.on_disk = true;
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

/// The file in the part called `name`, whose content `content` makes.
fn find<S: Source>(
    boundary: &str,
    body: S,
    name: &'static str,
    content: impl FnOnce(&mut Parts<S>, &Part) -> io::Result<Content>,
) -> Result<Option<Upload>, Rejection> {
    let mut parts = multipart::parts(boundary, body, name)?;
    let Some(part) = multipart::find_part(&mut parts, name)? else { return Ok(None) };
    // Without a choice browsers send a part without a name and without content.
    if part.file_name.as_deref() == Some("") && part.content.is_empty() {
        return Ok(None);
    }
    let content = content(&mut parts, &part)
        .map_err(|error| Rejection::bad(name, format!("could not be read again: {error}")))?;
    Ok(Some(Upload {
        file_name: base_name(part.file_name.as_deref().unwrap_or_default()),
        media_type: part.media_type.unwrap_or_else(|| "application/octet-stream".to_owned()),
        content,
    }))
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

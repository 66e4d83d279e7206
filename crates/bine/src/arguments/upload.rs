//! Uploaded files as arguments: short files in memory, long ones on disk.

use std::borrow::Cow;
use std::fs::{self, File};
use std::io::{self, Read};
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use bine_server::{self as server, Spool};

use super::multipart::{self, BodySource, FormPart, Parts, SpooledBody};
use super::{FromRequest, Needs, Rejection, RequestParts};
use crate::visitor_message::VisitorMessage;

/// The longest form with files that is kept in memory, in bytes.
pub(crate) const MAX_UPLOAD: u64 = 16 << 20;

/// A file from the form field of its name: `picture: Upload` is the file chosen in `<input
/// type="file" name="picture">`, in a form with `enctype="multipart/form-data"`.
///
/// `Option<Upload>` may be missing, as it is when no file was chosen.
///
/// A page that is a plain `fn` accepts forms of up to 100 MB (`most-upload`). The server stores
/// forms longer than 256 KiB in an unnamed file in the folder for temporary files (`spool`). An
/// `async fn` must not block on a disk; it accepts forms of up to 16 MiB, in memory.
#[derive(Clone, Debug)]
pub struct Upload {
    file_name: String,
    media_type: String,
    content: UploadContent,
}

#[derive(Clone, Debug)]
enum UploadContent {
    /// Clones share the bytes.
    Here(Arc<[u8]>),
    Filed(Arc<Spool>, Range<u64>),
}

impl Upload {
    /// The file in a part of a form that is in memory. `None`: the part is a text, or no file was
    /// chosen.
    #[cfg(feature = "script")]
    pub(super) fn of_part(part: &FormPart, content: &[u8]) -> Option<Self> {
        let name = part.file_name.as_deref()?;
        // If no file was chosen, browsers send a part with an empty file name and no content.
        (!name.is_empty() || !content.is_empty()).then(|| Self {
            file_name: base_name(name),
            media_type: media_type_of(part),
            content: UploadContent::Here(content.into()),
        })
    }

    /// The last component of the file's name on the client, or an empty string. The client may send
    /// any name: display it, but do not use it as the name of a file on the server.
    pub fn file_name(&self) -> &str {
        &self.file_name
    }

    /// The media type that the client sent, or `application/octet-stream`.
    pub fn media_type(&self) -> &str {
        &self.media_type
    }

    /// The length in bytes.
    pub fn length(&self) -> u64 {
        match &self.content {
            UploadContent::Here(bytes) => bytes.len() as u64,
            UploadContent::Filed(_, range) => range.end - range.start,
        }
    }

    /// The whole content, in memory.
    ///
    /// # Errors
    ///
    /// The file cannot be read back from disk.
    pub fn content(&self) -> io::Result<Cow<'_, [u8]>> {
        match &self.content {
            UploadContent::Here(bytes) => Ok(Cow::Borrowed(bytes)),
            UploadContent::Filed(spool, range) => {
                let mut bytes = vec![0; self.length() as usize];
                multipart::read_exactly(spool, &mut bytes, range.start)?;
                Ok(Cow::Owned(bytes))
            }
        }
    }

    /// A reader from the start of the content. Reading may block on the disk.
    pub fn reader(&self) -> impl Read + '_ {
        UploadReader { upload: self, at: 0 }
    }

    /// Writes the content to a new file. This blocks: a page that saves is a plain `fn`, or calls
    /// this in [`blocking`](crate::blocking).
    ///
    /// # Errors
    ///
    /// The file exists already, or it cannot be written. After a failed write the partial file is
    /// removed.
    pub fn save(&self, path: impl AsRef<Path>) -> io::Result<()> {
        let path = path.as_ref();
        let mut file = File::create_new(path)?;
        let copied = io::copy(&mut self.reader(), &mut file);
        if copied.is_err() {
            // The error of the write is more useful than that of the removal.
            let _ = fs::remove_file(path);
        }
        copied.map(drop)
    }
}

struct UploadReader<'u> {
    upload: &'u Upload,
    at: u64,
}

impl Read for UploadReader<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = match &self.upload.content {
            UploadContent::Here(bytes) => (&bytes[self.at as usize..]).read(buffer)?,
            UploadContent::Filed(spool, range) => {
                let left = range.end - range.start - self.at;
                let most = buffer.len().min(usize::try_from(left).unwrap_or(usize::MAX));
                spool.read_at(&mut buffer[..most], range.start + self.at)?
            }
        };
        self.at += count as u64;
        Ok(count)
    }
}

impl FromRequest for Option<Upload> {
    fn from_request(request: &mut RequestParts<'_>, name: &'static str) -> Result<Self, Rejection> {
        let kind = request.incoming.head.field_text("content-type").unwrap_or_default();
        let boundary = multipart::boundary(kind)
            .ok_or_else(|| Rejection::invalid(name, VisitorMessage::NoFileForm {}));
        match request.incoming.body {
            // The route adds up the limits of all arguments.
            server::Body::Pending => Err(Rejection::NeedsBody { limit: MAX_UPLOAD }),
            server::Body::None => {
                find(&boundary?, &b""[..], name, |_, _| Ok(UploadContent::Here(Arc::default())))
            }
            server::Body::InMemory(bytes) => find(&boundary?, bytes, name, |parts, part| {
                Ok(UploadContent::Here(parts.content(part)?.into()))
            }),
            server::Body::OnDisk(spool) => {
                find(&boundary?, SpooledBody::new(spool), name, |_, part| {
                    Ok(UploadContent::Filed(Arc::clone(spool), part.content.clone()))
                })
            }
        }
    }

    fn needs(needs: &mut Needs) {
        needs.body(MAX_UPLOAD);
        needs.form = true;
        needs.on_disk = true;
    }
}

impl FromRequest for Upload {
    fn from_request(request: &mut RequestParts<'_>, name: &'static str) -> Result<Self, Rejection> {
        let upload = <Option<Self> as FromRequest>::from_request(request, name)?;
        upload.ok_or_else(|| {
            Rejection::invalid(name, VisitorMessage::MissingFrom { place: "form".to_owned() })
        })
    }

    fn needs(needs: &mut Needs) {
        <Option<Self> as FromRequest>::needs(needs);
    }
}

/// The file in the part called `name`; `content` reads it.
fn find<S: BodySource>(
    boundary: &str,
    body: S,
    name: &'static str,
    content: impl FnOnce(&mut Parts<S>, &FormPart) -> io::Result<UploadContent>,
) -> Result<Option<Upload>, Rejection> {
    let mut parts = multipart::parts(boundary, body, name)?;
    let Some(part) = multipart::find_part(&mut parts, name)? else { return Ok(None) };
    // If no file was chosen, browsers send a part with an empty file name and no content.
    if part.file_name.as_deref() == Some("") && part.content.is_empty() {
        return Ok(None);
    }
    let content = content(&mut parts, &part).map_err(|error| {
        Rejection::invalid(name, VisitorMessage::Unreadable { reason: error.to_string() })
    })?;
    Ok(Some(Upload {
        file_name: base_name(part.file_name.as_deref().unwrap_or_default()),
        media_type: media_type_of(&part),
        content,
    }))
}

fn media_type_of(part: &FormPart) -> String {
    part.media_type.clone().unwrap_or_else(|| "application/octet-stream".to_owned())
}

/// Removes the directories: some programs send a whole path, with the separators of their own
/// system.
fn base_name(name: &str) -> String {
    let base = name.rsplit(['/', '\\']).next().unwrap_or_default();
    base.chars().filter(|letter| !letter.is_control()).collect()
}

#[cfg(test)]
mod tests {
    use super::{Upload, UploadContent, base_name};

    #[test]
    fn shares_the_content_in_memory_with_its_clones() {
        let (file_name, media_type) = ("a.txt".to_owned(), "text/plain".to_owned());
        let content = UploadContent::Here(b"hops".as_slice().into());
        let upload = Upload { file_name, media_type, content };
        let clone = upload.clone();
        assert_eq!(clone.content().unwrap().as_ptr(), upload.content().unwrap().as_ptr());
        assert_eq!(&*clone.content().unwrap(), b"hops");
    }

    #[test]
    fn keeps_the_last_component_of_a_path() {
        assert_eq!(base_name("/etc/passwd"), "passwd");
        assert_eq!(base_name("C:\\fakepath\\a b.txt"), "a b.txt");
        assert_eq!(base_name("../.."), "..");
        assert_eq!(base_name("a\r\nb\0"), "ab");
    }
}

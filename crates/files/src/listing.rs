//! Lists the entries of a directory without an index, where listings are enabled.

use std::ffi::CStr;
use std::fmt::Write as _;
use std::io;
use std::sync::Arc;

use bine_http::{Date, Status};
use bine_log as log;
use bine_server::{Clock, Done, Outgoing, Retained, Work};
use rustix::fs::{AtFlags, Dir, FileType, statat};

use crate::location;
use crate::name;
use crate::response::Responder;
use crate::root::{Found, Root};
use crate::rules::Rules;

/// The maximum number of entries in a listing.
const MAX_ENTRIES: usize = 10_000;

/// A directory listing. A worker thread creates it, because reading a directory waits for the disk.
pub(crate) struct Listing {
    pub(crate) root: Arc<Root>,
    pub(crate) rules: Arc<Rules>,
    /// The decoded path, which begins and ends with a slash.
    pub(crate) path: String,
}

impl Work for Listing {
    fn run(&self, request: &Retained, clock: &Clock, out: &mut Outgoing<'_>) -> Done {
        let request = request.incoming();
        let exchange = request.exchange;
        let mut responder = Responder {
            buffer: out.buffer,
            exchange,
            head: Some(request.head),
            date: clock.date(),
        };
        let directory = name::resolve(&self.path, self.rules.hidden)
            .ok_or_else(|| io::Error::from(io::ErrorKind::NotFound))
            .and_then(|name| self.read(name));
        match directory {
            Ok(directory) => {
                let page = page(&self.path, &directory);
                let mut reply = responder.start(Status::OK);
                reply.static_lines("Content-Type: text/html; charset=utf-8\r\n");
                reply.whole(page.as_bytes());
            }
            Err(error) => {
                // The directory existed when the request was received.
                log::warn(format_args!("cannot list {:?}: {error}", self.path));
                responder.start(Status::NOT_FOUND).empty();
            }
        }
        Done { follow: None, close: !exchange.keep_alive }
    }

    fn name(&self) -> &'static str {
        "a listing"
    }
}

/// The entries of a directory.
struct Directory {
    entries: Vec<Entry>,
    /// Whether the directory has more entries.
    is_truncated: bool,
}

struct Entry {
    name: String,
    is_directory: bool,
    length: u64,
    /// The time of the last modification, in seconds since 1970.
    modified: u64,
}

impl Listing {
    /// Reads the entries: directories first, each kind by name.
    fn read(&self, path: &str) -> io::Result<Directory> {
        let directory = self.root.directory(path)?;
        let mut entries = Vec::new();
        let mut is_truncated = false;
        for entry in Dir::read_from(&directory)? {
            let entry = entry?;
            // A name that is not UTF-8 has no URL here.
            let Ok(name) = entry.file_name().to_str() else { continue };
            if !self.is_shown(path, name) {
                continue;
            }
            if entries.len() == MAX_ENTRIES {
                is_truncated = true;
                break;
            }
            entries.extend(self.entry(&directory, path, entry.file_name(), name));
        }
        entries.sort_by_cached_key(|entry| {
            (!entry.is_directory, entry.name.to_lowercase(), entry.name.clone())
        });
        Ok(Directory { entries, is_truncated })
    }

    fn is_shown(&self, directory: &str, name: &str) -> bool {
        let full_path = ["/", directory, name].concat();
        name::resolve(&full_path, self.rules.hidden).is_some()
    }

    /// Returns an entry, or `None` if it is neither a file nor a directory, or a link out of the
    /// root.
    fn entry(
        &self,
        directory: impl std::os::fd::AsFd,
        path: &str,
        file_name: &CStr,
        name: &str,
    ) -> Option<Entry> {
        let state = statat(directory, file_name, AtFlags::SYMLINK_NOFOLLOW).ok()?;
        let mut entry = Entry {
            name: name.to_owned(),
            is_directory: false,
            length: u64::try_from(state.st_size).unwrap_or(0),
            modified: u64::try_from(state.st_mtime).unwrap_or(0),
        };
        match FileType::from_raw_mode(state.st_mode) {
            FileType::RegularFile => {}
            FileType::Directory => entry.is_directory = true,
            FileType::Symlink => match self.root.lookup(&[path, name].concat()).ok()? {
                Found::File(_, metadata, _) => entry.length = metadata.len(),
                Found::Directory | Found::Unindexed => entry.is_directory = true,
            },
            _ => return None,
        }
        Some(entry)
    }
}

const STYLE: &str = "body{font:1rem/1.5 system-ui,sans-serif;margin:0 auto;max-width:56rem;padding:1rem;color:#1c2b21;background:#fbfdf9}\
h1{font-size:1.3rem;overflow-wrap:anywhere}table{border-collapse:collapse;width:100%}\
td{padding:.35rem .5rem;border-top:1px solid #dfe8dc;white-space:nowrap}td:first-child{width:100%;white-space:normal;overflow-wrap:anywhere}\
.n{text-align:right;font-variant-numeric:tabular-nums;color:#54665a}a{color:#1f6b3a;text-decoration:none}a:hover{text-decoration:underline}\
@media(max-width:32rem){td:last-child{display:none}}\
@media(prefers-color-scheme:dark){body{color:#dce7de;background:#131a15}td{border-color:#2a372e}.n{color:#93a699}a{color:#7fd09a}}";

fn page(path: &str, directory: &Directory) -> String {
    let mut page = String::with_capacity(512 + directory.entries.len() * 160);
    let heading = escape(path);
    // Writing to a String cannot fail.
    let _ = write!(
        page,
        "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\
         <title>{heading}</title><style>{STYLE}</style></head>\n<body><h1>{heading}</h1>\n<table>\n"
    );
    if path != "/" {
        page.push_str("<tr><td><a href=\"../\">../</a></td><td></td><td></td></tr>\n");
    }
    for entry in &directory.entries {
        let slash = if entry.is_directory { "/" } else { "" };
        let (name, address) = (escape(&entry.name), location::entry_location(&entry.name));
        let length = if entry.is_directory { String::new() } else { format_length(entry.length) };
        let date = Date::at(entry.modified);
        // The date without the weekday, the seconds and the zone of `Sat, 21 Nov 2026 07:01:02
        // GMT`.
        let modified = date.as_str().get(5..22).unwrap_or_default();
        let _ = writeln!(
            page,
            "<tr><td><a href=\"{address}{slash}\">{name}{slash}</a></td>\
             <td class=\"n\">{length}</td><td class=\"n\">{modified}</td></tr>"
        );
    }
    page.push_str("</table>\n");
    if directory.entries.is_empty() {
        page.push_str("<p>There is nothing here.</p>\n");
    }
    if directory.is_truncated {
        let _ = writeln!(page, "<p>There is more: only {MAX_ENTRIES} are shown.</p>");
    }
    page.push_str("</body></html>\n");
    page
}

/// Formats a length in powers of a thousand.
fn format_length(bytes: u64) -> String {
    const UNITS: [&str; 6] = ["kB", "MB", "GB", "TB", "PB", "EB"];
    if bytes < 1000 {
        return format!("{bytes} B");
    }
    let mut tenths = bytes / 100;
    let mut unit = 0;
    while tenths >= 10_000 {
        tenths /= 1000;
        unit += 1;
    }
    format!("{}.{} {}", tenths / 10, tenths % 10, UNITS[unit])
}

fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            _ => out.push(letter),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formats_lengths_with_three_or_four_digits() {
        for (bytes, expected) in [
            (0, "0 B"),
            (999, "999 B"),
            (1000, "1.0 kB"),
            (65_536, "65.5 kB"),
            (999_999, "999.9 kB"),
            (1_000_000, "1.0 MB"),
            (u64::MAX, "18.4 EB"),
        ] {
            assert_eq!(format_length(bytes), expected);
        }
    }

    #[test]
    fn escapes_names_and_links() {
        let entry =
            |name: &str| Entry { name: name.into(), is_directory: false, length: 1, modified: 0 };
        let entries =
            vec![entry("<b>&\"'.txt"), entry("javascript:alert(1)"), entry("a b?#\u{e4}")];
        let page = page("/<i>/", &Directory { entries, is_truncated: false });
        assert!(page.contains("<h1>/&lt;i&gt;/</h1>"));
        assert!(
            page.contains("<a href=\"./%3Cb%3E&amp;%22'.txt\">&lt;b&gt;&amp;&quot;'.txt</a>"),
            "{page}"
        );
        assert!(page.contains("<a href=\"./javascript:alert(1)\">"));
        assert!(page.contains("<a href=\"./a%20b%3F%23%C3%A4\">a b?#\u{e4}</a>"));
        assert!(page.contains("01 Jan 1970 00:00"));
    }
}

//! Decides what a folder without an index shows, where listings are wanted: a page of what is in it.

use std::ffi::CStr;
use std::fmt::Write as _;
use std::io;
use std::sync::Arc;

use bine_http::{Date, Status};
use bine_log as log;
use bine_pipeline::{Clock, Done, Outgoing, Retained, Work};
use rustix::fs::{AtFlags, Dir, FileType, statat};

use crate::answer::Blank;
use crate::location;
use crate::name;
use crate::root::{Found, Root};
use crate::rules::Rules;

/// A folder with more is shown in part.
const MOST: usize = 10_000;

/// The page of a folder. A worker makes it: reading a folder waits for the disk.
pub(crate) struct Listing {
    pub(crate) root: Arc<Root>,
    pub(crate) rules: Arc<Rules>,
    /// Decoded, with slashes at both ends.
    pub(crate) path: String,
}

impl Work for Listing {
    fn run(&self, request: &Retained, clock: &Clock, out: &mut Outgoing<'_>) -> Done {
        let request = request.incoming();
        let (exchange, head, date) = (request.exchange, Some(request.head), clock.date());
        let mut blank = Blank { buffer: out.buffer, exchange, head, date };
        let folder = name::beneath_root(&self.path, self.rules.hidden)
            .ok_or_else(|| io::Error::from(io::ErrorKind::NotFound))
            .and_then(|name| self.read(name));
        match folder {
            Ok(folder) => {
                let page = page(&self.path, &folder);
                let mut reply = blank.begin(Status::OK);
                reply.constant("Content-Type: text/html; charset=utf-8\r\n");
                reply.whole(page.as_bytes());
            }
            Err(error) => {
                // It was there a moment ago.
                log::warn(format_args!("cannot list {:?}: {error}", self.path));
                blank.begin(Status::NOT_FOUND).empty();
            }
        }
        Done { follow: None, close: !exchange.keep_alive }
    }

    fn name(&self) -> &'static str {
        "a listing"
    }
}

/// What is in a folder.
struct Folder {
    entries: Vec<Entry>,
    /// There is more.
    is_cut: bool,
}

struct Entry {
    name: String,
    is_folder: bool,
    length: u64,
    /// Seconds since 1970.
    written: u64,
}

impl Listing {
    /// Folders first, each kind by name.
    fn read(&self, folder: &str) -> io::Result<Folder> {
        let directory = self.root.directory(folder)?;
        let mut entries = Vec::new();
        let mut is_cut = false;
        for entry in Dir::read_from(&directory)? {
            let entry = entry?;
            // What is no UTF-8 has no address here.
            let Ok(name) = entry.file_name().to_str() else { continue };
            if !self.is_shown(folder, name) {
                continue;
            }
            if entries.len() == MOST {
                is_cut = true;
                break;
            }
            entries.extend(self.entry(&directory, folder, entry.file_name(), name));
        }
        entries.sort_by_cached_key(|entry| {
            (!entry.is_folder, entry.name.to_lowercase(), entry.name.clone())
        });
        Ok(Folder { entries, is_cut })
    }

    fn is_shown(&self, folder: &str, name: &str) -> bool {
        let path = ["/", folder, name].concat();
        name::beneath_root(&path, self.rules.hidden).is_some()
    }

    /// `None`: it is neither a file nor a folder, or leads out of the root.
    fn entry(
        &self,
        directory: impl std::os::fd::AsFd,
        folder: &str,
        raw_name: &CStr,
        name: &str,
    ) -> Option<Entry> {
        let state = statat(directory, raw_name, AtFlags::SYMLINK_NOFOLLOW).ok()?;
        let mut entry = Entry {
            name: name.to_owned(),
            is_folder: false,
            length: u64::try_from(state.st_size).unwrap_or(0),
            written: u64::try_from(state.st_mtime).unwrap_or(0),
        };
        match FileType::from_raw_mode(state.st_mode) {
            FileType::RegularFile => {}
            FileType::Directory => entry.is_folder = true,
            FileType::Symlink => match self.root.look(&[folder, name].concat()).ok()? {
                Found::File(_, metadata, _) => entry.length = metadata.len(),
                Found::Directory | Found::Unindexed => entry.is_folder = true,
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

fn page(path: &str, folder: &Folder) -> String {
    let mut page = String::with_capacity(512 + folder.entries.len() * 160);
    let shown = escaped(path);
    // Writing to a String cannot fail.
    let _ = write!(
        page,
        "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\
         <title>{shown}</title><style>{STYLE}</style></head>\n<body><h1>{shown}</h1>\n<table>\n"
    );
    if path != "/" {
        page.push_str("<tr><td><a href=\"../\">../</a></td><td></td><td></td></tr>\n");
    }
    for entry in &folder.entries {
        let slash = if entry.is_folder { "/" } else { "" };
        let (name, address) = (escaped(&entry.name), location::of_entry(&entry.name));
        let length = if entry.is_folder { String::new() } else { length(entry.length) };
        let date = Date::at(entry.written);
        // `Sat, 21 Nov 2026 07:01:02 GMT` without its ends.
        let written = date.as_str().get(5..22).unwrap_or_default();
        let _ = writeln!(
            page,
            "<tr><td><a href=\"{address}{slash}\">{name}{slash}</a></td>\
             <td class=\"n\">{length}</td><td class=\"n\">{written}</td></tr>"
        );
    }
    page.push_str("</table>\n");
    if folder.entries.is_empty() {
        page.push_str("<p>There is nothing here.</p>\n");
    }
    if folder.is_cut {
        let _ = writeln!(page, "<p>There is more: only {MOST} are shown.</p>");
    }
    page.push_str("</body></html>\n");
    page
}

/// As people say it, in powers of a thousand.
fn length(bytes: u64) -> String {
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

fn escaped(text: &str) -> String {
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
    fn a_length_is_told_in_three_or_four_figures() {
        for (bytes, told) in [
            (0, "0 B"),
            (999, "999 B"),
            (1000, "1.0 kB"),
            (65_536, "65.5 kB"),
            (999_999, "999.9 kB"),
            (1_000_000, "1.0 MB"),
            (u64::MAX, "18.4 EB"),
        ] {
            assert_eq!(length(bytes), told);
        }
    }

    #[test]
    fn a_name_is_only_text_and_its_link_only_a_name() {
        let entry =
            |name: &str| Entry { name: name.into(), is_folder: false, length: 1, written: 0 };
        let entries =
            vec![entry("<b>&\"'.txt"), entry("javascript:alert(1)"), entry("a b?#\u{e4}")];
        let page = page("/<i>/", &Folder { entries, is_cut: false });
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

//! The media type of a file, by the extension of its name.

use std::borrow::Cow;

/// One line per extension, sorted by bytes. `cargo xtask media` generates it from a table that is
/// maintained elsewhere.
const TABLE: &str = include_str!("media.types");
/// The maximum length of an extension.
const MAX_EXTENSION: usize = 24;
/// The type for an unknown extension. Browsers store such content and never sniff it as markup.
const DEFAULT_TYPE: &str = "application/octet-stream";

/// Returns the media type of a file name as a Content-Type value.
///
/// Text types include `charset=utf-8`, because older browsers guess otherwise. JSON is UTF-8 by its
/// own rule (RFC 8259 section 8.1), and XML declares its encoding in its first line.
pub fn media_type(name: &str) -> Cow<'static, str> {
    let kind = base_type(name);
    if kind.starts_with("text/") {
        Cow::Owned([kind, "; charset=utf-8"].concat())
    } else {
        Cow::Borrowed(kind)
    }
}

/// Whether files of this type are already compressed, so that no precompressed variant is looked
/// up.
pub(crate) fn is_compressed(name: &str) -> bool {
    let kind = base_type(name);
    let starts_with_any = |words: &[&str]| words.iter().any(|word| kind.starts_with(word));
    let uncompressed =
        ["image/svg+xml", "image/x-icon", "image/bmp", "image/tiff", "audio/wav", "audio/midi"];
    let compressed = [
        "image/",
        "audio/",
        "video/",
        "font/woff",
        "application/zip",
        "application/gzip",
        "application/zstd",
        "application/x-bzip2",
        "application/x-xz",
        "application/x-7z-compressed",
        "application/epub+zip",
        "application/vnd.openxmlformats",
        "application/vnd.oasis",
    ];
    starts_with_any(&compressed) && !starts_with_any(&uncompressed)
}

/// Returns the type without parameters.
fn base_type(name: &str) -> &'static str {
    let file = name.rsplit('/').next().unwrap_or(name);
    let Some((_, extension)) = file.rsplit_once('.') else { return DEFAULT_TYPE };
    let mut lowercase = [0; MAX_EXTENSION];
    let Some(lowercase) = lowercase.get_mut(..extension.len()) else { return DEFAULT_TYPE };
    lowercase.copy_from_slice(extension.as_bytes());
    lowercase.make_ascii_lowercase();
    // The first line of the table is a comment.
    if *lowercase == *b"#" {
        return DEFAULT_TYPE;
    }
    find(lowercase).unwrap_or(DEFAULT_TYPE)
}

/// Searches the lines of the table by bisection.
fn find(extension: &[u8]) -> Option<&'static str> {
    let mut lines = TABLE;
    while !lines.is_empty() {
        let start = lines[..lines.len() / 2].rfind('\n').map_or(0, |end| end + 1);
        let end = lines[start..].find('\n').map_or(lines.len(), |end| start + end + 1);
        let (own, kind) = lines[start..end].trim_end().split_once(' ')?;
        lines = match own.as_bytes().cmp(extension) {
            std::cmp::Ordering::Equal => return Some(kind),
            std::cmp::Ordering::Less => &lines[end..],
            std::cmp::Ordering::Greater => &lines[..start],
        };
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(name: &str, expected: &str) {
        assert_eq!(media_type(name), expected, "{name}");
    }

    #[test]
    fn uses_last_extension_ignoring_case() {
        check("index.html", "text/html; charset=utf-8");
        check("a/b/INDEX.HTM", "text/html; charset=utf-8");
        check("site.min.js", "text/javascript; charset=utf-8");
        check("backup.tar.gz", "application/gzip");
        check("a.json", "application/json");
    }

    #[test]
    fn maps_common_web_extensions() {
        for (names, kind) in [
            ("mjs js", "text/javascript; charset=utf-8"),
            ("css", "text/css; charset=utf-8"),
            ("txt log conf ini diff patch", "text/plain; charset=utf-8"),
            ("md markdown", "text/markdown; charset=utf-8"),
            ("csv", "text/csv; charset=utf-8"),
            ("vtt", "text/vtt; charset=utf-8"),
            ("json map", "application/json"),
            ("webmanifest", "application/manifest+json"),
            ("wasm", "application/wasm"),
            ("xml", "application/xml"),
            ("xhtml", "application/xhtml+xml"),
            ("svg", "image/svg+xml"),
            ("ico cur", "image/x-icon"),
            ("png", "image/png"),
            ("jpg jpeg", "image/jpeg"),
            ("webp", "image/webp"),
            ("avif", "image/avif"),
            ("woff2", "font/woff2"),
            ("ttf", "font/ttf"),
            ("mp4 m4v", "video/mp4"),
            ("webm", "video/webm"),
            ("ts", "video/mp2t"),
            ("m3u8", "application/vnd.apple.mpegurl"),
            ("mp3", "audio/mpeg"),
            ("m4a", "audio/mp4"),
            ("opus oga ogg", "audio/ogg"),
            ("pdf", "application/pdf"),
            ("zip", "application/zip"),
            ("gz tgz", "application/gzip"),
            ("zst", "application/zstd"),
        ] {
            for name in names.split(' ') {
                check(&format!("a.{name}"), kind);
            }
        }
    }

    #[test]
    fn falls_back_to_octet_stream() {
        for name in ["README", "a.", "a.unheard", "a.html/b", "html", "a.html ", "a.#", "a.\u{e4}"]
        {
            check(name, DEFAULT_TYPE);
        }
        check(&format!("a.{}", "x".repeat(100)), DEFAULT_TYPE);
    }

    #[test]
    fn knows_which_types_are_compressed() {
        for name in ["a.png", "a.mp3", "a.mp4", "a.woff2", "a.zip", "a.gz", "a.docx", "a.odt"] {
            assert!(is_compressed(name), "{name}");
        }
        for name in ["a.html", "a.js", "a.svg", "a.ico", "a.bmp", "a.wav", "a.ttf", "a.pdf", "a"] {
            assert!(!is_compressed(name), "{name}");
        }
    }

    #[test]
    fn finds_every_line_of_the_table() {
        let lines = || TABLE.lines().filter_map(|line| line.split_once(' '));
        assert!(lines().map(|(extension, _)| extension.as_bytes()).is_sorted_by(|a, b| a < b));
        let mut count = 0;
        for (extension, kind) in lines().filter(|(extension, _)| *extension != "#") {
            assert_eq!(find(extension.as_bytes()), Some(kind));
            assert!(kind.contains('/') && kind.bytes().all(|byte| byte.is_ascii_graphic()));
            count += 1;
        }
        assert!(count > 1000, "{count} extensions");
    }
}

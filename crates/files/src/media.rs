//! Decides the media type of a file, by the extension of its name.

/// For a name whose extension says nothing: bytes to be stored, never to be sniffed as markup.
const UNKNOWN: &str = "Content-Type: application/octet-stream\r\n";

/// Each type once, as a whole field line, with its extensions in lower case.
macro_rules! types {
    ($($name:literal: $($extension:literal)+;)+) => {
        const TYPES: &[(&str, &[&str])] =
            &[$((concat!("Content-Type: ", $name, "\r\n"), &[$($extension),+]),)+];
    };
}

// Text says its encoding, or older browsers guess; JSON is UTF-8 by its own rule (RFC 8259 section 8.1),
// and XML names its encoding in its first line.
types! {
    "text/html; charset=utf-8": "html" "htm";
    "text/css; charset=utf-8": "css";
    "text/javascript; charset=utf-8": "js" "mjs";
    "text/plain; charset=utf-8": "txt" "text" "log" "conf" "ini" "diff" "patch";
    "text/markdown; charset=utf-8": "md" "markdown";
    "text/csv; charset=utf-8": "csv";
    "text/tab-separated-values; charset=utf-8": "tsv";
    "text/calendar; charset=utf-8": "ics";
    "text/vcard; charset=utf-8": "vcf";
    "text/vtt; charset=utf-8": "vtt";
    "application/json": "json" "map";
    "application/ld+json": "jsonld";
    "application/manifest+json": "webmanifest";
    "application/geo+json": "geojson";
    "application/x-ndjson": "ndjson";
    "application/toml": "toml";
    "application/yaml": "yaml" "yml";
    "application/xml": "xml" "xsl" "xsd";
    "application/xhtml+xml": "xhtml" "xht";
    "application/atom+xml": "atom";
    "application/rss+xml": "rss";
    "application/wasm": "wasm";
    "application/pdf": "pdf";
    "application/epub+zip": "epub";
    "application/rtf": "rtf";
    "application/gzip": "gz" "tgz";
    "application/zip": "zip";
    "application/zstd": "zst";
    "application/x-bzip2": "bz2";
    "application/x-xz": "xz";
    "application/x-tar": "tar";
    "application/x-7z-compressed": "7z";
    "application/vnd.sqlite3": "sqlite";
    "application/vnd.openxmlformats-officedocument.wordprocessingml.document": "docx";
    "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet": "xlsx";
    "application/vnd.openxmlformats-officedocument.presentationml.presentation": "pptx";
    "application/vnd.oasis.opendocument.text": "odt";
    "application/vnd.oasis.opendocument.spreadsheet": "ods";
    "application/vnd.apple.mpegurl": "m3u8";
    "application/dash+xml": "mpd";
    "image/png": "png";
    "image/apng": "apng";
    "image/jpeg": "jpg" "jpeg";
    "image/gif": "gif";
    "image/webp": "webp";
    "image/avif": "avif";
    "image/jxl": "jxl";
    "image/svg+xml": "svg";
    "image/x-icon": "ico" "cur";
    "image/bmp": "bmp";
    "image/tiff": "tif" "tiff";
    "image/heic": "heic";
    "font/woff2": "woff2";
    "font/woff": "woff";
    "font/ttf": "ttf";
    "font/otf": "otf";
    "audio/mpeg": "mp3";
    "audio/mp4": "m4a";
    "audio/aac": "aac";
    "audio/ogg": "ogg" "oga" "opus";
    "audio/flac": "flac";
    "audio/wav": "wav";
    "audio/webm": "weba";
    "audio/midi": "mid" "midi";
    "video/mp4": "mp4" "m4v";
    "video/webm": "webm";
    "video/ogg": "ogv";
    "video/quicktime": "mov";
    "video/x-matroska": "mkv";
    "video/mp2t": "ts";
    "model/gltf+json": "gltf";
    "model/gltf-binary": "glb";
}

/// The media type of a file of this name, as a Content-Type field says it.
pub fn media_type(name: &str) -> &'static str {
    let line = line(name);
    &line["Content-Type: ".len()..line.len() - "\r\n".len()]
}

/// Whether files of this name are as short as they get: nobody packs them again.
pub(crate) fn is_packed(name: &str) -> bool {
    let kind = media_type(name);
    let is_any = |words: &[&str]| words.iter().any(|word| kind.starts_with(word));
    let unpacked =
        ["image/svg+xml", "image/x-icon", "image/bmp", "image/tiff", "audio/wav", "audio/midi"];
    let packed = [
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
    is_any(&packed) && !is_any(&unpacked)
}

/// The Content-Type line for a file of this name. Asked once for each file that is read, so a walk will do.
pub(crate) fn line(name: &str) -> &'static str {
    let file = name.rsplit('/').next().unwrap_or(name);
    let Some((_, extension)) = file.rsplit_once('.') else {
        return UNKNOWN;
    };
    let is_of = |(_, extensions): &&(&str, &[&str])| {
        extensions.iter().any(|known| known.eq_ignore_ascii_case(extension))
    };
    TYPES.iter().find(is_of).map_or(UNKNOWN, |(line, _)| line)
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::{TYPES, UNKNOWN, line};

    fn check(name: &str, expected: &str) {
        assert_eq!(line(name), format!("Content-Type: {expected}\r\n"), "{name}");
    }

    #[test]
    fn the_last_extension_decides_in_any_case() {
        check("index.html", "text/html; charset=utf-8");
        check("a/b/INDEX.HTM", "text/html; charset=utf-8");
        check("site.min.js", "text/javascript; charset=utf-8");
        check("backup.tar.gz", "application/gzip");
        check("a.json", "application/json");
    }

    #[test]
    fn a_name_that_says_nothing_is_bytes() {
        for name in ["README", "a.", "a.unheard", "a.html/b", "html", "a.html "] {
            assert_eq!(line(name), UNKNOWN, "{name}");
        }
    }

    #[test]
    fn every_extension_belongs_to_one_type() {
        let mut seen = HashSet::new();
        for extension in TYPES.iter().flat_map(|(_, extensions)| *extensions) {
            assert!(seen.insert(extension), "{extension} is listed twice");
            assert_eq!(extension.to_ascii_lowercase(), *extension);
        }
    }

    #[test]
    fn text_says_that_it_is_utf_8() {
        for (line, _) in TYPES {
            assert_eq!(line.contains(" text/"), line.contains("; charset=utf-8\r\n"), "{line}");
        }
    }
}

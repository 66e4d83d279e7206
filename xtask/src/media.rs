//! Generates the table of media types by file extension from the npm package `mime-db`.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::process::Command;

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use crate::{paths, process};

/// The npm package with the media types of IANA, Apache and nginx; its version and license.
const PACKAGE: &str = "mime-db";
const VERSION: &str = "1.54.0";
const LICENSE: &str = "MIT";

/// Extensions for which the rating below differs from the type that browsers and servers agree on,
/// or that the package lacks.
const CHOSEN: [(&str, &str); 24] = [
    ("cur", "image/x-icon"),
    ("diff", "text/plain"),
    ("flac", "audio/flac"),
    ("geojson", "application/geo+json"),
    ("ico", "image/x-icon"),
    ("m4a", "audio/mp4"),
    ("m4v", "video/mp4"),
    ("map", "application/json"),
    ("mid", "audio/midi"),
    ("midi", "audio/midi"),
    ("mkv", "video/x-matroska"),
    ("mp3", "audio/mpeg"),
    ("ndjson", "application/x-ndjson"),
    ("opus", "audio/ogg"),
    ("patch", "text/plain"),
    ("rtf", "application/rtf"),
    ("sqlite", "application/vnd.sqlite3"),
    ("tgz", "application/gzip"),
    ("vcf", "text/vcard"),
    ("wav", "audio/wav"),
    ("xml", "application/xml"),
    ("yaml", "application/yaml"),
    ("yml", "application/yaml"),
    ("zst", "application/zstd"),
];

/// Downloads the package and writes `crates/files/src/media.types`.
pub(crate) fn run() -> Result<()> {
    let work = paths::root().join("target/tools/media");
    fs::create_dir_all(&work)?;
    process::run(
        Command::new("npm")
            .args(["pack", "--silent", &format!("{PACKAGE}@{VERSION}")])
            .current_dir(&work),
    )?;
    let archive = format!("{PACKAGE}-{VERSION}.tgz");
    process::run(Command::new("tar").args(["xzf", &archive]).current_dir(&work))?;
    let database = fs::read_to_string(work.join("package/db.json"))?;
    let table = table(&serde_json::from_str(&database)?)?;
    let path = paths::root().join("crates/files/src/media.types");
    fs::write(&path, table).with_context(|| path.display().to_string())?;
    println!("{}", path.display());
    Ok(())
}

/// One line per extension, sorted by the bytes of the extension.
fn table(database: &Value) -> Result<String> {
    let mut best: BTreeMap<&str, (i32, &str)> = BTreeMap::new();
    for (kind, facts) in database.as_object().context("the table is an object")? {
        let extensions = facts["extensions"].as_array().map_or(&[][..], Vec::as_slice);
        for extension in extensions.iter().filter_map(Value::as_str) {
            let rated = (rating(kind, facts), kind.as_str());
            let held = best.entry(extension).or_insert(rated);
            // Of two types with equal ratings, the first by name wins, so that the output is
            // deterministic.
            if rated.0 > held.0 || (rated.0 == held.0 && rated.1 < held.1) {
                *held = rated;
            }
        }
    }
    best.extend(CHOSEN.map(|(extension, kind)| (extension, (0, kind))));
    let mut table = format!(
        "# Made by `cargo xtask media` from {PACKAGE} {VERSION} ({LICENSE}); not to be changed by hand.\n"
    );
    for (extension, (_, kind)) in best {
        let is_plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
        if !extension.bytes().all(|byte| is_plain(byte) || b"-_".contains(&byte)) {
            continue;
        }
        ensure!(kind.bytes().all(|byte| byte.is_ascii_graphic()), "{kind:?} is no media type");
        writeln!(table, "{extension} {kind}")?;
    }
    Ok(table)
}

/// The rank of a media type among the types of an extension.
fn rating(kind: &str, facts: &Value) -> i32 {
    let source = match facts["source"].as_str() {
        Some("iana") => 8,
        Some("apache") => 4,
        Some("nginx") => 2,
        _ => 0,
    };
    // `video/mp4` is more specific than `application/mp4`.
    let shown = i32::from(!kind.starts_with("application/"));
    let own = if kind.contains("/x-") || kind.contains("/vnd.") { -4 } else { 0 };
    source + shown + own
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::table;

    #[test]
    fn prefers_the_better_known_type_and_sorts_by_bytes() {
        let database = json!({
            "application/mp4": { "source": "iana", "extensions": ["mp4"] },
            "video/mp4": { "source": "iana", "extensions": ["mp4"] },
            "application/x-b": { "source": "apache", "extensions": ["b"] },
            "application/b": { "source": "nginx", "extensions": ["b", "B\n"] },
            "text/none": { "source": "iana" },
        });
        let table = table(&database).expect("a table");
        let lines: Vec<&str> = table.lines().skip(1).collect();
        assert!(lines.contains(&"mp4 video/mp4") && lines.contains(&"b application/b"), "{table}");
        assert!(lines.is_sorted() && !table.contains('B'), "{table}");
    }
}

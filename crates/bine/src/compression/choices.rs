//! The configuration keys of compressed responses.

use bine_compression::{Level, MediaTypes};
use bine_http::Coding;

use super::mode::CompressionMode;
use super::path_rules::PathRule;
use crate::configuration::values::{bytes, number, word};
use crate::configuration::{Key, KeyGroup, Kind};

/// Which responses are compressed, and how.
#[derive(Clone, Debug)]
pub(super) struct CompressionChoices {
    pub(super) mode: CompressionMode,
    /// Exceptions for paths; the last one that matches a request applies.
    pub(super) rules: Vec<PathRule>,
    /// The codings that the server offers, the preferred one first. Empty: all.
    pub(super) codings: Vec<Coding>,
    pub(super) level: Level,
    /// Shorter content in bytes stays as it is.
    pub(super) least: u64,
    /// The media types.
    pub(super) types: MediaTypes,
    /// The memory of compressed files in bytes; 0: none is kept.
    pub(super) cache: usize,
    /// The number of streams that are compressed at one time.
    pub(super) streams: usize,
}

impl Default for CompressionChoices {
    fn default() -> Self {
        Self {
            mode: CompressionMode::Shared,
            rules: Vec::new(),
            codings: Vec::new(),
            level: Level::default(),
            least: 1024,
            types: MediaTypes::none(),
            cache: 16 << 20,
            streams: 64,
        }
    }
}

inventory::submit! {
    KeyGroup { keys: KEYS, after: "pages", rank: 20, adds_content: |_| false }
}

static KEYS: &[Key] = &[
    Key::server("compress", "auto|on|off", &["auto"], "compress responses for clients that accept it; auto: except those that depend on sessions, users or cookies, because their length may reveal secrets", |c, v| {
        c.choice_mut::<CompressionChoices>().mode = CompressionMode::read(v)?;
        Ok(())
    }),
    Key::server("compress-path", "RULE", &[], "compress for a path, repeatable, the last that matches applies: '/api/** on', 'example.org/** off'", |c, v| {
        c.choice_mut::<CompressionChoices>().rules.push(PathRule::parse(v)?);
        Ok(())
    })
    .kind(Kind::Lines),
    Key::server("compress-encodings", "zstd|br|gzip", &["zstd", "br", "gzip"], "the codings to offer, repeatable; the first is preferred where a client accepts several alike", |c, v| {
        let coding = Coding::from_name(v.as_bytes()).ok_or_else(|| "must be zstd, br or gzip".to_owned())?;
        let codings = &mut c.choice_mut::<CompressionChoices>().codings;
        if !codings.contains(&coding) {
            codings.push(coding);
        }
        Ok(())
    })
    .kind(Kind::Words),
    Key::server("compress-level", "fast|balanced|small", &["balanced"], "how much time to spend for smaller responses", |c, v| {
        c.choice_mut::<CompressionChoices>().level = match &*word(v, &["fast", "balanced", "small"])? {
            "fast" => Level::Fast,
            "small" => Level::Small,
            _ => Level::Balanced,
        };
        Ok(())
    }),
    Key::server("compress-least", "BYTES", &["1k"], "the shortest content to compress", |c, v| {
        c.choice_mut::<CompressionChoices>().least = bytes(v)?;
        Ok(())
    }),
    Key::server("compress-types", "TYPE|auto", &["auto"], "media types to compress, repeatable: auto, text/html, text/*, +json; auto: text, JSON, XML, JavaScript, SVG, WebAssembly and plain fonts", |c, v| {
        let types = &mut c.choice_mut::<CompressionChoices>().types;
        if v == "auto" {
            types.add_default();
            return Ok(());
        }
        types.add(v).map_err(|error| error.to_string())
    })
    .kind(Kind::Words),
    Key::server("compress-cache", "BYTES|off", &["16m"], "memory for compressed files and other unchanging content", |c, v| {
        c.choice_mut::<CompressionChoices>().cache = if v == "off" { 0 } else { bytes(v)? };
        Ok(())
    })
    .fixed(),
    Key::server("compress-streams", "N", &["64"], "streams to compress at one time, a quarter of them for one client, each with up to 600 KiB; further ones are sent as they are", |c, v| {
        c.choice_mut::<CompressionChoices>().streams = number(v, 0)?;
        Ok(())
    }),
];

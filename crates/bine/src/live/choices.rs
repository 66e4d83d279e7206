//! The configuration keys of live pages.

use super::schedule::RenderLimits;
use crate::configuration::values::number;
use crate::configuration::{Configuration, Key, KeyGroup};

inventory::submit! {
    KeyGroup { keys: KEYS, after: "sync", rank: 10, adds_content: |_| false }
}

static KEYS: &[Key] = &[
    Key::server(
        "live-threads",
        "N|auto",
        &["auto"],
        "threads that render live pages; auto: one per core, at least 2; the first renders only changes, not pages of new clients",
        |c, v| {
            limits(c).threads = match v {
                "auto" => RenderLimits::default().threads,
                v => number(v, 1)?,
            };
            Ok(())
        },
    )
    .fixed(),
    Key::server(
        "live-joins",
        "N",
        &["4096"],
        "browsers that may wait for the render of a live page; one address (IPv6: /64) may have a quarter, this machine three quarters; the server rejects more with 503",
        |c, v| {
            limits(c).joins = number(v, 4)?;
            Ok(())
        },
    )
    .fixed(),
];

fn limits(configuration: &mut Configuration) -> &mut RenderLimits {
    configuration.choice_mut()
}

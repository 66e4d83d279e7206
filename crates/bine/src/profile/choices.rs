//! The configuration keys of profiles.

use std::path::PathBuf;

use crate::configuration::values::number;
use crate::configuration::{Key, KeyGroup, Kind};

/// The allocations that are recorded.
#[derive(Clone, Debug, Default)]
pub(super) struct ProfileChoices {
    /// The file to write; `None`: nothing is recorded.
    pub(super) file: Option<PathBuf>,
    /// The number of requests before the first one that is recorded.
    pub(super) after: u64,
    /// The number of requests to record; `None`: all.
    pub(super) requests: Option<u64>,
}

inventory::submit! {
    KeyGroup { keys: KEYS, after: "development", rank: 20, adds_content: |_| false }
}

static KEYS: &[Key] = &[
    Key::server("profile-allocations", "FILE|off", &["off"], "record each heap allocation with its call stack, and write the profile when the server stops; `bine profile FILE` shows it", |c, v| {
        c.choice_mut::<ProfileChoices>().file = (v != "off").then(|| v.into());
        Ok(())
    })
    .kind(Kind::Path)
    .fixed(),
    Key::server("profile-after", "N", &["0"], "the requests before the first one that is recorded, which fill pools and caches", |c, v| {
        c.choice_mut::<ProfileChoices>().after = number(v, 0)?;
        Ok(())
    })
    .fixed(),
    Key::server("profile-requests", "N|all", &["all"], "the requests to record; the profile is written when the next one arrives", |c, v| {
        c.choice_mut::<ProfileChoices>().requests = match v {
            "all" => None,
            v => Some(number(v, 1)?),
        };
        Ok(())
    })
    .fixed(),
];

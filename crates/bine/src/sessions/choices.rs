//! The configuration keys of sessions.

use crate::configuration::values::seconds;
use crate::configuration::{Configuration, Key, KeyGroup};

/// The lifetimes that the configuration sets.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct SessionChoices {
    /// The longest idle time in seconds; `None`: the program decides.
    pub(super) idle: Option<u32>,
    /// The longest life in seconds; `None`: the program decides.
    pub(super) absolute: Option<u32>,
}

inventory::submit! {
    KeyGroup { keys: KEYS, after: "sync", rank: 20, adds_content: |_| false }
}

static KEYS: &[Key] = &[
    Key::server(
        "session-idle",
        "TIME",
        &[],
        "end a session after this time without use, like 14d (the default)",
        |c, v| {
            choices(c).idle = Some(session_time(v)?);
            Ok(())
        },
    )
    .fixed(),
    Key::server(
        "session-absolute",
        "TIME",
        &[],
        "end a session this long after its start or login, like 90d (the default)",
        |c, v| {
            choices(c).absolute = Some(session_time(v)?);
            Ok(())
        },
    )
    .fixed(),
];

fn choices(configuration: &mut Configuration) -> &mut SessionChoices {
    configuration.choice_mut()
}

/// Parses the life of a session, in seconds.
fn session_time(text: &str) -> Result<u32, String> {
    let seconds = seconds(text).ok().filter(|time| (10..=400 * 86_400).contains(time));
    seconds.ok_or_else(|| "must be a time like 30m, 12h or 14d, from 10s to 400d".to_owned())
}

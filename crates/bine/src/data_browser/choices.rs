//! The configuration key of the data browser.

use crate::configuration::values::switch;
use crate::configuration::{Key, KeyGroup, Kind};

/// Whether the program has the data browser.
#[derive(Clone, Debug)]
pub(super) struct DataBrowserChoices {
    pub(super) is_on: bool,
}

impl Default for DataBrowserChoices {
    fn default() -> Self {
        Self { is_on: true }
    }
}

inventory::submit! {
    KeyGroup { keys: KEYS, after: "development", rank: 10, adds_content: |_| false }
}

static KEYS: &[Key] = &[
    Key::server("data-browser", "on|off", &["on"], "show and edit the tables at /_bine/data: to members of the group administrators, and in development to clients on this machine", |c, v| {
        c.choice_mut::<DataBrowserChoices>().is_on = switch(v)?;
        Ok(())
    })
    .kind(Kind::Switch)
    .fixed(),
];

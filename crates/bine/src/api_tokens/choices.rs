//! The configuration key of API tokens.

use crate::configuration::values::switch;
use crate::configuration::{Key, KeyGroup, Kind};

/// Whether a server without a program of its own has API tokens.
#[derive(Clone, Default, Debug)]
pub(super) struct TokenChoices {
    pub(super) is_on: bool,
}

inventory::submit! {
    KeyGroup { keys: KEYS, after: "sync", rank: 41, adds_content: |_| false }
}

static KEYS: &[Key] = &[Key::server(
    "api-tokens",
    "on|off",
    &["off"],
    "let users create API tokens at /account/tokens; on in a program with `.api_tokens()`",
    |c, v| {
        c.choice_mut::<TokenChoices>().is_on = switch(v)?;
        Ok(())
    },
)
.kind(Kind::Switch)
.fixed()];

//! The configuration key of the metrics endpoint.

use bine_server::Listen;

use crate::configuration::values::plain_listen;
use crate::configuration::{Key, KeyGroup};

/// Where the configuration opens the metrics endpoint.
#[derive(Clone, Debug, Default)]
pub(super) struct MetricsChoices {
    /// `None`: disabled.
    pub(super) listen: Option<Listen>,
}

inventory::submit! {
    KeyGroup { keys: KEYS, after: "error-log-level", rank: 40, adds_content: |_| false }
}

static KEYS: &[Key] = &[
    Key::server("metrics", "ADDRESS|off", &["off"], "serve metrics at /metrics of a separate address, like 127.0.0.1:9100 or unix:PATH; every client that reaches it may read them", |c, v| {
        c.choice_mut::<MetricsChoices>().listen = if v == "off" { None } else { Some(plain_listen(v)?) };
        Ok(())
    })
    .fixed(),
];

//! The configuration keys of traces.

use std::path::PathBuf;

use crate::configuration::values::number;
use crate::configuration::{Key, KeyGroup, Kind};

/// The spans that a file has by default: some thousands of requests, in 12 MB.
const SPANS: u64 = 100_000;

/// The trace that is recorded.
#[derive(Clone, Debug)]
pub(super) struct TraceChoices {
    /// The file to write; `None`: nothing is recorded.
    pub(super) file: Option<PathBuf>,
    /// The number of spans after which the recording ends.
    pub(super) spans: u64,
}

impl Default for TraceChoices {
    fn default() -> Self {
        Self { file: None, spans: SPANS }
    }
}

inventory::submit! {
    KeyGroup { keys: KEYS, after: "development", rank: 30, adds_content: |_| false }
}

static KEYS: &[Key] = &[
    Key::server("trace-stages", "FILE|off", &["off"], "record when each stage of each request begins and ends; ui.perfetto.dev and chrome://tracing show the file", |c, v| {
        c.choice_mut::<TraceChoices>().file = (v != "off").then(|| v.into());
        Ok(())
    })
    .kind(Kind::Path)
    .fixed(),
    Key::server("trace-spans", "N", &["100000"], "the stages to record; a request has about six", |c, v| {
        c.choice_mut::<TraceChoices>().spans = number(v, 1)?;
        Ok(())
    })
    .fixed(),
];

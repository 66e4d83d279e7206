//! The configuration key of scheduled work.

use super::job::Job;
use crate::configuration::{Configuration, Key, KeyGroup, Kind};

/// The services that the configuration runs at intervals.
#[derive(Clone, Debug, Default)]
pub(super) struct ScheduleChoices(pub(super) Vec<Job>);

inventory::submit! {
    KeyGroup { keys: KEYS, after: "sync", rank: 60, adds_content: |_| false }
}

static KEYS: &[Key] = &[Key::server(
    "every",
    "TIME SERVICE",
    &[],
    "run a service at an interval, on one node of a cluster, repeatable: '10m /board/clean_up'",
    |c: &mut Configuration, v| {
        c.choice_mut::<ScheduleChoices>().0.push(Job::parse(v)?);
        Ok(())
    },
)
.kind(Kind::Lines)
.fixed()];

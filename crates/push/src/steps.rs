//! Tests that the cost of reads and of expiry depends on their results, not on the size of the hub.
//! They count steps, not time.

extern crate std;

use alloc::string::ToString;
use alloc::vec;
use core::cell::Cell;

use crate::cursor::{Cursor, Sequence};
use crate::hub::Hub;
use crate::message::{Content, Draft, Publish};
use crate::order::{ChannelName, Command, Preparation};
use crate::read::{GapPolicy, Start, Subscription, Until};
use crate::settings::{Expiry, Limits, Retention, Settings};

std::thread_local! {
    static STEPS: Cell<u64> = const { Cell::new(0) };
}

/// Counts the inspection of a message, a channel or a publisher.
pub(crate) fn count() {
    STEPS.set(STEPS.get() + 1);
}

/// Returns the number of steps since the last call.
pub(crate) fn taken() -> u64 {
    STEPS.replace(0)
}

fn give(hub: &mut Hub, record: u64, command: Command, now: u64) {
    let Ok(Preparation::Record(prepared)) = hub.prepare(command, now) else { panic!("refused") };
    hub.apply(prepared, record).unwrap();
}

fn create(hub: &mut Hub, record: u64, name: &str, settings: Settings) {
    let name = ChannelName::Given(name.into());
    give(
        hub,
        record,
        Command::Create { name, settings, fork: None, first: vec![], is_closed: false },
        0,
    );
}

/// Creates a hub with `count` messages in each of two channels, one per millisecond.
fn filled(count: u64, retention: Retention) -> Hub {
    let mut hub =
        Hub::new(0, Limits { bytes: u64::MAX, channel_bytes: u64::MAX, ..Limits::default() });
    for (record, name) in [(1, "a"), (2, "b")] {
        create(&mut hub, record, name, Settings { retention, ..Settings::default() });
    }
    for time in 0..count {
        let messages = vec![Draft {
            channels: vec!["a".into(), "b".into()],
            content: Content { body: [].into(), ..Content::default() },
        }];
        give(
            &mut hub,
            time + 3,
            Command::Publish(Publish { messages, ..Publish::default() }),
            time,
        );
    }
    hub
}

#[test]
fn reads_range_in_log_n_steps_plus_one_per_message() {
    for (count, log) in [(1 << 10, 10), (1 << 14, 14)] {
        let hub = filled(count, Retention::UNLIMITED);
        let middle = Cursor { epoch: 0, sequence: Sequence::new(count / 2, 0) };
        for start in [Start::After(middle), Start::Since(count / 2), Start::Earliest] {
            let (end, gaps, limit) = (Until::Open, GapPolicy::Reject, 10);
            let channels = &["a", "b"][..];
            let subscription =
                Subscription { channels, start, end, gaps, limit, bytes: usize::MAX };
            taken();
            assert_eq!(hub.read(&subscription, count).unwrap().messages.len(), 10);
            let steps = taken();
            assert!(steps <= 2 * (log + 1) + 2 * 11, "{steps} steps of {count}");
        }
    }
}

#[test]
fn expires_without_visiting_channels_that_are_not_due() {
    let mut hub = Hub::new(0, Limits::default());
    for number in 1..=10_000 {
        let expiry = Expiry::AfterPublish(number);
        let settings = Settings { expiry, ..Settings::default() };
        create(&mut hub, number, &number.to_string(), settings);
    }
    taken();
    let due = hub.expire(7, usize::MAX).unwrap();
    assert_eq!(taken(), 8);
    hub.apply(due, 10_001).unwrap();
    assert_eq!(hub.names_after("").count(), 9_993);
}

#[test]
fn publishes_without_visiting_retained_messages() {
    let retention = Retention { age: 20_000, ..Retention::UNLIMITED };
    let mut hub = filled(1 << 13, retention);
    taken();
    let content = Content { body: [].into(), ..Content::default() };
    let messages = vec![Draft { channels: vec!["a".into()], content }];
    give(&mut hub, 1 << 20, Command::Publish(Publish { messages, ..Publish::default() }), 1 << 13);
    assert_eq!(taken(), 0);
    assert!(hub.expire(1 << 14, usize::MAX).is_none());
    assert_eq!(taken(), 1);
}

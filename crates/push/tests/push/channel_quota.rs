//! Tests of the quota of one channel at its exact bound, and of the memory that ids take.

use std::sync::Arc;

use bine_push::{Command, Content, Draft, Limits, Preparation, Publish, Quota, Retention};

use crate::allocator::held;
use crate::quotas::{BODY, NOW, draft, limits, quota, server};

/// Returns the weight of a message with a body of this length.
fn weight(length: usize) -> u64 {
    let mut own = server(Limits::default());
    own.create("a", Retention::UNLIMITED, vec![draft(&[], length)], None).unwrap();
    own.hub.describe("a", NOW).unwrap().bytes
}

#[test]
fn accepts_messages_that_exactly_fill_channel() {
    let quota_bytes = weight(BODY) + weight(100);
    for (quota_bytes, fits) in [(quota_bytes, true), (quota_bytes - 1, false)] {
        let mut own = server(limits(1 << 30, quota_bytes));
        own.create("a", Retention::UNLIMITED, vec![], None).unwrap();
        own.publish(&["a".into()], BODY, None).unwrap();
        assert_eq!(own.publish(&["a".into()], 100, None).is_ok(), fits);
    }
}

#[test]
fn rejects_message_that_exceeds_quota_of_empty_channel() {
    let mut own = server(limits(1 << 30, BODY as u64));
    own.create("a", Retention::UNLIMITED, vec![], None).unwrap();
    assert_eq!(quota(own.publish(&["a".into()], BODY, None)), Quota::Channel("a".into()));
}

#[test]
fn counts_messages_that_retention_drops_as_free() {
    let newest = Retention { messages: 2, ..Retention::UNLIMITED };
    let mut own = server(limits(1 << 30, 5 * BODY as u64 / 2));
    own.create("a", newest, vec![], None).unwrap();
    for _ in 0..5 {
        own.publish(&["a".into()], BODY, None).unwrap();
    }
    // The message that stays and this one exceed the quota together.
    assert_eq!(quota(own.publish(&["a".into()], 2 * BODY, None)), Quota::Channel("a".into()));
}

/// The count may differ from what the allocator gives, but not by a multiple.
#[test]
fn counts_memory_of_ids_as_the_allocator_does() {
    let newest = Retention { messages: 1, ..Retention::UNLIMITED };
    let limits = Limits { ids: 10_000, ring: 1, ..Limits::default() };
    for length in [8, 200] {
        let mut own = server(limits);
        own.create("a", newest, vec![], None).unwrap();
        let mut publish = |number: u64| {
            let id: Arc<str> = format!("{number:0length$}").into();
            let content = Content { id: Some(id), ..Content::default() };
            let messages = vec![Draft { channels: vec!["a".into()], content }];
            let publish = Command::Publish(Publish { messages, ..Publish::default() });
            let Ok(Preparation::Record(prepared)) = own.hub.prepare(publish, NOW) else {
                panic!("refused")
            };
            own.hub.apply(prepared, 2 + number).unwrap();
            own.hub.bytes()
        };
        let (counted, allocated) = (publish(0), held());
        let mut last = 0;
        for number in 1..=8000 {
            last = publish(number);
        }
        let allocated = (held() - allocated).cast_unsigned() as u64;
        let counted = last - counted;
        assert!(
            (allocated / 2..2 * allocated).contains(&counted),
            "{counted} bytes are counted and {allocated} allocated for ids of {length} bytes"
        );
    }
}

//! The alternative to read sets: a node publishes a change with the last sequence that it has applied. The server
//! accepts it only if that is the last one of the stream. Otherwise the node waits for the next message, reads
//! its row again and repeats.
//!
//! A node has a map of numbers in place of a store, so its CPU time is less than that of a real one.

use std::cell::RefCell;
use std::collections::HashMap;
use std::error::Error as _;
use std::rc::Rc;
use std::sync::Barrier;
use std::thread;
use std::time::Instant;

use async_nats::jetstream::consumer::push::OrderedConfig;
use async_nats::jetstream::context::{PublishError, PublishErrorKind};
use async_nats::jetstream::message::PublishMessage;
use async_nats::jetstream::{self, ErrorCode};
use bytes::Bytes;
use futures_util::StreamExt as _;
use tokio::sync::Notify;
use tokio::task::LocalSet;
use tokio::time::timeout;

use crate::publishes::{connect, open_stream};
use crate::{Contended, DEADLINE, Target, cpu};

/// The bytes of a message: the row and its number, padded to the length of a row of the store.
const LENGTH: usize = 100;

/// The rows of one node.
#[derive(Default)]
struct Rows {
    numbers: RefCell<HashMap<u64, u64>>,
    /// The sequence of the last applied message.
    sequence: RefCell<u64>,
    applied: Notify,
}

impl Rows {
    /// Applies the messages of the stream.
    async fn follow(self: Rc<Self>, mut messages: jetstream::consumer::push::Ordered) {
        while let Some(message) = messages.next().await {
            let message = message.expect("the stream is intact");
            let (row, number) = parse(&message.payload);
            self.numbers.borrow_mut().insert(row, number);
            *self.sequence.borrow_mut() =
                message.info().expect("a message of a stream").stream_sequence;
            self.applied.notify_one();
        }
    }

    async fn wait_for(&self, sequence: u64) {
        let wait = async {
            while *self.sequence.borrow() < sequence {
                self.applied.notified().await;
            }
        };
        timeout(DEADLINE, wait).await.expect("the node follows the stream");
    }
}

/// Changes rows by some nodes, each some times, and prints the result.
pub(crate) fn measure(
    target: &Target,
    stream: &str,
    [count, changes]: [usize; 2],
    is_one_row: bool,
) {
    // Before the nodes start, because servers of a group answer later while several create it.
    let mut builder = tokio::runtime::Builder::new_current_thread();
    let runtime = builder.enable_all().build().expect("a runtime");
    runtime.block_on(async { drop(open_stream(target, stream).await) });
    let (are_ready, are_done) = (Barrier::new(count + 1), Barrier::new(count + 1));
    let (refused, elapsed, cpu) = thread::scope(|scope| {
        let start = |number: usize| {
            let row = if is_one_row { 0 } else { number as u64 };
            let barriers = [&are_ready, &are_done];
            scope.spawn(move || run_node(target, stream, row, changes, barriers))
        };
        let threads: Vec<_> = (0..count).map(start).collect();
        are_ready.wait();
        let (begun, cpu_before) = (Instant::now(), cpu());
        are_done.wait();
        let (elapsed, spent) = (begun.elapsed(), cpu().saturating_sub(cpu_before));
        let refused: usize =
            threads.into_iter().map(|thread| thread.join().expect("no panic")).sum();
        (refused, elapsed, spent)
    });
    Contended { nodes: count, changes, is_one_row, refused, elapsed, cpu }.print("last sequence");
}

/// Runs a node until it has made its changes. Returns how many attempts conflicted.
fn run_node(
    target: &Target,
    stream: &str,
    row: u64,
    changes: usize,
    [are_ready, are_done]: [&Barrier; 2],
) -> usize {
    let mut builder = tokio::runtime::Builder::new_current_thread();
    let runtime = builder.enable_all().build().expect("a runtime");
    LocalSet::new().block_on(&runtime, async {
        let context = connect(target).await;
        let own = context.get_stream(stream).await.expect("it exists");
        let config = OrderedConfig {
            deliver_subject: context.client().new_inbox(),
            ..OrderedConfig::default()
        };
        let consumer = own.create_consumer(config).await.expect("a consumer");
        let messages = consumer.messages().await.expect("messages");
        let rows = Rc::<Rows>::default();
        let following = tokio::task::spawn_local(Rc::clone(&rows).follow(messages));
        are_ready.wait();
        let mut refused = 0;
        for _ in 0..changes {
            refused += refused_before(&context, stream, &rows, row).await;
        }
        are_done.wait();
        following.abort();
        refused
    })
}

/// Adds one to a row, and returns how many attempts conflicted.
async fn refused_before(
    context: &jetstream::Context,
    stream: &str,
    rows: &Rows,
    row: u64,
) -> usize {
    let mut refused = 0;
    loop {
        let expected = *rows.sequence.borrow();
        let number = rows.numbers.borrow().get(&row).copied().unwrap_or_default();
        let message = PublishMessage::build()
            .payload(payload(row, number + 1))
            .expected_last_sequence(expected);
        let sent = context.send_publish(stream.to_owned(), message).await.expect("it is sent");
        match sent.await {
            Ok(acknowledged) => {
                rows.wait_for(acknowledged.sequence).await;
                return refused;
            }
            Err(error) if is_conflict(&error) => {
                refused += 1;
                rows.wait_for(expected + 1).await;
            }
            Err(error) => panic!("{error}"),
        }
    }
}

/// Whether the stream has a later message than expected. A group of servers has a separate code for
/// a later message that it has not stored yet.
fn is_conflict(error: &PublishError) -> bool {
    let code = || {
        let source = error.source()?;
        Some(source.downcast_ref::<jetstream::Error>()?.error_code())
    };
    error.kind() == PublishErrorKind::WrongLastSequence
        || code() == Some(ErrorCode::STREAM_WRONG_LAST_SEQUENCE_CONSTANT)
}

fn payload(row: u64, number: u64) -> Bytes {
    let mut bytes = vec![b'x'; LENGTH];
    bytes[..8].copy_from_slice(&row.to_le_bytes());
    bytes[8..16].copy_from_slice(&number.to_le_bytes());
    bytes.into()
}

fn parse(payload: &[u8]) -> (u64, u64) {
    let word = |at: usize| {
        let bytes = payload[at..].first_chunk().expect("a message of this program");
        u64::from_le_bytes(*bytes)
    };
    (word(0), word(8))
}

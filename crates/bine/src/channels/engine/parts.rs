//! Writes long records of clients in parts, so that other commits wait for one part only.
//!
//! A disk takes tens of milliseconds for 16 MiB, and every other commit would wait that long. One
//! thread writes the parts of a few records in turn. When all parts of a record are on the disk, a
//! short record follows that completes it, and the command takes effect. Without the completing
//! record, parts have no effect, and the next start drops them.

use std::collections::{BTreeMap, VecDeque};
use std::pin::Pin;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::thread;

use bine_log as log;
use bine_push::Applied;
use bine_store::{Pending, Sync};

use super::{CheckedCommand, Engine, Error, SharedResult, outcome_of, sync_of};

/// The first byte of a part: then the record's number in this run (eight bytes, big-endian) and a
/// part of its bytes.
pub(super) const PART: u8 = 5;
/// The first byte of a completing record: then the record's number and its length in bytes (eight
/// bytes each).
pub(super) const COMPLETE: u8 = 6;
/// Maximum body bytes of a command that is written as one record. Typical messages are far smaller.
pub(super) const MAX_SINGLE_RECORD: usize = 1 << 20;
/// Bytes of a part. A disk with 300 MB/s writes 512 KiB in about two milliseconds.
const PART_BYTES: usize = 512 << 10;
/// The number of records written in turn. Only these are in memory twice.
const MAX_IN_TURN: usize = 4;

/// The long records of an engine.
#[derive(Default)]
pub(super) struct LongRecords {
    waiting: Mutex<PendingRecords>,
    journaled: Mutex<BTreeMap<u64, JournaledPart>>,
}

#[derive(Default)]
struct PendingRecords {
    orders: VecDeque<LongRecord>,
    has_thread: bool,
    /// The number of the next record.
    next: u64,
}

/// The part of a record that is in the journal.
struct JournaledPart {
    record: Arc<Vec<u8>>,
    length: usize,
}

/// A command whose record is written in parts.
struct LongRecord {
    number: u64,
    checked: Option<CheckedCommand>,
    /// Encoded at its first turn.
    record: Option<Arc<Vec<u8>>>,
    written: usize,
    promise: Arc<Completion>,
}

/// The shared result of a long record.
#[derive(Default)]
struct Completion {
    state: Mutex<CompletionState>,
    settled: Condvar,
}

#[derive(Default)]
struct CompletionState {
    outcome: Option<Result<Applied, Error>>,
    waker: Option<Waker>,
}

/// A long command in progress. Dropping it before all parts are written cancels the command.
pub(super) struct PendingLongRecord(Arc<Completion>);

impl LongRecords {
    /// Collects a part while the journal or a snapshot is read.
    pub(super) fn read_part(&self, number: u64, bytes: &[u8]) {
        let mut all = self.journaled();
        let part = all
            .entry(number)
            .or_insert_with(|| JournaledPart { record: Arc::default(), length: 0 });
        Arc::make_mut(&mut part.record).extend_from_slice(bytes);
        part.length = part.record.len();
    }

    /// Takes the record that a completing record refers to. `None`: parts are missing.
    pub(super) fn record_of(&self, whole: &[u8]) -> Option<Arc<Vec<u8>>> {
        let (number, length) = whole.split_first_chunk()?;
        let length = u64::from_be_bytes(length.try_into().ok()?);
        let JournaledPart { record, .. } = self.journaled().remove(&u64::from_be_bytes(*number))?;
        (record.len() as u64 == length).then_some(record)
    }

    /// Drops the parts of incomplete records.
    pub(super) fn forget_all(&self) {
        self.journaled().clear();
    }

    /// Encodes the journaled parts for a snapshot.
    pub(super) fn image(&self) -> impl Iterator<Item = Vec<u8>> + Send + use<> {
        let all: Vec<_> = self
            .journaled()
            .iter()
            .map(|(number, part)| (*number, Arc::clone(&part.record), part.length))
            .collect();
        all.into_iter().flat_map(|(number, record, length)| {
            (0..length)
                .step_by(PART_BYTES)
                .map(move |at| part(number, &record[at..length.min(at + PART_BYTES)]))
        })
    }

    fn waiting(&self) -> MutexGuard<'_, PendingRecords> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn journaled(&self) -> MutexGuard<'_, BTreeMap<u64, JournaledPart>> {
        self.journaled.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Engine {
    /// Whether long records are not completely written.
    pub(crate) fn is_writing_long_records(&self) -> bool {
        self.long_records.waiting().has_thread
    }

    /// Writes the record of a command in parts.
    pub(super) fn journal_in_parts(self: &Arc<Self>, checked: CheckedCommand) -> PendingLongRecord {
        let promise = Arc::new(Completion::default());
        let mut waiting = self.long_records.waiting();
        let number = waiting.next;
        waiting.next += 1;
        let own = Arc::clone(&promise);
        let checked = Some(checked);
        waiting.orders.push_back(LongRecord {
            number,
            checked,
            record: None,
            written: 0,
            promise: own,
        });
        let has_thread = std::mem::replace(&mut waiting.has_thread, true);
        drop(waiting);
        if !has_thread {
            let own = PartWriter { engine: Arc::clone(self), is_over: false };
            let thread = thread::Builder::new().name("channel parts".to_owned());
            if let Err(error) = thread.spawn(move || own.write_all()) {
                // Dropping the writer settles the commands that it should have written.
                log::error(format_args!("no thread for a long message of a channel: {error}"));
            }
        }
        PendingLongRecord(promise)
    }

    /// Writes the next part of a record or its completing record. Whether more is to be written.
    fn write_part(self: &Arc<Self>, long: &mut LongRecord) -> Result<bool, Error> {
        let closed = || Error::Storage(bine_store::Error::Closed);
        let (store, number) = (self.store.get().ok_or_else(closed)?, long.number);
        let checked = long.checked.as_ref().ok_or_else(closed)?;
        let record = long.record.get_or_insert_with(|| {
            let mut record = Vec::new();
            checked.prepared.write(&mut record);
            Arc::new(record)
        });
        if long.written < record.len() {
            let end = record.len().min(long.written + PART_BYTES);
            let bytes = part(number, &record[long.written..end]);
            let (own, record) = (Arc::clone(self), Arc::clone(record));
            let then = move |_| {
                own.long_records.journaled().insert(number, JournaledPart { record, length: end });
            };
            let kept = self.append(store, &bytes, Sync::Commit, then);
            kept.and_then(Pending::wait).map_err(Error::Storage)?;
            long.written = end;
            return Ok(true);
        }
        let length = record.len() as u64;
        let whole = [&[COMPLETE], &number.to_be_bytes()[..], &length.to_be_bytes()].concat();
        let checked = long.checked.take().ok_or_else(closed)?;
        let durability = checked.prepared.durability();
        let (sync, outcome) = (sync_of(durability), Arc::new(SharedResult::default()));
        let (own, apply) = (Arc::clone(self), self.applier(checked, &outcome));
        let then = move |sequence| {
            own.long_records.journaled().remove(&number);
            apply(sequence);
        };
        let kept = self.append(store, &whole, sync, then).and_then(Pending::wait);
        long.promise.settle(outcome_of(kept, &outcome));
        Ok(false)
    }
}

/// The thread that writes parts. When it ends for any reason, it settles all commands.
struct PartWriter {
    engine: Arc<Engine>,
    /// Whether it ended because the queue was empty.
    is_over: bool,
}

impl PartWriter {
    /// Writes until the queue is empty.
    fn write_all(mut self) {
        let engine = Arc::clone(&self.engine);
        let mut in_turn: VecDeque<LongRecord> = VecDeque::new();
        loop {
            let mut waiting = engine.long_records.waiting();
            while in_turn.len() < MAX_IN_TURN
                && let Some(next) = waiting.orders.pop_front()
            {
                in_turn.push_back(next);
            }
            let Some(mut long) = in_turn.pop_front() else {
                (waiting.has_thread, self.is_over) = (false, true);
                return;
            };
            drop(waiting);
            let written = if long.is_wanted() { engine.write_part(&mut long) } else { Ok(false) };
            match written {
                Ok(true) => in_turn.push_back(long),
                Ok(false) => drop(engine.long_records.journaled().remove(&long.number)),
                Err(error) => {
                    engine.long_records.journaled().remove(&long.number);
                    long.promise.settle(Err(error));
                }
            }
        }
    }
}

impl Drop for PartWriter {
    fn drop(&mut self) {
        if !self.is_over {
            let mut waiting = self.engine.long_records.waiting();
            waiting.has_thread = false;
            let left = std::mem::take(&mut waiting.orders);
            drop(waiting);
            drop(left);
        }
    }
}

impl LongRecord {
    /// Whether its client still waits.
    fn is_wanted(&self) -> bool {
        Arc::strong_count(&self.promise) > 1
    }
}

impl Drop for LongRecord {
    fn drop(&mut self) {
        self.promise.settle(Err(Error::Storage(bine_store::Error::Closed)));
    }
}

impl Completion {
    /// Sets the result, unless it is set already.
    fn settle(&self, outcome: Result<Applied, Error>) {
        let mut state = self.state();
        if state.outcome.is_none() {
            state.outcome = Some(outcome);
        }
        let waker = state.waker.take();
        drop(state);
        self.settled.notify_all();
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    fn state(&self) -> MutexGuard<'_, CompletionState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl PendingLongRecord {
    pub(super) fn wait(self) -> Result<Applied, Error> {
        let is_open = |state: &mut CompletionState| state.outcome.is_none();
        let state = self.0.settled.wait_while(self.0.state(), is_open);
        let outcome = state.unwrap_or_else(PoisonError::into_inner).outcome.take();
        outcome.unwrap_or(Err(Error::Storage(bine_store::Error::Closed)))
    }
}

impl Future for PendingLongRecord {
    type Output = Result<Applied, Error>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let mut state = self.0.state();
        if let Some(outcome) = &state.outcome {
            return Poll::Ready(outcome.clone());
        }
        state.waker = Some(context.waker().clone());
        Poll::Pending
    }
}

fn part(number: u64, bytes: &[u8]) -> Vec<u8> {
    [&[PART], &number.to_be_bytes()[..], bytes].concat()
}

#[cfg(test)]
mod tests;

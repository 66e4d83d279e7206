//! Long records of clients, written in parts, so that whoever waits for the disk waits for one part and not for all of it.
//!
//! A disk takes tens of milliseconds for 16 MiB, and every other commit would wait that long. One thread writes the parts
//! of a few records in turn. When all parts of a record are on the disk, a short record follows that stands for them
//! together; with that one the order becomes true. Parts without it have no effect, and the next start forgets them.

use std::collections::{BTreeMap, VecDeque};
use std::pin::Pin;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::thread;

use bine_log as log;
use bine_push::{Applied, Prepared};
use bine_store::{Pending, Sync};

use super::{Engine, Error, Outcome, outcome_of, sync_of};

/// The first byte of a part: the record's number in this run (eight bytes, the highest first), then bytes of the record.
pub(super) const PART: u8 = 5;
/// Of the record that stands for all parts: their number, and how many bytes they are together (eight bytes each).
pub(super) const WHOLE: u8 = 6;
/// Bytes of bodies up to which an order is written as one record. The usual message is far below.
pub(super) const LONGEST_IN_ONE: usize = 1 << 20;
/// Bytes of a part. 512 KiB take a disk of 300 MB/s about two milliseconds.
const LENGTH: usize = 512 << 10;
/// Records whose parts are written in turn. The others wait, so that no more than these are in memory twice.
const MOST_IN_TURN: usize = 4;

/// The long records of an engine.
#[derive(Default)]
pub(super) struct LongRecords {
    waiting: Mutex<Waiting>,
    journaled: Mutex<BTreeMap<u64, Journaled>>,
}

#[derive(Default)]
struct Waiting {
    orders: VecDeque<Long>,
    has_thread: bool,
    /// The number of the next.
    next: u64,
}

/// How much of a record stands in the journal as parts.
struct Journaled {
    record: Arc<Vec<u8>>,
    length: usize,
}

/// An order whose record is written in parts.
struct Long {
    number: u64,
    prepared: Option<Prepared>,
    /// Made when its first turn comes.
    record: Option<Arc<Vec<u8>>>,
    written: usize,
    promise: Arc<Promise>,
}

/// What the client of a long record waits for.
#[derive(Default)]
struct Promise {
    state: Mutex<Promised>,
    settled: Condvar,
}

#[derive(Default)]
struct Promised {
    outcome: Option<Result<Applied, Error>>,
    waker: Option<Waker>,
}

/// A long order under way. If it is dropped before all parts are written, the order is not carried out.
pub(super) struct Promisee(Arc<Promise>);

impl LongRecords {
    /// A part of a record was read at a start, from the journal or from an image.
    pub(super) fn read_part(&self, number: u64, bytes: &[u8]) {
        let mut all = self.journaled();
        let part =
            all.entry(number).or_insert_with(|| Journaled { record: Arc::default(), length: 0 });
        Arc::make_mut(&mut part.record).extend_from_slice(bytes);
        part.length = part.record.len();
    }

    /// The record for whose parts this stands, read at a start behind its first byte; `None`: parts are missing.
    pub(super) fn record_of(&self, whole: &[u8]) -> Option<Arc<Vec<u8>>> {
        let (number, length) = whole.split_first_chunk()?;
        let length = u64::from_be_bytes(length.try_into().ok()?);
        let Journaled { record, .. } = self.journaled().remove(&u64::from_be_bytes(*number))?;
        (record.len() as u64 == length).then_some(record)
    }

    /// Forgets parts for which nothing came that stands for them.
    pub(super) fn forget_all(&self) {
        self.journaled().clear();
    }

    /// The parts that stand in the journal, as records once more.
    pub(super) fn image(&self) -> impl Iterator<Item = Vec<u8>> + Send + use<> {
        let all: Vec<_> = self
            .journaled()
            .iter()
            .map(|(number, part)| (*number, Arc::clone(&part.record), part.length))
            .collect();
        all.into_iter().flat_map(|(number, record, length)| {
            (0..length)
                .step_by(LENGTH)
                .map(move |at| part(number, &record[at..length.min(at + LENGTH)]))
        })
    }

    fn waiting(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn journaled(&self) -> MutexGuard<'_, BTreeMap<u64, Journaled>> {
        self.journaled.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Engine {
    /// Has the record of an order written in parts.
    pub(super) fn keep_in_parts(self: &Arc<Self>, prepared: Prepared) -> Promisee {
        let promise = Arc::new(Promise::default());
        let mut waiting = self.long.waiting();
        let number = waiting.next;
        waiting.next += 1;
        let own = Arc::clone(&promise);
        let prepared = Some(prepared);
        waiting.orders.push_back(Long { number, prepared, record: None, written: 0, promise: own });
        let has_thread = std::mem::replace(&mut waiting.has_thread, true);
        drop(waiting);
        if !has_thread {
            let own = Writing { engine: Arc::clone(self), is_over: false };
            let thread = thread::Builder::new().name("channel parts".to_owned());
            if let Err(error) = thread.spawn(move || own.write_all()) {
                // What was to be its work is dropped with it.
                log::error(format_args!("no thread for a long message of a channel: {error}"));
            }
        }
        Promisee(promise)
    }

    /// Writes the next part of a record, or what stands for all of them. Whether more is to be written.
    fn write_part(self: &Arc<Self>, long: &mut Long) -> Result<bool, Error> {
        let closed = || Error::NotKept(bine_store::Error::Closed);
        let (store, number) = (self.store.get().ok_or_else(closed)?, long.number);
        let prepared = long.prepared.as_ref().ok_or_else(closed)?;
        let record = long.record.get_or_insert_with(|| {
            let mut record = Vec::new();
            prepared.write(&mut record);
            Arc::new(record)
        });
        if long.written < record.len() {
            let end = record.len().min(long.written + LENGTH);
            let bytes = part(number, &record[long.written..end]);
            let (own, record) = (Arc::clone(self), Arc::clone(record));
            let then = move |_| {
                own.long.journaled().insert(number, Journaled { record, length: end });
            };
            let kept = self.place(store, &bytes, Sync::Commit, then);
            kept.and_then(Pending::wait).map_err(Error::NotKept)?;
            long.written = end;
            return Ok(true);
        }
        let length = record.len() as u64;
        let whole = [&[WHOLE], &number.to_be_bytes()[..], &length.to_be_bytes()].concat();
        let prepared = long.prepared.take().ok_or_else(closed)?;
        let (sync, outcome) = (sync_of(prepared.durability()), Arc::new(Outcome::default()));
        let (own, apply) = (Arc::clone(self), self.applying(prepared, &outcome));
        let then = move |sequence| {
            own.long.journaled().remove(&number);
            apply(sequence);
        };
        let kept = self.place(store, &whole, sync, then).and_then(Pending::wait);
        long.promise.settle(outcome_of(kept, &outcome));
        Ok(false)
    }
}

/// The thread that writes parts. Its end, whatever brings it about, leaves nobody waiting.
struct Writing {
    engine: Arc<Engine>,
    /// There was nothing left to write.
    is_over: bool,
}

impl Writing {
    /// Until there are no more.
    fn write_all(mut self) {
        let engine = Arc::clone(&self.engine);
        let mut in_turn: VecDeque<Long> = VecDeque::new();
        loop {
            let mut waiting = engine.long.waiting();
            while in_turn.len() < MOST_IN_TURN
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
                Ok(false) => drop(engine.long.journaled().remove(&long.number)),
                Err(error) => {
                    engine.long.journaled().remove(&long.number);
                    long.promise.settle(Err(error));
                }
            }
        }
    }
}

impl Drop for Writing {
    fn drop(&mut self) {
        if !self.is_over {
            let mut waiting = self.engine.long.waiting();
            waiting.has_thread = false;
            let left = std::mem::take(&mut waiting.orders);
            drop(waiting);
            drop(left);
        }
    }
}

impl Long {
    /// Whether its client still waits.
    fn is_wanted(&self) -> bool {
        Arc::strong_count(&self.promise) > 1
    }
}

impl Drop for Long {
    fn drop(&mut self) {
        self.promise.settle(Err(Error::NotKept(bine_store::Error::Closed)));
    }
}

impl Promise {
    /// Says what came of it, once.
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

    fn state(&self) -> MutexGuard<'_, Promised> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Promisee {
    pub(super) fn wait(self) -> Result<Applied, Error> {
        let is_open = |state: &mut Promised| state.outcome.is_none();
        let state = self.0.settled.wait_while(self.0.state(), is_open);
        let outcome = state.unwrap_or_else(PoisonError::into_inner).outcome.take();
        outcome.unwrap_or(Err(Error::NotKept(bine_store::Error::Closed)))
    }
}

impl Future for Promisee {
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

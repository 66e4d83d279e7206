//! Leases: at most one node holds a name.
//!
//! A lease is an entry of a key-value bucket, which only a compare-and-set changes. No clocks of
//! different machines are compared. The holder counts the duration from the moment before it sent its
//! last successful renewal. Another node takes the lease after it has observed the same revision for
//! the duration and a margin; it cannot have observed the revision before the holder sent it. So the
//! holder always stops first, unless the two clocks run at speeds that differ by a quarter.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use async_nats::jetstream::kv::{self, Operation, Store, UpdateErrorKind};
use async_nats::jetstream::stream::StorageType;
use bytes::Bytes;
use tokio::sync::{Notify, OnceCell, watch};
use tokio::time::timeout;

use crate::backoff::jittered;
use crate::connection::Connection;
use crate::connector::REQUEST_TIMEOUT;
use crate::error::{Error, root_cause};
use crate::members::open_bucket;
use crate::options::check_name;

/// The shortest duration: a renewal must fit into a third.
const SHORTEST: Duration = Duration::from_millis(300);
/// The number of failures after each other that are reported. A single one may be an election among
/// the servers.
const REPORTED_FAILURES: u32 = 2;
/// The longest duration that an entry may ask other nodes to wait.
const LONGEST: Duration = Duration::from_hours(1);

/// The leases that this node holds or wants.
pub(crate) struct Leases {
    node: String,
    /// Distinguishes this process from an earlier one of the same node.
    instance: String,
    store: OnceCell<Store>,
    all: Mutex<HashMap<String, Arc<Lease>>>,
    /// The number of leases whose tasks run, some to free an entry.
    running: watch::Sender<usize>,
}

/// One lease that this node wants.
pub(crate) struct Lease {
    name: String,
    duration: Duration,
    /// The end of the time in which this node holds the lease.
    held_until: Mutex<Option<Instant>>,
    /// Whether the node still wants it.
    is_wanted: Mutex<bool>,
    release: Notify,
}

/// What this node knows of the entry.
struct Observation {
    /// 0: there is no entry.
    revision: u64,
    holder: Option<Holder>,
    since: Instant,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Holder {
    /// Node and instance.
    owner: String,
    duration: Duration,
}

impl Leases {
    pub(crate) fn new(node: &str, instance: String) -> Self {
        Self {
            node: node.to_owned(),
            instance,
            store: OnceCell::new(),
            all: Mutex::new(HashMap::new()),
            running: watch::Sender::new(0),
        }
    }

    /// Begins to want a lease; `None` if it is already wanted.
    pub(crate) fn want(&self, name: &str, duration: Duration) -> Result<Option<Arc<Lease>>, Error> {
        check_name("the name of the lease", name)?;
        if duration < SHORTEST || duration > LONGEST {
            return Err(Error::Misuse(format!(
                "the lease {name} lasts {duration:?}: use 300 ms to 1 h"
            )));
        }
        let mut all = lock(&self.all);
        if all.contains_key(name) {
            return Ok(None);
        }
        let lease = Arc::new(Lease {
            name: name.to_owned(),
            duration,
            held_until: Mutex::new(None),
            is_wanted: Mutex::new(true),
            release: Notify::new(),
        });
        all.insert(name.to_owned(), Arc::clone(&lease));
        self.running.send_modify(|count| *count += 1);
        Ok(Some(lease))
    }

    pub(crate) fn holds(&self, name: &str) -> bool {
        lock(&self.all).get(name).is_some_and(|lease| lease.is_held())
    }

    /// Ends a lease at once on this node; its task then frees the entry for other nodes.
    pub(crate) fn release(&self, name: &str) {
        if let Some(lease) = lock(&self.all).remove(name) {
            *lock(&lease.is_wanted) = false;
            *lock(&lease.held_until) = None;
            lease.release.notify_one();
        }
    }

    pub(crate) fn release_all(&self) {
        let names: Vec<String> = lock(&self.all).keys().cloned().collect();
        for name in names {
            self.release(&name);
        }
    }

    /// Waits until the entries of all released leases are free.
    pub(crate) async fn released(&self) {
        // The sender is part of `self`, so it is not closed.
        let _ = self.running.subscribe().wait_for(|count| *count == 0).await;
    }

    /// Acquires and renews a lease until it is released.
    pub(crate) async fn run(
        &self,
        connection: &Connection,
        lease: &Lease,
        warn: impl Fn(&str) + Send + Sync,
    ) {
        self.renew(connection, lease, warn).await;
        self.running.send_modify(|count| *count -= 1);
    }

    async fn renew(
        &self,
        connection: &Connection,
        lease: &Lease,
        warn: impl Fn(&str) + Send + Sync,
    ) {
        let mut observation = None;
        let mut failures = 0;
        loop {
            let opened = self.store.get_or_try_init(|| open(connection)).await;
            let outcome = match &opened {
                Ok(store) => {
                    let step = self.step(store, lease, &mut observation);
                    // An attempt that takes longer has an unknown outcome; the next one observes it.
                    timeout(REQUEST_TIMEOUT, step).await.unwrap_or_else(|_| {
                        Err(format!("no answer within {} s", REQUEST_TIMEOUT.as_secs()))
                    })
                }
                Err(error) => Err(error.to_string()),
            };
            if !*lock(&lease.is_wanted) {
                if let Ok(store) = opened {
                    let free = self.free(store, lease, observation.as_ref());
                    let _ = timeout(REQUEST_TIMEOUT, free).await;
                }
                return;
            }
            failures = if outcome.is_ok() { 0 } else { failures + 1 };
            if let Err(reason) = outcome
                && failures >= REPORTED_FAILURES
            {
                warn(&problem(connection, lease, &reason));
            }
            let _ = timeout(jittered(lease.duration / 3), lease.release.notified()).await;
        }
    }

    /// Observes the entry, then renews or takes the lease if this node may. An error is the reason why
    /// the servers do not answer or refuse the request.
    async fn step(
        &self,
        store: &Store,
        lease: &Lease,
        observation: &mut Option<Observation>,
    ) -> Result<(), String> {
        let entry = store.entry(&lease.name).await.map_err(|error| root_cause(&error))?;
        let (revision, holder) = match entry {
            // A deleted entry has a revision too, which the compare-and-set needs.
            Some(entry) if entry.operation == Operation::Put => {
                (entry.revision, Holder::decode(&entry.value))
            }
            Some(entry) => (entry.revision, None),
            None => (0, None),
        };
        let is_same = observation.as_ref().is_some_and(|known| known.revision == revision);
        if !is_same {
            *observation = Some(Observation { revision, holder, since: Instant::now() });
        }
        let Some(known) = observation.as_ref() else { return Ok(()) };
        let is_own = known.holder.as_ref().is_some_and(|holder| holder.owner == self.owner());
        let is_free = match &known.holder {
            Some(holder) => known.since.elapsed() > with_margin(holder.duration),
            // A freed entry is free at once. A missing one may be a loss of the server, after which
            // an unknown holder needs its time.
            None => revision > 0 || known.since.elapsed() > with_margin(lease.duration),
        };
        if !*lock(&lease.is_wanted) || !(is_own || is_free) {
            return Ok(());
        }
        let begun = Instant::now();
        let holder = Holder { owner: self.owner(), duration: lease.duration };
        let value = holder.encode();
        let revision = match store.update(&lease.name, value, known.revision).await {
            Ok(revision) => revision,
            // Another node was faster.
            Err(error) if error.kind() == UpdateErrorKind::WrongLastRevision => return Ok(()),
            Err(error) => return Err(root_cause(&error)),
        };
        *observation = Some(Observation { revision, holder: Some(holder), since: begun });
        if *lock(&lease.is_wanted) {
            *lock(&lease.held_until) = Some(begun + lease.duration);
        }
        Ok(())
    }

    /// Marks the entry as free if this node holds it.
    async fn free(&self, store: &Store, lease: &Lease, observation: Option<&Observation>) {
        let Some(Observation { revision, holder: Some(holder), .. }) = observation else { return };
        if holder.owner == self.owner() {
            // If it fails, other nodes wait for the duration.
            let _ = store.update(&lease.name, Bytes::new(), *revision).await;
        }
    }

    fn owner(&self) -> String {
        format!("{}.{}", self.node, self.instance)
    }
}

impl Lease {
    fn is_held(&self) -> bool {
        lock(&self.held_until).is_some_and(|end| Instant::now() < end)
    }
}

impl Holder {
    fn encode(&self) -> Bytes {
        Bytes::from(format!("{} {}", self.owner, self.duration.as_millis()))
    }

    /// Reads an entry. An unreadable one, like the empty one of a free lease, has no holder.
    fn decode(value: &[u8]) -> Option<Self> {
        let (owner, millis) = std::str::from_utf8(value).ok()?.split_once(' ')?;
        let duration = Duration::from_millis(millis.parse().ok()?).min(LONGEST);
        Some(Self { owner: owner.to_owned(), duration })
    }
}

/// Describes why a lease is not renewed, and what the operator does.
fn problem(connection: &Connection, lease: &Lease, reason: &str) -> String {
    let (name, bucket) = (&lease.name, bucket(connection));
    // The server does not answer a request that it does not permit.
    let denied = connection.events.take_denial();
    match denied {
        Some(denied) => format!("this node cannot hold the lease `{name}`: {denied}"),
        None => format!(
            "this node cannot hold the lease `{name}` ({reason}): check that the bucket `{bucket}` of \
             the NATS servers exists and may store more; if it was deleted, restart the nodes"
        ),
    }
}

fn bucket(connection: &Connection) -> String {
    format!("{}-leases", connection.name)
}

/// Adds a quarter: for clocks of different speeds.
fn with_margin(duration: Duration) -> Duration {
    duration * 5 / 4
}

async fn open(connection: &Connection) -> Result<Store, Error> {
    open_bucket(
        connection,
        kv::Config {
            bucket: bucket(connection),
            description: "the leases of a Bine cluster".to_owned(),
            max_value_size: 1024,
            // In memory, a restart of the server would free a lease that a node holds.
            storage: StorageType::File,
            ..kv::Config::default()
        },
    )
    .await
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_holders_and_free_entries() {
        let holder = Holder { owner: "a.1".to_owned(), duration: Duration::from_secs(3) };
        assert_eq!(Holder::decode(&holder.encode()), Some(holder));
        for free in [&b""[..], b"a", b"a b", b"\xff 1"] {
            assert_eq!(Holder::decode(free), None);
        }
        let endless = Holder::decode(b"a 99999999999999").unwrap();
        assert_eq!(endless.duration, LONGEST);
    }
}

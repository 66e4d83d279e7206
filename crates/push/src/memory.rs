//! Counts the memory of a hub: each message once, in total and per publisher.

use alloc::collections::BTreeMap;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicU64, Ordering};

use crate::message::Message;
use crate::publisher::Publisher;
use crate::refused::{Quota, Refused};

/// The bytes that all channels hold, in total and for each publisher.
///
/// Prepared commands that are not yet applied count too, so that many commands cannot exceed a
/// quota together.
#[derive(Debug, Default)]
pub(crate) struct Memory {
    total: Account,
    publishers: BTreeMap<Arc<str>, Account>,
    /// The number of queues that hold a message, by its address. A message without an entry is in
    /// one queue.
    shared: BTreeMap<usize, u32>,
    /// The number of publishers at which the next sweep removes those without bytes.
    sweep_at: usize,
}

#[derive(Debug, Default)]
struct Account {
    bytes: u64,
    /// Bytes of prepared commands that are not yet applied.
    pending: Arc<AtomicU64>,
}

/// Proof that the quotas allow a command.
#[derive(Clone, Copy)]
#[must_use]
pub(crate) struct Headroom<'p> {
    bytes: u64,
    publisher: Option<&'p Publisher>,
}

/// Memory that a prepared command reserved: it counts as used, in total and for the publisher.
/// Dropping the reservation releases the memory.
#[derive(Debug)]
#[must_use]
pub struct Reservation {
    bytes: u64,
    accounts: Vec<Arc<AtomicU64>>,
}

/// Bytes that a message takes for each queue after the first.
pub(crate) const SHARE: u64 = 48;
/// The number of publishers below which no sweep runs.
const SWEEP_MIN: usize = 1024;

impl Memory {
    /// Returns the bytes that all messages and channels take.
    pub(crate) fn bytes(&self) -> u64 {
        self.total.bytes
    }

    /// Returns the bytes that the messages and channels of a publisher take.
    pub(crate) fn publisher_bytes(&self, publisher: &str) -> u64 {
        self.publishers.get(publisher).map_or(0, |account| account.bytes)
    }

    /// Whether `requested` more bytes fit besides those in use and reserved.
    pub(crate) fn has_room(&self, requested: u64, limit: u64) -> bool {
        self.total.used().saturating_add(requested) <= limit
    }

    /// Checks whether the quotas allow a command. `freed` returns the bytes that retention drops
    /// with it: in total, and of this publisher.
    ///
    /// # Errors
    /// The command exceeds a quota.
    pub(crate) fn room<'p>(
        &self,
        requested: u64,
        limit: u64,
        publisher: Option<&'p Publisher>,
        freed: impl Fn() -> (u64, u64),
    ) -> Result<Headroom<'p>, Refused> {
        let mut freed_bytes = None;
        let mut check = |quota: Quota, used: u64, limit: u64, share_of: fn((u64, u64)) -> u64| {
            if used.saturating_add(requested) <= limit {
                return Ok(());
            }
            // `freed` is expensive, so it is called only where it decides.
            let freed = share_of(*freed_bytes.get_or_insert_with(&freed));
            if used.saturating_sub(freed).saturating_add(requested) <= limit {
                return Ok(());
            }
            Err(Refused::QuotaExceeded { quota, used, limit, requested })
        };
        check(Quota::Total, self.total.used(), limit, |freed| freed.0)?;
        if let Some(publisher) = publisher {
            let used = self.publishers.get(&publisher.name).map_or(0, Account::used);
            let quota = Quota::Publisher(publisher.name.clone());
            check(quota, used, publisher.bytes, |freed| freed.1)?;
        }
        Ok(Headroom { bytes: requested, publisher })
    }

    /// Reserves the memory of a command.
    pub(crate) fn reserve(&mut self, room: Headroom<'_>) -> Reservation {
        let mut accounts = Vec::from([self.total.pending.clone()]);
        if let Some(publisher) = room.publisher {
            self.sweep();
            let account = self.publishers.entry(publisher.name.clone()).or_default();
            accounts.push(account.pending.clone());
        }
        for account in &accounts {
            account.fetch_add(room.bytes, Ordering::Relaxed);
        }
        Reservation { bytes: room.bytes, accounts }
    }

    /// Returns one shared copy of a publisher's name for all that they publish.
    pub(crate) fn intern_publisher(&mut self, publisher: &Arc<str>) -> Arc<str> {
        if let Some((name, _)) = self.publishers.get_key_value(publisher) {
            return name.clone();
        }
        self.publishers.insert(publisher.clone(), Account::default());
        publisher.clone()
    }

    /// Adds bytes to the total and to a publisher.
    pub(crate) fn add(&mut self, publisher: Option<&Arc<str>>, bytes: u64) {
        self.total.bytes += bytes;
        if let Some(publisher) = publisher {
            self.publishers.entry(publisher.clone()).or_default().bytes += bytes;
        }
    }

    /// Subtracts bytes that were [added](Self::add).
    pub(crate) fn subtract(&mut self, publisher: Option<&Arc<str>>, bytes: u64) {
        self.total.bytes -= bytes;
        let Some(publisher) = publisher else { return };
        if let Some(account) = self.publishers.get_mut(publisher) {
            account.bytes -= bytes;
            if account.used() == 0 {
                self.publishers.remove(publisher);
            }
        }
    }

    /// Counts a message that one queue holds.
    pub(crate) fn charge(&mut self, message: &Message) {
        self.add(message.publisher.as_ref(), message.footprint());
    }

    /// Counts one more queue that holds a message.
    pub(crate) fn share(&mut self, message: &Arc<Message>) {
        *self.shared.entry(address(message)).or_insert(1) += 1;
        self.total.bytes += SHARE;
    }

    /// Counts a queue that dropped a message, and returns whether it was the last one.
    pub(crate) fn release(&mut self, message: &Arc<Message>) -> bool {
        if let Some(holders) = self.shared.get_mut(&address(message)) {
            *holders -= 1;
            if *holders == 1 {
                self.shared.remove(&address(message));
            }
            self.total.bytes -= SHARE;
            return false;
        }
        self.subtract(message.publisher.as_ref(), message.footprint());
        true
    }

    /// Returns the number of queues that hold a message.
    pub(crate) fn holders(&self, message: &Arc<Message>) -> u32 {
        self.shared.get(&address(message)).copied().unwrap_or(1)
    }

    /// Removes publishers without bytes, such as those whose publication could not be journaled.
    fn sweep(&mut self) {
        if self.publishers.len() >= self.sweep_at.max(SWEEP_MIN) {
            self.publishers.retain(|_, account| {
                #[cfg(test)]
                crate::steps::count();
                account.used() > 0
            });
            self.sweep_at = 2 * self.publishers.len();
        }
    }
}

impl Account {
    fn used(&self) -> u64 {
        self.bytes.saturating_add(self.pending.load(Ordering::Relaxed))
    }
}

impl Reservation {
    /// Returns the size of the reserved memory in bytes.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        for account in &self.accounts {
            account.fetch_sub(self.bytes, Ordering::Relaxed);
        }
    }
}

/// Returns the address of a message, which is unique while a queue holds the message.
pub(crate) fn address(message: &Arc<Message>) -> usize {
    Arc::as_ptr(message) as usize
}

#[cfg(test)]
mod tests {
    use alloc::format;

    use super::*;

    fn publisher(number: usize) -> Publisher {
        Publisher { name: format!("publisher {number}").into(), bytes: u64::MAX }
    }

    fn reserve(memory: &mut Memory, number: usize) -> Reservation {
        let publisher = publisher(number);
        let room = memory.room(7, u64::MAX, Some(&publisher), || (0, 0)).unwrap();
        memory.reserve(room)
    }

    #[test]
    fn forgets_publishers_whose_commands_were_given_up() {
        let mut memory = Memory::default();
        memory.add(Some(&publisher(0).name), 5);
        let _prepared = reserve(&mut memory, 1);
        for number in 2..10 * SWEEP_MIN {
            drop(reserve(&mut memory, number));
            assert!(memory.publishers.len() <= SWEEP_MIN);
        }
        assert_eq!(memory.publisher_bytes("publisher 0"), 5);
        assert_eq!(memory.publishers["publisher 1"].used(), 7, "the command is still prepared");
    }

    #[test]
    fn keeps_few_publishers_without_a_sweep() {
        let mut memory = Memory::default();
        drop(reserve(&mut memory, 1));
        drop(reserve(&mut memory, 2));
        assert_eq!(memory.publishers.len(), 2);
    }

    /// Each sweep visits every publisher, so it may run only after their number has doubled.
    #[test]
    fn sweeps_publishers_in_constant_steps_per_command() {
        let mut memory = Memory::default();
        let count = 8 * SWEEP_MIN;
        crate::steps::taken();
        let reserved: Vec<Reservation> =
            (0..count).map(|number| reserve(&mut memory, number)).collect();
        let steps = crate::steps::taken();
        assert!(steps <= 2 * count as u64, "{steps} steps for {count} commands");
        assert_eq!(memory.publishers.len(), reserved.len());
    }
}

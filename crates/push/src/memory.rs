//! What a hub holds in memory: each message once, however many channels hold it, and whose publication it is.

use alloc::collections::BTreeMap;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicU64, Ordering};

use crate::message::Message;
use crate::order::Publisher;
use crate::refused::{Quota, Refused};

/// The bytes that all channels hold, in total and for each publisher.
///
/// Publications that were prepared and not yet applied count too, so that a crowd of them cannot pass a quota together.
#[derive(Debug, Default)]
pub(crate) struct Memory {
    total: Account,
    publishers: BTreeMap<Arc<str>, Account>,
    /// How many queues hold a message, by its address; a message that is not listed is in one queue.
    shared: BTreeMap<usize, u32>,
    /// The number of publishers at which those who hold nothing are removed.
    sweep_at: usize,
}

#[derive(Debug, Default)]
struct Account {
    bytes: u64,
    /// Bytes of publications that were prepared and not yet applied.
    pending: Arc<AtomicU64>,
}

/// Room that there is for an order.
#[derive(Clone, Copy)]
#[must_use]
pub(crate) struct Headroom<'p> {
    bytes: u64,
    publisher: Option<&'p Publisher>,
}

/// Room that a prepared order will take. Dropping it gives the room back.
#[derive(Debug)]
pub(crate) struct Reservation {
    bytes: u64,
    accounts: Vec<Arc<AtomicU64>>,
}

/// Bytes that a message takes for each queue that holds it besides the first.
pub(crate) const SHARE: u64 = 48;
/// Publishers that are not swept.
const SWEEP_MIN: usize = 1024;

impl Memory {
    /// Bytes that all messages and channels take.
    pub(crate) fn bytes(&self) -> u64 {
        self.total.bytes
    }

    /// Bytes that the messages and channels of a publisher take.
    pub(crate) fn publisher_bytes(&self, publisher: &str) -> u64 {
        self.publishers.get(publisher).map_or(0, |account| account.bytes)
    }

    /// Whether so many bytes more fit, without what is reserved.
    pub(crate) fn has_room(&self, wanted: u64, limit: u64) -> bool {
        self.total.used().saturating_add(wanted) <= limit
    }

    /// Looks whether there is room for an order. `freed` are bytes that retention drops with it: in all, and of this
    /// publisher.
    ///
    /// # Errors
    /// A quota does not allow it.
    pub(crate) fn room<'p>(
        &self,
        wanted: u64,
        limit: u64,
        publisher: Option<&'p Publisher>,
        freed: impl Fn() -> (u64, u64),
    ) -> Result<Headroom<'p>, Refused> {
        let mut freed_bytes = None;
        let mut check = |quota: Quota, used: u64, limit: u64, share_of: fn((u64, u64)) -> u64| {
            if used.saturating_add(wanted) <= limit {
                return Ok(());
            }
            // Looked for only where it decides.
            let freed = share_of(*freed_bytes.get_or_insert_with(&freed));
            if used.saturating_sub(freed).saturating_add(wanted) <= limit {
                return Ok(());
            }
            Err(Refused::QuotaExceeded { quota, used, limit, requested: wanted })
        };
        check(Quota::Total, self.total.used(), limit, |freed| freed.0)?;
        if let Some(publisher) = publisher {
            let used = self.publishers.get(&publisher.name).map_or(0, Account::used);
            let quota = Quota::Publisher(publisher.name.clone());
            check(quota, used, publisher.bytes, |freed| freed.1)?;
        }
        Ok(Headroom { bytes: wanted, publisher })
    }

    /// Reserves it.
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

    /// The name of a publisher as it is kept: one text for all that they have published.
    pub(crate) fn intern_publisher(&mut self, publisher: &Arc<str>) -> Arc<str> {
        if let Some((name, _)) = self.publishers.get_key_value(publisher) {
            return name.clone();
        }
        self.publishers.insert(publisher.clone(), Account::default());
        publisher.clone()
    }

    /// Counts bytes of a publisher.
    pub(crate) fn add(&mut self, publisher: Option<&Arc<str>>, bytes: u64) {
        self.total.bytes += bytes;
        if let Some(publisher) = publisher {
            self.publishers.entry(publisher.clone()).or_default().bytes += bytes;
        }
    }

    /// Takes back what was [added](Self::add).
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

    /// Notes that one more queue holds a message that was charged.
    pub(crate) fn share(&mut self, message: &Arc<Message>) {
        *self.shared.entry(address(message)).or_insert(1) += 1;
        self.total.bytes += SHARE;
    }

    /// Notes that a queue has dropped a message. True if it was the last one.
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

    /// In how many queues a message is.
    pub(crate) fn holders(&self, message: &Arc<Message>) -> u32 {
        self.shared.get(&address(message)).copied().unwrap_or(1)
    }

    /// Removes publishers who hold nothing, as those whose publication could not be kept.
    fn sweep(&mut self) {
        if self.publishers.len() >= self.sweep_at.max(SWEEP_MIN) {
            self.publishers.retain(|_, account| account.used() > 0);
            self.sweep_at = 2 * self.publishers.len();
        }
    }
}

impl Account {
    fn used(&self) -> u64 {
        self.bytes.saturating_add(self.pending.load(Ordering::Relaxed))
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        for account in &self.accounts {
            account.fetch_sub(self.bytes, Ordering::Relaxed);
        }
    }
}

/// Where a message is, which no other message is while a queue holds it.
pub(crate) fn address(message: &Arc<Message>) -> usize {
    Arc::as_ptr(message) as usize
}

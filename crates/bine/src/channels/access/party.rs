//! Decides how many may wait and how fast they may publish: each address, each subject and all together; and whose grants
//! were revoked.
//!
//! Those who come from one address with one grant are a party, and who waits names it by one number. All clients of this
//! machine are one address with generous caps: they are the program's own people, or a proxy, behind which addresses mean
//! nothing.

mod holders;

use std::collections::HashMap;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use bine_server::{AddressBlock, memory_limit};

use self::holders::Holders;
use super::grant::{Issued, Session};
use crate::store::RowId;

/// How much is too much. What exceeds one of them is answered 429, and 507 if it is a number of bytes.
///
/// Holds are polls that wait, streams and conversations by WebSocket; one that follows many channels counts for one more
/// with each 64 of them. An address of IPv6 is its first 64 bits, which are one household's. All clients of this machine
/// are one address, which may hold half of `holds`, publish a thousand times as many messages as another, and store half
/// of `bytes`.
///
/// ```
/// use bine::channels::{Access, Caps};
///
/// let caps = Caps { holds_per_address: 16, ..Caps::default() };
/// let access = Access::everybody_follows().caps(caps);
/// # drop(access);
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Caps {
    /// Holds at once from one address, 256 unless said. As many of those who are not known are listed as present.
    pub holds_per_address: u32,
    /// Holds at once of one subject, 256 unless said.
    pub holds_per_subject: u32,
    /// Holds at once, a million unless said: some 5 GB of the system's memory.
    pub holds: u32,
    /// Messages from one address each second, 100 unless said; as many may come at once.
    pub messages_per_address: u32,
    /// Messages of one subject each second, 1000 unless said; as many may come at once.
    pub messages_per_subject: u32,
    /// Bytes of memory that all channels and their messages take. A quarter of the memory that the server may use unless
    /// said: of the machine, of its control group, or of `most-memory`.
    pub bytes: Option<u64>,
    /// Bytes of the messages of one channel; a quarter of `bytes` unless said, and 64 MiB at least.
    pub bytes_per_channel: Option<u64>,
    /// Bytes that the channels and messages of one subject take; a quarter of `bytes` unless said, and 64 MiB at least.
    /// Those of a client that shows no token count for its address.
    pub bytes_per_subject: Option<u64>,
}

/// The bytes that channels may take.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Quotas {
    pub(crate) bytes: u64,
    pub(crate) per_channel: u64,
    pub(crate) per_subject: u64,
    /// Of all clients of this machine that show no token.
    pub(crate) local: u64,
}

impl Default for Caps {
    fn default() -> Self {
        Self {
            holds_per_address: 256,
            holds_per_subject: 256,
            holds: 1_000_000,
            messages_per_address: 100,
            messages_per_subject: 1000,
            bytes: None,
            bytes_per_channel: None,
            bytes_per_subject: None,
        }
    }
}

impl Caps {
    /// The bytes that channels may take.
    pub(crate) fn quotas(&self) -> Quotas {
        let bytes = self.bytes.unwrap_or_else(|| memory_limit().map_or(FEW_BYTES, |most| most / 4));
        let usual = (bytes / 4).max(LEAST_SHARE).min(bytes);
        let per_subject = self.bytes_per_subject.unwrap_or(usual);
        Quotas {
            bytes,
            per_channel: self.bytes_per_channel.unwrap_or(usual).min(bytes),
            per_subject,
            local: per_subject.max(bytes / 2),
        }
    }

    pub(super) fn holds_of(&self, block: AddressBlock) -> u32 {
        if block.is_local() { self.local_holds() } else { self.holds_per_address }
    }

    fn local_holds(&self) -> u32 {
        self.holds_per_address.max(self.holds / 2)
    }

    fn messages_of(&self, block: AddressBlock) -> u32 {
        let most = self.messages_per_address;
        if block.is_local() { most.max(1).saturating_mul(LOCAL_MESSAGES) } else { most }
    }
}

/// All who wait or publish, by their addresses and their names.
pub(crate) struct Parties {
    caps: OnceLock<Caps>,
    /// How long a revocation is remembered, in milliseconds.
    memory: OnceLock<u64>,
    /// Holds.
    total: AtomicU32,
    /// Those of clients of this machine without a grant.
    local: AtomicU32,
    /// How often something was revoked.
    revocations: AtomicU32,
    book: Mutex<Book>,
}

#[derive(Default)]
struct Book {
    /// By their numbers, [`FIRST`] onwards.
    parties: Vec<Option<Party>>,
    vacant: Vec<u32>,
    numbers: HashMap<Key, u32>,
    addresses: HashMap<AddressBlock, Account>,
    subjects: HashMap<Arc<str>, Account>,
    revoked: HashMap<Arc<str>, Revoked>,
    /// Parties that wait by a login, by its row.
    logins: HashMap<RowId, Vec<u32>>,
    holders: Holders,
    /// Accounts are looked through when there are so many.
    sweep_at: usize,
}

/// A party's address, and its session by place in memory, where it stays while the party is.
type Key = (AddressBlock, usize);

struct Party {
    block: AddressBlock,
    session: Option<Arc<Session>>,
    holds: u32,
}

/// What one address or subject has.
#[derive(Clone, Copy, Default)]
struct Account {
    holds: u32,
    /// Its messages are paid for up to here, in microseconds since 1970.
    paid: u64,
}

/// Whose grants from before are not good any more.
#[derive(Clone, Copy)]
struct Revoked {
    at: u64,
    /// How many it makes.
    number: u32,
    /// All of them have ended by then.
    until: u64,
}

/// What is paid for.
#[derive(Clone, Copy)]
pub(super) enum Paid {
    /// Messages that are published.
    Messages(usize),
    /// A coming that is told. As many may come at once as may wait: behind a start all do.
    Coming,
}

/// Why somebody may not just now.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Crowded {
    /// The setting that says it.
    cap: &'static str,
    most: u32,
    /// In seconds.
    pub(crate) retry: u64,
}

/// Why nobody was let in.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Shut {
    Crowded(Crowded),
    /// The session was revoked meanwhile.
    Revoked,
}

/// Whose hold is nobody's: the program's own.
pub(crate) const NOBODY: u32 = 0;
/// Of clients of this machine without a grant: no party is kept of them, since there may be a crowd behind a proxy.
const ANYBODY: u32 = 1;
/// From here on they are parties.
pub(super) const FIRST: u32 = 2;
/// Of those with a grant, which can end.
const GRANTED: u32 = 1 << 31;
/// Subjects whose revocation is remembered.
pub(crate) const MOST_REVOKED: usize = 100_000;
/// Accounts that are not swept.
const FEW: usize = 1024;
/// When to come again who found all places taken, in seconds: a poll is over by then.
pub(super) const RETRY: u64 = 30;
/// With each so many channels a hold counts for one more: it takes their room.
const CHANNELS: usize = 64;
const SECOND: u64 = 1_000_000;
/// Clients of this machine may publish so many times as many messages as those of another address.
const LOCAL_MESSAGES: u32 = 1000;
/// Bytes of all channels where the system does not say how much memory there is.
const FEW_BYTES: u64 = 1 << 30;
/// Bytes that one channel or subject may have at least, if all together may: several of the largest publications.
const LEAST_SHARE: u64 = 64 << 20;

impl Parties {
    pub(crate) fn new() -> Self {
        Self {
            caps: OnceLock::new(),
            memory: OnceLock::new(),
            total: AtomicU32::new(0),
            local: AtomicU32::new(0),
            revocations: AtomicU32::new(0),
            book: Mutex::default(),
        }
    }

    /// There is one program, which says it once.
    pub(crate) fn settle(&self, caps: Caps, memory: Duration) {
        let _ = (self.caps.set(caps), self.memory.set(memory.as_millis() as u64));
    }

    pub(super) fn caps(&self) -> Caps {
        self.caps.get().copied().unwrap_or_default()
    }

    /// How many wait at this moment.
    pub(crate) fn holds(&self) -> u32 {
        self.total.load(Ordering::Relaxed)
    }

    /// Counts one more hold, and says whose. It is [left](Self::leave) by whoever has got the number.
    pub(super) fn enter(
        &self,
        block: AddressBlock,
        session: Option<&Arc<Session>>,
    ) -> Result<u32, Shut> {
        let caps = self.caps();
        if self.total.load(Ordering::Relaxed) >= caps.holds {
            return Err(Shut::crowded("holds", caps.holds, RETRY));
        }
        if block.is_local() && session.is_none() {
            let most = caps.local_holds();
            if self.local.load(Ordering::Relaxed) >= most {
                return Err(Shut::crowded("holds_per_address", most, RETRY));
            }
            return Ok(ANYBODY);
        }
        let book = &mut *self.book();
        // What ends from here on finds the party there, since that takes the same lock when it can be seen.
        let has_ended = |session: &Arc<Session>| {
            book.has_revoked(session) || session.login.as_ref().is_some_and(|login| !login.holds())
        };
        if session.is_some_and(has_ended) {
            return Err(Shut::Revoked);
        }
        let subject = session.and_then(|session| session.subject());
        if holds_of(&book.addresses, &block) >= caps.holds_of(block) {
            return Err(Shut::crowded("holds_per_address", caps.holds_of(block), RETRY));
        }
        let of_subject = subject.map_or(0, |subject| holds_of(&book.subjects, subject));
        if of_subject >= caps.holds_per_subject {
            return Err(Shut::crowded("holds_per_subject", caps.holds_per_subject, RETRY));
        }
        book.addresses.entry(block).or_default().holds += 1;
        if let Some(subject) = subject {
            book.subjects.entry(Arc::clone(subject)).or_default().holds += 1;
        }
        Ok(book.number(block, session))
    }

    /// What [`enter`](Self::enter) has counted is no more.
    pub(super) fn leave(&self, number: u32) {
        let place = number & !GRANTED;
        if place < FIRST {
            return;
        }
        let book = &mut *self.book();
        let slot = (place - FIRST) as usize;
        let Some(Some(party)) = book.parties.get_mut(slot) else { return };
        party.holds -= 1;
        let subject = party.session.as_ref().and_then(|session| session.subject());
        give_back(&mut book.addresses, &party.block);
        if let Some(subject) = subject {
            give_back(&mut book.subjects, subject);
        }
        if party.holds == 0 {
            let key = key(party.block, party.session.as_ref());
            book.numbers.remove(&key);
            let party = book.parties[slot].take();
            book.vacant.push(place - FIRST);
            if let Some(login) = party.as_ref().and_then(Party::login) {
                book.forget(login, place - FIRST);
            }
            if let Some(session) = party.and_then(|party| party.session) {
                book.holders.remove(place - FIRST, &session);
            }
        }
    }

    /// A hold of this party waits now.
    pub(crate) fn sit(&self, number: u32) {
        if number != NOBODY {
            self.total.fetch_add(1, Ordering::Relaxed);
        }
        if number == ANYBODY {
            self.local.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// It waits no longer, and is left.
    pub(crate) fn rise(&self, number: u32) {
        if number != NOBODY {
            self.total.fetch_sub(1, Ordering::Relaxed);
            self.leave(number);
        }
        if number == ANYBODY {
            self.local.fetch_sub(1, Ordering::Relaxed);
        }
    }

    /// A hold of this party that waits follows so many channels. It may overdraw; who comes behind it waits until it has
    /// gone.
    pub(crate) fn load(&self, number: u32, channels: usize) {
        self.weigh(number, channels, u32::saturating_add);
    }

    /// It follows them no longer, and waits still.
    pub(crate) fn unload(&self, number: u32, channels: usize) {
        self.weigh(number, channels, u32::saturating_sub);
    }

    fn weigh(&self, number: u32, channels: usize, change: fn(u32, u32) -> u32) {
        let more = (channels / CHANNELS) as u32;
        if number == NOBODY || more == 0 {
            return;
        }
        let Book { parties, addresses, subjects, .. } = &mut *self.book();
        let total = |total| Some(change(total, more));
        let _ = self.total.fetch_update(Ordering::Relaxed, Ordering::Relaxed, total);
        let slot = (number & !GRANTED).checked_sub(FIRST);
        let party = slot.and_then(|slot| parties.get(slot as usize)?.as_ref());
        let Some(Party { block, session, .. }) = party else { return };
        let subject = session.as_ref().and_then(|session| session.subject());
        // The hold itself stands in both, so they are there.
        let address = addresses.get_mut(block);
        let own = subject.and_then(|subject| subjects.get_mut(subject));
        for account in [address, own].into_iter().flatten() {
            account.holds = change(account.holds, more);
        }
    }

    /// When a party's grant ends, in milliseconds since 1970; 0: it was revoked. `None`: it has none that ends.
    pub(crate) fn ends(&self, number: u32) -> Option<u64> {
        if number & GRANTED == 0 {
            return None;
        }
        let slot = ((number & !GRANTED) - FIRST) as usize;
        let book = self.book();
        let session = book.parties.get(slot)?.as_ref()?.session.as_ref()?;
        Some(session.ends()).filter(|ends| *ends != u64::MAX)
    }

    /// Counts messages at `now`, in microseconds since 1970. A batch may overdraw; what comes behind it waits until that
    /// is paid.
    pub(super) fn spend(
        &self,
        block: AddressBlock,
        session: Option<&Arc<Session>>,
        paid: Paid,
        now: u64,
    ) -> Result<(), Crowded> {
        let subject = session.and_then(|session| session.subject());
        let caps = self.caps();
        let book = &mut *self.book();
        book.sweep(now);
        let address = book.addresses.entry(block).or_default();
        let own = subject.map(|subject| book.subjects.entry(Arc::clone(subject)).or_default());
        let mut accounts = [
            ("messages_per_address", caps.messages_of(block), caps.holds_of(block), Some(address)),
            ("messages_per_subject", caps.messages_per_subject, caps.holds_per_subject, own),
        ];
        let each = |most: u32| SECOND / u64::from(most).clamp(1, SECOND);
        for (cap, most, holds, account) in &accounts {
            let Some(account) = account else { continue };
            let owed = account.paid.saturating_sub(now);
            let may_owe = match paid {
                Paid::Messages(_) if *most == 0 => 0,
                Paid::Messages(_) => SECOND,
                Paid::Coming => SECOND.max(each(*most) * u64::from(*holds)),
            };
            if owed >= may_owe {
                return Err(Crowded { cap, most: *most, retry: (owed / SECOND).max(1) });
            }
        }
        let messages = match paid {
            Paid::Messages(messages) => messages as u64,
            Paid::Coming => 1,
        };
        for (_, most, _, account) in &mut accounts {
            if let Some(account) = account {
                account.paid = account.paid.max(now) + each(*most) * messages;
            }
        }
        Ok(())
    }

    /// Whether a session was revoked since it was given.
    pub(super) fn has_revoked(&self, session: &Session) -> bool {
        self.revocations.load(Ordering::Acquire) > 0 && self.book().has_revoked(session)
    }

    /// How often something was revoked: whoever has seen the same number need not look.
    pub(crate) fn revocations(&self) -> u32 {
        self.revocations.load(Ordering::Acquire)
    }

    /// How long a revocation is remembered, in milliseconds.
    pub(crate) fn memory(&self) -> u64 {
        self.memory.get().copied().unwrap_or_default()
    }

    /// Ends what a subject was granted until `at`. False: too many are remembered already, and nothing was done.
    pub(crate) fn revoke(&self, subject: &str, at: u64, until: u64) -> bool {
        let book = &mut *self.book();
        let subject: Arc<str> = subject.into();
        if book.revoked.len() >= MOST_REVOKED && !book.revoked.contains_key(&subject) {
            book.revoked.retain(|_, revoked| revoked.until > at);
            if book.revoked.len() >= MOST_REVOKED {
                return false;
            }
        }
        // Only under the lock does it change.
        let number = self.revocations() + 1;
        let slots: Vec<u32> = book.holders.of(&subject).collect();
        for slot in slots {
            let party = book.parties.get(slot as usize).and_then(Option::as_ref);
            if let Some(session) = party.and_then(|party| party.session.as_ref()) {
                session.end();
                book.holders.note_end(number, (slot + FIRST) | GRANTED);
            }
        }
        let revoked = book.revoked.entry(subject).or_insert(Revoked { at, number, until });
        // A clock may have been set back since the one before, which must not be undone.
        *revoked = Revoked { at: at.max(revoked.at), number, until: until.max(revoked.until) };
        self.revocations.store(number, Ordering::Release);
        true
    }

    /// Ends what was given by logins that have ended, of these rows or of all, and knows until when the others last. Says
    /// whether anybody waits by one that has ended.
    pub(crate) fn end(&self, rows: Option<&[RowId]>) -> bool {
        let book = &mut *self.book();
        let slots: Vec<u32> = match rows {
            Some(rows) => {
                rows.iter().filter_map(|row| book.logins.get(row)).flatten().copied().collect()
            }
            None => book.logins.values().flatten().copied().collect(),
        };
        // Only under the lock does it change.
        let number = self.revocations() + 1;
        let mut has_ended = false;
        for slot in slots {
            let party = book.parties.get(slot as usize).and_then(Option::as_ref);
            let session = party.and_then(|party| party.session.as_ref());
            if session.is_some_and(|session| session.heed_login()) {
                book.holders.note_end(number, (slot + FIRST) | GRANTED);
                has_ended = true;
            }
        }
        if has_ended {
            self.revocations.store(number, Ordering::Release);
        }
        has_ended
    }

    /// How often something was revoked, and which parties have ended since `revocations` had been. `None`: there were
    /// more than are remembered.
    pub(crate) fn ended_since(&self, revocations: u32) -> (u32, Option<Vec<u32>>) {
        let book = self.book();
        (self.revocations(), book.holders.ended_since(revocations))
    }

    /// Whether a party may end before its holds do.
    pub(crate) const fn has_grant(number: u32) -> bool {
        number & GRANTED != 0
    }

    /// What is remembered at `now`: who, when, and until when.
    pub(crate) fn revoked(&self, now: u64) -> Vec<(Arc<str>, u64, u64)> {
        let book = self.book();
        let good = book.revoked.iter().filter(|(_, revoked)| revoked.until > now);
        good.map(|(subject, revoked)| (Arc::clone(subject), revoked.at, revoked.until)).collect()
    }

    fn book(&self) -> MutexGuard<'_, Book> {
        self.book.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Book {
    /// The number of a party, with one more hold.
    fn number(&mut self, block: AddressBlock, session: Option<&Arc<Session>>) -> u32 {
        let granted = if session.is_some() { GRANTED } else { 0 };
        if let Some(number) = self.numbers.get(&key(block, session)) {
            if let Some(Some(party)) = self.parties.get_mut((number - FIRST) as usize) {
                party.holds += 1;
            }
            return number | granted;
        }
        let party = Some(Party { block, session: session.cloned(), holds: 1 });
        let slot = match self.vacant.pop() {
            Some(slot) => {
                self.parties[slot as usize] = party;
                slot
            }
            None => {
                self.parties.push(party);
                (self.parties.len() - 1) as u32
            }
        };
        self.numbers.insert(key(block, session), slot + FIRST);
        if let Some(login) = session.and_then(|session| session.login.as_ref()) {
            self.logins.entry(login.row()).or_default().push(slot);
        }
        if let Some(session) = session {
            self.holders.add(slot, session);
        }
        (slot + FIRST) | granted
    }

    fn forget(&mut self, login: RowId, slot: u32) {
        if let Some(slots) = self.logins.get_mut(&login) {
            slots.retain(|own| *own != slot);
            if slots.is_empty() {
                self.logins.remove(&login);
            }
        }
    }

    fn has_revoked(&self, session: &Session) -> bool {
        let is_revoked = |(subject, issued): (&Arc<str>, Issued)| {
            self.revoked.get(subject).is_some_and(|revoked| match issued {
                Issued::At(time) => time <= revoked.at,
                Issued::Behind(number) => number < revoked.number,
            })
        };
        session.ends() == 0 || session.subjects().any(is_revoked)
    }

    /// Accounts in which nothing stands are none.
    fn sweep(&mut self, now: u64) {
        if self.addresses.len() + self.subjects.len() < self.sweep_at {
            return;
        }
        let counts = |account: &Account| account.holds > 0 || account.paid > now;
        self.addresses.retain(|_, account| counts(account));
        self.subjects.retain(|_, account| counts(account));
        self.sweep_at = FEW.max(2 * (self.addresses.len() + self.subjects.len()));
    }
}

impl Party {
    fn login(&self) -> Option<RowId> {
        Some(self.session.as_ref()?.login.as_ref()?.row())
    }
}

fn key(block: AddressBlock, session: Option<&Arc<Session>>) -> Key {
    (block, session.map_or(0, |session| Arc::as_ptr(session) as usize))
}

fn holds_of<K: std::hash::Hash + Eq>(accounts: &HashMap<K, Account>, key: &K) -> u32 {
    accounts.get(key).map_or(0, |account| account.holds)
}

/// One hold less. An account that has published stays, until it is swept.
fn give_back<K: std::hash::Hash + Eq>(accounts: &mut HashMap<K, Account>, key: &K) {
    if let Some(account) = accounts.get_mut(key) {
        account.holds -= 1;
        if account.holds == 0 && account.paid == 0 {
            accounts.remove(key);
        }
    }
}

impl Shut {
    const fn crowded(cap: &'static str, most: u32, retry: u64) -> Self {
        Self::Crowded(Crowded { cap, most, retry })
    }
}

impl std::fmt::Display for Crowded {
    fn fmt(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (cap, most) = (self.cap, self.most);
        let what = match cap {
            "holds" => "wait here already",
            "holds_per_address" => "wait here already from this address",
            "holds_per_subject" => "wait here already by this name",
            "messages_per_address" => "messages a second are taken from one address",
            _ => "messages a second are taken of one name",
        };
        write!(
            to,
            "{most} {what}, which is what Caps::{cap} allows; come again in {} s",
            self.retry
        )
    }
}

#[cfg(test)]
mod tests;

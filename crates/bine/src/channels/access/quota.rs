//! Quotas and revocations: how many requests each address, each subject and all clients together
//! may hold, how fast they may publish, and whose grants were revoked.
//!
//! Clients with the same address and grant form a group, and one number refers to it. All clients
//! on this machine share one address with generous limits: they are the program's own tools, or use
//! a proxy that hides their addresses.

mod revocation_index;

use std::collections::HashMap;
use std::ops::Range;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use bine_push::Publisher;
use bine_server::{AddressBlock, memory_limit};

use self::revocation_index::RevocationIndex;
use super::grant::{ActiveGrant, Issued};
use crate::access_guard::AccessGuard;
use crate::store::RowId;

/// Limits for clients. A request over a limit gets status 429, or 507 for a limit in bytes.
///
/// A hold is a poll that waits, a stream or a WebSocket. It counts for one more with each 64
/// channels that it follows. For IPv6, the first 64 bits count as the address, since one household
/// shares them. All clients on this machine share one address, which may hold half of `holds`,
/// publish a thousand times the usual rate of messages, and store half of `bytes`.
///
/// ```
/// use bine::channels::{Access, ClientLimits};
///
/// let client_limits = ClientLimits { holds_per_address: 16, ..ClientLimits::default() };
/// let access = Access::anyone_follows().client_limits(client_limits);
/// # drop(access);
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ClientLimits {
    /// Simultaneous holds of one address; 256 by default. Also the maximum number of sessions
    /// without a verified name that are listed as present.
    pub holds_per_address: u32,
    /// Simultaneous holds of one subject; 256 by default.
    pub holds_per_subject: u32,
    /// Simultaneous holds of all clients; a million by default, about 5 GB of the system's memory.
    pub holds: u32,
    /// Messages a second from one address, and the size of a burst; 100 by default.
    pub messages_per_address: u32,
    /// Messages a second of one subject, and the size of a burst; 1000 by default.
    pub messages_per_subject: u32,
    /// Bytes of memory for all channels and their messages. The default is a quarter of the
    /// server's memory limit: the machine's memory, its control group's limit, or `most-memory`.
    pub bytes: Option<u64>,
    /// Bytes of one channel's messages; by default a quarter of `bytes`, but at least 64 MiB.
    pub bytes_per_channel: Option<u64>,
    /// Bytes of one subject's channels and messages; by default a quarter of `bytes`, but at least
    /// 64 MiB. Clients without a token count by address.
    pub bytes_per_subject: Option<u64>,
}

/// Memory limits in bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct MemoryQuotas {
    pub(crate) bytes: u64,
    pub(crate) per_channel: u64,
    pub(crate) per_subject: u64,
    /// For clients on this machine without a token.
    pub(crate) local: u64,
}

impl MemoryQuotas {
    /// The publisher whose quota the channels and messages of a client use: a verified name, or the
    /// network of the client.
    pub(crate) fn publisher(&self, subject: Option<&Arc<str>>, block: AddressBlock) -> Publisher {
        match subject {
            Some(subject) => Publisher { name: Arc::clone(subject), bytes: self.per_subject },
            None => {
                let bytes = if block.is_local() { self.local } else { self.per_subject };
                // User names contain no slash.
                Publisher { name: format!("address/{block}").into(), bytes }
            }
        }
    }
}

impl Default for ClientLimits {
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

impl ClientLimits {
    /// Computes the memory limits.
    pub(crate) fn memory_quotas(&self) -> MemoryQuotas {
        let bytes =
            self.bytes.unwrap_or_else(|| memory_limit().map_or(DEFAULT_BYTES, |most| most / 4));
        let usual = (bytes / 4).max(MIN_SHARE).min(bytes);
        let per_subject = self.bytes_per_subject.unwrap_or(usual);
        MemoryQuotas {
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
        if block.is_local() { most.max(1).saturating_mul(LOCAL_MESSAGE_FACTOR) } else { most }
    }
}

/// Counts holds and publications by address and subject, and records revocations.
pub(crate) struct QuotaTable {
    started: Instant,
    client_limits: OnceLock<ClientLimits>,
    /// Decides about pages and channels, in a program with rights.
    guard: OnceLock<Arc<dyn AccessGuard>>,
    /// How long a revocation is remembered, in milliseconds.
    revocation_memory: OnceLock<u64>,
    /// The number of holds.
    total: AtomicU32,
    /// The number of holds by clients on this machine without a grant.
    local: AtomicU32,
    /// The number of revocations.
    revocations: AtomicU32,
    state: Mutex<QuotaState>,
}

#[derive(Default)]
struct QuotaState {
    /// The groups by their numbers, starting with [`FIRST_GROUP`].
    groups: Vec<Option<ClientGroup>>,
    vacant: Vec<u32>,
    numbers: HashMap<Key, u32>,
    addresses: HashMap<AddressBlock, ClientAccount>,
    subjects: HashMap<Arc<str>, ClientAccount>,
    revoked: HashMap<Arc<str>, Revoked>,
    /// Groups that depend on a login, by its row.
    logins: HashMap<RowId, Vec<u32>>,
    revocation_index: RevocationIndex,
    /// The number of accounts at which idle ones are removed.
    cleanup_at: usize,
}

/// A group's address, and the memory address of its grant, which is stable while the group exists.
type Key = (AddressBlock, usize);

struct ClientGroup {
    block: AddressBlock,
    session: Option<Arc<ActiveGrant>>,
    holds: u32,
}

/// The usage of one address or subject.
#[derive(Clone, Copy, Default)]
struct ClientAccount {
    holds: u32,
    /// The time up to which its messages are paid for, in microseconds since the start of the table.
    paid_until: u64,
}

/// The revocation of a subject's earlier grants.
#[derive(Clone, Copy)]
struct Revoked {
    at: u64,
    /// The number of this revocation.
    number: u32,
    /// When all revoked grants have expired.
    until: u64,
}

/// An operation that the message rate limits.
#[derive(Clone, Copy)]
pub(super) enum Charge {
    /// Messages that are published.
    Messages(usize),
    /// A join event. The burst is as large as the number of holds: after a restart all clients
    /// join.
    Join,
}

/// A limit that a request exceeds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct CapExceeded {
    /// The name of the limit in [`ClientLimits`].
    cap: &'static str,
    most: u32,
    /// When to retry, in seconds.
    pub(crate) retry_seconds: u64,
}

/// The reason why a hold is rejected.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum HoldRejection {
    CapExceeded(CapExceeded),
    /// The grant was revoked in the meantime.
    Revoked,
}

/// The group number of the program's own holds, which are not counted.
pub(crate) const UNCOUNTED: u32 = 0;
/// The group number of clients on this machine without a grant. They have no group, because a proxy
/// may combine many clients.
const LOCAL_GROUP: u32 = 1;
/// The first number of a group.
pub(super) const FIRST_GROUP: u32 = 2;
/// This bit marks groups with a grant, which can end.
const GRANT_BIT: u32 = 1 << 31;
/// Maximum number of remembered revocations.
pub(crate) const MAX_REVOKED: usize = 100_000;
/// The most groups that a change of rights visits under one lock (docs/measurements/rights.md).
const MAX_VISITED: usize = 256;
/// The number of accounts below which idle ones are kept.
const MIN_SWEEP: usize = 1024;
/// Seconds after which to retry when all holds are taken: a poll ends by then.
pub(super) const RETRY_SECONDS: u64 = 30;
/// A hold counts for one more with each of this many channels, since it takes their memory.
const CHANNELS_PER_HOLD: usize = 64;
const SECOND: u64 = 1_000_000;
/// The message rate of clients on this machine, as a multiple of any other address's rate.
const LOCAL_MESSAGE_FACTOR: u32 = 1000;
/// Bytes for all channels if the system does not report its memory.
const DEFAULT_BYTES: u64 = 1 << 30;
/// Minimum bytes for one channel or subject, if the total allows it: several of the largest
/// publications.
const MIN_SHARE: u64 = 64 << 20;

impl QuotaTable {
    pub(crate) fn new() -> Self {
        Self {
            started: Instant::now(),
            client_limits: OnceLock::new(),
            guard: OnceLock::new(),
            revocation_memory: OnceLock::new(),
            total: AtomicU32::new(0),
            local: AtomicU32::new(0),
            revocations: AtomicU32::new(0),
            state: Mutex::default(),
        }
    }

    /// Sets the limits. Only the first call has an effect.
    pub(crate) fn configure(&self, client_limits: ClientLimits, revocation_memory: Duration) {
        let _ = (
            self.client_limits.set(client_limits),
            self.revocation_memory.set(revocation_memory.as_millis() as u64),
        );
    }

    /// Sets the guard of a program with rights.
    pub(super) fn guard_by(&self, guard: &Arc<dyn AccessGuard>) {
        // A program has one guard.
        let _ = self.guard.set(Arc::clone(guard));
    }

    pub(super) fn guard(&self) -> Option<&Arc<dyn AccessGuard>> {
        self.guard.get()
    }

    pub(super) fn client_limits(&self) -> ClientLimits {
        self.client_limits.get().copied().unwrap_or_default()
    }

    /// The current number of holds.
    pub(crate) fn holds(&self) -> u32 {
        self.total.load(Ordering::Relaxed)
    }

    /// Reserves a hold and returns its group. The caller must [release](Self::release) it.
    pub(super) fn reserve(
        &self,
        block: AddressBlock,
        session: Option<&Arc<ActiveGrant>>,
    ) -> Result<u32, HoldRejection> {
        let client_limits = self.client_limits();
        if self.total.load(Ordering::Relaxed) >= client_limits.holds {
            return Err(HoldRejection::cap("holds", client_limits.holds, RETRY_SECONDS));
        }
        if block.is_local() && session.is_none() {
            let most = client_limits.local_holds();
            if self.local.load(Ordering::Relaxed) >= most {
                return Err(HoldRejection::cap("holds_per_address", most, RETRY_SECONDS));
            }
            return Ok(LOCAL_GROUP);
        }
        let state = &mut *self.state();
        // A later end of the login takes this lock after it is visible, and then finds the group.
        let has_ended = |session: &Arc<ActiveGrant>| {
            state.has_revoked(session)
                || session.login.as_ref().is_some_and(|login| !login.holds())
                || session.has_lost_rights()
        };
        if session.is_some_and(has_ended) {
            return Err(HoldRejection::Revoked);
        }
        let subject = session.and_then(|session| session.subject());
        if holds_of(&state.addresses, &block) >= client_limits.holds_of(block) {
            return Err(HoldRejection::cap(
                "holds_per_address",
                client_limits.holds_of(block),
                RETRY_SECONDS,
            ));
        }
        let of_subject = subject.map_or(0, |subject| holds_of(&state.subjects, subject));
        if of_subject >= client_limits.holds_per_subject {
            return Err(HoldRejection::cap(
                "holds_per_subject",
                client_limits.holds_per_subject,
                RETRY_SECONDS,
            ));
        }
        state.addresses.entry(block).or_default().holds += 1;
        if let Some(subject) = subject {
            state.subjects.entry(Arc::clone(subject)).or_default().holds += 1;
        }
        Ok(state.number(block, session))
    }

    /// Releases a hold that [`reserve`](Self::reserve) counted.
    pub(super) fn release(&self, number: u32) {
        let index = number & !GRANT_BIT;
        if index < FIRST_GROUP {
            return;
        }
        let state = &mut *self.state();
        let slot = (index - FIRST_GROUP) as usize;
        let Some(Some(group)) = state.groups.get_mut(slot) else { return };
        group.holds -= 1;
        let subject = group.session.as_ref().and_then(|session| session.subject());
        subtract_hold(&mut state.addresses, &group.block);
        if let Some(subject) = subject {
            subtract_hold(&mut state.subjects, subject);
        }
        if group.holds == 0 {
            let key = key(group.block, group.session.as_ref());
            state.numbers.remove(&key);
            let group = state.groups[slot].take();
            state.vacant.push(index - FIRST_GROUP);
            if let Some(login) = group.as_ref().and_then(ClientGroup::login) {
                state.remove_login(login, index - FIRST_GROUP);
            }
            if let Some(session) = group.and_then(|group| group.session) {
                state.revocation_index.remove(index - FIRST_GROUP, &session);
            }
        }
    }

    /// Counts a reserved hold as suspended.
    pub(crate) fn begin_hold(&self, number: u32) {
        if number != UNCOUNTED {
            self.total.fetch_add(1, Ordering::Relaxed);
        }
        if number == LOCAL_GROUP {
            self.local.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Ends a suspended hold and releases it.
    pub(crate) fn end_hold(&self, number: u32) {
        if number != UNCOUNTED {
            self.total.fetch_sub(1, Ordering::Relaxed);
            self.release(number);
        }
        if number == LOCAL_GROUP {
            self.local.fetch_sub(1, Ordering::Relaxed);
        }
    }

    /// Adds the weight of a hold's channels. It may exceed the limit; later holds then wait until
    /// it ends.
    pub(crate) fn add_channels(&self, number: u32, channels: usize) {
        self.adjust_channels(number, channels, u32::saturating_add);
    }

    /// Removes the weight of a hold's channels.
    pub(crate) fn remove_channels(&self, number: u32, channels: usize) {
        self.adjust_channels(number, channels, u32::saturating_sub);
    }

    fn adjust_channels(&self, number: u32, channels: usize, change: fn(u32, u32) -> u32) {
        let more = (channels / CHANNELS_PER_HOLD) as u32;
        if number == UNCOUNTED || more == 0 {
            return;
        }
        let QuotaState { groups, addresses, subjects, .. } = &mut *self.state();
        let total = |total| Some(change(total, more));
        let _ = self.total.fetch_update(Ordering::Relaxed, Ordering::Relaxed, total);
        let slot = (number & !GRANT_BIT).checked_sub(FIRST_GROUP);
        let group = slot.and_then(|slot| groups.get(slot as usize)?.as_ref());
        let Some(ClientGroup { block, session, .. }) = group else { return };
        let subject = session.as_ref().and_then(|session| session.subject());
        // Both accounts exist, since the hold itself is counted in them.
        let address = addresses.get_mut(block);
        let own = subject.and_then(|subject| subjects.get_mut(subject));
        for account in [address, own].into_iter().flatten() {
            account.holds = change(account.holds, more);
        }
    }

    /// The end of a group's grant in milliseconds since 1970; 0: it was revoked. `None`: the grant
    /// has no end.
    pub(crate) fn grant_end(&self, number: u32) -> Option<u64> {
        if number & GRANT_BIT == 0 {
            return None;
        }
        let slot = ((number & !GRANT_BIT) - FIRST_GROUP) as usize;
        let state = self.state();
        let session = state.groups.get(slot)?.as_ref()?.session.as_ref()?;
        Some(session.grant_end()).filter(|ends| *ends != u64::MAX)
    }

    /// Charges messages. A batch may exceed the limit; later ones then wait until it is paid for.
    ///
    /// `now` is of the clock that never goes back: when the time of day was set back by an hour, a
    /// client would owe for an hour.
    pub(super) fn charge(
        &self,
        block: AddressBlock,
        session: Option<&Arc<ActiveGrant>>,
        charge: Charge,
        now: Instant,
    ) -> Result<(), CapExceeded> {
        let now = now.saturating_duration_since(self.started).as_micros() as u64;
        let subject = session.and_then(|session| session.subject());
        let client_limits = self.client_limits();
        let state = &mut *self.state();
        state.remove_idle(now);
        let address = state.addresses.entry(block).or_default();
        let own = subject.map(|subject| state.subjects.entry(Arc::clone(subject)).or_default());
        let mut accounts = [
            (
                "messages_per_address",
                client_limits.messages_of(block),
                client_limits.holds_of(block),
                Some(address),
            ),
            (
                "messages_per_subject",
                client_limits.messages_per_subject,
                client_limits.holds_per_subject,
                own,
            ),
        ];
        let each = |most: u32| SECOND / u64::from(most).clamp(1, SECOND);
        for (cap, most, holds, account) in &accounts {
            let Some(account) = account else { continue };
            let owed = account.paid_until.saturating_sub(now);
            let may_owe = match charge {
                Charge::Messages(_) if *most == 0 => 0,
                Charge::Messages(_) => SECOND,
                Charge::Join => SECOND.max(each(*most) * u64::from(*holds)),
            };
            if owed >= may_owe {
                return Err(CapExceeded {
                    cap,
                    most: *most,
                    retry_seconds: (owed / SECOND).max(1),
                });
            }
        }
        let messages = match charge {
            Charge::Messages(messages) => messages as u64,
            Charge::Join => 1,
        };
        for (_, most, _, account) in &mut accounts {
            if let Some(account) = account {
                account.paid_until = account.paid_until.max(now) + each(*most) * messages;
            }
        }
        Ok(())
    }

    /// Whether a grant was revoked after its time.
    pub(super) fn has_revoked(&self, session: &ActiveGrant) -> bool {
        self.revocations.load(Ordering::Acquire) > 0 && self.state().has_revoked(session)
    }

    /// The number of revocations. A thread that has processed the same number is up to date.
    pub(crate) fn revocations(&self) -> u32 {
        self.revocations.load(Ordering::Acquire)
    }

    /// How long a revocation is remembered, in milliseconds.
    pub(crate) fn revocation_memory(&self) -> u64 {
        self.revocation_memory.get().copied().unwrap_or_default()
    }

    /// Revokes what a subject was granted until `at`. False: the maximum number of revocations is
    /// reached, and the call had no effect.
    pub(crate) fn revoke(&self, subject: &str, at: u64, until: u64) -> bool {
        let state = &mut *self.state();
        let subject: Arc<str> = subject.into();
        if state.revoked.len() >= MAX_REVOKED && !state.revoked.contains_key(&subject) {
            state.revoked.retain(|_, revoked| revoked.until > at);
            if state.revoked.len() >= MAX_REVOKED {
                return false;
            }
        }
        // The number changes only under the lock.
        let number = self.revocations() + 1;
        let slots: Vec<u32> = state.revocation_index.of(&subject).collect();
        for slot in slots {
            let group = state.groups.get(slot as usize).and_then(Option::as_ref);
            if let Some(session) = group.and_then(|group| group.session.as_ref()) {
                session.end();
                state.revocation_index.note_end(number, (slot + FIRST_GROUP) | GRANT_BIT);
            }
        }
        let revoked = state.revoked.entry(subject).or_insert(Revoked { at, number, until });
        // The clock may have been set back since the first revocation, which must stay effective.
        *revoked = Revoked { at: at.max(revoked.at), number, until: until.max(revoked.until) };
        self.revocations.store(number, Ordering::Release);
        true
    }

    /// Updates the ends of grants that depend on logins: of these rows, or of all. Whether the
    /// grant of any group has ended.
    pub(crate) fn end_logins(&self, rows: Option<&[RowId]>) -> bool {
        let state = &mut *self.state();
        let slots: Vec<u32> = match rows {
            Some(rows) => {
                rows.iter().filter_map(|row| state.logins.get(row)).flatten().copied().collect()
            }
            None => state.logins.values().flatten().copied().collect(),
        };
        // The number changes only under the lock.
        let number = self.revocations() + 1;
        let mut has_ended = false;
        for slot in slots {
            let group = state.groups.get(slot as usize).and_then(Option::as_ref);
            let session = group.and_then(|group| group.session.as_ref());
            if session.is_some_and(|session| session.refresh_login()) {
                state.revocation_index.note_end(number, (slot + FIRST_GROUP) | GRANT_BIT);
                has_ended = true;
            }
        }
        if has_ended {
            self.revocations.store(number, Ordering::Release);
        }
        has_ended
    }

    /// Ends the grants whose clients have lost a right to follow a channel. Whether there are any.
    /// It visits all groups, in slices, so that no request waits for the whole visit.
    pub(crate) fn end_lost_rights(&self) -> bool {
        let (mut visited, mut has_ended) = (0, false);
        // A group in a slot that was visited already was reserved after the change.
        while let Some(slice_has_ended) = self.end_lost_rights_of(visited..visited + MAX_VISITED) {
            has_ended |= slice_has_ended;
            visited += MAX_VISITED;
        }
        has_ended
    }

    /// Does so for the groups in these slots; `None`: there are no more.
    fn end_lost_rights_of(&self, slots: Range<usize>) -> Option<bool> {
        let state = &mut *self.state();
        let slots = slots.start..slots.end.min(state.groups.len());
        // The number changes only under the lock.
        let number = self.revocations() + 1;
        let mut has_ended = false;
        for (slot, group) in
            slots.clone().zip(state.groups.get(slots).filter(|own| !own.is_empty())?)
        {
            let session = group.as_ref().and_then(|group| group.session.as_ref());
            if let Some(session) = session.filter(|session| session.has_lost_rights()) {
                session.end();
                state.revocation_index.note_end(number, (slot as u32 + FIRST_GROUP) | GRANT_BIT);
                has_ended = true;
            }
        }
        if has_ended {
            self.revocations.store(number, Ordering::Release);
        }
        Some(has_ended)
    }

    /// The number of revocations, and the groups whose grants ended after revocation number
    /// `revocations`. `None`: more groups than are remembered.
    pub(crate) fn ended_since(&self, revocations: u32) -> (u32, Option<Vec<u32>>) {
        let state = self.state();
        (self.revocations(), state.revocation_index.ended_since(revocations))
    }

    /// Whether a group has a grant, which may end before its holds.
    pub(crate) const fn has_grant(number: u32) -> bool {
        number & GRANT_BIT != 0
    }

    /// The remembered revocations at `now`: the subject, the time and the expiry of each, in the
    /// order of the subjects, so that equal channels have equal snapshots.
    pub(crate) fn revoked(&self, now: u64) -> Vec<(Arc<str>, u64, u64)> {
        let state = self.state();
        let good = state.revoked.iter().filter(|(_, revoked)| revoked.until > now);
        let mut all: Vec<_> = good
            .map(|(subject, revoked)| (Arc::clone(subject), revoked.at, revoked.until))
            .collect();
        all.sort_unstable();
        all
    }

    fn state(&self) -> MutexGuard<'_, QuotaState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl QuotaState {
    /// Returns the number of a group, and counts one more hold for it.
    fn number(&mut self, block: AddressBlock, session: Option<&Arc<ActiveGrant>>) -> u32 {
        let granted = if session.is_some() { GRANT_BIT } else { 0 };
        if let Some(number) = self.numbers.get(&key(block, session)) {
            if let Some(Some(group)) = self.groups.get_mut((number - FIRST_GROUP) as usize) {
                group.holds += 1;
            }
            return number | granted;
        }
        let group = Some(ClientGroup { block, session: session.cloned(), holds: 1 });
        let slot = match self.vacant.pop() {
            Some(slot) => {
                self.groups[slot as usize] = group;
                slot
            }
            None => {
                self.groups.push(group);
                (self.groups.len() - 1) as u32
            }
        };
        self.numbers.insert(key(block, session), slot + FIRST_GROUP);
        if let Some(login) = session.and_then(|session| session.login.as_ref()) {
            self.logins.entry(login.row()).or_default().push(slot);
        }
        if let Some(session) = session {
            self.revocation_index.add(slot, session);
        }
        (slot + FIRST_GROUP) | granted
    }

    fn remove_login(&mut self, login: RowId, slot: u32) {
        if let Some(slots) = self.logins.get_mut(&login) {
            slots.retain(|own| *own != slot);
            if slots.is_empty() {
                self.logins.remove(&login);
            }
        }
    }

    fn has_revoked(&self, session: &ActiveGrant) -> bool {
        let is_revoked = |(subject, issued): (&Arc<str>, Issued)| {
            self.revoked.get(subject).is_some_and(|revoked| match issued {
                Issued::At(time) => time <= revoked.at,
                Issued::Behind(number) => number < revoked.number,
            })
        };
        session.grant_end() == 0 || session.subjects().any(is_revoked)
    }

    /// Removes idle accounts.
    fn remove_idle(&mut self, now: u64) {
        if self.addresses.len() + self.subjects.len() < self.cleanup_at {
            return;
        }
        let counts = |account: &ClientAccount| account.holds > 0 || account.paid_until > now;
        self.addresses.retain(|_, account| counts(account));
        self.subjects.retain(|_, account| counts(account));
        self.cleanup_at = MIN_SWEEP.max(2 * (self.addresses.len() + self.subjects.len()));
    }
}

impl ClientGroup {
    fn login(&self) -> Option<RowId> {
        Some(self.session.as_ref()?.login.as_ref()?.row())
    }
}

fn key(block: AddressBlock, session: Option<&Arc<ActiveGrant>>) -> Key {
    (block, session.map_or(0, |session| Arc::as_ptr(session) as usize))
}

fn holds_of<K: std::hash::Hash + Eq>(accounts: &HashMap<K, ClientAccount>, key: &K) -> u32 {
    accounts.get(key).map_or(0, |account| account.holds)
}

/// Subtracts a hold. An account with paid messages stays until idle accounts are removed.
fn subtract_hold<K: std::hash::Hash + Eq>(accounts: &mut HashMap<K, ClientAccount>, key: &K) {
    if let Some(account) = accounts.get_mut(key) {
        account.holds -= 1;
        if account.holds == 0 && account.paid_until == 0 {
            accounts.remove(key);
        }
    }
}

impl HoldRejection {
    const fn cap(cap: &'static str, most: u32, retry_seconds: u64) -> Self {
        Self::CapExceeded(CapExceeded { cap, most, retry_seconds })
    }
}

impl std::fmt::Display for CapExceeded {
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
            "{most} {what}, which is what ClientLimits::{cap} allows; come again in {} s",
            self.retry_seconds
        )
    }
}

#[cfg(test)]
mod tests;

//! A budget of bytes that all connections of a server share, and the reservations from it.

use std::collections::HashMap;
use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bine_log::{self as log, LogLimit};

use crate::address::AddressBlock;
use crate::quota::{Caps, Owner, Shares, eviction_order};
use crate::time::monotonic_milliseconds;

/// Reservations grow in steps of this size.
const STEP: u64 = 64 * 1024;
/// A reservation without progress for this many milliseconds has stalled and may be evicted.
const STALL_TIME: u64 = 1000;
/// Milliseconds between two searches for reservations to evict.
const SEARCH_INTERVAL: u64 = 100;

/// Limits the bytes of one kind that all connections hold, with a quota for each address block.
pub(crate) struct Budget {
    /// Name in the log and the metrics.
    name: &'static str,
    state: Mutex<BudgetState>,
    refused: [AtomicU64; 2],
    evicted: AtomicU64,
    log: LogLimit,
}

struct BudgetState {
    most: u64,
    caps: Caps,
    /// Whether memory is short, which halves the limit.
    is_tight: bool,
    used: u64,
    shares: Shares,
    /// All reservations by number.
    holders: HashMap<u64, Holding>,
    next: u64,
    /// Time of the last search for reservations to evict, in milliseconds.
    searched: u64,
}

struct Holding {
    block: AddressBlock,
    bytes: u64,
    /// Time of the last growth, or of the client's last progress, in milliseconds.
    grown: u64,
    /// Whether the connection waits for its client, so that the reservation can be evicted.
    is_evictable: bool,
    is_evicted: Arc<AtomicBool>,
    owner: Owner,
}

/// The reason why a reservation cannot grow.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Refused {
    /// The budget is exhausted.
    Everywhere,
    /// The address block has reached its quota.
    ForBlock,
    /// The reservation was evicted.
    Evicted,
}

/// Metrics of a budget.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct BudgetMetrics {
    /// Name of the budget: `bodies`, `uploads` or `unsent`.
    pub of: &'static str,
    /// Reserved bytes.
    pub held: u64,
    /// Limit of the budget in bytes.
    pub most: u64,
    /// Refused reservations: by the budget, and by the quota of an address block.
    pub refused: [(&'static str, u64); 2],
    /// Evicted reservations, which had stalled while other connections needed their bytes.
    pub evicted: u64,
}

impl Budget {
    /// Creates a budget of `most` bytes with the quotas `caps`.
    pub(super) fn new(name: &'static str, most: u64, caps: Caps) -> Self {
        let state = BudgetState {
            most,
            caps,
            is_tight: false,
            used: 0,
            shares: Shares::default(),
            holders: HashMap::new(),
            next: 0,
            searched: 0,
        };
        Self {
            name,
            state: Mutex::new(state),
            refused: Default::default(),
            evicted: AtomicU64::new(0),
            log: LogLimit::default(),
        }
    }

    /// Changes the limits. Existing reservations stay.
    pub(super) fn limit(&self, most: u64, caps: Caps) {
        let mut state = self.state();
        (state.most, state.caps) = (most, caps);
    }

    /// Halves the budget while memory is short, and evicts stalled reservations at the change.
    pub(super) fn tighten(&self, is_tight: bool) {
        let mut state = self.state();
        let was_tight = std::mem::replace(&mut state.is_tight, is_tight);
        if is_tight && !was_tight {
            let evicted = state.select_evictions(None, monotonic_milliseconds());
            drop(state);
            self.evict_all(&evicted);
        }
    }

    pub(super) fn metrics(&self) -> BudgetMetrics {
        let state = self.state();
        let [full, block] = &self.refused;
        let counts = [("full", full), ("address", block)];
        BudgetMetrics {
            of: self.name,
            held: state.used,
            most: state.most,
            refused: counts.map(|(reason, count)| (reason, count.load(Ordering::Relaxed))),
            evicted: self.evicted.load(Ordering::Relaxed),
        }
    }

    /// Grows a reservation to `to` bytes; `now` is in milliseconds.
    fn grow(
        self: &Arc<Self>,
        reservation: &mut Reservation,
        claim: Claim<'_>,
        to: u64,
        now: u64,
    ) -> Result<(), Refused> {
        if reservation.is_evicted() {
            return Err(Refused::Evicted);
        }
        let to = to.next_multiple_of(STEP);
        let mut state = self.state();
        let number = reservation.0.as_ref().map(|held| held.number);
        let grown = state.charge(number, claim.block, to - reservation.bytes());
        if grown.is_ok() {
            let held = reservation.0.get_or_insert_with(|| {
                let number = state.next;
                state.next += 1;
                let is_evicted = Arc::<AtomicBool>::default();
                let holder = Holding {
                    block: claim.block,
                    bytes: 0,
                    grown: now,
                    is_evictable: true,
                    is_evicted: Arc::clone(&is_evicted),
                    owner: claim.owner.clone(),
                };
                state.holders.insert(number, holder);
                Box::new(Held { budget: Arc::clone(self), number, bytes: 0, is_evicted })
            });
            held.bytes = to;
            if let Some(holder) = state.holders.get_mut(&held.number) {
                (holder.bytes, holder.grown, holder.is_evictable) = (to, now, true);
            }
        }
        let current = reservation.0.as_ref().map(|held| held.number);
        let evicted = if state.is_nearly_full(claim.block) || grown.is_err() {
            state.select_evictions(current, now)
        } else {
            Vec::new()
        };
        let (used, most) = (state.used, state.most);
        drop(state);
        self.evict_all(&evicted);
        if let Err(refused) = grown {
            self.refused[refused as usize].fetch_add(1, Ordering::Relaxed);
            if let Some(left_out) = self.log.allows(now) {
                let (name, block) = (self.name, claim.block);
                let why = match refused {
                    Refused::ForBlock => "that client uses its share (`budget-share`)",
                    Refused::Everywhere | Refused::Evicted => "the budget is used up",
                };
                log::warn(format_args!(
                    "budget-{name}: rejected or cut a request of {block}: {why}; \
                     {used} of {most} bytes are in use; {left_out} similar lines were left out"
                ));
            }
        }
        grown
    }

    fn evict_all(&self, evicted: &[Owner]) {
        if evicted.is_empty() {
            return;
        }
        self.evicted.fetch_add(evicted.len() as u64, Ordering::Relaxed);
        if let Some(left_out) = self.log.allows(monotonic_milliseconds()) {
            log::warn(format_args!(
                "budget-{}: dropped {} stalled requests or replies, because other connections need \
                 their bytes; {left_out} similar lines were left out",
                self.name,
                evicted.len()
            ));
        }
        evicted.iter().for_each(Owner::evict);
    }

    fn state(&self) -> MutexGuard<'_, BudgetState> {
        // No code panics while it holds this lock, so a poisoned state is still consistent.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl BudgetState {
    const fn effective_limit(&self) -> u64 {
        if self.is_tight { self.most / 2 } else { self.most }
    }

    fn charge(
        &mut self,
        number: Option<u64>,
        block: AddressBlock,
        more: u64,
    ) -> Result<(), Refused> {
        // The address block of a connection never changes.
        debug_assert!(
            number
                .and_then(|number| self.holders.get(&number))
                .is_none_or(|held| held.block == block),
            "a reservation of another connection"
        );
        if self.used.saturating_add(more) > self.effective_limit() {
            return Err(Refused::Everywhere);
        }
        let BudgetState { shares, caps, .. } = self;
        if !shares.take(block, more, caps) {
            return Err(Refused::ForBlock);
        }
        self.used += more;
        Ok(())
    }

    /// Whether less than an eighth is free of the budget, or of the quota of `block`.
    fn is_nearly_full(&self, block: AddressBlock) -> bool {
        self.used > self.effective_limit() / 8 * 7
            || self.shares.fullness(block, &self.caps, (0, 0)) > 875_000
    }

    /// Evicts stalled reservations until a quarter of the budget is free, and a quarter of the
    /// quota that applies to `own`. The block with the fullest quota is evicted first, and within a
    /// block the largest and slowest reservation.
    fn select_evictions(&mut self, current: Option<u64>, now: u64) -> Vec<Owner> {
        if now.saturating_sub(self.searched) < SEARCH_INTERVAL {
            return Vec::new();
        }
        self.searched = now;
        let pressed =
            current.and_then(|current| self.holders.get(&current)).map(|holder| holder.block);
        let (mut evicting, mut candidates) = (0, Vec::new());
        for (number, holder) in &self.holders {
            if holder.is_evicted.load(Ordering::Relaxed) {
                evicting += holder.bytes;
            } else if holder.is_evictable
                && Some(*number) != current
                && now.saturating_sub(holder.grown) >= STALL_TIME
            {
                let slowness = holder.bytes.saturating_mul(now - holder.grown);
                candidates.push((holder.block, holder.bytes, (*number, slowness)));
            }
        }
        // Among equal candidates the oldest is evicted first.
        candidates.sort_unstable_by_key(|(_, _, (number, _))| *number);
        let order = eviction_order(candidates, &self.shares, &self.caps, |(_, slowness)| *slowness);
        let mut excess =
            self.used.saturating_sub(evicting).saturating_sub(self.effective_limit() / 4 * 3);
        let mut of_block = pressed.map_or(0, |block| self.excess_of(block));
        let mut owners = Vec::new();
        for (number, _) in order {
            let Some(holder) = self.holders.get(&number) else { continue };
            let is_of_block = Some(holder.block) == pressed;
            if excess == 0 && (of_block == 0 || !is_of_block) {
                continue;
            }
            excess = excess.saturating_sub(holder.bytes);
            if is_of_block {
                of_block = of_block.saturating_sub(holder.bytes);
            }
            holder.is_evicted.store(true, Ordering::Relaxed);
            owners.push(holder.owner.clone());
        }
        owners
    }

    /// Returns the bytes that `block` holds above three quarters of its quota, if it holds more
    /// than seven eighths.
    fn excess_of(&self, block: AddressBlock) -> u64 {
        let evicting = self
            .holders
            .values()
            .filter(|holder| holder.block == block && holder.is_evicted.load(Ordering::Relaxed));
        let held =
            self.shares.held(block).saturating_sub(evicting.map(|holder| holder.bytes).sum());
        if self.shares.fullness(block, &self.caps, (0, 0)) <= 875_000 {
            return 0;
        }
        held.saturating_sub(self.caps.of(block) / 4 * 3)
    }
}

/// The connection that reserves bytes.
#[derive(Clone, Copy)]
pub(crate) struct Claim<'c> {
    pub(crate) block: AddressBlock,
    /// The owner to notify when the reservation is evicted.
    pub(crate) owner: &'c Owner,
}

/// Bytes of a budget that one connection holds. A new reservation is empty; dropping it returns its
/// bytes to the budget.
#[derive(Default)]
pub(crate) struct Reservation(Option<Box<Held>>);

struct Held {
    budget: Arc<Budget>,
    number: u64,
    bytes: u64,
    is_evicted: Arc<AtomicBool>,
}

impl Reservation {
    /// Bytes that a connection may use without a reservation, so that small requests are never
    /// refused.
    pub(crate) const FREE: u64 = 64 * 1024;

    /// Grows the reservation from `budget` to at least `bytes`, if they exceed
    /// [`FREE`](Self::FREE).
    ///
    /// # Errors
    ///
    /// Fails when the budget or the quota is exhausted, or when this reservation was evicted. The
    /// reservation keeps its bytes then.
    pub(crate) fn reach(
        &mut self,
        bytes: u64,
        budget: &Arc<Budget>,
        claim: Claim<'_>,
    ) -> Result<(), Refused> {
        if bytes <= Self::FREE.max(self.bytes()) && !self.is_evicted() {
            return Ok(());
        }
        budget.grow(self, claim, bytes, monotonic_milliseconds())
    }

    /// Records that the client makes progress.
    pub(crate) fn touch(&mut self) {
        if let Some(held) = &self.0
            && let Some(holder) = held.budget.state().holders.get_mut(&held.number)
        {
            holder.grown = monotonic_milliseconds();
        }
    }

    /// Protects the reservation from eviction, because it no longer waits for its client.
    pub(crate) fn settle(&mut self) {
        if let Some(held) = &self.0
            && let Some(holder) = held.budget.state().holders.get_mut(&held.number)
        {
            holder.is_evictable = false;
        }
    }

    /// Whether the reservation was evicted, so that its connection must drop it.
    pub(crate) fn is_evicted(&self) -> bool {
        self.0.as_ref().is_some_and(|held| held.is_evicted.load(Ordering::Relaxed))
    }

    /// Revokes the reservation, as the budget does when other connections need the bytes.
    #[cfg(test)]
    pub(crate) fn revoke(&self) {
        if let Some(held) = &self.0 {
            held.is_evicted.store(true, Ordering::Relaxed);
        }
    }

    /// Whether the budget may still revoke the reservation.
    #[cfg(test)]
    pub(crate) fn is_evictable(&self) -> bool {
        self.0.as_ref().is_some_and(|held| {
            let state = held.budget.state();
            state.holders.get(&held.number).is_some_and(|holder| holder.is_evictable)
        })
    }

    /// Whether the reservation holds bytes.
    pub(crate) const fn is_some(&self) -> bool {
        self.0.is_some()
    }

    fn bytes(&self) -> u64 {
        self.0.as_ref().map_or(0, |held| held.bytes)
    }
}

/// A clone is empty: reserved bytes belong to one connection.
impl Clone for Reservation {
    fn clone(&self) -> Self {
        Self::default()
    }
}

impl fmt::Debug for Reservation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Reservation({})", self.bytes())
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        let mut state = self.budget.state();
        if let Some(holder) = state.holders.remove(&self.number) {
            state.used -= holder.bytes;
            state.shares.give_back(holder.block, holder.bytes);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;

    fn budget(most: u64, block: u64) -> Arc<Budget> {
        Arc::new(Budget::new("bodies", most, Caps::new(block, most / 10 * 9)))
    }

    fn grow(
        budget: &Arc<Budget>,
        reservation: &mut Reservation,
        from: &str,
        to: u64,
        now: u64,
    ) -> Result<(), Refused> {
        let block = AddressBlock::of(from.parse().unwrap());
        budget.grow(reservation, Claim { block, owner: &Owner::default() }, to, now)
    }

    #[test]
    fn limits_each_block_to_its_quota_and_all_to_the_budget() {
        let budget = budget(16 * MIB, 4 * MIB);
        let mut held: Vec<Reservation> = Vec::new();
        for source in 0..6 {
            let from = format!("192.0.2.{source}");
            for number in 0..8 {
                let mut reservation = Reservation::default();
                let expected = match (source, number) {
                    (0..4, 0..4) => Ok(()),
                    (0..4, _) if source < 3 => Err(Refused::ForBlock),
                    _ => Err(Refused::Everywhere),
                };
                let grown = grow(&budget, &mut reservation, &from, MIB, 5000);
                assert_eq!(grown, expected, "{source} {number}");
                held.push(reservation);
            }
        }
        assert_eq!(budget.metrics().held, 16 * MIB);
        held.clear();
        assert_eq!(budget.metrics().held, 0);
        assert_eq!(budget.state().shares.len(), 0);
    }

    #[test]
    fn limits_ipv6_networks_and_their_sites() {
        let budget = budget(64 * MIB, 4 * MIB);
        let mut held: Vec<Reservation> = Vec::new();
        let mut hold = |from: String| {
            let mut reservation = Reservation::default();
            let grown = grow(&budget, &mut reservation, &from, MIB, 5000);
            held.push(reservation);
            grown.is_ok()
        };
        let granted = (0..16).filter(|host| hold(format!("2001:db8::{host:x}"))).count();
        assert_eq!(granted, 4);
        let granted = (0..90).filter(|network| hold(format!("2001:db8:0:{network:x}::1"))).count();
        assert_eq!(granted, 12);
    }

    #[test]
    fn evicts_a_stalled_reservation_of_the_fullest_block_before_the_budget_is_exhausted() {
        let budget = budget(16 * MIB, 8 * MIB);
        let reserve = |from: &str, to: u64, now: u64| {
            let mut reservation = Reservation::default();
            grow(&budget, &mut reservation, from, to, now).unwrap();
            reservation
        };
        let large = reserve("192.0.2.1", 3 * MIB, 5000);
        let larger = reserve("192.0.2.1", 4 * MIB, 5000);
        let other = reserve("192.0.2.2", 5 * MIB, 5000);
        let lively = reserve("192.0.2.3", MIB, 6500);
        // Less than an eighth is free. Three reservations have stalled, and evicting one suffices.
        let newcomer = reserve("192.0.2.4", 2 * MIB, 6900);
        let evicted = [&large, &larger, &other, &lively, &newcomer].map(Reservation::is_evicted);
        assert_eq!(evicted, [false, true, false, false, false]);
        assert_eq!(budget.metrics().evicted, 1);
    }

    /// Of two stalled reservations of a block, the one with the larger product of bytes and time is
    /// evicted first.
    #[test]
    fn evicts_by_bytes_and_time_together() {
        for (first, second, expected) in [
            ((2 * MIB, 5_000), (3 * MIB, 40_000), [true, false]),
            ((2 * MIB, 10_000), (4 * MIB, 25_000), [false, true]),
            ((3 * MIB, 10_000), (3 * MIB, 10_000), [true, false]),
        ] {
            let budget = budget(64 * MIB, 8 * MIB);
            let reserve = |to: u64, now: u64| {
                let mut reservation = Reservation::default();
                grow(&budget, &mut reservation, "192.0.2.1", to, now).unwrap();
                reservation
            };
            let stalled = [first, second].map(|(bytes, since)| reserve(bytes, since));
            // The block has more than seven eighths of its quota.
            let _newest = reserve(15 * MIB / 2 - first.0 - second.0, 60_000);
            assert_eq!(stalled.each_ref().map(Reservation::is_evicted), expected);
        }
    }

    /// A client that reads its reply is not stalled.
    #[test]
    fn counts_the_time_since_the_last_progress() {
        let budget = budget(16 * MIB, 16 * MIB);
        let mut reservation = Reservation::default();
        grow(&budget, &mut reservation, "192.0.2.1", MIB, 5).unwrap();
        let grown = || budget.state().holders.values().next().unwrap().grown;
        assert_eq!(grown(), 5);
        let before = monotonic_milliseconds();
        reservation.touch();
        assert!((before..=monotonic_milliseconds()).contains(&grown()));
    }

    /// Bytes that are being evicted count as free.
    #[test]
    fn evicts_no_more_while_an_eviction_is_under_way() {
        let budget = budget(16 * MIB, 16 * MIB);
        let reserve = |from: &str, to: u64, now: u64| {
            let mut reservation = Reservation::default();
            grow(&budget, &mut reservation, from, to, now).unwrap();
            reservation
        };
        let stalled: Vec<Reservation> =
            (1..=7).map(|host| reserve(&format!("192.0.2.{host}"), 2 * MIB, 5000)).collect();
        let count = || stalled.iter().filter(|reservation| reservation.is_evicted()).count();
        let _first = reserve("192.0.2.8", STEP, 50_000);
        assert_eq!(count(), 2, "until a quarter is free");
        let _second = reserve("192.0.2.9", STEP, 60_000);
        assert_eq!(count(), 2);
    }

    #[test]
    fn keeps_reservations_in_use_and_the_only_stalled_one_of_a_block() {
        let budget = budget(16 * MIB, 4 * MIB);
        let mut used = Reservation::default();
        grow(&budget, &mut used, "192.0.2.1", 3 * MIB, 5000).unwrap();
        used.settle();
        // Slow, and near the quota, but the block has no other reservation that needs the bytes.
        let mut slow = Reservation::default();
        for step in 1..=16 {
            grow(&budget, &mut slow, "192.0.2.1", step * STEP, 5000 + step * 2000).unwrap();
        }
        assert!(!used.is_evicted() && !slow.is_evicted());
        assert_eq!(grow(&budget, &mut slow, "192.0.2.1", 2 * MIB, 50_000), Err(Refused::ForBlock));
    }

    #[test]
    fn halves_the_budget_while_memory_is_short() {
        let budget = budget(16 * MIB, 16 * MIB);
        let mut reservation = Reservation::default();
        grow(&budget, &mut reservation, "192.0.2.1", 10 * MIB, 1).unwrap();
        budget.tighten(true);
        assert!(reservation.is_evicted());
        let mut newcomer = Reservation::default();
        let refused = Err(Refused::Everywhere);
        assert_eq!(grow(&budget, &mut newcomer, "192.0.2.2", MIB, 5000), refused);
        budget.tighten(false);
        assert_eq!(grow(&budget, &mut newcomer, "192.0.2.2", MIB, 5000), Ok(()));
    }

    #[test]
    fn applies_new_limits_to_later_reservations() {
        let budget = budget(16 * MIB, 4 * MIB);
        let mut held = Reservation::default();
        grow(&budget, &mut held, "192.0.2.1", 3 * MIB, 5000).unwrap();
        budget.limit(8 * MIB, Caps::new(2 * MIB, 8 * MIB));
        assert!(!held.is_evicted());
        let mut more = Reservation::default();
        assert_eq!(grow(&budget, &mut more, "192.0.2.1", MIB, 5000), Err(Refused::ForBlock));
        let mut others: Vec<Reservation> = Vec::new();
        let mut refusal = None;
        for host in 2..9 {
            let mut other = Reservation::default();
            match grow(&budget, &mut other, &format!("192.0.2.{host}"), MIB, 5000) {
                Ok(()) => others.push(other),
                Err(refused) => refusal = refusal.or(Some(refused)),
            }
        }
        assert_eq!((others.len(), refusal), (5, Some(Refused::Everywhere)));
    }

    /// A block above seven eighths of its quota loses its slowest stalled reservations until it
    /// holds three quarters, while other blocks keep theirs.
    #[test]
    fn evicts_stalled_reservations_of_a_block_near_its_quota() {
        let budget = budget(64 * MIB, 8 * MIB);
        let reserve = |from: &str, to: u64, now: u64| {
            let mut reservation = Reservation::default();
            grow(&budget, &mut reservation, from, to, now).unwrap();
            reservation
        };
        let own: Vec<Reservation> = (0..3).map(|_| reserve("192.0.2.1", 2 * MIB, 5000)).collect();
        let other = reserve("192.0.2.2", 7 * MIB, 5000);
        let at_limit = reserve("192.0.2.1", MIB, 50_000);
        assert!(own.iter().all(|reservation| !reservation.is_evicted()), "at seven eighths");
        let above = reserve("192.0.2.1", MIB / 2, 50_000);
        let evicted = own.iter().filter(|reservation| reservation.is_evicted()).count();
        assert_eq!(evicted, 1);
        assert!(!other.is_evicted() && !at_limit.is_evicted() && !above.is_evicted());
    }

    #[test]
    fn never_refuses_small_amounts() {
        let budget = budget(0, 0);
        let mut reservation = Reservation::default();
        let owner = Owner::default();
        let claim = Claim { block: AddressBlock::LOCAL, owner: &owner };
        assert_eq!(reservation.reach(64 * 1024, &budget, claim), Ok(()));
        assert_eq!(reservation.reach(64 * 1024 + 1, &budget, claim), Err(Refused::Everywhere));
    }

    #[test]
    fn evicts_only_when_memory_becomes_short() {
        let budget = budget(16 * MIB, 16 * MIB);
        let hold = |number: u8| {
            let mut reservation = Reservation::default();
            grow(&budget, &mut reservation, &format!("192.0.2.{number}"), 7 * MIB, 1).unwrap();
            reservation
        };
        let reservations = [hold(1), hold(2)];
        let evicted = || reservations.iter().filter(|each| each.is_evicted()).count();
        budget.tighten(false);
        assert_eq!(evicted(), 0);
        budget.tighten(true);
        let first = evicted();
        assert!(first > 0);
        budget.tighten(true);
        assert_eq!((evicted(), budget.metrics().evicted), (first, first as u64));
    }
}

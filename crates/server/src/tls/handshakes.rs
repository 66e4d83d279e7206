//! Limits on the TLS handshakes in progress: their number, their rate per address block, and the
//! choice of the handshake to evict.

use std::cmp::Reverse;
use std::collections::{BTreeSet, HashMap};
use std::hash::Hash;
use std::mem::take;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bine_log::{self as log, LogLimit};
use rustls::HandshakeKind;

use crate::address::{AddressBlock, AddressSite};
use crate::quota::{Caps, Owner, Shares};

/// One address block may have this fraction (1/8) of all handshakes in progress, and an IPv6 /48
/// four times that.
const BLOCK_FRACTION: u64 = 8;
/// Size of a block's burst: the handshakes that its rate allows in this many seconds.
const BURST: u64 = 5;
/// Ratio of the rate of an IPv6 /48 to the rate of a block.
const BLOCKS_PER_SITE: u64 = 4;
/// Number of token buckets from which on full buckets are dropped.
const MIN_BUCKETS: usize = 1024;

/// The TLS handshakes in progress on one server.
pub(crate) struct Handshakes {
    state: Mutex<HandshakeState>,
    /// Handshakes refused because the block exceeded its rate.
    refused: AtomicU64,
    evicted: AtomicU64,
    /// Handshakes that wait for their turn of an event loop.
    waiting: AtomicU64,
    delayed: AtomicU64,
    full: AtomicU64,
    resumed: AtomicU64,
    /// Preferred handshakes that have not resumed a session.
    misled: AtomicU64,
    log: LogLimit,
}

struct HandshakeState {
    most: u64,
    caps: Caps,
    /// Handshakes that a block may begin per second; 0 means no limit.
    rate: u64,
    next: u64,
    under_way: HashMap<u64, ActiveHandshake>,
    by_block: HashMap<AddressBlock, BlockHandshakes>,
    shares: Shares,
    rates: BlockRates,
    /// The rates of handshakes that resume a session and exceed the other rates.
    resumed_rates: BlockRates,
}

/// Numbers of the handshakes of a block. The lowest number is the oldest handshake.
#[derive(Default)]
struct BlockHandshakes {
    /// Full handshakes, and those that wait for their turn.
    full: BTreeSet<u64>,
    resumed: BTreeSet<u64>,
}

impl BlockHandshakes {
    fn oldest(&self) -> Option<u64> {
        [self.full.first(), self.resumed.first()].into_iter().flatten().min().copied()
    }

    /// The handshake to evict: the oldest full one, if at least a quarter are full, else the oldest of
    /// both kinds. So handshakes of one kind do not take the places of the other.
    fn to_evict(&self) -> Option<u64> {
        let is_preferred = self.full.len() * 3 >= self.resumed.len();
        self.full.first().copied().filter(|_| is_preferred).or_else(|| self.oldest())
    }
}

struct ActiveHandshake {
    block: AddressBlock,
    is_evicted: Arc<AtomicBool>,
    owner: Owner,
}

/// Metrics of TLS handshakes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct HandshakeMetrics {
    /// Handshakes in progress.
    pub under_way: u64,
    /// Maximum number of handshakes in progress.
    pub most: u64,
    /// Connections closed because their address block exceeded its handshake rate.
    pub refused: u64,
    /// Handshakes evicted in favor of newer ones.
    pub evicted: u64,
    /// Handshakes in progress that wait for their turn of an event loop.
    pub waiting: u64,
    /// Handshakes that have waited for their turn.
    pub delayed: u64,
    /// Full handshakes that the server has answered.
    pub full: u64,
    /// Handshakes that have resumed a session.
    pub resumed: u64,
    /// Handshakes that began early because of a valid ticket, and have not resumed its session.
    pub misled: u64,
}

impl Handshakes {
    pub(crate) fn new(limits: HandshakeLimits) -> Self {
        let HandshakeLimits { most, caps, rate } = limits;
        let state = HandshakeState {
            most,
            caps,
            rate,
            next: 0,
            under_way: HashMap::new(),
            by_block: HashMap::new(),
            shares: Shares::default(),
            rates: BlockRates::default(),
            resumed_rates: BlockRates::default(),
        };
        Self {
            state: Mutex::new(state),
            refused: AtomicU64::new(0),
            evicted: AtomicU64::new(0),
            waiting: AtomicU64::new(0),
            delayed: AtomicU64::new(0),
            full: AtomicU64::new(0),
            resumed: AtomicU64::new(0),
            misled: AtomicU64::new(0),
            log: LogLimit::default(),
        }
    }

    /// Changes the limits. Handshakes in progress continue.
    pub(crate) fn limit(&self, HandshakeLimits { most, caps, rate }: HandshakeLimits) {
        let mut state = self.state();
        (state.most, state.caps, state.rate) = (most, caps, rate);
    }

    /// Registers a handshake of `block` that begins at `now` milliseconds. At the limit of the
    /// block, the oldest handshake in that block is evicted. At the limit of the server, the oldest
    /// handshake in the block with the fullest quota is evicted.
    ///
    /// Returns `None` when the block exceeds its rate. Handshakes that resume a session then have
    /// another rate of the same size. `is_resumption` is called only in this case.
    pub(crate) fn begin(
        self: &Arc<Self>,
        block: AddressBlock,
        owner: &Owner,
        now: u64,
        is_resumption: impl FnOnce() -> bool,
    ) -> Option<Handshake> {
        let has_token = self.state().may_begin(block, now);
        let may_begin = has_token || (is_resumption() && self.state().may_resume(block, now));
        if !may_begin {
            self.refused.fetch_add(1, Ordering::Relaxed);
            if let Some(left_out) = self.log.allows(now) {
                log::warn(format_args!(
                    "rejected a TLS handshake of {block}, which starts too many (`handshake-rate`); \
                     {left_out} similar lines were left out"
                ));
            }
            return None;
        }
        let mut state = self.state();
        let mut evicted = Vec::new();
        if !state.fits(block) {
            evicted.extend(state.evict_oldest(block));
        }
        while state.under_way.len() as u64 >= state.most {
            let Some(fullest) = state.fullest() else { break };
            evicted.extend(state.evict_oldest(fullest));
        }
        let number = state.next;
        state.next += 1;
        let is_evicted = Arc::<AtomicBool>::default();
        let handshake =
            ActiveHandshake { block, is_evicted: Arc::clone(&is_evicted), owner: owner.clone() };
        state.under_way.insert(number, handshake);
        state.by_block.entry(block).or_default().full.insert(number);
        state.shares.add(block, 1);
        let (count, most) = (state.under_way.len(), state.most);
        drop(state);
        self.evict_all(&evicted, count, most, now);
        let all = Arc::clone(self);
        let handshake = Handshake {
            all,
            number,
            block,
            is_evicted,
            is_preferred: !has_token,
            is_waiting: false,
            is_known: false,
        };
        Some(handshake)
    }

    pub(crate) fn metrics(&self) -> HandshakeMetrics {
        let state = self.state();
        HandshakeMetrics {
            under_way: state.under_way.len() as u64,
            most: state.most,
            refused: self.refused.load(Ordering::Relaxed),
            evicted: self.evicted.load(Ordering::Relaxed),
            waiting: self.waiting.load(Ordering::Relaxed),
            delayed: self.delayed.load(Ordering::Relaxed),
            full: self.full.load(Ordering::Relaxed),
            resumed: self.resumed.load(Ordering::Relaxed),
            misled: self.misled.load(Ordering::Relaxed),
        }
    }

    fn evict_all(&self, evicted: &[ActiveHandshake], count: usize, most: u64, now: u64) {
        let Some(first) = evicted.first() else { return };
        self.evicted.fetch_add(evicted.len() as u64, Ordering::Relaxed);
        if let Some(left_out) = self.log.allows(now) {
            log::warn(format_args!(
                "dropped the oldest TLS handshake of {} for a newer one; {count} of {most} are running \
                 (`handshakes`); {left_out} similar lines were left out",
                first.block
            ));
        }
        for handshake in evicted {
            handshake.is_evicted.store(true, Ordering::Relaxed);
            handshake.owner.evict();
        }
    }

    fn state(&self) -> MutexGuard<'_, HandshakeState> {
        // No code panics while it holds this lock, so a poisoned state is still consistent.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Limits on the number and the rate of handshakes.
#[derive(Clone, Copy)]
pub(crate) struct HandshakeLimits {
    most: u64,
    caps: Caps,
    rate: u64,
}

impl HandshakeLimits {
    /// Allows `most` handshakes in progress on all loops together, and `rate` new ones per second
    /// and address block.
    pub(crate) fn new(most: u64, rate: u32) -> Self {
        let caps = Caps::new(most / BLOCK_FRACTION, most - most / 10);
        Self { most: most.max(1), caps, rate: rate.into() }
    }
}

impl HandshakeState {
    /// Takes a token from the bucket of `block` and returns whether there was one. Local clients
    /// are exempt: a handshake loads this machine on both ends.
    fn may_begin(&mut self, block: AddressBlock, now: u64) -> bool {
        self.rate == 0 || block.is_local() || self.rates.take(block, self.rate, now)
    }

    fn may_resume(&mut self, block: AddressBlock, now: u64) -> bool {
        self.resumed_rates.take(block, self.rate, now)
    }

    fn fits(&mut self, block: AddressBlock) -> bool {
        let Self { shares, caps, .. } = self;
        let fits = shares.take(block, 1, caps);
        if fits {
            shares.give_back(block, 1);
        }
        fits
    }

    fn fullest(&self) -> Option<AddressBlock> {
        let rank = |(block, handshakes): &(&AddressBlock, &BlockHandshakes)| {
            (self.shares.fullness(**block, &self.caps, (0, 0)), Reverse(handshakes.oldest()))
        };
        self.by_block.iter().max_by_key(rank).map(|(block, _)| *block)
    }

    /// Removes the oldest handshake of `block`, or of a neighbor in the same site. Full ones precede
    /// those that resume a session.
    fn evict_oldest(&mut self, block: AddressBlock) -> Option<ActiveHandshake> {
        let is_near = |(other, _): &(&AddressBlock, &BlockHandshakes)| {
            block.has_neighbors() && other.site() == block.site()
        };
        let handshakes = match self.by_block.get(&block) {
            Some(handshakes) => handshakes,
            None => self.by_block.iter().find(is_near).map(|(_, handshakes)| handshakes)?,
        };
        let number = handshakes.to_evict()?;
        self.remove(number)
    }

    fn remove(&mut self, number: u64) -> Option<ActiveHandshake> {
        let handshake = self.under_way.remove(&number)?;
        if let Some(handshakes) = self.by_block.get_mut(&handshake.block) {
            handshakes.full.remove(&number);
            handshakes.resumed.remove(&number);
            if handshakes.oldest().is_none() {
                self.by_block.remove(&handshake.block);
            }
        }
        self.shares.give_back(handshake.block, 1);
        Some(handshake)
    }

    fn note_resumed(&mut self, number: u64, block: AddressBlock) {
        if let Some(handshakes) = self.by_block.get_mut(&block)
            && handshakes.full.remove(&number)
        {
            handshakes.resumed.insert(number);
        }
    }
}

/// One handshake in progress. Dropping it frees its place.
pub(crate) struct Handshake {
    all: Arc<Handshakes>,
    number: u64,
    block: AddressBlock,
    is_evicted: Arc<AtomicBool>,
    /// Whether it has begun, or begun early, because its client offers to resume a session.
    is_preferred: bool,
    /// Whether it waits for its turn of the event loop.
    is_waiting: bool,
    /// Whether the server knows if it resumes a session.
    is_known: bool,
}

impl Handshake {
    /// Whether a newer handshake has taken its place, so that its connection must close.
    pub(super) fn is_evicted(&self) -> bool {
        self.is_evicted.load(Ordering::Relaxed)
    }

    pub(super) const fn block(&self) -> AddressBlock {
        self.block
    }

    /// It waits for its turn of the event loop from now on.
    pub(super) fn wait(&mut self) {
        self.is_waiting = true;
        self.all.waiting.fetch_add(1, Ordering::Relaxed);
        self.all.delayed.fetch_add(1, Ordering::Relaxed);
    }

    /// Its turn has come. `is_preferred`: earlier than that of a full handshake.
    pub(super) fn start(&mut self, is_preferred: bool) {
        self.is_preferred |= is_preferred;
        if take(&mut self.is_waiting) {
            self.all.waiting.fetch_sub(1, Ordering::Relaxed);
        }
    }

    /// Records what kind of handshake it is, as soon as that is certain. `is_over`: nothing about it
    /// changes any more.
    ///
    /// Returns whether it was preferred and has not resumed a session.
    pub(super) fn note_kind(&mut self, kind: Option<HandshakeKind>, is_over: bool) -> bool {
        let is_resumed = kind == Some(HandshakeKind::Resumed);
        // After a hello retry request, the second message decides.
        let is_certain = is_resumed || is_over || kind == Some(HandshakeKind::Full);
        if self.is_known || !is_certain {
            return false;
        }
        self.is_known = true;
        if is_resumed {
            self.all.state().note_resumed(self.number, self.block);
            self.all.resumed.fetch_add(1, Ordering::Relaxed);
        } else if kind.is_some() {
            self.all.full.fetch_add(1, Ordering::Relaxed);
        }
        let is_misled = self.is_preferred && !is_resumed;
        self.all.misled.fetch_add(is_misled.into(), Ordering::Relaxed);
        is_misled
    }
}

impl Drop for Handshake {
    fn drop(&mut self) {
        self.start(false);
        let handshake = self.all.state().remove(self.number);
        drop(handshake);
    }
}

/// The rates of all blocks and of their sites.
#[derive(Default)]
struct BlockRates {
    of_blocks: Rates<AddressBlock>,
    of_sites: Rates<AddressSite>,
}

impl BlockRates {
    /// Takes a token of `block` and of its site, at `rate` tokens per second. Returns whether there
    /// was one.
    fn take(&mut self, block: AddressBlock, rate: u64, now: u64) -> bool {
        let block_has_token = self.of_blocks.has_token(block, rate, now);
        let site_rate = rate.saturating_mul(BLOCKS_PER_SITE);
        let may = block_has_token
            && (!block.has_neighbors() || self.of_sites.has_token(block.site(), site_rate, now));
        if may {
            self.of_blocks.spend(&block);
            self.of_sites.spend(&block.site());
        }
        may
    }
}

/// Token buckets, counted in thousandths of a token. A key without an entry has a full bucket.
struct Rates<K> {
    buckets: HashMap<K, Bucket>,
    /// Number of buckets from which on full ones are dropped.
    most: usize,
}

struct Bucket {
    tokens: u64,
    filled: u64,
}

const TOKEN: u64 = 1000;

impl<K> Default for Rates<K> {
    fn default() -> Self {
        Self { buckets: HashMap::new(), most: MIN_BUCKETS }
    }
}

impl<K: Eq + Hash> Rates<K> {
    /// Refills the bucket of `key` at `rate` tokens per second and returns whether it holds a token
    /// at `now` milliseconds.
    fn has_token(&mut self, key: K, rate: u64, now: u64) -> bool {
        let full = rate.saturating_mul(BURST * TOKEN);
        let fill = |bucket: &mut Bucket| {
            // `rate` tokens per second are `rate` thousandths of a token per millisecond.
            let gained = now.saturating_sub(bucket.filled).saturating_mul(rate);
            (bucket.tokens, bucket.filled) = (bucket.tokens.saturating_add(gained).min(full), now);
            bucket.tokens < full
        };
        if self.buckets.len() >= self.most {
            self.buckets.retain(|_, bucket| fill(bucket));
            self.most = (self.buckets.len() * 2).max(MIN_BUCKETS);
        }
        let bucket = self.buckets.entry(key).or_insert(Bucket { tokens: full, filled: now });
        fill(bucket);
        bucket.tokens >= TOKEN
    }

    fn spend(&mut self, key: &K) {
        if let Some(bucket) = self.buckets.get_mut(key) {
            bucket.tokens = bucket.tokens.saturating_sub(TOKEN);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn handshakes(handshakes: usize, handshake_rate: u32) -> Arc<Handshakes> {
        Arc::new(Handshakes::new(HandshakeLimits::new(handshakes as u64, handshake_rate)))
    }

    fn begin(all: &Arc<Handshakes>, from: &str, now: u64) -> Option<Handshake> {
        all.begin(AddressBlock::of(from.parse().unwrap()), &Owner::default(), now, || false)
    }

    fn evicted(handshakes: &[Handshake]) -> Vec<usize> {
        let is_evicted = |(_, handshake): &(usize, &Handshake)| handshake.is_evicted();
        handshakes.iter().enumerate().filter(is_evicted).map(|(index, _)| index).collect()
    }

    #[test]
    fn evicts_the_oldest_handshake_of_a_block_at_its_limit() {
        let all = handshakes(16, 0);
        let mut handshakes: Vec<Handshake> =
            (0..3).map(|_| begin(&all, "192.0.2.1", 1).unwrap()).collect();
        // The limit of a block is an eighth of sixteen.
        assert_eq!(evicted(&handshakes), [0]);
        handshakes.push(begin(&all, "192.0.2.2", 1).unwrap());
        assert_eq!(evicted(&handshakes), [0]);
        // A completed handshake frees its place.
        drop(handshakes.remove(1));
        handshakes.push(begin(&all, "192.0.2.1", 1).unwrap());
        assert_eq!(evicted(&handshakes), [0]);
        assert_eq!(all.metrics().under_way, 3);
        drop(handshakes);
        assert_eq!(all.metrics().under_way, 0);
        assert!(all.state().by_block.is_empty());
    }

    #[test]
    fn applies_new_limits_to_later_handshakes() {
        let all = handshakes(16, 0);
        let handshakes: Vec<Handshake> =
            (0..2).map(|_| begin(&all, "192.0.2.1", 5000).unwrap()).collect();
        all.limit(HandshakeLimits::new(8, 10));
        assert_eq!(evicted(&handshakes), [0_usize; 0]);
        let _new = begin(&all, "192.0.2.1", 5000).unwrap();
        // A block may have one of eight.
        assert!(evicted(&handshakes).contains(&0));
        let granted = (0..100).filter(|_| begin(&all, "192.0.2.9", 5000).is_some()).count();
        assert_eq!(granted, 50);
    }

    #[test]
    fn evicts_the_oldest_handshake_of_the_fullest_block_at_the_total_limit() {
        let all = handshakes(16, 0);
        let mut handshakes = Vec::new();
        for source in 0..16 {
            handshakes.push(begin(&all, &format!("192.0.2.{source}"), 1).unwrap());
        }
        drop(handshakes.remove(15));
        handshakes.push(begin(&all, "192.0.2.7", 1).unwrap());
        handshakes.push(begin(&all, "192.0.2.99", 1).unwrap());
        assert_eq!(evicted(&handshakes), [7]);
    }

    #[test]
    fn limits_the_blocks_of_one_site_together() {
        let all = handshakes(16, 0);
        let handshakes: Vec<Handshake> = (0..12)
            .map(|network| begin(&all, &format!("2001:db8:0:{network:x}::1"), 1).unwrap())
            .collect();
        assert_eq!((evicted(&handshakes).len(), all.metrics().under_way), (4, 8));
    }

    #[test]
    fn refuses_handshakes_of_a_block_above_its_rate() {
        let all = handshakes(1000, 10);
        let begins = |from: &str, now| begin(&all, from, now).is_some();
        let granted = (0..100).filter(|_| begins("192.0.2.1", 5000)).count();
        assert_eq!(granted, 50);
        assert!(begins("192.0.2.2", 5000));
        assert_eq!((0..100).filter(|_| begins("192.0.2.1", 6000)).count(), 10);
        // A /48 has four times the burst of 50, over any number of networks.
        let of_site = (0..400).filter(|number| begins(&format!("2001:db8:0:{number:x}::1"), 6000));
        assert_eq!(of_site.count(), 200);
        assert!((0..1000).all(|_| begins("127.0.0.1", 6000)));
        assert_eq!(all.metrics().refused, 50 + 90 + 200);
    }

    #[test]
    fn drops_token_buckets_of_idle_blocks() {
        let all = handshakes(1000, 10);
        for number in 0..5000 {
            begin(&all, &format!("10.0.{}.{}", number / 250, number % 250), number * 1000);
        }
        assert!(all.state().rates.of_blocks.buckets.len() <= MIN_BUCKETS);
    }

    /// Full buckets are looked for again only when the number of buckets has doubled, or each new
    /// block would cost a search of all.
    #[test]
    fn searches_for_full_buckets_when_their_number_has_doubled() {
        let mut rates = Rates::default();
        for key in 0..MIN_BUCKETS {
            rates.has_token(key, 10, 0);
            rates.spend(&key);
        }
        assert_eq!((rates.buckets.len(), rates.most), (MIN_BUCKETS, MIN_BUCKETS));
        // None is full after a millisecond.
        rates.has_token(MIN_BUCKETS, 10, 1);
        assert_eq!((rates.buckets.len(), rates.most), (MIN_BUCKETS + 1, 2 * MIN_BUCKETS));
        // All are full after a minute, and few buckets do not make the limit small.
        for key in 0..=MIN_BUCKETS {
            rates.has_token(MIN_BUCKETS + key, 10, 60_000);
        }
        assert_eq!((rates.buckets.len(), rates.most), (1, MIN_BUCKETS));
        assert_eq!(rates.buckets.values().next().map(|bucket| bucket.tokens), Some(50 * TOKEN));
    }

    /// Handshakes of one kind cannot keep the other kind from a place.
    #[test]
    fn evicts_full_handshakes_before_resumed_ones() {
        let all = handshakes(64, 0);
        let open = |resumes: bool| {
            let mut handshake = begin(&all, "192.0.2.1", 1).unwrap();
            let kind = if resumes { HandshakeKind::Resumed } else { HandshakeKind::Full };
            assert!(!handshake.note_kind(Some(kind), false));
            handshake
        };
        // The limit of a block is an eighth of 64.
        let mut open: Vec<Handshake> = (0..8).map(|number| open(number < 5)).collect();
        let mut order = Vec::new();
        for _ in 0..8 {
            open.push(begin(&all, "192.0.2.1", 1).unwrap());
            open.last_mut().unwrap().note_kind(Some(HandshakeKind::Resumed), false);
            let gone = evicted(&open);
            order.push(gone.into_iter().find(|index| !order.contains(index)).unwrap());
        }
        // Of eight resumed ones and no full one, the oldest.
        assert_eq!(order, [5, 6, 0, 1, 2, 3, 4, 7]);
        assert_eq!((all.metrics().resumed, all.metrics().full), (13, 3));
    }

    #[test]
    fn decides_the_kind_after_a_hello_retry_request() {
        let all = handshakes(64, 0);
        for (kind, is_over, expected) in [
            (HandshakeKind::Resumed, false, (1, 0)),
            (HandshakeKind::FullWithHelloRetryRequest, true, (1, 1)),
        ] {
            let mut handshake = begin(&all, "192.0.2.1", 1).unwrap();
            handshake.start(true);
            let retry = Some(HandshakeKind::FullWithHelloRetryRequest);
            assert!(!handshake.note_kind(retry, false));
            assert_eq!(handshake.note_kind(Some(kind), is_over), is_over);
            assert!(!handshake.note_kind(Some(kind), true), "it is reported once");
            assert_eq!((all.metrics().resumed, all.metrics().misled), expected);
        }
    }

    #[test]
    fn evicts_no_handshake_of_another_site() {
        let all = handshakes(32, 0);
        let others: Vec<Handshake> =
            (1..=8).map(|site| begin(&all, &format!("2001:db8:{site}::1"), 1).unwrap()).collect();
        let _full: Vec<Handshake> = (0..36)
            .map(|network| begin(&all, &format!("2001:db8:0:{network:x}::1"), 1).unwrap())
            .collect();
        assert_eq!((evicted(&others), all.metrics().under_way), (Vec::new(), 8 + 16));
    }
}

//! TLS handshakes under way in one server: how many, from which address blocks, and which gives way.

use std::cmp::Reverse;
use std::collections::{BTreeSet, HashMap};
use std::hash::Hash;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bine_log::{self as log, LogLimit};

use crate::address::{AddressBlock, AddressSite};
use crate::quota::{Caps, Owner, Shares};

/// A block may have this part of all handshakes under way, and an IPv6 /48 four times that.
const PART_OF_BLOCK: u64 = 8;
/// A block may begin as many handshakes at once as its rate allows in this many seconds.
const BURST: u64 = 5;
/// An IPv6 /48 may begin this many times as many as one of its blocks.
const BLOCKS_PER_SITE: u64 = 4;
/// Rates of this many blocks are kept before those at rest are forgotten.
const FEW: usize = 1024;

/// The handshakes of one server.
pub(crate) struct Handshakes {
    state: Mutex<State>,
    /// Not begun because the block began too many in a short time.
    refused: AtomicU64,
    evicted: AtomicU64,
    log: LogLimit,
}

struct State {
    most: u64,
    caps: Caps,
    /// That a block may begin in a second; 0: any number.
    rate: u64,
    next: u64,
    under_way: HashMap<u64, Begun>,
    /// Their numbers by block: the lowest is the oldest.
    by_block: HashMap<AddressBlock, BTreeSet<u64>>,
    shares: Shares,
    of_blocks: Rates<AddressBlock>,
    of_sites: Rates<AddressSite>,
}

struct Begun {
    block: AddressBlock,
    is_evicted: Arc<AtomicBool>,
    owner: Owner,
}

/// What is known of handshakes, for whoever watches the server.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct HandshakeMetrics {
    /// Under way at this moment.
    pub under_way: u64,
    /// That may be under way at one time.
    pub most: u64,
    /// Connections that were closed because their address block began too many handshakes.
    pub refused: u64,
    /// Handshakes that were dropped because newer ones needed their place.
    pub evicted: u64,
}

impl Handshakes {
    pub(crate) fn new(limits: HandshakeLimits) -> Self {
        let HandshakeLimits { most, caps, rate } = limits;
        let state = State {
            most,
            caps,
            rate,
            next: 0,
            under_way: HashMap::new(),
            by_block: HashMap::new(),
            shares: Shares::default(),
            of_blocks: Rates::default(),
            of_sites: Rates::default(),
        };
        Self {
            state: Mutex::new(state),
            refused: AtomicU64::new(0),
            evicted: AtomicU64::new(0),
            log: LogLimit::default(),
        }
    }

    /// Changes the bounds. What is under way stays.
    pub(crate) fn limit(&self, HandshakeLimits { most, caps, rate }: HandshakeLimits) {
        let mut state = self.state();
        (state.most, state.caps, state.rate) = (most, caps, rate);
    }

    /// A place for a handshake of `block` that begins at `now` milliseconds. When there is none, the oldest of that
    /// block gives way if the block has its share, and else the oldest of the block whose share is fullest.
    ///
    /// `None`: the block has begun too many in a short time.
    pub(crate) fn begin(
        self: &Arc<Self>,
        block: AddressBlock,
        owner: &Owner,
        now: u64,
    ) -> Option<Handshake> {
        let mut state = self.state();
        if !state.may_begin(block, now) {
            drop(state);
            self.refused.fetch_add(1, Ordering::Relaxed);
            if let Some(left_out) = self.log.allows(now) {
                log::warn(format_args!(
                    "{block} begins too many TLS handshakes (`handshake-rate`): one is refused; {left_out} such lines \
                     were left out"
                ));
            }
            return None;
        }
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
        let begun = Begun { block, is_evicted: Arc::clone(&is_evicted), owner: owner.clone() };
        state.under_way.insert(number, begun);
        state.by_block.entry(block).or_default().insert(number);
        state.shares.add(block, 1);
        let (count, most) = (state.under_way.len(), state.most);
        drop(state);
        self.tell(&evicted, count, most, now);
        Some(Handshake { all: Arc::clone(self), number, is_evicted })
    }

    pub(crate) fn metrics(&self) -> HandshakeMetrics {
        let state = self.state();
        HandshakeMetrics {
            under_way: state.under_way.len() as u64,
            most: state.most,
            refused: self.refused.load(Ordering::Relaxed),
            evicted: self.evicted.load(Ordering::Relaxed),
        }
    }

    fn tell(&self, evicted: &[Begun], count: usize, most: u64, now: u64) {
        let Some(first) = evicted.first() else { return };
        self.evicted.fetch_add(evicted.len() as u64, Ordering::Relaxed);
        if let Some(left_out) = self.log.allows(now) {
            log::warn(format_args!(
                "the oldest TLS handshake of {} is dropped for a newer one; {count} of {most} are under way, and \
                 {left_out} such lines were left out",
                first.block
            ));
        }
        for begun in evicted {
            begun.is_evicted.store(true, Ordering::Relaxed);
            begun.owner.evict();
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // Nothing under it can panic half-way.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// How many handshakes may be under way, and how many may begin.
#[derive(Clone, Copy)]
pub(crate) struct HandshakeLimits {
    most: u64,
    caps: Caps,
    rate: u64,
}

impl HandshakeLimits {
    /// `most` under way on all loops together, and `rate` begun by each address block per second.
    pub(crate) fn new(most: u64, rate: u32) -> Self {
        let caps = Caps::new(most / PART_OF_BLOCK, most - most / 10);
        Self { most: most.max(1), caps, rate: rate.into() }
    }
}

impl State {
    /// Spends a start of `block`. Those of this machine are not counted: they cost it what they cost the server.
    fn may_begin(&mut self, block: AddressBlock, now: u64) -> bool {
        if self.rate == 0 || block.is_local() {
            return true;
        }
        let own = self.of_blocks.has_token(block, self.rate, now);
        let wide = self.rate.saturating_mul(BLOCKS_PER_SITE);
        let may =
            own && (!block.has_neighbors() || self.of_sites.has_token(block.site(), wide, now));
        if may {
            self.of_blocks.spend(&block);
            self.of_sites.spend(&block.site());
        }
        may
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
        let rank = |(block, numbers): &(&AddressBlock, &BTreeSet<u64>)| {
            (self.shares.fullness(**block, &self.caps, (0, 0)), Reverse(numbers.first().copied()))
        };
        self.by_block.iter().max_by_key(rank).map(|(block, _)| *block)
    }

    /// The oldest of `block`, or of another block of its site.
    fn evict_oldest(&mut self, block: AddressBlock) -> Option<Begun> {
        let is_near = |(other, _): &(&AddressBlock, &BTreeSet<u64>)| {
            block.has_neighbors() && other.site() == block.site()
        };
        let numbers = match self.by_block.get(&block) {
            Some(own) => own,
            None => self.by_block.iter().filter(is_near).map(|(_, numbers)| numbers).next()?,
        };
        let number = numbers.first().copied()?;
        self.forget(number)
    }

    fn forget(&mut self, number: u64) -> Option<Begun> {
        let begun = self.under_way.remove(&number)?;
        if let Some(numbers) = self.by_block.get_mut(&begun.block) {
            numbers.remove(&number);
            if numbers.is_empty() {
                self.by_block.remove(&begun.block);
            }
        }
        self.shares.give_back(begun.block, 1);
        Some(begun)
    }
}

/// A handshake under way.
pub(crate) struct Handshake {
    all: Arc<Handshakes>,
    number: u64,
    is_evicted: Arc<AtomicBool>,
}

impl Handshake {
    /// A newer one has its place, so that its connection must close.
    pub(super) fn is_evicted(&self) -> bool {
        self.is_evicted.load(Ordering::Relaxed)
    }
}

impl Drop for Handshake {
    fn drop(&mut self) {
        let begun = self.all.state().forget(self.number);
        drop(begun);
    }
}

/// Token buckets: what each key may begin now, in thousandths. A key that is not known has a full bucket.
struct Rates<K> {
    buckets: HashMap<K, Bucket>,
    /// Buckets that are kept before those that are full again are forgotten.
    most: usize,
}

struct Bucket {
    tokens: u64,
    filled: u64,
}

const TOKEN: u64 = 1000;

impl<K> Default for Rates<K> {
    fn default() -> Self {
        Self { buckets: HashMap::new(), most: FEW }
    }
}

impl<K: Eq + Hash> Rates<K> {
    /// Whether `key`, which may begin `rate` a second, may begin one at `now` milliseconds.
    fn has_token(&mut self, key: K, rate: u64, now: u64) -> bool {
        let full = rate.saturating_mul(BURST * TOKEN);
        let fill = |bucket: &mut Bucket| {
            // A thousandth of a token each millisecond, for each that may begin in a second.
            let gained = now.saturating_sub(bucket.filled).saturating_mul(rate);
            (bucket.tokens, bucket.filled) = (bucket.tokens.saturating_add(gained).min(full), now);
            bucket.tokens < full
        };
        if self.buckets.len() >= self.most {
            self.buckets.retain(|_, bucket| fill(bucket));
            self.most = (self.buckets.len() * 2).max(FEW);
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
        all.begin(AddressBlock::of(from.parse().unwrap()), &Owner::default(), now)
    }

    fn evicted(begun: &[Handshake]) -> Vec<usize> {
        let is_evicted = |(_, begun): &(usize, &Handshake)| begun.is_evicted();
        begun.iter().enumerate().filter(is_evicted).map(|(place, _)| place).collect()
    }

    #[test]
    fn drops_the_oldest_of_a_block_that_has_its_share() {
        let all = handshakes(16, 0);
        let mut begun: Vec<Handshake> =
            (0..3).map(|_| begin(&all, "192.0.2.1", 1).unwrap()).collect();
        // An eighth of sixteen.
        assert_eq!(evicted(&begun), [0]);
        begun.push(begin(&all, "192.0.2.2", 1).unwrap());
        assert_eq!(evicted(&begun), [0]);
        // One that is through leaves its place.
        drop(begun.remove(1));
        begun.push(begin(&all, "192.0.2.1", 1).unwrap());
        assert_eq!(evicted(&begun), [0]);
        assert_eq!(all.metrics().under_way, 3);
        drop(begun);
        assert_eq!(all.metrics().under_way, 0);
        assert!(all.state().by_block.is_empty());
    }

    #[test]
    fn drops_the_oldest_of_the_fullest_block_when_all_places_are_taken() {
        let all = handshakes(16, 0);
        let mut begun = Vec::new();
        for source in 0..16 {
            begun.push(begin(&all, &format!("192.0.2.{source}"), 1).unwrap());
        }
        drop(begun.remove(15));
        begun.push(begin(&all, "192.0.2.7", 1).unwrap());
        begun.push(begin(&all, "192.0.2.99", 1).unwrap());
        assert_eq!(evicted(&begun), [7]);
    }

    #[test]
    fn bounds_the_blocks_of_one_site_together() {
        let all = handshakes(16, 0);
        let begun: Vec<Handshake> = (0..12)
            .map(|network| begin(&all, &format!("2001:db8:0:{network:x}::1"), 1).unwrap())
            .collect();
        assert_eq!((evicted(&begun).len(), all.metrics().under_way), (4, 8));
    }

    #[test]
    fn refuses_a_block_that_begins_too_many_in_a_short_time() {
        let all = handshakes(1000, 10);
        let begins = |from: &str, now| begin(&all, from, now).is_some();
        let granted = (0..100).filter(|_| begins("192.0.2.1", 5000)).count();
        assert_eq!(granted, 50);
        assert!(begins("192.0.2.2", 5000));
        assert_eq!((0..100).filter(|_| begins("192.0.2.1", 6000)).count(), 10);
        // A /48 has four times that, however many networks it uses.
        let of_site = (0..400).filter(|number| begins(&format!("2001:db8:0:{number:x}::1"), 6000));
        assert_eq!(of_site.count(), 200);
        assert!((0..1000).all(|_| begins("127.0.0.1", 6000)));
        assert_eq!(all.metrics().refused, 50 + 90 + 200);
    }

    #[test]
    fn forgets_rates_of_blocks_at_rest() {
        let all = handshakes(1000, 10);
        for number in 0..5000 {
            begin(&all, &format!("10.0.{}.{}", number / 250, number % 250), number * 1000);
        }
        assert!(all.state().of_blocks.buckets.len() <= FEW);
    }
}

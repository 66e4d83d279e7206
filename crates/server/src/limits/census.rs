//! Decides how many may be connected, in all and from one address.

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::address::{AddressBlock, Peer};
use crate::limits::pressure::Share;
use crate::quota::{Caps, Shares, in_order_of_eviction};

/// Descriptors kept back for files, logs, the store and whatever handlers open.
const RESERVE: usize = 128;
/// Places that clients on this machine leave to others, unless told otherwise: a tenth, and no more
/// than this. A server with fewer than [`FEW`] places keeps none back.
const MOST_KEPT_BACK: usize = 1024;
const FEW: usize = 100;

/// Everyone connected to this server.
pub(crate) struct Census {
    total: AtomicUsize,
    most: AtomicUsize,
    by_block: Mutex<Blocks>,
    /// A connection is about to leave so that another can come.
    makes_room: AtomicBool,
    /// Turned away because there was no place at all, because their address had its share, and by the scheduler.
    refused: [AtomicU64; 3],
}

struct Blocks {
    shares: Shares,
    caps: Caps,
}

/// How many connections there may be.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Places {
    /// In all.
    pub(crate) most: usize,
    /// From one block of addresses.
    pub(crate) per_block: usize,
    /// From this machine; `None` keeps a few places back for others.
    pub(crate) local: Option<usize>,
}

impl Places {
    const fn caps(&self) -> Caps {
        let kept_back = match self.most {
            ..FEW => 0,
            most if most / 10 < MOST_KEPT_BACK => most / 10,
            _ => MOST_KEPT_BACK,
        };
        let local = match self.local {
            Some(local) => local,
            None => self.most - kept_back,
        };
        Caps::new(self.per_block as u64, local as u64)
    }
}

/// Why a connection is turned away.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Full {
    /// Nobody can come until somebody leaves.
    Everywhere,
    /// This address has enough, and is told so.
    ForAddress,
}

impl Census {
    pub(crate) fn new(places: Places) -> Self {
        Self {
            total: AtomicUsize::new(0),
            most: AtomicUsize::new(places.most),
            by_block: Mutex::new(Blocks { shares: Shares::default(), caps: places.caps() }),
            makes_room: AtomicBool::new(false),
            refused: Default::default(),
        }
    }

    /// Changes the limits for those to come; nobody is sent away.
    pub(crate) fn limit(&self, places: Places) {
        self.most.store(places.most, Ordering::Relaxed);
        self.blocks().caps = places.caps();
    }

    /// Counts `peer` in. Each success is undone by one [`leave`](Self::leave).
    pub(crate) fn enter(&self, peer: Peer) -> Result<(), Full> {
        if self.total.fetch_add(1, Ordering::Relaxed) >= self.most.load(Ordering::Relaxed) {
            self.total.fetch_sub(1, Ordering::Relaxed);
            return Err(self.refuse(Full::Everywhere));
        }
        let mut blocks = self.blocks();
        let Blocks { shares, caps } = &mut *blocks;
        if shares.take(peer.block(), 1, caps) {
            return Ok(());
        }
        drop(blocks);
        self.total.fetch_sub(1, Ordering::Relaxed);
        Err(self.refuse(Full::ForAddress))
    }

    fn refuse(&self, full: Full) -> Full {
        self.refused[full as usize].fetch_add(1, Ordering::Relaxed);
        full
    }

    /// The scheduler has nobody for a connection that was let in.
    pub(crate) fn refuse_for_scheduler(&self) {
        self.refused[2].fetch_add(1, Ordering::Relaxed);
    }

    /// How often somebody was turned away, by reason.
    pub(crate) fn refused(&self) -> [(&'static str, u64); 3] {
        let [full, address, scheduler] = &self.refused;
        let told = [("full", full), ("address", address), ("scheduler", scheduler)];
        told.map(|(reason, count)| (reason, count.load(Ordering::Relaxed)))
    }

    /// How many are connected, and how many may be.
    pub(crate) fn filled(&self) -> (usize, usize) {
        (self.total.load(Ordering::Relaxed), self.most.load(Ordering::Relaxed))
    }

    pub(crate) fn leave(&self, peer: Peer) {
        self.total.fetch_sub(1, Ordering::Relaxed);
        self.blocks().shares.give_back(peer.block(), 1);
    }

    /// The order in which to close connections for want of room: always next is the slowest of the
    /// block that has most of the places it may have.
    pub(crate) fn in_order_of_eviction<T>(
        &self,
        candidates: Vec<(AddressBlock, T)>,
        slowness: impl Fn(&T) -> u64,
    ) -> Vec<T> {
        let candidates = candidates.into_iter().map(|(block, each)| (block, 1, each)).collect();
        let blocks = self.blocks();
        in_order_of_eviction(candidates, &blocks.shares, &blocks.caps, slowness)
    }

    /// The blocks that have more than a sixteenth of all places each, this machine excepted: their
    /// slow and idle connections give way when every place is taken.
    pub(crate) fn crowds(&self) -> Vec<AddressBlock> {
        let sixteenth = self.most.load(Ordering::Relaxed) as u64 / 16;
        self.blocks().shares.above(sixteenth).filter(|block| !block.is_local()).collect()
    }

    /// Whether the caller may leave so that another can come; nobody else may until it has
    /// [ended](Self::end_making_room).
    pub(crate) fn begin_making_room(&self) -> bool {
        !self.makes_room.swap(true, Ordering::Acquire)
    }

    /// It has left, or does not.
    pub(crate) fn end_making_room(&self) {
        self.makes_room.store(false, Ordering::Release);
    }

    /// The places that are taken.
    pub(crate) fn share(&self) -> Share {
        let of = |count: &AtomicUsize| count.load(Ordering::Relaxed) as u64;
        Share { used: of(&self.total), most: of(&self.most) }
    }

    /// False when the next to enter would be turned away.
    pub(crate) fn has_room(&self) -> bool {
        self.total.load(Ordering::Relaxed) < self.most.load(Ordering::Relaxed)
    }

    fn blocks(&self) -> MutexGuard<'_, Blocks> {
        // Nothing under it can panic half-way.
        self.by_block.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Raises the soft descriptor limit to the hard one and says how many connections fit under it.
pub(crate) fn descriptors() -> usize {
    let limit = getrlimit(Resource::Nofile);
    let most = limit.maximum.unwrap_or(1 << 20);
    // A refusal leaves the old limit, which is read back.
    let _ = setrlimit(Resource::Nofile, Rlimit { current: Some(most), maximum: limit.maximum });
    let granted = getrlimit(Resource::Nofile).current.unwrap_or(most) as usize;
    granted.saturating_sub(RESERVE.min(granted / 2))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn from(address: &str) -> Peer {
        Peer::tcp(address.parse().unwrap())
    }

    fn census(most: usize, per_block: usize) -> Census {
        Census::new(Places { most, per_block, local: None })
    }

    #[test]
    fn an_address_has_its_share_and_gets_it_back() {
        let census = census(100, 2);
        assert_eq!(census.enter(from("192.0.2.1:1")), Ok(()));
        assert_eq!(census.enter(from("192.0.2.1:2")), Ok(()));
        assert_eq!(census.enter(from("192.0.2.1:3")), Err(Full::ForAddress));
        assert_eq!(census.refused()[1], ("address", 1));
        assert_eq!(census.enter(from("192.0.2.2:1")), Ok(()));
        census.leave(from("192.0.2.1:1"));
        assert_eq!(census.enter(from("192.0.2.1:4")), Ok(()));
        assert_eq!(census.blocks().shares.len(), 2);
    }

    /// Eight addresses of one IPv6 /64 took all 2 000 places, 250 each: each address was counted
    /// by itself, and a host has 2^64 of them.
    #[test]
    fn counts_addresses_of_one_ipv6_network_together() {
        let census = census(2000, 256);
        let source = |network: u32, host: u32| {
            from(&format!("[2001:db8:0:{network:x}::{host:x}]:{}", 1 + host))
        };
        let entered = |network: u32| {
            (0..2000).filter(|host| census.enter(source(network, host % 8)).is_ok()).count()
        };
        assert_eq!(entered(1), 256);
        assert_eq!(census.enter(from("[2001:db8:1::1]:9")), Ok(()));
        // Other networks of the same /48 have what is left of four such shares.
        assert_eq!((2..100).map(entered).sum::<usize>(), 3 * 256);
        assert_eq!(census.enter(from("192.0.2.1:9")), Ok(()));
        assert_eq!(census.filled(), (4 * 256 + 2, 2000));
    }

    #[test]
    fn this_machine_leaves_a_tenth_of_the_places_to_others() {
        let many = census(2000, 256);
        let entered = (0..2000).filter(|_| many.enter(from("127.0.0.1:1")).is_ok()).count();
        assert_eq!(entered, 1800);
        assert_eq!(many.enter(Peer::UNIX), Err(Full::ForAddress));
        assert_eq!(many.enter(from("192.0.2.1:1")), Ok(()));
        let told = Census::new(Places { most: 2000, per_block: 256, local: Some(2) });
        for expected in [Ok(()), Ok(()), Err(Full::ForAddress)] {
            assert_eq!(told.enter(from("[::1]:1")), expected);
        }
    }

    #[test]
    fn this_machine_has_all_of_a_few_places_and_no_more() {
        let census = census(3, 1);
        for peer in [from("127.0.0.1:1"), from("[::1]:1"), Peer::UNIX] {
            assert_eq!(census.enter(peer), Ok(()));
        }
        assert!(!census.has_room());
        assert_eq!(census.enter(Peer::UNIX), Err(Full::Everywhere));
        census.leave(Peer::UNIX);
        assert!(census.has_room());
    }
}

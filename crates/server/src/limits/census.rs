//! Limits on the number of connections, in total and per address block.

use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use bine_log::{self as log, LogLimit};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::address::{AddressBlock, ClientAddress};
use crate::limits::pressure::Share;
use crate::quota::{Caps, Shares, eviction_order};
use crate::time::monotonic_milliseconds;

/// Descriptors reserved for files, logs, the store and handlers.
const RESERVED_DESCRIPTORS: usize = 128;
/// Upper limit of the connections reserved for remote clients. The default reserve is a tenth of
/// all connections. A server with a limit below [`MIN_LIMIT_WITH_RESERVE`] connections has no
/// reserve.
const MAX_RESERVE: usize = 1024;
const MIN_LIMIT_WITH_RESERVE: usize = 100;

/// Counts the connections of a server and enforces their limits.
pub(crate) struct Census {
    total: AtomicUsize,
    most: AtomicUsize,
    by_block: Mutex<Blocks>,
    /// Whether one connection is closing to make room for a new one.
    makes_room: AtomicBool,
    /// Refused connections: by the total limit, by the limit per address, by the scheduler, and
    /// without a PROXY header of a trusted proxy.
    refused: [AtomicU64; 4],
    proxy_log: LogLimit,
}

struct Blocks {
    shares: Shares,
    caps: Caps,
}

/// Limits on the number of connections.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ConnectionLimits {
    /// In total.
    pub(crate) most: usize,
    /// From one address block.
    pub(crate) per_block: usize,
    /// From this machine; `None` reserves some connections for remote clients.
    pub(crate) local: Option<usize>,
}

impl ConnectionLimits {
    const fn caps(&self) -> Caps {
        let kept_back = match self.most {
            ..MIN_LIMIT_WITH_RESERVE => 0,
            most if most / 10 < MAX_RESERVE => most / 10,
            _ => MAX_RESERVE,
        };
        let local = match self.local {
            Some(local) => local,
            None => self.most - kept_back,
        };
        Caps::new(self.per_block as u64, local as u64)
    }
}

/// The limit that refuses a connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Full {
    /// The total limit.
    Everywhere,
    /// The limit per address, which the client learns in the response.
    ForAddress,
}

impl Census {
    pub(crate) fn new(limits: ConnectionLimits) -> Self {
        Self {
            total: AtomicUsize::new(0),
            most: AtomicUsize::new(limits.most),
            by_block: Mutex::new(Blocks { shares: Shares::default(), caps: limits.caps() }),
            makes_room: AtomicBool::new(false),
            refused: Default::default(),
            proxy_log: LogLimit::default(),
        }
    }

    /// Changes the limits for new connections. Existing ones stay open.
    pub(crate) fn limit(&self, limits: ConnectionLimits) {
        self.most.store(limits.most, Ordering::Relaxed);
        self.blocks().caps = limits.caps();
    }

    /// Counts a connection of `peer`. The caller must pair each success with one
    /// [`leave`](Self::leave).
    pub(crate) fn enter(&self, peer: ClientAddress) -> Result<(), Full> {
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

    /// Counts a connection refused because the scheduler has no thread for it.
    pub(crate) fn refuse_for_scheduler(&self) {
        self.refused[2].fetch_add(1, Ordering::Relaxed);
    }

    /// Counts a connection refused because it does not begin with the PROXY header of a trusted
    /// proxy, and logs `reason` and its remedy at most once a second.
    pub(crate) fn refuse_sender(&self, sender: ClientAddress, reason: fmt::Arguments<'_>) {
        self.refused[3].fetch_add(1, Ordering::Relaxed);
        if let Some(left_out) = self.proxy_log.allows(monotonic_milliseconds()) {
            log::warn(format_args!(
                "closed a connection of {sender} to an address with `proxy=on`: {reason}; \
                 {left_out} similar lines were left out"
            ));
        }
    }

    /// Returns the number of refused connections by reason.
    pub(crate) fn refused(&self) -> [(&'static str, u64); 4] {
        let [full, address, scheduler, proxy] = &self.refused;
        let counts =
            [("full", full), ("address", address), ("scheduler", scheduler), ("proxy", proxy)];
        counts.map(|(reason, count)| (reason, count.load(Ordering::Relaxed)))
    }

    /// Returns the number of connections and its limit.
    pub(crate) fn filled(&self) -> (usize, usize) {
        (self.total.load(Ordering::Relaxed), self.most.load(Ordering::Relaxed))
    }

    pub(crate) fn leave(&self, peer: ClientAddress) {
        self.total.fetch_sub(1, Ordering::Relaxed);
        self.blocks().shares.give_back(peer.block(), 1);
    }

    /// Counts a connection of `sender` as one of `client` from now on. At the limit of the client's
    /// address it still counts as one of `sender`.
    pub(crate) fn reassign(
        &self,
        sender: ClientAddress,
        client: ClientAddress,
    ) -> Result<(), Full> {
        let mut blocks = self.blocks();
        let Blocks { shares, caps } = &mut *blocks;
        shares.give_back(sender.block(), 1);
        if shares.take(client.block(), 1, caps) {
            return Ok(());
        }
        shares.add(sender.block(), 1);
        drop(blocks);
        Err(self.refuse(Full::ForAddress))
    }

    /// Sorts connections into the order in which to close them: always next is the slowest
    /// connection in the block with the fullest quota.
    pub(crate) fn eviction_order<T>(
        &self,
        candidates: Vec<(AddressBlock, T)>,
        slowness: impl Fn(&T) -> u64,
    ) -> Vec<T> {
        let candidates = candidates.into_iter().map(|(block, each)| (block, 1, each)).collect();
        let blocks = self.blocks();
        eviction_order(candidates, &blocks.shares, &blocks.caps, slowness)
    }

    /// Returns the blocks that hold more than a sixteenth of the connection limit each, this
    /// machine excepted. At the limit, the server closes their slow and idle connections.
    pub(crate) fn crowds(&self) -> Vec<AddressBlock> {
        let sixteenth = self.most.load(Ordering::Relaxed) as u64 / 16;
        self.blocks().shares.above(sixteenth).filter(|block| !block.is_local()).collect()
    }

    /// Returns whether the caller may close its connection to make room. No other connection may
    /// until [`end_making_room`](Self::end_making_room).
    pub(crate) fn begin_making_room(&self) -> bool {
        !self.makes_room.swap(true, Ordering::Acquire)
    }

    /// Allows the next connection to make room.
    pub(crate) fn end_making_room(&self) {
        self.makes_room.store(false, Ordering::Release);
    }

    /// Returns the share of the connection limit that is in use.
    pub(crate) fn share(&self) -> Share {
        let of = |count: &AtomicUsize| count.load(Ordering::Relaxed) as u64;
        Share { used: of(&self.total), most: of(&self.most) }
    }

    /// Whether the total limit admits one more connection.
    pub(crate) fn has_room(&self) -> bool {
        self.total.load(Ordering::Relaxed) < self.most.load(Ordering::Relaxed)
    }

    /// Whether the total limit admits 1/64 of all connections more. A full server looks at all its
    /// connections for slow ones, so each accepted connection then costs a look at 64 of them.
    pub(crate) fn has_ample_room(&self) -> bool {
        let most = self.most.load(Ordering::Relaxed);
        self.total.load(Ordering::Relaxed).saturating_add((most / 64).max(1)) <= most
    }

    fn blocks(&self) -> MutexGuard<'_, Blocks> {
        // No code panics while it holds this lock, so a poisoned state is still consistent.
        self.by_block.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The number of descriptors that is requested where the system has no limit.
const WITHOUT_LIMIT: u64 = 1_048_576;

/// Raises the soft descriptor limit to the hard one and returns the number of connections that fit.
pub(crate) fn descriptors() -> usize {
    let limit = getrlimit(Resource::Nofile);
    let most = limit.maximum.unwrap_or(WITHOUT_LIMIT);
    // On failure the old limit stays in force, and the next line reads it.
    let _ = setrlimit(Resource::Nofile, Rlimit { current: Some(most), maximum: limit.maximum });
    let granted = getrlimit(Resource::Nofile).current.unwrap_or(most) as usize;
    granted.saturating_sub(RESERVED_DESCRIPTORS.min(granted / 2))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn from(address: &str) -> ClientAddress {
        ClientAddress::tcp(address.parse().unwrap())
    }

    fn census(most: usize, per_block: usize) -> Census {
        Census::new(ConnectionLimits { most, per_block, local: None })
    }

    #[test]
    fn limits_an_address_and_frees_its_places() {
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

    /// Symptom: eight addresses of one IPv6 /64 took all 2 000 connections, 250 each. The census
    /// counted each address on its own, and a host has 2^64 of them.
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
        // A /48 may hold four times the limit of a block; its other networks get the rest.
        assert_eq!((2..100).map(entered).sum::<usize>(), 3 * 256);
        assert_eq!(census.enter(from("192.0.2.1:9")), Ok(()));
        assert_eq!(census.filled(), (4 * 256 + 2, 2000));
    }

    #[test]
    fn reserves_a_tenth_of_the_places_for_remote_clients() {
        let many = census(2000, 256);
        let entered = (0..2000).filter(|_| many.enter(from("127.0.0.1:1")).is_ok()).count();
        assert_eq!(entered, 1800);
        assert_eq!(many.enter(ClientAddress::UNIX), Err(Full::ForAddress));
        assert_eq!(many.enter(from("192.0.2.1:1")), Ok(()));
        let configured =
            Census::new(ConnectionLimits { most: 2000, per_block: 256, local: Some(2) });
        for expected in [Ok(()), Ok(()), Err(Full::ForAddress)] {
            assert_eq!(configured.enter(from("[::1]:1")), expected);
        }
    }

    #[test]
    fn reserves_at_most_1024_places_for_remote_clients() {
        for (most, reserved) in [(99, 0), (100, 10), (2005, 200), (10_239, 1023), (20_000, 1024)] {
            let census = census(most, usize::MAX);
            let granted = (0..most).filter(|_| census.enter(ClientAddress::UNIX).is_ok()).count();
            assert_eq!(granted, most - reserved, "of {most}");
        }
    }

    #[test]
    fn grants_local_clients_every_place_of_a_small_limit() {
        let census = census(3, 1);
        for peer in [from("127.0.0.1:1"), from("[::1]:1"), ClientAddress::UNIX] {
            assert_eq!(census.enter(peer), Ok(()));
        }
        assert!(!census.has_room());
        assert_eq!(census.enter(ClientAddress::UNIX), Err(Full::Everywhere));
        census.leave(ClientAddress::UNIX);
        assert!(census.has_room());
    }

    #[test]
    fn finds_remote_blocks_with_more_than_a_sixteenth_of_the_places() {
        let census = census(160, 100);
        let enter = |address: &str, count| {
            (0..count).for_each(|_| census.enter(from(address)).unwrap());
        };
        enter("127.0.0.1:1", 30);
        enter("192.0.2.1:1", 10);
        assert_eq!(census.crowds(), []);
        enter("192.0.2.1:1", 1);
        enter("192.0.2.2:1", 10);
        assert_eq!(census.crowds(), [from("192.0.2.1:1").block()]);
        census.leave(from("192.0.2.1:9"));
        assert_eq!(census.crowds(), []);
        assert_eq!(census.share(), Share { used: 50, most: 160 });
    }

    #[test]
    fn counts_a_connection_for_its_client_once_that_is_known() {
        let census = census(10, 1);
        let proxy = from("10.0.0.1:1").with_trust(true);
        (0..3).for_each(|_| census.enter(proxy).unwrap());
        assert_eq!(census.reassign(proxy, from("192.0.2.1:1")), Ok(()));
        assert_eq!(census.reassign(proxy, from("192.0.2.1:2")), Err(Full::ForAddress));
        assert_eq!(census.reassign(proxy, from("192.0.2.2:1")), Ok(()));
        assert_eq!((census.filled().0, census.refused()[1].1), (3, 1));
        census.leave(from("192.0.2.1:1"));
        assert_eq!(census.enter(from("192.0.2.1:3")), Ok(()));
        assert_eq!(census.enter(from("192.0.2.2:2")), Err(Full::ForAddress));
        for peer in [proxy, from("192.0.2.1:3"), from("192.0.2.2:1")] {
            census.leave(peer);
        }
        assert_eq!((census.filled().0, census.crowds()), (0, vec![]));
    }

    #[test]
    fn counts_refusals_by_reason() {
        let census = census(3, 1);
        let outcomes = ["192.0.2.1:1", "192.0.2.1:2", "192.0.2.1:3", "192.0.2.2:1", "192.0.2.3:1"]
            .map(|address| census.enter(from(address)));
        let address = Err(Full::ForAddress);
        assert_eq!(outcomes, [Ok(()), address, address, Ok(()), Ok(())]);
        assert_eq!(census.enter(from("192.0.2.4:1")), Err(Full::Everywhere));
        (0..4).for_each(|_| census.refuse_for_scheduler());
        let messages = bine_log::test_support::capture();
        (0..5).for_each(|_| census.refuse_sender(from("192.0.2.5:1"), format_args!("a reason")));
        let expected = [("full", 1), ("address", 2), ("scheduler", 4), ("proxy", 5)];
        assert_eq!(census.refused(), expected);
        let messages = messages.end();
        assert_eq!(messages.len(), 1, "{messages:?}");
        let line = "closed a connection of 192.0.2.5 to an address with `proxy=on`: a reason; ";
        assert!(messages[0].contains(line), "{messages:?}");
        assert_eq!(census.filled(), (3, 3));
    }

    #[test]
    fn lets_one_connection_at_a_time_make_room() {
        let census = census(3, 1);
        assert!(census.begin_making_room() && !census.begin_making_room());
        census.end_making_room();
        assert!(census.begin_making_room());
    }
}

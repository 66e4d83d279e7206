//! Decides how many may be connected, in all and from one address.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::address::Peer;
use crate::guard::Share;

/// Descriptors kept back for files, logs, the store and whatever handlers open.
const RESERVE: usize = 128;

/// Everyone connected to this server.
pub(crate) struct Census {
    total: AtomicUsize,
    most: AtomicUsize,
    most_per_address: AtomicUsize,
    by_address: Mutex<HashMap<IpAddr, usize>>,
    /// A connection is about to leave so that another can come.
    makes_room: AtomicBool,
    /// Turned away because there was no place at all, because their address had its share, and by the scheduler.
    refused: [AtomicU64; 3],
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
    pub(crate) fn new(most: usize, most_per_address: usize) -> Self {
        Self {
            total: AtomicUsize::new(0),
            most: AtomicUsize::new(most),
            most_per_address: AtomicUsize::new(most_per_address),
            by_address: Mutex::default(),
            makes_room: AtomicBool::new(false),
            refused: Default::default(),
        }
    }

    /// Changes the limits for those to come; nobody is sent away.
    pub(crate) fn limit(&self, most: usize, most_per_address: usize) {
        self.most.store(most, Ordering::Relaxed);
        self.most_per_address.store(most_per_address, Ordering::Relaxed);
    }

    /// Counts `peer` in. Each success is undone by one [`leave`](Self::leave).
    pub(crate) fn enter(&self, peer: Peer) -> Result<(), Full> {
        if self.total.fetch_add(1, Ordering::Relaxed) >= self.most.load(Ordering::Relaxed) {
            self.total.fetch_sub(1, Ordering::Relaxed);
            return Err(self.refuse(Full::Everywhere));
        }
        if let Some(ip) = counted(peer) {
            let mut counts = self.by_address.lock().unwrap_or_else(PoisonError::into_inner);
            let count = counts.entry(ip).or_default();
            if *count >= self.most_per_address.load(Ordering::Relaxed) {
                drop(counts);
                self.total.fetch_sub(1, Ordering::Relaxed);
                return Err(self.refuse(Full::ForAddress));
            }
            *count += 1;
        }
        Ok(())
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
        if let Some(ip) = counted(peer) {
            let mut counts = self.by_address.lock().unwrap_or_else(PoisonError::into_inner);
            if let Some(count) = counts.get_mut(&ip) {
                *count -= 1;
                if *count == 0 {
                    counts.remove(&ip);
                }
            }
        }
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

/// The address that the limit counts; this very machine is exempt, or a proxy on it would be
/// taken for one peer.
fn counted(peer: Peer) -> Option<IpAddr> {
    peer.ip().filter(|_| !peer.is_local())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn from(address: &str) -> Peer {
        Peer::tcp(address.parse().unwrap())
    }

    #[test]
    fn an_address_has_its_share_and_gets_it_back() {
        let census = Census::new(100, 2);
        assert_eq!(census.enter(from("192.0.2.1:1")), Ok(()));
        assert_eq!(census.enter(from("192.0.2.1:2")), Ok(()));
        assert_eq!(census.enter(from("192.0.2.1:3")), Err(Full::ForAddress));
        assert_eq!(census.refused()[1], ("address", 1));
        assert_eq!(census.enter(from("192.0.2.2:1")), Ok(()));
        census.leave(from("192.0.2.1:1"));
        assert_eq!(census.enter(from("192.0.2.1:4")), Ok(()));
        assert_eq!(census.by_address.lock().unwrap().len(), 2);
    }

    #[test]
    fn this_machine_is_exempt_from_the_share_but_not_from_the_whole() {
        let census = Census::new(3, 1);
        for peer in [from("127.0.0.1:1"), from("[::1]:1"), Peer::UNIX] {
            assert_eq!(census.enter(peer), Ok(()));
        }
        assert!(!census.has_room());
        assert_eq!(census.enter(Peer::UNIX), Err(Full::Everywhere));
        census.leave(Peer::UNIX);
        assert!(census.has_room());
    }
}

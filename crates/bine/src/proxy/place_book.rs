//! Which clients have a place at an origin, and which wait for one: counts without threads and clocks.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use bine_server::{AddressBlock, AddressSite};

/// How many requests may run at one origin and wait for it at the same time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct PlaceLimits {
    /// Requests of all clients that run.
    pub(super) total: usize,
    /// Requests of one address block that run. An IPv6 /48 may have twice as many, and all clients on
    /// this machine together at least three quarters of `total`.
    pub(super) client: usize,
    /// Requests that wait. An address block may have a quarter of them, an IPv6 /48 half, and all
    /// clients on this machine together three quarters.
    pub(super) waiting: usize,
}

/// The places at one origin, and the requests that wait for them as values of `W`.
///
/// A request waits only if it may not run: all places are taken, or those of its client. A free place
/// goes to the client that has the fewest, and among equals to the one that has waited longest.
pub(super) struct PlaceBook<W> {
    limits: PlaceLimits,
    running: BlockCounts,
    /// How many wait; `waiters` has them.
    queued: BlockCounts,
    /// The waiting requests of each block, by number. A block without any has no entry.
    waiters: HashMap<AddressBlock, BTreeMap<u64, W>>,
    /// The blocks of `waiters`: by their running requests, then by the number of the first waiter.
    order: BTreeSet<(usize, u64, AddressBlock)>,
    next_number: u64,
}

/// A request that waits now.
pub(super) struct Queued<W> {
    pub(super) number: u64,
    /// The request that lost its place in the queue to this one.
    pub(super) displaced: Option<W>,
}

/// No request of this client may wait.
#[derive(PartialEq, Eq, Debug)]
pub(super) struct QueueFull;

/// A number of requests, by block and site. An entry is greater than 0.
#[derive(Default)]
struct BlockCounts {
    total: usize,
    blocks: HashMap<AddressBlock, usize>,
    /// Only of blocks with neighbors: any other block is its own site.
    sites: HashMap<AddressSite, usize>,
}

/// The bounds of a count: in total, for a block, for a site.
struct Bounds {
    total: usize,
    block: usize,
    site: usize,
}

impl PlaceLimits {
    /// The requests of one address block that may run.
    pub(super) fn client_limit(&self, block: AddressBlock) -> usize {
        self.running_of(block).block
    }

    fn running_of(&self, block: AddressBlock) -> Bounds {
        let own = if block.is_local() {
            self.client.max(self.total - self.total / 4)
        } else {
            self.client
        };
        Bounds { total: self.total, block: own, site: self.client.saturating_mul(2) }
    }

    const fn waiting_of(&self, block: AddressBlock) -> Bounds {
        let most = self.waiting;
        let own = if block.is_local() { most - most / 4 } else { most.div_ceil(4) };
        Bounds { total: most, block: own, site: most.div_ceil(2) }
    }
}

impl<W> PlaceBook<W> {
    pub(super) fn new(limits: PlaceLimits) -> Self {
        Self {
            limits,
            running: BlockCounts::default(),
            queued: BlockCounts::default(),
            waiters: HashMap::new(),
            order: BTreeSet::new(),
            next_number: 0,
        }
    }

    /// Takes a place for a request of `block`, if one is free for it. The caller must pair each success
    /// with one [`release`](Self::release).
    pub(super) fn take(&mut self, block: AddressBlock) -> bool {
        if !self.may_run(block) {
            return false;
        }
        self.change(block, |book| book.running.add(block));
        true
    }

    /// Lets a request wait that has no place. In a full queue it displaces the newest request of the
    /// block that has the most, if its own block has fewer.
    ///
    /// # Errors
    ///
    /// As many requests as allowed wait already, of its client or of all clients.
    pub(super) fn wait(&mut self, block: AddressBlock, waiter: W) -> Result<Queued<W>, QueueFull> {
        let bounds = self.limits.waiting_of(block);
        if !self.queued.fits_client(block, &bounds) {
            return Err(QueueFull);
        }
        let displaced = if self.queued.total < bounds.total {
            None
        } else {
            Some(self.displace(block).ok_or(QueueFull)?)
        };
        let number = self.next_number;
        self.next_number += 1;
        self.change(block, |book| {
            book.queued.add(block);
            book.waiters.entry(block).or_default().insert(number, waiter);
        });
        Ok(Queued { number, displaced })
    }

    /// Gives a place back that a request of `block` had. Returns the waiting request that has a place
    /// now, with its block.
    pub(super) fn release(&mut self, block: AddressBlock) -> Option<(AddressBlock, W)> {
        self.change(block, |book| book.running.remove(block));
        let may_run = |(_, _, block): &&(usize, u64, AddressBlock)| self.may_run(*block);
        let (_, number, next) = *self.order.iter().find(may_run)?;
        let waiter = self.cancel(next, number)?;
        self.change(next, |book| book.running.add(next));
        Some((next, waiter))
    }

    /// Ends the wait of a request; `None`: it waits no longer.
    pub(super) fn cancel(&mut self, block: AddressBlock, number: u64) -> Option<W> {
        self.change(block, |book| {
            let waiters = book.waiters.get_mut(&block)?;
            let waiter = waiters.remove(&number)?;
            if waiters.is_empty() {
                book.waiters.remove(&block);
            }
            book.queued.remove(block);
            Some(waiter)
        })
    }

    /// The requests that run.
    pub(super) const fn running(&self) -> usize {
        self.running.total
    }

    /// The requests that wait.
    pub(super) const fn queued(&self) -> usize {
        self.queued.total
    }

    /// Whether all places of this client are taken, in contrast to all places.
    pub(super) fn is_client_full(&self, block: AddressBlock) -> bool {
        !self.running.fits_client(block, &self.limits.running_of(block))
    }

    fn may_run(&self, block: AddressBlock) -> bool {
        let bounds = self.limits.running_of(block);
        self.running.total < bounds.total && self.running.fits_client(block, &bounds)
    }

    fn displace(&mut self, block: AddressBlock) -> Option<W> {
        let own = self.queued.of(block);
        let (longest, waiters) = self.waiters.iter().max_by_key(|(_, waiters)| waiters.len())?;
        let (longest, newest) = (*longest, *waiters.last_key_value()?.0);
        if waiters.len() <= own + 1 {
            return None;
        }
        self.cancel(longest, newest)
    }

    /// Changes counts of a block, and its place in the order with them.
    fn change<R>(&mut self, block: AddressBlock, change: impl FnOnce(&mut Self) -> R) -> R {
        if let Some(entry) = self.entry(block) {
            self.order.remove(&entry);
        }
        let changed = change(self);
        if let Some(entry) = self.entry(block) {
            self.order.insert(entry);
        }
        changed
    }

    fn entry(&self, block: AddressBlock) -> Option<(usize, u64, AddressBlock)> {
        let (first, _) = self.waiters.get(&block)?.first_key_value()?;
        Some((self.running.of(block), *first, block))
    }
}

impl BlockCounts {
    fn of(&self, block: AddressBlock) -> usize {
        self.blocks.get(&block).copied().unwrap_or(0)
    }

    /// Whether one more of this block is within the bounds of its block and site.
    fn fits_client(&self, block: AddressBlock, bounds: &Bounds) -> bool {
        let of_site = || self.sites.get(&block.site()).copied().unwrap_or(0);
        self.of(block) < bounds.block && (!block.has_neighbors() || of_site() < bounds.site)
    }

    fn add(&mut self, block: AddressBlock) {
        self.total += 1;
        *self.blocks.entry(block).or_default() += 1;
        if block.has_neighbors() {
            *self.sites.entry(block.site()).or_default() += 1;
        }
    }

    /// Removes one that was [added](Self::add).
    fn remove(&mut self, block: AddressBlock) {
        self.total -= 1;
        decrease(&mut self.blocks, &block);
        if block.has_neighbors() {
            decrease(&mut self.sites, &block.site());
        }
    }
}

fn decrease<K: Eq + std::hash::Hash>(counts: &mut HashMap<K, usize>, key: &K) {
    if let Some(count) = counts.get_mut(key) {
        *count -= 1;
        if *count == 0 {
            counts.remove(key);
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;

    fn block(ip: &str) -> AddressBlock {
        AddressBlock::of(ip.parse().unwrap())
    }

    fn book(total: usize, client: usize, waiting: usize) -> PlaceBook<&'static str> {
        PlaceBook::new(PlaceLimits { total, client, waiting })
    }

    #[test]
    fn bounds_the_places_of_a_client_and_of_its_site() {
        let mut book = book(16, 2, 0);
        let (one, other) = (block("192.0.2.1"), block("192.0.2.2"));
        assert!(book.take(one) && book.take(one) && !book.take(one));
        assert!(book.is_client_full(one) && !book.is_client_full(other));
        let net = |number| block(&format!("2001:db8:1:{number}::1"));
        assert!((1..=4).all(|number| book.take(net(number))));
        assert!(!book.take(net(5)), "the site has twice the places of a client");
        assert!(book.take(block("2001:db8:2::1")));
        assert!((7..16).all(|_| book.take(AddressBlock::LOCAL)), "this machine has more");
        assert!(!book.take(other) && !book.is_client_full(other), "all places are taken");
    }

    #[test]
    fn gives_a_free_place_to_the_client_with_the_fewest() {
        let mut book = book(4, 3, 16);
        let (busy, other) = (block("192.0.2.1"), block("192.0.2.2"));
        assert!((0..3).all(|_| book.take(busy)) && book.take(other));
        for name in ["busy 1", "busy 2"] {
            book.wait(busy, name).ok().unwrap();
        }
        book.wait(other, "other").ok().unwrap();
        book.wait(block("192.0.2.3"), "third").ok().unwrap();
        let mut next = |block| book.release(block).map(|(_, waiter)| waiter);
        assert_eq!(next(busy), Some("third"), "it has none");
        assert_eq!(next(busy), Some("busy 1"), "it has as few as the other, and waits longer");
        assert_eq!(next(block("192.0.2.3")), Some("other"), "it has fewer");
    }

    #[test]
    fn bounds_the_requests_that_wait_and_displaces_those_of_the_longest_queue() {
        let mut book = book(1, 1, 8);
        let [a, b, c, d] = [1, 2, 3, 4].map(|number| block(&format!("192.0.2.{number}")));
        assert!(book.take(a));
        for client in [a, a, b, b, c, c] {
            assert!(book.wait(client, "waits").is_ok());
        }
        assert_eq!(book.wait(a, "third").err(), Some(QueueFull), "a quarter is its share");
        assert!(book.wait(AddressBlock::LOCAL, "local").is_ok());
        assert!(book.wait(AddressBlock::LOCAL, "newest").is_ok());
        assert!(book.wait(AddressBlock::LOCAL, "one more").is_err(), "its queue is the longest");
        let queued = book.wait(d, "new client").ok().unwrap();
        assert!(queued.displaced.is_some() && book.queued() == 8);
    }

    #[derive(Clone, Debug)]
    enum Step {
        /// Takes a place for a client, or lets it wait.
        Request(usize),
        /// Gives back a place, by its position.
        Release(usize),
        /// Ends a wait, by its position.
        Cancel(usize),
    }

    fn step() -> impl Strategy<Value = Step> {
        prop_oneof![
            3 => (0..CLIENTS.len()).prop_map(Step::Request),
            2 => (0..20_usize).prop_map(Step::Release),
            1 => (0..20_usize).prop_map(Step::Cancel),
        ]
    }

    /// Two clients with IPv4, three of one IPv6 /48, and this machine.
    const CLIENTS: [&str; 6] = [
        "192.0.2.1",
        "192.0.2.2",
        "2001:db8:1:1::1",
        "2001:db8:1:2::1",
        "2001:db8:1:3::1",
        "127.0.0.1",
    ];

    proptest! {
        /// Whatever the order of requests, releases and ended waits: each request has a place, waits
        /// or has ended; no bound is exceeded; a request waits only if it may not run; and an empty
        /// book keeps no entry.
        #[test]
        fn never_loses_or_invents_a_place(
            total in 1..8_usize,
            client in 1..8_usize,
            waiting in 0..12_usize,
            steps in vec(step(), 0..200),
        ) {
            let limits = PlaceLimits { total, client: client.min(total), waiting };
            let mut book = PlaceBook::new(limits);
            let (mut running, mut queued) = (Vec::new(), Vec::new());
            for (id, step) in steps.into_iter().enumerate() {
                match step {
                    Step::Request(index) => {
                        let block = block(CLIENTS[index]);
                        if book.take(block) {
                            running.push(block);
                        } else if let Ok(Queued { number, displaced }) = book.wait(block, id) {
                            if let Some(displaced) = displaced {
                                let before = queued.len();
                                queued.retain(|(_, _, other)| *other != displaced);
                                prop_assert_eq!(queued.len() + 1, before);
                            }
                            queued.push((block, number, id));
                        }
                    }
                    Step::Release(place) if place < running.len() => {
                        if let Some((block, id)) = book.release(running.swap_remove(place)) {
                            let found = queued.iter().position(|(_, _, other)| *other == id);
                            prop_assert!(found.is_some(), "{} does not wait", id);
                            let (owner, ..) = queued.remove(found.unwrap());
                            prop_assert_eq!(owner, block);
                            running.push(block);
                        }
                    }
                    Step::Cancel(place) if place < queued.len() => {
                        let (block, number, id) = queued.remove(place);
                        prop_assert_eq!(book.cancel(block, number), Some(id));
                        prop_assert_eq!(book.cancel(block, number), None);
                    }
                    Step::Release(_) | Step::Cancel(_) => {}
                }
                prop_assert_eq!((book.running(), book.queued()), (running.len(), queued.len()));
                prop_assert!(running.len() <= total && queued.len() <= waiting);
                let of = |list: &[AddressBlock], block| list.iter().filter(|one| **one == block).count();
                let waits: Vec<_> = queued.iter().map(|(block, ..)| *block).collect();
                for name in CLIENTS {
                    let block = block(name);
                    let most = limits.running_of(block).block;
                    prop_assert!(of(&running, block) <= most);
                    prop_assert!(of(&waits, block) <= limits.waiting_of(block).block);
                }
                let in_site = |list: &[AddressBlock]| list.iter().filter(|one| one.has_neighbors()).count();
                prop_assert!(in_site(&running) <= 2 * limits.client);
                prop_assert!(in_site(&waits) <= waiting.div_ceil(2));
                for (block, ..) in &queued {
                    let is_full = running.len() == total
                        || of(&running, *block) == limits.running_of(*block).block
                        || block.has_neighbors() && in_site(&running) >= 2 * limits.client;
                    prop_assert!(is_full, "{} waits although it may run", block);
                }
            }
            for (block, number, _) in queued {
                prop_assert!(book.cancel(block, number).is_some());
            }
            for block in running {
                prop_assert!(book.release(block).is_none());
            }
            prop_assert!(book.order.is_empty() && book.waiters.is_empty());
            for counts in [&book.running, &book.queued] {
                prop_assert!(counts.blocks.is_empty() && counts.sites.is_empty());
            }
        }
    }
}

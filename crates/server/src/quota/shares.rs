//! Per-block quotas: how much of one resource each block of addresses holds, and how much it may.

use std::collections::HashMap;

use crate::address::{AddressBlock, AddressSite};

/// A site may hold this many times as much as one of its blocks.
const BLOCKS_PER_SITE: u64 = 4;

/// What one block of addresses, one site and the clients on this machine may hold of a resource.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Caps {
    block: u64,
    site: u64,
    local: u64,
}

impl Caps {
    /// `block` for each block, four times that for each IPv6 /48, and `local` for the clients on
    /// this machine. Nobody is denied everything.
    pub(crate) const fn new(block: u64, local: u64) -> Self {
        let block = if block == 0 { 1 } else { block };
        let local = if local == 0 { 1 } else { local };
        Self { block, site: block.saturating_mul(BLOCKS_PER_SITE), local }
    }

    pub(crate) const fn of(&self, block: AddressBlock) -> u64 {
        if block.is_local() { self.local } else { self.block }
    }
}

/// What each block holds. Only blocks that hold something have an entry.
#[derive(Default)]
pub(crate) struct Shares {
    blocks: HashMap<AddressBlock, u64>,
    /// IPv6 alone: an IPv4 address is its own site.
    sites: HashMap<AddressSite, u64>,
}

impl Shares {
    /// Charges `amount` to `block`, unless it or its site would hold more than `caps` allow.
    pub(crate) fn take(&mut self, block: AddressBlock, amount: u64, caps: &Caps) -> bool {
        let of_block = self.held(block).saturating_add(amount);
        let of_site = self.held_by_site(block).saturating_add(amount);
        if of_block > caps.of(block) || block.has_neighbors() && of_site > caps.site {
            return false;
        }
        self.add(block, amount);
        true
    }

    /// Charges `amount` to `block`, whatever it may hold.
    pub(crate) fn add(&mut self, block: AddressBlock, amount: u64) {
        *self.blocks.entry(block).or_default() += amount;
        if block.has_neighbors() {
            *self.sites.entry(block.site()).or_default() += amount;
        }
    }

    /// Gives back `amount` of what was charged to `block`.
    pub(crate) fn give_back(&mut self, block: AddressBlock, amount: u64) {
        if let Some(held) = self.blocks.get_mut(&block) {
            *held = held.saturating_sub(amount);
            if *held == 0 {
                self.blocks.remove(&block);
            }
        }
        if block.has_neighbors()
            && let Some(held) = self.sites.get_mut(&block.site())
        {
            *held = held.saturating_sub(amount);
            if *held == 0 {
                self.sites.remove(&block.site());
            }
        }
    }

    /// What `block` holds.
    pub(crate) fn held(&self, block: AddressBlock) -> u64 {
        self.blocks.get(&block).copied().unwrap_or(0)
    }

    /// The blocks that hold more than `amount`.
    pub(crate) fn above(&self, amount: u64) -> impl Iterator<Item = AddressBlock> {
        self.blocks.iter().filter(move |(_, held)| **held > amount).map(|(block, _)| *block)
    }

    /// How full the quota of `block` would be without `of_block` and `of_site` of what it and its
    /// site hold: parts in a million, of its own quota or its site's, whichever is fuller.
    pub(crate) fn fullness(
        &self,
        block: AddressBlock,
        caps: &Caps,
        (of_block, of_site): (u64, u64),
    ) -> u64 {
        let part = |held: u64, most: u64| {
            (u128::from(held) * 1_000_000 / u128::from(most)).min(u128::from(u64::MAX)) as u64
        };
        let own = part(self.held(block).saturating_sub(of_block), caps.of(block));
        if !block.has_neighbors() {
            return own;
        }
        own.max(part(self.held_by_site(block).saturating_sub(of_site), caps.site))
    }

    /// The number of blocks that hold something.
    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.blocks.len()
    }

    fn held_by_site(&self, block: AddressBlock) -> u64 {
        if !block.has_neighbors() {
            return 0;
        }
        self.sites.get(&block.site()).copied().unwrap_or(0)
    }
}

/// Puts what may be dropped into the order in which to drop it: always next is the slowest of the
/// block whose quota is fullest then. `slowness` ranks candidates of one block.
pub(crate) fn in_order_of_eviction<T>(
    mut candidates: Vec<(AddressBlock, u64, T)>,
    shares: &Shares,
    caps: &Caps,
    slowness: impl Fn(&T) -> u64,
) -> Vec<T> {
    candidates.sort_by_key(|(_, _, candidate)| std::cmp::Reverse(slowness(candidate)));
    let mut of_blocks: HashMap<AddressBlock, u64> = HashMap::new();
    let mut of_sites: HashMap<AddressSite, u64> = HashMap::new();
    let mut ranked = Vec::with_capacity(candidates.len());
    for (block, amount, candidate) in candidates {
        let of_block = of_blocks.entry(block).or_default();
        let of_site = of_sites.entry(block.site()).or_default();
        ranked.push((shares.fullness(block, caps, (*of_block, *of_site)), candidate));
        *of_block += amount;
        *of_site += amount;
    }
    // Stable: of equally full blocks the slowest is first.
    ranked.sort_by_key(|(fullness, _)| std::cmp::Reverse(*fullness));
    ranked.into_iter().map(|(_, candidate)| candidate).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn block(ip: &str) -> AddressBlock {
        AddressBlock::of(ip.parse().unwrap())
    }

    #[test]
    fn bounds_a_block_its_site_and_this_machine_each_by_its_own_cap() {
        let (mut shares, caps) = (Shares::default(), Caps::new(10, 50));
        assert!(shares.take(block("192.0.2.1"), 10, &caps));
        assert!(!shares.take(block("192.0.2.1"), 1, &caps));
        for network in 0..4 {
            assert!(shares.take(block(&format!("2001:db8:1:{network}::1")), 10, &caps));
        }
        assert!(!shares.take(block("2001:db8:1:4::1"), 1, &caps));
        assert!(shares.take(block("2001:db8:2::1"), 1, &caps));
        assert!(shares.take(AddressBlock::LOCAL, 50, &caps));
        assert!(!shares.take(AddressBlock::LOCAL, 1, &caps));
        shares.give_back(block("2001:db8:1:3::1"), 10);
        assert!(shares.take(block("2001:db8:1:4::1"), 10, &caps));
    }

    #[test]
    fn forgets_a_block_that_holds_nothing() {
        let (mut shares, caps) = (Shares::default(), Caps::new(10, 50));
        for ip in ["192.0.2.1", "2001:db8::1", "::1"] {
            assert!(shares.take(block(ip), 3, &caps));
            shares.give_back(block(ip), 3);
        }
        assert_eq!((shares.blocks.len(), shares.sites.len()), (0, 0));
    }

    #[test]
    fn evicts_from_the_fullest_block_and_of_that_the_slowest() {
        let (mut shares, caps) = (Shares::default(), Caps::new(10, 100));
        let mut candidates = Vec::new();
        for (ip, slowness) in [
            ("192.0.2.1", [5, 1, 9].as_slice()),
            ("192.0.2.2", &[100]),
            // Five of a hundred: less full than one of ten.
            ("127.0.0.1", &[50, 50, 50, 50, 50]),
        ] {
            for slow in slowness {
                shares.add(block(ip), 1);
                candidates.push((block(ip), 1, (ip, *slow)));
            }
        }
        let order = in_order_of_eviction(candidates, &shares, &caps, |(_, slow)| *slow);
        let first = [("192.0.2.1", 9), ("192.0.2.1", 5), ("192.0.2.2", 100), ("192.0.2.1", 1)];
        assert_eq!(order[..4], first);
        assert!(order[4..].iter().all(|(ip, _)| *ip == "127.0.0.1"));
    }
}

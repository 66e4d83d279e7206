//! Use and quota of one resource per address block.

use std::collections::HashMap;

use crate::address::{AddressBlock, AddressSite};

/// The quota of a site is this many times the quota of a block.
const BLOCKS_PER_SITE: u64 = 4;

/// Quotas of a resource: for one address block, for one site, and for all clients on this machine.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Caps {
    block: u64,
    site: u64,
    local: u64,
}

impl Caps {
    /// Creates quotas of `block` for each address block, four times that for each IPv6 /48, and
    /// `local` for all clients on this machine. Each quota is at least 1.
    pub(crate) const fn new(block: u64, local: u64) -> Self {
        let block = if block == 0 { 1 } else { block };
        let local = if local == 0 { 1 } else { local };
        Self { block, site: block.saturating_mul(BLOCKS_PER_SITE), local }
    }

    pub(crate) const fn of(&self, block: AddressBlock) -> u64 {
        if block.is_local() { self.local } else { self.block }
    }
}

/// The amount that each block holds. A block without an entry holds 0.
#[derive(Default)]
pub(crate) struct Shares {
    blocks: HashMap<AddressBlock, u64>,
    /// IPv6 only: an IPv4 address is its own site.
    sites: HashMap<AddressSite, u64>,
}

impl Shares {
    /// Charges `amount` to `block` and returns true, unless the block or its site would exceed its
    /// quota.
    pub(crate) fn take(&mut self, block: AddressBlock, amount: u64, caps: &Caps) -> bool {
        let of_block = self.held(block).saturating_add(amount);
        let of_site = self.held_by_site(block).saturating_add(amount);
        if of_block > caps.of(block) || block.has_neighbors() && of_site > caps.site {
            return false;
        }
        self.add(block, amount);
        true
    }

    /// Charges `amount` to `block` without a check of the quota.
    pub(crate) fn add(&mut self, block: AddressBlock, amount: u64) {
        *self.blocks.entry(block).or_default() += amount;
        if block.has_neighbors() {
            *self.sites.entry(block.site()).or_default() += amount;
        }
    }

    /// Returns `amount` that was charged to `block`.
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

    /// Returns the amount that `block` holds.
    pub(crate) fn held(&self, block: AddressBlock) -> u64 {
        self.blocks.get(&block).copied().unwrap_or(0)
    }

    /// Returns the blocks that hold more than `amount`.
    pub(crate) fn above(&self, amount: u64) -> impl Iterator<Item = AddressBlock> {
        self.blocks.iter().filter(move |(_, held)| **held > amount).map(|(block, _)| *block)
    }

    /// Returns the used part of a quota in parts per million, after subtraction of `of_block` and
    /// `of_site` from the held amounts. For an IPv6 block this is the larger of the parts for block
    /// and site.
    pub(crate) fn fullness(
        &self,
        block: AddressBlock,
        caps: &Caps,
        (of_block, of_site): (u64, u64),
    ) -> u64 {
        let part = |held: u64, most: u64| {
            (u128::from(held) * 1_000_000 / u128::from(most)).min(u128::from(u64::MAX)) as u64
        };
        let of_own_block = part(self.held(block).saturating_sub(of_block), caps.of(block));
        if !block.has_neighbors() {
            return of_own_block;
        }
        of_own_block.max(part(self.held_by_site(block).saturating_sub(of_site), caps.site))
    }

    /// Returns the number of blocks that hold an amount.
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

/// Sorts candidates into the order of eviction: always next is the slowest candidate in the block
/// whose quota is fullest after the evictions before it. `slowness` ranks the candidates within a
/// block.
pub(crate) fn eviction_order<T>(
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
    // The sort is stable: among equally full blocks the slowest candidate stays first.
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
    fn limits_a_block_its_site_and_local_clients_to_separate_quotas() {
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
    fn removes_the_entry_of_an_empty_block() {
        let (mut shares, caps) = (Shares::default(), Caps::new(10, 50));
        for ip in ["192.0.2.1", "2001:db8::1", "::1"] {
            assert!(shares.take(block(ip), 3, &caps));
            shares.give_back(block(ip), 3);
        }
        assert_eq!((shares.blocks.len(), shares.sites.len()), (0, 0));
    }

    #[test]
    fn evicts_the_slowest_candidate_of_the_fullest_block() {
        let (mut shares, caps) = (Shares::default(), Caps::new(10, 100));
        let mut candidates = Vec::new();
        for (ip, slowness) in [
            ("192.0.2.1", [5, 1, 9].as_slice()),
            ("192.0.2.2", &[100]),
            // Five of a hundred use less of their quota than one of ten.
            ("127.0.0.1", &[50, 50, 50, 50, 50]),
        ] {
            for slow in slowness {
                shares.add(block(ip), 1);
                candidates.push((block(ip), 1, (ip, *slow)));
            }
        }
        let order = eviction_order(candidates, &shares, &caps, |(_, slow)| *slow);
        let first = [("192.0.2.1", 9), ("192.0.2.1", 5), ("192.0.2.2", 100), ("192.0.2.1", 1)];
        assert_eq!(order[..4], first);
        assert!(order[4..].iter().all(|(ip, _)| *ip == "127.0.0.1"));
    }

    #[test]
    fn measures_the_used_part_of_a_block_and_of_its_site() {
        let (mut shares, caps) = (Shares::default(), Caps::new(10, 50));
        let fullness = |shares: &Shares, ip, less| shares.fullness(block(ip), &caps, less);
        for (ip, amount) in [("192.0.2.1", 4), ("127.0.0.1", 5), ("2001:db8::1", 2)] {
            shares.add(block(ip), amount);
        }
        let parts =
            ["192.0.2.1", "127.0.0.1", "2001:db8::1"].map(|ip| fullness(&shares, ip, (0, 0)));
        assert_eq!(parts, [400_000, 100_000, 200_000]);
        // The site, which may hold 40, fills up by its other blocks.
        for network in 1..4 {
            shares.add(block(&format!("2001:db8:0:{network}::1")), 10);
        }
        assert_eq!(fullness(&shares, "2001:db8::1", (0, 0)), 800_000);
        assert_eq!(fullness(&shares, "2001:db8::1", (2, 30)), 50_000);
        assert_eq!(fullness(&shares, "192.0.2.1", (1, 9)), 300_000, "it has no neighbors");
    }
}

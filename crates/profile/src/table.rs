//! The bounded table of allocations: a number and a sum of bytes for each call stack, stage and route.

use std::collections::HashMap;
use std::hash::{BuildHasher as _, RandomState};
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::profile::Count;
use crate::stage::Stage;

/// The number of parts, each with a lock of its own, so that threads seldom wait for each other.
const PARTS: usize = 16;

/// The place of an allocation in the program.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Site<F> {
    pub(crate) stage: Stage,
    pub(crate) route: &'static str,
    /// The addresses of the stack, the innermost first.
    pub(crate) frames: F,
}

/// Limits of a table.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TableLimits {
    /// The most places in one part.
    pub(crate) sites: usize,
    /// The most addresses in one part.
    pub(crate) frames: usize,
}

/// 65 536 places, and 4 194 304 addresses in 32 MiB.
pub(crate) const LIMITS: TableLimits =
    TableLimits { sites: (1 << 16) / PARTS, frames: (1 << 22) / PARTS };

/// The allocations of a program.
pub(crate) struct Table {
    parts: [Mutex<Part>; PARTS],
    limits: TableLimits,
}

/// A place, and its allocations.
pub(crate) struct SiteCount {
    pub(crate) site: Site<Box<[usize]>>,
    pub(crate) count: Count,
}

#[derive(Default)]
struct Part {
    /// The places with the same hash.
    sites: HashMap<u64, Vec<SiteCount>>,
    /// The number of places, and of their addresses.
    used: usize,
    frames: usize,
    left_out: Count,
}

impl Table {
    pub(crate) fn new(limits: TableLimits) -> Self {
        Self { parts: std::array::from_fn(|_| Mutex::default()), limits }
    }

    /// Counts one allocation at a place.
    pub(crate) fn add(&self, site: &Site<&[usize]>, hasher: &RandomState, bytes: usize) {
        let hash = hasher.hash_one((site.stage, site.route, site.frames));
        let one = Count { number: 1, bytes: bytes as u64 };
        let mut part = lock(&self.parts[hash as usize % PARTS]);
        let part = &mut *part;
        let same = part.sites.entry(hash).or_default();
        let is_same = |other: &Site<Box<[usize]>>| {
            other.stage == site.stage && other.route == site.route && *other.frames == *site.frames
        };
        if let Some(known) = same.iter_mut().find(|known| is_same(&known.site)) {
            known.count.add(one);
        } else if part.used < self.limits.sites
            && part.frames + site.frames.len() <= self.limits.frames
        {
            part.used += 1;
            part.frames += site.frames.len();
            let Site { stage, route, frames } = *site;
            let site = Site { stage, route, frames: frames.into() };
            same.push(SiteCount { site, count: one });
        } else {
            part.left_out.add(one);
            if same.is_empty() {
                part.sites.remove(&hash);
            }
        }
    }

    /// All places with their counts, and the allocations for whose places there was no room.
    pub(crate) fn into_counts(self) -> (Vec<SiteCount>, Count) {
        let (mut all, mut left_out) = (Vec::new(), Count::default());
        for part in self.parts {
            let part = part.into_inner().unwrap_or_else(PoisonError::into_inner);
            all.extend(part.sites.into_values().flatten());
            left_out.add(part.left_out);
        }
        (all, left_out)
    }
}

fn lock(part: &Mutex<Part>) -> MutexGuard<'_, Part> {
    part.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn site(route: &'static str, frames: &'static [usize]) -> Site<&'static [usize]> {
        Site { stage: Stage::Handler, route, frames }
    }

    #[test]
    fn adds_up_equal_places_only() {
        let (table, hasher) = (Table::new(LIMITS), RandomState::new());
        for (site, bytes) in [
            (site("a", &[1, 2]), 10),
            (site("a", &[1, 2]), 5),
            (site("b", &[1, 2]), 7),
            (site("a", &[1]), 8),
            (Site { stage: Stage::Write, ..site("a", &[1]) }, 9),
        ] {
            table.add(&site, &hasher, bytes);
        }
        let (counts, left_out) = table.into_counts();
        let mut counts: Vec<_> =
            counts.iter().map(|found| (found.count.number, found.count.bytes)).collect();
        counts.sort_unstable();
        assert_eq!(counts, [(1, 7), (1, 8), (1, 9), (2, 15)]);
        assert_eq!(left_out, Count::default());
    }

    #[test]
    fn counts_what_has_no_room() {
        for limits in [TableLimits { sites: 1, frames: 100 }, TableLimits { sites: 100, frames: 2 }]
        {
            let (table, hasher) = (Table::new(limits), RandomState::new());
            let frames: Vec<[usize; 2]> = (0..200).map(|at| [at, at + 1]).collect();
            for frames in &frames {
                let site = Site { stage: Stage::Handler, route: "a", frames: &frames[..] };
                table.add(&site, &hasher, 3);
                table.add(&site, &hasher, 3);
            }
            let (counts, left_out) = table.into_counts();
            assert_eq!(counts.len(), PARTS, "each part has room for one place");
            let mut all = left_out;
            for found in &counts {
                all.add(found.count);
            }
            assert_eq!(all, Count { number: 400, bytes: 1200 });
        }
    }
}

//! The catalog of files: sizes matched with popularity.

use std::collections::VecDeque;
use std::fs;
use std::path::Path;

use anyhow::{Result, ensure};

use super::models::{Model, whole};
use crate::random::Random;

/// A file; its number is its index in the catalog.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    /// In bytes.
    pub(crate) size: u64,
    /// The number of references to this file in the sequence.
    pub(crate) references: u64,
}

/// The largest file: without a limit, the heavy tail has no usable mean.
pub(crate) const LARGEST: f64 = 10_000_000.0;
/// The share of files in the body of the distribution; the rest are in the tail.
const BODY: f64 = 0.93;
const SIZES: Model = Model::Lognormal { mu: 9.357, sigma: 1.318 };
const TAIL: Model = Model::Pareto { least: 133_000.0, alpha: 1.1, most: LARGEST };
/// The intended distribution of request sizes, as opposed to file sizes.
pub(crate) const REQUESTED: Model = Model::Pareto { least: 1000.0, alpha: 1.0, most: LARGEST };
/// The limit of all files together, in bytes.
const MOST_BYTES: u64 = 500_000_000;

/// Creates `count` files with about `references` requests in total.
///
/// Popularity follows Zipf's law: the file of rank r has 1/r of the references of the first. Ranks
/// are assigned from the smallest file on. If the requests so far are short of the share that
/// [`REQUESTED`] gives to sizes up to this one, by at least half the references of the most popular
/// remaining rank, the file gets this rank, otherwise the least popular one. So the error rarely
/// exceeds half the references of a rank.
pub(crate) fn catalog(count: usize, references: u64, random: &mut Random) -> Vec<Entry> {
    let mut sizes: Vec<f64> = (0..count)
        .map(|_| if random.fraction() < BODY { SIZES } else { TAIL }.sample(random).min(LARGEST))
        .collect();
    sizes.sort_by(f64::total_cmp);

    let mut ranks: VecDeque<u64> = zipf(count, references).collect();
    let all = ranks.iter().sum::<u64>() as f64;
    let mut so_far = 0.0;
    let mut entries = Vec::with_capacity(count);
    for size in sizes {
        let due = REQUESTED.share_up_to(size).unwrap_or(1.0) * all;
        let is_short = ranks.front().is_some_and(|most| due - so_far >= *most as f64 / 2.0);
        let rank = if is_short { ranks.pop_front() } else { ranks.pop_back() };
        let references = rank.unwrap_or(1);
        so_far += references as f64;
        entries.push(Entry { size: whole(size).max(1), references });
    }
    entries
}

/// Writes the files into `folder`, unless an earlier run has done so.
pub(crate) fn write(entries: &[Entry], folder: &Path) -> Result<()> {
    let total: u64 = entries.iter().map(|entry| entry.size).sum();
    ensure!(total <= MOST_BYTES, "{total} bytes of files exceed the limit: use fewer files");
    let done = folder.join("whole");
    let summary = format!("{} files, {total} bytes\n", entries.len());
    if fs::read_to_string(&done).is_ok_and(|text| text == summary) {
        return Ok(());
    }
    fs::create_dir_all(folder)?;
    let text: Vec<u8> = b"the quick brown fox jumps over the lazy dog 0123456789\n"
        .iter()
        .copied()
        .cycle()
        .take(whole(LARGEST) as usize)
        .collect();
    for (number, entry) in entries.iter().enumerate() {
        fs::write(folder.join(format!("{number}.html")), &text[..entry.size as usize])?;
    }
    Ok(fs::write(done, summary)?)
}

/// The references of each rank, in total about `references`, and at least one each.
fn zipf(count: usize, references: u64) -> impl Iterator<Item = u64> {
    let harmonic: f64 = (1..=count).map(|rank| 1.0 / rank as f64).sum();
    let first = references as f64 / harmonic;
    (1..=count).map(move |rank| whole((first / rank as f64).round()).max(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entries() -> Vec<Entry> {
        catalog(2000, 110_000, &mut Random(1))
    }

    #[test]
    fn puts_most_files_in_the_body_and_most_bytes_in_the_tail() {
        let entries = entries();
        let median = entries[1000].size;
        assert!((9_000..15_000).contains(&median), "{median}");
        let large = entries.iter().filter(|entry| entry.size > 133_000).count();
        assert!((120..240).contains(&large), "{large} of the tail");
        let (all, tail): (u64, u64) = entries.iter().fold((0, 0), |(all, tail), entry| {
            (all + entry.size, tail + if entry.size > 133_000 { entry.size } else { 0 })
        });
        assert!(tail * 2 > all, "{tail} of {all} bytes");
        assert!(all <= MOST_BYTES);
        assert!(entries.iter().all(|entry| entry.size as f64 <= LARGEST));
    }

    #[test]
    fn distributes_popularity_by_zipf() {
        let mut references: Vec<u64> = entries().iter().map(|entry| entry.references).collect();
        references.sort_unstable_by(|one, other| other.cmp(one));
        for rank in [2_u64, 5, 10, 50, 200] {
            let ratio = references[0] as f64 / references[rank as usize - 1] as f64;
            assert!((ratio / rank as f64 - 1.0).abs() < 0.05, "{ratio} at {rank}");
        }
        let all: u64 = references.iter().sum();
        assert!((all as f64 / 110_000.0 - 1.0).abs() < 0.02, "{all}");
        assert!(references.iter().all(|each| *each > 0));
    }

    #[test]
    fn matches_request_sizes_with_their_own_model() {
        let entries = entries();
        let all: u64 = entries.iter().map(|entry| entry.references).sum();
        let mut below = 0;
        for entry in &entries {
            below += entry.references;
            let expected = REQUESTED.share_up_to(entry.size as f64).unwrap_or(1.0);
            let share = below as f64 / all as f64;
            let is_significant = entry.size > 2000;
            assert!(
                !is_significant || (share - expected).abs() < 0.1,
                "{share} {expected} {}",
                entry.size
            );
        }
    }

    #[test]
    fn repeats_the_catalog_of_a_seed() {
        assert_eq!(entries(), entries());
    }
}

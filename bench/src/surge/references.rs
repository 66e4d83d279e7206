//! The order of requests, with temporal locality: recently requested files are soon requested
//! again.

use super::catalog::Entry;
use super::models::{Model, whole};
use crate::random::Random;

/// The number of different files between two requests of one file.
const DISTANCE: Model = Model::Lognormal { mu: 1.5, sigma: 0.80 };
/// Positions above and below the drawn depth that are also candidates.
const WINDOW: usize = 1;
/// A file may exceed its share by this number of references.
const AHEAD: f64 = 12.0;

/// All references of all entries in order; each is the number of an entry.
///
/// Each step draws a distance. The candidates are the files near this depth in the stack of recent
/// files, except files that exceed their share by `AHEAD` references or more. The step takes the
/// candidate that is furthest below its share. Without a candidate, it takes the file that is
/// furthest below its share among all files. Without this rule, most files would wait until the
/// popular files had all their requests, because distances are mostly short.
pub(crate) fn references(entries: &[Entry], random: &mut Random) -> Vec<u32> {
    let total: u64 = entries.iter().map(|entry| entry.references).sum();
    let mut given = vec![0_u64; entries.len()];
    let mut stack: Vec<usize> = Vec::with_capacity(entries.len());
    let mut order = Vec::with_capacity(total as usize);
    // A file's deficit relative to its share of `so_far` references; the least for a file with all
    // its references.
    let behind = |file: usize, given: u64, so_far: u64| -> f64 {
        let due = entries[file].references;
        if given >= due {
            return f64::NEG_INFINITY;
        }
        due as f64 * so_far as f64 / total as f64 - given as f64
    };
    for so_far in 1..=total {
        let depth = whole(DISTANCE.sample(random)) as usize;
        let (from, to) = (depth.saturating_sub(WINDOW), (depth + WINDOW + 1).min(stack.len()));
        let near = (from..to)
            .map(|at| stack.len() - 1 - at)
            .map(|place| (behind(stack[place], given[stack[place]], so_far), stack[place]))
            .filter(|(behind, _)| *behind > -AHEAD)
            .max_by(|one, other| one.0.total_cmp(&other.0));
        let file = near.map_or_else(
            || {
                let all = (0..entries.len()).map(|file| (behind(file, given[file], so_far), file));
                all.max_by(|one, other| one.0.total_cmp(&other.0)).map_or(0, |(_, file)| file)
            },
            |(_, file)| file,
        );
        if let Some(place) = stack.iter().rposition(|each| *each == file) {
            stack.remove(place);
        }
        stack.push(file);
        given[file] += 1;
        order.push(file as u32);
    }
    order
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::*;
    use crate::surge::catalog::catalog;

    /// For each reference except a file's first: the number of different files since the last one.
    fn distances(order: &[u32]) -> Vec<usize> {
        let mut stack: Vec<u32> = Vec::new();
        let mut all = Vec::new();
        for file in order {
            if let Some(place) = stack.iter().rposition(|each| each == file) {
                all.push(stack.len() - 1 - place);
                stack.remove(place);
            }
            stack.push(*file);
        }
        all.sort_unstable();
        all
    }

    #[test]
    fn requests_every_file_at_its_rate_throughout() {
        let entries = catalog(200, 8000, &mut Random(5));
        let order = references(&entries, &mut Random(6));
        let mut counts: HashMap<u32, u64> = HashMap::new();
        for file in &order {
            *counts.entry(*file).or_default() += 1;
        }
        for (file, entry) in entries.iter().enumerate() {
            assert_eq!(counts[&(file as u32)], entry.references);
        }
        let first = (0..entries.len()).max_by_key(|file| entries[*file].references).unwrap();
        let half = &order[..order.len() / 2];
        let early = half.iter().filter(|file| **file as usize == first).count() as f64;
        let share = early / entries[first].references as f64;
        assert!((share - 0.5).abs() < 0.1, "{share} of the first half");
    }

    #[test]
    fn repeats_files_sooner_than_a_random_order() {
        let entries = catalog(200, 8000, &mut Random(5));
        let order = references(&entries, &mut Random(6));
        let mut shuffled = order.clone();
        let mut random = Random(9);
        for at in (1..shuffled.len()).rev() {
            shuffled.swap(at, random.below(at as u64 + 1) as usize);
        }
        let (own, chance) = (distances(&order), distances(&shuffled));
        let median = |all: &[usize]| all[all.len() / 2];
        assert!(median(&own) * 2 < median(&chance), "{} {}", median(&own), median(&chance));
        assert!((3..=9).contains(&median(&own)), "about the model's 4.5: {}", median(&own));
    }
}

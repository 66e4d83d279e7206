//! Random ids and numbers for the pages of the board.

use std::cell::Cell;
use std::hash::{BuildHasher, RandomState};

use super::board_data::ROWS;

/// A number from 1 to [`ROWS`]: the id of a row, or a new value.
pub(crate) fn random_number() -> u32 {
    thread_local! {
        // Seeded by the operating system, and never 0.
        static STATE: Cell<u64> = Cell::new(RandomState::new().hash_one(0) | 1);
    }
    // Xorshift (Marsaglia 2003).
    let mut state = STATE.get();
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    STATE.set(state);
    (state % u64::from(ROWS)) as u32 + 1
}

/// `count` different ids in ascending order, so that two transactions take the locks of rows in one order.
pub(crate) fn random_ids(count: usize) -> Vec<u32> {
    let mut ids = Vec::with_capacity(count);
    while ids.len() < count {
        let id = random_number();
        if let Err(place) = ids.binary_search(&id) {
            ids.insert(place, id);
        }
    }
    ids
}

/// The parameter `queries`: 1 to 500, and 1 for any other text.
pub(crate) fn count_of(queries: Option<&str>) -> usize {
    let count: i64 = queries.and_then(|text| text.parse().ok()).unwrap_or(1);
    count.clamp(1, 500).unsigned_abs() as usize
}

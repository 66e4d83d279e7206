//! The queue of password hashes: its bound, and the fair share of each address block.

use std::collections::{HashMap, VecDeque};
use std::time::{Duration, Instant};

use bine_server::AddressBlock;

/// Jobs that wait, each for an address block: a round over the blocks, with one job of each.
pub(super) struct HashQueue<J> {
    blocks: HashMap<AddressBlock, VecDeque<(Instant, J)>>,
    /// The blocks with jobs, in the order of their turns.
    turns: VecDeque<AddressBlock>,
    count: usize,
}

/// The most jobs that wait. At 50 ms for each, the last one waits for about 3 s.
const MAX: usize = 64;
/// The most jobs of one block. Clients on the server's own machine, such as a proxy, may have half
/// of all.
const MAX_OF_BLOCK: usize = 8;
/// The longest wait of a job.
pub(super) const TIMEOUT: Duration = Duration::from_secs(5);

impl<J> HashQueue<J> {
    pub(super) fn new() -> Self {
        Self { blocks: HashMap::new(), turns: VecDeque::new(), count: 0 }
    }

    /// Adds a job. Returns it if there are too many.
    pub(super) fn push(&mut self, block: AddressBlock, job: J, now: Instant) -> Result<(), J> {
        let most = if block.is_local() { MAX / 2 } else { MAX_OF_BLOCK };
        if self.count >= MAX || self.blocks.get(&block).is_some_and(|jobs| jobs.len() >= most) {
            return Err(job);
        }
        let jobs = self.blocks.entry(block).or_default();
        if jobs.is_empty() {
            self.turns.push_back(block);
        }
        jobs.push_back((now, job));
        self.count += 1;
        Ok(())
    }

    /// The next job. Drops the jobs that have waited for too long.
    pub(super) fn pop(&mut self, now: Instant) -> Option<J> {
        while let Some(block) = self.turns.pop_front() {
            let Some(jobs) = self.blocks.get_mut(&block) else { continue };
            let next = jobs.pop_front();
            if jobs.is_empty() {
                self.blocks.remove(&block);
            } else {
                self.turns.push_back(block);
            }
            let Some((since, job)) = next else { continue };
            self.count -= 1;
            if now.duration_since(since) <= TIMEOUT {
                return Some(job);
            }
        }
        None
    }

    pub(super) const fn len(&self) -> usize {
        self.count
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn block(last: u8) -> AddressBlock {
        AddressBlock::of([192, 0, 2, last].into())
    }

    #[test]
    fn blocks_take_turns() {
        let mut queue = HashQueue::new();
        let now = Instant::now();
        for (from, job) in [(1, "a"), (1, "b"), (1, "c"), (2, "d"), (3, "e")] {
            queue.push(block(from), job, now).unwrap();
        }
        let all: Vec<&str> = std::iter::from_fn(|| queue.pop(now)).collect();
        assert_eq!(all, ["a", "d", "e", "b", "c"]);
        assert_eq!((queue.len(), queue.blocks.len()), (0, 0));
    }

    #[test]
    fn bounds_all_jobs_and_those_of_a_block() {
        let mut queue = HashQueue::new();
        let now = Instant::now();
        let of_one = (0..100).filter(|job| queue.push(block(1), *job, now).is_ok()).count();
        let local =
            (0..100).filter(|job| queue.push(AddressBlock::LOCAL, *job, now).is_ok()).count();
        assert_eq!((of_one, local), (MAX_OF_BLOCK, MAX / 2));
        for from in 2..100 {
            let _ = queue.push(block(from), 0, now);
        }
        assert_eq!(queue.len(), MAX);
    }

    #[test]
    fn drops_jobs_that_waited_too_long() {
        let mut queue = HashQueue::new();
        let now = Instant::now();
        queue.push(block(1), "late", now).unwrap();
        queue.push(block(2), "in time", now + TIMEOUT).unwrap();
        assert_eq!(queue.pop(now + TIMEOUT + Duration::from_millis(1)), Some("in time"));
        assert_eq!(queue.len(), 0);
    }
}

//! Work on several items at a time.

use std::sync::{Mutex, PoisonError};
use std::thread;

use anyhow::Result;

/// Calls `work` with each item, on `threads` threads in the order of the items, and returns the
/// results in this order. After an error no further item starts; the first error is returned when
/// all threads have ended.
pub(crate) fn map<T: Send, R: Send>(
    items: Vec<T>,
    threads: usize,
    work: impl Fn(T) -> Result<R> + Sync,
) -> Result<Vec<R>> {
    let queue = Mutex::new(items.into_iter().enumerate());
    let lock = || queue.lock().unwrap_or_else(PoisonError::into_inner);
    let worker = || {
        let mut results = Vec::new();
        loop {
            // The lock is free again while the item is worked on.
            let Some((place, item)) = lock().next() else { return Ok(results) };
            match work(item) {
                Ok(result) => results.push((place, result)),
                Err(error) => {
                    lock().by_ref().for_each(drop);
                    return Err(error);
                }
            }
        }
    };
    let outcomes: Vec<Result<Vec<(usize, R)>>> = thread::scope(|scope| {
        let workers: Vec<_> = (0..threads).map(|_| scope.spawn(worker)).collect();
        workers.into_iter().map(|worker| worker.join().expect("work does not panic")).collect()
    });
    let mut results = Vec::new();
    for outcome in outcomes {
        results.extend(outcome?);
    }
    results.sort_by_key(|(place, _)| *place);
    Ok(results.into_iter().map(|(_, result)| result).collect())
}

#[cfg(test)]
mod tests {
    use std::sync::Barrier;
    use std::sync::atomic::{AtomicU32, Ordering};

    use anyhow::bail;

    use super::*;

    #[test]
    fn returns_results_in_the_order_of_the_items() {
        let doubled = map((0..100).collect(), 3, |number| Ok(number * 2)).unwrap();
        assert_eq!(doubled, (0..100).map(|number| number * 2).collect::<Vec<_>>());
    }

    #[test]
    fn works_on_as_many_items_at_a_time_as_there_are_threads() {
        // Each item waits until both have started.
        let both = Barrier::new(2);
        map(vec![(), ()], 2, |()| {
            both.wait();
            Ok(())
        })
        .unwrap();
    }

    #[test]
    fn starts_no_item_after_an_error() {
        let started = AtomicU32::new(0);
        let outcome = map((0..100).collect(), 1, |number| {
            started.fetch_add(1, Ordering::Relaxed);
            if number == 2 {
                bail!("the third item failed");
            }
            Ok(())
        });
        assert_eq!(outcome.unwrap_err().to_string(), "the third item failed");
        assert_eq!(started.load(Ordering::Relaxed), 3);
    }
}

//! The places at one origin, which all threads share: takes one, waits for one, gives it back.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bine_server::AddressBlock;
use tokio::sync::oneshot::{Sender, channel};
use tokio::time::timeout;

use super::place_book::{PlaceBook, PlaceLimits, QueueFull};

/// The places at one origin.
pub(super) struct OriginPlaces {
    limits: PlaceLimits,
    book: Mutex<PlaceBook<Sender<OriginPlace>>>,
    /// The requests that run, as `book` counts them, for balancers.
    running: AtomicUsize,
    /// Requests without a place, by [`NoPlace`].
    refused: [AtomicU64; 3],
}

/// A place at an origin, until it is dropped.
pub(super) struct OriginPlace {
    /// `None`: the place is given back already.
    places: Option<Arc<OriginPlaces>>,
    block: AddressBlock,
}

/// The reason why a request has no place.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum NoPlace {
    /// All places of the origin stayed taken.
    Origin,
    /// All places of the client stayed taken.
    Client,
    /// As many requests as allowed wait.
    Queue,
}

/// Ends the wait of a request when it is dropped.
struct PlaceWait<'p> {
    places: &'p OriginPlaces,
    block: AddressBlock,
    number: u64,
}

impl OriginPlaces {
    pub(super) fn new(limits: PlaceLimits) -> Arc<Self> {
        Arc::new(Self {
            limits,
            book: Mutex::new(PlaceBook::new(limits)),
            running: AtomicUsize::new(0),
            refused: Default::default(),
        })
    }

    pub(super) const fn limits(&self) -> PlaceLimits {
        self.limits
    }

    /// The requests that run.
    pub(super) fn running(&self) -> usize {
        self.running.load(Ordering::Relaxed)
    }

    /// The requests that wait.
    pub(super) fn waiting(&self) -> usize {
        self.lock().queued()
    }

    /// The number of requests without a place, by reason.
    pub(super) fn refused(&self) -> [(&'static str, u64); 3] {
        let reasons = [NoPlace::Origin, NoPlace::Client, NoPlace::Queue];
        reasons.map(|reason| {
            let count = &self.refused[reason as usize];
            (reason.label(), count.load(Ordering::Relaxed))
        })
    }

    /// Takes a place for a request of a client of `block`. Waits for one for at most `patience`.
    ///
    /// # Errors
    ///
    /// No place was free for this client in that time, or no request may wait.
    pub(super) async fn acquire(
        self: &Arc<Self>,
        block: AddressBlock,
        patience: Duration,
    ) -> Result<OriginPlace, NoPlace> {
        let acquired = self.try_acquire(block, patience).await;
        if let Err(reason) = acquired {
            self.refused[reason as usize].fetch_add(1, Ordering::Relaxed);
        }
        acquired
    }

    async fn try_acquire(
        self: &Arc<Self>,
        block: AddressBlock,
        patience: Duration,
    ) -> Result<OriginPlace, NoPlace> {
        let (wait, granted, displaced) = {
            let mut book = self.lock();
            if book.take(block) {
                self.running.store(book.running(), Ordering::Relaxed);
                return Ok(self.place(block));
            }
            let (sender, granted) = channel();
            let queued = book.wait(block, sender).map_err(|QueueFull| NoPlace::Queue)?;
            let wait = PlaceWait { places: self, block, number: queued.number };
            (wait, granted, queued.displaced)
        };
        // A displaced request learns of it by the end of its sender.
        drop(displaced);
        let result = match timeout(patience, granted).await {
            Ok(Ok(place)) => Ok(place),
            Ok(Err(_)) => Err(NoPlace::Queue),
            Err(_) if self.lock().is_client_full(block) => Err(NoPlace::Client),
            Err(_) => Err(NoPlace::Origin),
        };
        drop(wait);
        result
    }

    fn place(self: &Arc<Self>, block: AddressBlock) -> OriginPlace {
        OriginPlace { places: Some(Arc::clone(self)), block }
    }

    /// Gives a place back, to the next request that still waits.
    fn release(self: &Arc<Self>, mut block: AddressBlock) {
        loop {
            let next = {
                let mut book = self.lock();
                let next = book.release(block);
                self.running.store(book.running(), Ordering::Relaxed);
                next
            };
            let Some((next_block, sender)) = next else { return };
            match sender.send(self.place(next_block)) {
                Ok(()) => return,
                // Its wait has just ended. A drop of the place here would recurse.
                Err(mut place) => place.places = None,
            }
            block = next_block;
        }
    }

    fn lock(&self) -> MutexGuard<'_, PlaceBook<Sender<OriginPlace>>> {
        self.book.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for OriginPlace {
    fn drop(&mut self) {
        if let Some(places) = self.places.take() {
            places.release(self.block);
        }
    }
}

impl Drop for PlaceWait<'_> {
    fn drop(&mut self) {
        // The sender is dropped after the lock. A place that was sent already is in the receiver.
        let sender = self.places.lock().cancel(self.block, self.number);
        drop(sender);
    }
}

impl NoPlace {
    /// The value of the label `reason`.
    const fn label(self) -> &'static str {
        match self {
            Self::Origin => "origin",
            Self::Client => "client",
            Self::Queue => "queue",
        }
    }
}

#[cfg(test)]
mod tests {
    use std::future::{Future as _, poll_fn};
    use std::pin::pin;
    use std::task::Poll;

    use super::*;

    const PATIENCE: Duration = Duration::from_secs(20);
    const SHORT: Duration = Duration::from_millis(1);

    fn run<T>(check: impl Future<Output = T>) -> T {
        let builder = &mut tokio::runtime::Builder::new_current_thread();
        builder.enable_all().build().unwrap().block_on(check)
    }

    fn places(total: usize, client: usize, waiting: usize) -> Arc<OriginPlaces> {
        OriginPlaces::new(PlaceLimits { total, client, waiting })
    }

    fn block(number: u8) -> AddressBlock {
        AddressBlock::of([192, 0, 2, number].into())
    }

    #[test]
    fn waits_for_a_place_and_names_the_bound_that_was_reached() {
        run(async {
            let places = places(2, 1, 8);
            let first = places.acquire(block(1), SHORT).await.ok().unwrap();
            assert_eq!(places.acquire(block(1), SHORT).await.err(), Some(NoPlace::Client));
            let second = places.acquire(block(2), SHORT).await.ok().unwrap();
            assert_eq!(places.acquire(block(3), SHORT).await.err(), Some(NoPlace::Origin));
            let mut again = pin!(places.acquire(block(1), PATIENCE));
            assert!(poll_fn(|task| Poll::Ready(again.as_mut().poll(task).is_pending())).await);
            assert_eq!((places.running(), places.waiting()), (2, 1));
            drop(first);
            drop((again.await.ok().unwrap(), second));
            assert_eq!((places.running(), places.waiting()), (0, 0));
            let expected = [("origin", 1), ("client", 1), ("queue", 0)];
            assert_eq!(places.refused(), expected);
        });
    }

    #[test]
    fn gives_the_place_of_a_wait_that_was_dropped_to_the_next_one() {
        run(async {
            let places = places(1, 1, 8);
            let taken = places.acquire(block(1), SHORT).await.ok().unwrap();
            let next = {
                let mut dropped = pin!(places.acquire(block(2), PATIENCE));
                let waits = poll_fn(|task| Poll::Ready(dropped.as_mut().poll(task).is_pending()));
                assert!(waits.await);
                // The place is on its way to the first wait when this one ends.
                drop(taken);
                let mut next = Box::pin(places.acquire(block(3), PATIENCE));
                let waits = poll_fn(|task| Poll::Ready(next.as_mut().poll(task).is_pending()));
                assert!(waits.await && places.running() == 1);
                next
            };
            drop(next.await.ok().unwrap());
            assert_eq!((places.running(), places.waiting()), (0, 0));
        });
    }

    #[test]
    fn loses_no_place_between_threads() {
        let places = places(3, 2, 64);
        std::thread::scope(|scope| {
            for number in 0..4 {
                let places = &places;
                scope.spawn(move || {
                    run(async {
                        for turn in 0..2_000_u32 {
                            // Some waits end while another thread grants them a place.
                            let patience = Duration::from_micros(u64::from(turn % 5) * 20);
                            let place = places.acquire(block(number / 2), patience).await;
                            assert!(places.running() <= 3);
                            tokio::task::yield_now().await;
                            drop(place);
                        }
                    });
                });
            }
        });
        assert_eq!((places.running(), places.waiting()), (0, 0));
    }
}

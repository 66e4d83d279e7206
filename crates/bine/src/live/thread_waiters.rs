//! Divides the waiting connections of a thread into those that follow channels and those that
//! follow pages.

use std::rc::Rc;
use std::sync::Arc;

use bine_server::{
    ServeOutcome, ServeReason, SuspendedResponse, WaiterSink, Waiters, WaitersFactory,
};

use crate::channels::{Engine, SuspendedResponses};
use crate::staleness::Staleness;

/// The waiting connections of one thread.
struct ThreadWaiters {
    channels: SuspendedResponses,
    pages: SuspendedResponses,
}

/// Flag in [`SuspendedResponse::manner`]: the connection follows a page.
pub(super) const FOLLOWS_PAGE: u32 = 1 << 31;
/// Flag in a key: the connection follows a page.
const OF_PAGES: u32 = 1 << 31;

/// Makes the waiters of each thread, for the channels' engine and for the pages' engine.
pub(super) fn waiters(
    channels: &Arc<Engine>,
    pages: &Arc<Engine>,
    staleness: &Arc<Staleness>,
) -> WaitersFactory {
    let (engine, pages, staleness) =
        (Arc::clone(channels), Arc::clone(pages), Arc::clone(staleness));
    Box::new(move |clock, ready| {
        engine.add_bell(ready.clone());
        pages.add_bell(ready);
        let room = |engine: &Arc<Engine>| {
            let (engine, clock) = (Arc::clone(engine), Rc::clone(&clock));
            SuspendedResponses::new(engine, clock, Arc::clone(&staleness))
        };
        Box::new(ThreadWaiters { channels: room(&engine), pages: room(&pages) })
    })
}

impl ThreadWaiters {
    fn room(&mut self, key: u32) -> (&mut SuspendedResponses, u32) {
        let room = if key & OF_PAGES == 0 { &mut self.channels } else { &mut self.pages };
        (room, key & !OF_PAGES)
    }
}

impl Waiters for ThreadWaiters {
    fn park(&mut self, place: u64, hold: SuspendedResponse) -> u32 {
        let manner = hold.manner & !FOLLOWS_PAGE;
        if manner == hold.manner {
            self.channels.park(place, hold)
        } else {
            // Neither room has two billion connections, so the flag is free.
            self.pages.park(place, SuspendedResponse { manner, ..hold }) | OF_PAGES
        }
    }

    fn serve(&mut self, key: u32, why: ServeReason, out: &mut Vec<u8>) -> ServeOutcome {
        let (room, key) = self.room(key);
        room.serve(key, why, out)
    }

    fn deliver(&mut self, slice: usize, out: &mut dyn WaiterSink) -> bool {
        let more = self.channels.deliver(slice, out);
        self.pages.deliver(slice, out) || more
    }

    fn forget(&mut self, key: u32) {
        let (room, key) = self.room(key);
        room.forget(key);
    }
}

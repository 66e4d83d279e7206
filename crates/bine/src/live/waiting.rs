//! Decides who of those that wait at one thread follows channels, and who a page: each kind has waiters of its own.

use std::rc::Rc;
use std::sync::Arc;

use bine_server::{After, Clock, Deliver, Hold, MakeWaiters, Waiters, Why};

use crate::channels::{Channels, Engine, Room};

/// All who wait at one thread.
struct Waiting {
    channels: Room,
    pages: Room,
}

/// In [`Hold::manner`]: it follows a page.
pub(super) const FOLLOWS_PAGE: u32 = 1 << 31;
/// In a key: it is one of those who follow pages.
const OF_PAGES: u32 = 1 << 31;

/// Makes the waiters of each thread: for these channels, and for the pages of the other engine.
pub(crate) fn waiters(channels: &Channels, pages: &Arc<Engine>) -> MakeWaiters {
    let (engine, pages) = (Arc::clone(channels.engine()), Arc::clone(pages));
    Box::new(move |clock, bell| {
        engine.add_bell(bell.clone());
        pages.add_bell(bell);
        Box::new(Waiting::new(Arc::clone(&engine), Arc::clone(&pages), &clock))
    })
}

impl Waiting {
    fn new(channels: Arc<Engine>, pages: Arc<Engine>, clock: &Rc<Clock>) -> Self {
        let channels = Room::new(channels, Rc::clone(clock));
        Self { channels, pages: Room::new(pages, Rc::clone(clock)) }
    }

    fn room(&mut self, key: u32) -> (&mut Room, u32) {
        let room = if key & OF_PAGES == 0 { &mut self.channels } else { &mut self.pages };
        (room, key & !OF_PAGES)
    }
}

impl Waiters for Waiting {
    fn park(&mut self, place: u64, hold: Hold) -> u32 {
        let manner = hold.manner & !FOLLOWS_PAGE;
        if manner == hold.manner {
            self.channels.park(place, hold)
        } else {
            // Neither has two billion.
            self.pages.park(place, Hold { manner, ..hold }) | OF_PAGES
        }
    }

    fn serve(&mut self, key: u32, why: Why, out: &mut Vec<u8>) -> After {
        let (room, key) = self.room(key);
        room.serve(key, why, out)
    }

    fn deliver(&mut self, slice: usize, out: &mut dyn Deliver) -> bool {
        let more = self.channels.deliver(slice, out);
        self.pages.deliver(slice, out) || more
    }

    fn forget(&mut self, key: u32) {
        let (room, key) = self.room(key);
        room.forget(key);
    }
}

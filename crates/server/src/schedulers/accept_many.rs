//! Decides as the accept-many strategy does, which document 000 section 2.4 names: one thread empties the
//! kernel's queue of newcomers at each wake-up, and a pool of threads takes them, each to keep its connection
//! until it closes.
//!
//! ```text
//! acceptor:    accept, accept, accept ... -> lobby
//! each thread: lobby -> request -> response -> reply -> request -> ... -> lobby
//! ```
//!
//! A crowd never overflows the kernel's queue, where who is dropped comes again after a second; it costs each
//! connection a hand-over, which `pool` does not have. When every thread has a connection, who waits in the lobby takes
//! the thread of one that is idle, and is told to come again when that takes too long (`queue-timeout`).

use std::io;
use std::sync::Arc;

use crate::arrival::{Entrance, Lobby};
use crate::conversation::Conversations;
use crate::lifecycle::State;
use crate::schedulers::row::Row;
use crate::schedulers::threads::{Holders, serve_threads};
use crate::server::Server;

/// An acceptor, and threads that block.
pub struct AcceptMany {
    holders: Holders,
    lobby: Lobby,
}

impl AcceptMany {
    /// A pool of `size` threads, and room for `queue` connections that wait for one.
    ///
    /// # Errors
    ///
    /// No descriptor is left.
    pub fn new(size: usize, queue: usize) -> io::Result<Self> {
        Ok(Self { holders: Holders::new(size), lobby: Lobby::new(queue)? })
    }

    /// Takes everybody in as they come, and lets go of who has waited too long.
    fn admit(&self, server: &Arc<Server>) -> io::Result<()> {
        let lobby = &self.lobby;
        let mut entrance = Entrance::new(server);
        while server.state() == State::Serving {
            let wait = lobby.turn_away(server.generation().settings.timeouts.queue);
            lobby.fill(&mut entrance, wait)?;
        }
        Ok(())
    }
}

impl Row for AcceptMany {
    fn accept(self: Arc<Self>, server: &Arc<Server>) -> io::Result<()> {
        let (size, shared) = (self.holders.size(), Arc::clone(server));
        serve_threads(server, "accept-many", size.saturating_add(1), move |index| {
            if index == 0 {
                let ended = self.admit(&shared);
                self.lobby.close();
                return ended;
            }
            self.holders.talk(&mut Conversations::behind(&self.lobby, &shared, &*self))
        })
    }

    fn begin_hold(&self) -> bool {
        self.holders.begin_hold()
    }

    fn end_hold(&self) {
        self.holders.end_hold();
    }

    fn load(&self) -> f32 {
        self.holders.load()
    }

    fn status(&self) -> String {
        format!("{}; {} connections wait for one", self.holders.status(), self.lobby.len())
    }
}

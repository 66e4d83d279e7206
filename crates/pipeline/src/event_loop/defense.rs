//! Decides what a loop does for the server's guards: whether it accepts, which idle connections it closes, and whose
//! requests it refuses.

use std::cmp::Reverse;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use crate::clock::monotonic_milliseconds;
use crate::connection::{Connection, Context, Errand, Phase};
use crate::event_loop::driver::Driver;
use crate::event_loop::{Entry, EventLoop};
use crate::guard::Room;
use crate::link::Link;
use crate::mailbox::Letter;
use crate::server::{Server, View};
use crate::settings::{Settings, Timeouts};
use crate::tally::Ending;

/// A connection that has said nothing yet may be about to.
const JUST_COME: Duration = Duration::from_secs(1);

impl<D: Driver> EventLoop<D> {
    /// Whether connections may come in now, as the guards and the workers' queue have it.
    pub(super) fn may_accept(&self) -> bool {
        let settings = &self.view.generation.settings;
        mind(&self.server, settings);
        // Where sessions are admitted, strangers are told so, and who has begun may come with another connection.
        let is_held = settings.guards.back_pressure && !self.server.admission().is_on();
        let is_over = is_held && self.scheduler.is_overloaded();
        self.server.guard.note_queue(is_over);
        !is_over && !self.server.guard.pauses()
    }

    /// Closes idle connections, strangers before visitors who are known, and those that have been idle longest before
    /// others. One whose next request is on its way is told nothing; its peer tries again, as it must after any idle
    /// time (RFC 9110 section 9.2.2).
    pub(super) fn make_room(&mut self, Room { count, known_too }: Room) {
        let now = self.context.clock.now();
        let generation = Arc::clone(&self.view.generation);
        let timeouts = &generation.settings.timeouts;
        let mut idle = Vec::new();
        for token in self.slab.tokens() {
            let Some(Entry { connection, .. }) = self.slab.get(token) else { continue };
            let (left, is_known) = (connection.deadline.since(now), !is_stranger(connection));
            if let Some(wait) = idle_time(connection, timeouts)
                && (known_too || !is_known)
            {
                let silent = wait.saturating_sub(left);
                if connection.phase == Phase::Idle || silent >= JUST_COME {
                    idle.push((is_known, Reverse(silent), token));
                }
            }
        }
        idle.sort_unstable_by_key(|(is_known, silent, _)| (*is_known, *silent));
        idle.truncate(count);
        self.server.guard.note_closed(idle.len());
        for (_, _, token) in idle {
            if let Some(Entry { connection, .. }) = self.slab.get(token) {
                connection.end(Ending::Load);
            }
            self.remove(token);
        }
    }
}

/// For how long `connection` may be silent, if that is what it is.
fn idle_time<L: Link>(connection: &Connection<L>, timeouts: &Timeouts) -> Option<Duration> {
    match connection.phase {
        Phase::Idle if !connection.wants_turn && !connection.has_unsent() => Some(timeouts.idle),
        Phase::First => Some(timeouts.first_byte),
        Phase::Handshake => Some(timeouts.handshake),
        _ => None,
    }
}

/// Whether the program knows nothing of who has this connection, and no session has begun over it.
const fn is_stranger<L>(connection: &Connection<L>) -> bool {
    !connection.is_known && !connection.has_begun
}

/// Whether the response that is to be made is for somebody for whom there is no memory.
pub(super) fn is_unwelcome<L>(
    server: &Server,
    view: &View,
    connection: &Connection<L>,
    context: &Context,
) -> bool {
    if !server.guard.refuses() || !is_stranger(connection) {
        return false;
    }
    // Nobody may come any more whose coming would have it looked at.
    mind(server, &view.generation.settings);
    let is_new = matches!(context.errand, Some(Errand::Work(..) | Errand::Later(..)));
    let is_unwelcome = is_new && server.guard.refuses();
    if is_unwelcome {
        server.guard.note_stranger();
    }
    is_unwelcome
}

/// Has the guards look, and each loop make its part of the room that they want.
fn mind(server: &Server, settings: &Settings) {
    if !server.guard.is_due(monotonic_milliseconds()) {
        return;
    }
    let Some(Room { count, known_too }) = server.guard.judge(settings, &server.census) else {
        return;
    };
    let connections = server.census.share().used.max(1) as usize;
    for each in &server.loops {
        let own = each.connections.load(Ordering::Relaxed);
        let count = count.saturating_mul(own).div_ceil(connections);
        if count > 0 {
            each.mailbox.post(Letter::MakeRoom(Room { count, known_too }));
        }
    }
}

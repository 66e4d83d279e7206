//! Decides how what has happened reaches those who wait for it: in slices, so that every other connection has its turn
//! between them.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

use bine_log as log;

use crate::connection::{NO_HOLD, Phase};
use crate::event_loop::driver::Driver;
use crate::event_loop::{Entry, EventLoop};
use crate::handler::{After, Deliver, Sent};
use crate::slab::Token;
use crate::stages;

/// Waiters that are sent to in one turn. A send takes some seven microseconds, so whoever comes meanwhile waits a tenth
/// of a millisecond. More in one turn saves nothing that can be measured; with 256 the p99 of others was five to eleven times the calm one.
const SLICE: usize = 16;
/// Fan-outs that a fault cuts short, one behind the other, before the next news is waited for: a fault at whoever is sent
/// to must not keep the loop at it.
const CUTS: u8 = 8;
/// When the server stops, waiters are told so over this time at most, or all would come back to another server at once.
const PARTING: Duration = Duration::from_secs(5);

/// When the server stops, a waiter is told after so long: each at another time, within half of the drain.
pub(super) fn parting(token: Token, drain: Duration) -> Duration {
    let most = PARTING.min(drain / 2).as_millis() as u64;
    // Places are given out in order; this scatters them (Knuth, The Art of Computer Programming 6.4).
    let scattered = u64::from(token.index.wrapping_mul(2_654_435_769));
    Duration::from_millis((scattered * most) >> 32)
}

impl<D: Driver> EventLoop<D> {
    /// The reply of a connection is held: it becomes a waiter.
    pub(super) fn park(&mut self, token: Token) {
        let Some(Entry { connection, .. }) = self.slab.get(token) else { return };
        let next = stages::hold(connection, &mut self.context, token.bits());
        self.advance(token, next);
    }

    /// Sends to a slice of those who have waited for what happened.
    pub(super) fn fan_out(&mut self) {
        if !std::mem::take(&mut self.has_news) {
            return;
        }
        let Some(mut waiters) = self.context.waiters.take() else { return };
        let delivered = catch_unwind(AssertUnwindSafe(|| waiters.deliver(SLICE, &mut Fan(self))));
        self.context.waiters = Some(waiters);
        match delivered {
            Ok(more) => {
                self.has_news |= more;
                self.cuts = 0;
            }
            Err(_) => {
                // Those behind the one at whom it happened are still owed what there is.
                self.cuts = self.cuts.saturating_add(1);
                self.has_news |= self.cuts < CUTS;
                log::error(format_args!("a fan-out was cut short by a fault of the program"));
                self.context.output.clear();
                self.context.input = 0..0;
            }
        }
    }
}

/// The connections of a loop, for those who deliver.
struct Fan<'l, D: Driver>(&'l mut EventLoop<D>);

impl<D: Driver> Deliver for Fan<'_, D> {
    fn send(&mut self, place: u64, bytes: &[u8], after: After) -> Sent {
        let (own, token) = (&mut *self.0, Token::from_bits(place));
        let Some(Entry { connection, .. }) = own.slab.get(token) else { return Sent::Gone };
        if connection.hold == NO_HOLD {
            return Sent::Gone;
        }
        if connection.phase != Phase::Held {
            return Sent::Full;
        }
        own.context.make_current(connection);
        let next = stages::delivered(connection, &mut own.context, bytes, after);
        own.advance(token, next);
        if own.slab.get(token).is_some() { Sent::Taken } else { Sent::Gone }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waiters_are_let_go_evenly_over_half_of_the_drain() {
        let drain = Duration::from_secs(8);
        let partings = (0..1000).map(|index| parting(Token { index, generation: 0 }, drain));
        let mut quarters = [0; 4];
        for wait in partings {
            quarters[(wait.as_millis() / 1000) as usize] += 1;
        }
        assert!(quarters.iter().all(|count| (200..300).contains(count)), "{quarters:?}");
    }
}

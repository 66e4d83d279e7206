//! Delivery of events to suspended responses: in slices, so that all other connections have their
//! turn between two slices.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

use bine_log as log;

use crate::connection::{NO_HOLD, Phase};
use crate::event_loop::driver::Driver;
use crate::event_loop::{Entry, EventLoop};
use crate::handler::{SendOutcome, ServeOutcome, WaiterSink};
use crate::slab::Token;
use crate::stages;

/// The suspended responses that one turn sends to. A send takes about 7 microseconds, so other
/// requests wait for 0.1 ms. A larger slice saved no time in measurements; with 256, the p99 of
/// other requests was 5 to 11 times that of an idle server.
const SLICE: usize = 16;
/// After this many consecutive fan-outs that panicked, the loop waits for the next event before it
/// tries again, so that a panic for one client does not keep the loop busy.
const MAX_FAILED_FAN_OUTS: u8 = 8;
/// The period over which a stopping server ends suspended responses. If it ended them all at once,
/// all clients would reconnect to other servers at the same time.
const STOP_SPREAD: Duration = Duration::from_secs(5);

/// How long after the begin of a drain a suspended response ends: spread evenly over half of the
/// drain, and over 5 s at most.
pub(super) fn stop_delay(token: Token, drain: Duration) -> Duration {
    let most = STOP_SPREAD.min(drain / 2).as_millis() as u64;
    // Slab indices are consecutive. A multiplicative hash spreads them (Knuth, The Art of Computer
    // Programming, volume 3, section 6.4).
    let scattered = u64::from(token.index.wrapping_mul(2_654_435_769));
    Duration::from_millis((scattered * most) >> 32)
}

impl<D: Driver> EventLoop<D> {
    /// Suspends the response of a connection.
    pub(super) fn suspend_response(&mut self, token: Token) {
        let Some(Entry { connection, .. }) = self.slab.get(token) else { return };
        let next = stages::hold(connection, &mut self.context, token.bits());
        self.advance(token, next);
    }

    /// Sends events to one slice of the suspended responses.
    pub(super) fn fan_out(&mut self) {
        if !std::mem::take(&mut self.has_deliveries) {
            return;
        }
        let Some(mut waiters) = self.context.waiters.take() else { return };
        let delivered =
            catch_unwind(AssertUnwindSafe(|| waiters.deliver(SLICE, &mut LoopDelivery(self))));
        self.context.waiters = Some(waiters);
        match delivered {
            Ok(more) => {
                self.has_deliveries |= more;
                self.failed_fan_outs = 0;
            }
            Err(_) => {
                // The remaining suspended responses still need their events.
                self.failed_fan_outs = self.failed_fan_outs.saturating_add(1);
                self.has_deliveries |= self.failed_fan_outs < MAX_FAILED_FAN_OUTS;
                log::error(format_args!(
                    "the program panicked while it wrote a suspended response"
                ));
                self.context.output.clear();
                self.context.input = 0..0;
            }
        }
    }
}

/// Gives the waiters access to the connections of a loop.
struct LoopDelivery<'l, D: Driver>(&'l mut EventLoop<D>);

impl<D: Driver> WaiterSink for LoopDelivery<'_, D> {
    fn send(&mut self, place: u64, bytes: &[u8], after: ServeOutcome) -> SendOutcome {
        let event_loop = &mut *self.0;
        let token = Token::from_bits(place);
        let Some(Entry { connection, .. }) = event_loop.slab.get(token) else {
            return SendOutcome::Gone;
        };
        if connection.hold == NO_HOLD {
            return SendOutcome::Gone;
        }
        if connection.phase != Phase::Held {
            return SendOutcome::Full;
        }
        event_loop.context.make_current(connection);
        let next = stages::delivered(connection, &mut event_loop.context, bytes, after);
        event_loop.advance(token, next);
        if event_loop.slab.get(token).is_some() { SendOutcome::Taken } else { SendOutcome::Gone }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ends_suspended_responses_evenly_over_half_of_the_drain() {
        let drain = Duration::from_secs(8);
        let delays = (0..1000).map(|index| stop_delay(Token { index, generation: 0 }, drain));
        let mut quarters = [0; 4];
        for delay in delays {
            quarters[(delay.as_millis() / 1000) as usize] += 1;
        }
        assert!(quarters.iter().all(|count| (200..300).contains(count)), "{quarters:?}");
    }
}

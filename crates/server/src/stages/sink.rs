//! Sends a long page while it is being written.

use std::sync::Arc;

use bine_log as log;

use crate::access::{Replied, measure};
use crate::limits::{Budget, Claim, Reservation};
use crate::metrics::Tally;
use crate::settings::Settings;
use crate::system::Transfer;
use crate::transport::{Direction, Transport};

/// The budget that is charged for the bytes of a page that its client has not read.
pub(crate) struct UnsentBudget<'l> {
    pub(crate) reserved: &'l mut Reservation,
    pub(crate) budget: &'l Arc<Budget>,
    pub(crate) claim: Claim<'l>,
}

/// The destination of a long page while it is being written.
pub(crate) struct Sink<'l, L> {
    transport: &'l mut L,
    settings: &'l Settings,
    unsent_budget: UnsentBudget<'l>,
    /// The start of this reply; earlier replies precede it.
    mark: usize,
    /// The status and the end of the head, after part of the reply was sent.
    sent_head: Option<(u16, usize)>,
    /// A copy of the head, if the access log needs it.
    head: Option<Vec<u8>>,
    pub(crate) sent: usize,
    /// Whether content follows. The reply to a HEAD has only a head, which must be sent at once.
    more: bool,
    pub(crate) broken: bool,
}

impl<'l, L: Transport> Sink<'l, L> {
    pub(crate) const fn new(
        transport: &'l mut L,
        settings: &'l Settings,
        unsent_budget: UnsentBudget<'l>,
        mark: usize,
        more: bool,
        keeps_head: bool,
    ) -> Self {
        // An empty vector does not allocate.
        let head = if keeps_head { Some(Vec::new()) } else { None };
        Self {
            transport,
            settings,
            unsent_budget,
            mark,
            sent_head: None,
            head,
            sent: 0,
            more,
            broken: false,
        }
    }

    /// The access log entry of the reply, whose end is in `output`.
    pub(crate) fn replied<'r>(&'r self, output: &'r [u8]) -> Replied<'r> {
        match self.sent_head {
            // The head was sent already; the content is the rest of the sent and unsent bytes.
            Some((status, head)) => Replied {
                status,
                bytes: (self.sent + output.len() - head) as u64,
                head: self.head.as_deref().unwrap_or_default(),
            },
            None => Replied::of(&output[self.mark..]),
        }
    }

    /// Counts the reply, if there is one, and its sent bytes. Its end is in `output`.
    #[inline]
    pub(crate) fn count(&self, output: &[u8], tally: &Tally) {
        match self.sent_head {
            Some((status, _)) if self.sent > 0 => {
                tally.replied_with(status);
                tally.sent.add(self.sent as u64);
            }
            _ => tally.replied(output.get(self.mark..).unwrap_or_default()),
        }
    }

    /// Sends as much as the transport accepts and keeps the rest, up to the limit of unsent bytes.
    pub(crate) fn drain(&mut self, buffer: &mut Vec<u8>) {
        if self.sent_head.is_none() {
            let measured = buffer.get(self.mark..).and_then(measure);
            self.sent_head = measured.map(|(status, head)| (status, self.mark + head));
            if let (Some(kept), Some((_, end))) = (&mut self.head, self.sent_head) {
                kept.extend_from_slice(&buffer[self.mark..end]);
            }
        }
        self.transport.wait_at_most(Direction::Out, self.settings.timeouts.write);
        let mut from = 0;
        while from < buffer.len() && !self.broken {
            match self.transport.send(&buffer[from..], self.more) {
                Transfer::Moved(count) => from += count,
                Transfer::Again => break,
                Transfer::TimedOut | Transfer::Ended | Transfer::Fault | Transfer::Broken => {
                    self.broken = true;
                }
            }
        }
        self.sent += from;
        buffer.drain(..from);
        if buffer.len() > self.settings.unsent {
            let limit = self.settings.unsent;
            log::warn(format_args!("a page exceeded the limit of {limit} unsent bytes"));
            self.broken = true;
        }
        let UnsentBudget { reserved, budget, claim } = &mut self.unsent_budget;
        self.broken = self.broken || reserved.reach(buffer.len() as u64, budget, *claim).is_err();
        if self.broken {
            buffer.clear();
        }
    }
}

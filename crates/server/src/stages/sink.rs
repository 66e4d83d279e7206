//! Decides how a long page leaves while it is being written.

use std::sync::Arc;

use bine_log as log;

use crate::access::{Replied, measure};
use crate::limits::{Budget, Claim, Reservation};
use crate::metrics::Tally;
use crate::settings::Settings;
use crate::system::Transfer;
use crate::transport::{Transport, Way};

/// What a page's peer has not read, charged to the server's budget.
pub(crate) struct Owed<'l> {
    pub(crate) reserved: &'l mut Reservation,
    pub(crate) budget: &'l Arc<Budget>,
    pub(crate) claim: Claim<'l>,
}

/// A long page's way out while it is being written.
pub(crate) struct Sink<'l, L> {
    transport: &'l mut L,
    settings: &'l Settings,
    owed: Owed<'l>,
    /// Where this reply begins; earlier ones stand before it.
    mark: usize,
    /// Its status and where its head ends, once a part of it has left.
    begun: Option<(u16, usize)>,
    /// That head, kept if the access log tells of it.
    head: Option<Vec<u8>>,
    pub(crate) sent: usize,
    /// Something follows; the head of a HEAD is all there is, and must not wait for more.
    more: bool,
    pub(crate) broken: bool,
}

impl<'l, L: Transport> Sink<'l, L> {
    pub(crate) const fn new(
        transport: &'l mut L,
        settings: &'l Settings,
        owed: Owed<'l>,
        mark: usize,
        more: bool,
        keeps_head: bool,
    ) -> Self {
        // Nothing is allocated before there is a head to keep.
        let head = if keeps_head { Some(Vec::new()) } else { None };
        Self { transport, settings, owed, mark, begun: None, head, sent: 0, more, broken: false }
    }

    /// The whole reply, whose end is in `output`.
    pub(crate) fn replied<'r>(&'r self, output: &'r [u8]) -> Replied<'r> {
        match self.begun {
            // The head has left already; what was sent, and what waits, is the rest.
            Some((status, head)) => Replied {
                status,
                bytes: (self.sent + output.len() - head) as u64,
                head: self.head.as_deref().unwrap_or_default(),
            },
            None => Replied::of(&output[self.mark..]),
        }
    }

    /// Counts the reply, if there is one, and what of it has left. Its end is in `output`.
    #[inline]
    pub(crate) fn count(&self, output: &[u8], tally: &Tally) {
        match self.begun {
            Some((status, _)) if self.sent > 0 => {
                tally.replied_with(status);
                tally.sent.add(self.sent as u64);
            }
            _ => tally.replied(output.get(self.mark..).unwrap_or_default()),
        }
    }

    /// Sends what the transport takes now and leaves the rest, up to the bound on unsent bytes.
    pub(crate) fn drain(&mut self, buffer: &mut Vec<u8>) {
        if self.begun.is_none() {
            let measured = buffer.get(self.mark..).and_then(measure);
            self.begun = measured.map(|(status, head)| (status, self.mark + head));
            if let (Some(kept), Some((_, end))) = (&mut self.head, self.begun) {
                kept.extend_from_slice(&buffer[self.mark..end]);
            }
        }
        self.transport.wait_at_most(Way::Out, self.settings.timeouts.write);
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
            let most = self.settings.unsent;
            log::warn(format_args!("a page outgrew the {most} unsent bytes allowed"));
            self.broken = true;
        }
        let Owed { reserved, budget, claim } = &mut self.owed;
        self.broken = self.broken || reserved.reach(buffer.len() as u64, budget, *claim).is_err();
        if self.broken {
            buffer.clear();
        }
    }
}

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

    /// The access log entry of the reply, whose end is in `output`. The connection must not be broken:
    /// unsent bytes of a broken one are dropped, possibly before the end of the head.
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

#[cfg(test)]
mod tests {
    use std::os::fd::BorrowedFd;
    use std::time::Duration;

    use super::*;
    use crate::address::ClientAddress;
    use crate::limits::Budgets;
    use crate::metrics::Tallies;
    use crate::quota::Owner;

    /// A client that takes this many bytes, and then closes or waits.
    struct Room {
        left: usize,
        end: Transfer,
        waits: Vec<Duration>,
    }

    impl Transport for Room {
        const BLOCKS: bool = true;

        fn receive(&mut self, _space: &mut [u8]) -> Transfer {
            unreachable!("a sink receives nothing")
        }

        fn send(&mut self, bytes: &[u8], _more: bool) -> Transfer {
            let count = bytes.len().min(self.left);
            self.left -= count;
            if count == 0 { self.end } else { Transfer::Moved(count) }
        }

        fn send_file(&mut self, _: BorrowedFd<'_>, _offset: u64, _count: usize) -> Transfer {
            unreachable!("a sink sends no file")
        }

        fn finish(&mut self) {}

        fn wait_at_most(&mut self, _way: Direction, duration: Duration) {
            self.waits.push(duration);
        }
    }

    const HEAD: &[u8] = b"HTTP/1.1 404 Not Found\r\nA: b\r\n\r\n";

    /// Drains a reply after `mark` earlier bytes to a client with room for `left` bytes.
    fn drain(
        (mark, left, end): (usize, usize, Transfer),
        content: usize,
        unsent: usize,
        check: impl FnOnce(&Sink<'_, Room>, &[u8]),
    ) {
        let settings = Settings { unsent, ..Settings::default() };
        let budgets = Budgets::default();
        let (mut reserved, owner) = (Reservation::default(), Owner::default());
        let claim = Claim { block: ClientAddress::UNIX.block(), owner: &owner };
        let budget = UnsentBudget { reserved: &mut reserved, budget: &budgets.unsent, claim };
        let mut room = Room { left, end, waits: Vec::new() };
        let mut sink = Sink::new(&mut room, &settings, budget, mark, true, true);
        let mut buffer = vec![b'e'; mark];
        buffer.extend_from_slice(HEAD);
        buffer.resize(buffer.len() + content, b'x');
        sink.drain(&mut buffer);
        assert_eq!(sink.transport.waits, [settings.timeouts.write]);
        check(&sink, &buffer);
    }

    #[test]
    fn counts_the_sent_and_unsent_content_of_a_reply() {
        let all = HEAD.len() + 100;
        for (mark, left) in [(0, all), (0, 20), (7, 20), (7, 0), (7, 1000)] {
            drain((mark, left, Transfer::Again), 100, 1000, |sink, buffer| {
                let sent = left.min(mark + all);
                assert_eq!((sink.sent, buffer.len()), (sent, mark + all - sent));
                assert!(!sink.broken);
                let expected = Replied { status: 404, bytes: 100, head: HEAD };
                assert_eq!(sink.replied(buffer), expected);
                let tallies = Arc::new(Tallies::default());
                sink.count(buffer, &tallies.lease());
                let sum = tallies.sum();
                assert_eq!((sum.replies, sum.sent), ([0, 0, 0, 1, 0], sent as u64));
            });
        }
    }

    #[test]
    fn keeps_unsent_bytes_up_to_the_limit() {
        let messages = log::test_support::capture();
        let all = HEAD.len() + 100;
        for (unsent, fits) in [(all - 10, true), (all - 11, false)] {
            drain((0, 10, Transfer::Again), 100, unsent, |sink, buffer| {
                assert_eq!((sink.broken, buffer.len()), (!fits, if fits { all - 10 } else { 0 }));
            });
        }
        let messages = messages.end();
        assert_eq!(messages.len(), 1);
        assert!(messages[0].contains("exceeded the limit of"), "{messages:?}");
    }

    #[test]
    fn stops_at_a_client_that_has_closed_or_is_too_slow() {
        for end in [Transfer::TimedOut, Transfer::Ended, Transfer::Fault, Transfer::Broken] {
            drain((0, 10, end), 100, 1000, |sink, buffer| {
                assert!(sink.broken && buffer.is_empty(), "{end:?}");
                assert_eq!(sink.sent, 10);
            });
        }
    }

    /// A short reply is counted when it is complete, and needs no drain.
    #[test]
    fn describes_a_reply_that_was_not_drained() {
        let (settings, budgets) = (Settings::default(), Budgets::default());
        let (mut reserved, owner) = (Reservation::default(), Owner::default());
        let claim = Claim { block: ClientAddress::UNIX.block(), owner: &owner };
        let budget = UnsentBudget { reserved: &mut reserved, budget: &budgets.unsent, claim };
        let mut room = Room { left: 0, end: Transfer::Again, waits: Vec::new() };
        let sink = Sink::new(&mut room, &settings, budget, 3, true, false);
        let output = [b"abc", HEAD, b"12345"].concat();
        assert_eq!(sink.replied(&output), Replied { status: 404, bytes: 5, head: HEAD });
        let tallies = Arc::new(Tallies::default());
        sink.count(&output, &tallies.lease());
        sink.count(&[], &tallies.lease());
        let sum = tallies.sum();
        assert_eq!((sum.replies, sum.sent), ([0, 0, 0, 1, 0], 0));
    }
}

//! Decides how a long page leaves while it is being written.

use crate::access::{Size, measure};
use crate::handler::FilePart;
use crate::link::{Link, Transfer, Way};
use crate::log;
use crate::settings::Settings;

/// A long page's way out while it is being written.
pub(crate) struct Sink<'l, L> {
    link: &'l mut L,
    settings: &'l Settings,
    /// Where this reply begins; earlier ones stand before it.
    mark: usize,
    /// Its status and where its head ends, once a part of it has left.
    begun: Option<(u16, usize)>,
    pub(crate) sent: usize,
    /// Something follows; the head of a HEAD is all there is, and must not wait for more.
    more: bool,
    pub(crate) broken: bool,
}

impl<'l, L: Link> Sink<'l, L> {
    pub(crate) const fn new(
        link: &'l mut L,
        settings: &'l Settings,
        mark: usize,
        more: bool,
    ) -> Self {
        Self { link, settings, mark, begun: None, sent: 0, more, broken: false }
    }

    /// The size of the whole reply, whose end is in `output`.
    pub(crate) fn size(&self, output: &[u8], file: Option<&FilePart>) -> Size {
        match self.begun {
            // The head has left already; what was sent, and what waits, is the rest.
            Some((status, head)) => {
                Size { status, bytes: (self.sent + output.len() - head) as u64 }
            }
            None => Size::of(&output[self.mark..], file),
        }
    }

    /// Sends what the link takes now and leaves the rest, up to the bound on unsent bytes.
    pub(crate) fn drain(&mut self, buffer: &mut Vec<u8>) {
        if self.begun.is_none() {
            let measured = buffer.get(self.mark..).and_then(measure);
            self.begun = measured.map(|(status, head)| (status, self.mark + head));
        }
        self.link.wait_at_most(Way::Out, self.settings.timeouts.write);
        let mut from = 0;
        while from < buffer.len() && !self.broken {
            match self.link.send(&buffer[from..], self.more) {
                Transfer::Moved(count) => from += count,
                Transfer::Again => break,
                Transfer::TimedOut | Transfer::Ended | Transfer::Broken => self.broken = true,
            }
        }
        self.sent += from;
        buffer.drain(..from);
        if buffer.len() > self.settings.unsent {
            let most = self.settings.unsent;
            log::warn(format_args!("a page outgrew the {most} unsent bytes allowed"));
            self.broken = true;
        }
        if self.broken {
            buffer.clear();
        }
    }
}

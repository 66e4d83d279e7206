//! The encoder of one stream, and the bound on streams that are compressed at one time.

use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use bine_compression::{Encoder, Level};
use bine_http::Coding;
use bine_server::{AddressBlock, ContentEncoder};

use super::counters::Counters;
use crate::client_places::ClientPlace;

/// The part of the places that one client may take, if it is not on this machine: 1/4.
const BLOCK_FRACTION: usize = 4;

/// Compresses a stream. It counts against the bound until it is dropped.
pub(super) struct StreamEncoder {
    /// `None` after the end.
    encoder: Option<Encoder>,
    coding: Coding,
    counters: Arc<Counters>,
    _place: ClientPlace,
}

impl StreamEncoder {
    /// Creates an encoder for a client, unless `most` streams are compressed already, a quarter of them
    /// for the client's address block, or there is too little memory. Clients on this machine, among
    /// them proxies, may have nine tenths.
    pub(super) fn new(
        coding: Coding,
        level: Level,
        (most, block): (usize, AddressBlock),
        counters: &Arc<Counters>,
    ) -> Option<Self> {
        let part = if block.is_local() {
            most.saturating_mul(9).div_ceil(10)
        } else {
            most / BLOCK_FRACTION
        };
        let Some(place) = counters.streams.take_for(block, most, part.max(1)) else {
            counters.refused_streams.fetch_add(1, Ordering::Relaxed);
            return None;
        };
        let encoder = Some(Encoder::for_stream(coding, level).ok()?);
        Some(Self { encoder, coding, counters: Arc::clone(counters), _place: place })
    }

    fn count(&self, before: usize, after: usize) {
        self.counters.add(self.coding, before as u64, after as u64);
    }
}

impl ContentEncoder for StreamEncoder {
    fn encode(&mut self, piece: &[u8], flushes: bool, out: &mut Vec<u8>) -> io::Result<()> {
        let start = out.len();
        let encoder = self.encoder.as_mut().ok_or_else(|| io::Error::other("it has ended"))?;
        encoder.write(piece, out)?;
        if flushes {
            encoder.flush(out)?;
        }
        self.count(piece.len(), out.len() - start);
        Ok(())
    }

    fn finish(&mut self, out: &mut Vec<u8>) -> io::Result<()> {
        let start = out.len();
        let encoder = self.encoder.take().ok_or_else(|| io::Error::other("it has ended"))?;
        encoder.finish(out)?;
        self.count(0, out.len() - start);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds_streams_at_one_time() {
        let counters = Arc::new(Counters::default());
        let block = |number: u8| AddressBlock::of([10, 0, number, 1].into());
        let open = |number, most| {
            StreamEncoder::new(Coding::Gzip, Level::Fast, (most, block(number)), &counters)
        };
        let quarter = (open(1, 8).unwrap(), open(1, 8).unwrap());
        assert!(open(1, 8).is_none(), "one client has its part");
        let rest: Vec<_> = (2..5).flat_map(|number| [open(number, 8), open(number, 8)]).collect();
        assert!(rest.iter().all(Option::is_some));
        assert!(open(9, 8).is_none(), "all places are taken");
        assert_eq!(counters.refused_streams.load(Ordering::Relaxed), 2);
        drop(quarter.0);
        assert!(open(9, 8).is_some());
        drop((quarter.1, rest));
        assert_eq!(counters.streams.count(), 0);
        // Each client may have one, and those on this machine share nine tenths.
        assert!(open(1, 1).is_some());
        let local = || {
            let most = (10, AddressBlock::LOCAL);
            StreamEncoder::new(Coding::Gzip, Level::Fast, most, &counters)
        };
        let own: Vec<_> = (0..9).map(|_| local().unwrap()).collect();
        assert!(local().is_none());
        drop(own);
    }
}

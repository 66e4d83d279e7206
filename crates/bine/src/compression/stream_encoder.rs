//! The encoder of one stream, and the bound on streams that are compressed at one time.

use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use bine_compression::{Encoder, Level};
use bine_http::Coding;
use bine_server::ContentEncoder;

use super::counters::Counters;

/// Compresses a stream. It counts against the bound until it is dropped.
pub(super) struct StreamEncoder {
    /// `None` after the end.
    encoder: Option<Encoder>,
    coding: Coding,
    counters: Arc<Counters>,
}

impl StreamEncoder {
    /// Creates an encoder, unless `most` streams are compressed already or there is too little memory.
    pub(super) fn new(
        coding: Coding,
        level: Level,
        most: usize,
        counters: &Arc<Counters>,
    ) -> Option<Self> {
        let next = |streams: usize| (streams < most).then_some(streams + 1);
        let place = counters.streams.fetch_update(Ordering::Relaxed, Ordering::Relaxed, next);
        if place.is_err() {
            counters.refused_streams.fetch_add(1, Ordering::Relaxed);
            return None;
        }
        // From here on, the drop of this value frees its place.
        let mut own = Self { encoder: None, coding, counters: Arc::clone(counters) };
        own.encoder = Some(Encoder::for_stream(coding, level).ok()?);
        Some(own)
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

impl Drop for StreamEncoder {
    fn drop(&mut self) {
        self.counters.streams.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds_streams_at_one_time() {
        let counters = Arc::new(Counters::default());
        let open = || StreamEncoder::new(Coding::Gzip, Level::Fast, 2, &counters);
        let (first, second) = (open().unwrap(), open().unwrap());
        assert!(open().is_none());
        assert_eq!(counters.refused_streams.load(Ordering::Relaxed), 1);
        drop(first);
        assert!(open().is_some());
        drop(second);
        assert_eq!(counters.streams.load(Ordering::Relaxed), 0);
    }
}

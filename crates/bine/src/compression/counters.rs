//! The numbers of compressed responses, for the metrics.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bine_http::Coding;

use crate::client_places::ClientPlaces;
use crate::prometheus::PrometheusText;

/// What the stage has compressed since the start.
#[derive(Debug, Default)]
pub(super) struct Counters {
    codings: [CodingCounters; Coding::ALL.len()],
    /// Responses from the cache.
    pub(super) cached: AtomicU64,
    /// Streams that are compressed now.
    pub(super) streams: Arc<ClientPlaces>,
    /// Streams that were sent as they are, because too many were compressed.
    pub(super) refused_streams: AtomicU64,
}

#[derive(Debug, Default)]
struct CodingCounters {
    before: AtomicU64,
    after: AtomicU64,
}

impl Counters {
    /// Counts encoded content in bytes.
    pub(super) fn add(&self, coding: Coding, before: u64, after: u64) {
        let own = &self.codings[coding.index()];
        own.before.fetch_add(before, Ordering::Relaxed);
        own.after.fetch_add(after, Ordering::Relaxed);
    }

    pub(super) fn write(&self, text: &mut PrometheusText) {
        let load = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let mut before = text.counter(
            "bine_compression_content_bytes_total",
            "Bytes of content before compression.",
        );
        for coding in Coding::ALL {
            before.with(&[("encoding", coding.name())], load(&self.codings[coding.index()].before));
        }
        let mut after = text
            .counter("bine_compression_sent_bytes_total", "Bytes of content after compression.");
        for coding in Coding::ALL {
            after.with(&[("encoding", coding.name())], load(&self.codings[coding.index()].after));
        }
        text.counter(
            "bine_compression_cached_responses_total",
            "Responses whose compressed content was in the cache.",
        )
        .is(load(&self.cached));
        text.gauge("bine_compression_streams", "Streams that are compressed now.")
            .is(self.streams.count());
        text.counter(
            "bine_compression_refused_streams_total",
            "Streams sent without compression, because too many were compressed.",
        )
        .is(load(&self.refused_streams));
    }
}

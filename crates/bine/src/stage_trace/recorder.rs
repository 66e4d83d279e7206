//! The subscriber of `tracing` that records spans.

use std::cell::RefCell;
use std::collections::HashMap;
use std::fmt::Debug;
use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use tracing::field::{Field, Visit};
use tracing::level_filters::LevelFilter;
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Metadata, Subscriber};

use super::trace_file::{SpanTimes, TraceFile};

/// The spans that exist at one time. A span beyond them is not recorded.
const MAX_SPANS: usize = 65_536;
/// The spans that one thread is in at one time. One beyond them is not recorded.
const MAX_DEPTH: usize = 256;

/// Called with the number of spans when the file is complete.
pub(super) type OnWritten = fn(io::Result<u64>);

/// What all threads share. The subscriber keeps it after the recording.
pub(super) struct TraceRecorder {
    is_on: AtomicBool,
    next_span: AtomicU64,
    began: Instant,
    state: Mutex<RecorderState>,
    on_written: OnWritten,
}

struct RecorderState {
    /// The spans that exist, by number.
    spans: HashMap<u64, KnownSpan>,
    /// `None`: the recording has ended.
    file: Option<TraceFile>,
}

struct KnownSpan {
    metadata: &'static Metadata<'static>,
    route: Option<String>,
    /// The number of its handles.
    handles: usize,
}

static NEXT_THREAD: AtomicU64 = AtomicU64::new(1);

thread_local! {
    static THREAD: u64 = NEXT_THREAD.fetch_add(1, Ordering::Relaxed);
    /// The spans that this thread is in, and since when.
    static ENTERED: RefCell<Vec<(u64, Instant)>> = const { RefCell::new(Vec::new()) };
}

impl TraceRecorder {
    pub(super) fn new(file: TraceFile, on_written: OnWritten) -> Arc<Self> {
        Arc::new(Self {
            is_on: AtomicBool::new(true),
            next_span: AtomicU64::new(1),
            began: Instant::now(),
            state: Mutex::new(RecorderState { spans: HashMap::new(), file: Some(file) }),
            on_written,
        })
    }

    /// Completes the file, if that has not happened.
    pub(super) fn finish(&self) {
        if let Some(file) = self.end() {
            (self.on_written)(file.finish());
        }
    }

    /// Ends the recording. Returns the file, unless it has ended before.
    fn end(&self) -> Option<TraceFile> {
        self.is_on.store(false, Ordering::Relaxed);
        let file = {
            let mut state = self.state();
            state.spans = HashMap::new();
            state.file.take()?
        };
        // From now on, an entered stage costs one load and one branch again.
        tracing::callsite::rebuild_interest_cache();
        Some(file)
    }

    fn state(&self) -> MutexGuard<'_, RecorderState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn add(&self, number: u64, began: Instant) {
        let now = Instant::now();
        let mut state = self.state();
        let RecorderState { spans, file: Some(file) } = &mut *state else { return };
        let Some(span) = spans.get(&number) else { return };
        let added = file.add(&SpanTimes {
            name: span.metadata.name(),
            target: span.metadata.target(),
            route: span.route.as_deref(),
            thread: THREAD.with(|thread| *thread),
            began: began.saturating_duration_since(self.began),
            took: now.saturating_duration_since(began),
        });
        let is_full = file.is_full();
        drop(state);
        match added {
            Ok(()) if is_full => self.finish(),
            Ok(()) => {}
            Err(error) => {
                if self.end().is_some() {
                    (self.on_written)(Err(error));
                }
            }
        }
    }
}

/// The field `route` of a span.
struct RouteField(Option<String>);

impl Visit for RouteField {
    fn record_str(&mut self, field: &Field, value: &str) {
        if field.name() == "route" {
            self.0 = Some(value.to_owned());
        }
    }

    fn record_debug(&mut self, _field: &Field, _value: &dyn Debug) {}
}

/// The recorder as a subscriber.
pub(super) struct TraceSubscriber(pub(super) Arc<TraceRecorder>);

impl Subscriber for TraceSubscriber {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.is_span() && self.0.is_on.load(Ordering::Relaxed)
    }

    fn max_level_hint(&self) -> Option<LevelFilter> {
        let is_on = self.0.is_on.load(Ordering::Relaxed);
        Some(if is_on { LevelFilter::TRACE } else { LevelFilter::OFF })
    }

    fn new_span(&self, attributes: &Attributes<'_>) -> Id {
        let number = self.0.next_span.fetch_add(1, Ordering::Relaxed);
        let mut route = RouteField(None);
        attributes.record(&mut route);
        let mut state = self.0.state();
        if state.file.is_some() && state.spans.len() < MAX_SPANS {
            let metadata = attributes.metadata();
            state.spans.insert(number, KnownSpan { metadata, route: route.0, handles: 1 });
        }
        Id::from_u64(number)
    }

    fn clone_span(&self, id: &Id) -> Id {
        if let Some(span) = self.0.state().spans.get_mut(&id.into_u64()) {
            span.handles += 1;
        }
        id.clone()
    }

    fn try_close(&self, id: Id) -> bool {
        let mut state = self.0.state();
        let Some(span) = state.spans.get_mut(&id.into_u64()) else { return false };
        span.handles -= 1;
        let is_last = span.handles == 0;
        if is_last {
            state.spans.remove(&id.into_u64());
        }
        is_last
    }

    fn enter(&self, id: &Id) {
        ENTERED.with_borrow_mut(|entered| {
            if entered.len() < MAX_DEPTH {
                entered.push((id.into_u64(), Instant::now()));
            }
        });
    }

    fn exit(&self, id: &Id) {
        let number = id.into_u64();
        let began = ENTERED.with_borrow_mut(|entered| {
            let place = entered.iter().rposition(|(each, _)| *each == number)?;
            Some(entered.remove(place).1)
        });
        if let Some(began) = began {
            self.0.add(number, began);
        }
    }

    fn record(&self, _span: &Id, _values: &Record<'_>) {}

    fn record_follows_from(&self, _span: &Id, _follows: &Id) {}

    fn event(&self, _event: &Event<'_>) {}
}

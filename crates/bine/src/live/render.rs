//! One render of a page: records the data that it reads, from the store and about its visitor, and
//! the regions that it writes.
//!
//! Only renders for followers are recorded; any other render pays for one look at a thread-local
//! variable.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bine_html::{Region, RegionHash};

use super::mailbox::Mailbox;
use super::presence::PagePresence;
use crate::signal_core::{SignalCore, SignalListener, SignalRead};
use crate::store::{ReadSet, Recorder};
use crate::trace::{self, RenderTrace, RequestDependency};

/// One render of a page.
pub(crate) struct Render {
    recorder: Recorder,
    recorded: Mutex<RenderRecord>,
    /// Total run time so far, in nanoseconds.
    run_time: AtomicU64,
    /// Notified when a signal changes that the render has read.
    mailbox: Arc<Mailbox>,
}

/// The data that a render records.
#[derive(Default)]
pub(super) struct RenderRecord {
    /// The properties of the visitor that the render read, each once, in order.
    pub(super) scope: Scope,
    pub(super) regions: Vec<RenderedRegion>,
    /// The rows and ranges that it read.
    pub(super) reads: ReadSet,
    /// The signals that it read, with their versions.
    pub(super) signals: Vec<SignalRead>,
    /// When the session that it read expires, in seconds since 1970.
    pub(super) expires_at: Option<u64>,
    /// The presence of the page, if the render read it.
    pub(super) presence: Option<Arc<PagePresence>>,
    /// Whether it changed tables, which it may also display.
    pub(super) has_written: bool,
    /// The version of the program, and of the page itself if it can change while the program runs.
    pub(super) version: Option<u64>,
    /// Its run time.
    pub(super) cost: Duration,
}

/// The properties of the visitor that a render read, with their values.
pub(super) type Scope = Vec<(RequestDependency, Box<[u8]>)>;

/// A region as one render wrote it.
pub(super) struct RenderedRegion {
    pub(super) hash: RegionHash,
    pub(super) markup: Box<[u8]>,
    /// How many of the render's reads happened before the region's end.
    pub(super) reads: usize,
    /// How many of the render's signals were read before the region's end.
    pub(super) signals: usize,
}

impl Render {
    /// `whole_request`: the bytes of the request, if a middleware that records no dependency may
    /// have read it.
    pub(super) fn new(mailbox: Arc<Mailbox>, whole_request: Option<Box<[u8]>>) -> Self {
        let scope =
            whole_request.map(|whole| (RequestDependency::Whole, whole)).into_iter().collect();
        let recorded = Mutex::new(RenderRecord { scope, ..RenderRecord::default() });
        Self { recorder: Recorder::default(), recorded, run_time: AtomicU64::new(0), mailbox }
    }

    /// The render that this thread runs, if any.
    pub(crate) fn current() -> Option<Arc<Self>> {
        trace::current_as()
    }

    /// Runs a part of the render on this thread.
    pub(crate) fn within<T>(self: &Arc<Self>, part: impl FnOnce() -> T) -> T {
        let own: Arc<dyn RenderTrace> = Arc::<Self>::clone(self);
        trace::within(&own, part)
    }

    /// Adds the run time of a part.
    pub(super) fn add_time(&self, time: Duration) {
        let run_time = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        self.run_time.fetch_add(run_time, Ordering::Relaxed);
    }

    /// The run time of all parts so far.
    pub(super) fn cost(&self) -> Duration {
        Duration::from_nanos(self.run_time.load(Ordering::Relaxed))
    }

    /// Records that the page displays its present users.
    pub(super) fn record_presence(&self, place: &Arc<PagePresence>) {
        self.recorded().presence = Some(Arc::clone(place));
    }

    fn reads_so_far(&self) -> RegionReads {
        let (reads, signals) = (self.recorder.count(), self.recorded().signals.len());
        RegionReads { reads, signals }
    }

    fn write(&self, region: Region<'_>, read: RegionReads) {
        let RegionReads { reads, signals } = read;
        self.recorded().regions.push(RenderedRegion {
            hash: region.hash,
            markup: region.markup.into(),
            reads,
            signals,
        });
    }

    /// Takes the record. Anything recorded later is lost.
    pub(super) fn take(&self) -> RenderRecord {
        let (reads, has_written) = (self.recorder.reads(), self.recorder.has_written());
        let mut recorded = std::mem::take(&mut *self.recorded());
        recorded.has_written |= has_written;
        RenderRecord { reads, cost: self.cost(), ..recorded }
    }

    fn recorded(&self) -> MutexGuard<'_, RenderRecord> {
        self.recorded.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl RenderTrace for Render {
    fn record(&self, dependency: RequestDependency, value: Box<[u8]>) {
        let (mut recorded, read) = (self.recorded(), (dependency, value));
        if !recorded.scope.contains(&read) {
            recorded.scope.push(read);
        }
    }

    fn record_expiry(&self, second: u64) {
        let mut recorded = self.recorded();
        recorded.expires_at =
            Some(recorded.expires_at.map_or(second, |expires_at| expires_at.min(second)));
    }

    fn record_signal(&self, signal: &Arc<SignalCore>) {
        let listener: Arc<dyn SignalListener> = Arc::<Mailbox>::clone(&self.mailbox);
        let read = signal.read(&listener);
        let mut recorded = self.recorded();
        if !recorded.signals.iter().any(|known| known.is_same(&read)) {
            recorded.signals.push(read);
        }
    }

    fn record_write(&self) {
        self.recorded().has_written = true;
    }

    fn record_version(&self, version: u64) {
        self.recorded().version = Some(version);
    }

    fn observe(&self, part: &mut dyn FnMut()) {
        self.recorder.scope(part);
    }
}

/// How much a render had read at the end of a region.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RegionReads {
    reads: usize,
    signals: usize,
}

/// Records a region. `html!` writes calls of this function.
#[doc(hidden)]
pub fn seen(region: Region<'_>) {
    if let Some(render) = Render::current() {
        render.write(region, render.reads_so_far());
    }
}

/// How much the render of this thread has read so far, if it runs one.
#[cfg(feature = "script")]
pub(crate) fn reads_so_far() -> Option<RegionReads> {
    Render::current().map(|render| render.reads_so_far())
}

/// Records a region whose content was known before it is written. `read`: what the render had read at
/// that time; by default, all that it has read.
#[cfg(feature = "script")]
pub(crate) fn seen_after(region: Region<'_>, read: Option<RegionReads>) {
    if let Some(render) = Render::current() {
        render.write(region, read.unwrap_or_else(|| render.reads_so_far()));
    }
}

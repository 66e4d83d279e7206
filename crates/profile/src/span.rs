//! The stage and the route for which a thread works now, and the number of requests.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::marker::PhantomData;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use crate::stage::Stage;
#[cfg(feature = "tracing")]
use crate::traced;

/// No profile is recorded.
const OFF: u8 = 0;
/// Requests are counted, until allocations are recorded.
const WAITING: u8 = 1;
/// Allocations are recorded.
const RECORDING: u8 = 2;

static STATE: AtomicU8 = AtomicU8::new(OFF);
/// The number of requests since the start of the recording, with those that are left out.
static REQUESTS: AtomicU64 = AtomicU64::new(0);
/// The number of requests that are left out at the beginning.
static AFTER: AtomicU64 = AtomicU64::new(0);
/// The number of requests at which the recording ends, with those that are left out.
static LAST: AtomicU64 = AtomicU64::new(u64::MAX);
/// The number of requests of each route while allocations are recorded.
static ROUTES: Mutex<BTreeMap<&'static str, u64>> = Mutex::new(BTreeMap::new());

/// Called once when the last request of a recording has ended.
static ON_LAST: Mutex<Option<fn()>> = Mutex::new(None);

/// The most routes that are counted. The names are those of functions, so a program has fewer.
const MAX_ROUTES: usize = 4096;

// Constant values without a destructor: an access allocates nothing, and is valid at any time.
thread_local! {
    static STAGE: Cell<Stage> = const { Cell::new(Stage::Outside) };
    static ROUTE: Cell<&'static str> = const { Cell::new("") };
    /// Whether this thread works for the profile itself, so that its allocations do not count.
    static IS_EXEMPT: Cell<bool> = const { Cell::new(false) };
}

/// Whether allocations are recorded.
#[inline]
pub(crate) fn is_recording() -> bool {
    STATE.load(Ordering::Relaxed) == RECORDING
}

#[inline]
fn is_on() -> bool {
    STATE.load(Ordering::Relaxed) != OFF
}

/// Starts to count requests. Allocations are recorded after `after` requests, for `requests` requests.
/// When the next request after those arrives, `on_last` is called on its thread.
pub(crate) fn begin(after: u64, requests: Option<u64>, on_last: fn()) {
    let last = requests.map_or(u64::MAX, |requests| after.saturating_add(requests));
    REQUESTS.store(0, Ordering::Relaxed);
    AFTER.store(after, Ordering::Relaxed);
    LAST.store(last, Ordering::Relaxed);
    ROUTES.lock().unwrap_or_else(PoisonError::into_inner).clear();
    *ON_LAST.lock().unwrap_or_else(PoisonError::into_inner) = Some(on_last);
    STATE.store(if after == 0 { RECORDING } else { WAITING }, Ordering::SeqCst);
}

/// Ends the recording. Returns the number of recorded requests, and those of each route.
pub(crate) fn end() -> (u64, Vec<(&'static str, u64)>) {
    STATE.store(OFF, Ordering::SeqCst);
    let all = REQUESTS.load(Ordering::Relaxed).min(LAST.load(Ordering::Relaxed));
    let routes = std::mem::take(&mut *ROUTES.lock().unwrap_or_else(PoisonError::into_inner));
    (all.saturating_sub(AFTER.load(Ordering::Relaxed)), routes.into_iter().collect())
}

/// The stage and the route of this thread.
pub(crate) fn current() -> (Stage, &'static str) {
    (STAGE.get(), ROUTE.get())
}

/// Runs `work` without counting its allocations. Returns `None` if this thread does so already.
#[inline]
pub(crate) fn exempt<T>(work: impl FnOnce() -> T) -> Option<T> {
    if IS_EXEMPT.replace(true) {
        return None;
    }
    let result = work();
    IS_EXEMPT.set(false);
    Some(result)
}

/// Restores the stage of the thread when it is dropped.
#[derive(Debug)]
#[must_use = "the stage ends when this value is dropped"]
pub struct Entered {
    before: Option<Before>,
    /// Closes the span when it is dropped. In a box, because every stage of every request moves and
    /// drops this value, and a span is seldom recorded.
    #[cfg(feature = "tracing")]
    _span: Option<Box<tracing::span::EnteredSpan>>,
    /// It belongs to its thread.
    not_send: PhantomData<*const ()>,
}

#[derive(Clone, Copy, Debug)]
struct Before {
    stage: Stage,
    /// `None`: the route stays.
    route: Option<&'static str>,
}

/// Sets the stage of this thread, until the result is dropped.
#[inline]
pub fn enter(stage: Stage) -> Entered {
    let before = is_on().then(|| Before { stage: STAGE.replace(stage), route: None });
    Entered {
        before,
        #[cfg(feature = "tracing")]
        _span: traced::enter(stage, None),
        not_send: PhantomData,
    }
}

/// Sets the stage and the route of this thread, until the result is dropped.
#[inline]
pub fn enter_route(stage: Stage, route: &'static str) -> Entered {
    let before =
        is_on().then(|| Before { stage: STAGE.replace(stage), route: Some(ROUTE.replace(route)) });
    Entered {
        before,
        #[cfg(feature = "tracing")]
        _span: traced::enter(stage, Some(route)),
        not_send: PhantomData,
    }
}

impl Drop for Entered {
    #[inline]
    fn drop(&mut self) {
        if let Some(Before { stage, route }) = self.before {
            STAGE.set(stage);
            if let Some(route) = route {
                ROUTE.set(route);
            }
        }
    }
}

/// Sets the route of this thread until the next call, for the stages after the handler. An empty
/// name: the route is not known. `route` is called only while a profile is recorded.
#[inline]
pub fn set_route(route: impl FnOnce() -> &'static str) {
    if is_on() {
        ROUTE.set(route());
    }
}

/// Counts a request whose head has arrived. The route of this thread is not known any more.
#[inline]
pub fn begin_request() {
    if is_on() {
        count_request();
    }
}

#[cold]
fn count_request() {
    ROUTE.set("");
    let number = REQUESTS.fetch_add(1, Ordering::Relaxed) + 1;
    if number == AFTER.load(Ordering::Relaxed) + 1 {
        let _ = STATE.compare_exchange(WAITING, RECORDING, Ordering::SeqCst, Ordering::SeqCst);
    }
    if number.checked_sub(1) == Some(LAST.load(Ordering::Relaxed)) {
        STATE.store(OFF, Ordering::SeqCst);
        let on_last = ON_LAST.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(on_last) = on_last {
            on_last();
        }
    }
}

/// Counts a request that the handler of this route has answered. `route` is called only while
/// allocations are recorded.
#[inline]
pub fn count_route(route: impl FnOnce() -> &'static str) {
    if is_recording() {
        count_recorded_route(route());
    }
}

#[cold]
fn count_recorded_route(route: &'static str) {
    exempt(|| {
        let mut routes = ROUTES.lock().unwrap_or_else(PoisonError::into_inner);
        let has_room = routes.len() < MAX_ROUTES;
        if let Some(count) = routes.get_mut(route) {
            *count += 1;
        } else if has_room {
            routes.insert(route, 1);
        }
    });
}

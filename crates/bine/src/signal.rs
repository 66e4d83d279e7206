//! Signals: values in memory whose changes re-render the pages that display them.

use std::fmt;
use std::sync::{Arc, OnceLock, PoisonError, RwLock};

use crate::signal_core::SignalCore;
use crate::trace;

/// A value in memory that pages may display: when it is [set](Self::set), the regions that display
/// it re-render, as after a commit.
///
/// All clones share the value. Keep a signal in the program's state or in a `static`. Each node of a
/// cluster has its own value, unless [`App::shared_signal`](crate::App::shared_signal) names the signal.
///
/// ```
/// use std::sync::LazyLock;
///
/// use bine::prelude::*;
///
/// static DEGREES: LazyLock<Signal<f64>> = LazyLock::new(|| Signal::new(21.5));
///
/// #[page("/")]
/// async fn thermostat() -> impl Page {
///     html!(<h1>Living room</h1> <Live><p>{DEGREES.get()} degrees</p></Live>)
/// }
///
/// // The thread that reads the sensor:
/// DEGREES.set(22.0);
/// # let _ = App::new().page(thermostat);
/// ```
pub struct Signal<T>(Arc<SignalInner<T>>);

struct SignalInner<T> {
    value: RwLock<T>,
    core: Arc<SignalCore>,
    /// Gets each value that this process sets, under the lock of the value.
    on_set: OnceLock<OnSet<T>>,
}

type OnSet<T> = Box<dyn Fn(&T) + Send + Sync>;

impl<T> Signal<T> {
    /// Creates a signal with a first value.
    pub fn new(value: T) -> Self {
        let core = Arc::new(SignalCore::new());
        Self(Arc::new(SignalInner { value: RwLock::new(value), core, on_set: OnceLock::new() }))
    }

    /// The current value.
    pub fn get(&self) -> T
    where
        T: Clone,
    {
        self.with(T::clone)
    }

    /// Borrows the value. `look` must not change this signal.
    pub fn with<R>(&self, look: impl FnOnce(&T) -> R) -> R {
        let SignalInner { value, core, .. } = &*self.0;
        if let Some(trace) = trace::current() {
            // The version must be recorded before the value is read.
            trace.record_signal(core);
        }
        look(&value.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Borrows the value for the program itself: no page depends on it.
    pub(crate) fn with_untracked<R>(&self, look: impl FnOnce(&T) -> R) -> R {
        look(&self.0.value.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Replaces the value. Regions that display the signal re-render, even if the new value is
    /// equal.
    pub fn set(&self, value: T) {
        self.update(|own| *own = value);
    }

    /// Changes the value in place. If `change` panics, regions are not notified of a partial
    /// change.
    pub fn update(&self, change: impl FnOnce(&mut T)) {
        let mut value = self.0.value.write().unwrap_or_else(PoisonError::into_inner);
        change(&mut value);
        if let Some(on_set) = self.0.on_set.get() {
            on_set(&value);
        }
        drop(value);
        self.notify();
    }

    /// Calls this function with each value that is set from now on. Returns false if the signal has
    /// such a function.
    pub(crate) fn on_set(&self, on_set: impl Fn(&T) + Send + Sync + 'static) -> bool {
        self.0.on_set.set(Box::new(on_set)).is_ok()
    }

    /// Replaces the value by one that another node has set.
    pub(crate) fn follow(&self, value: T) {
        *self.0.value.write().unwrap_or_else(PoisonError::into_inner) = value;
        self.0.core.notify();
    }

    /// Re-renders the regions that display the signal, for a value with interior changes.
    pub fn notify(&self) {
        if let Some(trace) = trace::current() {
            trace.record_write();
        }
        self.0.core.notify();
    }
}

impl<T> Clone for Signal<T> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<T: Default> Default for Signal<T> {
    fn default() -> Self {
        Self::new(T::default())
    }
}

impl<T: fmt::Debug> fmt::Debug for Signal<T> {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.with(|value| to.debug_tuple("Signal").field(value).finish())
    }
}

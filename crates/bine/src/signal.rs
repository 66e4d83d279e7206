//! Decides how a value that is in no table moves the pages that show it.

use std::fmt;
use std::sync::{Arc, PoisonError, RwLock};

use crate::signal_core::SignalCore;
use crate::trace;

/// A value in memory that regions of pages may show: when it is [set](Self::set), they follow, as they follow a commit.
///
/// It is shared by all its clones, so it stands in the program's state or in a `static`.
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
/// // Whoever reads the sensor:
/// DEGREES.set(22.0);
/// # let _ = App::new().page(thermostat);
/// ```
pub struct Signal<T>(Arc<Own<T>>);

struct Own<T> {
    value: RwLock<T>,
    core: Arc<SignalCore>,
}

impl<T> Signal<T> {
    /// With a first value.
    pub fn new(value: T) -> Self {
        let core = Arc::new(SignalCore::new());
        Self(Arc::new(Own { value: RwLock::new(value), core }))
    }

    /// The value as it is now.
    pub fn get(&self) -> T
    where
        T: Clone,
    {
        self.with(T::clone)
    }

    /// Looks at the value. `look` must not change this signal.
    pub fn with<R>(&self, look: impl FnOnce(&T) -> R) -> R {
        let Own { value, core } = &*self.0;
        if let Some(trace) = trace::current() {
            // Before the value is read.
            trace.record_signal(core);
        }
        look(&value.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Takes another value. Regions that show the signal follow, also if it is the same.
    pub fn set(&self, value: T) {
        self.update(|own| *own = value);
    }

    /// Changes the value in place. If `change` panics, nobody follows what it may have done.
    pub fn update(&self, change: impl FnOnce(&mut T)) {
        change(&mut self.0.value.write().unwrap_or_else(PoisonError::into_inner));
        self.notify();
    }

    /// Has regions that show the signal follow, where what it holds has changed by itself.
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

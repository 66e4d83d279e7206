//! Decides how a value that is in no table moves the pages that show it.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock, Weak};

use super::mailbox::{Mailbox, News};
use super::run::Run;

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
    core: Arc<Core>,
}

/// What is known of a signal without its type.
struct Core {
    number: u64,
    /// How often it was changed.
    version: AtomicU64,
    /// Who keeps pages up to date that have read it.
    readers: Mutex<Vec<Weak<Mailbox>>>,
}

/// A signal that a run has read.
pub(super) struct Watched {
    core: Arc<Core>,
    version: u64,
}

impl<T> Signal<T> {
    /// With a first value.
    pub fn new(value: T) -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let core = Core { number, version: AtomicU64::new(0), readers: Mutex::default() };
        Self(Arc::new(Own { value: RwLock::new(value), core: Arc::new(core) }))
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
        if let Some(run) = Run::current() {
            core.is_read_by(&run.mailbox);
            // Before the value: one that changes in between is read again for nothing, never missed.
            let version = core.version.load(Ordering::Acquire);
            run.read(Watched { core: Arc::clone(core), version });
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
        let core = &self.0.core;
        if let Some(run) = Run::current() {
            run.write_signal();
        }
        core.version.fetch_add(1, Ordering::Release);
        let mut readers = core.readers.lock().unwrap_or_else(PoisonError::into_inner);
        readers.retain(|reader| match reader.upgrade() {
            Some(reader) => {
                reader.put(News::Signal(core.number));
                true
            }
            None => false,
        });
    }
}

impl Core {
    fn is_read_by(&self, mailbox: &Arc<Mailbox>) {
        let mut readers = self.readers.lock().unwrap_or_else(PoisonError::into_inner);
        let mailbox = Arc::downgrade(mailbox);
        if !readers.iter().any(|reader| reader.ptr_eq(&mailbox)) {
            readers.push(mailbox);
        }
    }
}

impl Watched {
    pub(super) fn number(&self) -> u64 {
        self.core.number
    }

    /// Whether it has the value still that was read.
    pub(super) fn is_current(&self) -> bool {
        self.core.version.load(Ordering::Acquire) == self.version
    }

    pub(super) fn is_same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.core, &other.core) && self.version == other.version
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

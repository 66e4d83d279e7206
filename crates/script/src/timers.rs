//! The timers that a script has set.

use std::any::Any;
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::time::Duration;

use rquickjs::Persistent;

/// The key by which a timer wakes its instance. No operation has it.
pub(crate) const TIMER_KEY: usize = usize::MAX;

/// The timers of one instance.
#[derive(Default)]
pub(crate) struct Timers {
    pub(crate) set: Vec<Timer>,
    pub(crate) last_id: u32,
    /// The sleep until the first timer is due.
    pub(crate) sleep: Option<Sleep>,
}

pub(crate) struct Sleep {
    pub(crate) until: Duration,
    pub(crate) future: Pin<Box<dyn Future<Output = ()>>>,
}

/// A timer.
#[derive(Clone)]
pub(crate) struct Timer {
    pub(crate) id: u32,
    pub(crate) due: Duration,
    pub(crate) period: Option<Duration>,
    pub(crate) function: Persistent<rquickjs::Function<'static>>,
    pub(crate) arguments: Vec<Persistent<rquickjs::Value<'static>>>,
    /// The context in which it was set.
    pub(crate) context: Option<Rc<dyn Any>>,
}

impl Timers {
    pub(crate) fn is_empty(&self) -> bool {
        self.set.is_empty()
    }

    /// When the first timer is due.
    pub(crate) fn first_due(&self) -> Option<Duration> {
        self.set.iter().map(|timer| timer.due).min()
    }

    /// The timers that are due, earliest first.
    pub(crate) fn due(&self, now: Duration) -> Vec<u32> {
        let mut due: Vec<_> = self.set.iter().filter(|timer| timer.due <= now).collect();
        due.sort_by_key(|timer| (timer.due, timer.id));
        due.into_iter().map(|timer| timer.id).collect()
    }

    pub(crate) fn position(&self, id: u32) -> Option<usize> {
        self.set.iter().position(|timer| timer.id == id)
    }
}

//! Records the parts of a request that a live page depends on.
//!
//! A page that a client subscribes to is rendered with a [`RenderTrace`]. Extractors, filters and
//! sessions record each access to the request there, so that two clients share a render only if all
//! its dependencies are equal. Any other request costs one access to a thread-local variable.

use std::any::Any;
use std::cell::RefCell;
use std::sync::Arc;

use crate::response_notes::{note_field, note_secrets};
use crate::signal_core::SignalCore;

/// A part of a request. A response may differ between clients that differ in it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) enum RequestDependency {
    /// The logged-in user, but no further part of the session.
    User,
    /// The session. One user may have several.
    Session,
    /// The cookie of this name.
    Cookie(&'static str),
    /// The header field of this name, spelled as the argument: `user_agent`.
    Header(&'static str),
    /// Header fields or the address that a filter or a service read.
    Filtered,
    /// The whole request.
    Whole,
}

/// The record of one render.
pub(crate) trait RenderTrace: Any + Send + Sync {
    /// Records that the render depends on this part of its request, with this value.
    fn record(&self, dependency: RequestDependency, value: Box<[u8]>);

    /// Records that a dependency of the render expires at `second`, in seconds since 1970.
    fn record_expiry(&self, second: u64);

    /// Records a read of a signal that follows this call.
    fn record_signal(&self, signal: &Arc<SignalCore>);

    /// Records that the render has changed something that pages may display, perhaps the page
    /// itself.
    fn record_write(&self);

    /// Records the version with which the page is marked.
    fn record_version(&self, version: u64);

    /// Calls `part` and observes further dependencies, such as reads of tables.
    fn observe(&self, part: &mut dyn FnMut());
}

thread_local! {
    /// The trace of the current render on this thread.
    static CURRENT: RefCell<Option<Arc<dyn RenderTrace>>> = const { RefCell::new(None) };
}

/// The trace of the current render on this thread, if there is one.
pub(crate) fn current() -> Option<Arc<dyn RenderTrace>> {
    CURRENT.with_borrow(Clone::clone)
}

/// The trace of the current render, if it is a `T`.
pub(crate) fn current_as<T: RenderTrace>() -> Option<Arc<T>> {
    let trace: Arc<dyn Any + Send + Sync> = current()?;
    trace.downcast().ok()
}

/// Runs a part of a render on this thread.
pub(crate) fn within<T>(trace: &Arc<dyn RenderTrace>, part: impl FnOnce() -> T) -> T {
    let _outer = Outer(CURRENT.replace(Some(Arc::clone(trace))));
    let (mut part, mut result) = (Some(part), None);
    trace.observe(&mut || result = part.take().map(|part| part()));
    result.expect("a trace calls the part that it observes")
}

impl RequestDependency {
    /// Records this dependency with the current render on this thread, if there is one.
    pub(crate) fn note(self, value: impl FnOnce() -> Vec<u8>) {
        self.note_for(current().as_deref(), value);
    }

    /// Records this dependency with a render that may continue on any thread.
    pub(crate) fn note_for(self, trace: Option<&dyn RenderTrace>, value: impl FnOnce() -> Vec<u8>) {
        if let Some(trace) = trace {
            trace.record(self, value().into());
        }
        // Sessions and users mark the head of the response itself.
        match self {
            Self::Cookie(_) | Self::Whole => note_secrets(),
            Self::Header(name) => note_field(name),
            Self::User | Self::Session | Self::Filtered => {}
        }
        #[cfg(test)]
        testing::NOTED.with_borrow_mut(|noted| noted.push(self));
    }
}

/// Restores the thread's previous trace, also after a panic.
struct Outer(Option<Arc<dyn RenderTrace>>);

impl Drop for Outer {
    fn drop(&mut self) {
        CURRENT.set(self.0.take());
    }
}

#[cfg(test)]
pub(crate) mod testing {
    use std::cell::RefCell;

    use super::RequestDependency;

    thread_local! {
        pub(super) static NOTED: RefCell<Vec<RequestDependency>> = const { RefCell::new(Vec::new()) };
    }

    /// The dependencies that `run` records, in order.
    pub(crate) fn dependencies_of(run: impl FnOnce()) -> Vec<RequestDependency> {
        NOTED.take();
        run();
        NOTED.take()
    }
}

//! The state that all requests of a program share.

use std::any::{Any, TypeId};
use std::borrow::Cow;
use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};
use std::sync::{Arc, Mutex, PoisonError, Weak};

use bine_server::Handler;

use crate::access_guard::AccessGuard;
use crate::request_session::SessionProvider;
use crate::router::Router;
use crate::templates::Templates;

/// The state that all requests of a program share.
pub(crate) struct AppState {
    /// Values that a program or a subsystem has registered, found by type.
    pub(crate) states: States,
    /// The session store, in a program with sessions.
    pub(crate) sessions: Option<Arc<dyn SessionProvider>>,
    /// Decides which users may use which paths; `None`: no path has a rule.
    pub(crate) guard: Option<Arc<dyn AccessGuard>>,
    /// Whether requests may have credentials, which may not permit the request.
    pub(crate) has_credentials: bool,
    pub(crate) templates: Templates,
    /// Whether a pending handler's response may need the request, as channels do.
    pub(crate) may_need_request: bool,
    pub(crate) redirect_targets: RedirectTargets,
    /// The handler of the whole program, with its middleware, once it is known. Weak, because the
    /// handler owns this state.
    pub(crate) own_handler: OwnHandler,
}

/// The current handler of a program.
pub(crate) type OwnHandler = Mutex<Option<Weak<dyn Handler>>>;

impl AppState {
    /// The handler of the whole program, for requests that the program sends to itself.
    pub(crate) fn handler(&self) -> Option<Arc<dyn Handler>> {
        let own = self.own_handler.lock().unwrap_or_else(PoisonError::into_inner);
        own.as_ref().and_then(Weak::upgrade)
    }

    /// Replaces the handler.
    pub(crate) fn use_handler(&self, handler: &Arc<dyn Handler>) {
        let mut own = self.own_handler.lock().unwrap_or_else(PoisonError::into_inner);
        *own = Some(Arc::downgrade(handler));
    }
}

/// Shared values, one of each type.
#[derive(Clone, Default)]
pub(crate) struct States(HashMap<TypeId, Arc<dyn Any + Send + Sync>, BuildHasherDefault<IdHasher>>);

impl States {
    /// Registers a value. Returns whether it is the first of this type.
    pub(crate) fn add<T: Send + Sync + 'static>(&mut self, state: T) -> bool {
        self.share(Arc::new(state))
    }

    /// Registers a value that is already shared. Returns whether it is the first of this type.
    pub(crate) fn share<T: Send + Sync + 'static>(&mut self, state: Arc<T>) -> bool {
        self.0.insert(TypeId::of::<T>(), state).is_none()
    }

    pub(crate) fn has(&self, kind: TypeId) -> bool {
        self.0.contains_key(&kind)
    }

    /// The value of this type.
    pub(crate) fn find<T: Send + Sync + 'static>(&self) -> Option<&T> {
        self.0.get(&TypeId::of::<T>())?.downcast_ref()
    }

    /// A shared reference to the value of this type.
    pub(crate) fn find_shared<T: Send + Sync + 'static>(&self) -> Option<Arc<T>> {
        Arc::clone(self.0.get(&TypeId::of::<T>())?).downcast().ok()
    }
}

/// A hasher that uses a [`TypeId`] as its own hash, since it is one.
#[derive(Default)]
struct IdHasher(u64);

impl Hasher for IdHasher {
    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = self.0.rotate_left(8) ^ u64::from(*byte);
        }
    }

    fn write_u64(&mut self, number: u64) {
        self.0 = number;
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

/// A shared value that a handler requires. A program that lacks it does not start.
#[derive(Debug)]
pub(crate) struct Requirement {
    pub(crate) kind: TypeId,
    /// The end of a sentence that begins with the handler's name: what it takes, and how to add
    /// that.
    pub(crate) complaint: Cow<'static, str>,
}

impl Requirement {
    pub(crate) fn of<T: 'static>(complaint: impl Into<Cow<'static, str>>) -> Self {
        Self { kind: TypeId::of::<T>(), complaint: complaint.into() }
    }
}

/// The paths that a client may be redirected to.
#[derive(Default)]
pub(crate) struct RedirectTargets {
    pub(crate) router: Arc<Router>,
    /// For each route of the router, whether it answers GET.
    pub(crate) answers_get: Box<[bool]>,
}

impl RedirectTargets {
    /// Whether a redirect may lead to this path and query. Routes that only answer other methods
    /// are excluded.
    pub(crate) fn may_redirect_to(&self, target: &str) -> bool {
        let path = target.split('?').next().unwrap_or_default();
        // A path without a route may be a file.
        self.router.find(path).is_none_or(|place| self.answers_get[place])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_one_value_of_each_type() {
        let mut states = States::default();
        assert!(states.add(1_u8) && states.add(2_u16) && states.share(Arc::new("three")));
        assert!(!states.add(4_u8));
        assert_eq!(states.find::<u8>(), Some(&4));
        assert_eq!(states.find::<u16>(), Some(&2));
        assert_eq!(states.find_shared::<&str>().as_deref(), Some(&"three"));
        assert_eq!(states.find::<u32>(), None);
        assert!(states.has(TypeId::of::<u16>()) && !states.has(TypeId::of::<u32>()));
    }
}

//! The values that all requests of a program share.

use std::any::{Any, TypeId};
use std::borrow::Cow;
use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};
use std::sync::Arc;

use crate::look::Look;
use crate::request_session::SessionProvider;
use crate::router::Router;

/// The values that all requests of a program share.
pub(crate) struct AppState {
    /// Values that a program or a subsystem has registered, each found by its type.
    pub(crate) states: States,
    /// The sessions, of a program that has some.
    pub(crate) sessions: Option<Arc<dyn SessionProvider>>,
    pub(crate) look: Look,
    /// A handler that is not ready at once may answer with something that wants to see the request, such as channels.
    pub(crate) may_ask_later: bool,
    pub(crate) places: Places,
}

/// Shared values, one of each type.
#[derive(Clone, Default)]
pub(crate) struct States(HashMap<TypeId, Arc<dyn Any + Send + Sync>, BuildHasherDefault<IdHasher>>);

impl States {
    /// Registers a value. Returns whether there was none of this type before.
    pub(crate) fn add<T: Send + Sync + 'static>(&mut self, state: T) -> bool {
        self.share(Arc::new(state))
    }

    /// Registers a value that others have too. Returns whether there was none of this type before.
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

    /// The value of this type, to be kept.
    pub(crate) fn find_shared<T: Send + Sync + 'static>(&self) -> Option<Arc<T>> {
        Arc::clone(self.0.get(&TypeId::of::<T>())?).downcast().ok()
    }
}

/// Takes a [`TypeId`] as its own hash, since it is one.
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

/// A shared value that a handler cannot do without. A program that lacks it does not start.
#[derive(Debug)]
pub(crate) struct Requirement {
    pub(crate) kind: TypeId,
    /// The end of a sentence that begins with the handler's name: what it takes, and how the program gets that.
    pub(crate) complaint: Cow<'static, str>,
}

impl Requirement {
    pub(crate) fn of<T: 'static>(complaint: impl Into<Cow<'static, str>>) -> Self {
        Self { kind: TypeId::of::<T>(), complaint: complaint.into() }
    }
}

/// Which paths are shown to whoever asks for them.
#[derive(Default)]
pub(crate) struct Places {
    pub(crate) router: Arc<Router>,
    /// Whether anything at a place of the router answers GET.
    pub(crate) are_shown: Box<[bool]>,
}

impl Places {
    /// Whether somebody may be sent to this path and query: not where only other methods are answered.
    pub(crate) fn may_be_shown(&self, target: &str) -> bool {
        let path = target.split('?').next().unwrap_or_default();
        // There may be a file.
        self.router.find(path).is_none_or(|place| self.are_shown[place])
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

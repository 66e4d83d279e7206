//! Decides how a program's own values reach its handlers: by type.

use std::any::{Any, TypeId, type_name};
use std::collections::HashMap;
use std::ops::Deref;
use std::sync::Arc;

use super::{Argument, Arguments, Needs, Rejection};

/// A value that the whole program shares, given to [`App::state`](crate::App::state) and found by its type.
///
/// A page that takes a state which the program does not have keeps the program from starting.
#[derive(Debug)]
pub struct State<T>(Arc<T>);

impl<T> Deref for State<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}

impl<T> Clone for State<T> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<T: Send + Sync + 'static> Argument for State<T> {
    fn take(request: &mut Arguments<'_>, name: &'static str) -> Result<Self, Rejection> {
        let found = request.states.take();
        found.ok_or_else(|| Rejection::bad(name, "is no state of this program"))
    }

    fn needs(needs: &mut Needs) {
        needs.states.push((TypeId::of::<T>(), type_name::<T>()));
    }
}

/// All states of a program.
#[derive(Default)]
pub(crate) struct States(HashMap<TypeId, Arc<dyn Any + Send + Sync>>);

impl States {
    /// Says whether there was none of this type before.
    pub(crate) fn add<T: Send + Sync + 'static>(&mut self, state: T) -> bool {
        self.0.insert(TypeId::of::<T>(), Arc::new(state)).is_none()
    }

    pub(crate) fn has(&self, kind: TypeId) -> bool {
        self.0.contains_key(&kind)
    }

    pub(crate) fn take<T: Send + Sync + 'static>(&self) -> Option<State<T>> {
        self.find().map(State)
    }

    fn find<T: Send + Sync + 'static>(&self) -> Option<Arc<T>> {
        Arc::clone(self.0.get(&TypeId::of::<T>())?).downcast().ok()
    }
}

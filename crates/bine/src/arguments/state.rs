//! A value that a program shares with its handlers, found by its type.

use std::any::type_name;
use std::ops::Deref;
use std::sync::Arc;

use super::{FromRequest, Needs, Rejection, RequestParts};

/// A value that the whole program shares, registered by [`App::state`](crate::App::state) and found
/// by its type.
///
/// If a page takes a state that the program lacks, the program does not start.
#[derive(Debug)]
pub struct State<T>(pub(crate) Arc<T>);

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

impl<T: Send + Sync + 'static> FromRequest for State<T> {
    fn from_request(request: &mut RequestParts<'_>, name: &'static str) -> Result<Self, Rejection> {
        let found = request.app.states.find_shared().map(Self);
        found.ok_or_else(|| Rejection::invalid(name, "is not a state of this program"))
    }

    fn needs(needs: &mut Needs) {
        let state = type_name::<T>();
        needs.require::<T>(format!(
            "takes `State<{state}>`, and the program has none; add `.state(..)` with one to the app"
        ));
    }
}

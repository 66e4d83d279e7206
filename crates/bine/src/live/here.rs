//! Decides who is at a page now: those whose browsers follow it.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, MutexGuard};

use super::address::address;
use super::place::{Place, Places};
use super::run::Run;
use crate::arguments::{Argument, Arguments, Needs, Rejection};
use crate::text::Text;

/// Who is at this page now, as an argument of it: all whose browsers follow it by a stream, which takes a script; one
/// that has to poll is not counted. A region that shows it follows who comes and goes.
///
/// ```
/// use bine::prelude::*;
///
/// #[page("/")]
/// async fn lobby(here: Here) -> impl Page {
///     html!(<Live><p>{here.count()} are here: {here.names(20).join(", ")}</p></Live>)
/// }
/// # let _ = App::new().page(lobby);
/// ```
#[derive(Clone)]
pub struct Here(Arc<Place>);

impl Here {
    /// How many browsers follow this page.
    pub fn count(&self) -> usize {
        self.look().len()
    }

    /// By what names, so many at most: each once, users by theirs, others by that of their [session](crate::Session::name).
    /// Whoever has no session yet has no name.
    pub fn names(&self, most: usize) -> Vec<Text> {
        let mut names: Vec<Text> = Vec::new();
        for name in self.look().values().flatten() {
            if names.len() >= most {
                break;
            }
            if !names.contains(name) {
                names.push(name.clone());
            }
        }
        names
    }

    fn look(&self) -> MutexGuard<'_, BTreeMap<u64, Option<Text>>> {
        // Whoever follows a page that has looked is there from then on.
        if let Some(run) = Run::current() {
            run.show_who_is_here(&self.0);
        }
        self.0.changed.with(|()| {});
        self.0.all()
    }
}

impl Argument for Here {
    fn take(request: &mut Arguments<'_>, _name: &'static str) -> Result<Self, Rejection> {
        let address = address(request.incoming);
        let places = request.app.states.find::<Places>();
        let known = places.and_then(|places| places.all().get(&*address).cloned());
        // Where nobody is, nothing need be remembered before somebody comes.
        let place = known.unwrap_or_default();
        Ok(Self(place))
    }

    fn needs(_needs: &mut Needs) {}
}

impl fmt::Debug for Here {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.debug_list().entries(self.0.all().values()).finish()
    }
}

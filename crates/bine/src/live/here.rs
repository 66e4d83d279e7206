//! Decides who is at a page now: those whose browsers follow it.

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::run::Run;
use crate::arguments::{Argument, Arguments, Needs, Rejection};
use crate::signal::Signal;
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

/// The pages that show who is there.
#[derive(Clone, Default)]
pub(super) struct Places(Arc<Mutex<HashMap<Arc<str>, Arc<Place>>>>);

/// One of them.
#[derive(Default)]
pub(super) struct Place {
    /// What is known of each browser that follows it, in the order in which they came.
    all: Mutex<BTreeMap<u64, Option<Text>>>,
    changed: Signal<()>,
}

/// A browser that is at a page, until it is dropped.
pub(super) struct Presence {
    places: Places,
    address: Arc<str>,
    place: Arc<Place>,
    number: u64,
}

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

impl Place {
    fn all(&self) -> MutexGuard<'_, BTreeMap<u64, Option<Text>>> {
        self.all.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Places {
    /// Has this be what is known of a page, which a run of it has looked at. False: another is already.
    pub(super) fn adopt(&self, address: &Arc<str>, place: &Arc<Place>) -> bool {
        let mut all = self.all();
        let own = all.entry(Arc::clone(address)).or_insert_with(|| Arc::clone(place));
        Arc::ptr_eq(own, place)
    }

    /// Forgets where nobody is.
    pub(super) fn prune(&self) {
        self.all().retain(|_, place| Arc::strong_count(place) > 1 || !place.all().is_empty());
    }

    /// A browser is there from now on.
    pub(super) fn come(&self, address: &Arc<str>, name: Option<Text>) -> Presence {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let place = Arc::clone(self.all().entry(Arc::clone(address)).or_default());
        place.all().insert(number, name);
        place.changed.notify();
        let (places, address) = (self.clone(), Arc::clone(address));
        Presence { places, address, place, number }
    }

    fn all(&self) -> MutexGuard<'_, HashMap<Arc<str>, Arc<Place>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Presence {
    fn drop(&mut self) {
        let mut own = self.place.all();
        own.remove(&self.number);
        let is_empty = own.is_empty();
        drop(own);
        self.place.changed.notify();
        if is_empty {
            let mut all = self.places.all();
            // The map's, this one's, and of nobody who comes at this moment.
            let is_known = all.get(&self.address).is_some_and(|own| Arc::ptr_eq(own, &self.place));
            if is_known && Arc::strong_count(&self.place) == 2 && self.place.all().is_empty() {
                all.remove(&self.address);
            }
        }
    }
}

impl Argument for Here {
    fn take(request: &mut Arguments<'_>, _name: &'static str) -> Result<Self, Rejection> {
        let address = super::stream::address(request.incoming);
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

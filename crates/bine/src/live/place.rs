//! The browsers that are at each page.

use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::signal::Signal;
use crate::text::Text;

/// The pages that show who is there.
#[derive(Clone, Default)]
pub(super) struct Places(Arc<Mutex<HashMap<Arc<str>, Arc<Place>>>>);

/// One of them.
#[derive(Default)]
pub(super) struct Place {
    /// What is known of each browser that follows it, in the order in which they came.
    all: Mutex<BTreeMap<u64, Option<Text>>>,
    pub(super) changed: Signal<()>,
}

/// A browser that is at a page, until it is dropped.
pub(super) struct Presence {
    places: Places,
    address: Arc<str>,
    place: Arc<Place>,
    number: u64,
}

impl Place {
    pub(super) fn all(&self) -> MutexGuard<'_, BTreeMap<u64, Option<Text>>> {
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

    pub(super) fn all(&self) -> MutexGuard<'_, HashMap<Arc<str>, Arc<Place>>> {
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

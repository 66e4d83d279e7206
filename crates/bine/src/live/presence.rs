//! The browsers that are present on each page.

use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::signal::Signal;
use crate::text::Text;

/// The pages that display their present users.
#[derive(Clone, Default)]
pub(super) struct PresenceMap(Arc<Mutex<HashMap<Arc<str>, Arc<PagePresence>>>>);

/// The browsers that are present on one page.
#[derive(Default)]
pub(super) struct PagePresence {
    /// The name of each browser, in the order of arrival.
    all: Mutex<BTreeMap<u64, Option<Text>>>,
    pub(super) changed: Signal<()>,
}

/// Marks a browser as present on a page until it is dropped.
pub(super) struct PagePresenceGuard {
    presence: PresenceMap,
    address: Arc<str>,
    page: Arc<PagePresence>,
    number: u64,
}

impl PagePresence {
    pub(super) fn all(&self) -> MutexGuard<'_, BTreeMap<u64, Option<Text>>> {
        self.all.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl PresenceMap {
    /// Registers the presence that a render of the page has read. Returns false if the page has
    /// another one already.
    pub(super) fn register(&self, address: &Arc<str>, page: &Arc<PagePresence>) -> bool {
        let mut all = self.all();
        let own = all.entry(Arc::clone(address)).or_insert_with(|| Arc::clone(page));
        Arc::ptr_eq(own, page)
    }

    /// Removes pages without browsers.
    pub(super) fn prune(&self) {
        self.all().retain(|_, page| Arc::strong_count(page) > 1 || !page.all().is_empty());
    }

    /// Adds a browser.
    pub(super) fn add(&self, address: &Arc<str>, name: Option<Text>) -> PagePresenceGuard {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let page = Arc::clone(self.all().entry(Arc::clone(address)).or_default());
        page.all().insert(number, name);
        page.changed.notify();
        let (presence, address) = (self.clone(), Arc::clone(address));
        PagePresenceGuard { presence, address, page, number }
    }

    pub(super) fn all(&self) -> MutexGuard<'_, HashMap<Arc<str>, Arc<PagePresence>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for PagePresenceGuard {
    fn drop(&mut self) {
        let mut own = self.page.all();
        own.remove(&self.number);
        let is_empty = own.is_empty();
        drop(own);
        self.page.changed.notify();
        if is_empty {
            let mut all = self.presence.all();
            // Two references: the map's and this guard's, so no browser is being added now.
            let is_known = all.get(&self.address).is_some_and(|own| Arc::ptr_eq(own, &self.page));
            if is_known && Arc::strong_count(&self.page) == 2 && self.page.all().is_empty() {
                all.remove(&self.address);
            }
        }
    }
}

//! The browser tabs that are present on each page, and their users.

use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::signal::Signal;
use crate::text::Text;

/// The pages that display their present users.
#[derive(Clone, Default)]
pub(super) struct PresenceMap(Arc<Mutex<HashMap<Arc<str>, Arc<PagePresence>>>>);

/// The tabs that are present on one page.
#[derive(Default)]
pub(super) struct PagePresence {
    tabs: Mutex<PresentTabs>,
    pub(super) changed: Signal<()>,
}

/// The tabs of one page, with a count of their users.
#[derive(Default)]
pub(super) struct PresentTabs {
    /// The visitor of each tab, in the order of arrival; `None` in a program without sessions, and
    /// for a browser without a session.
    all: BTreeMap<u64, Option<PresentVisitor>>,
    /// The number of tabs of each known person.
    of_person: HashMap<Person, usize>,
    /// The number of tabs without a known person.
    of_unknown: usize,
}

/// The visitor of a tab.
#[derive(Clone)]
pub(super) struct PresentVisitor {
    /// The name that other visitors see.
    pub(super) name: Text,
    pub(super) person: Option<Person>,
}

/// The identity that two tabs of the same person share.
#[derive(Clone, PartialEq, Eq, Hash)]
pub(super) enum Person {
    /// A user, in any number of login sessions.
    User(Text),
    /// The id of a session without a login.
    Session([u8; 16]),
}

/// Marks a tab as present on a page until it is dropped.
pub(super) struct PagePresenceGuard {
    presence: PresenceMap,
    address: Arc<str>,
    page: Arc<PagePresence>,
    number: u64,
}

impl PagePresence {
    pub(super) fn tabs(&self) -> MutexGuard<'_, PresentTabs> {
        self.tabs.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl PresentTabs {
    fn add(&mut self, number: u64, visitor: Option<PresentVisitor>) {
        match person_of(visitor.as_ref()) {
            Some(person) => *self.of_person.entry(person.clone()).or_default() += 1,
            None => self.of_unknown += 1,
        }
        self.all.insert(number, visitor);
    }

    fn remove(&mut self, number: u64) {
        let Some(visitor) = self.all.remove(&number) else { return };
        let Some(person) = person_of(visitor.as_ref()) else {
            self.of_unknown -= 1;
            return;
        };
        match self.of_person.get_mut(person) {
            Some(count) if *count > 1 => *count -= 1,
            _ => drop(self.of_person.remove(person)),
        }
    }

    /// The number of tabs.
    pub(super) fn count(&self) -> usize {
        self.all.len()
    }

    /// The number of people. A tab without a known person counts as one.
    pub(super) fn people(&self) -> usize {
        self.of_person.len() + self.of_unknown
    }

    /// The names of the visitors, in the order of arrival. A visitor with several tabs occurs
    /// several times.
    pub(super) fn names(&self) -> impl Iterator<Item = &Text> {
        self.all.values().flatten().map(|visitor| &visitor.name)
    }

    fn is_empty(&self) -> bool {
        self.all.is_empty()
    }
}

fn person_of(visitor: Option<&PresentVisitor>) -> Option<&Person> {
    visitor?.person.as_ref()
}

impl PresenceMap {
    /// Registers the presence that a render of the page has read. Returns false if the page has
    /// another one already.
    pub(super) fn register(&self, address: &Arc<str>, page: &Arc<PagePresence>) -> bool {
        let mut all = self.all();
        let own = all.entry(Arc::clone(address)).or_insert_with(|| Arc::clone(page));
        Arc::ptr_eq(own, page)
    }

    /// Removes pages without tabs.
    pub(super) fn prune(&self) {
        self.all().retain(|_, page| Arc::strong_count(page) > 1 || !page.tabs().is_empty());
    }

    /// Adds a tab.
    pub(super) fn add(
        &self,
        address: &Arc<str>,
        visitor: Option<PresentVisitor>,
    ) -> PagePresenceGuard {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let page = Arc::clone(self.all().entry(Arc::clone(address)).or_default());
        page.tabs().add(number, visitor);
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
        let mut own = self.page.tabs();
        own.remove(self.number);
        let is_empty = own.is_empty();
        drop(own);
        self.page.changed.notify();
        if is_empty {
            let mut all = self.presence.all();
            // Two references: the map's and this guard's, so no browser is being added now.
            let is_known = all.get(&self.address).is_some_and(|own| Arc::ptr_eq(own, &self.page));
            if is_known && Arc::strong_count(&self.page) == 2 && self.page.tabs().is_empty() {
                all.remove(&self.address);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn visitor(name: &str, person: Person) -> PresentVisitor {
        PresentVisitor { name: name.into(), person: Some(person) }
    }

    /// Returns the counts of people and of tabs.
    fn counts(presence: &PresenceMap, address: &Arc<str>) -> [usize; 2] {
        let Some(page) = presence.all().get(address).cloned() else { return [0, 0] };
        let tabs = page.tabs();
        [tabs.people(), tabs.count()]
    }

    #[test]
    fn counts_each_user_and_each_session_as_one_person() {
        let (presence, address) = (PresenceMap::default(), Arc::from("http://a/"));
        let ann = || visitor("ann", Person::User("ann".into()));
        let heron = |id| visitor("Quiet Heron", Person::Session([id; 16]));
        let mut tabs: Vec<_> = [ann(), ann(), ann(), heron(1), heron(1), heron(2)]
            .into_iter()
            .map(|visitor| presence.add(&address, Some(visitor)))
            .collect();
        assert_eq!(counts(&presence, &address), [3, 6]);
        // A session whose generated name is a user's name is another person.
        tabs.push(presence.add(&address, Some(visitor("ann", Person::Session([3; 16])))));
        assert_eq!(counts(&presence, &address), [4, 7]);
        drop(tabs.drain(..2));
        assert_eq!(counts(&presence, &address), [4, 5]);
        drop(tabs.remove(0));
        assert_eq!(counts(&presence, &address), [3, 4]);
        tabs.clear();
        assert_eq!(counts(&presence, &address), [0, 0]);
        assert!(presence.all().is_empty());
    }

    #[test]
    fn counts_each_tab_without_a_session_as_one_person() {
        let (presence, address) = (PresenceMap::default(), Arc::from("http://a/"));
        let one = presence.add(&address, None);
        let other = presence.add(&address, None);
        assert_eq!(counts(&presence, &address), [2, 2]);
        drop(one);
        assert_eq!(counts(&presence, &address), [1, 1]);
        drop(other);
        assert_eq!(counts(&presence, &address), [0, 0]);
    }
}

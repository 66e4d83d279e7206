//! The browser tabs that are present on each page, and their users.

use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use super::present_visitor::{Person, PresentVisitor};
use super::shared_tab::SharedTab;
use crate::shared_state::SharedState;
use crate::signal::Signal;
use crate::text::Text;

/// The pages that display their present users.
#[derive(Clone, Default)]
pub(super) struct PresenceMap(Arc<PresentPages>);

#[derive(Default)]
struct PresentPages {
    /// By the address without its port: several ports may lead to the same page.
    all: Mutex<HashMap<Arc<str>, Arc<PagePresence>>>,
    /// The state that nodes share, in a program.
    state: OnceLock<SharedState>,
}

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

/// Marks a tab as present on a page until it is dropped.
pub(super) struct PagePresenceGuard {
    presence: PresenceMap,
    address: Arc<str>,
    page: Arc<PagePresence>,
    number: u64,
    /// Tells the other nodes about the tab.
    _shared: Option<SharedTab>,
}

impl PagePresence {
    pub(super) fn tabs(&self) -> MutexGuard<'_, PresentTabs> {
        self.tabs.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl PresentTabs {
    pub(super) fn add(&mut self, number: u64, visitor: Option<PresentVisitor>) {
        match person_of(visitor.as_ref()) {
            Some(person) => *self.of_person.entry(person.clone()).or_default() += 1,
            None => self.of_unknown += 1,
        }
        self.all.insert(number, visitor);
    }

    pub(super) fn remove(&mut self, number: u64) {
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
        let own = all.entry(without_port(address)).or_insert_with(|| Arc::clone(page));
        Arc::ptr_eq(own, page)
    }

    /// The tabs of a page, if it has any.
    pub(super) fn find(&self, address: &str) -> Option<Arc<PagePresence>> {
        self.all().get(&without_port(address)).cloned()
    }

    /// The tabs of a page.
    pub(super) fn page(&self, address: &str) -> Arc<PagePresence> {
        Arc::clone(self.all().entry(without_port(address)).or_default())
    }

    /// Removes a page if it has no tabs, and nobody looks at them.
    pub(super) fn prune_page(&self, address: &str) {
        let (mut all, address) = (self.all(), without_port(address));
        let is_unused =
            |page: &Arc<PagePresence>| Arc::strong_count(page) == 1 && page.tabs().is_empty();
        if all.get(&address).is_some_and(is_unused) {
            all.remove(&address);
        }
    }

    /// Shares the tabs with other nodes by this state.
    pub(super) fn share(&self, state: SharedState) {
        // Called once.
        let _ = self.0.state.set(state);
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
        let (page, address) = (self.page(address), without_port(address));
        let shared = self
            .0
            .state
            .get()
            .and_then(|state| SharedTab::enter(state, &address, number, visitor.as_ref()));
        page.tabs().add(number, visitor);
        page.changed.notify();
        PagePresenceGuard { presence: self.clone(), address, page, number, _shared: shared }
    }

    pub(super) fn all(&self) -> MutexGuard<'_, HashMap<Arc<str>, Arc<PagePresence>>> {
        self.0.all.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// An address without the port of its host.
fn without_port(address: &str) -> Arc<str> {
    let host = address.find("://").map_or(0, |at| at + 3);
    let end = address[host..].find('/').map_or(address.len(), |at| host + at);
    let authority = &address[host..end];
    // An IPv6 address has colons inside its brackets.
    let name = match authority.rfind(':') {
        Some(at) if authority[at..].find(']').is_none() => &authority[..at],
        _ => authority,
    };
    if name.len() == authority.len() {
        return address.into();
    }
    [&address[..host], name, &address[end..]].concat().into()
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
        let Some(page) = presence.find(address) else { return [0, 0] };
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
    fn ports_of_a_host_lead_to_the_same_page() {
        for (address, expected) in [
            ("http://a/", "http://a/"),
            ("http://a:8080/b:1?c=:2", "http://a/b:1?c=:2"),
            ("https://[::1]:443/", "https://[::1]/"),
            ("https://[::1]/", "https://[::1]/"),
            ("http://:80/", "http:///"),
            ("", ""),
        ] {
            assert_eq!(*without_port(address), *expected);
        }
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

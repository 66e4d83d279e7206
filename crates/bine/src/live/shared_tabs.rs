//! The tabs that follow pages at other nodes, from the shared state.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use super::presence::{PagePresence, PresenceMap};
use super::present_visitor::PresentVisitor;
use super::shared_tab::{PREFIX, is_of};
use crate::shared_state::{RosterChange, RosterChangeKind, RosterObserver, SharedState};

/// Tabs of other nodes have greater numbers than those of this node.
const FIRST_FOREIGN: u64 = 1 << 63;

/// Adds the tabs of other nodes to the pages of this one.
pub(super) struct SharedTabs {
    pages: PresenceMap,
    state: SharedState,
    /// The page and the number of each tab, by its place and key.
    tabs: Mutex<HashMap<TabKey, (Arc<PagePresence>, u64)>>,
    next: AtomicU64,
}

/// The place and the key of a tab in the shared state.
type TabKey = (Arc<str>, Arc<str>);

impl SharedTabs {
    pub(super) fn new(pages: PresenceMap, state: SharedState) -> Self {
        Self { pages, state, tabs: Mutex::default(), next: AtomicU64::new(FIRST_FOREIGN) }
    }

    fn add(&self, change: &RosterChange) {
        let Some(address) = change.place.strip_prefix(PREFIX) else { return };
        if self.state.node().is_some_and(|node| is_of(node, &change.key)) {
            return;
        }
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let page = self.pages.page(address);
        page.tabs().add(number, PresentVisitor::read(&change.value));
        page.changed.notify();
        let tab = (Arc::clone(&change.place), Arc::clone(&change.key));
        let mut tabs = self.tabs.lock().unwrap_or_else(PoisonError::into_inner);
        let replaced = tabs.insert(tab, (page, number));
        drop(tabs);
        if let Some((page, number)) = replaced {
            page.tabs().remove(number);
        }
    }

    fn remove(&self, change: &RosterChange) {
        let tab = (Arc::clone(&change.place), Arc::clone(&change.key));
        let removed = self.tabs.lock().unwrap_or_else(PoisonError::into_inner).remove(&tab);
        if let Some((page, number)) = removed {
            page.tabs().remove(number);
            page.changed.notify();
            drop(page);
            self.pages.prune_page(change.place.strip_prefix(PREFIX).unwrap_or_default());
        }
    }
}

impl RosterObserver for SharedTabs {
    fn prefix(&self) -> &'static str {
        PREFIX
    }

    fn load(&self, entry: &RosterChange) {
        self.add(entry);
    }

    fn follow(&self, _sequence: u64, _time: u64, changes: &[RosterChange]) {
        for change in changes {
            match change.kind {
                RosterChangeKind::Added => self.add(change),
                RosterChangeKind::Removed => self.remove(change),
                RosterChangeKind::Replaced => {}
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::present_visitor::Person;
    use super::*;

    fn change(kind: RosterChangeKind, key: &str, visitor: Option<&PresentVisitor>) -> RosterChange {
        let (place, value) = ("page:http://a/".into(), PresentVisitor::write(visitor).into());
        RosterChange { place, key: key.into(), value, kind, count: 0 }
    }

    #[test]
    fn counts_tabs_of_other_nodes_with_those_of_this_one() {
        let pages = PresenceMap::default();
        let tabs = SharedTabs::new(pages.clone(), SharedState::default());
        let ann = PresentVisitor { name: "ann".into(), person: Some(Person::User("ann".into())) };
        let heron =
            PresentVisitor { name: "Heron".into(), person: Some(Person::Session([255; 16])) };
        let own = pages.add(&"http://a:8080/".into(), Some(ann.clone()));
        tabs.load(&change(RosterChangeKind::Added, "b/1", Some(&ann)));
        tabs.follow(1, 1, &[change(RosterChangeKind::Added, "b/2", Some(&heron))]);
        tabs.follow(2, 2, &[change(RosterChangeKind::Added, "c/1", None)]);
        let counts = || {
            let page = pages.page("http://a/");
            let tabs = page.tabs();
            (tabs.people(), tabs.count())
        };
        assert_eq!(counts(), (3, 4));
        drop(own);
        assert_eq!(counts(), (3, 3));
        for key in ["b/1", "b/2", "c/1", "c/1"] {
            tabs.follow(3, 3, &[change(RosterChangeKind::Removed, key, None)]);
        }
        assert_eq!(pages.all().len(), 0);
    }
}

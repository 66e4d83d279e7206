//! The connections of one event loop that have no stream, so that the loop can close some of them
//! when connections, descriptors or memory run short.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;
use std::task::Waker;
use std::time::Duration;

use tokio::time::Instant;

use crate::address::AddressBlock;

/// The idle connections of one loop.
#[derive(Default)]
pub(crate) struct IdleConnections {
    next: Cell<u64>,
    entries: RefCell<BTreeMap<u64, IdleEntry>>,
}

struct IdleEntry {
    block: AddressBlock,
    since: Instant,
    allowed: Duration,
    waker: Waker,
}

/// An idle connection, as the loop sees it.
pub(crate) struct IdleConnection {
    pub(crate) id: u64,
    pub(crate) block: AddressBlock,
    /// How long it has been idle.
    pub(crate) lasted: Duration,
    /// The time after which it closes anyway.
    pub(crate) allowed: Duration,
}

/// The place of a connection in the list, until it is dropped.
pub(super) struct IdlePlace {
    list: Rc<IdleConnections>,
    id: u64,
}

impl IdleConnections {
    pub(crate) fn list(&self) -> Vec<IdleConnection> {
        let entries = self.entries.borrow();
        let seen = |(id, entry): (&u64, &IdleEntry)| IdleConnection {
            id: *id,
            block: entry.block,
            lasted: entry.since.elapsed(),
            allowed: entry.allowed,
        };
        entries.iter().map(seen).collect()
    }

    /// Closes a connection that is still idle.
    pub(crate) fn close(&self, id: u64) {
        if let Some(entry) = self.entries.borrow_mut().remove(&id) {
            entry.waker.wake();
        }
    }

    /// Enters a connection of `block`, which closes after `allowed`.
    pub(super) fn enter(
        self: &Rc<Self>,
        block: AddressBlock,
        allowed: Duration,
        waker: &Waker,
    ) -> IdlePlace {
        let id = self.next.get();
        self.next.set(id + 1);
        let entry = IdleEntry { block, since: Instant::now(), allowed, waker: waker.clone() };
        self.entries.borrow_mut().insert(id, entry);
        IdlePlace { list: Rc::clone(self), id }
    }
}

impl IdlePlace {
    /// Whether the loop wants the connection closed.
    pub(super) fn is_closed(&self) -> bool {
        !self.list.entries.borrow().contains_key(&self.id)
    }
}

impl Drop for IdlePlace {
    fn drop(&mut self) {
        self.list.entries.borrow_mut().remove(&self.id);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::address::ClientAddress;

    #[test]
    fn lists_connections_while_they_are_idle() {
        let runtime = tokio::runtime::Builder::new_current_thread();
        let runtime = { runtime }.enable_time().start_paused(true).build().unwrap();
        runtime.block_on(async {
            let list = Rc::new(IdleConnections::default());
            let block = ClientAddress::UNIX.block();
            let enter = || list.enter(block, Duration::from_secs(75), Waker::noop());
            let (first, second) = (enter(), enter());
            tokio::time::advance(Duration::from_hours(30)).await;
            let seen = list.list();
            assert_eq!(seen.iter().map(|each| each.id).collect::<Vec<_>>(), [0, 1]);
            assert_eq!(seen[0].lasted, Duration::from_hours(30));
            list.close(0);
            assert!(first.is_closed() && !second.is_closed());
            drop((first, second));
            assert!(list.list().is_empty());
        });
    }
}

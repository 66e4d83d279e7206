//! Whether the data of this node may be old: the node is cut off from the others of its cluster.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

use bine_server::{Answer, Outgoing};

use crate::gate::{insert_fields, with_fields};

/// Whether the data of this node may be old. A program on one machine never is.
#[derive(Default)]
pub(crate) struct Staleness {
    /// [`ALONE`], [`CURRENT`], or the second since 1970 at which the node noticed that it is cut off.
    state: AtomicU64,
    observers: Mutex<Vec<StalenessObserver>>,
}

/// Learns when the data becomes old, and when it is current again.
pub(crate) type StalenessObserver = Box<dyn Fn(bool) + Send + Sync>;

/// The field of dynamic responses from a node that is cut off. Its value is the number of seconds since
/// the node noticed it.
///
/// RFC 9111 has made `Warning: 110` obsolete without a successor, and `Cache-Status` (RFC 9211) is for
/// caches that have forwarded a request.
const FIELD: &str = "Bine-Stale";
/// The state of a program on one machine.
const ALONE: u64 = 0;
/// The state of a node that follows the others.
const CURRENT: u64 = 1;

impl Staleness {
    /// Notes that the program shares its data with other nodes.
    #[cfg_attr(
        not(feature = "cluster"),
        allow(dead_code, reason = "only nodes of a cluster use it")
    )]
    pub(crate) fn share(&self) {
        self.state.store(CURRENT, Ordering::Relaxed);
    }

    /// Whether the program shares its data with other nodes.
    pub(crate) fn is_shared(&self) -> bool {
        self.state.load(Ordering::Relaxed) != ALONE
    }

    /// Calls `observer` at each change from now on.
    pub(crate) fn observe(&self, observer: StalenessObserver) {
        self.observers.lock().unwrap_or_else(PoisonError::into_inner).push(observer);
    }

    /// Notes whether the data may be old from now on.
    #[cfg_attr(
        not(feature = "cluster"),
        allow(dead_code, reason = "only nodes of a cluster use it")
    )]
    pub(crate) fn set(&self, is_stale: bool) {
        let observers = self.observers.lock().unwrap_or_else(PoisonError::into_inner);
        // The first moment counts.
        if is_stale != self.is_stale() {
            let state = if is_stale { unix_seconds().max(CURRENT + 1) } else { CURRENT };
            self.state.store(state, Ordering::Relaxed);
            observers.iter().for_each(|observer| observer(is_stale));
        }
    }

    /// Whether the data may be old.
    #[inline]
    pub(crate) fn is_stale(&self) -> bool {
        self.state.load(Ordering::Relaxed) > CURRENT
    }

    /// Runs `call`, and marks its response if the data may be old, whichever thread writes it.
    pub(crate) fn marking(
        &self,
        out: &mut Outgoing<'_>,
        call: impl FnOnce(&mut Outgoing<'_>) -> Answer,
    ) -> Answer {
        match self.field() {
            None => call(out),
            Some(field) => with_fields(vec![field], out, call),
        }
    }

    /// Marks the response that begins at `begin`, if the data may be old.
    pub(crate) fn mark(&self, bytes: &mut Vec<u8>, begin: usize) {
        if let Some(field) = self.field() {
            insert_fields(vec![field], bytes, begin);
        }
    }

    fn field(&self) -> Option<(String, String)> {
        match self.state.load(Ordering::Relaxed) {
            ALONE | CURRENT => None,
            since => Some((FIELD.to_owned(), unix_seconds().saturating_sub(since).to_string())),
        }
    }
}

fn unix_seconds() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    #[test]
    fn marks_responses_while_the_data_is_old_and_reports_changes() {
        let (staleness, changes) = (Staleness::default(), Arc::new(Mutex::new(Vec::new())));
        assert!(!staleness.is_shared());
        staleness.share();
        let seen = Arc::clone(&changes);
        staleness.observe(Box::new(move |is_stale| seen.lock().unwrap().push(is_stale)));
        let marked = || {
            let mut bytes = b"earlierHTTP/1.1 200 OK\r\n\r\nbody".to_vec();
            staleness.mark(&mut bytes, 7);
            String::from_utf8(bytes).unwrap().contains("\r\nBine-Stale: ")
        };
        for (is_stale, expected) in
            [(false, &[][..]), (true, &[true]), (true, &[true]), (false, &[true, false])]
        {
            staleness.set(is_stale);
            assert_eq!((staleness.is_stale(), marked()), (is_stale, is_stale));
            assert_eq!(*changes.lock().unwrap(), expected);
        }
    }
}

//! Remembers for a short time which sessions a login has replaced, so that late requests do not
//! undo the login.
//!
//! A request sent before the login carries the old cookie, and its response may arrive after the
//! login's. A cookie in that response would replace the login's cookie and log the visitor out.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Sessions that logins have replaced recently, by their cookies' ids.
#[derive(Default)]
pub(super) struct ReplacedSessions(Mutex<HashMap<[u8; 16], Replacement>>);

/// Several logins may replace the same session at once.
struct Replacement {
    at: u64,
    logins: u32,
}

/// Seconds for which a replaced session is remembered.
const RETENTION: u64 = 60;
/// Replaced sessions that are remembered.
const MAX: usize = 4096;

impl ReplacedSessions {
    /// Records that a login replaces this session now.
    pub(super) fn insert(&self, id: [u8; 16], now: u64) {
        let mut replaced = self.replaced();
        if replaced.len() >= MAX {
            replaced.retain(|_, end| is_recent(now, end.at));
        }
        if replaced.len() < MAX {
            let end = replaced.entry(id).or_insert(Replacement { at: now, logins: 0 });
            *end = Replacement { at: now, logins: end.logins.saturating_add(1) };
        }
    }

    /// Removes a login that has failed.
    pub(super) fn remove(&self, id: &[u8; 16]) {
        let mut replaced = self.replaced();
        if let Some(end) = replaced.get_mut(id) {
            end.logins -= 1;
            if end.logins == 0 {
                replaced.remove(id);
            }
        }
    }

    /// Whether a login has replaced this session recently.
    pub(super) fn contains(&self, id: &[u8; 16], now: u64) -> bool {
        self.replaced().get(id).is_some_and(|end| is_recent(now, end.at))
    }

    fn replaced(&self) -> MutexGuard<'_, HashMap<[u8; 16], Replacement>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The absolute difference: two clocks may disagree about the order.
const fn is_recent(now: u64, then: u64) -> bool {
    now.abs_diff(then) < RETENTION
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn remembers_replaced_sessions_for_a_minute_up_to_limit() {
        let replaced = ReplacedSessions::default();
        let id = |number: usize| (number as u128).to_be_bytes();
        replaced.insert(id(0), 100);
        assert!(
            replaced.contains(&id(0), 99)
                && replaced.contains(&id(0), 159)
                && !replaced.contains(&id(0), 160)
        );
        assert!(!replaced.contains(&id(1), 100));
        for number in 1..2 * MAX {
            replaced.insert(id(number), 150);
        }
        assert_eq!(replaced.replaced().len(), MAX);
        // A failed login does not count, but a second login of the same session does.
        let two = ReplacedSessions::default();
        two.insert(id(0), 100);
        two.insert(id(0), 100);
        two.remove(&id(0));
        assert!(two.contains(&id(0), 100));
        two.remove(&id(0));
        assert!(!two.contains(&id(0), 100));
        // There is room again after a minute.
        replaced.insert(id(0), 210);
        assert_eq!(replaced.replaced().len(), 1);
    }
}

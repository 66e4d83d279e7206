//! Remembers for a short time which sessions a login has replaced, so that late requests do not
//! undo the login.
//!
//! A request sent before the login carries the old cookie, and its response may arrive after the
//! login's. A cookie in that response would replace the login's cookie and log the visitor out.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Sessions that logins have replaced recently, by their cookies' ids.
#[derive(Default)]
pub(super) struct Ended(Mutex<HashMap<[u8; 16], End>>);

/// Several logins may replace the same session at once.
struct End {
    at: u64,
    logins: u32,
}

/// Seconds for which a replaced session is remembered.
const MEMORY: u64 = 60;
/// Replaced sessions that are remembered.
const MOST: usize = 4096;

impl Ended {
    /// Records that a login replaces this session now.
    pub(super) fn note(&self, id: [u8; 16], now: u64) {
        let mut ended = self.ended();
        if ended.len() >= MOST {
            ended.retain(|_, end| is_late(now, end.at));
        }
        if ended.len() < MOST {
            let end = ended.entry(id).or_insert(End { at: now, logins: 0 });
            *end = End { at: now, logins: end.logins.saturating_add(1) };
        }
    }

    /// Removes a login that has failed.
    pub(super) fn take_back(&self, id: &[u8; 16]) {
        let mut ended = self.ended();
        if let Some(end) = ended.get_mut(id) {
            end.logins -= 1;
            if end.logins == 0 {
                ended.remove(id);
            }
        }
    }

    /// Whether a login has replaced this session recently.
    pub(super) fn has(&self, id: &[u8; 16], now: u64) -> bool {
        self.ended().get(id).is_some_and(|end| is_late(now, end.at))
    }

    fn ended(&self) -> MutexGuard<'_, HashMap<[u8; 16], End>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The absolute difference: two clocks may disagree about the order.
const fn is_late(now: u64, then: u64) -> bool {
    now.abs_diff(then) < MEMORY
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_login_ended_is_remembered_for_a_minute_and_not_without_bound() {
        let ended = Ended::default();
        let id = |number: usize| (number as u128).to_be_bytes();
        ended.note(id(0), 100);
        assert!(ended.has(&id(0), 99) && ended.has(&id(0), 159) && !ended.has(&id(0), 160));
        assert!(!ended.has(&id(1), 100));
        for number in 1..2 * MOST {
            ended.note(id(number), 150);
        }
        assert_eq!(ended.ended().len(), MOST);
        // A failed login does not count, but a second login of the same session does.
        let two = Ended::default();
        two.note(id(0), 100);
        two.note(id(0), 100);
        two.take_back(&id(0));
        assert!(two.has(&id(0), 100));
        two.take_back(&id(0));
        assert!(!two.has(&id(0), 100));
        // There is room again after a minute.
        ended.note(id(0), 210);
        assert_eq!(ended.ended().len(), 1);
    }
}

//! Decides how long it is remembered that a login has ended a session: as long as requests from before it may be on
//! their way.
//!
//! Such a request shows the cookie of before, and its reply may come behind that of the login. A cookie in it would take
//! the place of the login's, and the visitor would be a stranger again.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Sessions that logins have ended of late, by their cookies' ids.
#[derive(Default)]
pub(super) struct Ended(Mutex<HashMap<[u8; 16], End>>);

/// Of several logins of one session at a time each ends it.
struct End {
    at: u64,
    logins: u32,
}

/// Seconds for which one is remembered.
const MEMORY: u64 = 60;
/// So many are remembered.
const MOST: usize = 4096;

impl Ended {
    /// Notes that a login ends this one, now.
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

    /// One of the logins has failed.
    pub(super) fn take_back(&self, id: &[u8; 16]) {
        let mut ended = self.ended();
        if let Some(end) = ended.get_mut(id) {
            end.logins -= 1;
            if end.logins == 0 {
                ended.remove(id);
            }
        }
    }

    /// Whether a login has ended this one a short while ago.
    pub(super) fn has(&self, id: &[u8; 16], now: u64) -> bool {
        self.ended().get(id).is_some_and(|end| is_late(now, end.at))
    }

    fn ended(&self) -> MutexGuard<'_, HashMap<[u8; 16], End>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Two clocks need not agree which of the times comes first.
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
        // One that has failed has ended nothing, another of the same session has.
        let two = Ended::default();
        two.note(id(0), 100);
        two.note(id(0), 100);
        two.take_back(&id(0));
        assert!(two.has(&id(0), 100));
        two.take_back(&id(0));
        assert!(!two.has(&id(0), 100));
        // There is room again for whoever comes later.
        ended.note(id(0), 210);
        assert_eq!(ended.ended().len(), 1);
    }
}

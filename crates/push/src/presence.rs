//! Tracks which sessions are present in a channel, with one join and one leave however often a
//! session polls.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::sync::Arc;
use core::ops::Bound;

/// The sessions that are present in each channel. A session is present while a connection holds it,
/// or while a lease covers the time until its next poll.
///
/// A session may follow a channel several times at once (two tabs). It is present while any tab
/// holds or renews it. Presence is not in the journal: after a restart sessions join again. The
/// caller numbers the channels.
#[derive(Debug)]
pub struct PresenceSet {
    leases: BTreeMap<(u64, Arc<str>), Lease>,
    /// The leases by the time of their next check.
    checks: BTreeSet<(u64, u64, Arc<str>)>,
    counts: BTreeMap<u64, usize>,
    max_leases: usize,
}

/// The presence of one session.
#[derive(Debug)]
struct Lease {
    until: u64,
    /// The number of holds. A held session is present regardless of the time.
    holders: u32,
    /// The time of the next check, or `None` while the session is held. It is at most the end of
    /// the lease, and a renewal does not move it, so that a poll costs one search.
    check_at: Option<u64>,
}

/// The join or departure of a session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PresenceChange {
    /// The channel's number.
    pub channel: u64,
    /// The session.
    pub session: Arc<str>,
    /// `true` for a join, `false` for a departure.
    pub is_present: bool,
}

/// The limit of present sessions is reached, so no other session can be added.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PresenceFull;

impl PresenceSet {
    /// Creates an empty set with a limit of leases.
    pub fn new(max_leases: usize) -> Self {
        Self {
            leases: BTreeMap::new(),
            checks: BTreeSet::new(),
            counts: BTreeMap::new(),
            max_leases,
        }
    }

    /// Keeps a session present until a time, in milliseconds since 1970. A lease is never
    /// shortened. Returns a change if the session has just joined.
    ///
    /// # Errors
    /// The limit of leases is reached.
    pub fn renew(
        &mut self,
        channel: u64,
        session: &Arc<str>,
        until: u64,
    ) -> Result<Option<PresenceChange>, PresenceFull> {
        if let Some(lease) = self.leases.get_mut(&(channel, session.clone())) {
            lease.until = until.max(lease.until);
            return Ok(None);
        }
        let change =
            self.add(channel, session, Lease { until, holders: 0, check_at: Some(until) })?;
        self.checks.insert((until, channel, session.clone()));
        Ok(Some(change))
    }

    /// Keeps a session present until as many calls of [`release`](Self::release). Returns a change
    /// if the session has just joined.
    ///
    /// # Errors
    /// The limit of leases is reached.
    pub fn hold(
        &mut self,
        channel: u64,
        session: &Arc<str>,
    ) -> Result<Option<PresenceChange>, PresenceFull> {
        if let Some(lease) = self.leases.get_mut(&(channel, session.clone())) {
            lease.holders += 1;
            return Ok(None);
        }
        let lease = Lease { until: 0, holders: 1, check_at: None };
        self.add(channel, session, lease).map(Some)
    }

    /// Ends one hold of a session and keeps it present until a time.
    pub fn release(&mut self, channel: u64, session: &Arc<str>, until: u64) {
        let Some(lease) = self.leases.get_mut(&(channel, session.clone())) else { return };
        lease.holders = lease.holders.saturating_sub(1);
        lease.until = until.max(lease.until);
        if lease.holders == 0 && lease.check_at.is_none() {
            lease.check_at = Some(lease.until);
            self.checks.insert((lease.until, channel, session.clone()));
        }
    }

    /// Removes a session on its request. Returns `None` if it was not present.
    pub fn leave(&mut self, channel: u64, session: &Arc<str>) -> Option<PresenceChange> {
        let lease = self.leases.remove(&(channel, session.clone()))?;
        if let Some(check_at) = lease.check_at {
            self.checks.remove(&(check_at, channel, session.clone()));
        }
        Some(self.removed(channel, session.clone()))
    }

    /// Removes a session whose lease has ended, or returns `None` if there is no such session:
    /// O(log n) each.
    pub fn expire(&mut self, now: u64) -> Option<PresenceChange> {
        while let Some((check_at, _, _)) = self.checks.first()
            && *check_at <= now
            && let Some((_, channel, session)) = self.checks.pop_first()
        {
            let key = (channel, session);
            match self.leases.get_mut(&key) {
                Some(lease) if lease.holders > 0 => lease.check_at = None,
                Some(lease) if lease.until > now => {
                    lease.check_at = Some(lease.until);
                    self.checks.insert((lease.until, channel, key.1));
                }
                _ => {
                    self.leases.remove(&key);
                    return Some(self.removed(channel, key.1));
                }
            }
        }
        None
    }

    /// Returns the earliest time at which [`expire`](Self::expire) has work.
    pub fn next_due(&self) -> Option<u64> {
        self.checks.first().map(|(check_at, _, _)| *check_at)
    }

    /// Whether a session is present in a channel.
    pub fn is_present(&self, channel: u64, session: &Arc<str>) -> bool {
        self.leases.contains_key(&(channel, session.clone()))
    }

    /// Returns the number of sessions that are present in a channel.
    pub fn count(&self, channel: u64) -> usize {
        self.counts.get(&channel).copied().unwrap_or(0)
    }

    /// Returns the sessions that are present in a channel, in order, after a name.
    pub fn sessions<'p>(&'p self, channel: u64, after: &str) -> impl Iterator<Item = &'p Arc<str>> {
        let from = Bound::Excluded((channel, Arc::from(after)));
        let present = self.leases.range((from, Bound::Unbounded));
        present.map(|(key, _)| key).take_while(move |key| key.0 == channel).map(|key| &key.1)
    }

    fn add(
        &mut self,
        channel: u64,
        session: &Arc<str>,
        lease: Lease,
    ) -> Result<PresenceChange, PresenceFull> {
        if self.leases.len() >= self.max_leases {
            return Err(PresenceFull);
        }
        self.leases.insert((channel, session.clone()), lease);
        *self.counts.entry(channel).or_default() += 1;
        Ok(PresenceChange { channel, session: session.clone(), is_present: true })
    }

    fn removed(&mut self, channel: u64, session: Arc<str>) -> PresenceChange {
        if let Some(count) = self.counts.get_mut(&channel) {
            *count -= 1;
            if *count == 0 {
                self.counts.remove(&channel);
            }
        }
        PresenceChange { channel, session, is_present: false }
    }
}

impl core::fmt::Display for PresenceFull {
    fn fmt(&self, out: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        out.write_str("the limit of present sessions is reached; new sessions are not listed")
    }
}

impl core::error::Error for PresenceFull {}

#[cfg(test)]
mod tests {
    use alloc::string::ToString;
    use alloc::vec::Vec;

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn reports_one_join_and_one_leave_for_a_polling_session() {
        let mut presence = PresenceSet::new(10);
        let session: Arc<str> = "s".into();
        let change =
            |is_present| Some(PresenceChange { channel: 1, session: "s".into(), is_present });
        assert_eq!(presence.renew(1, &session, 100), Ok(change(true)));
        assert_eq!(presence.next_due(), Some(100), "whoever sets an alarm needs the time");
        for now in (50..1000).step_by(50) {
            assert_eq!(presence.renew(1, &session, now + 100), Ok(None));
            assert_eq!(presence.expire(now), None);
        }
        assert_eq!((presence.count(1), presence.count(2)), (1, 0));
        assert_eq!(presence.expire(1049), None);
        assert_eq!(presence.expire(1050), change(false));
        assert_eq!(presence.expire(9999), None);
        assert_eq!((presence.count(1), presence.next_due()), (0, None));
    }

    #[test]
    fn starts_new_lease_when_session_returns() {
        let mut presence = PresenceSet::new(10);
        let session: Arc<str> = "s".into();
        assert!(presence.renew(1, &session, 100).unwrap().is_some());
        assert!(presence.leave(1, &session).is_some());
        assert!(presence.leave(1, &session).is_none());
        assert!(presence.renew(1, &session, 200).unwrap().is_some());
        assert_eq!(presence.expire(150), None);
        assert!(presence.expire(200).is_some());
    }

    #[test]
    fn keeps_session_present_until_last_hold_and_lease_end() {
        let mut presence = PresenceSet::new(10);
        let session: Arc<str> = "s".into();
        assert!(presence.hold(1, &session).unwrap().is_some());
        assert_eq!(presence.hold(1, &session), Ok(None));
        presence.release(1, &session, 100);
        assert_eq!((presence.expire(5000), presence.next_due()), (None, None));
        presence.release(1, &session, 5100);
        // The session is held again before its lease ends, so it was present all the time.
        assert_eq!(presence.hold(1, &session), Ok(None));
        assert_eq!((presence.expire(9000), presence.next_due()), (None, None));
        presence.release(1, &session, 9100);
        assert_eq!(presence.expire(9099), None);
        assert!(presence.expire(9100).is_some_and(|change| !change.is_present));
    }

    #[test]
    fn rejects_leases_over_limit_and_lists_sessions_by_name() {
        let mut presence = PresenceSet::new(3);
        for name in ["c", "a", "b"] {
            assert!(presence.renew(1, &name.into(), 100).unwrap().is_some());
        }
        let full = presence.renew(1, &"d".into(), 100).unwrap_err();
        let text = "the limit of present sessions is reached; new sessions are not listed";
        assert_eq!(full.to_string(), text);
        let names: Vec<&str> = presence.sessions(1, "a").map(|name| &name[..]).collect();
        assert_eq!(names, ["b", "c"]);
        let is_present = |channel, name: &str| presence.is_present(channel, &name.into());
        assert!(is_present(1, "a") && !is_present(1, "d") && !is_present(2, "a"));
    }

    proptest! {
        #[test]
        fn matches_model_of_joins_and_leaves(
            steps in prop::collection::vec((0_u64..2, 0_u8..3, 0_u8..6, 1_u64..100), 1..100),
        ) {
            let mut presence = PresenceSet::new(100);
            // The end of the lease and the number of holds.
            let mut present: BTreeMap<(u64, Arc<str>), (u64, u32)> = BTreeMap::new();
            let mut now = 0;
            for (channel, session, what, time) in steps {
                let session: Arc<str> = session.to_string().into();
                let key = (channel, session.clone());
                match what {
                    0 => {
                        now += time;
                        while let Some(change) = presence.expire(now) {
                            let lease = present.remove(&(change.channel, change.session));
                            prop_assert!(lease.is_some_and(|(until, held)| until <= now && held == 0));
                        }
                        prop_assert!(present.values().all(|(until, held)| *until > now || *held > 0));
                    }
                    1 => {
                        let is_changed = presence.leave(channel, &session).is_some();
                        prop_assert_eq!(is_changed, present.remove(&key).is_some());
                    }
                    2 => {
                        let is_changed = presence.hold(channel, &session).unwrap().is_some();
                        prop_assert_eq!(is_changed, !present.contains_key(&key));
                        present.entry(key).or_default().1 += 1;
                    }
                    3 => {
                        presence.release(channel, &session, now + time);
                        if let Some((until, held)) = present.get_mut(&key) {
                            (*until, *held) = ((now + time).max(*until), held.saturating_sub(1));
                        }
                    }
                    _ => {
                        let until = now + time;
                        let is_changed = presence.renew(channel, &session, until).unwrap().is_some();
                        prop_assert_eq!(is_changed, !present.contains_key(&key));
                        let lease = &mut present.entry(key).or_default().0;
                        *lease = until.max(*lease);
                    }
                }
                for channel in 0..2 {
                    let count = present.keys().filter(|key| key.0 == channel).count();
                    prop_assert_eq!(presence.count(channel), count);
                    prop_assert_eq!(presence.sessions(channel, "").count(), count);
                }
            }
        }
    }
}

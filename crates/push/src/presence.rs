//! Decides who is present in a channel: one joining and one leaving for a session, however often it polls.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::sync::Arc;
use core::ops::Bound;

/// Who is present in which channel: who is held there, and by leases that outlast the gap to the next poll.
///
/// A session may follow a channel in several ways at once (two tabs): it is present as long as one of them holds or
/// renews it. Nothing of this is in the journal: after a restart sessions join anew. Channels go by numbers, as whoever
/// asks counts them.
#[derive(Debug)]
pub struct Presence {
    leases: BTreeMap<(u64, Arc<str>), Lease>,
    /// The leases by the time at which to look at them.
    checks: BTreeSet<(u64, u64, Arc<str>)>,
    counts: BTreeMap<u64, usize>,
    max_leases: usize,
}

/// How long a session is present.
#[derive(Debug)]
struct Lease {
    until: u64,
    /// Whoever holds it is here, whatever the time.
    holders: u32,
    /// When to look at it: not later, and not moved by a renewal, so that a poll costs one search. `None`: not while it
    /// is held.
    check_at: Option<u64>,
}

/// A change of who is present.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PresenceChange {
    /// The channel's number.
    pub channel: u64,
    /// Who it is.
    pub session: Arc<str>,
    /// Whether the session has come, or has gone.
    pub is_present: bool,
}

/// So many are present that no other can be counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PresenceFull;

impl Presence {
    /// Nobody; at most so many leases.
    pub fn new(max_leases: usize) -> Self {
        let (leases, checks, counts) = (BTreeMap::new(), BTreeSet::new(), BTreeMap::new());
        Self { leases, checks, counts, max_leases }
    }

    /// Notes that a session is here until a time, in milliseconds since 1970; a lease is never shortened. `Some`: it
    /// has just come.
    ///
    /// # Errors
    /// There are as many as may be.
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

    /// Notes that a session is here until it is [released](Self::release), as often as it is held. `Some`: it has just
    /// come.
    ///
    /// # Errors
    /// There are as many as may be.
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

    /// Ends one hold of a session, which is here until a time yet.
    pub fn release(&mut self, channel: u64, session: &Arc<str>, until: u64) {
        let Some(lease) = self.leases.get_mut(&(channel, session.clone())) else { return };
        lease.holders = lease.holders.saturating_sub(1);
        lease.until = until.max(lease.until);
        if lease.holders == 0 && lease.check_at.is_none() {
            lease.check_at = Some(lease.until);
            self.checks.insert((lease.until, channel, session.clone()));
        }
    }

    /// Notes that a session goes by its own will. `None`: it was not here.
    pub fn leave(&mut self, channel: u64, session: &Arc<str>) -> Option<PresenceChange> {
        let lease = self.leases.remove(&(channel, session.clone()))?;
        if let Some(check_at) = lease.check_at {
            self.checks.remove(&(check_at, channel, session.clone()));
        }
        Some(self.removed(channel, session.clone()))
    }

    /// A session whose lease has run out, until there is none: O(log n) for each.
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

    /// When [`expire`](Self::expire) has something to do, at the earliest.
    pub fn next_due(&self) -> Option<u64> {
        self.checks.first().map(|(check_at, _, _)| *check_at)
    }

    /// Whether a session is present in a channel.
    pub fn is_present(&self, channel: u64, session: &Arc<str>) -> bool {
        self.leases.contains_key(&(channel, session.clone()))
    }

    /// How many are present in a channel.
    pub fn count(&self, channel: u64) -> usize {
        self.counts.get(&channel).copied().unwrap_or(0)
    }

    /// Who is present in a channel, behind a name, in the order of names.
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
        out.write_str("as many are present as can be counted; those who come now are not listed")
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
        let mut presence = Presence::new(10);
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
        let mut presence = Presence::new(10);
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
        let mut presence = Presence::new(10);
        let session: Arc<str> = "s".into();
        assert!(presence.hold(1, &session).unwrap().is_some());
        assert_eq!(presence.hold(1, &session), Ok(None));
        presence.release(1, &session, 100);
        assert_eq!((presence.expire(5000), presence.next_due()), (None, None));
        presence.release(1, &session, 5100);
        // Held again before that, it has never gone.
        assert_eq!(presence.hold(1, &session), Ok(None));
        assert_eq!((presence.expire(9000), presence.next_due()), (None, None));
        presence.release(1, &session, 9100);
        assert_eq!(presence.expire(9099), None);
        assert!(presence.expire(9100).is_some_and(|change| !change.is_present));
    }

    #[test]
    fn rejects_leases_over_limit_and_lists_sessions_by_name() {
        let mut presence = Presence::new(3);
        for name in ["c", "a", "b"] {
            assert!(presence.renew(1, &name.into(), 100).unwrap().is_some());
        }
        assert_eq!(presence.renew(1, &"d".into(), 100), Err(PresenceFull));
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
            let mut presence = Presence::new(100);
            // Until when, and held how often.
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

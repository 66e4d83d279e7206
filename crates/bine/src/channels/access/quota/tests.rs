//! Tests quotas and revocations.

use std::borrow::Cow;
use std::sync::atomic::{AtomicU64, AtomicUsize};

use bine_http::Method;
use bine_server::{ClientAddress, Incoming};

use super::super::follow_rights::{FollowRights, FollowedChannel};
use super::super::grant::Grant;
use super::Charge::{Join, Messages};
use super::*;
use crate::access_guard::{AccessDecision, ChannelUse};
use crate::request_session::SessionProvider;
use crate::sessions::login::testing::login;
use crate::user_name::NameComparison;

const LOCAL: AddressBlock = AddressBlock::LOCAL;

fn block(address: &str) -> AddressBlock {
    ClientAddress::tcp(format!("{address}:1").parse().unwrap()).block()
}

fn session(subject: &str, issued: u64) -> Arc<ActiveGrant> {
    Arc::new(ActiveGrant::new(Grant::to(subject), Issued::At(issued)))
}

fn quotas(client_limits: ClientLimits) -> QuotaTable {
    let quotas = QuotaTable::new();
    quotas.configure(client_limits, Duration::from_hours(1));
    quotas
}

/// The name of the exceeded cap.
fn cap<T: std::fmt::Debug>(result: Result<T, HoldRejection>) -> &'static str {
    match result {
        Err(HoldRejection::CapExceeded(exceeded)) => exceeded.cap,
        other => panic!("{other:?}"),
    }
}

#[test]
fn counts_an_ipv6_prefix_and_this_machine_as_one_address() {
    assert_eq!(block("[2001:db8:1:2::1]"), block("[2001:db8:1:2:ffff::2]"));
    assert_ne!(block("[2001:db8:1:2::1]"), block("[2001:db8:1:3::1]"));
    assert_ne!(block("192.0.2.1"), block("192.0.2.2"));
    assert_eq!(block("[::ffff:192.0.2.1]"), block("192.0.2.1"));
    for local in ["127.0.0.1", "[::1]", "127.8.8.8"] {
        assert_eq!(block(local), LOCAL);
    }
    assert_eq!(ClientAddress::UNIX.block(), LOCAL);
}

#[test]
fn limits_holds_by_address_subject_and_total() {
    let client_limits = ClientLimits {
        holds_per_address: 2,
        holds_per_subject: 3,
        holds: 5,
        ..ClientLimits::default()
    };
    let quotas = quotas(client_limits);
    let (here, there, ann) = (block("192.0.2.1"), block("192.0.2.2"), session("ann", 1));
    let first = [quotas.reserve(here, None).unwrap(), quotas.reserve(here, Some(&ann)).unwrap()];
    assert_eq!(cap(quotas.reserve(here, None)), "holds_per_address");
    let second = [quotas.reserve(there, Some(&ann)), quotas.reserve(LOCAL, Some(&ann))];
    // Another session of the same subject counts with it.
    assert_eq!(cap(quotas.reserve(LOCAL, Some(&session("ann", 2)))), "holds_per_subject");
    assert_eq!(quotas.reserve(LOCAL, None), Ok(LOCAL_GROUP));
    let all: Vec<u32> = first.into_iter().chain(second.map(Result::unwrap)).collect();
    for number in &all {
        quotas.begin_hold(*number);
    }
    quotas.begin_hold(LOCAL_GROUP);
    assert_eq!(cap(quotas.reserve(LOCAL, None)), "holds");
    quotas.end_hold(LOCAL_GROUP);
    for number in &all {
        quotas.end_hold(*number);
    }
    let state = quotas.state();
    assert!(state.numbers.is_empty() && state.addresses.is_empty() && state.subjects.is_empty());
    assert_eq!(quotas.total.load(Ordering::Relaxed), 0);
}

#[test]
fn weights_holds_by_their_channels() {
    let client_limits = ClientLimits {
        holds_per_address: 3,
        holds_per_subject: 4,
        holds: 200,
        ..ClientLimits::default()
    };
    let quotas = quotas(client_limits);
    let (here, there, ann) = (block("192.0.2.1"), block("192.0.2.2"), session("ann", 1));
    let hold = |block, session: Option<&Arc<ActiveGrant>>, channels| {
        let number = quotas.reserve(block, session).unwrap();
        quotas.begin_hold(number);
        quotas.add_channels(number, channels);
        (number, channels)
    };
    let of_here = hold(here, None, 130);
    assert_eq!(cap(quotas.reserve(here, None)), "holds_per_address");
    let of_ann = [hold(there, Some(&ann), 64), hold(LOCAL, Some(&ann), 127)];
    assert_eq!(cap(quotas.reserve(LOCAL, Some(&ann))), "holds_per_subject");
    // One hold may exceed the limit.
    let of_all = hold(LOCAL, None, 12_800);
    assert_eq!(cap(quotas.reserve(LOCAL, None)), "holds");
    for (number, channels) in of_ann.into_iter().chain([of_here, of_all]) {
        quotas.remove_channels(number, channels);
        quotas.end_hold(number);
    }
    let state = quotas.state();
    assert!(state.numbers.is_empty() && state.addresses.is_empty() && state.subjects.is_empty());
    assert_eq!(quotas.total.load(Ordering::Relaxed), 0);
}

#[test]
fn groups_holds_by_address_and_grant() {
    let quotas = quotas(ClientLimits::default());
    let (here, ann) = (block("192.0.2.1"), session("ann", 1));
    let one = quotas.reserve(here, Some(&ann));
    assert_eq!(one, quotas.reserve(here, Some(&ann)));
    assert_ne!(one, quotas.reserve(here, None));
    assert_ne!(one, quotas.reserve(LOCAL, Some(&ann)));
}

#[test]
fn limits_the_rate_of_messages() {
    let client_limits = ClientLimits {
        messages_per_address: 10,
        messages_per_subject: 4,
        ..ClientLimits::default()
    };
    let quotas = quotas(client_limits);
    let (here, now) = (block("192.0.2.1"), Instant::now());
    assert_eq!(quotas.charge(here, None, Messages(9), now), Ok(()));
    // A batch may exceed the limit.
    assert_eq!(quotas.charge(here, None, Messages(21), now), Ok(()));
    let exceeded = quotas.charge(here, None, Messages(1), now).unwrap_err();
    assert_eq!((exceeded.cap, exceeded.retry_seconds), ("messages_per_address", 3));
    assert_eq!(
        quotas
            .charge(here, None, Messages(1), now + Duration::from_secs(2))
            .unwrap_err()
            .retry_seconds,
        1
    );
    assert_eq!(quotas.charge(here, None, Messages(1), now + Duration::from_secs(3)), Ok(()));
    let ann = session("ann", 1);
    assert_eq!(quotas.charge(LOCAL, Some(&ann), Messages(5), now), Ok(()));
    assert_eq!(
        quotas.charge(LOCAL, Some(&ann), Messages(1), now).unwrap_err().cap,
        "messages_per_subject"
    );
    assert_eq!(quotas.charge(LOCAL, None, Messages(1 << 18), now), Ok(()));
    // Idle accounts are removed.
    quotas.state().cleanup_at = 0;
    assert_eq!(
        quotas.charge(LOCAL, Some(&ann), Messages(1), now + Duration::from_secs(100)),
        Ok(())
    );
    let state = quotas.state();
    assert_eq!((state.addresses.len(), state.subjects.len()), (1, 1));
}

#[test]
fn allows_a_burst_of_join_events_up_to_the_hold_limit() {
    let now = Instant::now();
    for (most, each) in [(2, Duration::from_millis(500)), (0, Duration::from_secs(1))] {
        let client_limits = ClientLimits {
            holds_per_address: 3,
            messages_per_address: most,
            ..ClientLimits::default()
        };
        let (quotas, here) = (quotas(client_limits), block("192.0.2.1"));
        for _ in 0..3 {
            assert_eq!(quotas.charge(here, None, Join, now), Ok(()));
        }
        let exceeded = quotas.charge(here, None, Join, now).unwrap_err();
        assert_eq!(exceeded.cap, "messages_per_address");
        // Join events use up the address's message rate.
        assert!(quotas.charge(here, None, Messages(1), now).is_err());
        assert_eq!(quotas.charge(here, None, Join, now + each), Ok(()));
        assert!(quotas.charge(here, None, Join, now + each).is_err());
        assert_eq!(quotas.charge(LOCAL, None, Join, now), Ok(()));
    }
}

/// Symptom: Bob's grant from an access function survived his revocation, as he also had Ann's
/// token. Cause: a merged grant kept one subject only.
#[test]
fn a_merged_grant_ends_with_either_subject() {
    let joined = |quotas: &QuotaTable| {
        let issued = Issued::Behind(quotas.revocations());
        Arc::new(session("ann", 10).and(Grant::to("bob"), issued))
    };
    for name in ["ann", "bob"] {
        let quotas = quotas(ClientLimits::default());
        let both = joined(&quotas);
        let number = quotas.reserve(LOCAL, Some(&both)).unwrap();
        assert!(quotas.revoke("eve", 20, 100) && !quotas.has_revoked(&both));
        let both_later = joined(&quotas);
        assert!(quotas.revoke(name, 20, 100) && quotas.has_revoked(&both));
        assert_eq!(quotas.grant_end(number), Some(0));
        assert!(quotas.has_revoked(&both_later));
        // Bob's grant is newer than the revocation; Ann's token is older.
        assert_eq!(quotas.has_revoked(&joined(&quotas)), name == "ann");
    }
}

#[test]
fn revokes_earlier_grants_only() {
    let quotas = quotas(ClientLimits::default());
    let (before, other, later) = (session("ann", 10), session("bob", 10), session("ann", 21));
    let [one, two] = [&before, &other].map(|own| quotas.reserve(LOCAL, Some(own)).unwrap());
    assert!(quotas.revoke("ann", 20, 100));
    assert_eq!((quotas.grant_end(one), quotas.grant_end(two)), (Some(0), None));
    assert_eq!(quotas.reserve(LOCAL, Some(&before)), Err(HoldRejection::Revoked));
    assert_eq!(quotas.reserve(LOCAL, Some(&session("ann", 20))), Err(HoldRejection::Revoked));
    assert!(quotas.reserve(LOCAL, Some(&later)).is_ok() && !quotas.has_revoked(&later));
    // A function's grant is ordered before or after the revocation, however close.
    let said = |number| ActiveGrant::new(Grant::to("ann"), Issued::Behind(number));
    assert!(quotas.has_revoked(&said(0)) && !quotas.has_revoked(&said(1)));
    assert_eq!(quotas.revoked(99), [("ann".into(), 20, 100)]);
    assert_eq!(quotas.revoked(100), []);
}

#[test]
fn keeps_the_later_revocation_when_the_clock_is_set_back() {
    let quotas = quotas(ClientLimits::default());
    assert!(quotas.revoke("ann", 100, 1000) && quotas.revoke("ann", 50, 500));
    assert!(quotas.has_revoked(&session("ann", 80)) && quotas.has_revoked(&session("ann", 100)));
    assert!(!quotas.has_revoked(&session("ann", 101)));
    assert_eq!(quotas.revoked(999), [("ann".into(), 100, 1000)]);
}

#[test]
fn ends_and_rejects_holds_of_ended_logins() {
    let quotas = quotas(ClientLimits::default());
    let [(one, end_one), (two, _)] = [login(), login()];
    let rows = [one.row(), two.row()];
    let by = |login| {
        let session = ActiveGrant::new(Grant::to("ann"), Issued::Behind(quotas.revocations()));
        Arc::new(session.with_login(Some(login)))
    };
    let (one, two) = (by(one), by(two));
    let [first, second] = [&one, &two].map(|session| quotas.reserve(LOCAL, Some(session)).unwrap());
    // A changed row may also mean an extended session.
    assert_eq!(quotas.grant_end(second), None);
    assert!(!quotas.end_logins(Some(&rows)) && !quotas.end_logins(None));
    let idle = Some(14 * 24 * 60 * 60 * 1000);
    assert_eq!(quotas.grant_end(second), idle);
    let late =
        Arc::new(ActiveGrant::new(Grant::none(), Issued::Behind(0)).with_login(one.login.clone()));
    end_one();
    assert_eq!(
        quotas.reserve(LOCAL, Some(&late)),
        Err(HoldRejection::Revoked),
        "before it is heard"
    );
    assert_ne!(quotas.grant_end(first), Some(0));
    assert!(!quotas.end_logins(Some(&rows[1..])) && quotas.end_logins(Some(&rows[..1])));
    assert_eq!((quotas.grant_end(first), quotas.grant_end(second)), (Some(0), idle));
    assert_eq!(quotas.reserve(LOCAL, Some(&one)), Err(HoldRejection::Revoked));
    quotas.release(first);
    quotas.release(second);
    assert!(quotas.state().logins.is_empty());
    // Too many ended logins to report their rows.
    let (three, end_three) = login();
    let three = by(three);
    let third = quotas.reserve(LOCAL, Some(&three)).unwrap();
    end_three();
    assert!(quotas.end_logins(None));
    assert_eq!(quotas.grant_end(third), Some(0));
}

/// Symptom: clients on this machine had no limits. Cause: they were not counted.
#[test]
fn gives_this_machine_generous_caps() {
    let client_limits = ClientLimits {
        holds_per_address: 1,
        holds: 8,
        messages_per_address: 1,
        ..ClientLimits::default()
    };
    let quotas = quotas(client_limits);
    for _ in 0..4 {
        let number = quotas.reserve(LOCAL, None).unwrap();
        quotas.begin_hold(number);
    }
    assert_eq!(cap(quotas.reserve(LOCAL, None)), "holds_per_address");
    assert!(quotas.reserve(block("192.0.2.1"), None).is_ok());
    quotas.end_hold(LOCAL_GROUP);
    assert!(quotas.reserve(LOCAL, None).is_ok());
    let now = Instant::now();
    assert_eq!(quotas.charge(LOCAL, None, Messages(1000), now), Ok(()));
    assert!(quotas.charge(LOCAL, None, Messages(1), now).is_err());
    assert_eq!(quotas.charge(LOCAL, None, Messages(1), now + Duration::from_secs(1)), Ok(()));
}

#[test]
fn derives_quotas_from_the_memory_limit() {
    let memory_quotas =
        |bytes| ClientLimits { bytes: Some(bytes), ..ClientLimits::default() }.memory_quotas();
    let large = memory_quotas(8 << 30);
    assert_eq!((large.per_channel, large.per_subject, large.local), (2 << 30, 2 << 30, 4 << 30));
    let small = memory_quotas(32 << 20);
    assert_eq!((small.per_channel, small.per_subject, small.local), (32 << 20, 32 << 20, 32 << 20));
    let most = memory_limit().unwrap();
    assert_eq!(ClientLimits::default().memory_quotas().bytes, most / 4);
}

/// Symptom: a revocation took time for every hold. Cause: each group and hold was checked.
#[test]
fn reports_the_groups_that_a_revocation_ended() {
    let quotas = quotas(ClientLimits { holds_per_subject: 1000, ..ClientLimits::default() });
    let numbers: Vec<u32> = (0..500)
        .map(|number| {
            let subject = if number % 250 == 0 { "ann" } else { "ben" };
            quotas.reserve(LOCAL, Some(&session(subject, 1))).unwrap()
        })
        .collect();
    let before = quotas.revocations();
    assert!(quotas.revoke("ann", 100, 1000));
    let ended = quotas.ended_since(before);
    assert_eq!(ended, (before + 1, Some(vec![numbers[0], numbers[250]])));
    assert_eq!(quotas.ended_since(ended.0), (ended.0, Some(Vec::new())));
    for number in &numbers {
        quotas.release(*number);
    }
    let left = ["ann", "ben"].map(|subject| quotas.state().revocation_index.of(subject).count());
    assert_eq!(left, [0, 0]);
}

/// A guard whose one rule lets everyone but some users follow all channels.
#[derive(Default)]
struct ChangingGuard {
    denied: Mutex<Vec<&'static str>>,
    version: AtomicU64,
    checks: AtomicUsize,
}

impl ChangingGuard {
    fn deny(&self, users: &[&'static str]) {
        *self.denied.lock().unwrap() = users.to_vec();
        self.version.fetch_add(1, Ordering::Release);
    }
}

impl AccessGuard for ChangingGuard {
    fn check(
        &self,
        _path: &str,
        _request: &Incoming<'_>,
        _sessions: Option<&Arc<dyn SessionProvider>>,
    ) -> AccessDecision {
        AccessDecision::Allow
    }

    fn allows(&self, _user: Option<&str>, _path: &str, _method: Method) -> bool {
        true
    }

    fn check_channel(
        &self,
        user: Option<&str>,
        _usage: ChannelUse,
        _channel: &str,
    ) -> Option<bool> {
        self.checks.fetch_add(1, Ordering::Relaxed);
        Some(!self.denied.lock().unwrap().iter().any(|denied| Some(*denied) == user))
    }

    fn version(&self) -> u64 {
        self.version.load(Ordering::Acquire) + 1
    }

    fn may_use_some_channel(&self, _user: Option<&str>, _usage: ChannelUse) -> bool {
        true
    }

    fn is_member(&self, _user: &str, _group: &str) -> bool {
        false
    }

    fn names_user(&self, _user: &str) -> bool {
        false
    }

    fn compare_names(&self, _names: NameComparison) {}

    fn keep_open(&self, _paths: Vec<Cow<'static, str>>) {}

    fn log_in_page(&self) -> Option<&str> {
        None
    }
}

/// The grant of a user who follows one channel.
fn follower(guard: &Arc<ChangingGuard>, user: &str) -> Arc<ActiveGrant> {
    let guard: Arc<dyn AccessGuard> = Arc::<ChangingGuard>::clone(guard);
    let channels = vec![FollowedChannel { name: "news".into(), is_by_rule: true }];
    let rights = FollowRights::new(&guard, Some(user.into()), channels);
    Arc::new(ActiveGrant::following(None, Issued::Behind(0), rights))
}

/// A change of rights visited all holds under the journal's lock, all of 100 000, so that
/// they got no message after it. Now each delivery compares versions, and the visit follows.
#[test]
fn lost_right_ends_deliveries_before_the_holds_are_visited() {
    let (quotas, guard) = (quotas(ClientLimits::default()), Arc::new(ChangingGuard::default()));
    let grants = ["ann", "ben"].map(|user| follower(&guard, user));
    let [ann, ben] = [0, 1].map(|at| quotas.reserve(LOCAL, Some(&grants[at])).unwrap());
    assert_eq!((quotas.grant_end(ann), quotas.grant_end(ben)), (None, None));
    guard.deny(&["ann"]);
    assert_eq!((quotas.grant_end(ann), quotas.grant_end(ben)), (Some(0), None));
    // A right that is granted again does not revive a hold, and its visit finds it.
    guard.deny(&[]);
    assert_eq!(quotas.grant_end(ann), Some(0));
    assert!(quotas.end_lost_rights());
    assert_eq!(quotas.ended_since(0), (1, Some(vec![ann])));
}

#[test]
fn deliveries_ask_the_rules_once_for_each_change() {
    let (quotas, guard) = (quotas(ClientLimits::default()), Arc::new(ChangingGuard::default()));
    let ann = quotas.reserve(LOCAL, Some(&follower(&guard, "ann"))).unwrap();
    for changes in 1..=3 {
        for _ in 0..100 {
            assert_eq!(quotas.grant_end(ann), None);
        }
        assert_eq!(guard.checks.load(Ordering::Relaxed), changes);
        guard.deny(&["ben"]);
    }
}

#[test]
fn visits_holds_in_slices_until_all_are_visited() {
    let client_limits = ClientLimits { holds_per_subject: 4000, ..ClientLimits::default() };
    let (quotas, guard) = (quotas(client_limits), Arc::new(ChangingGuard::default()));
    let count = 2 * MAX_VISITED + 1;
    let numbers: Vec<u32> = (0..count)
        .map(|at| if at % MAX_VISITED == 0 { "ann" } else { "ben" })
        .map(|user| quotas.reserve(LOCAL, Some(&follower(&guard, user))).unwrap())
        .collect();
    assert!(!quotas.end_lost_rights());
    guard.deny(&["ann"]);
    assert!(quotas.end_lost_rights());
    let (_, ended) = quotas.ended_since(0);
    assert_eq!(ended.unwrap(), [0, MAX_VISITED, 2 * MAX_VISITED].map(|at| numbers[at]));
}

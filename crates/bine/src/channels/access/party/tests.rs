//! Claims about what is counted, given back and revoked.

use super::super::grant::Grant;
use super::Paid::{Coming, Messages};
use super::*;
use crate::sessions::login::testing::login;
use bine_server::Peer;

const LOCAL: AddressBlock = AddressBlock::LOCAL;

fn block(address: &str) -> AddressBlock {
    Peer::tcp(format!("{address}:1").parse().unwrap()).block()
}

fn session(subject: &str, issued: u64) -> Arc<Session> {
    Arc::new(Session::new(Grant::to(subject), Issued::At(issued)))
}

fn parties(caps: Caps) -> Parties {
    let parties = Parties::new();
    parties.settle(caps, Duration::from_hours(1));
    parties
}

/// The cap that is exceeded.
fn cap<T: std::fmt::Debug>(result: Result<T, Shut>) -> &'static str {
    match result {
        Err(Shut::Crowded(crowded)) => crowded.cap,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_household_is_one_address_and_so_is_this_machine() {
    assert_eq!(block("[2001:db8:1:2::1]"), block("[2001:db8:1:2:ffff::2]"));
    assert_ne!(block("[2001:db8:1:2::1]"), block("[2001:db8:1:3::1]"));
    assert_ne!(block("192.0.2.1"), block("192.0.2.2"));
    assert_eq!(block("[::ffff:192.0.2.1]"), block("192.0.2.1"));
    for local in ["127.0.0.1", "[::1]", "127.8.8.8"] {
        assert_eq!(block(local), LOCAL);
    }
    assert_eq!(Peer::UNIX.block(), LOCAL);
}

#[test]
fn holds_are_counted_by_address_subject_and_in_total_and_given_back() {
    let caps = Caps { holds_per_address: 2, holds_per_subject: 3, holds: 5, ..Caps::default() };
    let parties = parties(caps);
    let (here, there, ann) = (block("192.0.2.1"), block("192.0.2.2"), session("ann", 1));
    let first = [parties.enter(here, None).unwrap(), parties.enter(here, Some(&ann)).unwrap()];
    assert_eq!(cap(parties.enter(here, None)), "holds_per_address");
    let second = [parties.enter(there, Some(&ann)), parties.enter(LOCAL, Some(&ann))];
    // Another session of the same subject counts with it.
    assert_eq!(cap(parties.enter(LOCAL, Some(&session("ann", 2)))), "holds_per_subject");
    assert_eq!(parties.enter(LOCAL, None), Ok(ANYBODY));
    let all: Vec<u32> = first.into_iter().chain(second.map(Result::unwrap)).collect();
    for number in &all {
        parties.sit(*number);
    }
    parties.sit(ANYBODY);
    assert_eq!(cap(parties.enter(LOCAL, None)), "holds");
    parties.rise(ANYBODY);
    for number in &all {
        parties.rise(*number);
    }
    let book = parties.book();
    assert!(book.numbers.is_empty() && book.addresses.is_empty() && book.subjects.is_empty());
    assert_eq!(parties.total.load(Ordering::Relaxed), 0);
}

#[test]
fn a_hold_of_many_channels_counts_for_several_until_it_has_gone() {
    let caps = Caps { holds_per_address: 3, holds_per_subject: 4, holds: 200, ..Caps::default() };
    let parties = parties(caps);
    let (here, there, ann) = (block("192.0.2.1"), block("192.0.2.2"), session("ann", 1));
    let hold = |block, session: Option<&Arc<Session>>, channels| {
        let number = parties.enter(block, session).unwrap();
        parties.sit(number);
        parties.load(number, channels);
        (number, channels)
    };
    let of_here = hold(here, None, 130);
    assert_eq!(cap(parties.enter(here, None)), "holds_per_address");
    let of_ann = [hold(there, Some(&ann), 64), hold(LOCAL, Some(&ann), 127)];
    assert_eq!(cap(parties.enter(LOCAL, Some(&ann))), "holds_per_subject");
    // One may overdraw.
    let of_all = hold(LOCAL, None, 12_800);
    assert_eq!(cap(parties.enter(LOCAL, None)), "holds");
    for (number, channels) in of_ann.into_iter().chain([of_here, of_all]) {
        parties.unload(number, channels);
        parties.rise(number);
    }
    let book = parties.book();
    assert!(book.numbers.is_empty() && book.addresses.is_empty() && book.subjects.is_empty());
    assert_eq!(parties.total.load(Ordering::Relaxed), 0);
}

#[test]
fn what_waits_alike_is_one_party() {
    let parties = parties(Caps::default());
    let (here, ann) = (block("192.0.2.1"), session("ann", 1));
    let one = parties.enter(here, Some(&ann));
    assert_eq!(one, parties.enter(here, Some(&ann)));
    assert_ne!(one, parties.enter(here, None));
    assert_ne!(one, parties.enter(LOCAL, Some(&ann)));
}

#[test]
fn who_publishes_too_fast_waits_until_it_is_paid() {
    let caps = Caps { messages_per_address: 10, messages_per_subject: 4, ..Caps::default() };
    let parties = parties(caps);
    let (here, now) = (block("192.0.2.1"), 1_800_000_000 * SECOND);
    assert_eq!(parties.spend(here, None, Messages(9), now), Ok(()));
    // A batch may overdraw.
    assert_eq!(parties.spend(here, None, Messages(21), now), Ok(()));
    let crowded = parties.spend(here, None, Messages(1), now).unwrap_err();
    assert_eq!((crowded.cap, crowded.retry), ("messages_per_address", 3));
    assert_eq!(parties.spend(here, None, Messages(1), now + 2 * SECOND).unwrap_err().retry, 1);
    assert_eq!(parties.spend(here, None, Messages(1), now + 3 * SECOND), Ok(()));
    let ann = session("ann", 1);
    assert_eq!(parties.spend(LOCAL, Some(&ann), Messages(5), now), Ok(()));
    assert_eq!(
        parties.spend(LOCAL, Some(&ann), Messages(1), now).unwrap_err().cap,
        "messages_per_subject"
    );
    assert_eq!(parties.spend(LOCAL, None, Messages(1 << 18), now), Ok(()));
    // Accounts that are paid are forgotten.
    parties.book().sweep_at = 0;
    assert_eq!(parties.spend(LOCAL, Some(&ann), Messages(1), now + 100 * SECOND), Ok(()));
    let book = parties.book();
    assert_eq!((book.addresses.len(), book.subjects.len()), (1, 1));
}

#[test]
fn as_many_may_come_at_once_as_may_wait_and_then_as_many_as_may_publish() {
    let now = 1_800_000_000 * SECOND;
    for (most, each) in [(2, SECOND / 2), (0, SECOND)] {
        let caps = Caps { holds_per_address: 3, messages_per_address: most, ..Caps::default() };
        let (parties, here) = (parties(caps), block("192.0.2.1"));
        for _ in 0..3 {
            assert_eq!(parties.spend(here, None, Coming, now), Ok(()));
        }
        let crowded = parties.spend(here, None, Coming, now).unwrap_err();
        assert_eq!(crowded.cap, "messages_per_address");
        // They are messages, of whose address no others are taken meanwhile.
        assert!(parties.spend(here, None, Messages(1), now).is_err());
        assert_eq!(parties.spend(here, None, Coming, now + each), Ok(()));
        assert!(parties.spend(here, None, Coming, now + each).is_err());
        assert_eq!(parties.spend(LOCAL, None, Coming, now), Ok(()));
    }
}

/// Symptom: what a function had granted Bob, who also showed a token of Ann's, outlived his revocation. Cause: one name was
/// kept of both. Cure: both are.
#[test]
fn what_two_gave_ends_with_either() {
    let joined = |parties: &Parties| {
        let issued = Issued::Behind(parties.revocations());
        Arc::new(session("ann", 10).and(Grant::to("bob"), issued))
    };
    for name in ["ann", "bob"] {
        let parties = parties(Caps::default());
        let both = joined(&parties);
        let number = parties.enter(LOCAL, Some(&both)).unwrap();
        assert!(parties.revoke("eve", 20, 100) && !parties.has_revoked(&both));
        let both_later = joined(&parties);
        assert!(parties.revoke(name, 20, 100) && parties.has_revoked(&both));
        assert_eq!(parties.ends(number), Some(0));
        assert!(parties.has_revoked(&both_later));
        // Bob was asked about again behind it; Ann's token is as old as it was.
        assert_eq!(parties.has_revoked(&joined(&parties)), name == "ann");
    }
}

#[test]
fn a_revocation_ends_what_was_given_before_and_nothing_that_came_later() {
    let parties = parties(Caps::default());
    let (before, other, later) = (session("ann", 10), session("bob", 10), session("ann", 21));
    let [one, two] = [&before, &other].map(|own| parties.enter(LOCAL, Some(own)).unwrap());
    assert!(parties.revoke("ann", 20, 100));
    assert_eq!((parties.ends(one), parties.ends(two)), (Some(0), None));
    assert_eq!(parties.enter(LOCAL, Some(&before)), Err(Shut::Revoked));
    assert_eq!(parties.enter(LOCAL, Some(&session("ann", 20))), Err(Shut::Revoked));
    assert!(parties.enter(LOCAL, Some(&later)).is_ok() && !parties.has_revoked(&later));
    // What a function says is said before or behind it, however close.
    let said = |number| Session::new(Grant::to("ann"), Issued::Behind(number));
    assert!(parties.has_revoked(&said(0)) && !parties.has_revoked(&said(1)));
    assert_eq!(parties.revoked(99), [("ann".into(), 20, 100)]);
    assert_eq!(parties.revoked(100), []);
}

#[test]
fn a_second_revocation_by_a_clock_that_was_set_back_does_not_undo_the_first() {
    let parties = parties(Caps::default());
    assert!(parties.revoke("ann", 100, 1000) && parties.revoke("ann", 50, 500));
    assert!(parties.has_revoked(&session("ann", 80)) && parties.has_revoked(&session("ann", 100)));
    assert!(!parties.has_revoked(&session("ann", 101)));
    assert_eq!(parties.revoked(999), [("ann".into(), 100, 1000)]);
}

#[test]
fn who_waits_by_a_login_waits_no_longer_when_it_ends_and_nobody_begins_to() {
    let parties = parties(Caps::default());
    let [(one, end_one), (two, _)] = [login(), login()];
    let rows = [one.row(), two.row()];
    let by = |login| {
        let session = Session::new(Grant::to("ann"), Issued::Behind(parties.revocations()));
        Arc::new(session.by(Some(login)))
    };
    let (one, two) = (by(one), by(two));
    let [first, second] = [&one, &two].map(|session| parties.enter(LOCAL, Some(session)).unwrap());
    // That rows have changed may say that they last for longer.
    assert_eq!(parties.ends(second), None);
    assert!(!parties.end(Some(&rows)) && !parties.end(None));
    let idle = Some(14 * 24 * 60 * 60 * 1000);
    assert_eq!(parties.ends(second), idle);
    let late = Arc::new(Session::new(Grant::nothing(), Issued::Behind(0)).by(one.login.clone()));
    end_one();
    assert_eq!(parties.enter(LOCAL, Some(&late)), Err(Shut::Revoked), "before it is heard");
    assert_ne!(parties.ends(first), Some(0));
    assert!(!parties.end(Some(&rows[1..])) && parties.end(Some(&rows[..1])));
    assert_eq!((parties.ends(first), parties.ends(second)), (Some(0), idle));
    assert_eq!(parties.enter(LOCAL, Some(&one)), Err(Shut::Revoked));
    parties.leave(first);
    parties.leave(second);
    assert!(parties.book().logins.is_empty());
    // Of too many at once.
    let (three, end_three) = login();
    let three = by(three);
    let third = parties.enter(LOCAL, Some(&three)).unwrap();
    end_three();
    assert!(parties.end(None));
    assert_eq!(parties.ends(third), Some(0));
}

/// Clients of this machine were not counted at all.
#[test]
fn gives_this_machine_generous_caps() {
    let caps = Caps { holds_per_address: 1, holds: 8, messages_per_address: 1, ..Caps::default() };
    let parties = parties(caps);
    for _ in 0..4 {
        let number = parties.enter(LOCAL, None).unwrap();
        parties.sit(number);
    }
    assert_eq!(cap(parties.enter(LOCAL, None)), "holds_per_address");
    assert!(parties.enter(block("192.0.2.1"), None).is_ok());
    parties.rise(ANYBODY);
    assert!(parties.enter(LOCAL, None).is_ok());
    let now = 1_800_000_000 * SECOND;
    assert_eq!(parties.spend(LOCAL, None, Messages(1000), now), Ok(()));
    assert!(parties.spend(LOCAL, None, Messages(1), now).is_err());
    assert_eq!(parties.spend(LOCAL, None, Messages(1), now + SECOND), Ok(()));
}

#[test]
fn quotas_follow_from_the_memory_that_there_is() {
    let quotas = |bytes| Caps { bytes: Some(bytes), ..Caps::default() }.quotas();
    let large = quotas(8 << 30);
    assert_eq!((large.per_channel, large.per_subject, large.local), (2 << 30, 2 << 30, 4 << 30));
    let small = quotas(32 << 20);
    assert_eq!((small.per_channel, small.per_subject, small.local), (32 << 20, 32 << 20, 32 << 20));
    let most = memory_limit().unwrap();
    assert_eq!(Caps::default().quotas().bytes, most / 4);
}

/// A revocation looked at every party, and each thread then at every hold.
#[test]
fn tells_threads_which_parties_a_revocation_has_ended() {
    let parties = parties(Caps { holds_per_subject: 1000, ..Caps::default() });
    let numbers: Vec<u32> = (0..500)
        .map(|number| {
            let subject = if number % 250 == 0 { "ann" } else { "ben" };
            parties.enter(LOCAL, Some(&session(subject, 1))).unwrap()
        })
        .collect();
    let before = parties.revocations();
    assert!(parties.revoke("ann", 100, 1000));
    let ended = parties.ended_since(before);
    assert_eq!(ended, (before + 1, Some(vec![numbers[0], numbers[250]])));
    assert_eq!(parties.ended_since(ended.0), (ended.0, Some(Vec::new())));
    for number in &numbers {
        parties.leave(*number);
    }
    let left = ["ann", "ben"].map(|subject| parties.book().holders.of(subject).count());
    assert_eq!(left, [0, 0]);
}

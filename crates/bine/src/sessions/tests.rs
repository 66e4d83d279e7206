//! Tests of sessions, with a clock that the tests set.

use std::pin::Pin;
use std::task::{Context, Poll, Waker};

use bine_http::Status;
use proptest::prelude::*;

use super::*;
use crate::error::Error;
use crate::store::RowId;
use crate::trace::RequestDependency;
use crate::trace::testing::dependencies_of;

pub(super) const NOW: u64 = 1_800_000_000;

/// A browser with one cookie.
#[derive(Clone, Default)]
pub(super) struct Browser {
    cookie: Option<String>,
    /// The browser's address.
    address: [u8; 4],
}

impl Browser {
    /// Requests a page that takes a [`Session`], runs it, and stores the response's cookie. The
    /// second value reports whether the response sets the cookie.
    fn visit<T>(
        &mut self,
        session_store: &Arc<SessionStore>,
        now: u64,
        page: impl FnOnce(Session) -> T,
    ) -> (T, bool) {
        let visit = self.ask(session_store, now);
        let answer = page(Session::of(Arc::clone(&visit)));
        let told = visit.fields().find(|(name, _)| *name == "Set-Cookie");
        let is_told = told.is_some();
        if let Some((_, field)) = told {
            let (pair, _) = field.split_once("; Path=/; ").unwrap();
            let value = pair.strip_prefix("session=").unwrap();
            self.cookie = Some(value.to_owned()).filter(|value| !value.is_empty());
        }
        (answer, is_told)
    }

    pub(super) fn ask(&self, session_store: &Arc<SessionStore>, now: u64) -> Arc<VisitorSession> {
        let field = self.cookie.as_ref().map(|value| format!("a=b; session={value}; c"));
        let found = session_store.opened().find(field.as_deref().into_iter(), "session", now);
        let peer = ClientAddress::tcp((self.address, 1).into());
        let visit = Arc::new(VisitorSession::new(Arc::clone(session_store), found, peer, now));
        visit.attend();
        // Use is recorded asynchronously; the tests need it at once.
        await_staged(session_store);
        visit
    }

    pub(super) fn name(&mut self, session_store: &Arc<SessionStore>, now: u64) -> String {
        self.visit(session_store, now, |session| session.name().as_str().to_owned()).0
    }

    fn user(&mut self, session_store: &Arc<SessionStore>, now: u64) -> Option<String> {
        self.visit(session_store, now, |session| {
            session.user().map(|user| user.as_str().to_owned())
        })
        .0
    }

    fn log_in(&mut self, session_store: &Arc<SessionStore>, now: u64, user: &str) {
        self.visit(session_store, now, |session| session.log_in(user).wait().unwrap());
    }
}

fn session_store_with(times: Sessions) -> Arc<SessionStore> {
    let store = Store::in_memory(SessionStore::declare(Options::new())).unwrap();
    let session_store = Arc::new(SessionStore::new(Sessions::new()));
    session_store.open_at(&store, None, times, NOW).unwrap();
    session_store
}

pub(super) fn session_store() -> Arc<SessionStore> {
    session_store_with(Sessions::new())
}

fn rows(session_store: &SessionStore) -> usize {
    session_store.opened().store.read().count::<SessionRow>()
}

/// Waits until all earlier changes are visible.
pub(super) fn await_staged(session_store: &SessionStore) {
    let come_and_go = || {
        let change = session_store.opened().store.change(|change| {
            let id = change.insert(SessionRow::new(&SessionCookie::new(NOW)))?;
            change.remove(id)
        });
        assert!(change.wait().unwrap());
    };
    // On a new thread, so that a render of this thread does not record it.
    std::thread::scope(|scope| scope.spawn(come_and_go).join().unwrap());
}

/// Sweeps several times, since each sweep removes a small batch asynchronously.
fn rows_when_swept(session_store: &SessionStore, now: u64) -> usize {
    for _ in 0..100 {
        session_store.opened().sweep(now);
        await_staged(session_store);
    }
    rows(session_store)
}

fn code<T: std::fmt::Debug>(outcome: Result<T, Error>) -> Status {
    outcome.unwrap_err().code()
}

#[test]
fn reading_session_sets_cookie_without_row() {
    let session_store = session_store();
    let mut browser = Browser::default();
    let (name, is_told) = browser.visit(&session_store, NOW, |session| session.name());
    assert!(is_told);
    let (again, is_told) = browser.visit(&session_store, NOW + 10, |session| session.name());
    assert!(!is_told && name == again, "{name} {again}");
    for _ in 0..100 {
        Browser::default().name(&session_store, NOW);
    }
    assert_eq!(rows(&session_store), 0);
}

#[test]
fn unused_visit_begins_no_session() {
    let session_store = session_store();
    let visit = Browser::default().ask(&session_store, NOW);
    assert_eq!(visit.fields().map(|(name, _)| name).collect::<Vec<_>>(), ["Vary", "Cache-Control"]);
}

#[test]
fn reading_user_records_no_session_dependency() {
    let session_store = session_store();
    let mut browser = Browser::default();
    browser.log_in(&session_store, NOW, "ann");
    let visit = browser.ask(&session_store, NOW);
    let session = Session::of(Arc::clone(&visit));
    assert_eq!(
        dependencies_of(|| drop(Session::of(Arc::clone(&visit)))),
        [],
        "nothing is seen by that"
    );
    assert_eq!(
        dependencies_of(|| assert!(visit.look_at_user().is_some())),
        [RequestDependency::User]
    );
    assert_eq!(dependencies_of(|| drop(session.user())), [RequestDependency::User]);
    let looks: [&dyn Fn(); 8] = [
        &|| assert!(visit.look_for_session()),
        &|| drop(session.name()),
        &|| assert_eq!(session.created().unix(), NOW),
        &|| assert_eq!(session.get::<u8>("a"), None),
        &|| drop(session.all()),
        &|| drop(session.set("a", 1)),
        &|| drop(session.log_out()),
        &|| drop(format!("{session:?}")),
    ];
    for (number, look) in looks.into_iter().enumerate() {
        assert!(dependencies_of(look).contains(&RequestDependency::Session), "{number}");
    }
}

#[test]
fn keeps_value_until_removed() {
    let session_store = session_store();
    let mut browser = Browser::default();
    let name = browser.name(&session_store, NOW);
    let set = |session: Session| {
        session.set("theme", "dark").wait().unwrap();
        session.set("count", u64::MAX).wait().unwrap();
        // The same request sees the value.
        assert_eq!(session.get::<String>("theme").unwrap(), "dark");
    };
    assert!(
        browser.visit(&session_store, NOW, set).1,
        "the cookie says from here on that there is a row"
    );
    browser.visit(&session_store, NOW + 1, |session| {
        assert_eq!(session.get::<String>("theme").unwrap(), "dark");
        assert_eq!(session.get::<u64>("count"), Some(u64::MAX));
        // A value with a different type, and a missing value.
        assert_eq!((session.get::<u8>("theme"), session.get::<u8>("other")), (None, None));
        session.remove("theme").wait().unwrap();
    });
    let theme = |session: Session| session.get::<String>("theme");
    assert_eq!(browser.visit(&session_store, NOW + 2, theme), (None, false));
    assert_eq!((browser.name(&session_store, NOW + 2), rows(&session_store)), (name, 1));
}

#[test]
fn rejects_oversized_values_without_change() {
    let session_store = session_store();
    Browser::default().visit(&session_store, NOW, |session| {
        session.set("a", "short").wait().unwrap();
        let outcome = session.set("b", "x".repeat(4096)).wait();
        assert_eq!(code(outcome), Status::CONTENT_TOO_LARGE);
        assert_eq!(code(session.log_in("").wait()), Status::UNPROCESSABLE_CONTENT);
        assert_eq!(code(session.log_in("x".repeat(201)).wait()), Status::UNPROCESSABLE_CONTENT);
        assert_eq!(session.get::<String>("a").unwrap(), "short");
        assert_eq!((session.get::<String>("b"), session.user()), (None, None));
    });
}

#[test]
fn failed_login_keeps_session() {
    let session_store = session_store();
    Browser::default().visit(&session_store, NOW, |session| {
        drop(session.log_in("ann"));
        assert_eq!(code(session.log_in("").wait()), Status::UNPROCESSABLE_CONTENT);
        assert!(!session_store.opened().replaced.contains(&session.cookie().id, NOW));
        // The session had no row before.
        assert!(session.set("a", 1).wait().is_ok());
    });
}

/// Session fixation: an attacker who plants a cookie in a victim's browser must not be logged in
/// with it.
#[test]
fn login_replaces_cookie_and_invalidates_old_one() {
    let session_store = session_store();
    for sets_before in [false, true] {
        let mut foe = Browser::default();
        foe.name(&session_store, NOW);
        if sets_before {
            foe.visit(&session_store, NOW, |session| session.set("cart", 7).wait().unwrap());
        }
        let mut browser = foe.clone();
        browser.log_in(&session_store, NOW, "ann");
        assert_ne!(browser.cookie, foe.cookie);
        assert_eq!(browser.user(&session_store, NOW).as_deref(), Some("ann"));
        let cart = browser.visit(&session_store, NOW, |session| session.get("cart")).0;
        assert_eq!(cart, sets_before.then_some(7), "what was in the cart is there still");
        assert_eq!(foe.user(&session_store, NOW), None);
    }
}

#[test]
fn keeps_generated_name_after_login() {
    let session_store = session_store();
    let mut browser = Browser::default();
    let name = browser.name(&session_store, NOW);
    browser.log_in(&session_store, NOW, "ann");
    assert_eq!(browser.name(&session_store, NOW), name);
}

#[test]
fn drops_values_of_previous_user_at_login() {
    let session_store = session_store();
    let mut browser = Browser::default();
    browser.log_in(&session_store, NOW, "ann");
    browser.visit(&session_store, NOW, |session| session.set("draft", 1).wait().unwrap());
    browser.log_in(&session_store, NOW, "ann");
    let draft = |session: Session| session.get::<u8>("draft");
    assert_eq!(browser.visit(&session_store, NOW, draft).0, Some(1));
    browser.log_in(&session_store, NOW, "ben");
    assert_eq!(browser.visit(&session_store, NOW, draft).0, None);
    assert_eq!(rows(&session_store), 1);
}

#[test]
fn logout_ends_session_and_clears_cookie() {
    let session_store = session_store();
    let mut browser = Browser::default();
    browser.log_in(&session_store, NOW, "ann");
    let mut kept = browser.clone();
    browser.visit(&session_store, NOW, |session| {
        session.log_out().wait().unwrap();
        assert_eq!(session.user(), None);
    });
    assert_eq!((browser.cookie, rows(&session_store)), (None, 0));
    assert_eq!(kept.user(&session_store, NOW), None);
}

#[test]
fn values_set_after_logout_belong_to_new_session() {
    let session_store = session_store();
    let mut browser = Browser::default();
    browser.log_in(&session_store, NOW, "ann");
    let before = browser.cookie.clone();
    browser.visit(&session_store, NOW, |session| {
        session.log_out().wait().unwrap();
        session.set("told", true).wait().unwrap();
    });
    assert!(browser.cookie.is_some() && browser.cookie != before);
    let (told, user) = browser.visit(&session_store, NOW, |own| (own.get("told"), own.user())).0;
    assert_eq!((told, user), (Some(true), None));
}

#[test]
fn unused_session_expires() {
    let session_store = session_store();
    let (mut used, mut unused, mut known) = <(Browser, Browser, Browser)>::default();
    let names = [used.name(&session_store, NOW), unused.name(&session_store, NOW)];
    known.log_in(&session_store, NOW, "ann");
    for day in 1..=14 {
        assert_eq!(used.name(&session_store, NOW + day * DAY), names[0]);
    }
    let late = NOW + 14 * DAY;
    assert_eq!(unused.clone().user(&session_store, late - 1), None);
    assert_eq!(known.clone().user(&session_store, late - 1).as_deref(), Some("ann"));
    // That request was recorded, so the session lasts for a further period.
    assert_eq!(known.user(&session_store, late).as_deref(), Some("ann"));
    assert_eq!(known.user(&session_store, late - 1 + 14 * DAY), None);
    assert_eq!(used.name(&session_store, late), names[0]);
    let before = unused.cookie.clone();
    unused.name(&session_store, late);
    assert_ne!(before, unused.cookie, "another visitor");
}

#[test]
fn brief_session_expires_after_a_day_without_use() {
    let session_store = session_store();
    let mut browser = Browser::default();
    browser.visit(&session_store, NOW, |session| session.log_in_briefly("ann").wait().unwrap());
    let login = browser.ask(&session_store, NOW).login().unwrap();
    assert_eq!((login.until, login.lasts()), (NOW + DAY, Some(NOW + DAY)));
    assert_eq!(browser.user(&session_store, NOW + DAY - 1).as_deref(), Some("ann"));
    assert_eq!(browser.user(&session_store, NOW + 2 * DAY - 2).as_deref(), Some("ann"));
    assert_eq!(browser.user(&session_store, NOW + 3 * DAY).as_deref(), None);
}

#[test]
fn ends_sessions_of_a_user_within_a_transaction() {
    let session_store = session_store();
    let mut browsers = [Browser::default(), Browser::default(), Browser::default()];
    for (browser, user) in browsers.iter_mut().zip(["ann", "ann", "bob"]) {
        browser.log_in(&session_store, NOW, user);
    }
    let own = browsers[0].visit(&session_store, NOW, |session| session.row_id()).0;
    let store = &session_store.opened().store;
    let end = |except| {
        let user = "ann".into();
        store.change::<_, _, crate::store::Error>(move |change| end_sessions(change, &user, except))
    };
    assert_eq!(end(own).wait().unwrap(), 1);
    let mut users = browsers.map(|mut browser| browser.user(&session_store, NOW));
    assert_eq!(users.each_mut().map(Option::take), [Some("ann".into()), None, Some("bob".into())]);
    assert_eq!(end(None).wait().unwrap(), 1);
}

/// Regression: a subscription of a session that was no longer used continued for up to 90 days.
/// Only the absolute expiry of a login was known, not the idle expiry. Fix: check both.
#[test]
fn login_lasts_as_long_as_session_is_used() {
    let session_store = session_store();
    let mut browser = Browser::default();
    browser.log_in(&session_store, NOW, "ann");
    let login = browser.ask(&session_store, NOW).login().unwrap();
    assert_eq!((login.until, login.lasts()), (NOW + 14 * DAY, Some(NOW + 14 * DAY)));
    assert!(browser.user(&session_store, NOW + 10 * DAY).is_some());
    assert_eq!(login.lasts(), Some(NOW + 24 * DAY));
    for day in (20..=85).step_by(13) {
        assert!(browser.user(&session_store, NOW + day * DAY).is_some());
    }
    assert_eq!(login.lasts(), Some(NOW + 90 * DAY));
    browser.visit(&session_store, NOW + 86 * DAY, |session| session.log_out().wait().unwrap());
    assert_eq!(login.lasts(), None);
}

#[test]
fn used_session_expires_at_absolute_limit() {
    let session_store = session_store();
    let (mut stranger, mut known) = <(Browser, Browser)>::default();
    let name = stranger.name(&session_store, NOW);
    known.log_in(&session_store, NOW, "ann");
    for day in 1..90 {
        assert_eq!(stranger.name(&session_store, NOW + day * DAY), name);
        assert_eq!(known.user(&session_store, NOW + day * DAY).as_deref(), Some("ann"));
    }
    let before = stranger.cookie.clone();
    stranger.name(&session_store, NOW + 90 * DAY);
    assert_ne!(stranger.cookie, before);
    assert_eq!(known.user(&session_store, NOW + 90 * DAY), None);
}

#[test]
fn records_session_use_once_an_hour() {
    let session_store = session_store();
    let (mut stranger, mut known) = <(Browser, Browser)>::default();
    stranger.name(&session_store, NOW);
    known.log_in(&session_store, NOW, "ann");
    for browser in [&mut stranger, &mut known] {
        let told = (1..=180).map(|minute| browser.visit(&session_store, NOW + minute * 60, drop).1);
        assert_eq!(told.filter(|is_told| *is_told).count(), 3);
    }
    let short = session_store_with(Sessions::new().idle_timeout(Duration::from_mins(10)));
    let mut browser = Browser::default();
    let name = browser.name(&short, NOW);
    for minute in 1..60 {
        assert_eq!(browser.name(&short, NOW + minute * 60), name);
    }
}

#[test]
fn rejects_cookie_from_the_future() {
    let session_store = session_store();
    let mut browser = Browser::default();
    let name = browser.name(&session_store, NOW + 6 * 60);
    assert_eq!(
        browser.clone().name(&session_store, NOW + 60),
        name,
        "clocks differ by five minutes"
    );
    let before = browser.cookie.clone();
    browser.name(&session_store, NOW + 59);
    assert_ne!(browser.cookie, before);
}

#[test]
fn two_tabs_share_values() {
    let session_store = session_store();
    let mut first = Browser::default();
    first.name(&session_store, NOW);
    let mut second = first.clone();
    // Both requests arrive before either sets a value.
    let (one, other) = (first.ask(&session_store, NOW), second.ask(&session_store, NOW));
    Session::of(one).set("a", 1).wait().unwrap();
    Session::of(other).set("b", 2).wait().unwrap();
    for browser in [&mut first, &mut second] {
        let both = browser.visit(&session_store, NOW, |own| (own.get("a"), own.get("b"))).0;
        assert_eq!(both, (Some(1), Some(2)));
    }
    assert_eq!(rows(&session_store), 1);
}

#[test]
fn rejects_changes_after_logout_in_other_tab() {
    let session_store = session_store();
    let mut browser = Browser::default();
    browser.log_in(&session_store, NOW, "ann");
    let late = Session::of(browser.ask(&session_store, NOW));
    browser.visit(&session_store, NOW, |session| session.log_out().wait().unwrap());
    assert_eq!(code(late.set("a", 1).wait()), Status::CONFLICT);
    assert_eq!(code(late.revoke_others().wait()), Status::CONFLICT);
    assert_eq!(rows(&session_store), 0);
}

#[test]
fn concurrent_logins_get_separate_sessions() {
    let session_store = session_store();
    let mut browser = Browser::default();
    browser.visit(&session_store, NOW, |session| session.set("a", 1).wait().unwrap());
    let browsers: Vec<Browser> = std::thread::scope(|scope| {
        let log_in = |mut tab: Browser| {
            let session_store = &session_store;
            scope.spawn(move || {
                tab.log_in(session_store, NOW, "ann");
                tab
            })
        };
        let threads: Vec<_> = (0..4).map(|_| log_in(browser.clone())).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    assert_eq!(rows(&session_store), 4);
    for mut tab in browsers {
        assert_eq!(tab.user(&session_store, NOW).as_deref(), Some("ann"));
    }
    assert_eq!(browser.user(&session_store, NOW), None);
}

#[test]
fn user_revokes_own_sessions_only() {
    let session_store = session_store();
    let mut browsers = vec![Browser::default(); 4];
    for (browser, user) in browsers.iter_mut().zip(["ann", "ann", "ann", "ben"]) {
        browser.log_in(&session_store, NOW, user);
    }
    let users = |browsers: &[Browser]| -> Vec<bool> {
        let user = |browser: &Browser| browser.clone().user(&session_store, NOW).is_some();
        browsers.iter().map(user).collect()
    };
    let all = browsers[0].visit(&session_store, NOW, |session| session.all()).0;
    assert_eq!(all.iter().map(|open| open.is_current).collect::<Vec<_>>(), [true, false, false]);
    let bens = browsers[3].visit(&session_store, NOW, |session| session.all()).0;
    browsers[0].visit(&session_store, NOW, |session| {
        assert!(!session.revoke(bens[0].id).wait().unwrap());
        assert!(session.revoke(all[1].id).wait().unwrap());
        assert!(!session.revoke(all[1].id).wait().unwrap());
    });
    assert_eq!(users(&browsers), [true, false, true, true]);
    let count =
        browsers[2].visit(&session_store, NOW, |session| session.revoke_others().wait().unwrap());
    assert_eq!((count.0, users(&browsers)), (1, vec![false, false, true, true]));
    // A visitor without a login has no other sessions.
    let stranger = Browser::default().visit(&session_store, NOW, |session| {
        (session.all().len(), session.revoke_user("ann").wait().unwrap())
    });
    assert_eq!((stranger.0, users(&browsers)), ((0, 1), vec![false, false, false, true]));
    browsers[3].visit(&session_store, NOW, |session| {
        assert!(session.revoke(bens[0].id).wait().unwrap());
        assert_eq!(session.user(), None);
    });
    assert_eq!((&browsers[3].cookie, rows(&session_store)), (&None, 0));
}

/// Regression: all visitors without a login counted as the same user.
#[test]
fn anonymous_visitor_revokes_own_session_only() {
    let session_store = session_store();
    let mut strangers = vec![Browser::default(); 2];
    for stranger in &mut strangers {
        stranger.visit(&session_store, NOW, |session| session.set("a", 1).wait().unwrap());
    }
    let all: Vec<RowId> =
        session_store.opened().store.read().all::<SessionRow>().map(|row| row.id.row()).collect();
    let revoke = |id: RowId| move |session: Session| session.revoke(id).wait().unwrap();
    assert!(!strangers[0].visit(&session_store, NOW, revoke(all[1])).0);
    assert_eq!(rows(&session_store), 2);
    assert!(strangers[0].visit(&session_store, NOW, revoke(all[0])).0, "but its own");
    assert_eq!(rows(&session_store), 1);
}

#[test]
fn login_beyond_limit_removes_oldest_session() {
    let session_store = session_store();
    let mut browsers = vec![Browser::default(); 100];
    for browser in &mut browsers {
        browser.log_in(&session_store, NOW, "ann");
    }
    // A second login in the same session adds no row.
    browsers[99].log_in(&session_store, NOW, "ann");
    assert_eq!(
        (rows(&session_store), browsers[0].user(&session_store, NOW)),
        (100, Some("ann".to_owned()))
    );
    Browser::default().log_in(&session_store, NOW, "ann");
    assert_eq!((rows(&session_store), browsers[0].user(&session_store, NOW)), (100, None));
}

#[test]
fn lists_no_expired_sessions() {
    let session_store = session_store();
    Browser::default().log_in(&session_store, NOW, "ann");
    let mut browser = Browser::default();
    browser.log_in(&session_store, NOW + DAY, "ann");
    let count = |session: Session| session.all().len();
    assert_eq!(browser.visit(&session_store, NOW + 14 * DAY - 1, count).0, 2);
    assert_eq!(
        (browser.visit(&session_store, NOW + 14 * DAY, count).0, rows(&session_store)),
        (1, 2)
    );
}

/// Regression: a page with a login and with parts that request themselves logged its visitor out. A
/// request with the old cookie found no session and began one, and its cookie arrived after the
/// login's.
#[test]
fn late_request_keeps_cookie_of_login() {
    let session_store = session_store();
    for sets_before in [false, true] {
        let mut late = Browser::default();
        let name = late.name(&session_store, NOW);
        if sets_before {
            late.visit(&session_store, NOW, |session| session.set("cart", 7).wait().unwrap());
        }
        // One request reads the session before the login, at the time when its cookie is due for
        // renewal.
        let now = NOW + RENEWAL;
        let begun = late.ask(&session_store, now);
        let mut browser = late.clone();
        browser.log_in(&session_store, now, "ann");
        for visit in [begun, late.ask(&session_store, now)] {
            let session = Session::of(Arc::clone(&visit));
            assert_eq!(session.name().as_str(), name);
            let rows_before = rows(&session_store);
            assert_eq!(code(session.set("a", 1).wait()), Status::CONFLICT);
            assert_eq!(rows(&session_store), rows_before);
            assert!(visit.fields().all(|(name, _)| name != "Set-Cookie"), "{sets_before}");
        }
        assert_eq!(browser.user(&session_store, now).as_deref(), Some("ann"));
        // After a minute the old cookie begins a new session, as any invalid cookie does.
        let is_told = late.visit(&session_store, now + 60, drop).1;
        assert!(is_told, "{sets_before}");
    }
}

#[test]
fn concurrent_set_does_not_undo_login() {
    let session_store = session_store();
    let mut browser = Browser::default();
    browser.visit(&session_store, NOW, |session| {
        let mut set = session.set("a", 1);
        let mut look = || Pin::new(&mut set).poll(&mut Context::from_waker(Waker::noop()));
        let mut outcome = look();
        session.log_in("ann").wait().unwrap();
        while outcome.is_pending() {
            std::thread::yield_now();
            outcome = look();
        }
        assert!(matches!(outcome, Poll::Ready(Ok(()))));
        assert_eq!(session.get("a"), Some(1));
    });
    assert_eq!(
        (browser.user(&session_store, NOW).as_deref(), rows(&session_store)),
        (Some("ann"), 1)
    );
}

#[test]
fn sweep_is_written_without_further_changes() {
    let session_store = session_store();
    Browser::default().log_in(&session_store, NOW, "ann");
    let (tell, told) = std::sync::mpsc::channel();
    session_store.opened().store.observe(move |changes| tell.send(changes.sequence).unwrap());
    session_store.opened().sweep(NOW + 15 * DAY);
    assert!(told.recv_timeout(Duration::from_mins(1)).is_ok());
    assert_eq!(rows(&session_store), 0);
}

#[test]
fn evicts_idle_anonymous_sessions_first() {
    let session_store = session_store_with(Sessions::new().max_sessions(10));
    let mut known = Browser::default();
    known.log_in(&session_store, NOW, "ann");
    let mut strangers = vec![Browser::default(); 60];
    for (number, stranger) in strangers.iter_mut().enumerate() {
        let later = NOW + 1 + number as u64;
        stranger.visit(&session_store, later, |session| session.set("a", 1).wait().unwrap());
    }
    assert_eq!(rows_when_swept(&session_store, NOW + 99), 10);
    assert_eq!(known.user(&session_store, NOW + 99).as_deref(), Some("ann"));
    let has = |stranger: &Browser| {
        let value = |session: Session| session.get::<u8>("a");
        stranger.clone().visit(&session_store, NOW + 99, value).0.is_some()
    };
    assert!(!has(&strangers[0]) && has(&strangers[59]));
}

/// Regression: a client that returned no cookie could insert rows up to the limit and evict those
/// of all other clients.
#[test]
fn bounds_anonymous_rows_per_address() {
    let session_store =
        session_store_with(Sessions::new().max_sessions(100).max_sessions_per_address(10));
    let set = |session: Session| session.set("a", 1).wait().unwrap();
    let mut other = Browser { address: [192, 0, 2, 9], ..Browser::default() };
    other.visit(&session_store, NOW, set);
    let mut known = Browser::default();
    known.log_in(&session_store, NOW, "ann");
    for number in 0..60 {
        Browser::default().visit(&session_store, NOW + 1 + number, set);
    }
    // Ten rows of that address, one row of the second visitor, and one of the user.
    assert_eq!(rows_when_swept(&session_store, NOW + 99), 12);
    let value = |session: Session| session.get::<u8>("a");
    assert_eq!(other.visit(&session_store, NOW + 99, value).0, Some(1));
    assert_eq!(known.user(&session_store, NOW + 99).as_deref(), Some("ann"));
}

#[test]
fn removes_expired_sessions_when_others_begin() {
    let session_store = session_store();
    for _ in 0..3 {
        Browser::default().log_in(&session_store, NOW, "ann");
    }
    let late = NOW + 15 * DAY;
    for _ in 0..3 {
        Browser::default().visit(&session_store, late, |own| own.set("a", 1).wait().unwrap());
    }
    assert_eq!(rows_when_swept(&session_store, late), 3);
}

#[test]
fn sessions_and_keys_survive_restart() {
    let folder = std::env::temp_dir().join(format!("bine-sessions-{}", std::process::id()));
    let start = |now: u64| {
        let options = SessionStore::declare(Options::new());
        let store = Store::open(folder.join("journal"), options, &mut |_, _| {}).unwrap();
        let session_store = Arc::new(SessionStore::new(Sessions::new()));
        session_store.open_at(&store, Some(&folder), Sessions::new(), now).unwrap();
        session_store
    };
    let (mut known, mut stranger) = <(Browser, Browser)>::default();
    let session_store = start(NOW);
    known.log_in(&session_store, NOW, "ann");
    let name = stranger.name(&session_store, NOW);
    let mut now = NOW;
    session_store.opened().store.close();
    drop(session_store);
    // Keys rotate meanwhile.
    for _ in 0..8 {
        now += 10 * DAY;
        let session_store = start(now);
        assert_eq!(known.user(&session_store, now).as_deref(), Some("ann"));
        assert_eq!(stranger.name(&session_store, now), name);
        session_store.opened().store.close();
    }
    std::fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn reads_and_writes_example_of_format() {
    let text = include_str!("../../../../docs/formats/session.md");
    let blocks: Vec<&str> = text.split("```").skip(1).step_by(2).collect();
    let [file, text] = blocks[..] else { panic!("{blocks:?}") };
    let [file, text] = [file, text].map(|block| block.strip_prefix("text\n").unwrap());
    let path = std::env::temp_dir().join(format!("bine-example-{}", std::process::id()));
    bine_server::write_private(&path, file.as_bytes()).unwrap();
    let (made, seen) = (1_795_208_400, 1_795_212_000);
    let keys = Keys::load(&path, seen, 90 * DAY).unwrap();
    let cookie = SessionCookie::read(text.trim_end(), &keys, seen).unwrap();
    let id = std::array::from_fn(|place| 0xa0 + place as u8);
    assert_eq!(cookie, SessionCookie { id, is_kept: true, seed: 1520, made, seen });
    assert_eq!(generated_name::name_of(cookie.seed), "Quiet Heron");
    assert_eq!(cookie.text(&keys, seen), text.trim_end());
    // After its period the file has a newer key first, and keeps this one.
    cookie.text(&keys, made + 31 * DAY);
    let after = std::fs::read_to_string(&path).unwrap();
    std::fs::remove_file(&path).unwrap();
    let [title, _, key] = after.lines().collect::<Vec<_>>()[..] else { panic!("{after}") };
    assert_eq!(format!("{title}\n{key}\n"), file);
}

#[test]
fn finds_valid_cookie_among_several() {
    let session_store = session_store();
    let mut browser = Browser::default();
    browser.name(&session_store, NOW);
    let own = browser.cookie.unwrap();
    let find = |field: &str, name: &str| {
        session_store.opened().find(std::iter::once(field), name, NOW).is_some()
    };
    assert!(find(&format!("session=x; session=;session={own}"), "session"));
    assert!(!find(
        &format!("session=1; session=2; session=3; session=4; session={own}"),
        "session"
    ));
    for field in [format!("xsession={own}"), format!("session=\"{own}\""), format!("session {own}")]
    {
        assert!(!find(&field, "session"), "{field}");
    }
    assert!(!find(&format!("session={own}"), cookie_name(true)), "TLS has a cookie of its own");
}

#[test]
fn rejects_spliced_cookies() {
    let session_store = session_store();
    let (mut ann, mut ben) = <(Browser, Browser)>::default();
    ann.log_in(&session_store, NOW, "ann");
    ben.log_in(&session_store, NOW, "ben");
    let (ann, ben) = (ann.cookie.unwrap(), ben.cookie.unwrap());
    for place in 0..ann.len() {
        let mixed = Browser {
            cookie: Some(format!("{}{}", &ann[..place], &ben[place..])),
            ..Browser::default()
        };
        let user = mixed.clone().user(&session_store, NOW);
        let is_whole = mixed.cookie == Some(ben.clone()) || mixed.cookie == Some(ann.clone());
        assert_eq!(user.is_some(), is_whole, "{place}");
    }
}

proptest! {
    #[test]
    fn rejects_arbitrary_cookie_fields(field in "\\PC{0,200}", value in "[ -~]{0,120}") {
        let session_store = session_store();
        let made_up = format!("session={value}");
        for field in [&field, &made_up] {
            let found = session_store.opened().find(std::iter::once(field.as_str()), "session", NOW);
            prop_assert!(found.is_none());
        }
    }
}

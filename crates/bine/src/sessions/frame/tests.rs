//! Tests of the lifetime of frames, with a clock that the tests set.

use super::super::SessionStore;
use super::super::tests::{Browser, NOW, await_staged, session_store};
use super::*;
use crate::frame_address::with_frame_of;
use crate::live::testing::expiry_of;

/// The frame that a page at `now` finds in its address.
fn frame_at(
    session_store: &Arc<SessionStore>,
    browser: &Browser,
    frame: &Frame,
    now: u64,
) -> Frame {
    let visit = browser.ask(session_store, now);
    let found = Frame::at(&visit, &frame.to("/")).expect("it is this visitor's");
    found.record_use();
    await_staged(session_store);
    found
}

/// A frame with a value that was set at `now`.
fn frame_with(
    session_store: &Arc<SessionStore>,
    browser: &mut Browser,
    word: &str,
    now: u64,
) -> Frame {
    browser.name(session_store, now);
    let frame = Frame::new(browser.ask(session_store, now));
    frame.set("word", word).wait().unwrap();
    frame
}

fn word(frame: &Frame) -> Option<String> {
    frame.get("word")
}

fn rows(session_store: &SessionStore) -> usize {
    session_store.opened().store.read().count::<FrameRow>()
}

#[test]
fn frame_lasts_while_its_pages_are_requested() {
    let (session_store, mut browser) = (session_store(), Browser::default());
    let frame = frame_with(&session_store, &mut browser, "hops", NOW);
    let mut now = NOW;
    for _ in 0..10 {
        now += LIFETIME - 1;
        assert_eq!(word(&frame_at(&session_store, &browser, &frame, now)).as_deref(), Some("hops"));
    }
    assert_eq!(word(&frame_at(&session_store, &browser, &frame, now + LIFETIME)), None);
}

#[test]
fn expired_frame_starts_empty() {
    let (session_store, mut browser) = (session_store(), Browser::default());
    let frame = frame_with(&session_store, &mut browser, "hops", NOW);
    frame.set("other", 1).wait().unwrap();
    let late = frame_at(&session_store, &browser, &frame, NOW + LIFETIME);
    // The row still exists, but has expired.
    assert_eq!((rows(&session_store), word(&late)), (1, None));
    assert_eq!(word(&frame_at(&session_store, &browser, &frame, NOW + LIFETIME)), None);
    late.set("word", "malt").wait().unwrap();
    let found = frame_at(&session_store, &browser, &frame, NOW + LIFETIME + 1);
    assert_eq!((word(&found).as_deref(), found.get::<u8>("other")), (Some("malt"), None));
    assert_eq!(rows(&session_store), 1);
}

#[test]
fn sweep_removes_expired_frames_only() {
    let (session_store, mut browser) = (session_store(), Browser::default());
    let dead = frame_with(&session_store, &mut browser, "dead", NOW);
    let alive = frame_with(&session_store, &mut browser, "alive", NOW + 1);
    let third = frame_with(&session_store, &mut browser, "third", NOW + LIFETIME);
    assert_eq!(rows(&session_store), 2);
    let now = NOW + LIFETIME;
    let words =
        [&dead, &alive, &third].map(|frame| word(&frame_at(&session_store, &browser, frame, now)));
    assert_eq!(words, [None, Some("alive".to_owned()), Some("third".to_owned())]);
    // A frame whose row was removed can store values again.
    let late = frame_at(&session_store, &browser, &dead, now);
    late.set("word", "again").wait().unwrap();
    assert_eq!(word(&frame_at(&session_store, &browser, &dead, now)).as_deref(), Some("again"));
    assert_eq!(rows(&session_store), 3);
}

#[test]
fn concurrent_new_frames_do_not_conflict_while_sweeping() {
    let (session_store, mut browser) = (session_store(), Browser::default());
    for _ in 0..2 * MAX_REMOVED {
        frame_with(&session_store, &mut browser, "dead", NOW);
    }
    let now = NOW + LIFETIME;
    let frames = [(), ()].map(|()| Frame::new(browser.ask(&session_store, now)));
    let store = &session_store.opened().store;
    let changes = frames.each_ref().map(|frame| {
        let mut change = store.begin();
        frame.set_in(&mut change, "word", "new").unwrap();
        change
    });
    for change in changes {
        store.commit(change).unwrap().wait().unwrap();
    }
    for frame in &frames {
        assert_eq!(word(&frame_at(&session_store, &browser, frame, now)).as_deref(), Some("new"));
    }
    // Later frames remove the remaining rows.
    frame_with(&session_store, &mut browser, "later", now);
    await_staged(&session_store);
    assert_eq!(rows(&session_store), 3);
}

#[test]
fn live_page_renders_again_before_its_frame_expires() {
    let (session_store, mut browser) = (session_store(), Browser::default());
    let frame = frame_with(&session_store, &mut browser, "hops", NOW);
    let ends = |now: u64| {
        let (ends, has_written) = expiry_of(|| {
            let found = frame_at(&session_store, &browser, &frame, now);
            assert_eq!(word(&found).as_deref(), Some("hops"));
        });
        assert!(!has_written, "that it is looked at is not a change of its page");
        ends.expect("the frame was looked at")
    };
    let first = ends(NOW);
    assert!((NOW + 1..NOW + LIFETIME).contains(&first), "{}", first - NOW);
    // The page renders again then, which renews the frame.
    let mut now = first;
    for _ in 0..10 {
        let next = ends(now);
        assert!((now + 1..now + LIFETIME).contains(&next), "{}", next - now);
        now = next;
    }
}

#[test]
fn live_page_waits_when_its_frame_cannot_be_renewed() {
    let (session_store, mut browser) = (session_store(), Browser::default());
    let frame = frame_with(&session_store, &mut browser, "hops", NOW);
    let now = NOW + LIFETIME / 2;
    let (ends, _) = expiry_of(|| {
        // Without `attend`, use of the frame is not recorded.
        let found = Frame::at(&browser.ask(&session_store, now), &frame.to("/")).unwrap();
        assert_eq!(word(&found).as_deref(), Some("hops"));
    });
    let ends = ends.expect("the frame was looked at");
    assert!((now + 60..NOW + LIFETIME).contains(&ends), "{}", ends - now);
}

#[test]
fn address_names_one_frame() {
    for (address, expected) in [
        ("/", "/?_frame=x"),
        ("/a?", "/a?_frame=x"),
        ("/a?b=1&c", "/a?b=1&c&_frame=x"),
        ("/a?_frame=old&b=1&_frame=older", "/a?b=1&_frame=x"),
        ("/a?_frames=1", "/a?_frames=1&_frame=x"),
        ("/a#b", "/a?_frame=x#b"),
        ("/a?b#?_frame=old", "/a?b&_frame=x#?_frame=old"),
        ("//other.example/a", "/?_frame=x"),
        ("/\\other.example/a", "/?_frame=x"),
        ("/\t/other.example/a", "/?_frame=x"),
        ("https://other.example/a", "/?_frame=x"),
    ] {
        assert_eq!(with_name(address, "x"), expected, "{address}");
        assert_eq!(named(&with_name(address, "x")), Some("x"));
    }
    assert_eq!(with_frame_of("/a?_frame=x", "/b"), "/b?_frame=x");
    assert_eq!(with_frame_of("/a?_frame=x", "/b?_frame=y"), "/b?_frame=y");
    assert_eq!(with_frame_of("/a", "/b"), "/b");
    assert_eq!(with_frame_of("/a#?_frame=x", "/b"), "/b");
}

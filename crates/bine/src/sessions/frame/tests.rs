//! Tests of the lifetime of frames, with a clock that the tests set.

use super::super::Keeper;
use super::super::tests::{Browser, NOW, await_staged, keeper};
use super::*;
use crate::frame_address::with_frame_of;
use crate::live::testing::expiry_of;

/// The frame that a page at `now` finds in its address.
fn frame_at(keeper: &Arc<Keeper>, browser: &Browser, frame: &Frame, now: u64) -> Frame {
    let visit = browser.ask(keeper, now);
    let found = Frame::at(&visit, &frame.to("/")).expect("it is this visitor's");
    found.record_use();
    await_staged(keeper);
    found
}

/// A frame with a value that was set at `now`.
fn frame_with(keeper: &Arc<Keeper>, browser: &mut Browser, word: &str, now: u64) -> Frame {
    browser.name(keeper, now);
    let frame = Frame::new(browser.ask(keeper, now));
    frame.set("word", word).wait().unwrap();
    frame
}

fn word(frame: &Frame) -> Option<String> {
    frame.get("word")
}

fn rows(keeper: &Keeper) -> usize {
    keeper.opened().store.read().count::<Row>()
}

#[test]
fn frame_lasts_while_its_pages_are_requested() {
    let (keeper, mut browser) = (keeper(), Browser::default());
    let frame = frame_with(&keeper, &mut browser, "hops", NOW);
    let mut now = NOW;
    for _ in 0..10 {
        now += LIFETIME - 1;
        assert_eq!(word(&frame_at(&keeper, &browser, &frame, now)).as_deref(), Some("hops"));
    }
    assert_eq!(word(&frame_at(&keeper, &browser, &frame, now + LIFETIME)), None);
}

#[test]
fn expired_frame_starts_empty() {
    let (keeper, mut browser) = (keeper(), Browser::default());
    let frame = frame_with(&keeper, &mut browser, "hops", NOW);
    frame.set("other", 1).wait().unwrap();
    let late = frame_at(&keeper, &browser, &frame, NOW + LIFETIME);
    // The row still exists, but has expired.
    assert_eq!((rows(&keeper), word(&late)), (1, None));
    assert_eq!(word(&frame_at(&keeper, &browser, &frame, NOW + LIFETIME)), None);
    late.set("word", "malt").wait().unwrap();
    let found = frame_at(&keeper, &browser, &frame, NOW + LIFETIME + 1);
    assert_eq!((word(&found).as_deref(), found.get::<u8>("other")), (Some("malt"), None));
    assert_eq!(rows(&keeper), 1);
}

#[test]
fn sweep_removes_expired_frames_only() {
    let (keeper, mut browser) = (keeper(), Browser::default());
    let dead = frame_with(&keeper, &mut browser, "dead", NOW);
    let alive = frame_with(&keeper, &mut browser, "alive", NOW + 1);
    let third = frame_with(&keeper, &mut browser, "third", NOW + LIFETIME);
    assert_eq!(rows(&keeper), 2);
    let now = NOW + LIFETIME;
    let words = [&dead, &alive, &third].map(|frame| word(&frame_at(&keeper, &browser, frame, now)));
    assert_eq!(words, [None, Some("alive".to_owned()), Some("third".to_owned())]);
    // A frame whose row was removed can store values again.
    let late = frame_at(&keeper, &browser, &dead, now);
    late.set("word", "again").wait().unwrap();
    assert_eq!(word(&frame_at(&keeper, &browser, &dead, now)).as_deref(), Some("again"));
    assert_eq!(rows(&keeper), 3);
}

#[test]
fn concurrent_new_frames_do_not_conflict_while_sweeping() {
    let (keeper, mut browser) = (keeper(), Browser::default());
    for _ in 0..2 * MAX_REMOVED {
        frame_with(&keeper, &mut browser, "dead", NOW);
    }
    let now = NOW + LIFETIME;
    let frames = [(), ()].map(|()| Frame::new(browser.ask(&keeper, now)));
    let store = &keeper.opened().store;
    let changes = frames.each_ref().map(|frame| {
        let mut change = store.begin();
        frame.set_in(&mut change, "word", "new").unwrap();
        change
    });
    for change in changes {
        store.commit(change).unwrap().wait().unwrap();
    }
    for frame in &frames {
        assert_eq!(word(&frame_at(&keeper, &browser, frame, now)).as_deref(), Some("new"));
    }
    // Later frames remove the remaining rows.
    frame_with(&keeper, &mut browser, "later", now);
    await_staged(&keeper);
    assert_eq!(rows(&keeper), 3);
}

#[test]
fn live_page_renders_again_before_its_frame_expires() {
    let (keeper, mut browser) = (keeper(), Browser::default());
    let frame = frame_with(&keeper, &mut browser, "hops", NOW);
    let ends = |now: u64| {
        let (ends, has_written) = expiry_of(|| {
            let found = frame_at(&keeper, &browser, &frame, now);
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
    let (keeper, mut browser) = (keeper(), Browser::default());
    let frame = frame_with(&keeper, &mut browser, "hops", NOW);
    let now = NOW + LIFETIME / 2;
    let (ends, _) = expiry_of(|| {
        // Without `attend`, use of the frame is not recorded.
        let found = Frame::at(&browser.ask(&keeper, now), &frame.to("/")).unwrap();
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

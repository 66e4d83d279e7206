//! Claims about what moves a region: all that the run of its page has read before it and in it, however and wherever that
//! was read, and nothing that it reads behind it.

use bine::prelude::*;

use super::viewer::{Event, Viewer};
use super::{Note, notes_of, post, ran, runs, say_in, start};
use crate::harness::KINDS;

/// What is read before the region is shown in it.
#[page("/reads/before")]
pub(super) async fn before(store: Store) -> impl Page {
    let notes = notes_of(&store, "before");
    tokio::task::yield_now().await;
    html!(<Live><p>{notes.len()} notes</p></Live>)
}

/// The moment is of before the region, and asked within.
#[page("/reads/snapshot")]
pub(super) async fn by_snapshot(store: Store) -> impl Page {
    let now = store.read();
    tokio::task::yield_now().await;
    html! {
        <p>Notes</p>
        <Live><p>{now.find(Note::BY_ROOM, "snapshot").count()} notes</p></Live>
    }
}

#[page("/reads/change")]
pub(super) fn in_change(store: Store) -> Result<impl Page, Error> {
    let count = store
        .change(|change| Ok::<_, Error>(change.find(Note::BY_ROOM, "change").count()))
        .wait()?;
    Ok(html!(<Live><p>{count} notes</p></Live>))
}

/// Which room is read is said by a note of another.
#[page("/reads/linked")]
pub(super) async fn linked(store: Store) -> impl Page {
    html! {
        <Live>{if let Some(link) = notes_of(&store, "links").last() {
            <p>{notes_of(&store, &link.text).len()} notes</p>
        }}</Live>
    }
}

#[page("/reads/behind")]
pub(super) async fn behind(store: Store) -> impl Page {
    ran("behind");
    html! {
        <Live><p>{notes_of(&store, "here").len()} notes</p></Live>
        <p>{notes_of(&store, "there").len()} behind</p>
    }
}

#[test]
fn what_was_read_before_a_region_moves_it_however_it_was_read() {
    for scheduler in KINDS {
        println!("on {scheduler}:");
        let program = start(scheduler);
        for way in ["before", "snapshot", "change"] {
            let mut viewer = Viewer::of(&program, &format!("/reads/{way}"));
            for count in 1..4 {
                say_in(&program, way, "one more");
                let shown = format!("<p>{count} notes</p>");
                assert_eq!(viewer.await_shown(&shown), [Event::Patch(0)], "{scheduler} {way}");
            }
        }
    }
}

#[test]
fn a_region_follows_what_it_reads_now_and_not_what_it_once_read() {
    let program = start("hybrid");
    let mut viewer = Viewer::of(&program, "/reads/linked");
    for (room, count) in [("east", 1), ("west", 2), ("south", 3)] {
        say_in(&program, "links", room);
        viewer.await_shown("<p>0 notes</p>");
        for count in 1..=count {
            say_in(&program, room, "one more");
            viewer.await_shown(&format!("<p>{count} notes</p>"));
        }
    }
}

#[test]
fn what_is_read_behind_a_region_does_not_move_it() {
    let program = start("hybrid");
    let mut viewers = [Viewer::of(&program, "/reads/behind"), Viewer::of(&program, "/room/there")];
    let before = runs(&program, "behind");
    for round in ["one.", "two.", "three."] {
        say_in(&program, "there", round);
        viewers[1].await_shown(round);
    }
    assert_eq!(runs(&program, "behind"), before);
    say_in(&program, "here", "at last");
    assert_eq!(viewers[0].await_shown("<p>1 notes</p>"), [Event::Patch(0)]);
    post(&program, "/clear/here", "");
    assert_eq!(viewers[0].await_shown("<p>0 notes</p>"), [Event::Patch(0)]);
}

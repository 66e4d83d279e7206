//! Dependencies of a region: all that its page reads before and inside it, in any way, and nothing
//! after it.

use bine::prelude::*;

use super::viewer::{Event, Viewer};
use super::{Note, add_note, notes_of, post, ran, runs, start};
use crate::harness::KINDS;

/// Reads before the region and displays the result in it.
#[page("/reads/before")]
pub(super) async fn before(store: Store) -> impl Page {
    let notes = notes_of(&store, "before");
    tokio::task::yield_now().await;
    html!(<Live><p>{notes.len()} notes</p></Live>)
}

/// Takes the snapshot before the region and reads it inside.
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

/// A note of one room names the room to read.
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
fn reads_before_a_region_update_it() {
    for scheduler in KINDS {
        println!("on {scheduler}:");
        let program = start(scheduler);
        for way in ["before", "snapshot", "change"] {
            let mut viewer = Viewer::of(&program, &format!("/reads/{way}"));
            for count in 1..4 {
                add_note(&program, way, "one more");
                let shown = format!("<p>{count} notes</p>");
                assert_eq!(viewer.await_shown(&shown), [Event::Patch(0)], "{scheduler} {way}");
            }
        }
    }
}

#[test]
fn region_depends_on_its_latest_reads_only() {
    let program = start("hybrid");
    let mut viewer = Viewer::of(&program, "/reads/linked");
    for (room, count) in [("east", 1), ("west", 2), ("south", 3)] {
        add_note(&program, "links", room);
        viewer.await_shown("<p>0 notes</p>");
        for count in 1..=count {
            add_note(&program, room, "one more");
            viewer.await_shown(&format!("<p>{count} notes</p>"));
        }
    }
}

#[test]
fn reads_after_a_region_do_not_update_it() {
    let program = start("hybrid");
    let mut viewers = [Viewer::of(&program, "/reads/behind"), Viewer::of(&program, "/room/there")];
    let before = runs(&program, "behind");
    for round in ["one.", "two.", "three."] {
        add_note(&program, "there", round);
        viewers[1].await_shown(round);
    }
    assert_eq!(runs(&program, "behind"), before);
    add_note(&program, "here", "at last");
    assert_eq!(viewers[0].await_shown("<p>1 notes</p>"), [Event::Patch(0)]);
    post(&program, "/clear/here", "");
    assert_eq!(viewers[0].await_shown("<p>0 notes</p>"), [Event::Patch(0)]);
}

//! Claims about pages that somebody looks at: what they show between `<Live>` and `</Live>` is what it would be if they
//! were fetched again.

mod load;
mod model;
mod reads;
mod scopes;
mod viewer;

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::{LazyLock, Mutex};
use std::time::Instant;

use bine::prelude::*;
use bine::{Body, Signal};

use crate::app::{options, program};
use crate::harness::{Folder, KINDS, Program};
use crate::metrics::{await_figure, where_watched};
use viewer::{Event, Viewer};

#[derive(Clone, Table)]
struct Note {
    id: Id<Note>,
    #[table(index)]
    room: Text,
    text: Text,
}

/// The program itself. As a test among the others it has nothing to do.
#[test]
fn the_program_with_regions_serves() -> Exit {
    let Some(options) = options() else { return Exit::fine() };
    App::new()
        .table::<Note>()
        .page(say)
        .page(clear)
        .page(count_runs)
        .page(room)
        .page(room_by_worker)
        .page(room_later)
        .page(two)
        .page(grows)
        .page(may_fail)
        .page(may_fail_by_worker)
        .page(only_at_first)
        .page(nothing_lives)
        .page(degrees)
        .page(while_made)
        .page(set)
        .page(reads::before)
        .page(reads::by_snapshot)
        .page(reads::in_change)
        .page(reads::linked)
        .page(reads::behind)
        .page(load::open_gate)
        .page(load::blocks)
        .page(load::pends)
        .run_with("Usage: live", options.lines())
}

/// A note comes.
#[page(POST "/say/{room}")]
async fn say(store: Store, room: Path<Text>, text: Body) -> Result<Response, Error> {
    let text = String::from_utf8_lossy(&text).into_owned().into();
    store.insert(Note { id: Id::new(), room: room.0, text }).await?;
    Ok(Response::text("said"))
}

/// All notes of a room go.
#[page(POST "/clear/{room}")]
async fn clear(store: Store, room: Path<Text>) -> Result<Response, Error> {
    store
        .change(|change| {
            let notes: Vec<Note> = change.find(Note::BY_ROOM, &**room).collect();
            notes.iter().try_for_each(|note| change.remove(note.id).map(drop))
        })
        .await?;
    Ok(Response::text("gone"))
}

/// How often each page was run, by its target.
static RUNS: LazyLock<Mutex<HashMap<String, u64>>> = LazyLock::new(Mutex::default);

fn ran(page: impl Into<String>) -> u64 {
    let mut runs = RUNS.lock().unwrap();
    let count = runs.entry(page.into()).or_default();
    *count += 1;
    *count
}

#[page("/runs/{page}")]
async fn count_runs(page: Path<Text>) -> Response {
    Response::text(RUNS.lock().unwrap().get(page.as_str()).copied().unwrap_or(0).to_string())
}

fn notes_of(store: &Store, room: &str) -> Vec<Note> {
    store.read().find(Note::BY_ROOM, room).collect()
}

#[page("/room/{room}")]
async fn room(store: Store, room: Path<Text>) -> impl Page {
    ran(room.as_str());
    html! {
        <h1>{&room}</h1>
        <Live>
            <ul>{for note in notes_of(&store, &room) { <li>{note.text}</li> }}</ul>
        </Live>
    }
}

#[page("/room/{room}/worker")]
fn room_by_worker(store: Store, room: Path<Text>) -> impl Page {
    ran(room.as_str());
    html!(<Live><ul>{for note in notes_of(&store, &room) { <li>{note.text}</li> }}</ul></Live>)
}

/// It has waited for something before it reads.
#[page("/room/{room}/later")]
async fn room_later(store: Store, room: Path<Text>) -> impl Page {
    ran(room.as_str());
    tokio::task::yield_now().await;
    html!(<Live><ul>{for note in notes_of(&store, &room) { <li>{note.text}</li> }}</ul></Live>)
}

/// Each region shows a room of its own.
#[page("/two")]
async fn two(store: Store) -> impl Page {
    ran("two");
    html! {
        <Live>{for note in notes_of(&store, "a") { <p>{note.text}</p> }}</Live>
        <hr>
        <Live>{for note in notes_of(&store, "b") { <p>{note.text}</p> }}</Live>
    }
}

/// It has a region more for each note.
#[page("/grows")]
async fn grows(store: Store) -> impl Page {
    html! {
        <Live><p>{notes_of(&store, "grows").len()} regions more</p></Live>
        {for note in notes_of(&store, "grows") { <Live><p>{note.text}</p></Live> }}
    }
}

/// The last note says what becomes of the page.
fn fail(store: &Store) -> Result<usize, Error> {
    let notes = notes_of(store, "fails");
    match notes.last().map(|note| note.text.as_str()) {
        Some("panic") => panic!("it was told to"),
        Some("forbid") => Err(Error::forbidden("not any more")),
        Some("lose") => Err(Error::status(Status::NOT_FOUND, "it is gone")),
        _ => Ok(notes.len()),
    }
}

#[page("/fails")]
async fn may_fail(store: Store) -> Result<impl Page, Error> {
    let count = fail(&store)?;
    Ok(html!(<Live><p>{count} notes</p></Live>))
}

#[page("/fails/worker")]
fn may_fail_by_worker(store: Store) -> Result<impl Page, Error> {
    let count = fail(&store)?;
    Ok(html!(<Live><p>{count} notes</p></Live>))
}

/// Its third run panics: the one that a change begins.
#[page("/first")]
async fn only_at_first(store: Store) -> impl Page {
    assert_ne!(ran("first"), 3);
    html!(<Live><p>{notes_of(&store, "first").len()} notes</p></Live>)
}

#[page("/nothing")]
async fn nothing_lives() -> impl Page {
    html!(<p>Nothing lives here.</p>)
}

static DEGREES: LazyLock<Signal<i64>> = LazyLock::new(Signal::default);
/// Changes by itself.
static DOORS: LazyLock<Signal<Mutex<i64>>> = LazyLock::new(Signal::default);

#[page("/degrees")]
async fn degrees() -> impl Page {
    html! {
        <Live><p>{DEGREES.get()} degrees</p></Live>
        <Live><p>{DOORS.with(|doors| *doors.lock().unwrap())} doors</p></Live>
    }
}

/// Its signal changes while it is made, as often as there is something to say.
#[page("/while-made")]
async fn while_made() -> impl Page {
    let seen = DEGREES.get();
    if seen < 5 {
        DEGREES.set(seen + 1);
    }
    html!(<Live><p>{seen} degrees</p></Live>)
}

#[page(POST "/set/{way}/{value}")]
async fn set(way: Path<Text>, value: Path<i64>) -> Response {
    match way.as_str() {
        "set" => DEGREES.set(*value),
        "update" => DEGREES.update(|degrees| *degrees += *value),
        _ => {
            DOORS.with(|doors| *doors.lock().unwrap() = *value);
            DOORS.notify();
        }
    }
    Response::text("set")
}

fn start(scheduler: &str) -> Program {
    // Under `pool` one who follows has a thread until it is noticed that the peer is gone.
    let options = ["--data", "memory", "--scheduler", scheduler, "--workers", "12"];
    Program::start(&mut program("live::the_program_with_regions_serves", &options))
}

fn post(program: &Program, target: &str, content: &str) {
    let mut peer = program.connect();
    let length = content.len();
    peer.send(format!(
        "POST {target} HTTP/1.1\r\nHost: a\r\nContent-Length: {length}\r\n\r\n{content}"
    ));
    let reply = peer.reply();
    assert_eq!(reply.status(), 200, "{reply:?}");
}

fn say_in(program: &Program, room: &str, text: &str) {
    post(program, &format!("/say/{room}"), text);
}

fn runs(program: &Program, page: &str) -> u64 {
    program.connect().get(&format!("/runs/{page}")).text().trim().parse().unwrap()
}

/// A program that tells how many follow its pages, and where.
fn start_watched(scheduler: &str) -> (Program, SocketAddr) {
    start_watched_with(&["--scheduler", scheduler])
}

/// The same with these options.
fn start_watched_with(options: &[&str]) -> (Program, SocketAddr) {
    let own = ["--data", "memory", "--workers", "12", "--metrics", "127.0.0.1:0"];
    let options = [&own, options].concat();
    let mut program =
        Program::start(&mut program("live::the_program_with_regions_serves", &options));
    let figures = where_watched(&mut program);
    (program, figures)
}

#[test]
fn a_note_reaches_all_who_look_once_and_nobody_else() {
    for scheduler in KINDS {
        for (own, way) in [("a", ""), ("b", "/worker"), ("c", "/later")] {
            println!("on {scheduler}, {own}:");
            // One of its own, of which nobody has gone yet: how many follow is known to the last of them.
            let (program, figures) = start_watched(scheduler);
            let target = format!("/room/{own}{way}");
            let mut viewers = vec![Viewer::of(&program, &target), Viewer::of(&program, &target)];
            let mut other = Viewer::of(&program, "/room/other");
            say_in(&program, own, "<one>");
            for viewer in &mut viewers {
                viewer.await_shown("<li>&lt;one&gt;</li>");
            }
            for text in ["two", "three"] {
                let runs_before = runs(&program, own);
                say_in(&program, own, text);
                let shown = format!("<li>{text}</li>");
                for viewer in &mut viewers {
                    assert_eq!(viewer.await_shown(&shown), [Event::Patch(0)]);
                }
                assert_eq!(
                    runs(&program, own) - runs_before,
                    1,
                    "of one change, however many look"
                );
                if text == "two" {
                    // A poll that only came when the change is there would have the page made for itself.
                    viewers.push(Viewer::polling(&program, &target));
                    await_figure(figures, "bine_live_viewers", 4);
                }
            }
            let text = format!("behind {own}");
            say_in(&program, "other", &text);
            assert_eq!(other.await_shown(&text), [Event::Patch(0)]);
            assert!(!other.heard.contains("two"), "{}", other.heard);
            for viewer in &mut viewers {
                assert_eq!(viewer.regions, viewer.fresh());
            }
        }
    }
}

#[test]
fn many_quick_changes_take_few_runs_and_the_last_state_comes() {
    const CHANGES: usize = 200;
    for scheduler in KINDS {
        println!("on {scheduler}:");
        let program = start(scheduler);
        let mut viewers = [Viewer::of(&program, "/room/a"), Viewer::polling(&program, "/room/a")];
        let mut peer = program.connect();
        let began = Instant::now();
        // All at once, behind each other.
        let say = |number: usize| {
            let text = format!("note {number}.");
            let length = text.len();
            format!("POST /say/a HTTP/1.1\r\nHost: a\r\nContent-Length: {length}\r\n\r\n{text}")
        };
        peer.send((0..CHANGES).map(say).collect::<String>());
        for _ in 0..CHANGES {
            assert_eq!(peer.reply().status(), 200);
        }
        let mut counts = Vec::new();
        for viewer in &mut viewers {
            counts.push(viewer.await_shown(&format!("note {}.", CHANGES - 1)).len() as u64);
            assert_eq!(viewer.regions, viewer.fresh());
        }
        counts.push(runs(&program, "a"));
        // However long a busy machine takes over the changes: one run every 40 ms, and those for who comes and asks.
        let most = began.elapsed().as_millis() as u64 / 40 + 12;
        assert!(counts.iter().all(|count| *count <= most), "{scheduler}: {counts:?} of {most}");
    }
}

#[test]
fn a_region_alone_is_sent_that_has_changed() {
    let program = start("hybrid");
    let mut viewer = Viewer::of(&program, "/two");
    say_in(&program, "b", "below");
    assert_eq!(viewer.await_shown("below"), [Event::Patch(1)]);
    say_in(&program, "a", "above");
    assert_eq!(viewer.await_shown("above"), [Event::Patch(0)]);
    assert_eq!(viewer.regions, viewer.fresh());
}

#[test]
fn who_comes_again_gets_what_differs_at_once_and_else_nothing() {
    for scheduler in KINDS {
        println!("on {scheduler}:");
        let program = start(scheduler);
        for is_poll in [false, true] {
            let mut viewer = Viewer::with(&program, "/two", "", is_poll);
            viewer.load();
            let text = format!("meanwhile, {is_poll}");
            say_in(&program, "b", &text);
            assert_eq!(viewer.follow(), 200);
            assert_eq!(viewer.await_shown(&text), [Event::Patch(1)], "{scheduler}");
            // What it has got by that is what is there.
            let mut viewer = Viewer::with(&program, "/two", "", is_poll);
            viewer.load();
            assert_eq!(viewer.follow(), 200);
            say_in(&program, "a", &text);
            assert_eq!(viewer.next(), Event::Patch(0), "{scheduler}");
            assert!(viewer.regions[0].markup.contains(&text));
        }
    }
}

#[test]
fn a_page_that_has_other_regions_is_to_be_fetched_again() {
    for scheduler in KINDS {
        println!("on {scheduler}:");
        let program = start(scheduler);
        for is_poll in [false, true] {
            let mut viewer = Viewer::with(&program, "/grows", "", is_poll);
            viewer.load();
            assert_eq!(viewer.follow(), 200);
            say_in(&program, "grows", "one");
            assert_eq!(viewer.next(), Event::Reload, "{scheduler}");
            viewer.load();
            assert_eq!((viewer.regions.len(), viewer.follow()), (2, 200));
            post(&program, "/clear/grows", "");
            assert_eq!(viewer.next(), Event::Reload, "{scheduler}");
            // It comes again with what it has shown before.
            assert_eq!(viewer.follow(), 200);
            assert_eq!(viewer.next(), Event::Reload, "{scheduler}");
        }
    }
}

#[test]
fn what_cannot_be_followed_is_told_why() {
    for scheduler in KINDS {
        println!("on {scheduler}:");
        let program = start(scheduler);
        for is_poll in [false, true] {
            let follow = |target: &str| {
                let mut viewer = Viewer::with(&program, target, "", is_poll);
                let status = viewer.follow();
                if is_poll && status == 200 {
                    return match viewer.next() {
                        Event::Over(status) => status,
                        event => panic!("{event:?}"),
                    };
                }
                status
            };
            assert_eq!(follow("/nowhere"), 404);
            say_in(&program, "fails", "forbid");
            assert_eq!(follow("/fails"), 403);
            assert_eq!(follow("/fails/worker"), 403);
            say_in(&program, "fails", "panic");
            assert_eq!(follow("/fails"), 503, "it may come to something at another time");
            assert_eq!(follow("/fails/worker"), 503);
        }
        let ask = |query: &str| program.connect().get(&format!("/_bine/live{query}"));
        let nothing = ask("?page=/nothing");
        assert_eq!((nothing.status(), nothing.field("Cache-Control")), (204, Some("no-store")));
        for (query, told) in [
            ("", "`page` is missing"),
            ("?have=0.0000000000000000", "`page` is missing"),
            ("?page=two", "`page` is no path"),
            ("?page=//two", "`page` is no path"),
            ("?page=http%3A%2F%2Fa%2Ftwo", "`page` is no path"),
            ("?page=/two%20three", "`page` is not encoded"),
            ("?page=/two%0D%0AHost%3A%20b", "`page` is not encoded"),
            ("?page=/_bine/live%3Fpage%3D/two", "`page` is"),
            ("?page=/%25%35Fbine/live%3Fpage%3D/two", "`page` is"),
            ("?page=/two&have=x", "`have`"),
            ("?page=/two&have=0.-", "`have`"),
            ("?page=/two&have=99999.0", "`have`"),
        ] {
            let reply = ask(query);
            assert_eq!(reply.status(), 400, "{query}: {}", reply.text());
            assert!(reply.text().contains(told), "{query}: {}", reply.text());
        }
        let long = format!("?page=/{}", "a".repeat(4096));
        assert_eq!(ask(&long).status(), 400);
        let mut peer = program.connect();
        peer.send("POST /_bine/live?page=/two HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n");
        let reply = peer.reply();
        assert_eq!((reply.status(), reply.field("Allow")), (405, Some("GET, HEAD, OPTIONS")));
        let mut peer = program.connect();
        let foreign = "Sec-Fetch-Site: cross-site";
        peer.send(format!("GET /_bine/live?page=/two HTTP/1.1\r\nHost: a\r\n{foreign}\r\n\r\n"));
        assert_eq!(peer.reply().status(), 403);
    }
}

#[test]
fn a_page_that_is_not_for_them_any_more_sends_all_away() {
    for scheduler in KINDS {
        println!("on {scheduler}:");
        let program = start(scheduler);
        for (target, told, status) in [("/fails", "forbid", 403), ("/fails/worker", "lose", 404)] {
            post(&program, "/clear/fails", "");
            let mut viewer = Viewer::of(&program, target);
            say_in(&program, "fails", told);
            assert_eq!(viewer.next(), Event::Reload, "{scheduler}");
            assert_eq!(viewer.follow(), status, "{scheduler}");
        }
    }
}

#[test]
fn a_page_that_panics_goes_on_when_it_does_not() {
    for scheduler in KINDS {
        println!("on {scheduler}:");
        let program = start(scheduler);
        let targets = ["/fails", "/fails/worker", "/first"];
        let mut viewers = targets.map(|target| Viewer::of(&program, target));
        say_in(&program, "fails", "panic");
        say_in(&program, "first", "the only one");
        // Nobody has asked again, and no other change has come.
        assert_eq!(viewers[2].await_shown("<p>1 notes</p>"), [Event::Patch(0)]);
        say_in(&program, "fails", "well again");
        for viewer in &mut viewers[..2] {
            assert_eq!(viewer.await_shown("<p>2 notes</p>"), [Event::Patch(0)]);
        }
    }
}

#[test]
fn signals_move_the_regions_that_read_them() {
    const WAYS: [(&str, i64); 3] = [("set", 20), ("update", 3), ("notify", 4)];
    let change = |program: &Program, (way, value): (&str, i64)| {
        post(program, &format!("/set/{way}/{value}"), "");
        [Event::Patch(usize::from(way == "notify"))]
    };
    for scheduler in KINDS {
        println!("on {scheduler}:");
        let program = start(scheduler);
        let mut viewer = Viewer::of(&program, "/degrees");
        let shown = ["<p>20 degrees</p>", "<p>23 degrees</p>", "<p>4 doors</p>"];
        for (way, shown) in WAYS.into_iter().zip(shown) {
            let due = change(&program, way);
            assert_eq!(viewer.await_shown(shown), due, "{scheduler}");
        }
        // A poll that asks again when the next change is there already may have all told once more: one change for each.
        let shown = ["<p>20 degrees</p>", "<p>3 degrees</p>", "<p>4 doors</p>"];
        for (way, shown) in WAYS.into_iter().zip(shown) {
            let (program, figures) = start_watched(scheduler);
            let mut viewers =
                [Viewer::of(&program, "/degrees"), Viewer::polling(&program, "/degrees")];
            await_figure(figures, "bine_live_viewers", 2);
            let due = change(&program, way);
            for viewer in &mut viewers {
                assert_eq!(viewer.await_shown(shown), due, "{scheduler}");
            }
        }
    }
}

#[test]
fn a_signal_that_changes_while_its_page_is_made_is_not_missed() {
    for scheduler in KINDS {
        println!("on {scheduler}:");
        let program = start(scheduler);
        let mut viewer = Viewer::with(&program, "/while-made", "", false);
        viewer.load();
        // Nothing but the page itself moves it.
        while viewer.follow() == 503 {}
        viewer.await_shown("<p>5 degrees</p>");
    }
}

#[test]
fn a_browser_that_returns_after_a_kill_shows_what_the_page_shows() {
    let folder = Folder::new();
    let data = folder.join("data");
    let start = || {
        let options = ["--data", data.to_str().unwrap()];
        Program::start(&mut program("live::the_program_with_regions_serves", &options))
    };
    let mut program = start();
    let mut viewers = [Viewer::of(&program, "/two"), Viewer::polling(&program, "/two")];
    for round in 0..2 {
        let text = format!("round {round}");
        say_in(&program, "a", &text);
        for viewer in &mut viewers {
            viewer.await_shown(&text);
        }
        program.kill();
        program = start();
        let text = format!("after round {round}");
        say_in(&program, "b", &text);
        for viewer in &mut viewers {
            assert_eq!(viewer.follow_at(&program), 200);
            // The new process knows the hash of the other region.
            assert_eq!(viewer.await_shown(&text), [Event::Patch(1)]);
            assert_eq!(viewer.regions, viewer.fresh());
        }
    }
}

#[test]
fn who_says_of_no_region_what_it_shows_is_to_fetch_the_page() {
    let program = start("hybrid");
    let reply = program.connect().get("/_bine/live?page=/two");
    assert_eq!(reply.status(), 200);
    assert_eq!(reply.text().matches("\"event\":\"reload\"").count(), 1, "{}", reply.text());
}

//! Live pages: the content between `<Live>` and `</Live>` equals that of a new request for the
//! page.

mod load;
mod model;
mod reads;
mod rights;
mod scopes;
mod version;
mod viewer;

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::{LazyLock, Mutex};
use std::time::Instant;

use bine::prelude::*;
use bine::{Body, Signal};

use crate::app::{options, program};
use crate::harness::{Folder, KINDS, Program};
use crate::metrics::{await_figure, metrics_address};
use viewer::{Event, Viewer};

#[derive(Clone, Table)]
struct Note {
    id: Id<Note>,
    #[table(index)]
    room: Text,
    text: Text,
}

/// The program under test. Ordinary test runs skip it.
#[test]
fn serve_live_program() -> Exit {
    let Some(options) = options() else { return Exit::success() };
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

/// Adds a note.
#[page(POST "/say/{room}")]
async fn say(store: Store, room: Path<Text>, text: Body) -> Result<Response, Error> {
    let text = String::from_utf8_lossy(&text).into_owned().into();
    store.insert(Note { id: Id::unassigned(), room: room.0, text }).await?;
    Ok(Response::text("said"))
}

/// Removes all notes of a room.
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

/// Number of runs of each page, by target.
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

/// Suspends before it reads.
#[page("/room/{room}/later")]
async fn room_later(store: Store, room: Path<Text>) -> impl Page {
    ran(room.as_str());
    tokio::task::yield_now().await;
    html!(<Live><ul>{for note in notes_of(&store, &room) { <li>{note.text}</li> }}</ul></Live>)
}

/// Each region displays a different room.
#[page("/two")]
async fn two(store: Store) -> impl Page {
    ran("two");
    html! {
        <Live>{for note in notes_of(&store, "a") { <p>{note.text}</p> }}</Live>
        <hr>
        <Live>{for note in notes_of(&store, "b") { <p>{note.text}</p> }}</Live>
    }
}

/// Has one more region for each note.
#[page("/grows")]
async fn grows(store: Store) -> impl Page {
    html! {
        <Live><p>{notes_of(&store, "grows").len()} regions more</p></Live>
        {for note in notes_of(&store, "grows") { <Live><p>{note.text}</p></Live> }}
    }
}

/// Fails as the last note asks.
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

/// Its third run panics: the one that the change triggers.
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
/// Changes through interior mutability, so the program must call `notify`.
static DOORS: LazyLock<Signal<Mutex<i64>>> = LazyLock::new(Signal::default);

#[page("/degrees")]
async fn degrees() -> impl Page {
    html! {
        <Live><p>{DEGREES.get()} degrees</p></Live>
        <Live><p>{DOORS.with(|doors| *doors.lock().unwrap())} doors</p></Live>
    }
}

/// Changes its signal while it renders, a few times.
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
    // With the scheduler `pool` each follower occupies a thread until the server notices the
    // disconnection.
    let options = ["--data", "memory", "--scheduler", scheduler, "--workers", "12"];
    Program::start(&mut program("live::serve_live_program", &options))
}

fn post(program: &Program, target: &str, content: &str) {
    program.connect().expect_post(target, content);
}

fn add_note(program: &Program, room: &str, text: &str) {
    post(program, &format!("/say/{room}"), text);
}

fn runs(program: &Program, page: &str) -> u64 {
    program.connect().get(&format!("/runs/{page}")).text().trim().parse().unwrap()
}

/// Starts a program with metrics. Returns their address too.
fn start_watched(scheduler: &str) -> (Program, SocketAddr) {
    start_watched_with(&["--scheduler", scheduler])
}

/// Starts it with these options.
fn start_watched_with(options: &[&str]) -> (Program, SocketAddr) {
    let own = ["--data", "memory", "--workers", "12", "--metrics", "127.0.0.1:0"];
    let options = [&own, options].concat();
    let mut program = Program::start(&mut program("live::serve_live_program", &options));
    let figures = metrics_address(&mut program);
    (program, figures)
}

#[test]
fn sends_change_once_to_each_viewer_of_the_page() {
    for scheduler in KINDS {
        for (own, way) in [("a", ""), ("b", "/worker"), ("c", "/later")] {
            println!("on {scheduler}, {own}:");
            // Each case starts its own program, without disconnected viewers, so that the number of
            // viewers is exact.
            let (program, figures) = start_watched(scheduler);
            let target = format!("/room/{own}{way}");
            let mut viewers = vec![Viewer::of(&program, &target), Viewer::of(&program, &target)];
            let mut other = Viewer::of(&program, "/room/other");
            add_note(&program, own, "<one>");
            for viewer in &mut viewers {
                viewer.await_shown("<li>&lt;one&gt;</li>");
            }
            for text in ["two", "three"] {
                let runs_before = runs(&program, own);
                add_note(&program, own, text);
                let shown = format!("<li>{text}</li>");
                for viewer in &mut viewers {
                    assert_eq!(viewer.await_shown(&shown), [Event::Patch(0)]);
                }
                assert_eq!(runs(&program, own) - runs_before, 1, "one change must cause one run");
                if text == "two" {
                    // A poll that arrived after the change would cause a run of its own.
                    viewers.push(Viewer::polling(&program, &target));
                    await_figure(figures, "bine_live_viewers", 4);
                }
            }
            let text = format!("behind {own}");
            add_note(&program, "other", &text);
            assert_eq!(other.await_shown(&text), [Event::Patch(0)]);
            assert!(!other.received.contains("two"), "{}", other.received);
            for viewer in &mut viewers {
                assert_eq!(viewer.regions, viewer.fresh());
            }
        }
    }
}

#[test]
fn merges_quick_changes_and_sends_last_state() {
    const CHANGES: usize = 200;
    for scheduler in KINDS {
        println!("on {scheduler}:");
        let program = start(scheduler);
        let mut viewers = [Viewer::of(&program, "/room/a"), Viewer::polling(&program, "/room/a")];
        let mut peer = program.connect();
        let began = Instant::now();
        // Send all changes in one pipeline.
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
        // The limit scales with the time that a busy machine takes: a burst of eight runs, one every
        // 16 ms, and those for new viewers.
        let most = began.elapsed().as_millis() as u64 / 16 + 8 + 12;
        assert!(counts.iter().all(|count| *count <= most), "{scheduler}: {counts:?} of {most}");
    }
}

#[test]
fn sends_only_the_changed_region() {
    let program = start("hybrid");
    let mut viewer = Viewer::of(&program, "/two");
    add_note(&program, "b", "below");
    assert_eq!(viewer.await_shown("below"), [Event::Patch(1)]);
    add_note(&program, "a", "above");
    assert_eq!(viewer.await_shown("above"), [Event::Patch(0)]);
    assert_eq!(viewer.regions, viewer.fresh());
}

#[test]
fn sends_differences_on_reconnect_and_nothing_else() {
    for scheduler in KINDS {
        println!("on {scheduler}:");
        let program = start(scheduler);
        for is_poll in [false, true] {
            let mut viewer = Viewer::with(&program, "/two", "", is_poll);
            viewer.load();
            let text = format!("meanwhile, {is_poll}");
            add_note(&program, "b", &text);
            assert_eq!(viewer.follow(), 200);
            assert_eq!(viewer.await_shown(&text), [Event::Patch(1)], "{scheduler}");
            // The hashes that it received describe the current state.
            let mut viewer = Viewer::with(&program, "/two", "", is_poll);
            viewer.load();
            assert_eq!(viewer.follow(), 200);
            add_note(&program, "a", &text);
            assert_eq!(viewer.next(), Event::Patch(0), "{scheduler}");
            assert!(viewer.regions[0].markup.contains(&text));
        }
    }
}

#[test]
fn requests_reload_when_regions_differ() {
    for scheduler in KINDS {
        println!("on {scheduler}:");
        let program = start(scheduler);
        for is_poll in [false, true] {
            let mut viewer = Viewer::with(&program, "/grows", "", is_poll);
            viewer.load();
            assert_eq!(viewer.follow(), 200);
            add_note(&program, "grows", "one");
            assert_eq!(viewer.next(), Event::Reload, "{scheduler}");
            viewer.load();
            assert_eq!((viewer.regions.len(), viewer.follow()), (2, 200));
            post(&program, "/clear/grows", "");
            assert_eq!(viewer.next(), Event::Reload, "{scheduler}");
            // It reconnects with the regions it displayed before.
            assert_eq!(viewer.follow(), 200);
            assert_eq!(viewer.next(), Event::Reload, "{scheduler}");
        }
    }
}

#[test]
fn rejects_pages_that_cannot_be_followed_with_reason() {
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
            add_note(&program, "fails", "forbid");
            assert_eq!(follow("/fails"), 403);
            assert_eq!(follow("/fails/worker"), 403);
            add_note(&program, "fails", "panic");
            assert_eq!(follow("/fails"), 503, "a later attempt may succeed");
            assert_eq!(follow("/fails/worker"), 503);
        }
        let ask = |query: &str| program.connect().get(&format!("/_bine/live{query}"));
        let nothing = ask("?page=/nothing");
        assert_eq!((nothing.status(), nothing.header("Cache-Control")), (204, Some("no-store")));
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
        assert_eq!((reply.status(), reply.header("Allow")), (405, Some("GET, HEAD, OPTIONS")));
        let mut peer = program.connect();
        let foreign = "Sec-Fetch-Site: cross-site";
        peer.send(format!("GET /_bine/live?page=/two HTTP/1.1\r\nHost: a\r\n{foreign}\r\n\r\n"));
        assert_eq!(peer.reply().status(), 403);
    }
}

#[test]
fn ends_streams_of_a_page_that_becomes_forbidden() {
    for scheduler in KINDS {
        println!("on {scheduler}:");
        let program = start(scheduler);
        for (target, told, status) in [("/fails", "forbid", 403), ("/fails/worker", "lose", 404)] {
            post(&program, "/clear/fails", "");
            let mut viewer = Viewer::of(&program, target);
            add_note(&program, "fails", told);
            assert_eq!(viewer.next(), Event::Reload, "{scheduler}");
            assert_eq!(viewer.follow(), status, "{scheduler}");
        }
    }
}

#[test]
fn retries_page_that_panics() {
    for scheduler in KINDS {
        println!("on {scheduler}:");
        let program = start(scheduler);
        let targets = ["/fails", "/fails/worker", "/first"];
        let mut viewers = targets.map(|target| Viewer::of(&program, target));
        add_note(&program, "fails", "panic");
        add_note(&program, "first", "the only one");
        // The retry needs no new request and no other change.
        assert_eq!(viewers[2].await_shown("<p>1 notes</p>"), [Event::Patch(0)]);
        add_note(&program, "fails", "well again");
        for viewer in &mut viewers[..2] {
            assert_eq!(viewer.await_shown("<p>2 notes</p>"), [Event::Patch(0)]);
        }
    }
}

#[test]
fn signals_update_the_regions_that_read_them() {
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
        // A poll that reconnects after the next change may receive everything again, so each change
        // gets its own program.
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
fn does_not_miss_signal_changed_during_render() {
    for scheduler in KINDS {
        println!("on {scheduler}:");
        let program = start(scheduler);
        let mut viewer = Viewer::with(&program, "/while-made", "", false);
        viewer.load();
        // Only the page itself changes the signal.
        while viewer.follow() == 503 {}
        viewer.await_shown("<p>5 degrees</p>");
    }
}

#[test]
fn reconnect_after_a_kill_shows_current_page() {
    let folder = Folder::new();
    let data = folder.join("data");
    let start = || {
        let options = ["--data", data.to_str().unwrap()];
        Program::start(&mut program("live::serve_live_program", &options))
    };
    let mut program = start();
    let mut viewers = [Viewer::of(&program, "/two"), Viewer::polling(&program, "/two")];
    for round in 0..2 {
        let text = format!("round {round}");
        add_note(&program, "a", &text);
        for viewer in &mut viewers {
            viewer.await_shown(&text);
        }
        program.kill();
        program = start();
        let text = format!("after round {round}");
        add_note(&program, "b", &text);
        for viewer in &mut viewers {
            assert_eq!(viewer.follow_at(&program), 200);
            // The new process computes the same hash for the unchanged region.
            assert_eq!(viewer.await_shown(&text), [Event::Patch(1)]);
            assert_eq!(viewer.regions, viewer.fresh());
        }
    }
}

#[test]
fn requests_reload_if_client_names_no_regions() {
    let program = start("hybrid");
    let reply = program.connect().get("/_bine/live?page=/two");
    assert_eq!(reply.status(), 200);
    assert_eq!(reply.text().matches("\"event\":\"reload\"").count(), 1, "{}", reply.text());
}

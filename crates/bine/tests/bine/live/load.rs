//! Live pages under load: requests of one client do not delay others, and renders without a waiting
//! client are dropped.

use std::net::SocketAddr;
use std::sync::{Condvar, LazyLock, Mutex};
use std::time::Instant;

use bine::prelude::*;
use rustix::process::Signal;

use super::viewer::{Event, Viewer};
use super::{add_note, ran, runs, start_watched, start_watched_with};
use crate::harness::{PATIENCE, Peer, Program};
use crate::metrics::await_figure;

/// Whether blocked pages may continue.
static GATE: LazyLock<(Mutex<bool>, Condvar)> = LazyLock::new(Default::default);

#[page(POST "/gate")]
pub(super) async fn open_gate() -> Response {
    let (is_open, bell) = &*GATE;
    *is_open.lock().unwrap() = true;
    bell.notify_all();
    Response::text("open")
}

/// Blocks its thread, as a computation does, until the gate opens.
#[page("/blocks")]
pub(super) async fn blocks() -> impl Page {
    ran("blocks");
    let (is_open, bell) = &*GATE;
    drop(bell.wait_while(is_open.lock().unwrap(), |is_open| !*is_open).unwrap());
    html!(<Live><p>"done"</p></Live>)
}

/// Counts its drops.
struct Dropped;

impl Drop for Dropped {
    fn drop(&mut self) {
        ran("dropped");
    }
}

/// Never ends by itself.
#[page("/pends")]
pub(super) async fn pends() -> impl Page {
    ran("pends");
    let _dropped = Dropped;
    std::future::pending::<()>().await;
    html!(<Live><p>"never"</p></Live>)
}

/// Begins to follow a page without reading the response.
fn join(program: &Program, page: &str) -> Peer {
    let mut peer = program.connect();
    let page = page.replace('/', "%2F");
    peer.send(format!("GET /_bine/live?page={page}&have=0.1 HTTP/1.1\r\nHost: a\r\n\r\n"));
    peer
}

fn await_runs(program: &Program, page: &str, count: u64) {
    let begin = Instant::now();
    while runs(program, page) < count {
        assert!(begin.elapsed() < PATIENCE, "{page} ran {} times", runs(program, page));
    }
}

fn open(program: &Program) {
    super::post(program, "/gate", "");
}

/// Regression: joins of one page by many connections were rendered in order on the one thread that
/// also rendered changes, so patches of all other pages waited for them.
#[test]
fn sends_patches_of_other_pages_while_joins_wait() {
    let (program, figures) = start_watched("hybrid");
    let mut viewer = Viewer::of(&program, "/room/patched");
    let _first = join(&program, "/blocks");
    await_runs(&program, "blocks", 1);
    let _others: Vec<Peer> = (0..50).map(|_| join(&program, "/room/joined")).collect();
    let _blocked: Vec<Peer> = (0..50).map(|_| join(&program, "/blocks")).collect();
    // With more than two threads, some render joins meanwhile.
    for text in ["one", "two", "three"] {
        add_note(&program, "patched", text);
        assert_eq!(viewer.await_shown(&format!("<li>{text}</li>")), [Event::Patch(0)]);
    }
    open(&program);
    await_figure(figures, "bine_live_waiting", 0);
}

#[test]
fn names_renders_when_stop_takes_too_long() {
    let (program, _) = start_watched_with(&["--loops", "1", "--drain-timeout", "50ms"]);
    let _waiting = join(&program, "/blocks");
    await_runs(&program, "blocks", 1);
    program.signal(Signal::TERM);
    let errors = program.wait().errors;
    assert!(errors.contains("\n  GET /_bine/live has run for "), "{errors}");
    let renders = "work in the background still runs: live pages (renders that run: 1, ";
    assert!(errors.contains(renders), "{errors}");
}

/// Regression: the server rendered for a client that had closed its sending side.
#[test]
fn skips_render_for_closed_polls() {
    let (program, figures) = start_watched_with(&["--live-threads", "2"]);
    let _first = join(&program, "/blocks");
    await_runs(&program, "blocks", 1);
    let mut polls: Vec<Peer> = (0..40).map(|_| join(&program, "/room/closed")).collect();
    await_figure(figures, "bine_live_waiting", 40);
    polls.iter_mut().for_each(Peer::end);
    await_figure(figures, "bine_live_waiting", 0);
    open(&program);
    // Joins of one page start in order.
    let mut last = join(&program, "/room/closed");
    assert_eq!(last.reply().status(), 200);
    assert_eq!(runs(&program, "closed"), 1);
    drop(polls);
}

/// Regression: a waiting render was kept until its deadline after its last client had left.
#[test]
fn drops_waiting_render_when_its_client_leaves() {
    let (program, figures) = start_watched("hybrid");
    let mut browser = join(&program, "/pends");
    await_runs(&program, "pends", 1);
    browser.end();
    await_runs(&program, "dropped", 1);
    await_figure(figures, "bine_live_waiting", 0);
    let ended = program.stop();
    assert!(!ended.errors.contains("took longer"), "{}", ended.errors);
}

/// Joins beyond the limit of one client address are rejected, but patches still arrive.
#[test]
fn rejects_joins_beyond_the_limit_at_once() {
    let (program, figures) = start_watched_with(&["--live-threads", "2", "--live-joins", "8"]);
    let _first = join(&program, "/blocks");
    await_runs(&program, "blocks", 1);
    // Local clients may use three quarters of the limit.
    let _waiting: Vec<Peer> = (0..6).map(|_| join(&program, "/room/bound")).collect();
    await_figure(figures, "bine_live_waiting", 6);
    let refused = join(&program, "/room/bound").reply();
    assert_eq!((refused.status(), refused.header("Retry-After")), (503, Some("1")));
    await_figure(figures, "bine_live_refused_total", 1);
    open(&program);
    await_figure(figures, "bine_live_waiting", 0);
}

/// Starts a program whose only thread for joins is blocked until the gate opens. Only a blocked
/// thread makes it count sessions, however slow the machine is.
fn start_taken() -> (Program, SocketAddr, Peer) {
    let options = ["--live-threads", "2", "--admission", "on", "--admission-wait", "60s"];
    let (program, figures) = start_watched_with(&options);
    let first = join(&program, "/blocks");
    await_runs(&program, "blocks", 1);
    (program, figures, first)
}

/// Regression: joins waited for seconds while admission stayed `asleep`, because the rendering
/// threads reported no load.
#[test]
fn queued_joins_limit_new_visitors() {
    let (program, figures, _first) = start_taken();
    await_figure(figures, "bine_admission_state{state=\"asleep\"}", 1);
    let _waiting: Vec<Peer> = (0..8).map(|_| join(&program, "/room/queued")).collect();
    await_figure(figures, "bine_admission_state{state=\"limiting\"}", 1);
    let (begin, mut peers) = (Instant::now(), Vec::new());
    let refused = loop {
        let mut peer = program.connect();
        let reply = peer.get("/room/any");
        if reply.status() != 200 {
            break reply;
        }
        peers.push(peer);
        assert!(begin.elapsed() < PATIENCE, "{} new visitors were admitted", peers.len());
    };
    assert_eq!(refused.status(), 503);
    let again: u32 = refused.header("Retry-After").unwrap().parse().unwrap();
    assert!((5..=20).contains(&again), "{refused:?}");
}

/// Regression: a join counted as done on arrival, so a server with queued joins seemed to have
/// unlimited capacity.
#[test]
fn counts_join_as_done_once_when_answered() {
    let (program, figures, first) = start_taken();
    let mut joins = vec![first];
    joins.extend((0..8).map(|_| join(&program, "/room/done")));
    await_figure(figures, "bine_admission_state{state=\"asleep\"}", 0);
    // These arrive while sessions are counted.
    joins.extend((0..4).map(|_| join(&program, "/room/done")));
    await_figure(figures, "bine_live_waiting", 12);
    // A join whose client disconnects does not count.
    let mut gone = join(&program, "/room/done");
    await_figure(figures, "bine_live_waiting", 13);
    gone.end();
    await_figure(figures, "bine_live_waiting", 12);
    open(&program);
    for join in &mut joins {
        assert_eq!(join.reply().status(), 200);
    }
    // Includes the request that opened the gate.
    await_figure(figures, "bine_admission_done_total", joins.len() as u64 + 1);
}

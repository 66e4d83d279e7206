//! Claims about live pages under load: what one client asks for does not delay others, and what nobody waits for is not
//! rendered.

use std::net::SocketAddr;
use std::sync::{Condvar, LazyLock, Mutex};
use std::time::Instant;

use bine::prelude::*;

use super::viewer::{Event, Viewer};
use super::{ran, runs, say_in, start_watched, start_watched_with};
use crate::harness::{PATIENCE, Peer, Program};
use crate::metrics::await_figure;

/// Whether the pages that block may go on.
static GATE: LazyLock<(Mutex<bool>, Condvar)> = LazyLock::new(Default::default);

#[page(POST "/gate")]
pub(super) async fn open_gate() -> Response {
    let (is_open, bell) = &*GATE;
    *is_open.lock().unwrap() = true;
    bell.notify_all();
    Response::text("open")
}

/// Computes, as far as the server can see, until the gate opens.
#[page("/blocks")]
pub(super) async fn blocks() -> impl Page {
    ran("blocks");
    let (is_open, bell) = &*GATE;
    drop(bell.wait_while(is_open.lock().unwrap(), |is_open| !*is_open).unwrap());
    html!(<Live><p>"done"</p></Live>)
}

/// Counts when it is dropped.
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

/// A client that comes to follow a page, and does not read the reply.
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

/// Joins of one page by many connections were rendered in their order on the one thread that also rendered changes, so
/// every other page's patches waited for all of them.
#[test]
fn sends_patches_of_other_pages_while_joins_wait() {
    let (program, figures) = start_watched("hybrid");
    let mut viewer = Viewer::of(&program, "/room/patched");
    let _first = join(&program, "/blocks");
    await_runs(&program, "blocks", 1);
    let _others: Vec<Peer> = (0..50).map(|_| join(&program, "/room/joined")).collect();
    let _blocked: Vec<Peer> = (0..50).map(|_| join(&program, "/blocks")).collect();
    // Where there are more threads than two, some of them render joins meanwhile.
    for text in ["one", "two", "three"] {
        say_in(&program, "patched", text);
        assert_eq!(viewer.await_shown(&format!("<li>{text}</li>")), [Event::Patch(0)]);
    }
    open(&program);
    await_figure(figures, "bine_live_waiting", 0);
}

/// A client that closed its half of the connection was rendered for nevertheless.
#[test]
fn renders_nothing_for_polls_that_are_closed() {
    let (program, figures) = start_watched_with(&["--live-threads", "2"]);
    let _first = join(&program, "/blocks");
    await_runs(&program, "blocks", 1);
    let mut polls: Vec<Peer> = (0..40).map(|_| join(&program, "/room/closed")).collect();
    await_figure(figures, "bine_live_waiting", 40);
    polls.iter_mut().for_each(Peer::end);
    await_figure(figures, "bine_live_waiting", 0);
    open(&program);
    // Joins of one page start in their order.
    let mut last = join(&program, "/room/closed");
    assert_eq!(last.reply().status(), 200);
    assert_eq!(runs(&program, "closed"), 1);
    drop(polls);
}

/// A page that awaited something was kept until its deadline when its last client had left.
#[test]
fn drops_a_render_that_waits_when_its_browser_leaves() {
    let (program, figures) = start_watched("hybrid");
    let mut browser = join(&program, "/pends");
    await_runs(&program, "pends", 1);
    browser.end();
    await_runs(&program, "dropped", 1);
    await_figure(figures, "bine_live_waiting", 0);
    let ended = program.stop();
    assert!(!ended.errors.contains("took longer"), "{}", ended.errors);
}

/// Joins beyond what one machine may have waiting are refused; a patch still comes.
#[test]
fn refuses_joins_beyond_the_bound_at_once() {
    let (program, figures) = start_watched_with(&["--live-threads", "2", "--live-joins", "8"]);
    let _first = join(&program, "/blocks");
    await_runs(&program, "blocks", 1);
    // Three quarters for clients of the server's own machine.
    let _waiting: Vec<Peer> = (0..6).map(|_| join(&program, "/room/bound")).collect();
    await_figure(figures, "bine_live_waiting", 6);
    let refused = join(&program, "/room/bound").reply();
    assert_eq!((refused.status(), refused.field("Retry-After")), (503, Some("1")));
    await_figure(figures, "bine_live_refused_total", 1);
    open(&program);
    await_figure(figures, "bine_live_waiting", 0);
}

/// A program with one thread that renders joins, which is taken until the gate opens. Nothing else than a thread that is
/// taken makes it count sessions, however slow the machine is.
fn start_taken() -> (Program, SocketAddr, Peer) {
    let options = ["--live-threads", "2", "--admission", "on", "--admission-wait", "60s"];
    let (program, figures) = start_watched_with(&options);
    let first = join(&program, "/blocks");
    await_runs(&program, "blocks", 1);
    (program, figures, first)
}

/// Joins waited for seconds while the state of admission stayed `asleep`: the threads that render reported nothing.
#[test]
fn joins_that_queue_limit_newcomers() {
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
        assert!(begin.elapsed() < PATIENCE, "{} newcomers were let in", peers.len());
    };
    assert_eq!(refused.status(), 503);
    let again: u32 = refused.field("Retry-After").unwrap().parse().unwrap();
    assert!((5..=20).contains(&again), "{refused:?}");
}

/// A join counted as done when it came, so a server whose joins queued seemed to do whatever it was asked for.
#[test]
fn counts_a_join_as_done_once_when_it_is_answered() {
    let (program, figures, first) = start_taken();
    let mut joins = vec![first];
    joins.extend((0..8).map(|_| join(&program, "/room/done")));
    await_figure(figures, "bine_admission_state{state=\"asleep\"}", 0);
    // These come while sessions are counted.
    joins.extend((0..4).map(|_| join(&program, "/room/done")));
    await_figure(figures, "bine_live_waiting", 12);
    // One whose client leaves is not done.
    let mut gone = join(&program, "/room/done");
    await_figure(figures, "bine_live_waiting", 13);
    gone.end();
    await_figure(figures, "bine_live_waiting", 12);
    open(&program);
    for join in &mut joins {
        assert_eq!(join.reply().status(), 200);
    }
    // With the request that opened the gate.
    await_figure(figures, "bine_admission_done_total", joins.len() as u64 + 1);
}

//! The places of one client at an origin of the reverse proxy. Clients are those that a trusted proxy
//! names, because all clients on this machine share one quota.

use std::net::SocketAddr;
use std::sync::{Arc, Condvar, Mutex};

use crate::harness::{KINDS, PATIENCE, Peer, Program};
use crate::metrics::{await_figure, metrics_address};
use crate::proxy::{ScriptedOrigin, start};

/// An origin that answers paths below `/hold` only after [`open`](Self::open).
struct HoldingOrigin {
    origin: ScriptedOrigin,
    state: Arc<(Mutex<HoldingState>, Condvar)>,
}

#[derive(Default)]
struct HoldingState {
    /// The paths of the requests, in the order of their arrival.
    arrived: Vec<String>,
    opened: Vec<String>,
}

impl HoldingOrigin {
    fn new() -> Self {
        let state = Arc::<(Mutex<HoldingState>, Condvar)>::default();
        let seen = Arc::clone(&state);
        let origin = ScriptedOrigin::new(move |received| {
            let path = received.path().to_owned();
            let mut state = seen.0.lock().unwrap();
            state.arrived.push(path.clone());
            seen.1.notify_all();
            if path.starts_with("/hold") {
                let is_held = |state: &mut HoldingState| !state.opened.contains(&path);
                let (_state, waited) = seen.1.wait_timeout_while(state, PATIENCE, is_held).unwrap();
                assert!(!waited.timed_out(), "the test opens {path}");
            } else {
                drop(state);
            }
            received.text("answered");
            true
        });
        Self { origin, state }
    }

    fn open(&self, path: &str) {
        self.state.0.lock().unwrap().opened.push(path.to_owned());
        self.state.1.notify_all();
    }

    /// Waits for this number of requests, and returns their paths.
    fn await_arrivals(&self, count: usize) -> Vec<String> {
        let state = self.state.0.lock().unwrap();
        let are_missing = |state: &mut HoldingState| state.arrived.len() < count;
        let (state, waited) =
            self.state.1.wait_timeout_while(state, PATIENCE, are_missing).unwrap();
        assert!(!waited.timed_out(), "{:?}", state.arrived);
        state.arrived.clone()
    }

    /// A metric of this origin.
    fn series(&self, name: &str) -> String {
        format!("{name}{{path=\"/\",origin=\"http://{}\"}}", self.origin.address)
    }

    fn rejected(&self, reason: &str) -> String {
        let address = self.origin.address;
        format!(
            "bine_proxy_rejected_total{{path=\"/\",origin=\"http://{address}\",reason=\"{reason}\"}}"
        )
    }

    /// A program in front of the origin, and the address of its metrics.
    fn program(&self, scheduler: &str, rule: &str) -> (Program, SocketAddr) {
        let mut program = start(&[
            "--scheduler",
            scheduler,
            "--proxy",
            &self.origin.rule(rule),
            "--trusted-proxies",
            "127.0.0.1",
            "--hosts",
            "any",
            "--metrics",
            "127.0.0.1:0",
        ]);
        let metrics = metrics_address(&mut program);
        (program, metrics)
    }
}

/// Sends a request of the client at `client` on a new connection.
fn send(program: &Program, client: &str, path: &str) -> Peer {
    let mut peer = program.connect();
    peer.send(format!("GET {path} HTTP/1.1\r\nHost: a\r\nX-Forwarded-For: {client}\r\n\r\n"));
    peer
}

#[test]
fn serves_another_client_at_once_while_one_fills_its_share() {
    for scheduler in KINDS {
        let origin = HoldingOrigin::new();
        let rule = "connections=4 connections-per-client=2 connect-time=10m";
        let (program, metrics) = origin.program(scheduler, rule);
        let mut held: Vec<_> = (0..4).map(|_| send(&program, "192.0.2.1", "/hold")).collect();
        await_figure(metrics, &origin.series("bine_proxy_outstanding"), 2);
        await_figure(metrics, &origin.series("bine_proxy_waiting"), 2);
        let mut other = send(&program, "192.0.2.2", "/");
        assert_eq!(other.reply().text(), "answered", "{scheduler}");
        await_figure(metrics, &origin.series("bine_proxy_waiting"), 2);
        origin.open("/hold");
        for peer in &mut held {
            assert_eq!(peer.reply().text(), "answered", "{scheduler}");
        }
        await_figure(metrics, &origin.series("bine_proxy_outstanding"), 0);
        await_figure(metrics, &origin.series("bine_proxy_waiting"), 0);
    }
}

#[test]
fn rejects_what_exceeds_the_share_of_a_client() {
    let origin = HoldingOrigin::new();
    let (program, metrics) =
        origin.program("hybrid", "connections=4 connect-time=50ms first-byte-time=20s");
    let mut held = send(&program, "192.0.2.1", "/hold");
    await_figure(metrics, &origin.series("bine_proxy_outstanding"), 1);
    let reply = send(&program, "192.0.2.1", "/").reply();
    assert_eq!((reply.status(), reply.header("Retry-After")), (503, Some("1")));
    await_figure(metrics, &origin.rejected("client"), 1);
    assert_eq!(send(&program, "192.0.2.2", "/").reply().status(), 200);
    origin.open("/hold");
    assert_eq!(held.reply().status(), 200);
    assert_eq!(send(&program, "192.0.2.1", "/").reply().status(), 200);
    let told = program.stop().errors;
    let expected = "rejected a request of 192.0.2.1: 1 of its requests run already, the limit `connections-per-client`";
    assert!(told.contains(expected), "{told}");
}

#[test]
fn bounds_the_requests_of_a_client_that_wait() {
    let origin = HoldingOrigin::new();
    let (program, metrics) = origin.program("hybrid", "connections=4 waiting=8 connect-time=10m");
    let mut held: Vec<_> = (0..3).map(|_| send(&program, "192.0.2.1", "/hold")).collect();
    await_figure(metrics, &origin.series("bine_proxy_waiting"), 2);
    assert_eq!(send(&program, "192.0.2.1", "/").reply().status(), 503);
    await_figure(metrics, &origin.rejected("queue"), 1);
    assert_eq!(send(&program, "192.0.2.2", "/").reply().status(), 200);
    origin.open("/hold");
    for peer in &mut held {
        assert_eq!(peer.reply().status(), 200);
    }
}

#[test]
fn gives_a_free_place_to_another_client_first() {
    let origin = HoldingOrigin::new();
    let rule = "connections=2 connections-per-client=2 connect-time=10m";
    let (program, metrics) = origin.program("hybrid", rule);
    let mut held: Vec<_> =
        ["/hold/1", "/hold/2"].map(|path| send(&program, "192.0.2.1", path)).into();
    await_figure(metrics, &origin.series("bine_proxy_outstanding"), 2);
    for (count, client, path) in [(1, "192.0.2.1", "/first"), (2, "192.0.2.2", "/hold/other")] {
        held.push(send(&program, client, path));
        await_figure(metrics, &origin.series("bine_proxy_waiting"), count);
    }
    origin.open("/hold/1");
    assert_eq!(held[0].reply().status(), 200);
    // Before another place becomes free: two requests may overtake each other on the way.
    assert_eq!(origin.await_arrivals(3)[2], "/hold/other");
    await_figure(metrics, &origin.series("bine_proxy_waiting"), 1);
    origin.open("/hold/other");
    origin.open("/hold/2");
    for peer in &mut held[1..] {
        assert_eq!(peer.reply().status(), 200);
    }
}

//! Metrics at an address of their own, and health checks.

use std::fs;
use std::net::SocketAddr;
use std::process::Command;
use std::time::Instant;

use rustix::process::Signal;

use super::examples::example;
use crate::harness::{Folder, PATIENCE, Peer, Program, SCHEDULERS};

/// Starts a program with metrics. Returns their address too.
fn start_with_metrics(command: &mut Command) -> (Program, SocketAddr) {
    let arguments = ["--listen", "127.0.0.1:0", "--metrics", "127.0.0.1:0"];
    let mut program = Program::start(command.args(arguments));
    let address = metrics_address(&mut program);
    (program, address)
}

/// Returns the metrics address of a program started with `--metrics`.
pub(crate) fn metrics_address(program: &mut Program) -> SocketAddr {
    let told = program.await_line("metrics at http://");
    let (address, path) = told.split_once('/').unwrap();
    assert_eq!(path, "metrics");
    address.parse().unwrap()
}

/// Waits until a series has this value. A metric shows that the server has received a request,
/// which the client cannot know otherwise.
#[track_caller]
pub(crate) fn await_figure(address: SocketAddr, series: &str, due: u64) {
    let (mut peer, began) = (Peer::tcp(address), Instant::now());
    loop {
        let page = peer.get("/metrics");
        let told = value(page.text(), series);
        if told == due.to_string() {
            return;
        }
        assert!(began.elapsed() < PATIENCE, "{series} is {told} and not {due}");
    }
}

/// Returns the value of a series with these labels.
#[track_caller]
fn value<'p>(page: &'p str, series: &str) -> &'p str {
    let line = page.lines().find_map(|line| line.strip_prefix(series)?.strip_prefix(' '));
    line.unwrap_or_else(|| panic!("no {series} in {page}"))
}

#[track_caller]
fn number(page: &str, series: &str) -> f64 {
    value(page, series).parse().unwrap()
}

fn figures(address: SocketAddr) -> String {
    let reply = Peer::tcp(address).get("/metrics");
    assert_eq!(reply.header("Content-Type"), Some("text/plain; version=0.0.4; charset=utf-8"));
    reply.text().to_owned()
}

#[test]
fn counts_requests_on_each_scheduler() {
    for scheduler in SCHEDULERS {
        let (program, address) =
            start_with_metrics(example("hello").args(["--scheduler", scheduler]));
        let mut peer = program.connect();
        for _ in 0..10 {
            assert_eq!(peer.get("/hello?name=a").status(), 200);
        }
        assert_eq!(peer.get("/nowhere").status(), 404);
        // A thread counts a response after sending it, so the client may have read it earlier.
        await_figure(address, "bine_replies_total{class=\"4xx\"}", 1);
        let page = figures(address);
        for (series, expected) in [
            ("bine_connections_accepted_total", "1"),
            ("bine_connections_open", "1"),
            ("bine_requests_total", "11"),
            ("bine_replies_total{class=\"2xx\"}", "10"),
            ("bine_replies_total{class=\"4xx\"}", "1"),
            ("bine_panics_total", "0"),
            ("bine_guard_pressure{of=\"descriptors\"}", "0"),
            ("bine_guard_refused_total{who=\"stranger\"}", "0"),
            ("bine_ready", "1"),
        ] {
            assert_eq!(value(&page, series), expected, "{scheduler}: {series}");
        }
        let load = format!("bine_scheduler_load{{scheduler=\"{scheduler}\"}}");
        assert!((0.0..=1.0).contains(&number(&page, &load)));
        assert!(number(&page, "process_resident_memory_bytes") > 1e5);
        assert!(number(&page, "process_start_time_seconds") > 1.7e9);
        // Requests for metrics are not counted.
        assert_eq!(value(&figures(address), "bine_requests_total"), "11");
        assert_eq!(program.stop().code, Some(0));
    }
}

/// Each series belongs to its own family and occurs once, as readers of the format require.
#[test]
fn lists_each_series_once_after_its_description() {
    let (program, address) = start_with_metrics(example("board").args(["--data", "memory"]));
    assert_eq!(program.connect().get("/").status(), 200);
    let page = figures(address);
    let (mut family, mut all) = ("", Vec::new());
    for line in page.lines() {
        if let Some(help) = line.strip_prefix("# HELP ") {
            family = help.split(' ').next().unwrap();
        } else if let Some(kind) = line.strip_prefix("# TYPE ") {
            assert_eq!(kind.split(' ').next(), Some(family), "{line}");
        } else {
            let (series, value) = line.rsplit_once(' ').unwrap();
            assert!(series.starts_with(family) && value.parse::<f64>().is_ok(), "{line}");
            all.push(series);
        }
    }
    let count = all.len();
    all.sort_unstable();
    all.dedup();
    assert_eq!(all.len(), count);
    for name in ["bine_store_commits_total", "bine_sessions", "bine_live_viewers"] {
        assert!(all.contains(&name), "{name}");
    }
}

#[test]
fn documents_each_metric_in_the_guide() {
    let guide = include_str!("../../../../docs/guide/metrics.md");
    let named: Vec<&str> = guide.split('`').skip(1).step_by(2).collect();
    let (program, address) = start_with_metrics(example("board").args(["--data", "memory"]));
    assert_eq!(program.connect().get("/").status(), 200);
    let page = figures(address);
    for name in page.lines().filter_map(|line| line.strip_prefix("# TYPE ")) {
        let name = name.split(' ').next().unwrap();
        // The guide abbreviates names with a common prefix.
        let is_named = |word: &&str| *word == name || word.starts_with('_') && name.ends_with(word);
        assert!(named.iter().any(is_named), "{name} is not in the guide");
    }
}

#[test]
fn serves_metrics_while_all_threads_are_busy() {
    let mut command = example("hello");
    let (program, address) =
        start_with_metrics(command.args(["--scheduler", "pool", "--workers", "1"]));
    // This connection occupies the only thread with an incomplete request.
    let mut busy = program.connect();
    busy.get("/hello");
    busy.send("GET /hello?name=a HT");
    let page = figures(address);
    assert_eq!(value(&page, "bine_connections_open"), "1");
    assert_eq!(Peer::tcp(address).get("/ready").text(), "ready\n");
}

#[test]
fn serves_only_metrics_and_health_at_their_address() {
    let (_program, address) = start_with_metrics(&mut example("hello"));
    let mut peer = Peer::tcp(address);
    assert_eq!(peer.get("/hello").status(), 404);
    assert_eq!(peer.get("/health").text(), "alive\n");
    peer.send("POST /metrics HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n");
    let reply = peer.reply();
    assert_eq!((reply.status(), reply.header("Allow")), (405, Some("GET, HEAD")));
    peer.send("HEAD /metrics HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
    assert!(!peer.rest().ends_with(b"# "));
}

#[test]
fn answers_health_checks_unless_a_page_has_the_path() {
    let program = Program::start(example("hello").args(["--listen", "127.0.0.1:0"]));
    let mut peer = program.connect();
    let reply = peer.get("/health");
    assert_eq!((reply.status(), reply.text()), (200, "alive\n"));
    assert_eq!(reply.header("Cache-Control"), Some("no-store"));
    assert_eq!(peer.get("/ready").text(), "ready\n");
    assert_eq!(peer.get("/metrics").status(), 404);
    let arguments = ["--listen", "127.0.0.1:0", "--health", "off"];
    let silent = Program::start(example("hello").args(arguments));
    assert_eq!(silent.connect().get("/health").status(), 404);
}

#[test]
fn stopping_program_is_not_ready_until_it_ends() {
    for scheduler in SCHEDULERS {
        let (program, address) =
            start_with_metrics(example("hello").args(["--scheduler", scheduler]));
        let mut peer = program.connect();
        peer.get("/hello?name=a");
        // An incomplete request delays the stop.
        peer.send("GET /hello?name=a HT");
        let mut watcher = Peer::tcp(address);
        program.signal(Signal::TERM);
        let patience = Instant::now() + PATIENCE;
        while watcher.get("/ready").status() == 200 {
            assert!(Instant::now() < patience, "{scheduler} stays ready");
        }
        let reply = watcher.get("/ready");
        assert_eq!((reply.status(), reply.text()), (503, "not ready: it stops\n"));
        assert_eq!(watcher.get("/health").text(), "alive\n", "{scheduler}");
        peer.send("TP/1.1\r\nHost: a\r\n\r\n");
        assert_eq!(peer.reply().status(), 200, "{scheduler}");
        assert_eq!(program.wait().code, Some(0), "{scheduler}");
    }
}

#[test]
fn logs_health_checks_only_if_configured() {
    for (wish, lines) in [("off", 1), ("on", 2)] {
        let folder = Folder::new();
        let log = folder.join("access.log");
        let mut command = example("hello");
        command.args(["--listen", "127.0.0.1:0", "--health-log", wish, "--access-log"]).arg(&log);
        let program = Program::start(&mut command);
        let mut peer = program.connect();
        peer.get("/health");
        peer.get("/hello?name=a");
        drop(peer);
        program.stop();
        assert_eq!(fs::read_to_string(&log).unwrap().lines().count(), lines, "{wish}");
    }
}

#[test]
fn rejects_invalid_metrics_address_with_hint() {
    let ended = Program::run(example("hello").args(["--metrics", "nowhere"]));
    assert_eq!(ended.code, Some(2));
    assert!(ended.errors.contains("--metrics nowhere: `nowhere` is not an address"), "{ended:?}");
}

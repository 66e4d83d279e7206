//! The metrics of a program, and their names.

use std::sync::{Arc, Weak};
use std::time::Duration;

use bine_admission as admission;
use bine_http::Status;
use bine_server::scheduler::ServiceMetrics;
use bine_server::tls::HandshakeMetrics;
use bine_server::{
    BOUNDS, BudgetMetrics, GuardMetrics, SchedulerMetrics, Server, ServerMetrics, process_metrics,
};

use crate::prometheus::{Family, PrometheusText};
use crate::store::Stats as StoreStats;
use crate::subsystem::Shared;

/// The sources of all metrics of a program.
pub(crate) struct Metrics {
    /// Weak references, so that a request during shutdown does not keep the program alive.
    server: Weak<Server>,
    shared: Weak<Shared>,
}

impl Metrics {
    pub(crate) fn new(server: &Arc<Server>, shared: &Arc<Shared>) -> Self {
        Self { server: Arc::downgrade(server), shared: Arc::downgrade(shared) }
    }

    /// The status and text for `/health` and `/ready`.
    pub(super) fn health(&self, path: &str) -> Option<(Status, String)> {
        let shared = self.shared.upgrade()?;
        shared.health.check(path, &shared.tables)
    }

    /// All metrics at this moment.
    pub(super) fn text(&self) -> String {
        let mut text = PrometheusText::default();
        let Some(shared) = self.shared.upgrade() else { return text.finish() };
        let version = env!("CARGO_PKG_VERSION");
        text.gauge("bine_build_info", "Always 1; the label is the version of Bine.")
            .with(&[("version", version)], 1);
        let is_ready = shared.health.reason(&shared.tables).is_none();
        text.gauge("bine_ready", "1 while new clients should be sent here, as /ready reports.")
            .is(u8::from(is_ready));
        if let Some(server) = self.server.upgrade() {
            write_server(&mut text, &server.metrics());
            write_admission(&mut text, &server.admission().metrics());
            write_guards(&mut text, &server.guards());
            write_budgets(&mut text, &server.budgets());
            write_handshakes(&mut text, &server.handshakes());
        }
        if let Some(store) = shared.tables.opened() {
            write_store(&mut text, &store.stats());
        }
        for running in &shared.running {
            running.write_metrics(&mut text);
        }
        write_process(&mut text);
        text.finish()
    }
}

fn write_store(text: &mut PrometheusText, figures: &StoreStats) {
    text.counter("bine_store_commits_total", "Commits.").is(figures.commits);
    text.counter(
        "bine_store_conflicts_total",
        "Commits that were retried or rejected after a conflict.",
    )
    .is(figures.conflicts);
    text.counter("bine_store_groups_total", "Groups of records written together.")
        .is(figures.groups);
    text.counter("bine_store_written_bytes_total", "Bytes of records written to the journal.")
        .is(figures.bytes);
    text.counter("bine_store_syncs_total", "Syncs of the journal.").is(figures.syncs);
    text.counter("bine_store_sync_seconds_total", "Total time of these syncs.")
        .is(figures.sync_time.as_secs_f64());
    text.gauge("bine_store_read_only", "1 while tables cannot be changed.")
        .is(u8::from(figures.is_read_only || figures.is_full));
    text.gauge("bine_store_full", "1 while the disk is full.").is(u8::from(figures.is_full));
}

// This function is long because it is a table: a name and a meaning for each metric.
fn write_server(text: &mut PrometheusText, figures: &ServerMetrics) {
    text.counter("bine_connections_accepted_total", "Accepted connections.").is(figures.accepted);
    text.gauge("bine_connections_open", "Open connections.").is(figures.open);
    text.gauge("bine_connections_most", "The limit on open connections.").is(figures.most);
    let mut refused = text.counter("bine_connections_refused_total", "Rejected connections.");
    for (reason, count) in figures.refused {
        refused.with(&[("reason", reason)], count);
    }
    let mut closed =
        text.counter("bine_connections_closed_total", "Closed connections, by reason.");
    for (reason, count) in figures.closed {
        closed.with(&[("reason", reason)], count);
    }
    text.counter(
        "bine_http2_floods_total",
        "Connections of HTTP/2 closed because of a flood of frames or resets.",
    )
    .is(figures.http2_floods);
    text.counter("bine_requests_total", "Requests with a valid head.").is(figures.requests);
    let mut replies = text.counter("bine_replies_total", "Responses by the class of their status.");
    for (class, count) in ["1xx", "2xx", "3xx", "4xx", "5xx"].iter().zip(figures.replies) {
        replies.with(&[("class", class)], count);
    }
    let mut marked = text.counter(
        "bine_replies_by_status_total",
        "Responses that indicate load: 408 slow client, 503 overload, 504 slow handler.",
    );
    for (status, count) in figures.marked {
        marked.with(&[("status", &status.to_string())], count);
    }
    text.counter("bine_received_bytes_total", "Bytes received in requests.").is(figures.received);
    text.counter("bine_sent_bytes_total", "Bytes sent in responses.").is(figures.sent);
    text.counter("bine_panics_total", "Handlers that panicked.").is(figures.panics);
    text.gauge(
        "bine_overdue_calls",
        "Blocking calls that still run although their request has been answered.",
    )
    .is(figures.overdue);
    let mut turns = text.counter("bine_loop_turns_total", "Turns of each event loop.");
    for each in &figures.loops {
        turns.with(&[("loop", &each.number.to_string())], each.turns);
    }
    let mut connections = text.gauge("bine_loop_connections", "Connections of each event loop.");
    for each in &figures.loops {
        connections.with(&[("loop", &each.number.to_string())], each.connections);
    }
    let mut work = text.counter("bine_loop_work_seconds_total", "Working time of each event loop.");
    for each in &figures.loops {
        if let Some(time) = each.work {
            work.with(&[("loop", &each.number.to_string())], time.as_secs_f64());
        }
    }
    text.counter("bine_loop_stalls_total", "Times that an event loop was stuck.")
        .is(figures.stalls);
    text.gauge("bine_loops_stuck", "Event loops that are stuck now.").is(figures.stuck);
    if let Some(scheduler) = &figures.scheduler {
        write_scheduler(text, scheduler);
    }
}

fn write_guards(text: &mut PrometheusText, figures: &GuardMetrics) {
    let mut pressure = text.gauge(
        "bine_guard_pressure",
        "0: enough; 1: connections of unknown clients close; 2: no connection is accepted.",
    );
    pressure.with(&[("of", "descriptors")], figures.descriptors as u8);
    pressure.with(&[("of", "memory")], figures.memory as u8);
    pressure.with(&[("of", "workers")], 2 * u8::from(figures.is_queue_over));
    text.counter("bine_guard_changes_total", "Changes of the pressure.").is(figures.changes);
    text.counter("bine_guard_closed_total", "Idle connections closed to free descriptors.")
        .is(figures.closed);
    let mut refused =
        text.counter("bine_guard_refused_total", "Clients rejected because memory was short.");
    refused.with(&[("who", "newcomer")], figures.newcomers);
    refused.with(&[("who", "stranger")], figures.strangers);
}

fn write_budgets(text: &mut PrometheusText, figures: &[BudgetMetrics]) {
    let mut held = text.gauge("bine_budget_held_bytes", "Bytes that all connections hold.");
    for each in figures {
        held.with(&[("of", each.of)], each.held);
    }
    let mut most = text.gauge("bine_budget_most_bytes", "The limit on these bytes.");
    for each in figures {
        most.with(&[("of", each.of)], each.most);
    }
    let mut refused = text.counter(
        "bine_budget_refused_total",
        "Rejected requests and truncated responses, because the budget or the share of their address was exhausted.",
    );
    for each in figures {
        for (reason, count) in each.refused {
            refused.with(&[("of", each.of), ("reason", reason)], count);
        }
    }
    let mut evicted = text.counter(
        "bine_budget_evicted_total",
        "Stalled requests and responses that were dropped to free bytes.",
    );
    for each in figures {
        evicted.with(&[("of", each.of)], each.evicted);
    }
}

fn write_handshakes(text: &mut PrometheusText, figures: &HandshakeMetrics) {
    text.gauge("bine_tls_handshakes", "TLS handshakes under way.").is(figures.under_way);
    text.gauge("bine_tls_handshakes_most", "The limit on concurrent TLS handshakes.")
        .is(figures.most);
    text.counter("bine_tls_handshakes_evicted_total", "TLS handshakes replaced by newer ones.")
        .is(figures.evicted);
    text.counter(
        "bine_tls_handshakes_refused_total",
        "Connections closed because their address started too many TLS handshakes.",
    )
    .is(figures.refused);
    text.gauge("bine_tls_handshakes_waiting", "TLS handshakes that wait for their turn.")
        .is(figures.waiting);
    text.counter(
        "bine_tls_handshakes_delayed_total",
        "TLS handshakes that have waited for their turn.",
    )
    .is(figures.delayed);
    let mut answered = text.counter("bine_tls_handshakes_total", "TLS handshakes answered.");
    answered.with(&[("kind", "full")], figures.full);
    answered.with(&[("kind", "resumed")], figures.resumed);
    text.counter(
        "bine_tls_offers_unused_total",
        "TLS handshakes that began early because of a ticket and did not resume its session.",
    )
    .is(figures.misled);
}

fn write_scheduler(text: &mut PrometheusText, figures: &SchedulerMetrics) {
    text.gauge("bine_scheduler_load", "Utilization of the threads that may block, 0 to 1.")
        .with(&[("scheduler", &figures.name)], figures.load);
    if let Some(waits) = figures.waits {
        let mut family =
            text.histogram("bine_queue_wait_seconds", "Time that requests waited for a worker.");
        let mut count = 0;
        for (class, bound) in waits.classes.iter().zip(BOUNDS) {
            count += class;
            let seconds = Duration::from_millis(bound).as_secs_f64();
            family.up_to(&seconds.to_string(), count);
        }
        family.total(waits.sum.as_secs_f64(), waits.classes.iter().sum());
    }
    if figures.services.is_empty() {
        return;
    }
    let tell = |mut family: Family<'_>, figure: fn(&ServiceMetrics) -> f64| {
        for service in &figures.services {
            family.with(&[("service", service.name)], figure(service));
        }
    };
    let limit = "The limit on concurrent runs of a service.";
    tell(text.gauge("bine_service_limit", limit), |service| service.limit as f64);
    let running = "Runs under way.";
    tell(text.gauge("bine_service_running", running), |service| service.running as f64);
    let waiting = "Requests waiting for a worker.";
    tell(text.gauge("bine_service_waiting", waiting), |service| service.waiting as f64);
    let time = "Smoothed time of a run.";
    tell(text.gauge("bine_service_run_seconds", time), |service| service.time.as_secs_f64());
    let begun = "Runs started.";
    tell(text.counter("bine_service_runs_total", begun), |service| service.begun as f64);
    let refused = "Requests that found no worker in time.";
    tell(text.counter("bine_service_refused_total", refused), |service| service.refused as f64);
}

fn write_admission(text: &mut PrometheusText, figures: &admission::AdmissionMetrics) {
    text.gauge("bine_admission_on", "1 unless admission is switched off.")
        .is(u8::from(figures.is_on));
    let mut states = text.gauge("bine_admission_state", "1 for the current state.");
    let all = [
        ("asleep", admission::State::Asleep),
        ("watching", admission::State::Watching),
        ("limiting", admission::State::Limiting),
    ];
    for (name, state) in all {
        states.with(&[("state", name)], u8::from(figures.state == state));
    }
    let unless_known = f64::NAN;
    text.gauge("bine_admission_session_limit", "The limit on active sessions; NaN: not known yet.")
        .is(figures.limit.map_or(unless_known, |limit| limit as f64));
    text.gauge("bine_admission_factor", "The factor of the limit; less than 1 after queues.")
        .is(figures.factor);
    text.gauge(
        "bine_admission_capacity_requests",
        "Requests per second that the server could serve.",
    )
    .is(figures.capacity.unwrap_or(unless_known));
    text.gauge("bine_admission_session_requests", "Requests per second of one session.")
        .is(figures.rate.unwrap_or(unless_known));
    text.gauge(
        "bine_admission_utilization",
        "The highest utilization among workers, loops, rendering threads and cores.",
    )
    .is(figures.utilization);
    text.gauge("bine_admission_sessions_active", "Active sessions.").is(figures.active);
    text.gauge("bine_admission_sessions_known", "Sessions that would be served if they returned.")
        .is(figures.known);
    text.gauge("bine_admission_think_seconds", "Smoothed time between two requests of a session.")
        .is(figures.think.as_secs_f64());
    text.gauge("bine_admission_running", "Requests that workers are running.").is(figures.running);
    text.counter("bine_admission_done_total", "Requests completed while sessions were counted.")
        .is(figures.done);
    text.counter("bine_admission_admitted_total", "Admitted sessions.").is(figures.admitted);
    text.counter("bine_admission_served_total", "Requests of admitted sessions.")
        .is(figures.served);
    text.counter("bine_admission_refused_total", "Rejected requests, by their ticket.")
        .with(&[("shown", "nothing")], figures.refused.strangers)
        .with(&[("shown", "foreign")], figures.refused.foreign)
        .with(&[("shown", "old")], figures.refused.old);
    let mut ended = text.counter(
        "bine_admission_sessions_ended_total",
        "Ended sessions, by their number of requests.",
    );
    for (most, count) in admission::CLASSES.iter().zip(figures.ended) {
        let most = if *most == u32::MAX { "+Inf".to_owned() } else { most.to_string() };
        ended.with(&[("requests", &most)], count);
    }
}

/// Writes process metrics under the names that all Prometheus clients use.
fn write_process(text: &mut PrometheusText) {
    let figures = process_metrics();
    text.counter("process_cpu_seconds_total", "Time on CPUs, user and system.")
        .is(figures.cpu.as_secs_f64());
    let gauges = [
        ("process_resident_memory_bytes", "Memory in use.", figures.resident),
        ("process_virtual_memory_bytes", "Address space.", figures.virtual_size),
        ("process_open_fds", "Open descriptors.", figures.descriptors),
        ("process_max_fds", "The limit on open descriptors.", figures.most_descriptors),
        ("process_threads", "Threads.", figures.threads),
    ];
    for (name, help, value) in gauges {
        if let Some(value) = value {
            text.gauge(name, help).is(value);
        }
    }
    if let Some(started) = figures.started {
        text.gauge("process_start_time_seconds", "Start time, in seconds since 1970.").is(started);
    }
}

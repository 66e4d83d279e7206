//! Decides which figures a program tells, and by what names.

use std::sync::{Arc, Weak};
use std::time::Duration;

use bine_admission as admission;
use bine_http::Status;
use bine_server::scheduler::ServiceMetrics;
use bine_server::tls::HandshakeMetrics;
use bine_server::{
    BOUNDS, BudgetMetrics, GuardMetrics, SchedulerMetrics, Server, ServerMetrics, process_metrics,
};

use super::text::{Family, Text};
use crate::program::Pages;

/// Everything that can be told of a program.
pub(crate) struct Metrics {
    /// Weakly, or whoever reads at the end would keep it.
    server: Weak<Server>,
    pages: Arc<Pages>,
}

impl Metrics {
    pub(crate) fn new(server: &Arc<Server>, pages: &Arc<Pages>) -> Self {
        Self { server: Arc::downgrade(server), pages: Arc::clone(pages) }
    }

    /// Status and words for `/health` and `/ready`.
    pub(super) fn health(&self, path: &str) -> Option<(Status, String)> {
        self.pages.health().told(path, self.pages.tables())
    }

    /// All figures at this moment.
    pub(super) fn text(&self) -> String {
        let mut text = Text::default();
        let version = env!("CARGO_PKG_VERSION");
        text.gauge("bine_build_info", "Always 1; its label tells the version of Bine.")
            .with(&[("version", version)], 1);
        let is_ready = self.pages.health().reason(self.pages.tables()).is_none();
        text.gauge("bine_ready", "1 while newcomers should be sent here, as /ready says.")
            .is(u8::from(is_ready));
        if let Some(server) = self.server.upgrade() {
            tell_server(&mut text, &server.metrics());
            tell_admission(&mut text, &server.admission().metrics());
            tell_guards(&mut text, &server.guards());
            tell_budgets(&mut text, &server.budgets());
            tell_handshakes(&mut text, &server.handshakes());
        }
        self.tell_kept(&mut text);
        self.tell_live(&mut text);
        tell_process(&mut text);
        text.finish()
    }

    /// Tables, sessions and channels, as far as the program has them.
    fn tell_kept(&self, text: &mut Text) {
        if let Some(store) = self.pages.tables().opened() {
            let told = store.stats();
            text.counter("bine_store_commits_total", "Changes of tables that were made.")
                .is(told.commits);
            text.counter(
                "bine_store_conflicts_total",
                "Changes that were begun again, or refused, because others came first.",
            )
            .is(told.conflicts);
            text.counter(
                "bine_store_groups_total",
                "Groups of records that were written together.",
            )
            .is(told.groups);
            text.counter("bine_store_written_bytes_total", "Bytes of records in the journal.")
                .is(told.bytes);
            text.counter("bine_store_syncs_total", "How often the journal was made durable.")
                .is(told.syncs);
            text.counter("bine_store_sync_seconds_total", "How long that took in all.")
                .is(told.sync_time.as_secs_f64());
            text.gauge("bine_store_read_only", "1 while tables cannot be changed.")
                .is(u8::from(told.is_read_only || told.is_full));
            text.gauge("bine_store_full", "1 while the disk has no room for changes of tables.")
                .is(u8::from(told.is_full));
        }
        if let Some(sessions) = self.pages.sessions() {
            text.gauge("bine_sessions", "Sessions of visitors of which something is kept.")
                .is(sessions);
        }
        if let Some(told) = self.pages.channels() {
            text.gauge("bine_channels", "Channels there are.").is(told.channels);
            text.gauge("bine_channels_retained_bytes", "Bytes of messages that are retained.")
                .is(told.bytes);
            text.counter("bine_channels_messages_total", "Messages that were published.")
                .is(told.messages);
            text.gauge("bine_channels_holds", "Polls, streams and WebSockets that wait.")
                .is(told.holds);
        }
    }

    fn tell_live(&self, text: &mut Text) {
        let told = self.pages.live().figures();
        text.gauge("bine_live_viewers", "Browsers that follow a live page.").is(told.viewers);
        text.gauge("bine_live_showings", "Live pages, each once for all who see the same.")
            .is(told.showings);
        text.gauge(
            "bine_live_waiting",
            "Browsers that wait until a live page is rendered for them.",
        )
        .is(told.waiting);
        text.gauge(
            "bine_live_busy_threads",
            "Threads that run a live page, of those that render for single browsers.",
        )
        .is(told.busy_threads);
        text.counter(
            "bine_live_refused_total",
            "Browsers that were told to come again, because too many waited for a live page.",
        )
        .is(told.refused);
        text.counter("bine_live_runs_total", "How often a live page was made again.").is(told.runs);
        text.counter("bine_live_patches_total", "Patches and events, however many have got each.")
            .is(told.patches);
    }
}

// Long because it is a table: a name and a meaning for each figure.
fn tell_server(text: &mut Text, told: &ServerMetrics) {
    text.counter("bine_connections_accepted_total", "Connections that were taken in.")
        .is(told.accepted);
    text.gauge("bine_connections_open", "Connections there are.").is(told.open);
    text.gauge("bine_connections_most", "Connections there may be.").is(told.most);
    let mut refused =
        text.counter("bine_connections_refused_total", "Connections that were turned away.");
    for (reason, count) in told.refused {
        refused.with(&[("reason", reason)], count);
    }
    let mut closed = text.counter("bine_connections_closed_total", "Connections that have ended.");
    for (reason, count) in told.closed {
        closed.with(&[("reason", reason)], count);
    }
    text.counter("bine_requests_total", "Requests whose heads were understood.").is(told.requests);
    let mut replies = text.counter("bine_replies_total", "Replies by the class of their status.");
    for (class, count) in ["1xx", "2xx", "3xx", "4xx", "5xx"].iter().zip(told.replies) {
        replies.with(&[("class", class)], count);
    }
    let mut marked = text.counter(
        "bine_replies_by_status_total",
        "Replies that tell how the load is borne: 408 too slow a peer, 503 no place, 504 too slow a page.",
    );
    for (status, count) in told.marked {
        marked.with(&[("status", &status.to_string())], count);
    }
    text.counter("bine_received_bytes_total", "Bytes of requests.").is(told.received);
    text.counter("bine_sent_bytes_total", "Bytes of replies.").is(told.sent);
    text.counter("bine_panics_total", "Handlers that panicked.").is(told.panics);
    text.gauge("bine_overdue_calls", "Calls that block and that nobody waits for any more.")
        .is(told.overdue);
    let mut turns = text.counter("bine_loop_turns_total", "Turns of each event loop.");
    for each in &told.loops {
        turns.with(&[("loop", &each.number.to_string())], each.turns);
    }
    let mut connections = text.gauge("bine_loop_connections", "Connections of each event loop.");
    for each in &told.loops {
        connections.with(&[("loop", &each.number.to_string())], each.connections);
    }
    let mut work =
        text.counter("bine_loop_work_seconds_total", "How long each event loop was at work.");
    for each in &told.loops {
        if let Some(time) = each.work {
            work.with(&[("loop", &each.number.to_string())], time.as_secs_f64());
        }
    }
    text.counter("bine_loop_stalls_total", "Times that an event loop was found stuck.")
        .is(told.stalls);
    text.gauge("bine_loops_stuck", "Event loops that are stuck in one turn.").is(told.stuck);
    if let Some(scheduler) = &told.scheduler {
        tell_scheduler(text, scheduler);
    }
}

fn tell_guards(text: &mut Text, told: &GuardMetrics) {
    let mut pressure = text.gauge(
        "bine_guard_pressure",
        "0 while there is enough, 1 while strangers make room, 2 while nobody comes in.",
    );
    pressure.with(&[("of", "descriptors")], told.descriptors as u8);
    pressure.with(&[("of", "memory")], told.memory as u8);
    pressure.with(&[("of", "workers")], 2 * u8::from(told.is_queue_over));
    text.counter("bine_guard_changes_total", "How often one of these has changed.")
        .is(told.changes);
    text.counter(
        "bine_guard_closed_total",
        "Idle connections that were closed for want of descriptors.",
    )
    .is(told.closed);
    let mut refused =
        text.counter("bine_guard_refused_total", "Who was refused for want of memory.");
    refused.with(&[("who", "newcomer")], told.newcomers);
    refused.with(&[("who", "stranger")], told.strangers);
}

fn tell_budgets(text: &mut Text, told: &[BudgetMetrics]) {
    let mut held = text.gauge("bine_budget_held_bytes", "What all connections hold together.");
    for each in told {
        held.with(&[("of", each.of)], each.held);
    }
    let mut most = text.gauge("bine_budget_most_bytes", "What they may hold together.");
    for each in told {
        most.with(&[("of", each.of)], each.most);
    }
    let mut refused = text.counter(
        "bine_budget_refused_total",
        "Requests refused, and replies cut, because the budget or the share of their address was spent.",
    );
    for each in told {
        for (reason, count) in each.refused {
            refused.with(&[("of", each.of), ("reason", reason)], count);
        }
    }
    let mut evicted = text.counter(
        "bine_budget_evicted_total",
        "Requests and replies that were dropped because they had stalled while others needed the bytes.",
    );
    for each in told {
        evicted.with(&[("of", each.of)], each.evicted);
    }
}

fn tell_handshakes(text: &mut Text, told: &HandshakeMetrics) {
    text.gauge("bine_tls_handshakes", "TLS handshakes under way.").is(told.under_way);
    text.gauge("bine_tls_handshakes_most", "TLS handshakes that may be under way.").is(told.most);
    text.counter(
        "bine_tls_handshakes_evicted_total",
        "TLS handshakes that were dropped because newer ones needed their place.",
    )
    .is(told.evicted);
    text.counter(
        "bine_tls_handshakes_refused_total",
        "Connections that were closed because their address began too many TLS handshakes.",
    )
    .is(told.refused);
}

fn tell_scheduler(text: &mut Text, told: &SchedulerMetrics) {
    text.gauge("bine_scheduler_load", "How busy the threads are that may block, 0 to 1.")
        .with(&[("scheduler", &told.name)], told.load);
    if let Some(waits) = told.waits {
        let mut family =
            text.histogram("bine_queue_wait_seconds", "How long requests waited for a worker.");
        let mut count = 0;
        for (class, bound) in waits.classes.iter().zip(BOUNDS) {
            count += class;
            let seconds = Duration::from_millis(bound).as_secs_f64();
            family.up_to(&seconds.to_string(), count);
        }
        family.in_all(waits.sum.as_secs_f64(), waits.classes.iter().sum());
    }
    if told.services.is_empty() {
        return;
    }
    let tell = |mut family: Family<'_>, figure: fn(&ServiceMetrics) -> f64| {
        for service in &told.services {
            family.with(&[("service", service.name)], figure(service));
        }
    };
    let limit = "Runs that a service may have under way at one time.";
    tell(text.gauge("bine_service_limit", limit), |service| service.limit as f64);
    let running = "Runs under way.";
    tell(text.gauge("bine_service_running", running), |service| service.running as f64);
    let waiting = "Requests that wait for a worker.";
    tell(text.gauge("bine_service_waiting", waiting), |service| service.waiting as f64);
    let time = "What a run takes at present, smoothed.";
    tell(text.gauge("bine_service_run_seconds", time), |service| service.time.as_secs_f64());
    let begun = "Runs that were begun.";
    tell(text.counter("bine_service_runs_total", begun), |service| service.begun as f64);
    let refused = "Requests that found no worker in time.";
    tell(text.counter("bine_service_refused_total", refused), |service| service.refused as f64);
}

fn tell_admission(text: &mut Text, told: &admission::AdmissionMetrics) {
    text.gauge("bine_admission_on", "1 unless admission is switched off.").is(u8::from(told.is_on));
    let mut states = text.gauge("bine_admission_state", "1 at the state it is in.");
    let all = [
        ("asleep", admission::State::Asleep),
        ("watching", admission::State::Watching),
        ("limiting", admission::State::Limiting),
    ];
    for (name, state) in all {
        states.with(&[("state", name)], u8::from(told.state == state));
    }
    let unless_known = f64::NAN;
    text.gauge(
        "bine_admission_session_limit",
        "Sessions that may be under way; NaN: not known yet.",
    )
    .is(told.limit.map_or(unless_known, |limit| limit as f64));
    text.gauge(
        "bine_admission_factor",
        "By what the limit is multiplied, after queues less than 1.",
    )
    .is(told.factor);
    text.gauge("bine_admission_capacity_requests", "Requests a second that could be done.")
        .is(told.capacity.unwrap_or(unless_known));
    text.gauge("bine_admission_session_requests", "Requests a second that a session asks for.")
        .is(told.rate.unwrap_or(unless_known));
    text.gauge(
        "bine_admission_utilization",
        "The largest share in use of workers, loops, threads that render and cores.",
    )
    .is(told.utilization);
    text.gauge("bine_admission_sessions_active", "Sessions under way.").is(told.active);
    text.gauge(
        "bine_admission_sessions_known",
        "Sessions that would be served if they came again.",
    )
    .is(told.known);
    text.gauge("bine_admission_think_seconds", "Between two requests of a session, smoothed.")
        .is(told.think.as_secs_f64());
    text.gauge("bine_admission_running", "Requests that workers are at.").is(told.running);
    text.counter(
        "bine_admission_done_total",
        "Requests that were done while sessions were counted.",
    )
    .is(told.done);
    text.counter("bine_admission_admitted_total", "Sessions that were admitted.").is(told.admitted);
    text.counter("bine_admission_served_total", "Requests of sessions that were let pass.")
        .is(told.served);
    text.counter("bine_admission_refused_total", "Requests that were not, by what they had shown.")
        .with(&[("shown", "nothing")], told.refused.strangers)
        .with(&[("shown", "foreign")], told.refused.foreign)
        .with(&[("shown", "old")], told.refused.old);
    let mut ended = text.counter(
        "bine_admission_sessions_ended_total",
        "Sessions that have ended, by the most requests of their class.",
    );
    for (most, count) in admission::CLASSES.iter().zip(told.ended) {
        let most = if *most == u32::MAX { "+Inf".to_owned() } else { most.to_string() };
        ended.with(&[("requests", &most)], count);
    }
}

/// By the names that every program uses for these.
fn tell_process(text: &mut Text) {
    let told = process_metrics();
    text.counter("process_cpu_seconds_total", "Time on CPUs, user and system.")
        .is(told.cpu.as_secs_f64());
    let gauges = [
        ("process_resident_memory_bytes", "Memory in use.", told.resident),
        ("process_virtual_memory_bytes", "Address space.", told.virtual_size),
        ("process_open_fds", "Open descriptors.", told.descriptors),
        ("process_max_fds", "Descriptors that may be open.", told.most_descriptors),
        ("process_threads", "Threads.", told.threads),
    ];
    for (name, help, value) in gauges {
        if let Some(value) = value {
            text.gauge(name, help).is(value);
        }
    }
    if let Some(started) = told.started {
        text.gauge("process_start_time_seconds", "When it was started, since 1970.").is(started);
    }
}

//! Tests of load shedding: which requests an overloaded server serves and which it rejects.

use std::io;
use std::sync::Arc;
use std::sync::mpsc::{Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

use bine_admission::State;
use bine_log::test_support::is_alone;
use bine_server::scheduler::{Next, Placement, ResponseKind, Scheduler, Task, serve_loops};
use bine_server::{Guards, Pressure, Server, Settings};

use crate::PATIENCE;
use crate::house::{House, LOOPS, SCHEDULERS, settings};
use crate::peer::{Peer, get};

#[test]
fn leaves_a_worker_to_other_services_when_one_hangs() {
    let mut settings = Settings { workers: 3, ..settings("hybrid") };
    settings.timeouts.queue = Duration::from_mins(1);
    let house = House::with(settings);
    let mut other = house.connect();
    assert_eq!(other.ask("/stream-work/5"), "200 begun");
    let mut hanging: Vec<Peer> = (0..3).map(|_| house.connect()).collect();
    for peer in &mut hanging {
        peer.send(get("/block/gate"));
    }
    house.program.gate("gate").await_arrivals(2);
    for _ in 0..10 {
        assert_eq!(other.ask("/stream-work/5"), "200 begun");
    }
    assert_eq!(house.program.gate("gate").arrivals(), 2);
    house.program.gate("gate").open();
    for peer in &mut hanging {
        assert_eq!(peer.reply().to_string(), "200 work");
    }
}

#[test]
fn rejects_new_sessions_under_overload_and_serves_existing_ones() {
    let mut settings = Settings { workers: 1, queue: 0, ..settings("hybrid") };
    settings.admission.is_on = false;
    let house = House::with(settings);
    let (mut inside, mut first) = (house.connect(), house.connect());
    assert_eq!(inside.ask("/"), "200 hello");
    first.send(get("/block/gate"));
    house.program.gate("gate").await_arrivals(1);
    let mut second = house.connect();
    second.send(get("/work"));
    assert_eq!(second.reply().to_string(), "503 close");
    let mut newcomer = house.connect();
    newcomer.send(get("/say/in"));
    assert_eq!(inside.ask("/sleep/250"), "200 later");
    assert_eq!(house.program.said(), ["slept"]);
    assert!(house.server.guards().is_queue_over);
    house.program.gate("gate").open();
    assert_eq!(first.reply().to_string(), "200 work");
    assert_eq!(newcomer.reply().to_string(), "200 in");
    let metrics = house.server.guards();
    assert_eq!((metrics.is_queue_over, metrics.changes), (false, 2));
}

/// Admission decides by the session of a request, so the loop must accept the connection first.
#[test]
fn accepts_connections_under_overload_with_admission_or_without_back_pressure() {
    for is_admission_on in [true, false] {
        let mut settings = Settings { workers: 1, queue: 0, ..settings("hybrid") };
        settings.admission.is_on = is_admission_on;
        settings.guards.back_pressure = is_admission_on;
        let house = House::with(settings);
        let mut first = house.connect();
        first.send(get("/block/gate"));
        house.program.gate("gate").await_arrivals(1);
        let mut second = house.connect();
        second.send(get("/work"));
        assert_eq!(second.reply().status, 503);
        assert_eq!(house.connect().ask("/say/in"), "200 in", "{is_admission_on}");
        assert_eq!(house.server.guards().changes, 0, "{is_admission_on}");
        house.program.gate("gate").open();
        assert_eq!(first.reply().to_string(), "200 work");
    }
}

#[test]
fn serves_only_known_sessions_when_memory_is_short() {
    for scheduler in LOOPS {
        without_memory(scheduler);
    }
}

fn without_memory(scheduler: &str) {
    let house = House::open(scheduler);
    let mut stranger = house.connect();
    let mut known = house.connect();
    for peer in [&mut stranger, &mut known] {
        assert_eq!(peer.ask("/work"), "200 work");
    }
    let guards = Guards { memory: Some(1), memory_pauses: None, ..Guards::default() };
    house.replace(Settings { guards, ..settings(scheduler) });
    // The guards check once a second, when a connection arrives.
    let began = Instant::now();
    let mut refused = loop {
        let mut newcomer = house.connect();
        newcomer.send(get("/"));
        match newcomer.reply().status {
            503 => break newcomer,
            status => assert_eq!(status, 200),
        }
        assert!(began.elapsed() < PATIENCE, "nobody is refused");
    };
    refused.expect_closed();
    known.send("GET /work HTTP/1.1\r\nHost: a\r\nName: ann\r\n\r\n");
    assert_eq!(known.reply().to_string(), "200 work");
    // Requests that need almost no memory are open to all clients.
    assert_eq!(stranger.ask("/"), "200 hello");
    stranger.send(get("/work"));
    assert_eq!(stranger.reply().to_string(), "503 close", "{scheduler}");
    let metrics = house.server.guards();
    assert_eq!((metrics.memory, metrics.strangers), (Pressure::Tight, 1));
}

/// In a process of its own: a pool does not grow while its process uses all cores, as other tests may.
#[test]
fn adds_workers_up_to_a_limit_while_others_wait() {
    if !is_alone("overload::adds_workers_up_to_a_limit_while_others_wait") {
        return;
    }
    let mut settings = Settings { workers: 1, most_workers: 3, ..settings("hybrid") };
    settings.timeouts.queue = Duration::from_mins(1);
    let house = House::with(settings);
    let (gate, began) = (house.program.gate("gate"), Instant::now());
    let (mut clock, mut waiting) = (house.connect(), Vec::new());
    while gate.arrivals() < 3 {
        let mut peer = house.connect();
        peer.send(get("/block/gate"));
        waiting.push(peer);
        // The pool checks its size at intervals, when a request arrives.
        assert_eq!(clock.ask("/sleep/60"), "200 later");
        assert!(began.elapsed() < PATIENCE, "{} are at work", gate.arrivals());
    }
    let mut more = house.connect();
    more.send(get("/block/gate"));
    assert_eq!(clock.ask("/sleep/60"), "200 later");
    assert_eq!(gate.arrivals(), 3);
    gate.open();
    for peer in waiting.iter_mut().chain([&mut more]) {
        assert_eq!(peer.reply().to_string(), "200 work");
    }
}

/// A connection that waits for a thread has sent no request yet, and the thread may belong to an
/// idle connection. The waiting time therefore does not measure load.
#[test]
fn ignores_thread_waits_in_admission_with_a_thread_per_connection() {
    for scheduler in SCHEDULERS.into_iter().filter(|name| !LOOPS.contains(name)) {
        let mut settings = Settings { workers: 1, ..settings(scheduler) };
        settings.timeouts.queue = Duration::from_mins(1);
        // Every wait is too long.
        settings.admission.wait = Duration::ZERO;
        let house = House::with(settings);
        let gate = house.program.gate("gate");
        let mut busy = house.connect();
        busy.send(get("/block/gate"));
        gate.await_arrivals(1);
        let mut waiting: Vec<Peer> = (0..20).map(|_| house.connect()).collect();
        for peer in &mut waiting {
            peer.send(get("/work"));
        }
        gate.open();
        assert_eq!(busy.reply().to_string(), "200 work", "{scheduler}");
        for peer in &mut waiting {
            assert_eq!(peer.reply().to_string(), "200 work", "{scheduler}");
        }
        let metrics = house.server.admission().metrics();
        assert_eq!((metrics.is_on, metrics.state), (true, State::Asleep), "{scheduler}");
    }
}

/// A custom scheduler with one thread, which runs the tasks that may block.
struct Own(Sender<Task>);

impl Scheduler for Own {
    fn accept(self: Arc<Self>, server: &Arc<Server>) -> io::Result<()> {
        serve_loops(server, &(self as Arc<dyn Scheduler>))
    }

    fn stage(&self, next: Next) -> Placement {
        if next == Next::Response(ResponseKind::Dynamic) {
            Placement::Spawn
        } else {
            Placement::SameThread
        }
    }

    fn spawn(&self, task: Task) -> Result<(), Task> {
        self.0.send(task).map_err(|back| back.0)
    }

    fn load(&self) -> f32 {
        0.0
    }
}

/// Symptom: admission accepted only the minimum number of sessions while new ones kept arriving.
/// Cause: a custom scheduler did not report the tasks that it ran, while loops reported their
/// turns. Once turns were late, no work seemed to complete.
#[test]
fn counts_tasks_of_a_custom_scheduler_as_completed() {
    let (sender, tasks) = channel();
    thread::spawn(move || tasks.into_iter().for_each(Task::run));
    let mut settings = settings("hybrid");
    settings.timeouts.queue = Duration::from_mins(1);
    // Every wait is too long.
    settings.admission.wait = Duration::ZERO;
    let house = House::on(Arc::new(Own(sender)), settings);
    let gate = house.program.gate("gate");
    let mut waiting: Vec<Peer> = (0..20).map(|_| house.connect()).collect();
    for peer in &mut waiting {
        peer.send(get("/block/gate"));
    }
    gate.await_arrivals(1);
    gate.open();
    for peer in &mut waiting {
        assert_eq!(peer.reply().to_string(), "200 work");
    }
    // Eight consecutive tasks have waited.
    assert_ne!(house.server.admission().metrics().state, State::Asleep);
    let began = Instant::now();
    while house.server.admission().metrics().capacity.is_none_or(|capacity| capacity == 0.0) {
        assert!(began.elapsed() < PATIENCE, "nothing was done");
        assert_eq!(waiting[0].ask("/work"), "200 work");
    }
}

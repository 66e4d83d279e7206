//! Measures the transport with a running NATS server: latency, throughput, detection of an outage.
//!
//! `nats-server --jetstream`, then `cargo run --release -p bine-cluster --example measure_cluster --
//! nats://127.0.0.1:4222`.

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex};
use std::time::{Duration, Instant};

use async_nats::jetstream;
use bine_cluster::{Cluster, Link, Options, Outgoing, Replica};
use bytes::Bytes;

/// The bytes of a message.
const LENGTH: usize = 300;
/// The messages of the latency measurement, one at a time.
const SINGLE: usize = 5_000;
/// The messages of the throughput measurement.
const MANY: u64 = 100_000;
/// The longest wait for a message.
const DEADLINE: Duration = Duration::from_mins(1);

/// A replica that only counts.
#[derive(Default)]
struct Counter {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    unconfirmed: VecDeque<Outgoing>,
    queued: u64,
    delivered: u64,
    is_connected: bool,
}

impl Counter {
    fn queue(&self, count: u64) {
        let mut state = self.state.lock().expect("no panic");
        for _ in 0..count {
            state.queued += 1;
            let number = state.queued;
            let mut bytes = vec![b'x'; LENGTH];
            bytes[..8].copy_from_slice(&number.to_le_bytes());
            state.unconfirmed.push_back(Outgoing { number, bytes: bytes.into() });
        }
    }

    fn wait(&self, is_met: impl Fn(&State) -> bool) {
        let state = self.state.lock().expect("no panic");
        let waiting = self.changed.wait_timeout_while(state, DEADLINE, |state| !is_met(state));
        assert!(!waiting.expect("no panic").1.timed_out(), "a message is late");
    }
}

impl Replica for Counter {
    fn unconfirmed_after(&self, number: u64) -> Option<Outgoing> {
        let state = self.state.lock().expect("no panic");
        let first = state.unconfirmed.front()?.number;
        state.unconfirmed.get((first.max(number + 1) - first) as usize).cloned()
    }

    fn deliver(&self, _: u64, message: &[u8]) -> Result<(), String> {
        let number = message.first_chunk().map(|bytes| u64::from_le_bytes(*bytes));
        let mut state = self.state.lock().expect("no panic");
        if number == state.unconfirmed.front().map(|outgoing| outgoing.number) {
            state.unconfirmed.pop_front();
            state.delivered += 1;
            self.changed.notify_one();
        }
        Ok(())
    }

    fn use_link(&self, link: &Link) {
        self.state.lock().expect("no panic").is_connected = *link == Link::Connected;
        self.changed.notify_one();
    }
}

fn main() {
    let url = std::env::args().nth(1).unwrap_or_else(|| "nats://127.0.0.1:4222".to_owned());
    let replicas = std::env::args().nth(2).map_or(1, |text| text.parse().expect("a number"));
    measure_acknowledgments(&url, replicas);
    let options =
        Options { name: "measure".to_owned(), replicas, ..Options::new(url.clone(), "a") };
    let cluster = Cluster::connect(options).unwrap_or_else(|error| panic!("{error}"));
    let counter = Arc::new(Counter::default());
    cluster.follow(Arc::clone(&counter) as Arc<dyn Replica>, 0).expect("it is the first time");
    counter.wait(|state| state.is_connected);
    let mut times = Vec::with_capacity(SINGLE);
    for done in 1..=SINGLE as u64 {
        let begun = Instant::now();
        counter.queue(1);
        cluster.notify();
        counter.wait(|state| state.delivered >= done);
        times.push(begun.elapsed());
    }
    report("publish to deliver", &mut times);
    let begun = Instant::now();
    counter.queue(MANY);
    cluster.notify();
    counter.wait(|state| state.delivered >= MANY + SINGLE as u64);
    report_rate("publish to deliver, 64 in flight", MANY, begun);
    let begun = Instant::now();
    let blocks = (0..800_u32).map(|index| vec![index as u8; 250_000]);
    let summary = cluster.write_snapshot(cluster.position(), blocks).expect("it is stored");
    println!("snapshot of {} MB written in {:?}", summary.bytes / 1_000_000, begun.elapsed());
    let begun = Instant::now();
    let snapshot = cluster.newest_snapshot().expect("it is listed").expect("it exists");
    let bytes: usize = snapshot.map(|block| block.expect("it is whole").len()).sum();
    println!("snapshot of {} MB read in {:?}", bytes / 1_000_000, begun.elapsed());
    if let Ok(status) = std::fs::read_to_string("/proc/self/status") {
        let peak = status.lines().find(|line| line.starts_with("VmHWM")).unwrap_or_default();
        println!("peak of memory, with {MANY} queued messages: {peak}");
    }
    cluster.leave();
}

/// Measures the same publishes with nothing but the client library.
fn measure_acknowledgments(url: &str, replicas: usize) {
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime.block_on(async {
        let client = async_nats::connect(url).await.expect("a server answers");
        let context = jetstream::new(client);
        let config = jetstream::stream::Config {
            name: "bare".to_owned(),
            subjects: vec!["bare.log".to_owned()],
            num_replicas: replicas,
            ..jetstream::stream::Config::default()
        };
        context.get_or_create_stream(config).await.expect("a stream");
        let payload = Bytes::from(vec![b'x'; LENGTH]);
        let mut times = Vec::with_capacity(SINGLE);
        for _ in 0..SINGLE {
            let begun = Instant::now();
            let publish = context.publish("bare.log", payload.clone()).await;
            publish.expect("it is sent").await.expect("it is acknowledged");
            times.push(begun.elapsed());
        }
        report("bare publish to acknowledgment", &mut times);
        let begun = Instant::now();
        let mut in_flight = VecDeque::new();
        for _ in 0..MANY {
            if in_flight.len() == 64 {
                let oldest: jetstream::context::PublishAckFuture =
                    in_flight.pop_front().expect("it is full");
                oldest.await.expect("it is acknowledged");
            }
            let publish = context.publish("bare.log", payload.clone()).await;
            in_flight.push_back(publish.expect("it is sent"));
        }
        for publish in in_flight {
            publish.await.expect("it is acknowledged");
        }
        report_rate("bare publish to acknowledgment, 64 in flight", MANY, begun);
    });
}

fn report(what: &str, times: &mut [Duration]) {
    times.sort_unstable();
    let at = |percent: usize| times[times.len() * percent / 100];
    println!("{what}: p50 {:?}, p99 {:?}", at(50), at(99));
}

fn report_rate(what: &str, count: u64, begun: Instant) {
    let rate = count as f64 / begun.elapsed().as_secs_f64();
    println!("{what}: {rate:.0} messages/s");
}

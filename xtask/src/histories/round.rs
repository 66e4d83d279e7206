//! A round: some histories at a time on the same servers, while faults happen.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail, ensure};
use serde_json::Value;

use super::client::{Client, seen_in};
use super::faults::{Counts, Fault, Injector};
use super::history::{Delivered, FinalState, History, Log};
use super::http::{Connection, Request, Response};
use super::pause::pause;
use super::random::Random;
use super::subscriber::{Ending, Subscriber, VIEWS, messages_in};
use super::world::{Engine, World};

/// The parameters of a round.
pub(super) struct Plan {
    /// The seed of the first history; the next ones follow.
    pub(super) seed: u64,
    /// Histories at a time.
    pub(super) count: u64,
    pub(super) engine: Engine,
    pub(super) faults: Vec<Fault>,
    /// The start of the run.
    pub(super) start: Instant,
}

/// The histories of a round, and what happened meanwhile.
pub(super) struct Finished {
    pub(super) histories: Vec<History>,
    pub(super) counts: Counts,
    pub(super) timeline: Vec<String>,
}

/// Milliseconds that the clients of a round perform operations.
const DURATION: (u64, u64) = (4_000, 8_000);
/// Clients of a history.
const CLIENTS: (u64, u64) = (2, 3);
/// Subscribers of a history.
const SUBSCRIBERS: u64 = 2;
/// The nodes must have the same state within this time after all faults, and the subscribers all
/// messages.
const SETTLE_TIMEOUT: Duration = Duration::from_secs(30);
const READ_TIMEOUT: Duration = Duration::from_secs(10);
const RETRY_INTERVAL: Duration = Duration::from_millis(100);
/// Messages of one response.
const LIMIT: usize = 1_000;

impl Plan {
    /// Runs the histories.
    pub(super) fn run(&self, world: &mut World) -> Result<Finished> {
        let nodes = world.addresses();
        let names: Vec<String> =
            (self.seed..self.seed + self.count).map(|seed| format!("h{seed}")).collect();
        for name in &names {
            create_channel(nodes[0], name)?;
        }
        let mut random = Random::of(self.seed, u64::MAX);
        let duration = Duration::from_millis(random.between(DURATION.0, DURATION.1));
        let is_over = AtomicBool::new(false);
        let endings: Vec<Ending> = names.iter().map(|_| Ending::default()).collect();
        thread::scope(|scope| {
            let (mut clients, mut subscribers) = (Vec::new(), Vec::new());
            for ((name, seed), ending) in names.iter().zip(self.seed..).zip(&endings) {
                let (clients_here, subscribers_here) = self.participants(name, seed, &nodes);
                for client in clients_here {
                    let is_over = &is_over;
                    clients.push((seed, scope.spawn(move || client.run(is_over))));
                }
                for subscriber in subscribers_here {
                    subscribers.push((seed, scope.spawn(move || subscriber.run(ending))));
                }
            }
            let mut injector = Injector {
                world,
                random,
                faults: self.faults.clone(),
                start: self.start,
                counts: Counts::new(),
                timeline: Vec::new(),
            };
            let injected = injector.run(Instant::now() + duration);
            // The clients continue until the last fault has ended.
            is_over.store(true, Ordering::Relaxed);
            let (counts, timeline) = (injector.counts, injector.timeline);
            let mut histories: BTreeMap<u64, History> = BTreeMap::new();
            for (seed, client) in clients {
                let operations = client.join().expect("a client does not panic");
                histories.entry(seed).or_default().operations.extend(operations);
            }
            let settled = injected.and_then(|()| world.heal()).and_then(|()| {
                // One for all, because different states stay different.
                let deadline = Instant::now() + SETTLE_TIMEOUT;
                for (name, (seed, history)) in names.iter().zip(&mut histories) {
                    history.seed = *seed;
                    history.has_strict_reads = self.engine == Engine::One;
                    history.has_positions = self.engine == Engine::Cluster;
                    history.finals = final_states(&nodes, name, deadline)?;
                }
                Ok(())
            });
            for (name, (ending, history)) in
                names.iter().zip(endings.iter().zip(histories.values()))
            {
                let first = history.finals.first().and_then(|state| state.channels.get(name));
                // Without a final state, no wait is needed.
                let deadline =
                    Instant::now() + if first.is_some() { SETTLE_TIMEOUT } else { Duration::ZERO };
                let expected = (first.map_or(0, Vec::len), deadline);
                *ending.expected.lock().expect("no panic") = Some(expected);
            }
            let mut logs: BTreeMap<u64, Vec<Log>> = BTreeMap::new();
            for (seed, subscriber) in subscribers {
                let log = subscriber.join().expect("a subscriber does not panic");
                logs.entry(seed).or_default().push(log);
            }
            settled?;
            for (seed, logs) in logs {
                histories.entry(seed).or_default().logs = logs;
            }
            let histories = histories.into_values().collect();
            Ok(Finished { histories, counts, timeline })
        })
    }

    /// The command that repeats the decisions of the round. The clients and the kernel may
    /// interleave differently.
    pub(super) fn command(&self) -> String {
        let Self { seed, count, .. } = self;
        let engine = if self.engine == Engine::One { "one" } else { "cluster" };
        format!(
            "cargo xtask histories --engine {engine} --seed {seed} --histories {count} --at-a-time {count}"
        )
    }

    /// The clients and the subscribers of a history. All their decisions follow from its seed.
    fn participants(
        &self,
        name: &str,
        seed: u64,
        nodes: &[SocketAddr],
    ) -> (Vec<Client>, Vec<Subscriber>) {
        let mut random = Random::of(seed, 0);
        let count = random.between(CLIENTS.0, CLIENTS.1);
        let clients = (0..count).map(|number| Client {
            history: name.to_owned(),
            number: number as usize,
            random: Random::of(seed, 1 + number),
            nodes: nodes.to_vec(),
            start: self.start,
            position: None,
        });
        let first = random.below(VIEWS.len());
        let subscribers = (0..SUBSCRIBERS).map(|number| Subscriber {
            view: VIEWS[(first + number as usize) % VIEWS.len()],
            number: number as usize,
            channel: name.to_owned(),
            random: Random::of(seed, 100 + number),
            nodes: nodes.to_vec(),
        });
        (clients.collect(), subscribers.collect())
    }
}

fn create_channel(node: SocketAddr, name: &str) -> Result<()> {
    let target = format!("/channels/{name}");
    let fields = vec![("Content-Type", "application/json".to_owned())];
    let request = Request { method: "PUT", target: &target, fields, body: b"" };
    let begun = Instant::now();
    loop {
        let answer = match Connection::new(node, READ_TIMEOUT).send(&request) {
            Ok(response) if [200, 201].contains(&response.status) => return Ok(()),
            Ok(response) => format!("{} {}", response.status, response.text()),
            Err(failure) => failure.error().to_string(),
        };
        ensure!(begun.elapsed() < SETTLE_TIMEOUT, "the channel {name} is not created: {answer}");
        pause(RETRY_INTERVAL);
    }
}

/// Reads rows and messages of all nodes, until all have the same sequence: a message of a client whose
/// result is unknown may arrive late. Returns the last states, even if they differ.
fn final_states(nodes: &[SocketAddr], name: &str, deadline: Instant) -> Result<Vec<FinalState>> {
    loop {
        let before = states(nodes, name)?;
        let after = states(nodes, name)?;
        let is_settled = before.iter().chain(&after).all(|state| {
            state.sequence == before[0].sequence && state.channels == before[0].channels
        });
        if is_settled || Instant::now() > deadline {
            return Ok(after);
        }
        pause(RETRY_INTERVAL);
    }
}

fn states(nodes: &[SocketAddr], name: &str) -> Result<Vec<FinalState>> {
    (0..)
        .zip(nodes)
        .map(|(node, address)| {
            let mut connection = Connection::new(*address, READ_TIMEOUT);
            let rows = get(&mut connection, &format!("/rows?history={name}"))?;
            let found: Value = serde_json::from_slice(&rows.body)?;
            let mut messages: Vec<Delivered> = Vec::new();
            let mut cursor = "-1".to_owned();
            loop {
                let target = format!("/channels?c={name}&after={cursor}&wait=0&limit={LIMIT}");
                let page = get(&mut connection, &target)?;
                let some = if page.status == 200 { messages_in(&page.body) } else { Vec::new() };
                messages.extend_from_slice(&some);
                page.field("cursor").context("a poll without a cursor")?.clone_into(&mut cursor);
                if some.len() < LIMIT {
                    break;
                }
            }
            Ok(FinalState {
                node,
                sequence: found["sequence"].as_u64().context("no sequence")?,
                rows: seen_in(&found["seen"]).context("no rows")?,
                channels: BTreeMap::from([(name.to_owned(), messages)]),
            })
        })
        .collect()
}

/// Sends a GET request until the node answers it with 200 or 204.
fn get(connection: &mut Connection, target: &str) -> Result<Response> {
    let request = Request { method: "GET", target, ..Request::default() };
    let begun = Instant::now();
    loop {
        let answer = match connection.send(&request) {
            Ok(response) if [200, 204].contains(&response.status) => return Ok(response),
            Ok(response) => format!("{} {}", response.status, response.text()),
            Err(failure) => failure.error().to_string(),
        };
        if begun.elapsed() > SETTLE_TIMEOUT {
            bail!("{target} is not answered after all faults: {answer}");
        }
        pause(RETRY_INTERVAL);
    }
}

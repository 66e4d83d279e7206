//! The clients of a history: they read and write its keys, publish to its channel, and record each
//! operation.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::history::{LIST, Operation, Outcome, Seen, Work};
use super::http::{Connection, Failure, Request, Response};
use super::pause::pause;
use super::random::Random;

/// A client with its own sequence of decisions.
pub(super) struct Client {
    /// The name of the history, with which all its keys begin.
    pub(super) history: String,
    pub(super) number: usize,
    pub(super) random: Random,
    pub(super) nodes: Vec<SocketAddr>,
    /// The start of the run, from which times count.
    pub(super) start: Instant,
    /// The newest position that a server has reported, as it was sent.
    pub(super) position: Option<String>,
}

/// A server commits or gives up after about four seconds.
const READ_TIMEOUT: Duration = Duration::from_secs(8);
/// Milliseconds between two operations of a client.
const PAUSE: (u64, u64) = (20, 240);
/// Keys of a history: registers, and one list.
const REGISTERS: usize = 3;

/// The text by which a server reports an unknown result.
const MAYBE: &str = "may have been saved";

/// The number of a position. The id of the stream follows it.
fn number_of(position: Option<&str>) -> Option<u64> {
    position?.split('-').next()?.parse().ok()
}

impl Client {
    /// Performs operations until `is_over`, and returns them.
    pub(super) fn run(mut self, is_over: &AtomicBool) -> Vec<Operation> {
        let connect = |address: &SocketAddr| Connection::new(*address, READ_TIMEOUT);
        let mut connections: Vec<Connection> = self.nodes.iter().map(connect).collect();
        let (mut operations, mut token) = (Vec::new(), None);
        let mut node = self.random.below(self.nodes.len());
        while !is_over.load(Ordering::Relaxed) {
            if self.random.chance(30) {
                node = self.random.below(self.nodes.len());
            }
            let mut operation = Operation {
                id: format!("{}-{}-{}", self.history, self.number, operations.len()),
                client: self.number,
                node,
                token,
                ..Operation::default()
            };
            let connection = &mut connections[node];
            match self.random.below(10) {
                0..=4 => self.change(&mut operation, connection),
                5..=7 => self.read(&mut operation, connection),
                _ => self.publish(&mut operation, connection),
            }
            token = number_of(self.position.as_deref());
            operations.push(operation);
            pause(Duration::from_millis(self.random.between(PAUSE.0, PAUSE.1)));
        }
        operations
    }

    /// One to three different keys.
    fn keys(&mut self) -> Vec<String> {
        let history = &self.history;
        let mut keys: Vec<String> =
            (0..REGISTERS).map(|number| format!("{history}r{number}")).collect();
        keys.push(format!("{LIST}{history}"));
        let count = 1 + self.random.below(3);
        (0..count).map(|_| keys.swap_remove(self.random.below(keys.len()))).collect()
    }

    fn change(&mut self, operation: &mut Operation, connection: &mut Connection) {
        let keys = self.keys();
        let written = 1 + self.random.below(keys.len());
        operation.work = Work::Change;
        operation.written = keys[..written].to_vec();
        // Reads may precede writes, and follow them.
        let mut touched: Vec<Value> = keys
            .iter()
            .map(|key| json!({ "key": key, "writes": operation.written.contains(key) }))
            .collect();
        touched.rotate_left(self.random.below(keys.len()));
        let body = json!({ "history": self.history, "writer": operation.id, "keys": touched });
        let response = self.send(operation, connection, "/histories/transact", &body);
        if let Some(response) = response {
            let seen = serde_json::from_slice::<Value>(&response.body);
            operation.seen = seen.ok().as_ref().and_then(seen_in).unwrap_or_default();
            let position = response.field("bine-position");
            operation.position = number_of(position);
            if operation.position > number_of(self.position.as_deref()) {
                self.position = position.map(str::to_owned);
            }
        }
    }

    fn read(&mut self, operation: &mut Operation, connection: &mut Connection) {
        operation.work = Work::Read;
        let target = format!("/read?keys={}", self.keys().join(","));
        let request = Request { method: "GET", target: &target, ..Request::default() };
        if let Some(response) = self.perform(operation, connection, request) {
            let found: Value = serde_json::from_slice(&response.body).unwrap_or_default();
            operation.sequence = found["sequence"].as_u64();
            operation.seen = seen_in(&found["seen"]).unwrap_or_default();
        }
    }

    fn publish(&mut self, operation: &mut Operation, connection: &mut Connection) {
        operation.work = Work::Publish;
        operation.channel.clone_from(&self.history);
        // The server orders these by its positions.
        let body = json!({ "channels": self.history, "data": { "id": operation.id } });
        if let Some(response) = self.send(operation, connection, "/channels", &body) {
            let all: Value = serde_json::from_slice(&response.body).unwrap_or_default();
            operation.cursor = all[0]["cursor"].as_str().map(str::to_owned);
        }
    }

    fn send(
        &self,
        operation: &mut Operation,
        connection: &mut Connection,
        target: &str,
        body: &Value,
    ) -> Option<Response> {
        let body = body.to_string();
        let fields = vec![
            ("Content-Type", "application/json".to_owned()),
            ("Accept", "application/json".to_owned()),
        ];
        let request = Request { method: "POST", target, fields, body: body.as_bytes() };
        self.perform(operation, connection, request)
    }

    /// Sends the request and notes its outcome. Returns the response if it is an acknowledgment.
    fn perform(
        &self,
        operation: &mut Operation,
        connection: &mut Connection,
        mut request: Request<'_>,
    ) -> Option<Response> {
        request.fields.extend(self.position.clone().map(|position| ("Bine-Position", position)));
        operation.begun = self.now();
        let result = connection.send(&request);
        operation.ended = self.now();
        match result {
            Ok(response) => {
                let status = response.status;
                operation.is_stale = response.field("bine-stale").is_some();
                operation.outcome = outcome_of(status, &response.text());
                if operation.outcome == Outcome::Acknowledged {
                    operation.answer = status.to_string();
                    return Some(response);
                }
                operation.answer = format!("{status} {}", response.text());
            }
            Err(failure) => {
                operation.answer = failure.error().to_string();
                operation.outcome = match failure {
                    Failure::NotSent(_) => Outcome::Refused,
                    Failure::Unknown(_) => Outcome::Unknown,
                };
            }
        }
        None
    }

    fn now(&self) -> u64 {
        self.start.elapsed().as_nanos() as u64
    }
}

/// A response of 4xx reports that the request has changed no row; so does 503, unless its text
/// contains `MAYBE`.
fn outcome_of(status: u16, text: &str) -> Outcome {
    match status {
        200..=299 => Outcome::Acknowledged,
        503 if text.contains(MAYBE) => Outcome::Unknown,
        400..=499 | 503 => Outcome::Refused,
        _ => Outcome::Unknown,
    }
}

/// The states in a response.
pub(super) fn seen_in(list: &Value) -> Option<Vec<Seen>> {
    let seen = |entry: &Value| {
        Some(Seen {
            key: entry["key"].as_str()?.to_owned(),
            version: u32::try_from(entry["version"].as_u64()?).ok()?,
            writer: entry["writer"].as_str()?.to_owned(),
        })
    };
    list.as_array()?.iter().map(seen).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tells_refusals_from_unknown_results() {
        for (status, text, expected) in [
            (200, "", Outcome::Acknowledged),
            (409, "conflict", Outcome::Refused),
            (503, "changes cannot be saved at the moment", Outcome::Refused),
            (503, "the change may have been saved or not", Outcome::Unknown),
            (500, "", Outcome::Unknown),
        ] {
            assert_eq!(outcome_of(status, text), expected, "{status} {text}");
        }
    }
}

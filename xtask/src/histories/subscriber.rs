//! Subscribers: they follow one channel from its first message on, at any node, in three views.

use std::net::SocketAddr;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use serde_json::Value;

use super::history::{Delivered, Log};
use super::http::{Connection, Request};
use super::pause::pause;
use super::random::Random;

/// How a subscriber follows.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum View {
    /// Polls with a cursor.
    Poll,
    /// Server-sent events.
    Events,
    /// Long polls of the Durable Streams protocol, which have an offset for each response only.
    Durable,
}

pub(super) const VIEWS: [View; 3] = [View::Poll, View::Events, View::Durable];

/// A subscriber with its own sequence of decisions.
pub(super) struct Subscriber {
    pub(super) view: View,
    pub(super) number: usize,
    pub(super) channel: String,
    pub(super) random: Random,
    pub(super) nodes: Vec<SocketAddr>,
}

/// The end of a run, for subscribers.
#[derive(Default)]
pub(super) struct Ending {
    /// The number of messages of the channel, and the latest time to have received them, once both
    /// are known.
    pub(super) expected: Mutex<Option<(usize, Instant)>>,
}

/// A stream sends a sign after some seconds; a node that is cut off may be silent.
const READ_TIMEOUT: Duration = Duration::from_secs(3);
/// The most messages of one response.
const LIMIT: u64 = 20;
/// The pause after an error.
const PAUSE: Duration = Duration::from_millis(50);

impl Ending {
    /// Whether a subscriber that has `count` messages stops.
    fn is_reached(&self, count: usize) -> bool {
        let expected = self.expected.lock().expect("no panic");
        expected.is_some_and(|(all, deadline)| count >= all || Instant::now() > deadline)
    }
}

impl Subscriber {
    /// Follows until all messages have arrived, or the time for that is over.
    pub(super) fn run(mut self, ending: &Ending) -> Log {
        let mut messages = Vec::new();
        let mut cursor = "-1".to_owned();
        while !ending.is_reached(messages.len()) {
            let node = *self.random.pick(&self.nodes);
            let mut connection = Connection::new(node, READ_TIMEOUT);
            // Some requests to this node, then a different node.
            for _ in 0..self.random.between(1, 6) {
                let has_answer = match self.view {
                    View::Poll => self.poll(&mut connection, &mut cursor, &mut messages),
                    View::Events => {
                        self.events(&mut connection, &mut cursor, &mut messages, ending)
                    }
                    View::Durable => self.durable(&mut connection, &mut cursor, &mut messages),
                };
                if !has_answer {
                    pause(PAUSE);
                    break;
                }
                if ending.is_reached(messages.len()) {
                    break;
                }
            }
        }
        Log { name: format!("{:?} {}", self.view, self.number), channel: self.channel, messages }
    }

    fn poll(
        &mut self,
        connection: &mut Connection,
        cursor: &mut String,
        messages: &mut Vec<Delivered>,
    ) -> bool {
        let (channel, limit) = (&self.channel, self.random.between(1, LIMIT));
        let target = format!("/channels?c={channel}&after={cursor}&wait=1&limit={limit}");
        let request = Request { method: "GET", target: &target, ..Request::default() };
        let Ok(response) = connection.send(&request) else { return false };
        if ![200, 204].contains(&response.status) {
            return false;
        }
        messages.extend(messages_in(&response.body));
        if let Some(next) = response.field("cursor") {
            next.clone_into(cursor);
        }
        true
    }

    fn events(
        &self,
        connection: &mut Connection,
        cursor: &mut String,
        messages: &mut Vec<Delivered>,
        ending: &Ending,
    ) -> bool {
        let target = format!("/channels?c={}&after={cursor}", self.channel);
        let fields = vec![("Accept", "text/event-stream".to_owned())];
        let request = Request { method: "GET", target: &target, fields, body: b"" };
        let begun = Instant::now();
        let (mut id, mut data, mut name) = (None, None, None);
        let result = connection.lines(&request, |line| {
            if let Some(value) = line.strip_prefix("id:") {
                id = Some(value.trim().to_owned());
            } else if let Some(value) = line.strip_prefix("data:") {
                data = serde_json::from_str::<Value>(value).ok();
            } else if let Some(value) = line.strip_prefix("event:") {
                name = Some(value.trim().to_owned());
            } else if line.is_empty() {
                let content = data.take().and_then(|data| id_in(&data));
                if let (None, Some(content)) = (name.take(), content) {
                    messages.push(Delivered { id: content, cursor: id.clone() });
                }
                if let Some(next) = id.take() {
                    *cursor = next;
                }
            }
            begun.elapsed() < READ_TIMEOUT && !ending.is_reached(messages.len())
        });
        matches!(result, Ok(200 | 204))
    }

    fn durable(
        &self,
        connection: &mut Connection,
        offset: &mut String,
        messages: &mut Vec<Delivered>,
    ) -> bool {
        let channel = &self.channel;
        let target = format!("/channels/{channel}?offset={offset}&live=long-poll");
        let request = Request { method: "GET", target: &target, ..Request::default() };
        let Ok(response) = connection.send(&request) else { return false };
        if ![200, 204].contains(&response.status) {
            return false;
        }
        let all: Value = serde_json::from_slice(&response.body).unwrap_or_default();
        let ids = all.as_array().into_iter().flatten().filter_map(id_in);
        messages.extend(ids.map(|id| Delivered { id, cursor: None }));
        if let Some(next) = response.field("stream-next-offset") {
            next.clone_into(offset);
        }
        true
    }
}

/// The messages in the response to a poll.
pub(super) fn messages_in(body: &[u8]) -> Vec<Delivered> {
    let all: Value = serde_json::from_slice(body).unwrap_or_default();
    let messages = all.as_array().into_iter().flatten();
    messages
        .map(|message| Delivered {
            id: id_in(&message["data"]).unwrap_or_else(|| message.to_string()),
            cursor: message["cursor"].as_str().map(str::to_owned),
        })
        .collect()
}

fn id_in(data: &Value) -> Option<String> {
    data["id"].as_str().map(str::to_owned)
}

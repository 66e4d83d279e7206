//! Following: one ordered consumer, which is created again after every doubt.

use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use async_nats::jetstream::consumer::{AckPolicy, DeliverPolicy, ReplayPolicy, push};
use async_nats::jetstream::stream;
use async_nats::{Message, StatusCode, Subscriber};
use bytes::Bytes;
use futures_util::StreamExt as _;
use tokio::sync::Notify;
use tokio::time::{Instant, MissedTickBehavior, interval, timeout};

use crate::backoff::Backoff;
use crate::connection::{Connection, stream_id};
use crate::connector::REQUEST_TIMEOUT;
use crate::error::root_cause;
use crate::link_state::LinkState;

/// The time between heartbeats of an idle consumer, and between checks of the stream's end.
const HEARTBEAT: Duration = Duration::from_secs(1);
/// Silence for this long means that the consumer is lost.
const LONGEST_SILENCE: Duration = Duration::from_millis(2500);
/// A consumer that does not deliver existing messages for this long is stalled.
const LONGEST_STALL: Duration = Duration::from_secs(4);
/// A replica that the leader has not seen for this long counts as failed. Replicas confirm a
/// heartbeat each second.
const LONGEST_ABSENCE: Duration = Duration::from_secs(4);
/// A stream that is shorter than this node's state for this long has lost messages. A new leader may
/// report an old end for a moment.
const LONGEST_REWIND: Duration = Duration::from_secs(10);
/// The time between two searches for the reason why no connection can be opened.
const DIAGNOSIS_INTERVAL: Duration = Duration::from_secs(5);
/// The server removes a consumer whose node is gone for this long.
const INACTIVE_THRESHOLD: Duration = Duration::from_secs(10);

/// Follows the stream until it ends.
pub(crate) struct Follower {
    connection: Connection,
    state: Arc<LinkState>,
    /// Asks for a new check of everything.
    doubt: Arc<Notify>,
    position: u64,
    /// The time at which the server stored the last delivered message. It identifies the message:
    /// a stream that was set back and grew again has another message at this position.
    stored_at: Option<i128>,
    /// Since when the stream is shorter than the position.
    rewind: Rewind,
    /// The position whose absence was observed once.
    missing: Option<u64>,
    /// The time of the last search for the reason of a closed connection.
    diagnosed: Option<Instant>,
}

/// Why a session stops.
enum Stop {
    Retry(String),
    /// The servers refuse this node until an operator changes something.
    Refused(String),
    End(String),
}

type InfoFuture = Pin<Box<dyn Future<Output = Result<stream::Info, String>> + Send>>;

impl Follower {
    pub(crate) fn new(connection: Connection, state: Arc<LinkState>, doubt: Arc<Notify>) -> Self {
        let position = state.position();
        Self {
            connection,
            state,
            doubt,
            position,
            stored_at: None,
            rewind: Rewind::default(),
            missing: None,
            diagnosed: None,
        }
    }

    /// Runs sessions until one ends the link.
    pub(crate) async fn run(mut self) {
        let mut backoff = Backoff::new();
        loop {
            let before = self.position;
            let started = Instant::now();
            // One of before the session does not explain its end.
            let _ = self.connection.events.take_denial();
            match self.explained_session().await {
                Stop::Retry(reason) => self.state.follows_no_more(reason),
                Stop::Refused(reason) => self.state.is_refused(reason),
                Stop::End(reason) => return self.state.end(reason),
            }
            if self.position > before || started.elapsed() > Duration::from_secs(10) {
                backoff.reset();
            }
            backoff.wait().await;
        }
    }

    /// Runs a session. If the server did not permit a request meanwhile, that is the reason of its end.
    async fn explained_session(&mut self) -> Stop {
        match self.session().await {
            Stop::Retry(reason) => match self.connection.events.take_denial() {
                Some(denied) => Stop::Refused(denied.to_string()),
                None => Stop::Retry(reason),
            },
            stop => stop,
        }
    }

    async fn session(&mut self) -> Stop {
        let Err(stop) = self.follow().await;
        stop
    }

    /// Checks the stream, creates a consumer and delivers its messages.
    async fn follow(&mut self) -> Result<std::convert::Infallible, Stop> {
        let mut losses = self.connection.losses.clone();
        losses.mark_unchanged();
        if !self.connection.is_open() {
            return Err(self.why_no_connection().await);
        }
        let info = request_info(self.connection.stream.clone()).await.map_err(Stop::Retry)?;
        self.check_begin(&info)?;
        self.check(&info, self.position)?;
        let target = info.state.last_sequence;
        let is_comparable = self.stored_at.is_some() && info.state.first_sequence <= self.position;
        let mut subscriber = self.subscribe(is_comparable).await?;
        let mut flow = Flow { consumer_sequence: 0, last_activity: Instant::now() };
        let mut tail = Tail { end: target, position: self.position, since: Instant::now() };
        // The position of this node when it asked, and the answer: messages that arrive meanwhile may be
        // missing in the answer.
        let mut checking: Option<(u64, InfoFuture)> = None;
        let mut tick = interval(HEARTBEAT);
        tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut last_tick = Instant::now();
        let mut is_current = false;
        loop {
            let is_compared = !is_comparable || flow.consumer_sequence > 0;
            if !is_current && is_compared && self.position >= target {
                is_current = true;
                self.state.follows();
            }
            tokio::select! {
                message = subscriber.next() => {
                    let Some(message) = message else {
                        return Err(Stop::Retry("the subscription has ended".to_owned()));
                    };
                    flow.last_activity = Instant::now();
                    self.receive(message, &mut flow).await?;
                }
                info = async { (&mut checking.as_mut().expect("the branch is enabled").1).await },
                    if checking.is_some() =>
                {
                    let asked_at = checking.take().map_or(0, |(asked_at, _)| asked_at);
                    let info = info.map_err(Stop::Retry)?;
                    self.check(&info, asked_at)?;
                    tail.check(self.position, info.state.last_sequence)?;
                }
                _ = tick.tick() => {
                    // After a late tick the thread was busy: messages may wait in the socket.
                    let is_late = last_tick.elapsed() > HEARTBEAT + HEARTBEAT / 2;
                    last_tick = Instant::now();
                    if is_late {
                        flow.last_activity = last_tick;
                        tail.since = last_tick;
                    }
                    if flow.last_activity.elapsed() > LONGEST_SILENCE {
                        let silence = "the server has sent no heartbeat for 2.5 s".to_owned();
                        return Err(Stop::Retry(silence));
                    }
                    if checking.is_none() {
                        let info = request_info(self.connection.stream.clone());
                        checking = Some((self.position, Box::pin(info)));
                    }
                }
                () = self.doubt.notified() => {
                    return Err(Stop::Retry("a message was not acknowledged".to_owned()));
                }
                _ = losses.changed() => {
                    return Err(Stop::Retry("the connection to the server is closed".to_owned()));
                }
            }
        }
    }

    /// Searches for the reason from time to time, because it may be one for the operator.
    async fn why_no_connection(&mut self) -> Stop {
        if self.diagnosed.is_none_or(|last| last.elapsed() >= DIAGNOSIS_INTERVAL) {
            let refusal = self.connection.refusal().await;
            self.diagnosed = Some(Instant::now());
            if let Some(refusal) = refusal {
                return Stop::Refused(refusal.to_string());
            }
        }
        Stop::Retry("no connection to a server is open".to_owned())
    }

    /// Checks that the stream still has the next message. Later, a purge may remove messages that are
    /// already on their way to this node.
    fn check_begin(&self, info: &stream::Info) -> Result<(), Stop> {
        let (name, position) = (&self.connection.name, self.position);
        let first = info.state.first_sequence;
        if first > position + 1 && stream_id(info) == self.connection.stream_id() {
            return Err(Stop::End(format!(
                "the stream `{name}` begins at {first}, and this node is only at {position}: restart \
                 the node, which loads a snapshot"
            )));
        }
        Ok(())
    }

    /// Checks that this is still the stream whose messages the replica had applied up to `asked_at`
    /// when it requested the answer, and that it can accept messages.
    fn check(&mut self, info: &stream::Info, asked_at: u64) -> Result<(), Stop> {
        let name = &self.connection.name;
        if stream_id(info) != self.connection.stream_id() {
            return Err(Stop::End(format!(
                "the stream `{name}` was deleted and created again: restart the node, which loads the \
                 state of the new stream"
            )));
        }
        self.rewind.check(name, asked_at, info.state.last_sequence, Instant::now())?;
        has_quorum(info).map_err(Stop::Retry)
    }

    /// Creates the consumer. It begins at the last delivered message if that one can be compared.
    async fn subscribe(&self, is_comparable: bool) -> Result<Subscriber, Stop> {
        let start_sequence = self.position + u64::from(!is_comparable);
        let inbox = self.connection.client.new_inbox();
        let subscribe = self.connection.client.subscribe(inbox.clone());
        let subscriber = timeout(REQUEST_TIMEOUT, subscribe)
            .await
            .map_err(|_| Stop::Retry("the connection accepts no subscription".to_owned()))?
            .map_err(|error| Stop::Retry(root_cause(&error)))?;
        let config = push::Config {
            deliver_subject: inbox,
            description: Some("a node of a Bine cluster".to_owned()),
            deliver_policy: DeliverPolicy::ByStartSequence { start_sequence },
            ack_policy: AckPolicy::None,
            replay_policy: ReplayPolicy::Instant,
            flow_control: true,
            idle_heartbeat: HEARTBEAT,
            num_replicas: 1,
            memory_storage: true,
            inactive_threshold: INACTIVE_THRESHOLD,
            ..push::Config::default()
        };
        timeout(REQUEST_TIMEOUT, self.connection.stream.create_consumer(config))
            .await
            .map_err(|_| Stop::Retry("the server creates no consumer in 2 s".to_owned()))?
            .map_err(|error| Stop::Retry(format!("no consumer: {}", root_cause(&error))))?;
        Ok(subscriber)
    }

    async fn receive(&mut self, message: Message, flow: &mut Flow) -> Result<(), Stop> {
        match message.status {
            None => self.deliver(message, flow),
            Some(StatusCode::IDLE_HEARTBEAT) => self.answer(&message, flow).await,
            Some(status) => {
                let text = message.description.as_deref().unwrap_or_default();
                Err(Stop::Retry(format!("the server has ended the consumer: {status} {text}")))
            }
        }
    }

    /// Answers a question of the flow control; compares a heartbeat with what has arrived.
    async fn answer(&self, message: &Message, flow: &Flow) -> Result<(), Stop> {
        let header = |name| message.headers.as_ref().and_then(|all| all.get(name));
        let stalled = header("Nats-Consumer-Stalled").map(ToString::to_string);
        if let Some(subject) = message.reply.as_ref().map(ToString::to_string).or(stalled) {
            let publish = self.connection.client.publish(subject, Bytes::new());
            return match timeout(REQUEST_TIMEOUT, publish).await {
                Ok(Ok(())) => Ok(()),
                _ => Err(Stop::Retry("the connection accepts no messages".to_owned())),
            };
        }
        let sent = header("Nats-Last-Consumer").and_then(|value| value.as_str().parse().ok());
        if sent.is_some_and(|sent: u64| sent > flow.consumer_sequence) {
            return Err(Stop::Retry("the connection has lost a message".to_owned()));
        }
        Ok(())
    }

    fn deliver(&mut self, message: Message, flow: &mut Flow) -> Result<(), Stop> {
        let context = self.connection.requests.clone();
        let message = async_nats::jetstream::Message { message, context };
        let Ok(info) = message.info() else {
            return Err(Stop::Retry("the server has sent a message without a position".to_owned()));
        };
        let (position, stored_at) = (info.stream_sequence, info.published.unix_timestamp_nanos());
        if info.consumer_sequence != flow.consumer_sequence + 1 {
            return Err(Stop::Retry("the connection has lost a message".to_owned()));
        }
        flow.consumer_sequence += 1;
        if position <= self.position {
            // The consumer begins at the last delivered message, to compare it.
            let is_last = position == self.position;
            return if is_last && self.stored_at.is_none_or(|known| known == stored_at) {
                Ok(())
            } else {
                Err(lost_messages(&self.connection.name, self.position))
            };
        }
        let expected = self.position + 1;
        if position != expected {
            return Err(self.skipped(expected));
        }
        if let Err(reason) = self.state.deliver(position, &message.payload) {
            return Err(Stop::End(format!(
                "the message at position {position} cannot be applied: {reason}"
            )));
        }
        self.position = position;
        self.stored_at = Some(stored_at);
        self.missing = None;
        Ok(())
    }

    /// The server has sent no message of this position. The second time, it has none.
    fn skipped(&mut self, expected: u64) -> Stop {
        if self.missing == Some(expected) {
            let name = &self.connection.name;
            return Stop::End(format!(
                "the stream `{name}` has no message at position {expected}: restart the node, which \
                 loads a snapshot"
            ));
        }
        self.missing = Some(expected);
        Stop::Retry(format!("the server has skipped position {expected}"))
    }
}

/// What one consumer has delivered.
struct Flow {
    consumer_sequence: u64,
    last_activity: Instant,
}

/// The end of the stream at the last check, and since when the node does not move towards it.
struct Tail {
    end: u64,
    position: u64,
    since: Instant,
}

/// Since when the stream ends before messages that this node has applied.
#[derive(Default)]
struct Rewind(Option<Instant>);

impl Rewind {
    /// Compares the end of the stream with a position of this node at an earlier time.
    fn check(&mut self, name: &str, position: u64, end: u64, now: Instant) -> Result<(), Stop> {
        if end >= position {
            self.0 = None;
            return Ok(());
        }
        let since = *self.0.get_or_insert(now);
        if now.saturating_duration_since(since) > LONGEST_REWIND {
            return Err(lost_messages(name, position));
        }
        Err(Stop::Retry(format!(
            "the stream `{name}` ends at {end}, before the position {position} of this node"
        )))
    }
}

impl Tail {
    fn check(&mut self, position: u64, end: u64) -> Result<(), Stop> {
        if position > self.position || position >= self.end {
            self.since = Instant::now();
        } else if self.since.elapsed() > LONGEST_STALL {
            return Err(Stop::Retry(format!(
                "the server does not deliver the messages from {} to {}",
                position + 1,
                self.end
            )));
        }
        (self.position, self.end) = (position, end);
        Ok(())
    }
}

async fn request_info(stream: stream::Stream) -> Result<stream::Info, String> {
    match timeout(REQUEST_TIMEOUT, stream.get_info()).await {
        Ok(Ok(info)) => Ok(info),
        Ok(Err(error)) => Err(format!("the stream does not answer: {}", root_cause(&error))),
        Err(_) => Err("the stream does not answer within 2 s".to_owned()),
    }
}

/// Whether the leader sees a majority of the replicas. A publish without one is not acknowledged.
fn has_quorum(info: &stream::Info) -> Result<(), String> {
    let Some(cluster) = &info.cluster else { return Ok(()) };
    if cluster.replicas.is_empty() {
        return Ok(());
    }
    if cluster.leader.as_deref().unwrap_or_default().is_empty() {
        return Err("the stream has no leader".to_owned());
    }
    // A replica that this leader has never seen has no time of absence, and is not current.
    let is_seen = |peer: &stream::PeerInfo| peer.current || !peer.active.is_zero();
    let is_alive =
        |peer: &&stream::PeerInfo| !peer.offline && is_seen(peer) && peer.active < LONGEST_ABSENCE;
    let (alive, all) =
        (1 + cluster.replicas.iter().filter(is_alive).count(), 1 + cluster.replicas.len());
    if alive * 2 > all {
        return Ok(());
    }
    Err(format!("only {alive} of {all} replicas of the stream answer"))
}

fn lost_messages(name: &str, position: u64) -> Stop {
    Stop::End(format!(
        "the stream `{name}` has lost messages that this node has applied, up to position {position}: \
         set `sync_interval: always` or use 3 replicas, and restart the node, which loads the \
         state of the stream"
    ))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    /// A node stayed connected for 18 s without a majority: the leader reported a replica that had
    /// been gone before its election as absent for 0 s.
    #[test]
    fn counts_replicas_that_the_leader_has_seen() {
        let seconds = |seconds: u64| seconds * 1_000_000_000;
        let good = peer(true, false, seconds(1));
        let catching_up = peer(false, false, seconds(1));
        let never_seen = peer(false, false, 0);
        let silent = peer(true, false, seconds(5));
        let offline = peer(true, true, seconds(1));
        check("a", &[&good, &good], true);
        check("a", &[&good, &never_seen], true);
        check("a", &[&catching_up, &offline], true);
        check("a", &[&silent, &never_seen], false);
        check("a", &[&offline, &silent], false);
        check("", &[&good, &good], false);
        check("a", &[], true);
    }

    #[test]
    fn ends_after_the_stream_was_behind_for_long() {
        let mut rewind = Rewind::default();
        let now = Instant::now();
        let late = now + LONGEST_REWIND + Duration::from_millis(1);
        assert!(rewind.check("bine", 5, 5, now).is_ok());
        assert!(matches!(rewind.check("bine", 5, 4, now), Err(Stop::Retry(_))));
        assert!(matches!(rewind.check("bine", 5, 4, now + LONGEST_REWIND), Err(Stop::Retry(_))));
        assert!(rewind.check("bine", 5, 6, late).is_ok());
        assert!(matches!(rewind.check("bine", 5, 4, late), Err(Stop::Retry(_))));
        let later = late + LONGEST_REWIND + Duration::from_millis(1);
        assert!(matches!(rewind.check("bine", 5, 4, later), Err(Stop::End(_))));
    }

    fn peer(current: bool, offline: bool, active: u64) -> Value {
        json!({"name": "b", "current": current, "offline": offline, "active": active})
    }

    fn check(leader: &str, replicas: &[&Value], expected: bool) {
        let time = "2026-01-01T00:00:00Z";
        let info = json!({
            "config": {
                "name": "bine", "subjects": ["bine.log"], "retention": "limits", "storage": "file",
                "discard": "new", "num_replicas": 3, "max_consumers": -1,
            },
            "created": time,
            "state": {
                "messages": 0, "bytes": 0, "first_seq": 0, "first_ts": time, "last_seq": 0,
                "last_ts": time, "consumer_count": 0,
            },
            "cluster": {"leader": leader, "replicas": replicas},
        });
        let info: stream::Info = serde_json::from_value(info).unwrap();
        assert_eq!(has_quorum(&info).is_ok(), expected, "{leader:?} {replicas:?}");
    }
}

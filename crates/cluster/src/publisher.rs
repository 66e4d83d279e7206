//! Publishing: the unconfirmed messages of the replica, in order, several under way.
//!
//! Messages have no `Nats-Msg-Id`. The replica ignores repeated numbers, and with an id the
//! server would drop a message whose first copy it has stored but the replica has refused after a
//! gap: that message must enter the stream a second time.

use std::sync::Arc;
use std::time::Duration;

use async_nats::jetstream::context::{PublishError, PublishErrorKind};
use futures_util::stream::FuturesUnordered;
use futures_util::{FutureExt as _, StreamExt as _};
use tokio::sync::Notify;
use tokio::time::timeout;

use crate::backoff::Backoff;
use crate::connection::{ACK_TIMEOUT, Connection};
use crate::error::root_cause;
use crate::link_state::LinkState;

/// The most messages without an acknowledgment.
const WINDOW: usize = 64;
/// The time in which an acknowledged message must be delivered. A later one is sent again.
const DELIVERY_TIMEOUT: Duration = Duration::from_secs(10);

/// The signals between the publisher and other tasks and threads.
#[derive(Default)]
pub(crate) struct Signals {
    /// The replica has a new message.
    pub(crate) news: Notify,
    /// The replica has refused a message after a gap.
    pub(crate) resend: Notify,
    /// Asks the follower to check everything, after a message without acknowledgment.
    pub(crate) doubt: Arc<Notify>,
}

/// Publishes the messages of the replica.
pub(crate) struct Publisher {
    pub(crate) connection: Connection,
    pub(crate) state: Arc<LinkState>,
    pub(crate) signals: Arc<Signals>,
}

/// Why a round ends.
enum Round {
    /// The replica asks for it, and every message of this round is acknowledged up to this position.
    Resend(u64),
    /// The node is cut off.
    CutOff,
    Failed {
        reason: String,
        /// Whether the server has refused the message, so that the operator must act.
        has_answer: bool,
    },
    /// No repetition helps.
    Hopeless(String),
}

impl Publisher {
    /// Publishes until the link ends.
    pub(crate) async fn run(self) {
        let mut backoff = Backoff::new();
        let mut is_probing = false;
        loop {
            let mut current = self.state.watch_current();
            if current.wait_for(|is_current| *is_current).await.is_err() {
                return;
            }
            match self.round(is_probing, &mut backoff).await {
                Round::Resend(position) => {
                    is_probing = false;
                    // Until then, the stream may still deliver what the replica refuses.
                    let mut delivered = self.state.watch_position();
                    let wait = delivered.wait_for(|delivered| *delivered >= position);
                    let _ = timeout(DELIVERY_TIMEOUT, wait).await;
                    // The next round answers every request so far.
                    let _ = self.signals.resend.notified().now_or_never();
                }
                Round::CutOff => {}
                Round::Failed { reason, has_answer } => {
                    is_probing = true;
                    // The server does not answer a message that it does not permit.
                    let denied = self.connection.events.take_denial();
                    let is_refused = denied.is_some() || has_answer;
                    let reason = denied.map_or(reason, |denied| denied.to_string());
                    self.state.publishes_no_more(reason.clone());
                    // The message may be in the stream all the same. The follower finds the new
                    // end of the stream and catches up before the next round.
                    if is_refused {
                        self.state.is_refused(reason);
                    } else {
                        self.state.follows_no_more(reason);
                    }
                    self.signals.doubt.notify_one();
                    backoff.wait().await;
                }
                Round::Hopeless(reason) => return self.state.end(reason),
            }
        }
    }

    /// Publishes from the first unconfirmed message on. A probing round sends one message at a time
    /// until the first acknowledgment.
    async fn round(&self, mut is_probing: bool, backoff: &mut Backoff) -> Round {
        let mut number = 0;
        let mut position = 0;
        let mut is_draining = false;
        let mut in_flight = FuturesUnordered::new();
        let mut current = self.state.watch_current();
        loop {
            let window = if is_probing { 1 } else { WINDOW };
            while !is_draining && in_flight.len() < window {
                let Some(outgoing) = self.state.replica().unconfirmed_after(number) else { break };
                let length = outgoing.bytes.len();
                let subject = self.connection.subject.clone();
                match self.connection.publishing.publish(subject, outgoing.bytes).await {
                    Ok(acknowledgment) => in_flight.push(acknowledgment.into_future()),
                    Err(error) if error.kind() == PublishErrorKind::MaxPayloadExceeded => {
                        return Round::Hopeless(format!(
                            "a message of {length} bytes is longer than the server accepts: raise \
                             `max_payload` of the NATS server and restart the node"
                        ));
                    }
                    Err(error) => return self.not_acknowledged(&error),
                }
                number = outgoing.number;
            }
            if is_draining && in_flight.is_empty() {
                return Round::Resend(position);
            }
            if is_probing && in_flight.is_empty() {
                // All messages have arrived by the stream.
                is_probing = false;
                self.state.publishes();
                continue;
            }
            tokio::select! {
                Some(result) = in_flight.next() => match result {
                    Ok(acknowledgment) => {
                        position = position.max(acknowledgment.sequence);
                        backoff.reset();
                        if std::mem::take(&mut is_probing) {
                            self.state.publishes();
                        }
                    }
                    Err(error) => return self.not_acknowledged(&error),
                },
                () = self.signals.news.notified(), if !is_draining => {}
                () = self.signals.resend.notified(), if !is_draining => is_draining = true,
                changed = current.wait_for(|is_current| !*is_current) => {
                    let _ = changed;
                    return Round::CutOff;
                }
            }
        }
    }

    /// Describes why a message is not stored, and what the operator does.
    fn not_acknowledged(&self, error: &PublishError) -> Round {
        let Connection { name, subject, .. } = &self.connection;
        let reason = match error.kind() {
            PublishErrorKind::TimedOut => {
                let seconds = ACK_TIMEOUT.as_secs();
                format!(
                    "the NATS server has not acknowledged a message to `{subject}` within {seconds} s: \
                     check that the servers of the stream `{name}` run"
                )
            }
            PublishErrorKind::StreamNotFound => format!(
                "no NATS server stores messages to `{subject}`: check that the stream `{name}` exists \
                 and that its servers run"
            ),
            _ => format!(
                "the NATS server refuses a message to `{subject}` ({}): raise the limits of the stream \
                 `{name}` and of its account, or free disk space of the servers",
                root_cause(error)
            ),
        };
        Round::Failed { reason, has_answer: error.kind() != PublishErrorKind::TimedOut }
    }
}

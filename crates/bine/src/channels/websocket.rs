//! Channels over WebSocket: follow and publish with one frame of JSON for each message.
//!
//! A WebSocket needs a task, which a suspended response does not. It suits clients that also
//! publish.

use std::collections::BTreeMap;
use std::future::{Future as _, poll_fn};
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use bine_http::websocket::CloseCode;
use bine_http::{Reply, Status};
use bine_push::{Applied, Command, Cursor, MessageBatch, Publish, Refused, Rest, Start, View};
use bine_server::{Answer, Disconnected, Incoming, Outgoing, Retained, timeout};
use serde_json::value::RawValue;

use super::Channels;
use super::access::{ChannelAction, ChannelClient, ChannelScope, Denied, HoldGuard, OwnedClient};
use super::batch::read_batch;
use super::clock::now;
use super::endpoint::{ChannelsEndpoint, Requested, receipts_json, scope_error};
use super::engine::Error;
use super::follow_request::FollowRequest;
use super::presence_guard::PresenceGuard;
use super::reader::Reader;
use super::status::status_of;
use super::subscription::{SubscriptionSpec, refuse};
use super::text_reply::finish_with_reason;
use crate::app_state::AppState;
use crate::websocket::{Message, Opening, Refused as Unopened, Upgrade, WebSocket};

/// The subprotocol. The server rejects clients that do not offer it.
const PROTOCOLS: &[&str] = &["bine.v1"];
/// Close codes are this number plus an HTTP status: 4404, 4410.
const PRIVATE: u16 = 4000;
/// The answer to any frame of a client that follows through a page of the program.
const PAGE_ONLY: &str = "the page alone says which channels, and takes what is published";

impl ChannelsEndpoint {
    /// Opens a WebSocket if the requested channels exist.
    pub(super) fn open(
        &self,
        follow_request: FollowRequest,
        client: &ChannelClient<'_>,
        asked: &Requested<'_>,
        out: &mut Outgoing<'_>,
    ) -> Result<Answer, Denied> {
        let request = asked.request;
        let (exchange, date) = (request.exchange, asked.clock.date());
        let FollowRequest { spec, start, session, .. } = follow_request;
        // After it switches channels, the client is present in them under the same name.
        let given =
            spec.presence_guard.as_ref().map(|presence_guard| Arc::clone(&presence_guard.session));
        let name = given.or_else(|| client.subject().or(session.as_deref()).map(Arc::from));
        let scopes = ScopeLoader::of(self.gate.scopes(), asked);
        let permission = Permission::Client(client.detach(name)?, scopes);
        let opening = match opening(&self.channels, permission, spec, start, request) {
            Ok(opening) => opening,
            Err(refused) => {
                refuse(out.buffer, exchange, &date, &refused);
                return Ok(Answer::Written { close: false });
            }
        };
        match opening.agree(&[], &date, out.buffer) {
            Ok(upgrade) => return Ok(Answer::Upgrade(upgrade)),
            Err(Unopened::Unfit(refusal)) => refusal.reply(out.buffer, exchange, &date),
            Err(Unopened::Foreign) => {
                let reply = Reply::begin(out.buffer, exchange, Status::FORBIDDEN, &date);
                finish_with_reason(reply, "only pages of this host may open this WebSocket");
            }
        }
        Ok(Answer::Written { close: false })
    }
}

/// The permission under which a client follows.
pub(super) enum Permission {
    /// Its own, from rules and grants; the loader, if the program has parts with rules of their own.
    Client(OwnedClient, Option<Box<ScopeLoader>>),
    /// That of a page, which has already checked access.
    Page(HoldGuard),
}

impl Permission {
    /// Sets the number of followed channels.
    fn count(&mut self, channels: usize) {
        match self {
            Self::Client(client, _) => client.hold.follow(channels),
            Self::Page(hold) => hold.follow(channels),
        }
    }
}

/// Prepares the WebSocket of a subscription.
///
/// # Errors
///
/// The channels cannot be followed.
pub(super) fn opening(
    channels: &Channels,
    mut permission: Permission,
    spec: SubscriptionSpec,
    start: Start,
    request: &Incoming<'_>,
) -> Result<Opening, Refused> {
    let is_cross_origin = spec.origin.is_some();
    permission.count(spec.channels.len());
    let mut reader = Reader::new(Arc::clone(&channels.0), spec, start);
    let first = reader.look().transpose()?;
    let follower = WebSocketFollower { channels: channels.clone(), permission, reader };
    let upgrade = Upgrade::of(request);
    let upgrade = if is_cross_origin { upgrade.allow_any_origin() } else { upgrade };
    Ok(upgrade.with_protocols(PROTOCOLS).opening(async |mut socket| {
        let (code, reason) = follower.run(first.map(Ok), &mut socket).await?;
        socket.close(code, &reason);
        Ok(())
    }))
}

/// Loads parts of the program for the frames of a client: for the request that opened the WebSocket.
pub(super) struct ScopeLoader {
    request: Retained,
    app: Arc<AppState>,
    /// The most parts that are loaded for a frame.
    most: usize,
}

impl ScopeLoader {
    fn of(most: usize, asked: &Requested<'_>) -> Option<Box<Self>> {
        let own =
            || Self { request: Retained::of(asked.request), app: Arc::clone(asked.app), most };
        (most > 0).then(|| Box::new(own()))
    }

    async fn load(&self, scope: &dyn ChannelScope) -> Result<(), String> {
        let loading = scope.load(&self.request.incoming(), &self.app);
        loading.await.map_err(|error| scope_error(&error).reason())
    }
}

/// A client that follows over WebSocket.
struct WebSocketFollower {
    channels: Channels,
    permission: Permission,
    reader: Reader,
}

/// The result of a read. `None`: the server ends.
type NextBatch = Option<Result<MessageBatch, Refused>>;

/// The reasons to continue.
enum WakeReason {
    Batch(NextBatch),
    Frame(Option<Message>),
    /// The grant or the requested range has reached its end.
    Deadline,
}

impl WebSocketFollower {
    /// Delivers messages and executes the client's frames until one side ends. Returns the close
    /// code and reason if it is the server.
    async fn run(
        mut self,
        first: NextBatch,
        socket: &mut WebSocket,
    ) -> Result<(CloseCode, String), Disconnected> {
        let (mut next_batch, mut has_sent_cursor, mut frame) = (first, false, Vec::new());
        if let Some(session) = self.reader.new_session() {
            socket.send(format!("{{\"session\":\"{session}\"}}")).await?;
        }
        loop {
            let granted_until = self.granted_until();
            if granted_until <= now() {
                let denied = Denied::of_end(granted_until);
                let code = CloseCode::new(PRIVATE + denied.status().code());
                return Ok((code.unwrap_or(CloseCode::POLICY_VIOLATION), denied.reason()));
            }
            let batch = match next_batch {
                Some(Ok(batch)) => batch,
                Some(Err(refused)) => {
                    let code = CloseCode::new(PRIVATE + status_of(&refused).code());
                    return Ok((code.unwrap_or(CloseCode::POLICY_VIOLATION), refused.to_string()));
                }
                None => return Ok((CloseCode::GOING_AWAY, "The server stops.".to_owned())),
            };
            if let Some(lost) = batch.lost {
                socket.send(format!("{{\"lost\":\"{lost}\"}}")).await?;
            }
            for message in &batch.messages {
                frame.clear();
                View::Ndjson.encode(batch.next.epoch, std::slice::from_ref(message), &mut frame);
                // Without its line break, a line is one JSON object.
                let object = str::from_utf8(&frame).unwrap_or_default();
                socket.send(object.trim_end()).await?;
            }
            has_sent_cursor |= !batch.messages.is_empty();
            let ends = match batch.rest {
                Rest::More => {
                    next_batch = self.reader.look();
                    continue;
                }
                Rest::Ended => return Ok((CloseCode::NORMAL, "The end was reached.".to_owned())),
                Rest::Closed => {
                    return Ok((CloseCode::NORMAL, "All channels are closed.".to_owned()));
                }
                Rest::Wait(wait_point) => wait_point.ends(),
            };
            if !has_sent_cursor && self.reader.has_cursor() {
                socket.send(format!("{{\"cursor\":\"{}\"}}", batch.next)).await?;
                has_sent_cursor = true;
            }
            let reason = self.wait(socket);
            let reason = match ends.unwrap_or(u64::MAX).min(granted_until) {
                u64::MAX => reason.await?,
                ends => {
                    let left = Duration::from_millis(ends.saturating_sub(now()));
                    timeout(left, reason, async || Ok(WakeReason::Deadline)).await?
                }
            };
            next_batch = match reason {
                WakeReason::Batch(next_batch) => next_batch,
                WakeReason::Deadline => self.reader.look(),
                WakeReason::Frame(None) => return Ok((CloseCode::NORMAL, String::new())),
                WakeReason::Frame(Some(message)) => {
                    let reply = self.reply(&message, batch.next).await;
                    socket.send(reply).await?;
                    self.reader.look()
                }
            };
        }
    }

    /// When the grant ends, in milliseconds since 1970.
    fn granted_until(&self) -> u64 {
        match &self.permission {
            Permission::Client(client, _) => client.grant_end(),
            Permission::Page(hold) => hold.grant_end(),
        }
    }

    fn owned_client(&self) -> Result<&OwnedClient, &'static str> {
        match &self.permission {
            Permission::Client(client, _) => Ok(client),
            Permission::Page(_) => Err(PAGE_ONLY),
        }
    }

    /// Waits for messages to deliver, or for a frame of the client.
    async fn wait(&mut self, socket: &mut WebSocket) -> Result<WakeReason, Disconnected> {
        let mut receiving = pin!(socket.receive());
        poll_fn(|task| {
            if let Poll::Ready(next_batch) = self.reader.poll(task) {
                return Poll::Ready(Ok(WakeReason::Batch(next_batch)));
            }
            if self.granted_until() == 0 {
                // The grant was revoked. The reader is registered by now, so a later revocation
                // wakes this task.
                return Poll::Ready(Ok(WakeReason::Deadline));
            }
            receiving.as_mut().poll(task).map(|frame| frame.map(WakeReason::Frame))
        })
        .await
    }

    /// Executes a frame and returns the reply. `{"publish": ..}` takes what a POST takes;
    /// `{"follow": [..]}` replaces the followed channels and keeps the position.
    async fn reply(&mut self, message: &Message, cursor: Cursor) -> String {
        match self.execute(message, cursor).await {
            Ok(reply) => reply,
            Err(reason) => format!("{{\"refused\":{}}}", serde_json::Value::from(reason)),
        }
    }

    async fn execute(&mut self, message: &Message, cursor: Cursor) -> Result<String, String> {
        const USAGE: &str = "say {\"publish\": ..} or {\"follow\": [..]}";
        let Message::Text(text) = message else { return Err(USAGE.to_owned()) };
        let frame: BTreeMap<String, Box<RawValue>> =
            serde_json::from_str(text).map_err(|error| format!("{error}; {USAGE}"))?;
        let mut frame = frame.into_iter();
        let (Some((word, value)), None) = (frame.next(), frame.next()) else {
            return Err(USAGE.to_owned());
        };
        match word.as_str() {
            "publish" => {
                let messages = read_batch(value.get().as_bytes())?;
                self.load_for(|client| client.check_batch(&messages)).await?;
                self.publish(messages).await
            }
            "follow" => {
                let names: Vec<Box<str>> = serde_json::from_str(value.get())
                    .map_err(|_| "`follow` is an array of names".to_owned())?;
                let check = |client: &ChannelClient<'_>| {
                    names.iter().try_for_each(|name| client.check(ChannelAction::Follow, name))
                };
                self.load_for(check).await?;
                self.follow(names.into(), cursor)
            }
            other => Err(format!("there is no `{other}`; {USAGE}")),
        }
    }

    /// Loads the parts of the program whose rules a check needs.
    async fn load_for(
        &self,
        check: impl Fn(&ChannelClient<'_>) -> Result<(), Denied>,
    ) -> Result<(), String> {
        let Permission::Client(owned, Some(loader)) = &self.permission else { return Ok(()) };
        for _ in 0..loader.most {
            let unloaded = {
                let client = owned.client();
                // A check that fails for another reason fails again when the frame is executed.
                let Err(_) = check(&client) else { break };
                client.take_unloaded()
            };
            let Some(scope) = unloaded else { break };
            loader.load(&*scope).await?;
        }
        Ok(())
    }

    async fn publish(&self, messages: Vec<bine_push::Draft>) -> Result<String, String> {
        let client = self.owned_client()?.client();
        client.check_batch(&messages).map_err(Denied::reason)?;
        let command = Command::Publish(Publish { messages, ..Publish::default() });
        match self.channels.execute_for(command, &client).await {
            Ok(Applied::Published(published)) => {
                let each = receipts_json(&self.channels, &published);
                let each = String::from_utf8_lossy(&each);
                Ok(format!("{{\"published\":{}}}", each.trim_end()))
            }
            Ok(_) => Ok("{\"published\":[]}".to_owned()),
            Err(Error::Refused(refused)) => Err(refused.to_string()),
            Err(Error::Storage(error)) => {
                Err(crate::Error::from(error).message().unwrap_or_default().to_owned())
            }
        }
    }

    fn follow(&mut self, names: Box<[Box<str>]>, cursor: Cursor) -> Result<String, String> {
        let Permission::Client(owned, _) = &mut self.permission else {
            return Err(PAGE_ONLY.to_owned());
        };
        let client = owned.client();
        for name in &names {
            client.check(ChannelAction::Follow, name).map_err(Denied::reason)?;
        }
        owned.depend_on(&client).map_err(Denied::reason)?;
        self.reader.switch(names).map_err(|refused| refused.to_string())?;
        let (engine, name) = (&self.channels.0, owned.name.as_deref());
        let presence_guard = PresenceGuard::of(engine, self.reader.channels(), name, Some(&client));
        let name =
            presence_guard.as_ref().map(|presence_guard| Arc::clone(&presence_guard.session));
        let is_new = presence_guard.as_ref().is_some_and(|presence_guard| presence_guard.is_new);
        self.reader.attend(presence_guard);
        owned.hold.follow(self.reader.channels().len());
        match name {
            Some(name) if is_new => {
                let reply = format!("{{\"cursor\":\"{cursor}\",\"session\":\"{name}\"}}");
                owned.name = Some(name);
                Ok(reply)
            }
            _ => Ok(format!("{{\"cursor\":\"{cursor}\"}}")),
        }
    }
}

//! Decides how channels are followed, and published in, by WebSocket: each message one frame of JSON.
//!
//! A WebSocket needs a task, where a held reply costs its place alone. It is for those who have something to say as well.

use std::collections::BTreeMap;
use std::future::{Future as _, poll_fn};
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use bine_http::websocket::CloseCode;
use bine_http::{Reply, Status};
use bine_push::{Applied, Command, Cursor, MessageBatch, Publish, Refused, Rest, Start, View};
use bine_server::{Answer, Clock, Gone, Incoming, Outgoing, timeout};
use serde_json::value::RawValue;

use super::Channels;
use super::access::{Action, Denied, Resident, Seated, Visitor};
use super::asked::Following;
use super::attendee::Attendee;
use super::batch::read_batch;
use super::clock::now;
use super::engine::Error;
use super::face::{Face, told};
use super::reader::Reader;
use super::status::status_of;
use super::text_reply::tell;
use super::watch::{Watch, refuse};
use crate::websocket::{Message, Opening, Refused as Unopened, Upgrade, WebSocket};

/// The subprotocol. A peer that names others and not this one does not mean this.
const PROTOCOLS: &[&str] = &["bine.v1"];
/// A close code of our own is this and an HTTP status: 4404, 4410.
const PRIVATE: u16 = 4000;
/// Who follows through a page of the program does only that.
const PAGE: &str = "the page alone says which channels, and takes what is published";

impl Face {
    /// Lets a peer follow by WebSocket, if there is what it asks for.
    pub(super) fn open(
        &self,
        asked: Following,
        visitor: &Visitor<'_>,
        request: &Incoming<'_>,
        clock: &Clock,
        out: &mut Outgoing<'_>,
    ) -> Result<Answer, Denied> {
        let (exchange, date) = (request.exchange, clock.date());
        let Following { watch, start, session, .. } = asked;
        // By the name that it has or was given it is present wherever it goes.
        let given = watch.attendee.as_ref().map(|attendee| Arc::clone(&attendee.session));
        let name = given.or_else(|| visitor.subject().or(session.as_deref()).map(Arc::from));
        let leave = Leave::Own(visitor.stay(name)?);
        let opening = match opening(&self.channels, leave, watch, start, request) {
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
                tell(reply, "only pages of this host may open this WebSocket");
            }
        }
        Ok(Answer::Written { close: false })
    }
}

/// By whose leave somebody follows.
pub(super) enum Leave {
    /// By what rules and grants say of them.
    Own(Resident),
    /// By that of the page that holds it, which has decided what they may.
    Page(Seated),
}

impl Leave {
    /// It is for so many channels from now on.
    fn count(&mut self, channels: usize) {
        match self {
            Self::Own(resident) => resident.seat.follow(channels),
            Self::Page(seat) => seat.follow(channels),
        }
    }
}

/// A WebSocket that follows, yet to be agreed on.
///
/// # Errors
///
/// There is nothing of that kind to follow.
pub(super) fn opening(
    channels: &Channels,
    mut leave: Leave,
    watch: Watch,
    start: Start,
    request: &Incoming<'_>,
) -> Result<Opening, Refused> {
    let is_invited = watch.origin.is_some();
    leave.count(watch.channels.len());
    let mut reader = Reader::new(Arc::clone(&channels.0), watch, start);
    let first = reader.look().transpose()?;
    let follower = Follower { channels: channels.clone(), leave, reader };
    let upgrade = Upgrade::of(request);
    let upgrade = if is_invited { upgrade.from_anywhere() } else { upgrade };
    Ok(upgrade.speaking(PROTOCOLS).opening(async |mut socket| {
        let (code, reason) = follower.talk(first.map(Ok), &mut socket).await?;
        socket.close(code, &reason);
        Ok(())
    }))
}

/// One who follows.
struct Follower {
    channels: Channels,
    leave: Leave,
    reader: Reader,
}

/// What a reader is owed. `None`: the server ends.
type Owed = Option<Result<MessageBatch, Refused>>;

/// What a follower waits for.
enum Heard {
    News(Owed),
    Said(Option<Message>),
    /// The end that it has set.
    Time,
}

impl Follower {
    /// Tells and hears until one of the two ends, and says why it is this one, if it is.
    async fn talk(
        mut self,
        first: Owed,
        socket: &mut WebSocket,
    ) -> Result<(CloseCode, String), Gone> {
        let (mut owed, mut knows_place, mut frame) = (first, false, Vec::new());
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
            let page = match owed {
                Some(Ok(page)) => page,
                Some(Err(refused)) => {
                    let code = CloseCode::new(PRIVATE + status_of(&refused).code());
                    return Ok((code.unwrap_or(CloseCode::POLICY_VIOLATION), refused.to_string()));
                }
                None => return Ok((CloseCode::GOING_AWAY, "The server stops.".to_owned())),
            };
            if let Some(lost) = page.lost {
                socket.send(format!("{{\"lost\":\"{lost}\"}}")).await?;
            }
            for message in &page.messages {
                frame.clear();
                View::Ndjson.encode(page.next.epoch, std::slice::from_ref(message), &mut frame);
                // A line without its end is an object.
                let object = str::from_utf8(&frame).unwrap_or_default();
                socket.send(object.trim_end()).await?;
            }
            knows_place |= !page.messages.is_empty();
            let ends = match page.rest {
                Rest::More => {
                    owed = self.reader.look();
                    continue;
                }
                Rest::Ended => return Ok((CloseCode::NORMAL, "The end was reached.".to_owned())),
                Rest::Closed => {
                    return Ok((CloseCode::NORMAL, "All channels are closed.".to_owned()));
                }
                Rest::Wait(parking) => parking.ends(),
            };
            if !knows_place && self.reader.has_place() {
                socket.send(format!("{{\"cursor\":\"{}\"}}", page.next)).await?;
                knows_place = true;
            }
            let heard = self.hear(socket);
            let heard = match ends.unwrap_or(u64::MAX).min(granted_until) {
                u64::MAX => heard.await?,
                ends => {
                    let left = Duration::from_millis(ends.saturating_sub(now()));
                    timeout(left, heard, async || Ok(Heard::Time)).await?
                }
            };
            owed = match heard {
                Heard::News(owed) => owed,
                Heard::Time => self.reader.look(),
                Heard::Said(None) => return Ok((CloseCode::NORMAL, String::new())),
                Heard::Said(Some(message)) => {
                    let answer = self.answer(&message, page.next).await;
                    socket.send(answer).await?;
                    self.reader.look()
                }
            };
        }
    }

    /// In milliseconds since 1970.
    fn granted_until(&self) -> u64 {
        match &self.leave {
            Leave::Own(resident) => resident.ends(),
            Leave::Page(seat) => seat.ends(),
        }
    }

    fn resident(&self) -> Result<&Resident, &'static str> {
        match &self.leave {
            Leave::Own(resident) => Ok(resident),
            Leave::Page(_) => Err(PAGE),
        }
    }

    /// Waits until there is something for the peer, or the peer says something.
    async fn hear(&mut self, socket: &mut WebSocket) -> Result<Heard, Gone> {
        let mut receiving = pin!(socket.receive());
        poll_fn(|task| {
            if let Poll::Ready(owed) = self.reader.poll(task) {
                return Poll::Ready(Ok(Heard::News(owed)));
            }
            if self.granted_until() == 0 {
                // It was revoked. Looked for where it waits already: what is revoked from here on wakes it.
                return Poll::Ready(Ok(Heard::Time));
            }
            receiving.as_mut().poll(task).map(|said| said.map(Heard::Said))
        })
        .await
    }

    /// What it is told of what it said: `{"publish": ..}` takes what a POST takes, `{"follow": [..]}` follows these
    /// channels instead, from the same place on.
    async fn answer(&mut self, message: &Message, cursor: Cursor) -> String {
        match self.obey(message, cursor).await {
            Ok(answer) => answer,
            Err(reason) => format!("{{\"refused\":{}}}", serde_json::Value::from(reason)),
        }
    }

    async fn obey(&mut self, message: &Message, cursor: Cursor) -> Result<String, String> {
        const WORDS: &str = "say {\"publish\": ..} or {\"follow\": [..]}";
        let Message::Text(text) = message else { return Err(WORDS.to_owned()) };
        let said: BTreeMap<String, Box<RawValue>> =
            serde_json::from_str(text).map_err(|error| format!("{error}; {WORDS}"))?;
        let mut said = said.into_iter();
        let (Some((word, value)), None) = (said.next(), said.next()) else {
            return Err(WORDS.to_owned());
        };
        match word.as_str() {
            "publish" => self.publish(read_batch(value.get().as_bytes())?).await,
            "follow" => {
                let names: Vec<Box<str>> = serde_json::from_str(value.get())
                    .map_err(|_| "`follow` is an array of names".to_owned())?;
                self.follow(names.into(), cursor)
            }
            other => Err(format!("there is no `{other}`; {WORDS}")),
        }
    }

    async fn publish(&self, messages: Vec<bine_push::Draft>) -> Result<String, String> {
        let visitor = self.resident()?.visitor();
        visitor.check_batch(&messages).map_err(Denied::reason)?;
        let order = Command::Publish(Publish { messages, ..Publish::default() });
        match self.channels.order_by(order, &visitor).await {
            Ok(Applied::Published(published)) => {
                let each = told(&self.channels, &published);
                let each = String::from_utf8_lossy(&each);
                Ok(format!("{{\"published\":{}}}", each.trim_end()))
            }
            Ok(_) => Ok("{\"published\":[]}".to_owned()),
            Err(Error::Refused(refused)) => Err(refused.to_string()),
            Err(Error::NotKept(error)) => {
                Err(crate::Error::from(error).message().unwrap_or_default().to_owned())
            }
        }
    }

    fn follow(&mut self, names: Box<[Box<str>]>, cursor: Cursor) -> Result<String, String> {
        let Leave::Own(resident) = &mut self.leave else { return Err(PAGE.to_owned()) };
        let visitor = resident.visitor();
        for name in &names {
            visitor.check(Action::Follow, name).map_err(Denied::reason)?;
        }
        self.reader.switch(names).map_err(|refused| refused.to_string())?;
        let (engine, name) = (&self.channels.0, resident.name.as_deref());
        let attendee = Attendee::of(engine, self.reader.channels(), name, Some(&visitor));
        let name = attendee.as_ref().map(|attendee| Arc::clone(&attendee.session));
        let is_new = attendee.as_ref().is_some_and(|attendee| attendee.is_new);
        self.reader.attend(attendee);
        resident.seat.follow(self.reader.channels().len());
        match name {
            Some(name) if is_new => {
                let answer = format!("{{\"cursor\":\"{cursor}\",\"session\":\"{name}\"}}");
                resident.name = Some(name);
                Ok(answer)
            }
            _ => Ok(format!("{{\"cursor\":\"{cursor}\"}}")),
        }
    }
}

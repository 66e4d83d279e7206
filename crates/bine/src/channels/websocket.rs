//! Decides how channels are followed, and published in, by WebSocket: each message one frame of JSON.
//!
//! A WebSocket needs a task and is woken by every publication, where a held reply costs its place alone and is told of
//! its own channels only. It is for those who have something to say as well.

use std::collections::BTreeMap;
use std::future::{Future as _, poll_fn};
use std::pin::pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use bine_http::websocket::Code;
use bine_http::{Reply, Status};
use bine_pipeline::{Answer, Clock, Gone, Incoming, Outgoing, timeout};
use bine_push::{Applied, Cursor, Holes, Order, Page, Publish, Refused, Rest, Start, View};
use serde_json::value::RawValue;

use super::Channels;
use super::access::Access;
use super::batch::read_batch;
use super::engine::{Engine, Error, now};
use super::face::{Face, tell, told};
use super::watch::{Watch, refuse, status_of};
use crate::websocket::{Message, Refused as Unopened, Upgrade, WebSocket};

/// The subprotocol. A peer that names others and not this one does not mean this.
const PROTOCOLS: &[&str] = &["bine.v1"];
/// A close code of our own is this and an HTTP status: 4404, 4410.
const PRIVATE: u16 = 4000;

impl Face {
    /// Lets a peer follow by WebSocket, if there is what it asks for.
    pub(super) fn open(
        &self,
        watch: Watch,
        start: Start,
        request: &Incoming<'_>,
        clock: &Clock,
        out: &mut Outgoing<'_>,
    ) -> Answer {
        let (exchange, date) = (request.exchange, clock.date());
        let mut follower = Follower {
            channels: self.channels.clone(),
            may_publish: self.access == Access::Everything,
            holes: watch.holes,
            watch,
            start,
        };
        if let Some(Err(refused)) = follower.read() {
            refuse(out.buffer, exchange, &date, &refused);
            return Answer::Written { close: false };
        }
        let opening = Upgrade::of(request).speaking(PROTOCOLS).opening(async |mut socket| {
            let (code, reason) = follower.talk(&mut socket).await?;
            socket.close(code, &reason);
            Ok(())
        });
        match opening.agree(&[], &date, out.buffer) {
            Ok(upgrade) => return Answer::Upgrade(upgrade),
            Err(Unopened::Unfit(refusal)) => refusal.reply(out.buffer, exchange, &date),
            Err(Unopened::Foreign) => {
                let reply = Reply::begin(out.buffer, exchange, Status::FORBIDDEN, &date);
                tell(reply, "only pages of this host may open this WebSocket");
            }
        }
        Answer::Written { close: false }
    }
}

/// One who follows.
struct Follower {
    channels: Channels,
    may_publish: bool,
    watch: Watch,
    /// Where it is.
    start: Start,
    holes: Holes,
}

/// What a follower waits for.
enum Heard {
    News,
    Said(Option<Message>),
}

impl Follower {
    /// What it is owed now. `None`: the server ends.
    fn read(&mut self) -> Option<Result<Page, Refused>> {
        let names = self.watch.names();
        let subscription = self.watch.subscription(&names, self.start, self.holes);
        self.channels.0.hub(|hub| hub.read(&subscription, now()))
    }

    /// Tells and hears until one of the two ends, and says why it is this one, if it is.
    async fn talk(mut self, socket: &mut WebSocket) -> Result<(Code, String), Gone> {
        let place = Place::among(Arc::clone(&self.channels.0));
        let (mut knows_place, mut frame) = (false, Vec::new());
        loop {
            let seen = place.version();
            let page = match self.read() {
                Some(Ok(page)) => page,
                Some(Err(refused)) => {
                    let code = Code::new(PRIVATE + status_of(&refused).code());
                    return Ok((code.unwrap_or(Code::POLICY), refused.to_string()));
                }
                None => return Ok((Code::GOING_AWAY, "The server stops.".to_owned())),
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
            // Before its range begins it has no place: it looks again when something was published.
            if Watch::ahead(self.start, &page, now()).is_none() {
                (self.start, self.holes) = (Start::After(page.next), Holes::Tell);
                knows_place |= !page.messages.is_empty();
            }
            let ends = match page.rest {
                Rest::More => continue,
                Rest::Ended => return Ok((Code::NORMAL, "The end was reached.".to_owned())),
                Rest::Closed => return Ok((Code::NORMAL, "All channels are closed.".to_owned())),
                Rest::Wait(parking) => parking.ends(),
            };
            if !knows_place && matches!(self.start, Start::After(_)) {
                socket.send(format!("{{\"cursor\":\"{}\"}}", page.next)).await?;
                knows_place = true;
            }
            let heard = place.hear(seen, socket);
            let heard = match ends {
                None => heard.await?,
                Some(ends) => {
                    let left = Duration::from_millis(ends.saturating_sub(now()));
                    timeout(left, heard, async || Ok(Heard::News)).await?
                }
            };
            match heard {
                Heard::News => {}
                Heard::Said(None) => return Ok((Code::NORMAL, String::new())),
                Heard::Said(Some(message)) => {
                    let answer = self.answer(&message, page.next).await;
                    socket.send(answer).await?;
                }
            }
        }
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
            "publish" if !self.may_publish => {
                Err("publishing is not open to everybody here".to_owned())
            }
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
        let order = Order::Publish(Publish { messages, ..Publish::default() });
        match self.channels.order(order).await {
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
        let before = std::mem::replace(&mut self.watch.channels, names);
        match self.read() {
            Some(Err(refused)) => {
                self.watch.channels = before;
                Err(refused.to_string())
            }
            _ => Ok(format!("{{\"cursor\":\"{cursor}\"}}")),
        }
    }
}

/// Wakes tasks when something was published.
#[derive(Default)]
pub(super) struct News {
    version: AtomicU64,
    wakers: Mutex<Wakers>,
}

/// By the numbers of their places.
#[derive(Default)]
struct Wakers {
    all: Vec<Option<Waker>>,
    vacant: Vec<usize>,
}

impl News {
    /// Something was.
    pub(super) fn ring(&self) {
        self.version.fetch_add(1, Ordering::AcqRel);
        self.wakers().all.iter_mut().filter_map(Option::take).for_each(Waker::wake);
    }

    fn wakers(&self) -> MutexGuard<'_, Wakers> {
        self.wakers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A task's place among those who are woken.
struct Place {
    engine: Arc<Engine>,
    number: usize,
}

impl Place {
    fn among(engine: Arc<Engine>) -> Self {
        let mut wakers = engine.news.wakers();
        let number = wakers.vacant.pop().unwrap_or(wakers.all.len());
        if number == wakers.all.len() {
            wakers.all.push(None);
        }
        drop(wakers);
        Self { engine, number }
    }

    fn version(&self) -> u64 {
        self.engine.news.version.load(Ordering::Acquire)
    }

    /// Waits until something was published since `seen`, or the peer says something.
    async fn hear(&self, seen: u64, socket: &mut WebSocket) -> Result<Heard, Gone> {
        let mut receiving = pin!(socket.receive());
        poll_fn(|task| {
            if self.poll(seen, task).is_ready() {
                return Poll::Ready(Ok(Heard::News));
            }
            receiving.as_mut().poll(task).map(|said| said.map(Heard::Said))
        })
        .await
    }

    fn poll(&self, seen: u64, task: &mut Context<'_>) -> Poll<()> {
        // Before the look, or news in between would wake nobody.
        self.engine.news.wakers().all[self.number] = Some(task.waker().clone());
        if self.version() == seen { Poll::Pending } else { Poll::Ready(()) }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut wakers = self.engine.news.wakers();
        wakers.all[self.number] = None;
        wakers.vacant.push(self.number);
        if wakers.vacant.len() == wakers.all.len() {
            // A crowd that has gone leaves no memory behind.
            *wakers = Wakers::default();
        }
    }
}

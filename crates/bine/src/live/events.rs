//! Events: calls one or all clients that listen, and reports who starts and stops listening.
//!
//! An event is declared with a name and reaches the clients that listen at this moment; it is not
//! stored. Pages receive events in the stream that they follow anyway, other programs in a stream
//! of their own.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard};
use std::time::Duration;

use bine_http::Status;
use bine_log as log;
use bine_push::{Command, Publish};
use serde::Serialize;

use super::draft;
use crate::app_state::AppState;
use crate::arguments::{FromRequest, Needs, Rejection, RequestParts};
use crate::channels::{
    ChannelName, Durability, Engine, Follower, Interruption, ReceivedMessage, Retention, Settings,
};
use crate::error::Error;
use crate::respond::Response;
use crate::service::{Call, Caller};
use crate::signal::Signal;
use crate::wire;

/// The events of a program, as an argument of its pages and services.
///
/// ```
/// use bine::prelude::*;
///
/// #[page(POST "/ring")]
/// async fn ring(events: Events) -> Result<Response, Error> {
///     events.broadcast("bell", "somebody is at the door")?;
///     Ok(Response::text("rung"))
/// }
///
/// let app = App::new().event("bell").page(ring);
/// # drop(app);
/// ```
///
/// A page's own script receives it with `on("bell", text => ..)`.
#[derive(Clone)]
pub struct Events(Arc<Inner>);

struct Inner {
    engine: Arc<Engine>,
    /// In the order of their declarations.
    all: RwLock<Vec<Arc<Event>>>,
    /// Number of the next listener.
    next: AtomicU64,
}

struct Event {
    name: Box<str>,
    /// Whether only logged-in users may listen.
    is_for_users: AtomicBool,
    /// The channel that reaches all listeners.
    channel: Arc<str>,
    /// The channel that reports changes in the number of listeners.
    monitor: Arc<str>,
    listeners: Mutex<Listeners>,
    /// The number of listeners, as a signal that regions can read.
    count: Signal<usize>,
}

/// The listeners of one event, in the order in which `signal` calls them.
#[derive(Default)]
struct Listeners {
    all: BTreeMap<u64, Arc<str>>,
    /// The listener that was called last.
    turn: u64,
}

/// A client that listens to events, until it is dropped.
pub(super) struct EventListener {
    own: Arc<Inner>,
    number: u64,
    /// The channel of this client alone.
    inbox: Arc<str>,
    events: Vec<Arc<Event>>,
}

/// Receives changes in the number of an event's listeners. See [`Events::monitor`].
pub struct Monitor(Follower);

/// A change in the number of listeners.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ListenerChange {
    /// A listener has joined.
    Joined {
        /// The number of listeners now.
        listeners: usize,
    },
    /// A listener has ended.
    Left {
        /// The number of listeners now.
        listeners: usize,
    },
}

/// Messages that a channel keeps for slow readers; a reader further back misses messages.
const MESSAGES_KEPT: u64 = 256;
/// Listeners of one event at one time.
const MAX_LISTENERS: usize = 100_000;

impl Events {
    /// Creates the events with these names. The flag marks those for logged-in users only.
    pub(super) fn new(engine: &Arc<Engine>, names: &[(&'static str, bool)]) -> Self {
        let (engine, all, next) = (Arc::clone(engine), RwLock::default(), AtomicU64::new(0));
        let own = Self(Arc::new(Inner { engine, all, next }));
        for (name, is_for_users) in names {
            own.declare(name, *is_for_users);
        }
        own
    }

    /// Adds an event, or changes the permitted listeners of an existing one. Clients that listen
    /// already continue.
    pub(crate) fn declare(&self, name: &str, is_for_users: bool) {
        let mut all = self.0.all.write().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = all.iter().find(|event| *event.name == *name) {
            known.is_for_users.store(is_for_users, Ordering::Relaxed);
            return;
        }
        let event = Event {
            name: name.into(),
            is_for_users: is_for_users.into(),
            channel: format!("event-{name}").into(),
            monitor: format!("monitor-{name}").into(),
            listeners: Mutex::default(),
            count: Signal::default(),
        };
        for channel in [&event.channel, &event.monitor] {
            create_channel(&self.0.engine, channel);
        }
        all.push(Arc::new(event));
    }

    /// Calls all clients that listen to this event.
    ///
    /// # Errors
    ///
    /// The program has no event of this name, or `data` cannot be written as JSON or is too large.
    pub fn broadcast(&self, name: &str, data: impl Serialize) -> Result<(), Error> {
        let event = self.event(name)?;
        self.0.publish(&event.channel, "event", &encode(name, data)?)
    }

    /// Calls exactly one listener, each in turn. Returns false if there is no listener. The event
    /// is lost if that listener's connection has just broken.
    ///
    /// # Errors
    ///
    /// The same as for [`Events::broadcast`].
    pub fn notify_one(&self, name: &str, data: impl Serialize) -> Result<bool, Error> {
        let (event, body) = (self.event(name)?, encode(name, data)?);
        let Some(inbox) = event.listeners().next() else { return Ok(false) };
        self.0.publish(&inbox, "event", &body)?;
        Ok(true)
    }

    /// Returns how many clients listen to this event. A region that displays the number updates.
    pub fn listeners(&self, name: &str) -> usize {
        match self.event(name) {
            Ok(event) => event.count.get(),
            Err(error) => {
                error.chain().for_each(|reason| log::error(format_args!("{reason}")));
                0
            }
        }
    }

    /// Reports from now on when clients start and stop listening.
    ///
    /// # Errors
    ///
    /// The program has no event of this name.
    pub fn monitor(&self, name: &str) -> Result<Monitor, Error> {
        let channel = (*self.event(name)?.monitor).into();
        Ok(Monitor(Follower::new(Arc::clone(&self.0.engine), Box::new([channel]))))
    }

    fn event(&self, name: &str) -> Result<Arc<Event>, Error> {
        let known = self.0.all().iter().find(|event| *event.name == *name).cloned();
        known.ok_or_else(|| {
            let reason = format!("there is no event `{name}`: add `.event({name:?})` to the app");
            std::io::Error::other(reason).into()
        })
    }

    /// Adds a client that listens to these events.
    ///
    /// # Errors
    ///
    /// The response for the client: the event does not exist, needs a login, or has too many
    /// listeners.
    pub(super) fn listen(
        &self,
        names: &[String],
        is_user: bool,
    ) -> Result<EventListener, Response> {
        let events = self.named(names, is_user)?;
        if events.iter().any(|event| event.listeners().all.len() >= MAX_LISTENERS) {
            let message = "This event has too many listeners.";
            return Err(Response::error(Status::SERVICE_UNAVAILABLE, message));
        }
        let number = self.0.next.fetch_add(1, Ordering::Relaxed);
        let inbox: Arc<str> = format!("inbox-{number}").into();
        create_channel(&self.0.engine, &inbox);
        let listener = EventListener { own: Arc::clone(&self.0), number, inbox, events };
        listener.each(|event| event.update(&listener, true));
        Ok(listener)
    }

    /// The channels of these events, which reach all listeners.
    pub(super) fn channels(
        &self,
        names: &[String],
        is_user: bool,
    ) -> Result<Vec<Box<str>>, Response> {
        let events = self.named(names, is_user)?.into_iter();
        Ok(events.map(|event| (*event.channel).into()).collect())
    }

    /// Whether any event with one of these names requires a login.
    pub(super) fn are_for_users(&self, names: &[String]) -> bool {
        let is_named = |event: &Event| names.iter().any(|name| **name == *event.name);
        self.0.all().iter().any(|event| event.is_for_users() && is_named(event))
    }

    /// The events with these names, each once.
    fn named(&self, names: &[String], is_user: bool) -> Result<Vec<Arc<Event>>, Response> {
        let all = self.0.all();
        let mut events: Vec<Arc<Event>> = Vec::with_capacity(names.len());
        for name in names {
            let event = all.iter().find(|event| *event.name == **name).ok_or_else(|| {
                let known: Vec<&str> = all.iter().map(|event| &*event.name).collect();
                let known = known.join(", ");
                let message = format!("There is no event `{name}` here; there are: {known}.");
                Response::error(Status::NOT_FOUND, message)
            })?;
            if event.is_for_users() && !is_user {
                let message = format!("Only users hear the event `{name}`: log in.");
                return Err(Response::error(Status::UNAUTHORIZED, message));
            }
            if !events.iter().any(|known| Arc::ptr_eq(known, event)) {
                events.push(Arc::clone(event));
            }
        }
        Ok(events)
    }
}

impl Inner {
    fn all(&self) -> RwLockReadGuard<'_, Vec<Arc<Event>>> {
        self.all.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn publish(&self, channel: &Arc<str>, event: &str, body: &str) -> Result<(), Error> {
        let messages = vec![draft(channel, event, body)];
        let published = Command::Publish(Publish { messages, ..Publish::default() });
        self.engine.execute(published).wait()?;
        Ok(())
    }
}

impl Event {
    fn update(&self, listener: &EventListener, joins: bool) {
        let mut listeners = self.listeners();
        if joins {
            listeners.all.insert(listener.number, Arc::clone(&listener.inbox));
        } else {
            listeners.all.remove(&listener.number);
        }
        let count = listeners.all.len();
        // Publishes under the lock, so that the messages keep their order.
        let kind = if joins { "join" } else { "leave" };
        let _ = listener.own.publish(&self.monitor, kind, &count.to_string());
        self.count.set(count);
    }

    fn is_for_users(&self) -> bool {
        self.is_for_users.load(Ordering::Relaxed)
    }

    fn listeners(&self) -> MutexGuard<'_, Listeners> {
        self.listeners.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Listeners {
    fn next(&mut self) -> Option<Arc<str>> {
        let later = self.all.range(self.turn.saturating_add(1)..).next();
        let (number, inbox) = later.or_else(|| self.all.first_key_value())?;
        self.turn = *number;
        Some(Arc::clone(inbox))
    }
}

impl EventListener {
    /// The channels that carry its events.
    pub(super) fn channels(&self) -> impl Iterator<Item = &Arc<str>> {
        let events = self.events.iter().map(|event| &event.channel);
        events.chain([&self.inbox])
    }

    fn each(&self, action: impl Fn(&Event)) {
        self.events.iter().for_each(|event| action(event));
    }
}

impl Drop for EventListener {
    fn drop(&mut self) {
        self.each(|event| event.update(self, false));
        let _ = self.own.engine.execute(Command::Remove(Arc::clone(&self.inbox))).wait();
    }
}

impl Monitor {
    /// Waits for the next change. `None`: the server has stopped. A slow reader may miss changes;
    /// the number in the next one is right.
    pub async fn next(&mut self) -> Option<ListenerChange> {
        loop {
            match MonitorMessage::of(self.0.next().await?) {
                MonitorMessage::Change(change) => return Some(change),
                MonitorMessage::Skip => {}
                MonitorMessage::Closed => return None,
            }
        }
    }

    /// Blocks for the next change, at most `at_most`.
    pub fn wait(&mut self, at_most: Duration) -> Option<ListenerChange> {
        match MonitorMessage::of(self.0.wait(at_most)?) {
            MonitorMessage::Change(change) => Some(change),
            MonitorMessage::Skip | MonitorMessage::Closed => None,
        }
    }
}

/// A message of a monitor's channel.
enum MonitorMessage {
    Change(ListenerChange),
    /// The message is skipped; more may follow.
    Skip,
    Closed,
}

impl MonitorMessage {
    fn of(next: Result<ReceivedMessage, Interruption>) -> Self {
        let message = match next {
            Ok(message) => message,
            Err(Interruption::Gap { .. } | Interruption::TimedOut) => return Self::Skip,
            Err(Interruption::Refused(_)) => return Self::Closed,
        };
        let count = message.text().ok().and_then(|text| text.parse().ok());
        match (message.event(), count) {
            (Some("join"), Some(listeners)) => Self::Change(ListenerChange::Joined { listeners }),
            (_, Some(listeners)) => Self::Change(ListenerChange::Left { listeners }),
            (_, None) => Self::Skip,
        }
    }
}

/// Creates a channel that keeps recent messages for slow readers.
pub(super) fn create_channel(engine: &Arc<Engine>, channel: &Arc<str>) {
    let retention = Retention { messages: MESSAGES_KEPT, ..Retention::default() };
    let durability = Durability::Memory;
    let settings = Settings { retention, durability, ..Settings::default() };
    let name = ChannelName::Given(Arc::clone(channel));
    let create =
        Command::Create { name, settings, first: Vec::new(), is_closed: false, fork: None };
    // The name is new and the channel small, so creation cannot fail.
    let _ = engine.execute(create).wait();
}

fn encode(name: &str, data: impl Serialize) -> Result<String, Error> {
    let text = |text: Vec<u8>| String::from_utf8_lossy(&text).into_owned();
    let (name, data) = (text(wire::to_json(name)?), text(wire::to_json(&data)?));
    Ok(format!("{{\"name\":{name},\"data\":{data}}}"))
}

impl FromRequest for Events {
    fn from_request(
        request: &mut RequestParts<'_>,
        _name: &'static str,
    ) -> Result<Self, Rejection> {
        Ok(events_of(request.app))
    }

    fn needs(_needs: &mut Needs) {}
}

/// The events of a program.
fn events_of(app: &AppState) -> Events {
    app.states.find::<Events>().cloned().expect("each program has its events, be they none")
}

impl Call {
    /// The program's events. Publish them in `call.after_commit(move || ..)`, as with channels.
    pub fn events(&self) -> Events {
        self.caller().events()
    }
}

impl Caller {
    /// The program's events, declared with [`App::event`](crate::App::event).
    pub fn events(&self) -> Events {
        events_of(self.app())
    }
}

impl fmt::Debug for Events {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.debug_list().entries(self.0.all().iter().map(|event| &event.name)).finish()
    }
}

impl fmt::Debug for Monitor {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str("Monitor")
    }
}

//! Events: calls one or all clients that listen, and reports who starts and stops listening.
//!
//! An event is declared with a name and reaches the clients that listen at this moment; it is not
//! stored. Pages receive events in the stream that they follow anyway, other programs in a stream
//! of their own.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, RwLock, RwLockReadGuard, Weak};
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
use crate::shared_state::{RosterChange, RosterChangeKind, RosterObserver, SharedState};
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
    /// The state that nodes share, in a program.
    state: OnceLock<SharedState>,
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
    /// The number of listeners on all nodes, as a signal that regions can read.
    count: Signal<usize>,
}

/// The listeners of one event, in the order in which `signal` calls them.
#[derive(Default)]
struct Listeners {
    all: BTreeMap<u64, Arc<str>>,
    /// The listener that was called last.
    turn: u64,
    /// The number of listeners of each other node.
    elsewhere: BTreeMap<Arc<str>, usize>,
    /// The calls of one listener so far, which decide the next node.
    calls: usize,
}

/// A listener on some node.
enum NextListener {
    /// The channel of a client of this node.
    Here(Arc<str>),
    /// The name of another node.
    At(Arc<str>),
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
/// Listeners of one event at one node at one time.
const MAX_LISTENERS: usize = 100_000;
/// The beginning of the places in the shared state that count listeners, one key for each node.
const PREFIX: &str = "event:";
/// The topics of messages to other nodes: for all listeners, and for one.
const FOR_ALL: &str = "event";
const FOR_ONE: &str = "event for one";
/// How often a message for one listener is passed on, by nodes whose listeners have just left.
const MAX_HOPS: u64 = 4;

impl Events {
    /// Creates the events with these names. The flag marks those for logged-in users only.
    pub(super) fn new(engine: &Arc<Engine>, names: &[(&'static str, bool)]) -> Self {
        let (engine, all, next) = (Arc::clone(engine), RwLock::default(), AtomicU64::new(0));
        let own = Self(Arc::new(Inner { engine, all, next, state: OnceLock::new() }));
        for (name, is_for_users) in names {
            own.declare(name, *is_for_users);
        }
        own
    }

    /// Shares the events with other nodes by this state. Call it before the store is open.
    pub(super) fn share(&self, state: &SharedState) {
        // Called once.
        let _ = self.0.state.set(state.clone());
        state.observe(Arc::new(ListenerCounts(Arc::downgrade(&self.0))));
        for topic in [FOR_ALL, FOR_ONE] {
            let own = Arc::downgrade(&self.0);
            state.receive(topic, move |body| {
                if let Some(own) = own.upgrade() {
                    own.receive(topic, body);
                }
            });
        }
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
        if let Some(state) = self.0.state.get() {
            for (node, count) in state.roster(&place(name), usize::MAX).first {
                self.0.count_elsewhere(&event, &node, count.parse().unwrap_or_default());
            }
        }
        all.push(Arc::new(event));
    }

    /// Calls all clients that listen to this event.
    ///
    /// # Errors
    ///
    /// The program has no event of this name, or `data` cannot be written as JSON or is too large.
    pub fn broadcast(&self, name: &str, data: impl Serialize) -> Result<(), Error> {
        let (event, body) = (self.event(name)?, encode(name, data)?);
        match self.0.shared() {
            Some(state) => Ok(state.send(FOR_ALL, None, &message(name, &body, 0))?),
            None => self.0.publish(&event.channel, "event", &body),
        }
    }

    /// Calls exactly one listener, each in turn, whichever node it follows. Returns false if there is
    /// no listener. The event is lost if that listener's connection, or its node, has just failed.
    ///
    /// # Errors
    ///
    /// The same as for [`Events::broadcast`].
    pub fn notify_one(&self, name: &str, data: impl Serialize) -> Result<bool, Error> {
        let (event, body) = (self.event(name)?, encode(name, data)?);
        let Some(next) = event.listeners().next() else { return Ok(false) };
        match (next, self.0.shared()) {
            (NextListener::Here(inbox), _) => self.0.publish(&inbox, "event", &body)?,
            (NextListener::At(node), Some(state)) => {
                state.send(FOR_ONE, Some(&node), &message(name, &body, 0))?;
            }
            (NextListener::At(_), None) => return Ok(false),
        }
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

    /// The state that several nodes share; `None` on one machine.
    fn shared(&self) -> Option<&SharedState> {
        self.state.get().filter(|state| state.is_shared())
    }

    fn named(&self, name: &str) -> Option<Arc<Event>> {
        self.all().iter().find(|event| *event.name == *name).cloned()
    }

    /// Passes a message of another node, or of this one, to the listeners here.
    fn receive(&self, topic: &str, message: &str) {
        let Some((name, body, hops)) = read_message(message) else { return };
        let Some(event) = self.named(&name) else { return };
        if topic == FOR_ALL {
            // The engine has ended at worst, and so have all listeners.
            let _ = self.publish(&event.channel, "event", &body);
            return;
        }
        let next = event.listeners().next_from(hops > MAX_HOPS);
        match (next, self.shared()) {
            (Some(NextListener::Here(inbox)), _) => drop(self.publish(&inbox, "event", &body)),
            (Some(NextListener::At(node)), Some(state)) => {
                state.send_later(FOR_ONE, Some(&node), &self::message(&name, &body, hops + 1));
            }
            _ => {}
        }
    }

    /// Notes the number of listeners at another node.
    fn count_elsewhere(&self, event: &Event, node: &Arc<str>, count: usize) {
        if self.state.get().and_then(SharedState::node) == Some(node) {
            return;
        }
        let mut listeners = event.listeners();
        let before = listeners.count();
        match count {
            0 => drop(listeners.elsewhere.remove(node)),
            count => drop(listeners.elsewhere.insert(Arc::clone(node), count)),
        }
        event.report(self, &listeners, before);
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
        let before = listeners.count();
        if joins {
            listeners.all.insert(listener.number, Arc::clone(&listener.inbox));
        } else {
            listeners.all.remove(&listener.number);
        }
        if let Some((state, node)) = listener.own.shared().and_then(|s| Some((s, s.node()?))) {
            match listeners.all.len() {
                0 => state.leave(&place(&self.name), node),
                count => state.enter(&place(&self.name), node, &count.to_string()),
            }
        }
        self.report(&listener.own, &listeners, before);
    }

    /// Reports a changed number of listeners. The caller holds the lock, so that the messages keep
    /// their order.
    fn report(&self, own: &Inner, listeners: &Listeners, before: usize) {
        let count = listeners.count();
        if count != before {
            let kind = if count > before { "join" } else { "leave" };
            let _ = own.publish(&self.monitor, kind, &count.to_string());
            self.count.set(count);
        }
    }

    fn is_for_users(&self) -> bool {
        self.is_for_users.load(Ordering::Relaxed)
    }

    fn listeners(&self) -> MutexGuard<'_, Listeners> {
        self.listeners.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Listeners {
    /// The number of listeners on all nodes.
    fn count(&self) -> usize {
        self.all.len() + self.elsewhere.values().sum::<usize>()
    }

    /// The next listener. Each node gets as many turns in a row as it has listeners.
    fn next(&mut self) -> Option<NextListener> {
        let mut turn = self.calls.checked_rem(self.count())?;
        self.calls = self.calls.wrapping_add(1);
        if turn < self.all.len() {
            return self.next_here().map(NextListener::Here);
        }
        turn -= self.all.len();
        for (node, count) in &self.elsewhere {
            if turn < *count {
                return Some(NextListener::At(Arc::clone(node)));
            }
            turn -= count;
        }
        None
    }

    /// The next listener for a message that another node has passed on: one of this node, if it has
    /// any. `is_last`: the message is not passed on again.
    fn next_from(&mut self, is_last: bool) -> Option<NextListener> {
        match self.next_here() {
            Some(inbox) => Some(NextListener::Here(inbox)),
            None if is_last => None,
            None => self.next(),
        }
    }

    fn next_here(&mut self) -> Option<Arc<str>> {
        let later = self.all.range(self.turn.saturating_add(1)..).next();
        let (number, inbox) = later.or_else(|| self.all.first_key_value())?;
        self.turn = *number;
        Some(Arc::clone(inbox))
    }
}

/// Counts the listeners of other nodes.
struct ListenerCounts(Weak<Inner>);

impl ListenerCounts {
    fn count(&self, change: &RosterChange) {
        let event = || {
            let own = self.0.upgrade()?;
            let event = own.named(change.place.strip_prefix(PREFIX)?)?;
            Some((own, event))
        };
        if let Some((own, event)) = event() {
            let count = match change.kind {
                RosterChangeKind::Added | RosterChangeKind::Replaced => change.value.parse(),
                RosterChangeKind::Removed => Ok(0),
            };
            own.count_elsewhere(&event, &change.key, count.unwrap_or_default());
        }
    }
}

impl RosterObserver for ListenerCounts {
    fn prefix(&self) -> &'static str {
        PREFIX
    }

    fn load(&self, entry: &RosterChange) {
        self.count(entry);
    }

    fn follow(&self, _sequence: u64, _time: u64, changes: &[RosterChange]) {
        for change in changes {
            self.count(change);
        }
    }
}

/// The place in the shared state that counts the listeners of an event.
fn place(name: &str) -> String {
    format!("{PREFIX}{name}")
}

/// A message to other nodes: the event, its data, and how often it was passed on.
fn message(name: &str, body: &str, hops: u64) -> String {
    serde_json::json!([name, body, hops]).to_string()
}

fn read_message(text: &str) -> Option<(String, String, u64)> {
    let message: serde_json::Value = serde_json::from_str(text).ok()?;
    let word = |at: usize| message[at].as_str().map(str::to_owned);
    Some((word(0)?, word(1)?, message[2].as_u64()?))
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

//! The operations of a service on channels: publish, create, close, and end grants. In a
//! transaction they run after the commit; elsewhere the script awaits them.

use std::pin::pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use bine_http::Status;
use bine_log as log;
use bine_script::{HostCall, HostError, Value};
use serde_json::{Value as Json, json};
use tokio::sync::oneshot;

use super::declaration::ScriptChannel;
use super::queue::ChannelQueue;
use super::{ScriptChannels, channels_of};
use crate::channels::{
    Applied, ChannelName, Channels, Command, Content, Cursor, Draft, Error as ChannelError,
    PendingCommand, Preparation, Publish, Publisher, Quota, Receipt, Refused, Reservation,
    Settings, now as now_time,
};
use crate::error::Error;
use crate::scripts::call_state::{CallState, outcome};
use crate::user_name::UserName;

/// The options of a publication, besides further channels.
const OPTIONS: [&str; 3] = ["event", "id", "type"];

/// A task for the channels.
struct ChannelWork {
    channels: Channels,
    /// The channels that the task creates if they do not exist.
    missing: Vec<(String, Settings)>,
    /// The visitor, for whom channels of a pattern and their messages count.
    publisher: Option<Publisher>,
    /// The memory of the publisher that is reserved for the task, once a transaction depends on it.
    reserved: Option<Reservation>,
    /// Dropped with the task: the call whose transaction has begun it waits for that.
    running: Option<oneshot::Sender<()>>,
    task: ChannelTask,
}

enum ChannelTask {
    Run(Command),
    Revoke(String),
}

/// A task, or the error for the visitor because of whom there is none.
type PreparedWork = Result<ChannelWork, Error>;

/// The name of a channel for clients, and its declaration.
type NamedChannel = (String, Rc<ScriptChannel>);

/// `later(kind, ..)`: runs a task once the transaction of the call is committed.
pub(super) fn later(own: &ScriptChannels, call: &HostCall<'_, '_>) -> Result<Value, HostError> {
    let state = CallState::of(call)?;
    match prepare(own, &state, call)? {
        Ok(mut work) => {
            if let Err(refused) = work.reserve() {
                return Ok(outcome(Err(error_of(ChannelError::Refused(refused)))));
            }
            let queue = Arc::clone(&own.queue);
            work.running = Some(state.begin_work_after_commit());
            state.change(|transaction| transaction.after_commit(move || work.begin(&queue)))?;
            Ok(outcome(Ok(Json::Null)))
        }
        Err(error) => Ok(outcome(Err(error))),
    }
}

/// `now(kind, ..)`: runs a task, and returns a promise of its result.
pub(super) fn now(
    own: &ScriptChannels,
    call: &HostCall<'_, '_>,
) -> Result<impl Future<Output = Result<Value, HostError>> + use<>, HostError> {
    let state = CallState::of(call)?;
    let prepared = prepare(own, &state, call)?;
    Ok(async move {
        Ok(outcome(match prepared {
            Ok(work) => work.run().await,
            Err(error) => Err(error),
        }))
    })
}

fn prepare(
    own: &ScriptChannels,
    state: &CallState,
    call: &HostCall<'_, '_>,
) -> Result<PreparedWork, HostError> {
    if state.is_page() {
        return Err(HostError::Other(
            "a page only reads: publish, and change channels, in a service".to_owned(),
        ));
    }
    let (kind, channels) = (call.text(0)?, channels_of(state)?);
    if kind == "revoke" {
        let user = call.text(1)?;
        if let Err(bad) = UserName::parse(&user) {
            return Ok(Err(Error::status(Status::UNPROCESSABLE_CONTENT, bad.to_string())));
        }
        return Ok(Ok(ChannelWork {
            channels,
            missing: Vec::new(),
            publisher: None,
            reserved: None,
            running: None,
            task: ChannelTask::Revoke(user),
        }));
    }
    let named = match own.names(&call.value(1)?)? {
        Ok(named) => named,
        Err(error) => return Ok(Err(error)),
    };
    let [(first, declared), ..] = &named[..] else {
        return Err(HostError::Type("this is no channel of the application".to_owned()));
    };
    let has_pattern = named.iter().any(|(_, declared)| declared.is_pattern());
    let publisher = if has_pattern { Some(publisher(state, &channels)?) } else { None };
    let name: Arc<str> = first.as_str().into();
    let (mut missing, settings) = (Vec::new(), declared.settings.clone());
    let command = match kind.as_str() {
        "publish" => {
            let content = content(&call.value(2)?, &call.value(3)?)?;
            let channels = named.iter().map(|(name, _)| name.as_str().into()).collect();
            missing =
                named.iter().map(|(name, own)| (name.clone(), own.settings.clone())).collect();
            let messages = vec![Draft { channels, content }];
            Command::Publish(Publish { messages, ..Publish::default() })
        }
        "create" => creation(&name, settings, Vec::new()),
        "close" => Command::Publish(Publish { close: vec![name], ..Publish::default() }),
        "renew" => Command::Renew(name),
        "remove" => Command::Remove(name),
        _ => return Err(HostError::Type("there is no such task".to_owned())),
    };
    let task = ChannelTask::Run(command);
    Ok(Ok(ChannelWork { channels, missing, publisher, reserved: None, running: None, task }))
}

/// The visitor as a publisher. Channels of a pattern may have names that the visitor has chosen, so
/// they count for the visitor; the settings of all other channels bound them.
fn publisher(state: &CallState, channels: &Channels) -> Result<Publisher, HostError> {
    let address = state.caller()?.client_address().block();
    Ok(channels.publisher_of(state.user()?.as_deref(), address))
}

impl ScriptChannels {
    /// The channels of a list of pairs of a slot and values, each with its declaration.
    pub(super) fn names(
        &self,
        list: &Value,
    ) -> Result<Result<Vec<NamedChannel>, Error>, HostError> {
        let wrong = || HostError::Type("this is no channel of the application".to_owned());
        let Value::Array(list) = list else { return Err(wrong()) };
        let mut names = Vec::with_capacity(list.len());
        for item in list {
            let Value::Array(pair) = item else { return Err(wrong()) };
            let [slot, values] = &pair[..] else { return Err(wrong()) };
            match self.named(slot, values)? {
                Ok(named) => names.push(named),
                Err(error) => return Ok(Err(error)),
            }
        }
        Ok(Ok(names))
    }
}

/// The content of a message: a string, bytes, or `{ json }` with the text of any other value.
fn content(data: &Value, options: &Value) -> Result<Content, HostError> {
    let (body, usual) = match data {
        Value::Text(text) => (text.as_bytes(), "text/plain; charset=utf-8"),
        Value::Bytes(bytes) => (&bytes[..], "application/octet-stream"),
        other => match other.property("json").and_then(Value::as_text) {
            Some(json) => (json.as_bytes(), "application/json"),
            None => {
                return Err(HostError::Type(format!(
                    "a message is a string, bytes, or a value that JSON can hold, not {}",
                    other.kind()
                )));
            }
        },
    };
    let mut content =
        Content { content_type: Some(usual.into()), body: body.into(), ..Content::default() };
    let entries = match options {
        Value::Undefined | Value::Null => &[][..],
        Value::Object(entries) => entries,
        other => {
            return Err(HostError::Type(format!(
                "the options of a message are an object, such as {{ event: \"sold\" }}, not {}",
                other.kind()
            )));
        }
    };
    for (key, value) in entries {
        let text = |value: &Value| match value {
            Value::Null => Ok(None),
            Value::Text(text) => Ok(Some(text.as_str().into())),
            other => Err(HostError::Type(format!("`{key}` is a string, not {}", other.kind()))),
        };
        match &**key {
            "event" => content.event = text(value)?,
            "id" => content.id = text(value)?,
            "type" => content.content_type = text(value)?.or(content.content_type),
            _ => {
                return Err(HostError::Type(format!(
                    "a message has no option `{key}`; there are {} and also",
                    OPTIONS.join(", ")
                )));
            }
        }
    }
    Ok(content)
}

impl ChannelWork {
    /// Reserves the memory of the task for the publisher, from the call of the service until the task
    /// runs: what a transaction publishes must not exceed the quota after the commit. A transaction
    /// that fails drops the task, and with it the reservation.
    ///
    /// # Errors
    ///
    /// The task would be refused now, so that the transaction fails with it.
    fn reserve(&mut self) -> Result<(), Refused> {
        let ChannelTask::Run(command) = &self.task else { return Ok(()) };
        match self.check(command.clone()) {
            Err(Refused::NotFound(_)) if !self.missing.is_empty() => {}
            checked => {
                self.reserved = checked?;
                return Ok(());
            }
        }
        let messages = match command {
            Command::Publish(publish) => &publish.messages[..],
            _ => &[],
        };
        let mut reserved = None;
        for (name, settings) in &self.missing {
            match self.check(creation(name, settings.clone(), messages.to_vec())) {
                Err(Refused::Conflict(_)) => {}
                // The message counts once, and each further channel is small in comparison.
                checked => reserved = reserved.or(checked?),
            }
        }
        self.reserved = reserved;
        Ok(())
    }

    /// The memory that a command takes from its publisher.
    ///
    /// # Errors
    ///
    /// The command would be refused now, and not only because the messages of other publishers take
    /// the room.
    fn check(&self, command: Command) -> Result<Option<Reservation>, Refused> {
        let publisher = self.publisher.as_ref();
        let prepared =
            self.channels.engine().hub(|hub| hub.prepare_by(command, publisher, now_time()));
        match prepared {
            Some(Ok(Preparation::Record(prepared))) if publisher.is_some() => {
                Ok(prepared.into_reservation())
            }
            Some(Err(refused))
                if !matches!(refused, Refused::QuotaExceeded { .. }) || is_own_quota(&refused) =>
            {
                Err(refused)
            }
            _ => Ok(None),
        }
    }

    /// Runs the task. A channel of a pattern that does not exist is created.
    async fn run(self) -> Result<Json, Error> {
        let done = self.execute_completely().await;
        done.map_err(error_of)
    }

    async fn execute_completely(self) -> Result<Json, ChannelError> {
        let command = match &self.task {
            ChannelTask::Revoke(user) => {
                self.channels.revoke(user).await?;
                return Ok(Json::Null);
            }
            ChannelTask::Run(command) => command.clone(),
        };
        let applied = match self.execute(command.clone()).await {
            Err(error) if self.needs_channels(&error) => {
                for (name, settings) in &self.missing {
                    accept_existing(
                        self.execute(creation(name, settings.clone(), Vec::new())).await,
                    )?;
                }
                self.execute(command).await
            }
            done => done,
        };
        Ok(result(&self.channels, &applied?))
    }

    /// Begins the task after a commit. The thread may be an event loop, so it does not wait for the
    /// journal: where channels must be created first, the queue does. The log has the error.
    fn begin(self, queue: &Arc<ChannelQueue>) {
        if self.missing.is_empty() || !queue.has_tasks() {
            match self.start() {
                Err(error) if self.needs_channels(&error) => {}
                begun => return log_failure(begun),
            }
        }
        let bytes = match &self.task {
            ChannelTask::Run(Command::Publish(publish)) => {
                publish.messages.iter().map(|message| message.content.body.len()).sum()
            }
            _ => 0,
        };
        let complete = Box::new(move || log_failure(self.complete()));
        if let Err(complete) = queue.push(bytes, complete) {
            // The service waits, as it would for a lock.
            complete();
        }
    }

    /// Creates the channels that do not exist, waits for them, and starts the task.
    fn complete(&self) -> Result<(), ChannelError> {
        match self.start() {
            Err(error) if self.needs_channels(&error) => {}
            started => return started,
        }
        for (name, settings) in &self.missing {
            accept_existing(self.execute(creation(name, settings.clone(), Vec::new())).wait())?;
        }
        self.start()
    }

    /// Starts the task, without waiting for the journal.
    fn start(&self) -> Result<(), ChannelError> {
        match &self.task {
            ChannelTask::Revoke(user) => settled(self.channels.revoke(user)),
            ChannelTask::Run(command) => settled(self.execute(command.clone())),
        }
    }

    /// Executes a command, which may use what is reserved for the task.
    fn execute(&self, command: Command) -> PendingCommand {
        let reserved = self.reserved.as_ref().map_or(0, Reservation::bytes);
        let publisher = self.publisher.as_ref().map(|Publisher { name, bytes }| Publisher {
            name: Arc::clone(name),
            bytes: bytes.saturating_add(reserved),
        });
        self.channels.execute_by(command, publisher.as_ref())
    }

    fn needs_channels(&self, error: &ChannelError) -> bool {
        !self.missing.is_empty() && matches!(error, ChannelError::Refused(Refused::NotFound(_)))
    }
}

/// The error for the visitor: one who exceeds its own quota is no failure of the server.
fn error_of(error: ChannelError) -> Error {
    match error {
        ChannelError::Refused(refused) if is_own_quota(&refused) => {
            Error::status(Status::TOO_MANY_REQUESTS, refused.to_string())
        }
        error => error.into(),
    }
}

const fn is_own_quota(refused: &Refused) -> bool {
    matches!(refused, Refused::QuotaExceeded { quota: Quota::Publisher(_), .. })
}

fn creation(name: &str, settings: Settings, first: Vec<Draft>) -> Command {
    let name = ChannelName::Given(name.into());
    Command::Create { name, settings, first, is_closed: false, fork: None }
}

fn log_failure(done: Result<(), ChannelError>) {
    if let Err(error) = done {
        log::error(format_args!(
            "a service has changed tables, but not the channels that it should have changed after that: {error}"
        ));
    }
}

/// The error of work that has failed already. The store writes what is in progress, and logs a failing
/// disk.
fn settled<T>(work: impl Future<Output = Result<T, ChannelError>>) -> Result<(), ChannelError> {
    match pin!(work).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(Err(error)) => Err(error),
        Poll::Ready(Ok(_)) | Poll::Pending => Ok(()),
    }
}

/// A channel that exists with other settings keeps them.
fn accept_existing(created: Result<Applied, ChannelError>) -> Result<(), ChannelError> {
    match created {
        Ok(_) | Err(ChannelError::Refused(Refused::Conflict(_))) => Ok(()),
        Err(error) => Err(error),
    }
}

/// The result of a publication: the cursor of the message, and whether its `id` was known.
fn result(channels: &Channels, applied: &Applied) -> Json {
    let Applied::Published(published) = applied else { return Json::Null };
    let Some(receipt) = published.messages.first() else { return Json::Null };
    let (sequence, is_repeated) = match receipt {
        Receipt::New(sequence) => (*sequence, false),
        Receipt::Duplicate(sequence) => (*sequence, true),
    };
    let epoch = channels.engine().hub(|hub| hub.watermark().epoch).unwrap_or_default();
    json!({ "cursor": Cursor { epoch, sequence }.to_string(), "repeated": is_repeated })
}

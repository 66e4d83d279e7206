//! `remote`: calls of services of other Bine servers, and their events.
//!
//! The calls are those of [`remote`](crate::remote): their pool, limits and outcomes. The script
//! [`WORDS`] turns them into functions.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::rc::Rc;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bine_script::{HostCall, HostError, HostModule, Value};
use serde_json::Value as Json;
use tokio::time::{Instant, timeout};

use super::call_state::CallState;
use super::fetch::FetchQueue;
use super::json::{self, from_json};
use crate::remote::{self, Listener, Remote};

/// The module `bine:internal/remote`.
pub(super) const WORDS: &str = include_str!("words/remote.js");

/// Listeners of one instance.
const MAX_LISTENERS: usize = 16;
/// The most bytes of an answer that a script may ask for: a value that passes has a limit, too.
const MAX_RESPONSE: usize = 4 << 20;

/// The functions of [`WORDS`] for one instance. Options are: token, milliseconds, certificates, bytes of
/// an answer; each may be `undefined`.
///
/// | name | arguments | result |
/// |---|---|---|
/// | `call` | address, path, arguments, options | a promise of `{ value }` or `{ failure }` |
/// | `listen` | address, event, options | the number of a listener |
/// | `next` | number, milliseconds | as `call`; without an event in time, no value |
/// | `close` | number | |
pub(super) fn host_module(queue: &Arc<FetchQueue>) -> HostModule {
    let queue = Arc::clone(queue);
    let most_time = queue.limits().timeout;
    let listeners = Rc::<RemoteListeners>::default();
    let (listening, waiting) = (Rc::clone(&listeners), Rc::clone(&listeners));
    HostModule::new("bine:internal/remote-host")
        .async_function("call", move |call| {
            let (path, arguments) = (call.text(1)?, arguments(call)?);
            check_transaction(call)?;
            let remote = server(call, 3, most_time)?;
            Ok(perform(Arc::clone(&queue), remote, path, arguments))
        })
        .function("listen", move |call| {
            let event = call.text(1)?;
            let remote = server(call, 2, most_time)?.remote;
            listening.add(remote.on(event))
        })
        .async_function("next", move |call| {
            let (number, milliseconds) = (call.number(0)?.to_bits(), call.number(1)?);
            check_transaction(call)?;
            let wait = Duration::try_from_secs_f64(milliseconds / 1000.0).unwrap_or_default();
            Ok(Rc::clone(&waiting).next(number, wait.min(most_time)))
        })
        .function("close", move |call| {
            let number = call.number(0)?.to_bits();
            listeners.known.borrow_mut().remove(&number);
            Ok(Value::Undefined)
        })
}

/// A transaction may run again, and would repeat the call.
fn check_transaction(call: &HostCall<'_, '_>) -> Result<(), HostError> {
    match CallState::of(call) {
        Ok(state) if state.is_changing() => Err(HostError::Other(
            "a transaction calls no other server, because it may run again and would repeat the call: make the service async, and change tables in `await change(() => ..)`".to_owned(),
        )),
        _ => Ok(()),
    }
}

fn arguments(call: &HostCall<'_, '_>) -> Result<Json, HostError> {
    match call.value(2)? {
        Value::Object(entries) => json::object(entries).map(Json::Object).map_err(HostError::Type),
        other => Err(HostError::Type(format!(
            "the arguments of a service are an object, with each under its name, not {}",
            other.kind()
        ))),
    }
}

/// Another server, and the time for a call.
struct RemoteServer {
    remote: Remote,
    timeout: Duration,
}

/// The server that the arguments of a host function name: its address, and options from `first` on.
fn server(
    call: &HostCall<'_, '_>,
    first: usize,
    most_time: Duration,
) -> Result<RemoteServer, HostError> {
    let text = |index: usize| match call.value(index)? {
        Value::Undefined => Ok(None),
        Value::Text(text) => Ok(Some(text)),
        other => Err(HostError::Type(format!("an option must be a string, not {}", other.kind()))),
    };
    let number = |index: usize| match call.value(index)? {
        Value::Undefined => Ok(None),
        Value::Number(number) if number > 0.0 => Ok(Some(number)),
        other => Err(HostError::Type(format!(
            "an option must be a number greater than 0, not {}",
            other.kind()
        ))),
    };
    let address = call.text(0)?;
    let mut remote = match text(first + 2)? {
        Some(pem) => with_certificates(&address, &pem),
        None => remote::remote(&address),
    };
    if let Some(token) = text(first)? {
        remote = remote.token(token);
    }
    let milliseconds = number(first + 1)?;
    let own = milliseconds.and_then(|own| Duration::try_from_secs_f64(own / 1000.0).ok());
    let timeout = own.map_or(most_time, |own| own.min(most_time));
    if let Some(bytes) = number(first + 3)? {
        #[expect(clippy::cast_sign_loss, reason = "the number is positive")]
        let bytes = (bytes as usize).clamp(1, MAX_RESPONSE);
        remote = remote.max_response_size(bytes);
    }
    Ok(RemoteServer { remote: remote.timeout(timeout), timeout })
}

/// A server with its own certificates. Only clones of one value share connections, so the last few
/// are kept.
fn with_certificates(address: &str, pem: &str) -> Remote {
    const MOST: usize = 16;
    static KNOWN: Mutex<Vec<(String, Remote)>> = Mutex::new(Vec::new());
    let key = format!("{address}\n{pem}");
    let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some((_, found)) = known.iter().find(|(own, _)| *own == key) {
        return found.clone();
    }
    let own = remote::remote(address).root_certificates(pem.as_bytes());
    if known.len() == MOST {
        known.remove(0);
    }
    known.push((key, own.clone()));
    own
}

/// Calls a service within the limits of the application.
async fn perform(
    queue: Arc<FetchQueue>,
    server: RemoteServer,
    path: String,
    arguments: Json,
) -> Result<Value, HostError> {
    let RemoteServer { remote, timeout: most } = server;
    let deadline = Instant::now() + most;
    let _permit = match queue.admit(deadline).await {
        Ok(permit) => permit,
        Err(reason) => return Ok(outcome(Err(remote::Error::Unreached(reason)))),
    };
    let left = deadline.saturating_duration_since(Instant::now());
    let answer = remote.timeout(left).service(path).call::<_, Json>(&arguments).await;
    Ok(outcome(answer))
}

/// The outcome of a call for the words of scripts.
fn outcome(answer: Result<Json, remote::Error>) -> Value {
    let named = |name: &str, value| (name.to_owned(), value);
    let error = match answer {
        Ok(answer) => return Value::Object(vec![named("value", from_json(answer))]),
        Err(error) => error,
    };
    let (reason, status) = match &error {
        remote::Error::Misused(_) => ("misused", None),
        remote::Error::Unreached(_) => ("unreached", None),
        remote::Error::Unanswered(_) => ("unanswered", None),
        remote::Error::TimedOut(_) => ("timedOut", None),
        remote::Error::Misunderstood(_) => ("misunderstood", None),
        remote::Error::Refused { status, .. } => ("refused", Some(status)),
    };
    let (told, message) = error.told();
    let mut answer = vec![named("$status", Value::Number(told.code().into()))];
    match message {
        Some(message) => answer.push(named("message", Value::Text(message))),
        // Only the log has it.
        None => answer.push(named("cause", Value::Text(error.to_string()))),
    }
    let mut failure = vec![
        named("reason", reason.into()),
        named("message", Value::Text(error.to_string())),
        named("answer", Value::Object(answer)),
    ];
    if let Some(status) = status {
        failure.push(named("status", Value::Number(status.code().into())));
    }
    Value::Object(vec![named("failure", Value::Object(failure))])
}

/// The listeners of one instance, by their numbers.
#[derive(Default)]
struct RemoteListeners {
    last: Cell<u32>,
    /// `None`: a call waits for the next event.
    known: RefCell<HashMap<u64, Option<Listener<Json>>>>,
}

impl RemoteListeners {
    fn add(&self, listener: Listener<Json>) -> Result<Value, HostError> {
        let mut known = self.known.borrow_mut();
        if known.len() >= MAX_LISTENERS {
            return Err(HostError::Range(format!(
                "the application has {MAX_LISTENERS} listeners on this thread: call `close()` on one of them"
            )));
        }
        let number = f64::from(self.last.get() + 1);
        self.last.set(self.last.get() + 1);
        known.insert(number.to_bits(), Some(listener));
        Ok(Value::Number(number))
    }

    async fn next(self: Rc<Self>, number: u64, wait: Duration) -> Result<Value, HostError> {
        let mut waiting = WaitingListener::take(&self, number)?;
        let Some(listener) = &mut waiting.listener else { return Ok(Value::Object(Vec::new())) };
        // An event that arrives later stays for the next wait.
        match timeout(wait, listener.next()).await {
            Err(_) => Ok(Value::Object(Vec::new())),
            Ok(Ok(event)) => Ok(outcome(Ok(event))),
            Ok(Err(error)) => Ok(outcome(Err(error))),
        }
    }
}

/// A listener that waits; it goes back at the end, unless it was closed meanwhile.
struct WaitingListener<'l> {
    listeners: &'l RemoteListeners,
    number: u64,
    listener: Option<Listener<Json>>,
}

impl<'l> WaitingListener<'l> {
    fn take(listeners: &'l RemoteListeners, number: u64) -> Result<Self, HostError> {
        match listeners.known.borrow_mut().get_mut(&number) {
            None => Err(HostError::Other("the listener is closed".to_owned())),
            Some(place) => match place.take() {
                Some(listener) => Ok(Self { listeners, number, listener: Some(listener) }),
                None => Err(HostError::Other(
                    "another call waits for the next event of this listener: await it first"
                        .to_owned(),
                )),
            },
        }
    }
}

impl Drop for WaitingListener<'_> {
    fn drop(&mut self) {
        if let Some(place) = self.listeners.known.borrow_mut().get_mut(&self.number) {
            *place = self.listener.take();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::pin::Pin;

    use bine_script::{
        Clock, Host, Instance, Level, Limits, LoadError, Messages, ModuleLoader, MonotonicStart,
        Randomness, ScriptError, Settings,
    };
    use proptest::collection::vec;
    use proptest::prelude::*;
    use proptest::sample::select;

    use super::*;
    use crate::scripts::app_settings::AppSettings;
    use crate::scripts::fetch::FetchLimits;
    use crate::scripts::folders::AppFolder;
    use crate::scripts::testing::Folder;
    use crate::scripts::uploads;
    use crate::service::CallArguments;
    use crate::store::{Options, Store};

    struct TestHost(MonotonicStart);

    impl Clock for TestHost {
        fn now(&self) -> Duration {
            self.0.elapsed()
        }

        fn sleep_until(&self, time: Duration) -> Pin<Box<dyn Future<Output = ()>>> {
            Box::pin(tokio::time::sleep_until(self.0.at(time).into()))
        }
    }

    impl Randomness for TestHost {
        fn fill(&self, bytes: &mut [u8]) {
            bytes.fill(7);
        }
    }

    impl Messages for TestHost {
        fn log(&self, _: Level, text: &str) {
            panic!("{text}");
        }

        fn report(&self, error: &ScriptError) {
            panic!("{error}");
        }
    }

    /// A script that calls the functions of the host themselves.
    struct Script(String);

    impl ModuleLoader for Script {
        fn load(&self, _: &str) -> Result<String, LoadError> {
            Ok(self.0.clone())
        }

        fn load_built_in(&self, name: &str) -> Option<String> {
            let text =
                "export * from 'bine:internal/remote-host'; export * from 'bine:internal/uploads';";
            (name == "bine").then(|| text.to_owned())
        }
    }

    /// Calls the function that a script exports, with the file of a form.
    fn run(source: String) -> Value {
        let folder = Folder::with(&[("public/a.txt", "")]);
        let app = AppFolder {
            path: String::new(),
            folder: folder.path().to_owned(),
            settings: AppSettings::default(),
            files: Vec::new(),
        };
        let limits = FetchLimits { timeout: Duration::from_millis(50), ..FetchLimits::default() };
        let start = MonotonicStart::new();
        let instance = Instance::new(Settings {
            limits: Limits::default(),
            host: Host {
                clock: Box::new(TestHost(start)),
                randomness: Box::new(TestHost(start)),
                messages: Box::new(TestHost(start)),
            },
            loader: Box::new(Script(source)),
            modules: vec![host_module(&FetchQueue::new(limits)), uploads::host_module(&app)],
        })
        .unwrap();
        let form = "--b\r\nContent-Disposition: form-data; name=\"a\"; filename=\"a.png\"\r\n\r\npicture\r\n--b--\r\n";
        let kind = "multipart/form-data; boundary=b";
        let given = CallArguments::in_form_with_files(kind, form.as_bytes()).unwrap().unwrap();
        let state =
            CallState::without_request(Store::in_memory(Options::new()).unwrap(), false, None);
        let file = state.uploads().add(&given.files()[0].1);
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let told = runtime.block_on(async {
            let exports = instance.load("index.js").await.unwrap();
            let Some(Value::Function(run)) = exports.property("default") else { panic!() };
            instance.call_within(run, &[file], state).await.unwrap()
        });
        assert_eq!(instance.usage().operations, 0);
        told
    }

    /// Values of each type, and some that the functions accept.
    const VALUES: [&str; 18] = [
        "file.$upload",
        "1",
        "2",
        "-0.5",
        "1e300",
        "0",
        "'http://127.0.0.1:1'",
        "'/a'",
        "'b/c.png'",
        "'a.txt'",
        "''",
        "'-----BEGIN CERTIFICATE-----'",
        "[1]",
        "{ a: 1 }",
        "{ a: () => 1 }",
        "undefined",
        "null",
        "new Uint8Array(3)",
    ];
    /// Calls of which each part is right.
    const WHOLE: [&str; 7] = [
        "host.call('http://127.0.0.1:1', '/a', { b: 1 }, 'token', 5, undefined, 100)",
        "host.listen('http://127.0.0.1:1', 'bell', undefined, 5)",
        "host.next(1, 5)",
        "host.next(2, 0)",
        "host.close(1)",
        "host.read(file.$upload, 3)",
        "host.save(file.$upload, 'pictures/a.png')",
    ];
    const NAMES: [&str; 6] = ["call", "listen", "next", "close", "read", "save"];

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn host_functions_accept_any_values_in_any_order(
            calls in vec(
                prop_oneof![
                    select(&WHOLE[..]).prop_map(str::to_owned),
                    (select(&NAMES[..]), vec(select(&VALUES[..]), 0..8))
                        .prop_map(|(name, values)| format!("host.{name}({})", values.join(", "))),
                ],
                0..16,
            )
        ) {
            let calls: Vec<String> =
                calls.iter().map(|call| format!("attempt(() => {call});")).collect();
            let calls = calls.concat();
            let source = format!(
                "import * as host from 'bine';
                 export default async (file) => {{
                   const waiting = [];
                   const attempt = (run) => {{
                     try {{ waiting.push(Promise.resolve(run()).catch(() => 0)); }} catch {{}}
                   }};
                   {calls}
                   await Promise.all(waiting);
                   return 'done';
                 }}"
            );
            prop_assert_eq!(run(source), Value::from("done"));
        }
    }

    #[test]
    fn reads_a_file_in_parts_within_its_call_only() {
        let source = "import { read } from 'bine';
             const text = (bytes) => String.fromCharCode(...bytes);
             export default (file) => {
               const parts = [read(file.$upload, 0), read(file.$upload, 3), read(file.$upload, 99)];
               let reason;
               try { read(file.$upload + 1, 0); } catch (error) { reason = error.message; }
               return [...parts.map(text), reason.slice(0, 30)];
             };";
        let expected = ["picture", "ture", "", "an `Upload` can be read only b"].map(Value::from);
        assert_eq!(run(source.to_owned()), Value::Array(expected.into()));
    }
}

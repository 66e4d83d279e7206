//! The instance of an application on one thread: an engine with the modules of a generation.

use std::cell::RefCell;
use std::collections::HashMap;
use std::future::poll_fn;
use std::pin::pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

use bine_http::Status;
use bine_log as log;
use bine_script::{Fault, Function, Instance, Limits, Settings, Value};
use bine_tsx::Shape;

use super::application::Application;
use super::call_host;
use super::call_state::{CallState, FunctionRunner};
use super::channels::{ChannelPlace, ScriptChannels, segment_of};
use super::events::ScriptEvents;
use super::generation::{ENTRY, Generation, GenerationLoader};
use super::host::host;
use super::tables::ScriptTables;
use super::{faults, fetch, frame, positions, remote, rust_services, sealed, session, uploads};
use crate::error::Error;
use crate::service::Caller;
use crate::service::in_process::ServiceDirectory;
use crate::store::DeclareError;

/// An instance that has ended is replaced at once, but one that cannot load is tried again only after
/// this time, so that each request does not load it in vain.
const RETRY_INTERVAL: Duration = Duration::from_secs(1);

/// A loaded application on this thread.
pub(super) struct LocalApplication {
    pub(super) generation: Arc<Generation>,
    pub(super) instance: Instance,
    /// The functions of pages, by file.
    pub(super) pages: HashMap<String, Function>,
    /// By name.
    pub(super) services: HashMap<String, LocalFunction>,
    /// The function of the error page.
    pub(super) error_page: Option<Function>,
}

/// A service of a loaded application.
pub(super) struct LocalFunction {
    pub(super) function: Function,
    /// Whether it is an `async` function, which is no transaction.
    pub(super) is_async: bool,
    pub(super) shape: Shape,
}

impl FunctionRunner for LocalApplication {
    fn run(&self, function: &Function, state: &Rc<CallState>) -> Option<Result<Value, Fault>> {
        let context = Rc::<CallState>::clone(state);
        self.instance.call_within(function, &[], context).finished()
    }
}

/// The place of one application on a thread.
#[derive(Default)]
enum LocalSlot {
    #[default]
    Empty,
    /// A request loads it; other requests wait.
    Loading(Vec<Waker>),
    Ready(Rc<LocalApplication>),
    /// This generation could not be loaded.
    Failed {
        number: u64,
        failure: LoadFailure,
        since: Instant,
    },
}

/// Why a generation could not be loaded.
#[derive(Clone)]
struct LoadFailure {
    status: Status,
    reason: String,
}

impl From<String> for LoadFailure {
    fn from(reason: String) -> Self {
        Self { status: Status::INTERNAL_SERVER_ERROR, reason }
    }
}

impl From<LoadFailure> for Error {
    fn from(failure: LoadFailure) -> Self {
        Self::hidden(failure.status, failure.reason)
    }
}

/// The key of an instance: the application, and how many of its instances run on this thread while it
/// is called. A service that is called by its own application, by way of Rust, runs in a further
/// instance: nothing distinguishes them, because modules have no variables that change.
type SlotKey = (u64, u8);

/// Instances of one application on one thread that may run within each other.
const MAX_NESTED: u8 = 8;

thread_local! {
    static SLOTS: RefCell<HashMap<SlotKey, LocalSlot>> = RefCell::default();
}

/// The application on this thread. The first request of a thread loads it.
///
/// # Errors
///
/// It cannot be compiled or loaded; the error has the reason for the log.
pub(super) async fn local(
    app: &Arc<Application>,
    caller: &Caller,
) -> Result<Rc<LocalApplication>, Error> {
    loop {
        let key = free_key(app)?;
        if let Some(ready) = ready(app, key) {
            return Ok(ready);
        }
        let generation = app.generation().map_err(|failure| faults::of_compiler(&failure))?;
        match begin(key, &generation) {
            Begin::Load(guard) => {
                let loaded = load(app, &generation, caller).await;
                return guard.finish(generation.number, loaded);
            }
            Begin::Wait => wait(key).await,
            Begin::Failed(failure) => return Err(failure.into()),
        }
    }
}

/// The key of the first instance that does not run.
///
/// # Errors
///
/// Too many run.
fn free_key(app: &Application) -> Result<SlotKey, Error> {
    let is_running = |key: SlotKey| {
        SLOTS.with_borrow(|slots| match slots.get(&key) {
            Some(LocalSlot::Ready(local)) => local.instance.is_running(),
            _ => false,
        })
    };
    let free = (0..MAX_NESTED).map(|level| (app.id, level)).find(|key| !is_running(*key));
    free.ok_or_else(|| {
        let reason = format!(
            "services of {} call each other more than {MAX_NESTED} levels deep: does one call itself without an end?",
            app.name()
        );
        Error::hidden(Status::SERVICE_UNAVAILABLE, reason)
    })
}

/// The application on this thread, if it is loaded and current.
fn ready(app: &Application, key: SlotKey) -> Option<Rc<LocalApplication>> {
    SLOTS
        .with_borrow(|slots| match slots.get(&key)? {
            LocalSlot::Ready(ready) if ready.generation.number == app.number() => {
                ready.instance.retired().is_none().then(|| Rc::clone(ready))
            }
            _ => None,
        })
        .inspect(|ready| ready.run_timers())
}

enum Begin {
    Load(LoadGuard),
    Wait,
    Failed(LoadFailure),
}

fn begin(key: SlotKey, generation: &Generation) -> Begin {
    SLOTS.with_borrow_mut(|slots| {
        let slot = slots.entry(key).or_default();
        match slot {
            LocalSlot::Loading(_) => return Begin::Wait,
            LocalSlot::Failed { number, failure, since }
                if *number == generation.number && since.elapsed() < RETRY_INTERVAL =>
            {
                return Begin::Failed(failure.clone());
            }
            _ => {}
        }
        *slot = LocalSlot::Loading(Vec::new());
        Begin::Load(LoadGuard { key })
    })
}

/// Waits until the load of another request has ended.
async fn wait(key: SlotKey) {
    let mut is_registered = false;
    poll_fn(|task| {
        SLOTS.with_borrow_mut(|slots| match slots.get_mut(&key) {
            Some(LocalSlot::Loading(wakers)) if !is_registered => {
                is_registered = true;
                wakers.push(task.waker().clone());
                Poll::Pending
            }
            _ => Poll::Ready(()),
        })
    })
    .await;
}

/// Ends a load, also if its request is dropped: the next one begins it again.
struct LoadGuard {
    key: SlotKey,
}

impl LoadGuard {
    fn finish(
        self,
        number: u64,
        loaded: Result<LocalApplication, LoadFailure>,
    ) -> Result<Rc<LocalApplication>, Error> {
        match loaded {
            Ok(local) => {
                let local = Rc::new(local);
                self.replace(LocalSlot::Ready(Rc::clone(&local)));
                Ok(local)
            }
            Err(failure) => {
                log::error(format_args!("an application cannot be loaded:\n{}", failure.reason));
                let (kept, since) = (failure.clone(), Instant::now());
                self.replace(LocalSlot::Failed { number, failure: kept, since });
                Err(failure.into())
            }
        }
    }

    fn replace(&self, slot: LocalSlot) {
        let old = SLOTS.with_borrow_mut(|slots| slots.insert(self.key, slot));
        // Outside of the borrow: an instance runs code when it is dropped.
        if let Some(LocalSlot::Loading(wakers)) = old {
            wakers.into_iter().for_each(Waker::wake);
        }
    }
}

impl Drop for LoadGuard {
    fn drop(&mut self) {
        let is_loading =
            SLOTS.with_borrow(|slots| matches!(slots.get(&self.key), Some(LocalSlot::Loading(_))));
        if is_loading {
            self.replace(LocalSlot::Empty);
        }
    }
}

/// Starts an instance, loads all modules and declares the tables.
async fn load(
    app: &Application,
    generation: &Arc<Generation>,
    caller: &Caller,
) -> Result<LocalApplication, LoadFailure> {
    let settings = &generation.app.settings;
    let name = match generation.app.path.as_str() {
        "" => "site",
        path => path,
    };
    let tables = ScriptTables::new(format!("{}.", segment_of(&generation.app)));
    let events =
        ScriptEvents::new(segment_of(&generation.app), settings.access.clone(), caller.events());
    let conflict = app.channel_conflict.get().cloned();
    let channels = ScriptChannels::new(
        ChannelPlace::new(&generation.app, conflict),
        Arc::clone(&app.channel_queue),
    );
    let services = caller.app().states.find::<ServiceDirectory>();
    let rust_services = services.map(rust_services::module).unwrap_or_default();
    if let Some(reason) = generation.service_mistake(services) {
        return Err(reason.into());
    }
    let limits = Limits {
        memory: settings.memory << 20,
        run_time: settings.run_time,
        await_time: settings.await_time,
        ..Limits::default()
    };
    let explain = |fault: &Fault| match (fault, fault.error()) {
        (Fault::Limit(limit, error), _) => {
            let explained = faults::explained(generation, error);
            let reason =
                format!("{name} has exceeded its limit of {limit} while it loads: {explained}");
            LoadFailure { status: Status::SERVICE_UNAVAILABLE, reason }
        }
        (_, Some(error)) => faults::explained(generation, error).into(),
        (_, None) => fault.to_string().into(),
    };
    let instance = Instance::new(Settings {
        limits,
        host: host(name),
        loader: Box::new(GenerationLoader::new(generation, rust_services)),
        modules: vec![
            call_host::host_module(&generation.app),
            fetch::host_module(&app.fetches),
            remote::host_module(&app.fetches),
            uploads::host_module(&generation.app),
            session::host_module(),
            frame::host_module(),
            positions::host_module(),
            sealed::host_module(),
            tables.host_module(),
            channels.host_module(),
            events.host_module(),
        ],
    });
    let instance = instance.map_err(|fault| explain(&fault))?;
    let exports = instance.load(ENTRY).await.map_err(|fault| explain(&fault))?;
    let schemas = tables.schemas()?;
    let columns = schemas.iter().flat_map(|schema| &schema.columns);
    let private = columns.filter(|column| column.is_private).map(|column| column.name.to_string());
    instance.refuse_captured_keys(private);
    if !schemas.is_empty() {
        let declared = caller.store().declare(&schemas).map_err(|error| match error {
            DeclareError::Rejected(reason) => reason,
            DeclareError::Failed(error) => format!("the tables cannot be declared: {error}"),
        })?;
        declared.await.map_err(|error| format!("the tables cannot be declared: {error}"))?;
    }
    events.declare_all();
    channels.complete();
    // The first instance of a generation creates the channels.
    if app.channel_rules().is_none() {
        let rules = channels.create(caller.channels()).await?;
        app.set_channel_rules(generation.number, rules);
    }
    let exported = exports.property("default").unwrap_or(&Value::Undefined);
    Ok(LocalApplication::new(generation, instance, exported))
}

impl LocalApplication {
    /// Runs the timers that are due and were set by a call that has ended. Calls that wait run theirs
    /// themselves.
    fn run_timers(&self) {
        if !self.instance.is_idle() && !self.instance.is_running() {
            let background = pin!(self.instance.background());
            // Unfinished work continues with the next call.
            let _ = background.poll(&mut Context::from_waker(Waker::noop()));
        }
    }

    /// The application with what its entry module exports.
    fn new(generation: &Arc<Generation>, instance: Instance, exported: &Value) -> Self {
        let functions = |name: &str| {
            let entries = match exported.property(name) {
                Some(Value::Object(entries)) => entries.clone(),
                _ => Vec::new(),
            };
            entries.into_iter().filter_map(|(name, value)| match value {
                Value::Function(function) => Some((name, function)),
                _ => None,
            })
        };
        let asynchronous: Vec<&str> = match exported.property("asynchronous") {
            Some(Value::Array(names)) => names.iter().filter_map(Value::as_text).collect(),
            _ => Vec::new(),
        };
        let shapes: HashMap<&str, &Shape> = generation
            .services()
            .map(|(_, service)| (service.name.as_str(), &service.argument))
            .collect();
        let services = functions("services").filter_map(|(name, function)| {
            let shape = (*shapes.get(name.as_str())?).clone();
            let is_async = asynchronous.contains(&name.as_str());
            Some((name, LocalFunction { function, is_async, shape }))
        });
        let error_page = match exported.property("error") {
            Some(Value::Function(function)) => Some(function.clone()),
            _ => None,
        };
        Self {
            services: services.collect(),
            pages: functions("pages").collect(),
            error_page,
            generation: Arc::clone(generation),
            instance,
        }
    }
}

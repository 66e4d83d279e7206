//! A start script that has been compiled and run, with its declarations.

use std::path::Path;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use bine_script::{Fault, Function, Instance, Limits, Settings, Value};

use super::declarations::{Declarations, declarations, host_module};
use super::paths::FilterPaths;
use crate::access_guard::DeclaredRules;
use crate::scripts::faults;
use crate::scripts::generation::{CompileFailure, ENTRY, Generation, GenerationLoader, START};
use crate::scripts::host::host;

/// The declarations of a start script. All threads share them.
pub(in crate::scripts) struct StartProgram {
    pub(super) generation: Arc<Generation>,
    pub(super) rules: Arc<DeclaredRules>,
    /// The paths of each filter.
    pub(super) filters: Box<[FilterPaths]>,
    /// The scheduler, if the script has one.
    pub(super) scheduler: Option<SchedulerOptions>,
}

/// Supplies the current version of a script.
pub(super) trait ProgramSource: Send + Sync {
    /// The current version.
    fn current(&self) -> Arc<StartProgram>;
}

/// The options of a scheduler.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct SchedulerOptions {
    /// How many requests may run at one time; `None`: the number of workers.
    pub(super) places: Option<usize>,
}

/// Why a start script cannot be used.
pub(super) struct StartFailure {
    /// File, line, column, message and excerpt of each error.
    pub(super) message: String,
    cause: FailedStep,
}

enum FailedStep {
    Compile(Box<CompileFailure>),
    Run(Arc<Generation>),
}

impl StartFailure {
    /// The rules of a script cannot be used in this program.
    pub(super) fn of_rules(message: String, program: &StartProgram) -> Self {
        let cause = FailedStep::Run(Arc::clone(&program.generation));
        Self { message, cause }
    }

    /// Whether a file has changed since.
    pub(super) fn is_outdated(&self) -> bool {
        match &self.cause {
            FailedStep::Compile(failure) => failure.is_outdated(),
            FailedStep::Run(generation) => generation.is_outdated(),
        }
    }
}

/// The time for the modules of a script when the server starts.
const START_TIME: Duration = Duration::from_secs(1);

/// The limits of an instance with this limit of run time.
pub(super) fn limits(run_time: Duration) -> Limits {
    Limits { memory: 16 << 20, run_time, await_time: run_time, ..Limits::default() }
}

impl StartProgram {
    /// Compiles and runs the script of a folder.
    pub(super) fn new(number: u64, folder: &Path) -> Result<Self, Box<StartFailure>> {
        let generation = Generation::compile_start(number, folder).map_err(|failure| {
            let message = failure.message();
            Box::new(StartFailure { message, cause: FailedStep::Compile(failure) })
        })?;
        let generation = Arc::new(generation);
        let failed = |message| {
            let cause = FailedStep::Run(Arc::clone(&generation));
            Box::new(StartFailure { message, cause })
        };
        let declared = declarations();
        let loaded = LoadedStart::new(&generation, &declared, START_TIME).map_err(&failed)?;
        let scheduler = match &loaded.scheduling {
            Some(scheduling) => {
                loaded.schedule(scheduling, 1).map_err(&failed)?;
                Some(SchedulerOptions { places: loaded.places })
            }
            None => None,
        };
        let filters = loaded.filter_paths().map_err(&failed)?;
        let rules = Arc::new(declared.take());
        Ok(Self { generation: Arc::clone(&generation), rules, filters, scheduler })
    }

    /// The number of the version.
    pub(super) fn number(&self) -> u64 {
        self.generation.number
    }
}

/// A start script in an instance of this thread.
pub(super) struct LoadedStart {
    pub(super) instance: Instance,
    pub(super) filters: Vec<Function>,
    /// The patterns of each filter; `None`: all paths.
    paths: Vec<Option<Vec<String>>>,
    /// Returns the functions of the scheduler.
    pub(super) scheduling: Option<Function>,
    places: Option<usize>,
    generation: Arc<Generation>,
}

/// The functions of a scheduler.
pub(super) struct PolicyFunctions {
    /// Passes events, and returns the requests to start.
    pub(super) turn: Function,
    /// Throws what the policy has thrown.
    pub(super) explain: Function,
}

impl LoadedStart {
    /// The paths of each filter.
    ///
    /// # Errors
    ///
    /// A pattern is invalid; the message names the correction.
    fn filter_paths(&self) -> Result<Box<[FilterPaths]>, String> {
        let paths = self.paths.iter().map(|paths| match paths {
            None => Ok(FilterPaths::All),
            Some(paths) => {
                FilterPaths::parse(&paths.iter().map(String::as_str).collect::<Vec<_>>())
            }
        });
        paths.collect()
    }

    /// Whether this run has declared these filters: another run may have declared others, for example
    /// if the script reads the clock.
    pub(super) fn has_filters(&self, known: &[FilterPaths]) -> bool {
        self.filters.len() == known.len() && self.filter_paths().is_ok_and(|own| *own == *known)
    }

    /// Runs the modules of a script within this limit of run time.
    ///
    /// # Errors
    ///
    /// The message for the log.
    pub(super) fn new(
        generation: &Arc<Generation>,
        declared: &Declarations,
        run_time: Duration,
    ) -> Result<Self, String> {
        let explain = |fault: Fault| explained(generation, &fault);
        let instance = Instance::new(Settings {
            limits: limits(run_time),
            host: host(START),
            loader: Box::new(GenerationLoader::new(generation, String::new())),
            modules: vec![host_module(&Rc::clone(declared))],
        });
        let instance = instance.map_err(explain)?;
        let exports = instance.load(ENTRY).finished().ok_or_else(|| {
            format!("{START}: the script waits for a promise: it must not use `await` outside of functions")
        })?;
        let exports = exports.map_err(explain)?;
        let exported = exports.property("default").unwrap_or(&Value::Undefined);
        let list = |name: &str| match exported.property(name) {
            Some(Value::Array(items)) => items.as_slice(),
            _ => &[],
        };
        let function = |value: &Value| match value {
            Value::Function(function) => Some(function.clone()),
            _ => None,
        };
        let texts = |value: &Value| match value {
            Value::Array(items) => {
                Some(items.iter().filter_map(|item| item.as_text().map(str::to_owned)).collect())
            }
            _ => None,
        };
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "the words check it: 1 to 1024"
        )]
        let places = match exported.property("places") {
            Some(Value::Number(places)) => Some(*places as usize),
            _ => None,
        };
        Ok(Self {
            filters: list("filters").iter().filter_map(function).collect(),
            paths: list("paths").iter().map(texts).collect(),
            scheduling: exported.property("scheduling").and_then(function),
            places,
            generation: Arc::clone(generation),
            instance,
        })
    }

    /// Creates the policy of the scheduler, which has `places` unless the script names a different number.
    ///
    /// # Errors
    ///
    /// The message for the log.
    pub(super) fn schedule(
        &self,
        scheduling: &Function,
        places: usize,
    ) -> Result<PolicyFunctions, String> {
        let places = Value::Number(places as f64);
        let made = match self.instance.call(scheduling, &[places]).finished() {
            Some(Ok(made)) => made,
            Some(Err(fault)) => return Err(explained(&self.generation, &fault)),
            None => return Err(format!("{START}: the function of `scheduler` must not be async")),
        };
        match (made.property("turn"), made.property("explain")) {
            (Some(Value::Function(turn)), Some(Value::Function(explain))) => {
                Ok(PolicyFunctions { turn: turn.clone(), explain: explain.clone() })
            }
            _ => Err(format!("{START}: the scheduler has no functions")),
        }
    }
}

/// A fault of a script in words, with its place in the source.
pub(super) fn explained(generation: &Generation, fault: &Fault) -> String {
    match fault {
        Fault::Exception(error) => faults::explained(generation, error),
        // The engine knows no place in a loop outside of functions that calls no function.
        Fault::Limit(limit, error) if error.position().is_none() => format!(
            "{START}: the script has exceeded its limit of {limit}: look for a loop without an end, outside of functions"
        ),
        Fault::Limit(limit, error) => {
            let reason = faults::explained(generation, error);
            format!("{START} has exceeded its limit of {limit}: {reason}")
        }
        fault @ (Fault::Ended(_) | Fault::Misuse(_)) => format!("{START}: {fault}"),
    }
}

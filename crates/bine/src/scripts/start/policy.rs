//! The policy of a scheduler: an instance of the start script on the thread of the scheduler.

use std::sync::Arc;
use std::time::Duration;

use bine_script::{Function, Value};

use super::declarations::declarations;
use super::program::{LoadedStart, PolicyFunctions, StartProgram, explained};
use crate::scripts::generation::START;

/// How long a policy may run for the events of one turn.
const RUN_TIME: Duration = Duration::from_millis(50);

/// A policy in its instance.
pub(super) struct ScriptPolicy {
    program: Arc<StartProgram>,
    loaded: LoadedStart,
    functions: PolicyFunctions,
}

/// The decisions of one turn.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct PolicyTurn {
    /// The requests to start.
    pub(super) started: Vec<u64>,
    /// The requests to reject.
    pub(super) refused: Vec<u64>,
    /// The exception of the policy: the server started the oldest request instead.
    pub(super) failure: Option<String>,
}

impl ScriptPolicy {
    /// Loads the policy of a script; `None`: it has no scheduler.
    ///
    /// # Errors
    ///
    /// The message for the log.
    pub(super) fn new(program: &Arc<StartProgram>, places: usize) -> Result<Option<Self>, String> {
        if program.scheduler.is_none() {
            return Ok(None);
        }
        let loaded = LoadedStart::new(&program.generation, &declarations(), RUN_TIME)?;
        let Some(scheduling) = &loaded.scheduling else { return Ok(None) };
        let functions = loaded.schedule(scheduling, places)?;
        Ok(Some(Self { program: Arc::clone(program), loaded, functions }))
    }

    /// Passes what has happened, and returns the decisions for the free places.
    ///
    /// # Errors
    ///
    /// The instance has ended; the message is for the log.
    pub(super) fn turn(&self, events: Vec<Value>, free: usize) -> Result<PolicyTurn, String> {
        let arguments = [Value::Array(events), Value::Number(free as f64)];
        let result = self.call(&self.functions.turn, &arguments)?;
        let (started, refused, has_failed) = match &result {
            Value::Array(items) => match items.as_slice() {
                [started, refused, has_failed] => {
                    (numbers(started), numbers(refused), *has_failed == Value::Bool(true))
                }
                _ => return Err(format!("{START}: a turn of the scheduler has no result")),
            },
            _ => return Err(format!("{START}: a turn of the scheduler has no result")),
        };
        let failure = has_failed.then(|| {
            let thrown = self.call(&self.functions.explain, &[]);
            thrown.err().unwrap_or_else(|| format!("{START}: the scheduler has failed"))
        });
        if let (Some(reason), Some(_)) = (&failure, self.loaded.instance.retired()) {
            return Err(reason.clone());
        }
        Ok(PolicyTurn { started, refused, failure })
    }

    fn call(&self, function: &Function, arguments: &[Value]) -> Result<Value, String> {
        match self.loaded.instance.call(function, arguments).finished() {
            Some(Ok(result)) => Ok(result),
            Some(Err(fault)) => Err(explained(&self.program.generation, &fault)),
            None => Err(format!("{START}: a scheduler must not be async")),
        }
    }
}

fn numbers(value: &Value) -> Vec<u64> {
    let Value::Array(items) = value else { return Vec::new() };
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "the host has numbered them"
    )]
    let number = |item: &Value| match item {
        Value::Number(number) => Some(*number as u64),
        _ => None,
    };
    items.iter().filter_map(number).collect()
}

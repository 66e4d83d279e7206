//! Checks for fuzzing: calls of the functions of the host, with any values and in any order.

use std::cell::RefCell;
use std::future::poll_fn;
use std::path::PathBuf;
use std::pin::pin;
use std::rc::Rc;
use std::task::Poll;

use bine_script::{
    Fault, Function, Instance, Limits, LoadError, ModuleLoader, Settings as InstanceSettings, Value,
};

use super::app_settings::AppSettings;
use super::call_host;
use super::call_state::{CallState, FunctionRunner};
use super::folders::AppFolder;
use super::host::host;
use super::tables::ScriptTables;
use super::{frame, sealed, session, words};
use crate::store::{Options, Pending, Store};

/// Makes the calls that bytes describe.
const SCRIPT: &str = include_str!("check.js");
/// The words that it may use: none that reaches other servers.
const WORDS: &str = r#"
export { change, page, service, Live } from "bine:internal/context";
export { error, notFound, redirect } from "bine:internal/answers";
export { raw } from "bine:internal/markup";
export * from "bine:internal/tables";
export { element, node, tree } from "bine:internal/trees";
"#;
/// The name of its module.
const MODULE: &str = "bine:check";
/// Runs of one instance. A new one begins with empty tables.
const MAX_RUNS: u32 = 200;

/// Runs the calls that the bytes describe, in an application with tables: as a page, as a service, as
/// an `async` service, or without a call. Asserts that the host survives them, that a script sees no
/// failure of the host itself, that the rows are as their columns require, and that a further call
/// works.
///
/// # Panics
///
/// One of these does not hold.
pub fn check_script_calls(bytes: &[u8]) {
    thread_local! {
        static TESTED: RefCell<Option<TestedScript>> = RefCell::default();
    }
    let Some((&kind, steps)) = bytes.split_first() else { return };
    TESTED.with_borrow_mut(|tested| {
        let kept = tested.take().filter(|own| own.runs < MAX_RUNS);
        let mut own = kept.unwrap_or_else(TestedScript::start);
        own.run(kind, steps);
        if own.instance.retired().is_some() {
            // A limit is no defect; its exact place depends on the machine.
            return;
        }
        own.expect_sound();
        *tested = Some(own);
    });
}

/// An application that has loaded.
struct TestedScript {
    instance: Rc<Instance>,
    exports: Value,
    store: Store,
    runtime: tokio::runtime::Runtime,
    runs: u32,
}

struct BuiltInModules;

impl ModuleLoader for BuiltInModules {
    fn load(&self, _path: &str) -> Result<String, LoadError> {
        // Only a built-in module may import the functions of the host themselves.
        Ok(format!("export * from \"{MODULE}\";"))
    }

    fn load_built_in(&self, name: &str) -> Option<String> {
        match name {
            MODULE => Some(SCRIPT.to_owned()),
            "bine" => Some(WORDS.to_owned()),
            name => words::module(name).map(str::to_owned),
        }
    }
}

/// Runs the function of `change`.
struct Runner(Rc<Instance>);

impl FunctionRunner for Runner {
    fn run(&self, function: &Function, state: &Rc<CallState>) -> Option<Result<Value, Fault>> {
        self.0.call_within(function, &[], Rc::<CallState>::clone(state)).finished()
    }
}

impl TestedScript {
    fn start() -> Self {
        let app = AppFolder {
            path: "checked".to_owned(),
            folder: PathBuf::new(),
            settings: AppSettings::default(),
            files: Vec::new(),
        };
        let tables = ScriptTables::new("checked.");
        let instance = Instance::new(InstanceSettings {
            limits: Limits { memory: 32 << 20, ..Limits::default() },
            host: host("checked"),
            loader: Box::new(BuiltInModules),
            modules: vec![
                call_host::host_module(&app),
                session::host_module(),
                frame::host_module(),
                sealed::host_module(),
                tables.host_module(),
            ],
        });
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build();
        let (instance, runtime) = (instance.unwrap(), runtime.unwrap());
        let exports = instance.load("check.js").finished().expect("no promise waits").unwrap();
        let store = Store::in_memory(Options::new()).unwrap();
        store.declare(&tables.schemas().unwrap()).unwrap().wait().unwrap();
        Self { instance: Rc::new(instance), exports, store, runtime, runs: 0 }
    }

    fn function(&self, name: &str) -> &Function {
        match self.exports.property(name) {
            Some(Value::Function(function)) => function,
            other => panic!("the script has no function {name}, but {other:?}"),
        }
    }

    fn state(&self, is_page: bool) -> Rc<CallState> {
        let runner = Rc::new(Runner(Rc::clone(&self.instance)));
        CallState::without_request(self.store.clone(), is_page, Some(runner))
    }

    fn run(&mut self, kind: u8, steps: &[u8]) {
        self.runs += 1;
        let steps = [Value::Bytes(steps.to_vec())];
        let result = match kind % 4 {
            0 => self.later(&steps, true),
            1 => self.service("run", &steps),
            2 => self.later(&steps, false),
            // As a timer that no call has set.
            _ => self.instance.call(self.function("run"), &steps).finished().unwrap(),
        };
        match result {
            Ok(_) | Err(Fault::Limit(..) | Fault::Ended(_)) => {}
            Err(fault) => panic!("{fault}"),
        }
        // Work that the calls have begun without waiting for it.
        let mut background = pin!(self.instance.background());
        self.runtime.block_on(poll_fn(|task| {
            let _ = background.as_mut().poll(task);
            Poll::Ready(())
        }));
    }

    /// Runs the calls with waits.
    fn later(&self, steps: &[Value], is_page: bool) -> Result<Value, Fault> {
        let call = self.instance.call_within(self.function("runLater"), steps, self.state(is_page));
        self.runtime.block_on(call)
    }

    /// Calls a function in a transaction, which is committed if it succeeds.
    fn service(&self, name: &str, arguments: &[Value]) -> Result<Value, Fault> {
        let (state, mut transaction) = (self.state(false), self.store.begin());
        let context = Rc::<CallState>::clone(&state);
        let result = state.within(&mut transaction, || {
            self.instance.call_within(self.function(name), arguments, context).finished()
        });
        let result = result.expect("the function does not wait");
        if result.is_ok() {
            // A change may be too large for the store.
            let _ = self.store.commit(transaction).map(Pending::wait);
        }
        result
    }

    fn expect_sound(&self) {
        let last = format!("message {}", self.runs);
        self.service("insert", &[Value::Text(last.clone())]).unwrap();
        let state = self.state(true);
        let mut call =
            self.instance.call_within(self.function("inspect"), &[Value::Text(last)], state);
        let told = call.finished().expect("the function does not wait").unwrap();
        assert!(told.as_text().is_some_and(|text| text.parse::<u64>().is_ok()), "{told:?}");
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(500))]

        #[test]
        fn survives_any_calls_of_the_host(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
            check_script_calls(&bytes);
        }
    }
}

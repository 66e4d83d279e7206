//! Tests of tables through scripts: real instances, and stores in memory.

mod changing;
mod declaring;
mod guide;
mod markup;
mod properties;
mod reading;

use std::collections::BTreeMap;
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::time::Duration;

use bine_script::{
    Clock, Fault, Host, Instance, Level, Limits, LoadError, Messages, ModuleLoader, Randomness,
    ScriptError, Settings, Value,
};

use super::{ROWS, ScriptTables, WORDS};
use crate::scripts::call_state::CallState;
use crate::scripts::table_failure::TableFailure;
use crate::store::{Options, Recorder, Store};

/// A module of an application: its words, the tables of a message board, and functions that the
/// test adds.
const BOARD: &str = r#"
    import { table, text, integer, number, boolean, bytes, time, now, choice, ref, TableError } from "bine";
    const forums = table("forums", { name: text().unique() });
    const messages = table("messages", {
        forum: text().index(), body: text().max(500), author: text().index(), at: now(),
    });
"#;

/// A clock that never advances, so that no time limit ends a script.
struct StoppedClock;

impl Clock for StoppedClock {
    fn now(&self) -> Duration {
        Duration::ZERO
    }

    fn sleep_until(&self, _time: Duration) -> Pin<Box<dyn Future<Output = ()>>> {
        Box::pin(std::future::pending())
    }
}

struct Zeros;

impl Randomness for Zeros {
    fn fill(&self, bytes: &mut [u8]) {
        bytes.fill(0);
    }
}

struct Unexpected;

impl Messages for Unexpected {
    fn log(&self, _level: Level, text: &str) {
        println!("{text}");
    }

    fn report(&self, error: &ScriptError) {
        panic!("{error}");
    }
}

struct Files(BTreeMap<String, String>);

impl ModuleLoader for Files {
    fn load(&self, path: &str) -> Result<String, LoadError> {
        self.0.get(path).cloned().ok_or(LoadError::NotFound)
    }

    fn load_built_in(&self, name: &str) -> Option<String> {
        match name {
            // The functions of the host themselves are for tests with wrong arguments.
            "bine" => Some(
                "export * from 'bine:internal/tables'; export * as host from 'bine:internal/tables-host';"
                    .to_owned(),
            ),
            "bine:runtime" => Some(
                "export * from 'bine:internal/markup'; export { $rows } from 'bine:internal/rows';"
                    .to_owned(),
            ),
            "bine:internal/rows" => Some(ROWS.to_owned()),
            "bine:internal/tables" => Some(WORDS.to_owned()),
            _ => None,
        }
    }
}

/// An application that has loaded, with its tables in a store.
struct App {
    instance: Instance,
    exports: Value,
    store: Store,
    tables: Rc<ScriptTables>,
}

/// The result of a call.
#[derive(Debug)]
struct Outcome {
    result: Result<Value, Fault>,
    failure: Option<TableFailure>,
}

/// Loads a module without declaring its tables.
fn load(source: &str) -> (Instance, Rc<ScriptTables>, Result<Value, Fault>) {
    load_named("board.", source)
}

/// Loads a module of the application whose tables have this prefix.
fn load_named(prefix: &str, source: &str) -> (Instance, Rc<ScriptTables>, Result<Value, Fault>) {
    let tables = ScriptTables::new(prefix);
    let files = [("index.js".to_owned(), source.to_owned())];
    let instance = Instance::new(Settings {
        limits: Limits::default(),
        host: Host {
            clock: Box::new(StoppedClock),
            randomness: Box::new(Zeros),
            messages: Box::new(Unexpected),
        },
        loader: Box::new(Files(files.into())),
        modules: vec![tables.host_module()],
    });
    let instance = instance.unwrap();
    let exports = instance.load("index.js").finished().expect("no promise waits");
    (instance, tables, exports)
}

impl App {
    /// An application with this module.
    fn new(source: &str) -> Self {
        Self::in_store(source, Store::in_memory(Options::new()).unwrap())
    }

    fn in_store(source: &str, store: Store) -> Self {
        Self::named("board.", source, store)
    }

    fn named(prefix: &str, source: &str, store: Store) -> Self {
        let (instance, tables, exports) = load_named(prefix, source);
        let exports = exports.unwrap_or_else(|fault| panic!("{fault}"));
        store.declare(&tables.schemas().unwrap()).unwrap().wait().unwrap();
        Self { instance, exports, store, tables }
    }

    /// The message board with these functions.
    fn board(functions: &str) -> Self {
        Self::new(&format!("{BOARD}{functions}"))
    }

    fn call(&self, state: &Rc<CallState>, name: &str, arguments: &[Value]) -> Outcome {
        let Some(Value::Function(function)) = self.exports.property(name) else {
            panic!("the module exports no function {name}")
        };
        let result = self.instance.call_within(function, arguments, state.clone()).finished();
        let result = result.expect("no promise waits");
        let failure = match &result {
            Err(Fault::Exception(error)) => state.failure_of(error),
            _ => None,
        };
        Outcome { result, failure }
    }

    /// Calls a function as a page, which may only read.
    fn page(&self, name: &str, arguments: &[Value]) -> Outcome {
        let state = CallState::without_request(self.store.clone(), false, None);
        self.call(&state, name, arguments)
    }

    /// Calls a function in a transaction, which is committed if it succeeds.
    fn service(&self, name: &str, arguments: &[Value]) -> Outcome {
        let state = CallState::without_request(self.store.clone(), false, None);
        let mut transaction = self.store.begin();
        let outcome = state.within(&mut transaction, || self.call(&state, name, arguments));
        if outcome.result.is_ok() {
            self.store.commit(transaction).unwrap().wait().unwrap();
        }
        outcome
    }

    /// The result of a page, which is text, as one.
    fn text(&self, name: &str, arguments: &[Value]) -> String {
        self.page(name, arguments).text()
    }

    /// The result of a transaction, which is text.
    fn change(&self, name: &str, arguments: &[Value]) -> String {
        self.service(name, arguments).text()
    }

    /// The result of a page, with its reads.
    fn recorded(&self, name: &str, arguments: &[Value]) -> (String, Recorder) {
        let recorder = Recorder::default();
        let state = CallState::without_request(self.store.with_recorder(&recorder), false, None);
        (self.call(&state, name, arguments).text(), recorder)
    }
}

impl Outcome {
    /// The text that a function has returned, or its exception in one line.
    fn text(self) -> String {
        match self.result {
            Ok(Value::Text(text)) => text,
            Ok(other) => format!("{other:?}"),
            Err(Fault::Exception(error)) => format!("{}: {}", error.name, error.message),
            Err(fault) => panic!("{fault}"),
        }
    }
}

fn text(text: &str) -> Value {
    Value::Text(text.to_owned())
}

//! Runs JavaScript modules within limits: the script engine of Bine, on QuickJS-ng.
//!
//! An [`Instance`] is the script of one application, on one thread. Its [`ModuleLoader`] supplies
//! JavaScript text; [`HostModule`]s supply functions of the host, synchronous or asynchronous.
//! [`Value`]s without behavior pass between both. The crate knows no word of the web, and no other
//! crate knows the engine: every call of it is in this one.
//!
//! An instance performs no I/O. Its [`Host`] supplies the time, random bytes and a place for
//! messages. A [`Call`] that waits is a future, so no thread ever blocks.
//!
//! # Limits
//!
//! [`Limits`] bound the memory, the stack, the run time between two awaits and the time of a call.
//! An instance that exceeds one ends, the fault names the limit and the position, and the host
//! starts a new instance. The limits protect a server from mistakes: **scripts are trusted code**.
//! The engine is written in C and shares the process. A built-in function of the engine that runs
//! long without calling the script is not interrupted, such as `Array.prototype.indexOf` of an
//! object with a `length` of 2^53. The position of an interrupted loop is that of the last call in
//! it, or of its function.
//!
//! # Markup
//!
//! The built-in module `bine:internal/markup` exports what compiled markup needs: `$markup` for the
//! constant pieces, `$html` to fill their holes, and `raw`. Markup has its own class, so a plain
//! string is always escaped. The host gets it as [`Markup`]: text, and marks for the end of the
//! head and for regions. A host function makes a region from the markup of a function of the script
//! by [`HostCall::call`] and [`Markup::in_region`]. Marks keep their places when markup is nested.
//!
//! `$row` registers the markup of a row that depends only on columns. By such a row template, a host
//! function writes its rows without objects ([`HostCall::row_writer`]), and `$fillRows` those of an
//! array. The callback of the script writes rows that a row template cannot.
//!
//! # Trees
//!
//! The built-in module `bine:internal/tree` exports what compiled markup needs to build trees, `$shape`
//! and `$tree`, and the words `tree`, `element` and `nodeKind`. A tree passes to the host as
//! [`Value::Tree`], unless it has nodes of the script: `expand` replaces them by what they show. The
//! bytes of all nodes count against the limit of memory, until no tree of the script has them.
//!
//! # Contexts
//!
//! A host passes a context with a call ([`Instance::call_within`]), and its functions read it
//! ([`HostCall::context`]), also after the script has waited.
//!
//! # Example
//!
//! ```
//! use std::future::Future;
//! use std::pin::Pin;
//! use std::time::Duration;
//!
//! use bine_script::{
//!     Clock, Host, HostModule, Instance, Level, Limits, LoadError, Messages, ModuleLoader,
//!     MonotonicStart, Randomness, ScriptError, Settings, Value,
//! };
//!
//! struct Files;
//!
//! impl ModuleLoader for Files {
//!     fn load(&self, path: &str) -> Result<String, LoadError> {
//!         match path {
//!             "index.js" => Ok("import { greeting } from 'bine:app';
//!                               export default (name) => `${greeting()}, ${name}`;"
//!                 .to_owned()),
//!             _ => Err(LoadError::NotFound),
//!         }
//!     }
//! }
//!
//! struct System(MonotonicStart);
//!
//! impl Clock for System {
//!     fn now(&self) -> Duration {
//!         self.0.elapsed()
//!     }
//!
//!     fn sleep_until(&self, _time: Duration) -> Pin<Box<dyn Future<Output = ()>>> {
//!         Box::pin(std::future::pending()) // a server uses the timers of its runtime
//!     }
//! }
//!
//! impl Randomness for System {
//!     fn fill(&self, bytes: &mut [u8]) {
//!         bytes.fill(4); // a server uses the system's generator
//!     }
//! }
//!
//! impl Messages for System {
//!     fn log(&self, level: Level, text: &str) {
//!         println!("{level:?} {text}");
//!     }
//!
//!     fn report(&self, error: &ScriptError) {
//!         println!("{error}");
//!     }
//! }
//!
//! let start = MonotonicStart::new();
//! let instance = Instance::new(Settings {
//!     limits: Limits::default(),
//!     host: Host {
//!         clock: Box::new(System(start)),
//!         randomness: Box::new(System(start)),
//!         messages: Box::new(System(start)),
//!     },
//!     loader: Box::new(Files),
//!     modules: vec![HostModule::new("bine:app").function("greeting", |_| Ok("Hello".into()))],
//! })?;
//! let exports = instance.load("index.js").finished().expect("no promise waits")?;
//! let Some(Value::Function(page)) = exports.property("default") else { panic!() };
//! let result = instance.call(page, &["Ada".into()]).finished();
//! assert_eq!(result, Some(Ok("Hello, Ada".into())));
//! # Ok::<(), bine_script::Fault>(())
//! ```
#![deny(unsafe_code)]

mod captured;
mod convert;
mod error;
mod exception;
mod functions;
mod globals;
mod host;
mod host_error;
mod host_function;
mod instance;
mod limits;
mod markup;
mod markup_functions;
mod module;
mod modules;
#[allow(unsafe_code, reason = "the engine is written in C; the rest of the crate is safe")]
mod quickjs;
mod row_functions;
mod row_template;
mod slots;
mod state;
mod template;
mod timer_functions;
mod timers;
mod tree;
mod tree_functions;
mod value;
mod wake;

pub use error::{Fault, Frame, Misuse, Position, ScriptError, excerpt};
pub use host::{Clock, Host, Level, Messages, MonotonicStart, Randomness};
pub use host_error::HostError;
pub use host_function::{HostCall, HostModule};
pub use instance::{Background, Call, Instance, Settings, Usage};
pub use limits::{Limit, Limits, ValueLimits};
pub use markup::{Markup, MarkupPart, MarkupParts};
pub use modules::{LoadError, ModuleLoader};
pub use row_template::{RowCell, RowSource, RowWriter, Unwritten};
pub use value::{Function, RecordKeys, Records, Value};

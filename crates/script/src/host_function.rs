//! Functions of the host that scripts import from built-in modules.

use std::any::Any;
use std::future::Future;
use std::rc::Rc;

use crate::exception;
use crate::host_error::{HostError, HostFuture, throw_type};
use crate::quickjs::{self, Arguments, Callback, Thrown};
use crate::row_template::{Captured, RowWriter};
use crate::state::State;
use crate::value::{Function, Value};

type Synchronous = dyn Fn(&HostCall<'_, '_>) -> Result<Value, HostError>;
type Asynchronous = dyn Fn(&HostCall<'_, '_>) -> Result<HostFuture, HostError>;

/// A built-in module whose exports are functions and values of the host.
#[derive(Clone, Default)]
pub struct HostModule {
    name: String,
    exports: Vec<(String, Export)>,
}

#[derive(Clone)]
enum Export {
    Value(Value),
    Synchronous(Rc<Synchronous>),
    Asynchronous(Rc<Asynchronous>),
}

/// An export of a module that is not written in JavaScript.
pub(crate) enum NativeExport {
    Function(Rc<dyn Callback>),
    Value(Value),
}

/// One call of a host function by a script.
pub struct HostCall<'a, 'js> {
    arguments: &'a Arguments<'a, 'js>,
    state: &'a State,
}

impl HostModule {
    /// A module without exports. Its name is `bine` or begins with `bine:`.
    ///
    /// # Panics
    /// If the name is another one.
    pub fn new(name: impl Into<String>) -> Self {
        let name = name.into();
        assert!(name == "bine" || name.starts_with("bine:"), "the name of a built-in: {name}");
        Self { name, exports: Vec::new() }
    }

    /// Adds a function that returns at once. It must not block.
    #[must_use]
    pub fn function(
        self,
        name: &str,
        function: impl Fn(&HostCall<'_, '_>) -> Result<Value, HostError> + 'static,
    ) -> Self {
        self.with(name, Export::Synchronous(Rc::new(function)))
    }

    /// Adds a function that returns a promise. It reads its arguments and the context at once; the
    /// future that it returns is polled by the thread of the instance and settles the promise. An
    /// error in place of a future is thrown by the call, and there is no promise.
    #[must_use]
    pub fn async_function<Work>(
        self,
        name: &str,
        function: impl Fn(&HostCall<'_, '_>) -> Result<Work, HostError> + 'static,
    ) -> Self
    where
        Work: Future<Output = Result<Value, HostError>> + 'static,
    {
        let function = move |call: &HostCall<'_, '_>| Ok(Box::pin(function(call)?) as HostFuture);
        self.with(name, Export::Asynchronous(Rc::new(function)))
    }

    /// Adds a constant.
    #[must_use]
    pub fn value(self, name: &str, value: Value) -> Self {
        self.with(name, Export::Value(value))
    }

    fn with(mut self, name: &str, export: Export) -> Self {
        let is_name = |name: &str| {
            name.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_')
                && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
        };
        assert!(is_name(name), "the name of an export: {name}");
        self.exports.push((name.to_owned(), export));
        self
    }

    /// The name by which scripts import it.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The exports as values of the engine.
    pub(crate) fn exports(&self, state: &State) -> Vec<(String, NativeExport)> {
        let native = |export: &Export| match export {
            Export::Value(value) => NativeExport::Value(value.clone()),
            Export::Synchronous(function) => NativeExport::Function(Rc::new(SynchronousCallback {
                state: state.itself(),
                function: Rc::clone(function),
            })),
            Export::Asynchronous(function) => {
                NativeExport::Function(Rc::new(AsynchronousCallback {
                    state: state.itself(),
                    function: Rc::clone(function),
                }))
            }
        };
        self.exports.iter().map(|(name, export)| (name.clone(), native(export))).collect()
    }
}

impl HostCall<'_, '_> {
    /// The context of the [call](crate::Instance::call_within) for which the function runs; `None`
    /// for a call without one, and while a module is loaded.
    pub fn context(&self) -> Option<Rc<dyn Any>> {
        self.state.context()
    }

    /// The number of arguments.
    #[expect(clippy::len_without_is_empty, reason = "a call is no collection")]
    pub const fn len(&self) -> usize {
        self.arguments.len()
    }

    /// An argument; [`Value::Undefined`] if it is missing. An argument that is a promise is
    /// [`HostError::Promise`].
    pub fn value(&self, index: usize) -> Result<Value, HostError> {
        let read = self.state.converter().read(&self.arguments.at(index));
        read.map_err(|unfit| unfit.error(&ordinal(index)))
    }

    /// An argument that must be a string.
    pub fn text(&self, index: usize) -> Result<String, HostError> {
        self.with_text(index, str::to_owned)
    }

    /// Passes an argument that must be a string to `read`, without a copy if it is ASCII.
    pub fn with_text<R>(&self, index: usize, read: impl FnOnce(&str) -> R) -> Result<R, HostError> {
        let value = self.arguments.at(index);
        quickjs::with_text(&value, read).ok_or_else(|| self.mismatch(index, "a string"))
    }

    /// An argument that must be a finite number.
    pub fn number(&self, index: usize) -> Result<f64, HostError> {
        let number = self.arguments.at(index).as_number().filter(|number| number.is_finite());
        number.ok_or_else(|| self.mismatch(index, "a finite number"))
    }

    /// An argument that must be a function. The host may call it during this call and later.
    pub fn function(&self, index: usize) -> Result<Function, HostError> {
        match self.value(index) {
            Ok(Value::Function(function)) => Ok(function),
            Err(error @ HostError::Type(_))
                if quickjs::kind(&self.arguments.at(index)) == quickjs::Kind::Function =>
            {
                Err(error)
            }
            _ => Err(self.mismatch(index, "a function")),
        }
    }

    /// Calls a function of the script before this call returns, in the same context. If the function
    /// returns a promise, the result is [`HostError::Promise`], but the function has run. An
    /// exception of the function is [`HostError::Script`]; a host function that returns it throws
    /// the same value again, with its own stack trace.
    pub fn call(&self, function: &Function, arguments: &[Value]) -> Result<Value, HostError> {
        let ctx = self.arguments.ctx();
        let restored = self.state.functions.borrow().restore(ctx, function);
        let foreign = || HostError::Type("the function belongs to another instance".to_owned());
        let function = restored.ok_or_else(foreign)?;
        let passed = self.state.engine_arguments(ctx, arguments).map_err(HostError::Type)?;
        let converter = self.state.converter();
        match function.call_arg::<rquickjs::Value<'_>>(passed) {
            Ok(result) => {
                converter.read(&result).map_err(|unfit| unfit.error("the result of the function"))
            }
            Err(_) => {
                let thrown = ctx.catch();
                let error = exception::of_value(&thrown);
                self.state.remember_thrown(ctx, thrown);
                Err(HostError::Script(Box::new(error)))
            }
        }
    }

    fn mismatch(&self, index: usize, wanted: &str) -> HostError {
        let found = self.arguments.at(index);
        let found = match quickjs::kind(&found) {
            quickjs::Kind::Undefined => "undefined".to_owned(),
            _ => {
                let mut words = exception::inspect(&found);
                words.truncate(words.floor_char_boundary(40));
                words
            }
        };
        HostError::Type(format!("{} must be {wanted}, not {found}", ordinal(index)))
    }
}

impl<'js> HostCall<'_, 'js> {
    /// A writer for rows of the host, if the argument is a row template of the script. The arguments
    /// after it are the values of the row template that do not depend on the row.
    pub fn row_writer(&self, index: usize) -> Option<RowWriter<'_, 'js>> {
        let row = self.state.row_template(&self.arguments.at(index))?;
        let holes = self.state.holes();
        let captured = Captured { arguments: self.arguments, first: index + 1, holes };
        Some(RowWriter::new(row, captured))
    }
}

/// The words for an argument.
fn ordinal(index: usize) -> String {
    format!("argument {}", index + 1)
}

struct SynchronousCallback {
    state: Rc<State>,
    function: Rc<Synchronous>,
}

impl Callback for SynchronousCallback {
    fn call<'js>(&self, arguments: &Arguments<'_, 'js>) -> Result<rquickjs::Value<'js>, Thrown> {
        let call = HostCall { arguments, state: &self.state };
        let ctx = arguments.ctx();
        match (self.function)(&call) {
            Ok(value) => {
                let written = self.state.converter().write(ctx, &value);
                written.map_err(|unfit| throw_type(ctx, &unfit.message("the result of the host")))
            }
            Err(error) => Err(self.state.throw(ctx, &error)),
        }
    }
}

struct AsynchronousCallback {
    state: Rc<State>,
    function: Rc<Asynchronous>,
}

impl Callback for AsynchronousCallback {
    fn call<'js>(&self, arguments: &Arguments<'_, 'js>) -> Result<rquickjs::Value<'js>, Thrown> {
        let call = HostCall { arguments, state: &self.state };
        let ctx = arguments.ctx();
        let work = (self.function)(&call);
        let begun = work.and_then(|work| self.state.begin_operation(ctx, work));
        begun.map_err(|error| self.state.throw(ctx, &error))
    }
}

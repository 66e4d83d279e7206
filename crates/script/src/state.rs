//! The state of an instance that its host functions share. It does not own the engine.

use std::any::Any;
use std::cell::{Cell, OnceCell, RefCell};
use std::collections::HashSet;
use std::rc::{Rc, Weak};
use std::sync::Arc;
use std::task::Waker;
use std::time::Duration;

use rquickjs::function::Args;
use rquickjs::{Ctx, Exception, Object, Persistent};

use crate::captured::{Captures, LargeCaptures};
use crate::convert::{self, Converter, Layouts};
use crate::error::{Fault, ScriptError};
use crate::functions::Functions;
use crate::host::Host;
use crate::host_error::{HostError, HostFuture, throw_type};
use crate::limits::{Limit, Limits};
use crate::modules::Modules;
use crate::quickjs::{self, Callbacks, MarkupClass, Memory, Property, Thrown};
use crate::row_template::RowTemplate;
use crate::slots::Slots;
use crate::template::{Holes, Templates};
use crate::timers::Timers;
use crate::tree::Trees;
use crate::value::Value;
use crate::wake::WakeQueue;

/// Rejected promises without a handler that are kept until the end of a turn.
const MAX_REJECTIONS: usize = 256;

pub(crate) struct State {
    itself: Weak<State>,
    pub(crate) limits: Limits,
    pub(crate) host: Host,
    pub(crate) memory: Rc<Memory>,
    pub(crate) callbacks: Rc<Callbacks>,
    pub(crate) modules: Modules,
    pub(crate) functions: RefCell<Functions>,
    layouts: RefCell<Layouts>,
    /// The classes of the engine, known since its start.
    pub(crate) classes: OnceCell<Classes>,
    pub(crate) templates: Templates,
    pub(crate) row_templates: RefCell<Vec<Rc<RowTemplate>>>,
    pub(crate) trees: Trees,
    /// Keys that no captured object may have.
    pub(crate) private_keys: RefCell<HashSet<String>>,
    pub(crate) large_captures: LargeCaptures,
    pub(crate) timers: RefCell<Timers>,
    pub(crate) wakes: Arc<WakeQueue>,
    pub(crate) operations: RefCell<Slots<Operation>>,
    pub(crate) calls: RefCell<Slots<WaitingCall>>,
    /// Rejected promises without a handler.
    rejections: RefCell<Vec<(usize, ScriptError)>>,
    /// The exception of a function that a host function has called.
    thrown: RefCell<Option<(ScriptError, Persistent<rquickjs::Value<'static>>)>>,
    /// When the script that runs must have given control back.
    deadline: Cell<Duration>,
    /// The same by the processor time of the thread, once `deadline` is over.
    thread_deadline: Cell<Option<Duration>>,
    pub(crate) is_running: Cell<bool>,
    /// The context of the call for which the engine runs.
    context: RefCell<Option<Rc<dyn Any>>>,
    /// Whether host functions are being polled.
    pub(crate) is_driving: Cell<bool>,
    /// Whether the engine was interrupted because of a limit.
    pub(crate) is_interrupted: Cell<bool>,
    /// The limit because of which no further call is accepted.
    pub(crate) retired: Cell<Option<Limit>>,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Classes {
    pub(crate) markup: MarkupClass,
    pub(crate) plain: u32,
}

/// An asynchronous host function that has been called.
pub(crate) struct Operation {
    /// The context in which it was called.
    context: Option<Rc<dyn Any>>,
    /// `None` while it is polled.
    pub(crate) work: Option<HostFuture>,
    resolve: Persistent<rquickjs::Function<'static>>,
    reject: Persistent<rquickjs::Function<'static>>,
}

/// A call that waits for a promise.
pub(crate) struct WaitingCall {
    /// `None` once the instance has ended.
    pub(crate) promise: Option<Persistent<rquickjs::Value<'static>>>,
    pub(crate) outcome: Option<Result<Value, Fault>>,
    pub(crate) waker: Option<Waker>,
    /// Whether a host function of this instance waits for the call.
    pub(crate) is_nested: bool,
    /// The position of the function, for the error of [`Limit::AwaitTime`].
    pub(crate) place: ScriptError,
}

/// What [`State::new`] takes over from the builder.
pub(crate) struct Parts {
    pub(crate) limits: Limits,
    pub(crate) host: Host,
    pub(crate) modules: Modules,
}

impl State {
    pub(crate) fn new(parts: Parts) -> Rc<Self> {
        let memory = Memory::new(parts.limits.memory);
        Rc::new_cyclic(|itself| Self {
            itself: itself.clone(),
            trees: Trees::new(&memory, parts.limits.memory),
            memory,
            callbacks: Rc::default(),
            modules: parts.modules,
            functions: RefCell::new(Functions::new(parts.limits.functions)),
            layouts: RefCell::default(),
            classes: OnceCell::new(),
            templates: Templates::default(),
            row_templates: RefCell::default(),
            private_keys: RefCell::default(),
            large_captures: LargeCaptures::default(),
            timers: RefCell::default(),
            wakes: Arc::default(),
            operations: RefCell::default(),
            calls: RefCell::default(),
            rejections: RefCell::default(),
            thrown: RefCell::default(),
            deadline: Cell::default(),
            thread_deadline: Cell::default(),
            is_running: Cell::default(),
            context: RefCell::default(),
            is_driving: Cell::default(),
            is_interrupted: Cell::default(),
            retired: Cell::default(),
            limits: parts.limits,
            host: parts.host,
        })
    }

    /// A counted reference to this state.
    pub(crate) fn itself(&self) -> Rc<Self> {
        // Invariant: a state is reachable only through its `Rc`.
        self.itself.upgrade().expect("a state lives in an Rc")
    }

    pub(crate) fn classes(&self) -> Classes {
        // Invariant: the classes are registered before any script or conversion runs.
        *self.classes.get().expect("the classes are registered at the start")
    }

    pub(crate) fn converter(&self) -> Converter<'_> {
        let Classes { markup, plain } = self.classes();
        let limits = self.limits.values;
        let (functions, layouts) = (&self.functions, &self.layouts);
        Converter { limits, markup, plain_class: plain, functions, layouts, trees: &self.trees }
    }

    /// The data that the holes of markup need.
    pub(crate) fn holes(&self) -> Holes<'_> {
        let Classes { markup, plain } = self.classes();
        let captures = Captures {
            plain_class: plain,
            private_keys: &self.private_keys,
            large: &self.large_captures,
        };
        let (captures, limit) = (Some(captures), self.limits.memory);
        Holes { markup, trees: &self.trees, captures, limit }
    }

    /// The row template of this number.
    pub(crate) fn row_template(&self, number: &rquickjs::Value<'_>) -> Option<Rc<RowTemplate>> {
        let index = usize::try_from(number.as_int()?).ok()?;
        self.row_templates.borrow().get(index).cloned()
    }

    /// The context of the call for which the engine runs.
    pub(crate) fn context(&self) -> Option<Rc<dyn Any>> {
        self.context.borrow().clone()
    }

    /// Sets the context of what runs next. Returns the one before.
    pub(crate) fn replace_context(&self, context: Option<Rc<dyn Any>>) -> Option<Rc<dyn Any>> {
        self.trees.set_in_call(context.is_some());
        self.context.replace(context)
    }

    /// Whether a limit requires the script to stop.
    pub(crate) fn must_stop(&self) -> bool {
        let stops = self.is_interrupted.get() || self.memory.is_exceeded() || self.is_overtime();
        self.is_interrupted.set(stops);
        stops
    }

    /// Begins the run time of a script.
    pub(crate) fn begin_run(&self) {
        self.deadline.set(self.host.clock.now() + self.limits.run_time);
        self.thread_deadline.set(None);
    }

    fn is_overtime(&self) -> bool {
        let clock = &self.host.clock;
        if clock.now() <= self.deadline.get() {
            return false;
        }
        let now = clock.thread_time();
        if let Some(deadline) = self.thread_deadline.get() {
            return now > deadline;
        }
        self.thread_deadline.set(Some(now + self.limits.run_time));
        false
    }

    /// The arguments of a call of the script.
    pub(crate) fn engine_arguments<'js>(
        &self,
        ctx: &Ctx<'js>,
        values: &[Value],
    ) -> Result<Args<'js>, String> {
        let converter = self.converter();
        let mut written = Vec::with_capacity(values.len());
        for (index, value) in values.iter().enumerate() {
            let value = converter.write(ctx, value);
            written.push(value.map_err(|unfit| unfit.message(&format!("argument {}", index + 1)))?);
        }
        convert::args(ctx, written).ok_or_else(|| "too many arguments".to_owned())
    }

    /// Begins an asynchronous host function and returns its promise.
    pub(crate) fn begin_operation<'js>(
        &self,
        ctx: &Ctx<'js>,
        work: HostFuture,
    ) -> Result<rquickjs::Value<'js>, HostError> {
        let mut operations = self.operations.borrow_mut();
        if operations.len() >= self.limits.operations {
            let limit = self.limits.operations;
            return Err(HostError::Range(format!("more than {limit} unfinished host functions")));
        }
        let exhausted = |_| HostError::Other("out of memory".to_owned());
        let (promise, resolve, reject) = ctx.promise().map_err(exhausted)?;
        let resolve = Persistent::save(ctx, resolve);
        let reject = Persistent::save(ctx, reject);
        let context = self.context();
        let key = operations.insert(Operation { context, work: Some(work), resolve, reject });
        drop(operations);
        self.wakes.wake(key);
        Ok(promise.into_value())
    }

    /// Settles the promise of a finished host function, in the context in which it was called.
    pub(crate) fn finish_operation(
        &self,
        ctx: &Ctx<'_>,
        key: usize,
        outcome: Result<Value, HostError>,
    ) {
        let Some(operation) = self.operations.borrow_mut().remove(key) else { return };
        self.replace_context(operation.context);
        let written = match outcome {
            Ok(value) => self
                .converter()
                .write(ctx, &value)
                .map_err(|unfit| HostError::Type(unfit.message("the result of the host"))),
            Err(error) => Err(error),
        };
        let (settle, value) = match written {
            Ok(value) => (operation.resolve, value),
            Err(error) => {
                self.throw(ctx, &error);
                (operation.reject, ctx.catch())
            }
        };
        let settled = settle.restore(ctx).and_then(|settle| settle.call::<_, ()>((value,)));
        if settled.is_err() {
            ctx.catch();
        }
    }

    /// Records or forgets a promise that was rejected without a handler.
    pub(crate) fn track_rejection(&self, promise: usize, error: Option<ScriptError>) {
        let mut rejections = self.rejections.borrow_mut();
        match error {
            Some(error) if rejections.len() < MAX_REJECTIONS => rejections.push((promise, error)),
            Some(error) => self.host.messages.report(&error),
            None => rejections.retain(|(known, _)| *known != promise),
        }
    }

    /// Reports the promises of a turn that were rejected without a handler.
    pub(crate) fn report_rejections(&self) {
        let rejections = std::mem::take(&mut *self.rejections.borrow_mut());
        for (_, error) in rejections {
            self.host.messages.report(&error);
        }
    }

    /// Keeps what a function has thrown, to throw the same again.
    pub(crate) fn remember_thrown<'js>(&self, ctx: &Ctx<'js>, thrown: rquickjs::Value<'js>) {
        let error = crate::exception::of_value(&thrown);
        self.thrown.replace(Some((error, Persistent::save(ctx, thrown))));
    }

    pub(crate) fn recall_thrown<'js>(
        &self,
        ctx: &Ctx<'js>,
        error: &ScriptError,
    ) -> Option<rquickjs::Value<'js>> {
        let (known, thrown) = self.thrown.take()?;
        if known == *error { thrown.restore(ctx).ok() } else { None }
    }

    /// Throws an error of the host in the script.
    pub(crate) fn throw(&self, ctx: &Ctx<'_>, error: &HostError) -> Thrown {
        match error {
            HostError::Type(message) | HostError::Promise(message) => {
                return throw_type(ctx, message);
            }
            HostError::Range(message) => Exception::throw_range(ctx, message),
            HostError::Other(message) => Exception::throw_message(ctx, message),
            HostError::Script(error) => match self.recall_thrown(ctx, error) {
                Some(thrown) => ctx.throw(thrown),
                None => Exception::throw_message(ctx, &error.message),
            },
        };
        Thrown
    }

    /// Reads the result of a call.
    pub(crate) fn read_result(&self, value: &rquickjs::Value<'_>) -> Result<Value, Fault> {
        let read = self.converter().read(value);
        read.map_err(|unfit| ScriptError::new("TypeError", unfit.message("the result")).into())
    }

    /// The exports of a module. One that cannot pass is undefined.
    pub(crate) fn exports(&self, namespace: &Object<'_>) -> Value {
        let mut exports = Vec::new();
        let visited = quickjs::properties(namespace.as_value(), |_, name, found| {
            let value = match found {
                Property::Value(value) => self.converter().read(&value).unwrap_or_default(),
                Property::Accessor | Property::Missing => Value::Undefined,
            };
            exports.push((name.to_owned(), value));
            Ok::<(), Thrown>(())
        });
        if visited.is_err() {
            namespace.ctx().catch();
        }
        Value::Object(exports)
    }

    /// The result of a promise is known.
    pub(crate) fn settle_call(&self, key: usize, outcome: Result<Value, Fault>) {
        let mut calls = self.calls.borrow_mut();
        let Some(call) = calls.get_mut(key) else { return };
        if call.outcome.is_none() {
            call.outcome = Some(outcome);
        }
        let waker = call.waker.take();
        drop(calls);
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    /// Lets another waiting call drive the instance.
    pub(crate) fn elect_driver(&self) {
        let calls = self.calls.borrow();
        let of_task = |call: &WaitingCall| call.waker.clone().filter(|_| !call.is_nested);
        let waker = calls.iter().find_map(|(_, call)| of_task(call));
        drop(calls);
        if let Some(waker) = waker {
            self.wakes.set_driver(&waker);
        }
    }

    /// Drops every reference to values of the engine.
    pub(crate) fn clear(&self) {
        // Futures, callbacks and contexts may own anything, so nothing is borrowed while they are
        // dropped.
        let operations = std::mem::take(&mut *self.operations.borrow_mut());
        drop(operations);
        drop(self.thrown.take());
        let timers = std::mem::take(&mut *self.timers.borrow_mut());
        drop(timers);
        self.functions.borrow_mut().clear();
        self.layouts.borrow_mut().clear();
        self.templates.clear();
        self.row_templates.borrow_mut().clear();
        self.trees.clear();
        self.wakes.clear();
        self.callbacks.clear();
    }
}

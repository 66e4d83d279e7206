//! One application's script: its own engine, its modules, and the calls of the host.

use std::any::Any;
use std::cell::RefCell;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context as TaskContext, Poll};

use rquickjs::promise::PromiseState;
use rquickjs::{Context, Ctx, Module, Persistent, Runtime};

use crate::error::{Fault, Frame, Misuse, Position, ScriptError};
use crate::host::Host;
use crate::host_function::HostModule;
use crate::limits::{Limit, Limits};
use crate::module::EngineLoader;
use crate::modules::{ModuleLoader, Modules};
use crate::quickjs::{self, Kind, LimitedAllocator, Thrown};
use crate::state::{Parts, State, WaitingCall};
use crate::timers::{Sleep, TIMER_KEY};
use crate::value::{Function, Value};
use crate::{exception, globals, timer_functions};

/// The settings of an instance.
pub struct Settings {
    /// The limits.
    pub limits: Limits,
    /// The host.
    pub host: Host,
    /// Supplies the application's modules.
    pub loader: Box<dyn ModuleLoader>,
    /// Built-in modules with functions of the host.
    pub modules: Vec<HostModule>,
}

/// The script of one application, on one thread: modules, timers and promises in an engine that it
/// shares with no other instance.
///
/// A call runs in place until it has a result or waits for a promise. Then the returned [`Call`] is
/// a future: polling it also polls the host functions and timers of the instance. When no call
/// waits, [`background`](Self::background) does this.
///
/// When a limit is exceeded, the instance ends: [`retired`](Self::retired) names the limit, every
/// further call fails, and the host starts a new instance. An exception of the script does not end
/// the instance.
pub struct Instance {
    inner: Rc<Inner>,
}

struct Inner {
    state: Rc<State>,
    /// `None` once the instance has ended.
    engine: RefCell<Option<Engine>>,
}

struct Engine {
    // Fields are dropped in this order: the helper and the context before their runtime.
    watch: Persistent<rquickjs::Function<'static>>,
    context: Context,
    runtime: Runtime,
}

/// A call of a script. Dropping it forgets the result, but does not stop the script.
#[must_use = "a call that waits continues only while it is polled"]
pub struct Call {
    inner: Rc<Inner>,
    progress: Progress,
}

enum Progress {
    Finished(Option<Result<Value, Fault>>),
    Waiting { key: usize, sleep: Pin<Box<dyn Future<Output = ()>>> },
}

/// Drives an instance while no call waits. It completes when no timer and no host function remains,
/// or when the instance ends.
pub struct Background {
    inner: Rc<Inner>,
}

/// An instance's use of resources.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// Bytes of the engine's heap.
    pub memory: usize,
    /// Calls that wait.
    pub calls: usize,
    /// Unfinished host functions.
    pub operations: usize,
    /// Functions of the script that the host holds.
    pub functions: usize,
    /// Functions of the host and templates.
    pub callbacks: usize,
}

impl Instance {
    /// Starts an engine. It has loaded no module yet.
    pub fn new(settings: Settings) -> Result<Self, Fault> {
        let Settings { limits, host, loader, modules } = settings;
        let host_modules: Rc<[HostModule]> = modules.into();
        let modules = Modules::new(loader);
        let state = State::new(Parts { limits, host, modules });
        let engine = Engine::start(&state, &host_modules);
        let inner = Rc::new(Inner { engine: RefCell::new(None), state });
        // A failed start has dropped its engine; `Inner` clears the rest.
        let engine = engine.map_err(|error| Fault::Limit(Limit::Memory, error))?;
        inner.engine.replace(Some(engine));
        Ok(Self { inner })
    }

    /// Loads a module with its imports and runs it. The result is an object with its exports: a
    /// value that cannot pass to the host is [`Value::Undefined`].
    pub fn load(&self, path: &str) -> Call {
        let state = &self.inner.state;
        let started = self.inner.enter(|ctx, engine| {
            state.modules.begin(path);
            let promise = Module::import(ctx, path).map_err(|_| self.inner.load_fault(ctx))?;
            let position = Position { file: path.to_owned(), line: 1, column: 1 };
            self.inner.watch(ctx, engine, promise.into_value(), true, position)
        });
        self.inner.call_of(started)
    }

    /// Calls a function of the script. It runs before this method returns, until it has a result
    /// or waits.
    pub fn call(&self, function: &Function, arguments: &[Value]) -> Call {
        self.begin_call(function, arguments, None)
    }

    /// Calls a function of the script, like [`call`](Self::call), with a context: the functions of
    /// the host that run for this call find it by [`HostCall::context`](crate::HostCall::context).
    ///
    /// A host function that returns a promise, and a timer, keep the context in which they were
    /// begun. It is the current one again while their promise is settled and while the jobs that
    /// follow run, so a function of the script has its context after each `await`. The context is
    /// dropped when the last of them has ended, or with the instance.
    ///
    /// The code that settles a promise decides the context of the code that has waited for it. If
    /// two calls wait for one promise, both continue in the context of the call that has begun its
    /// operation, or that resolves it; a callback of a `FinalizationRegistry` runs in any context.
    /// A script must therefore not keep promises in variables that several calls share.
    pub fn call_within(
        &self,
        function: &Function,
        arguments: &[Value],
        context: Rc<dyn Any>,
    ) -> Call {
        self.begin_call(function, arguments, Some(context))
    }

    fn begin_call(
        &self,
        function: &Function,
        arguments: &[Value],
        context: Option<Rc<dyn Any>>,
    ) -> Call {
        let state = &self.inner.state;
        let started = self.inner.enter(|ctx, engine| {
            state.replace_context(context);
            let restored = state.functions.borrow().restore(ctx, function);
            let function = restored.ok_or(Fault::Misuse(Misuse::ForeignFunction))?;
            // Checked before the function runs, or a recursion through the host would never end.
            if state.calls.borrow().len() >= state.limits.calls {
                return Err(Fault::Misuse(Misuse::TooManyCalls));
            }
            let passed = state.engine_arguments(ctx, arguments);
            let passed =
                passed.map_err(|reason| Fault::from(ScriptError::new("TypeError", reason)))?;
            let result = function.call_arg::<rquickjs::Value<'_>>(passed);
            let result = result.map_err(|_| Fault::from(exception::take(ctx)))?;
            if quickjs::kind(&result) != Kind::Promise {
                return state.read_result(&result).map(Started::Finished);
            }
            let Some(promise) = result.as_promise() else {
                return state.read_result(&result).map(Started::Finished);
            };
            match promise.state() {
                PromiseState::Resolved => {
                    let value = promise.result::<rquickjs::Value<'_>>();
                    let value = value.and_then(Result::ok);
                    let undefined = || rquickjs::Value::new_undefined(ctx.clone());
                    state.read_result(&value.unwrap_or_else(undefined)).map(Started::Finished)
                }
                PromiseState::Rejected => Err(self.inner.rejection(promise).into()),
                PromiseState::Pending => {
                    let position = place_of(&function);
                    self.inner.watch(ctx, engine, result, false, position)
                }
            }
        });
        self.inner.call_of(started)
    }

    /// The limit because of which the instance accepts no further call. After
    /// [`Limit::AwaitTime`], calls that wait may still finish; after any other limit, all have
    /// failed.
    pub fn retired(&self) -> Option<Limit> {
        self.inner.state.retired.get()
    }

    /// Whether the script runs now, so that a call fails with [`Misuse::Reentered`]: this is called
    /// by a host function.
    pub fn is_running(&self) -> bool {
        self.inner.state.is_running.get()
    }

    /// Names keys that no object may have which a handler in the browser captures, such as the private
    /// columns of tables. A page that passes one is an exception.
    pub fn refuse_captured_keys(&self, keys: impl IntoIterator<Item = String>) {
        self.inner.state.private_keys.borrow_mut().extend(keys);
    }

    /// The handlers whose captured values have more than 1 KiB, each once: a sentence with the place and
    /// the correction.
    pub fn take_large_captures(&self) -> Vec<String> {
        self.inner.state.large_captures.take()
    }

    /// Whether the instance is idle until its next call.
    pub fn is_idle(&self) -> bool {
        self.inner.is_idle()
    }

    /// Drives timers and host functions that no call waits for.
    pub fn background(&self) -> Background {
        Background { inner: Rc::clone(&self.inner) }
    }

    /// The instance's use of resources.
    pub fn usage(&self) -> Usage {
        let state = &self.inner.state;
        state.functions.borrow_mut().free_released();
        let functions = state.functions.borrow().len();
        Usage {
            memory: state.memory.used(),
            calls: state.calls.borrow().len(),
            operations: state.operations.borrow().len(),
            functions,
            callbacks: state.callbacks.len(),
        }
    }

    /// Ends the instance. Returns the bytes that the engine has not freed: 0, unless the engine has
    /// a defect.
    pub fn close(self) -> usize {
        self.inner.free_engine();
        self.inner.state.memory.used()
    }

    /// Frees what the script does not use any more, cycles included.
    pub fn collect_garbage(&self) {
        // The result is of no interest: a limit that is exceeded here is found by the next call.
        let _ = self.inner.enter(|ctx, _| {
            ctx.run_gc();
            Ok(())
        });
    }
}

/// A call that has begun.
enum Started {
    Finished(Value),
    Waiting(usize),
}

impl Engine {
    fn start(state: &Rc<State>, host_modules: &Rc<[HostModule]>) -> Result<Self, Box<ScriptError>> {
        let exhausted =
            |_| Box::new(ScriptError::new("", "the limit of memory is too small for an engine"));
        let allocator = LimitedAllocator::new(Rc::clone(&state.memory));
        let runtime = Runtime::new_with_alloc(allocator).map_err(exhausted)?;
        runtime.set_max_stack_size(state.limits.stack);
        let context = Context::full(&runtime).map_err(exhausted)?;
        let loader =
            || EngineLoader { state: Rc::clone(state), host_modules: Rc::clone(host_modules) };
        runtime.set_loader(loader(), loader());
        let interrupted = Rc::clone(state);
        runtime.set_interrupt_handler(Some(Box::new(move || interrupted.must_stop())));
        let tracker = Rc::clone(state);
        runtime.set_host_promise_rejection_tracker(Some(Box::new(
            move |_, promise, reason, is_handled| {
                let error = (!is_handled).then(|| exception::of_value(&reason));
                tracker.track_rejection(quickjs::identity(&promise), error);
            },
        )));
        state.begin_run();
        let watch = context.with(|ctx| {
            let installed = globals::install(&ctx, state);
            installed
                .map(|watch| Persistent::save(&ctx, watch))
                .map_err(|Thrown| Box::new(exception::take(&ctx)))
        });
        match watch {
            Ok(watch) => Ok(Self { watch, context, runtime }),
            Err(error) => {
                state.clear();
                Err(error)
            }
        }
    }
}

impl Inner {
    /// Runs `work` in the engine, then all jobs that are ready, within the limit of run time.
    fn enter<R>(
        &self,
        work: impl FnOnce(&Ctx<'_>, &Engine) -> Result<R, Fault>,
    ) -> Result<R, Fault> {
        if let Some(limit) = self.state.retired.get() {
            return Err(Fault::Ended(limit));
        }
        self.enter_anyway(work)
    }

    /// The same, also after [`Limit::AwaitTime`] was exceeded. `work` sets the context of itself and
    /// of the jobs; there is none before.
    fn enter_anyway<R>(
        &self,
        work: impl FnOnce(&Ctx<'_>, &Engine) -> Result<R, Fault>,
    ) -> Result<R, Fault> {
        let state = &self.state;
        if state.is_running.replace(true) {
            return Err(Fault::Misuse(Misuse::Reentered));
        }
        let (result, job_error) = {
            let _running = Running(state);
            let engine = self.engine.borrow();
            let Some(engine) = engine.as_ref() else {
                return Err(Fault::Ended(state.retired.get().unwrap_or(Limit::Memory)));
            };
            state.functions.borrow_mut().free_released();
            state.trees.free_released();
            state.begin_run();
            let result = engine.context.with(|ctx| work(&ctx, engine));
            let job_error = self.run_jobs(engine);
            if !state.is_interrupted.get() {
                state.report_rejections();
            }
            (result, job_error)
        };
        self.check_limits(result, job_error)
    }

    /// Runs the jobs that are ready. Returns the exception of a job that was interrupted.
    fn run_jobs(&self, engine: &Engine) -> Option<ScriptError> {
        // One read of the clock covers several jobs, most of which are short.
        const JOBS_PER_CHECK: u32 = 16;
        let mut count = 0_u32;
        loop {
            count = count.wrapping_add(1);
            if self.state.is_interrupted.get() || self.state.memory.is_exceeded() {
                return None;
            }
            if count.is_multiple_of(JOBS_PER_CHECK) && self.state.must_stop() {
                return None;
            }
            match engine.runtime.execute_pending_job() {
                Ok(true) => {}
                Ok(false) => return None,
                Err(exception) => {
                    let error = exception.0.with(|ctx| exception::take(&ctx));
                    if self.state.must_stop() {
                        return Some(error);
                    }
                    self.state.host.messages.report(&error);
                }
            }
        }
    }

    /// Ends the instance if a limit was exceeded.
    fn check_limits<R>(
        &self,
        result: Result<R, Fault>,
        job_error: Option<ScriptError>,
    ) -> Result<R, Fault> {
        let state = &self.state;
        let limit = if state.memory.is_exceeded() {
            Limit::Memory
        } else if state.is_interrupted.get() {
            Limit::RunTime
        } else if matches!(&result, Err(Fault::Exception(error)) if is_stack_overflow(error)) {
            Limit::Stack
        } else {
            return result;
        };
        let error = match result {
            Err(Fault::Exception(error)) => Some(*error),
            Err(other @ Fault::Misuse(_)) => return Err(other),
            _ => job_error.or_else(|| self.interrupted_call()),
        };
        let error = error.unwrap_or_else(|| ScriptError::new("InternalError", "interrupted"));
        self.end(limit);
        Err(Fault::Limit(limit, Box::new(error)))
    }

    /// The error of the waiting call that was interrupted.
    fn interrupted_call(&self) -> Option<ScriptError> {
        let engine = self.engine.borrow();
        let engine = engine.as_ref()?;
        engine.context.with(|ctx| {
            let calls = self.state.calls.borrow();
            let mut promises = calls.iter().filter_map(|(_, call)| {
                let promise = call.promise.clone()?.restore(&ctx).ok()?.into_promise()?;
                if promise.state() != PromiseState::Rejected {
                    return None;
                }
                promise.result::<rquickjs::Value<'_>>()?.err()?;
                Some(exception::take(&ctx))
            });
            promises.find(|error| !error.frames.is_empty())
        })
    }

    /// Frees the engine. Every waiting call fails.
    fn end(&self, limit: Limit) {
        let state = &self.state;
        state.retired.set(Some(limit));
        let waiting: Vec<usize> = state.calls.borrow().iter().map(|(key, _)| key).collect();
        for key in waiting {
            state.settle_call(key, Err(Fault::Ended(limit)));
        }
        self.free_engine();
    }

    fn free_engine(&self) {
        let engine = self.engine.borrow_mut().take();
        // References of the engine's values go first, the engine last.
        for (_, call) in self.state.calls.borrow_mut().iter_mut() {
            call.promise = None;
        }
        self.state.clear();
        drop(engine);
    }

    /// The fault of a module that could not be loaded.
    fn load_fault(&self, ctx: &Ctx<'_>) -> Fault {
        self.state.modules.explain(exception::take(ctx)).into()
    }

    /// The reason of a rejected promise, which counts as handled.
    fn rejection(&self, promise: &rquickjs::Promise<'_>) -> ScriptError {
        self.state.track_rejection(quickjs::identity(promise.as_value()), None);
        match promise.result::<rquickjs::Value<'_>>() {
            Some(Err(_)) => exception::take(promise.ctx()),
            _ => ScriptError::new("Error", "rejected"),
        }
    }

    /// Lets the engine report when a promise is settled.
    fn watch<'js>(
        &self,
        ctx: &Ctx<'js>,
        engine: &Engine,
        promise: rquickjs::Value<'js>,
        is_module: bool,
        position: Position,
    ) -> Result<Started, Fault> {
        let frame = Frame { function: String::new(), position: Some(position) };
        let mut place = ScriptError::new("TimeoutError", "the promise was not settled in time");
        place.frames.push(frame);
        let saved = Persistent::save(ctx, promise.clone());
        let call = WaitingCall {
            promise: Some(saved),
            outcome: None,
            waker: None,
            is_nested: false,
            place,
        };
        let key = self.state.calls.borrow_mut().insert(call);
        let watch = engine.watch.clone().restore(ctx);
        let watched = watch.and_then(|watch| watch.call::<_, ()>((promise, key as f64, is_module)));
        watched.map_err(|_| {
            self.state.calls.borrow_mut().remove(key);
            Fault::from(exception::take(ctx))
        })?;
        Ok(Started::Waiting(key))
    }

    fn call_of(self: &Rc<Self>, started: Result<Started, Fault>) -> Call {
        let progress = match started {
            Ok(Started::Finished(value)) => Progress::Finished(Some(Ok(value))),
            Ok(Started::Waiting(key)) => {
                // The jobs of the same turn may have settled it.
                let outcome = self.take_outcome(key);
                match outcome {
                    Some(outcome) => Progress::Finished(Some(outcome)),
                    None => {
                        let clock = &self.state.host.clock;
                        let until = clock.now() + self.state.limits.await_time;
                        Progress::Waiting { key, sleep: clock.sleep_until(until) }
                    }
                }
            }
            Err(fault) => Progress::Finished(Some(Err(fault))),
        };
        Call { inner: Rc::clone(self), progress }
    }

    /// Takes the outcome of a waiting call, if it is known.
    fn take_outcome(&self, key: usize) -> Option<Result<Value, Fault>> {
        let mut calls = self.state.calls.borrow_mut();
        calls.get(key)?.outcome.as_ref()?;
        let call = calls.remove(key);
        drop(calls);
        // In its own statement: the promise of the call is dropped before its engine.
        let outcome = call?.outcome?;
        match outcome {
            // The promise of an `async` function was rejected by the error that a call would throw.
            // While the script runs, its engine cannot end.
            Err(Fault::Exception(error))
                if is_stack_overflow(&error) && !self.state.is_running.get() =>
            {
                self.end(Limit::Stack);
                Some(Err(Fault::Limit(Limit::Stack, error)))
            }
            outcome => Some(outcome),
        }
    }

    fn is_idle(&self) -> bool {
        self.engine.borrow().is_none()
            || (self.state.operations.borrow().len() == 0
                && self.state.timers.borrow().is_empty()
                && self.state.calls.borrow().len() == 0)
    }

    /// Polls the host functions that can make progress, and fires the timers that are due.
    fn drive(&self) {
        // A host function that calls its own instance polls that call within this method.
        if self.state.is_driving.replace(true) {
            return;
        }
        self.drive_once();
        self.state.is_driving.set(false);
    }

    fn drive_once(&self) {
        // A host function that wakes itself at once is polled again in the next turn of the task.
        let mut left = self.state.operations.borrow().len() + 1;
        while left > 0 && self.engine.borrow().is_some() {
            left -= 1;
            let Some(key) = self.state.wakes.pop() else { break };
            if key != TIMER_KEY {
                self.poll_operation(key);
            }
        }
        if !self.state.timers.borrow().is_empty() {
            self.drive_timers();
        }
    }

    fn poll_operation(&self, key: usize) {
        let state = &self.state;
        let work = state.operations.borrow_mut().get_mut(key).and_then(|one| one.work.take());
        let Some(mut work) = work else { return };
        let waker = state.wakes.waker(key);
        let mut task = TaskContext::from_waker(&waker);
        let polled = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            work.as_mut().poll(&mut task)
        }));
        let outcome = match polled {
            Ok(Poll::Pending) => {
                if let Some(operation) = state.operations.borrow_mut().get_mut(key) {
                    operation.work = Some(work);
                }
                return;
            }
            Ok(Poll::Ready(outcome)) => outcome,
            Err(_panic) => {
                let message = "the host function has failed".to_owned();
                Err(crate::host_error::HostError::Other(message))
            }
        };
        let finished = self.enter_anyway(|ctx, _| {
            state.finish_operation(ctx, key, outcome);
            Ok(())
        });
        self.report_limit(finished);
    }

    fn drive_timers(&self) {
        for id in timer_functions::due(&self.state) {
            let fired = self.enter_anyway(|ctx, _| {
                timer_functions::fire(&self.state, ctx, id);
                Ok(())
            });
            self.report_limit(fired);
        }
        self.await_timers();
    }

    /// Sleeps until the first timer is due.
    fn await_timers(&self) {
        let state = &self.state;
        let mut timers = state.timers.borrow_mut();
        let Some(due) = timers.first_due() else {
            let sleep = timers.sleep.take();
            drop(timers);
            drop(sleep);
            return;
        };
        if timers.sleep.as_ref().is_none_or(|sleep| sleep.until != due) {
            let future = state.host.clock.sleep_until(due);
            timers.sleep = Some(Sleep { until: due, future });
        }
        let waker = state.wakes.waker(TIMER_KEY);
        let Some(sleep) = timers.sleep.as_mut() else { return };
        if sleep.future.as_mut().poll(&mut TaskContext::from_waker(&waker)).is_ready() {
            // The clock has reached the time between the look at the timers and the sleep.
            timers.sleep = None;
            drop(timers);
            state.wakes.wake(TIMER_KEY);
        }
    }

    /// Reports a limit that no call has exceeded, but a job of the background.
    fn report_limit(&self, result: Result<(), Fault>) {
        if let Err(Fault::Limit(limit, error)) = result {
            let message = format!("the limit of {limit} was exceeded: {}", error.message);
            let error = ScriptError { message, ..*error };
            self.state.host.messages.report(&error);
        }
    }
}

/// Marks the engine as not running when dropped, also by a panic, and ends the context.
///
/// There is no outer context to restore: a call that a host function begins runs while that function
/// is polled, when the engine runs no other call.
struct Running<'s>(&'s State);

impl Drop for Running<'_> {
    fn drop(&mut self) {
        self.0.is_running.set(false);
        self.0.replace_context(None);
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        self.free_engine();
    }
}

impl Future for Call {
    type Output = Result<Value, Fault>;

    fn poll(mut self: Pin<&mut Self>, task: &mut TaskContext<'_>) -> Poll<Self::Output> {
        let call = &mut *self;
        let Progress::Waiting { key, sleep } = &mut call.progress else {
            let Progress::Finished(result) = &mut call.progress else { return Poll::Pending };
            // A caller must not poll a finished future; it then waits, as the contract permits.
            return result.take().map_or(Poll::Pending, Poll::Ready);
        };
        let (key, inner) = (*key, &call.inner);
        inner.drive();
        let mut outcome = inner.take_outcome(key);
        if outcome.is_none() && sleep.as_mut().poll(task).is_ready() {
            outcome = inner.expire(key);
        }
        if let Some(outcome) = outcome {
            call.progress = Progress::Finished(None);
            call.inner.state.elect_driver();
            return Poll::Ready(outcome);
        }
        let is_nested = inner.state.is_driving.get();
        if let Some(waiting) = inner.state.calls.borrow_mut().get_mut(key) {
            waiting.waker = Some(task.waker().clone());
            waiting.is_nested = is_nested;
        }
        // The task of a nested call is a host function, which this instance itself polls.
        if !is_nested {
            inner.state.wakes.set_driver(task.waker());
        }
        Poll::Pending
    }
}

impl Inner {
    /// Ends the wait of a call for which [`Limit::AwaitTime`] is over.
    fn expire(&self, key: usize) -> Option<Result<Value, Fault>> {
        let call = self.state.calls.borrow_mut().remove(key)?;
        if self.state.retired.get().is_none() {
            self.state.retired.set(Some(Limit::AwaitTime));
        }
        Some(Err(Fault::Limit(Limit::AwaitTime, Box::new(call.place))))
    }
}

impl Drop for Call {
    fn drop(&mut self) {
        if let Progress::Waiting { key, .. } = &self.progress {
            let removed = self.inner.state.calls.borrow_mut().remove(*key);
            drop(removed);
            self.inner.state.elect_driver();
        }
    }
}

impl Future for Background {
    type Output = ();

    fn poll(self: Pin<&mut Self>, task: &mut TaskContext<'_>) -> Poll<()> {
        self.inner.drive();
        if self.inner.is_idle() {
            return Poll::Ready(());
        }
        self.inner.state.wakes.set_background(task.waker());
        Poll::Pending
    }
}

impl fmt::Debug for Instance {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (usage, retired) = (self.usage(), self.retired());
        out.debug_struct("Instance").field("usage", &usage).field("retired", &retired).finish()
    }
}

impl Call {
    /// The result, if the call has one already. A host that polls in place needs no task for it.
    pub fn finished(&mut self) -> Option<Result<Value, Fault>> {
        if let Progress::Finished(result) = &mut self.progress { result.take() } else { None }
    }
}

/// The position at which a function is defined.
fn place_of(function: &rquickjs::Function<'_>) -> Position {
    let number = |name: &str| function.get::<_, u32>(name).unwrap_or_default();
    let file = function.get::<_, String>("fileName").unwrap_or_default();
    function.ctx().catch();
    Position { file, line: number("lineNumber"), column: number("columnNumber") }
}

fn is_stack_overflow(error: &ScriptError) -> bool {
    error.name == "RangeError" && error.message == "Maximum call stack size exceeded"
}

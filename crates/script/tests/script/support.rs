//! A host for tests: modules in memory, a simulated clock, fixed random bytes, recorded messages.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::future::Future;
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

use bine_script::{
    Call, Clock, Fault, Function, Host, HostModule, Instance, Level, Limits, LoadError, Messages,
    ModuleLoader, Randomness, ScriptError, Settings, Value,
};

/// A clock that the test moves. Each look at it takes a fixed time, so that an endless loop ends.
#[derive(Default)]
pub(crate) struct SimulatedClock {
    now: Cell<Duration>,
    pub(crate) step: Cell<Duration>,
    /// Whether the thread gets no processor time.
    pub(crate) is_preempted: Cell<bool>,
    sleeps: RefCell<Vec<(Duration, Waker)>>,
}

impl SimulatedClock {
    /// Jumps to the next time for which a task waits. Returns whether there is one.
    fn jump(&self) -> bool {
        let next = self.sleeps.borrow().iter().map(|(time, _)| *time).min();
        let Some(next) = next else { return false };
        self.now.set(self.now.get().max(next));
        let (due, rest) = self.sleeps.take().into_iter().partition(|(time, _)| *time <= next);
        self.sleeps.replace(rest);
        let due: Vec<(Duration, Waker)> = due;
        for (_, waker) in due {
            waker.wake();
        }
        true
    }
}

struct SharedClock(Rc<SimulatedClock>);

impl Clock for SharedClock {
    fn now(&self) -> Duration {
        let now = self.0.now.get();
        self.0.now.set(now + self.0.step.get());
        now
    }

    fn thread_time(&self) -> Duration {
        if self.0.is_preempted.get() { Duration::ZERO } else { self.now() }
    }

    fn sleep_until(&self, time: Duration) -> Pin<Box<dyn Future<Output = ()>>> {
        let clock = Rc::clone(&self.0);
        Box::pin(std::future::poll_fn(move |task| {
            if clock.now.get() >= time {
                return Poll::Ready(());
            }
            clock.sleeps.borrow_mut().push((time, task.waker().clone()));
            Poll::Pending
        }))
    }
}

/// Random bytes 0, 1, 2 and so on.
#[derive(Default)]
struct CountedBytes(Cell<u8>);

impl Randomness for CountedBytes {
    fn fill(&self, bytes: &mut [u8]) {
        for byte in bytes {
            *byte = self.0.get();
            self.0.set(self.0.get().wrapping_add(1));
        }
    }
}

/// The output and the reports of an instance, one line each.
pub(crate) type Log = Rc<RefCell<Vec<String>>>;

struct RecordedMessages(Log);

impl Messages for RecordedMessages {
    fn log(&self, level: Level, text: &str) {
        self.0.borrow_mut().push(format!("{level:?}: {text}"));
    }

    /// Panics at an error with the message `panic`, for tests of a host with a defect.
    fn report(&self, error: &ScriptError) {
        assert_ne!(error.message, "panic", "a defect of the host");
        self.0.borrow_mut().push(format!("reported: {error}"));
    }
}

/// Modules by path. One whose text begins with `!` cannot be compiled.
#[derive(Clone, Default)]
pub(crate) struct Files(pub(crate) BTreeMap<String, String>);

impl ModuleLoader for Files {
    fn load(&self, path: &str) -> Result<String, LoadError> {
        let text = self.0.get(path).ok_or(LoadError::NotFound)?;
        match text.strip_prefix('!') {
            Some(message) => Err(LoadError::Invalid {
                message: message.to_owned(),
                position: None,
                excerpt: None,
            }),
            None => Ok(text.clone()),
        }
    }

    fn load_built_in(&self, name: &str) -> Option<String> {
        match name {
            "bine:runtime" => Some("export * from 'bine:internal/markup';".to_owned()),
            "bine:trees" => Some("export * from 'bine:internal/tree';".to_owned()),
            name => self.0.get(name).cloned(),
        }
    }
}

/// An instance with its host.
pub(crate) struct Script {
    pub(crate) instance: Instance,
    pub(crate) clock: Rc<SimulatedClock>,
    pub(crate) log: Log,
}

/// The settings of a test's instance.
#[derive(Default)]
pub(crate) struct Setup {
    pub(crate) limits: Limits,
    pub(crate) modules: Vec<HostModule>,
    pub(crate) files: Files,
}

impl Setup {
    pub(crate) fn of(files: &[(&str, &str)]) -> Self {
        let files = files.iter().map(|(path, text)| ((*path).to_owned(), (*text).to_owned()));
        Self { files: Files(files.collect()), ..Self::default() }
    }

    pub(crate) fn start(self) -> Script {
        let clock = Rc::new(SimulatedClock::default());
        clock.step.set(Duration::from_micros(100));
        let log = Log::default();
        let host = Host {
            clock: Box::new(SharedClock(Rc::clone(&clock))),
            randomness: Box::<CountedBytes>::default(),
            messages: Box::new(RecordedMessages(Rc::clone(&log))),
        };
        let instance = Instance::new(Settings {
            limits: self.limits,
            host,
            loader: Box::new(self.files),
            modules: self.modules,
        });
        Script { instance: instance.unwrap(), clock, log }
    }
}

/// An instance that has loaded this module as `index.js`.
pub(crate) fn script(source: &str) -> Script {
    let script = Setup::of(&[("index.js", source)]).start();
    script.load();
    script
}

impl Script {
    /// Loads `index.js`.
    pub(crate) fn load(&self) -> Value {
        self.run(self.instance.load("index.js")).unwrap_or_else(|fault| panic!("{fault}"))
    }

    /// Runs a call to its end. Time jumps when the call waits for it.
    pub(crate) fn run(&self, call: Call) -> Result<Value, Fault> {
        run(&self.clock, call)
    }

    /// Drives timers and host functions until all have ended.
    pub(crate) fn run_background(&self) {
        run(&self.clock, self.instance.background());
    }

    /// The exported function of this name.
    pub(crate) fn function(&self, name: &str) -> Function {
        match self.load().property(name) {
            Some(Value::Function(function)) => function.clone(),
            other => panic!("{name} is {other:?}"),
        }
    }

    /// Calls an exported function.
    pub(crate) fn call(&self, name: &str, arguments: &[Value]) -> Result<Value, Fault> {
        self.run(self.instance.call(&self.function(name), arguments))
    }

    /// The result of an exported function, which must be text.
    pub(crate) fn text(&self, name: &str) -> String {
        match self.call(name, &[]) {
            Ok(Value::Text(text)) => text,
            Ok(Value::Html(markup)) => markup.text().into_owned(),
            Ok(other) => format!("{other:?}"),
            Err(fault) => format!("{fault}"),
        }
    }

    /// Ends the instance and checks that its engine has freed everything.
    pub(crate) fn close(self) {
        assert_eq!(self.instance.close(), 0, "bytes that the engine has not freed");
    }
}

/// Runs a future on this thread. Time jumps when it waits.
pub(crate) fn run<F: Future>(clock: &SimulatedClock, future: F) -> F::Output {
    let woken = Arc::new(Woken(AtomicBool::new(false)));
    let waker = Waker::from(Arc::clone(&woken));
    let mut future = pin!(future);
    loop {
        if let Poll::Ready(output) = future.as_mut().poll(&mut Context::from_waker(&waker)) {
            return output;
        }
        while !woken.0.swap(false, Ordering::SeqCst) {
            assert!(clock.jump(), "the future waits, and nothing will wake it");
        }
    }
}

struct Woken(AtomicBool);

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        self.0.store(true, Ordering::SeqCst);
    }
}

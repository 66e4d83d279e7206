//! The limits of an instance, and which of them was exceeded.

use std::fmt;
use std::time::Duration;

/// The limits of one instance. They protect the server from mistakes of a script, not from an
/// attacker who may write scripts: scripts are trusted code.
#[derive(Clone, Debug)]
pub struct Limits {
    /// Bytes of the engine's heap. An allocation that would exceed them ends the instance.
    pub memory: usize,
    /// Bytes of the thread's stack, counted from the place where the instance was created. It must
    /// be less than the thread has, because host functions need some as well.
    pub stack: usize,
    /// How long a script may run without giving control back to the event loop: from a call, or
    /// from the end of an await, until all jobs that are ready have run. A script that is beyond it
    /// may run as long again by the processor time of its thread, which is read only then: a busy
    /// machine must not end a script that has hardly run.
    pub run_time: Duration,
    /// How long a call may take with all its awaits.
    pub await_time: Duration,
    /// Calls that may wait at one time.
    pub calls: usize,
    /// Asynchronous host functions that may be unfinished at one time.
    pub operations: usize,
    /// Timers that may be set at one time.
    pub timers: usize,
    /// Functions of the script that the host may hold at one time.
    pub functions: usize,
    /// Modules that may be loaded.
    pub modules: usize,
    /// Bytes of one module.
    pub module_bytes: usize,
    /// The limits of a value that passes between script and host.
    pub values: ValueLimits,
}

/// The limits of a value that passes between script and host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ValueLimits {
    /// Arrays and objects within each other.
    pub depth: usize,
    /// Bytes of all strings, keys and byte arrays, and 16 for each value.
    pub bytes: usize,
    /// Elements of one array or keys of one object.
    pub entries: usize,
}

/// A limit of [`Limits`] that ends an instance.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Limit {
    /// [`Limits::memory`].
    Memory,
    /// [`Limits::stack`].
    Stack,
    /// [`Limits::run_time`].
    RunTime,
    /// [`Limits::await_time`].
    AwaitTime,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            memory: 64 << 20,
            stack: 512 << 10,
            run_time: Duration::from_millis(200),
            await_time: Duration::from_secs(30),
            calls: 1024,
            operations: 1024,
            timers: 1024,
            functions: 4096,
            modules: 1024,
            module_bytes: 2 << 20,
            values: ValueLimits::default(),
        }
    }
}

impl Default for ValueLimits {
    fn default() -> Self {
        Self { depth: 32, bytes: 8 << 20, entries: 100_000 }
    }
}

impl Limit {
    /// The limit in words, as a log records it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Memory => "memory",
            Self::Stack => "stack",
            Self::RunTime => "run time",
            Self::AwaitTime => "await time",
        }
    }
}

impl fmt::Display for Limit {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.as_str())
    }
}

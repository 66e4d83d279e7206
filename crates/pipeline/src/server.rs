//! Decides what all threads of one server share, and how it starts and stops.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicU8, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::thread;

use rustix::event::{EventfdFlags, eventfd};

use crate::access::{AccessLog, AccessSettings};
use crate::address::Address;
use crate::blocking;
use crate::census::{Census, descriptors};
use crate::clock::Clock;
use crate::connection::Context;
use crate::handler::{Bench, Handler};
use crate::listener::Listener;
use crate::mailbox::{Letter, Mailbox};
use crate::scheduler::{self, Scheduler};
use crate::settings::Settings;

/// A server whose addresses are open. [`run`](Self::run) serves until it is told to stop.
pub struct Server {
    pub(crate) settings: Arc<Settings>,
    pub(crate) listeners: Vec<Listener>,
    pub(crate) census: Census,
    pub(crate) loops: Vec<Loop>,
    /// Event loops that have begun and not ended.
    pub(crate) running_loops: AtomicUsize,
    handler: Arc<dyn Handler>,
    access: Option<AccessSettings>,
    state: AtomicU8,
    /// Becomes readable, for ever, when the server stops.
    stop_bell: OwnedFd,
    background: OnceLock<tokio::runtime::Handle>,
}

/// What others know of a loop.
pub(crate) struct Loop {
    pub(crate) mailbox: Arc<Mailbox>,
    pub(crate) connections: AtomicUsize,
}

/// How far a server is from its end.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum State {
    /// It serves.
    Serving,
    /// It finishes what has begun.
    Draining,
    /// It ends now.
    Over,
}

impl Server {
    /// Opens every address. The handler is asked for its thread-local parts when
    /// [`run`](Self::run) starts the threads. Each reply has its line in `access`, if it is given.
    ///
    /// # Errors
    ///
    /// An address that cannot be opened, by name and with the cure; no address at all; an unknown
    /// scheduler.
    pub fn open(
        settings: Settings,
        handler: Arc<dyn Handler>,
        access: Option<AccessSettings>,
    ) -> io::Result<Self> {
        if settings.listeners.is_empty() {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "no address to listen on"));
        }
        scheduler::check(&settings.scheduler)?;
        blocking::allow(settings.workers);
        let listeners = settings.listeners.iter().map(Listener::open).collect::<io::Result<_>>()?;
        let most = settings.connections.unwrap_or(usize::MAX).min(descriptors());
        let loops = (0..settings.loops.max(1)).map(|_| {
            let mailbox = Arc::new(Mailbox::new()?);
            Ok(Loop { mailbox, connections: AtomicUsize::new(0) })
        });
        Ok(Self {
            listeners,
            census: Census::new(most, settings.connections_per_address),
            loops: loops.collect::<io::Result<_>>()?,
            running_loops: AtomicUsize::new(0),
            settings: Arc::new(settings),
            handler,
            access,
            state: AtomicU8::new(State::Serving as u8),
            stop_bell: eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?,
            background: OnceLock::new(),
        })
    }

    /// The addresses it listens on, with the ports that the kernel chose.
    pub fn addresses(&self) -> impl Iterator<Item = &Address> {
        self.listeners.iter().map(Listener::address)
    }

    /// Serves until [`stop`](Self::stop), with the scheduler that the settings name.
    ///
    /// # Errors
    ///
    /// Threads or descriptors that could not be had.
    pub fn run(self: &Arc<Self>) -> io::Result<()> {
        let scheduler = scheduler::by_name(&self.settings)?;
        self.run_with(scheduler)
    }

    /// Serves until [`stop`](Self::stop), with a scheduler of the program's own.
    ///
    /// # Errors
    ///
    /// Threads or descriptors that could not be had.
    pub fn run_with(self: &Arc<Self>, scheduler: Arc<dyn Scheduler>) -> io::Result<()> {
        let outcome = scheduler.accept(self);
        self.listeners.iter().for_each(Listener::retire);
        self.finish_log();
        outcome
    }

    /// Asks the server to end: what has begun is finished, each reply says `Connection: close`,
    /// and after `timeouts.drain` what is left is cut. Asked again, it ends at once.
    pub fn stop(&self) {
        let next = match self.state() {
            State::Serving => State::Draining,
            State::Draining | State::Over => State::Over,
        };
        self.state.store(next as u8, Ordering::Release);
        if self.running_loops.load(Ordering::Acquire) == 0 {
            // Loops take in first whoever has connected already, then refuse the rest themselves.
            self.refuse_newcomers();
        }
        // The bell cannot overflow in the life of a process.
        let _ = rustix::io::write(&self.stop_bell, &1u64.to_ne_bytes());
        for each in &self.loops {
            each.mailbox.post(Letter::Look);
        }
    }

    pub(crate) fn state(&self) -> State {
        match self.state.load(Ordering::Acquire) {
            0 => State::Serving,
            1 => State::Draining,
            _ => State::Over,
        }
    }

    /// Waits until the access log has what was given to it, a second at most.
    pub(crate) fn finish_log(&self) {
        if let Some(access) = &self.access {
            access.writer.finish();
        }
    }

    /// Has the kernel refuse newcomers from here on.
    pub(crate) fn refuse_newcomers(&self) {
        self.listeners.iter().for_each(Listener::refuse);
    }

    pub(crate) fn stop_bell(&self) -> BorrowedFd<'_> {
        self.stop_bell.as_fd()
    }

    /// What the calling thread needs to run stages.
    pub(crate) fn context(&self) -> Context {
        let clock = std::rc::Rc::new(Clock::kernel());
        let bench = Bench { clock: std::rc::Rc::clone(&clock), chunk_at: self.settings.chunk_at };
        let responder = self.handler.local(bench);
        Context::new(
            Arc::clone(&self.settings),
            clock,
            responder,
            AccessLog::new(self.access.clone()),
        )
    }

    /// The one runtime that drives timers and sockets for handlers on blocking threads, which is
    /// started by the first such call.
    pub(crate) fn background(&self) -> io::Result<&tokio::runtime::Handle> {
        if let Some(handle) = self.background.get() {
            return Ok(handle);
        }
        let started = start_background()?;
        // Two threads may come here at once; the runtime of the one too late serves nobody.
        Ok(self.background.get_or_init(|| started))
    }
}

fn start_background() -> io::Result<tokio::runtime::Handle> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let handle = runtime.handle().clone();
    thread::Builder::new()
        .name("bine async".to_owned())
        .spawn(move || runtime.block_on(std::future::pending::<()>()))?;
    Ok(handle)
}

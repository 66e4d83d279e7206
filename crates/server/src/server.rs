//! The state that all threads of a server share; start, reload and stop.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::thread;
use std::time::Duration;

use bine_admission::Admission;
use bine_log as log;
use tokio::sync::watch;

use crate::access::AccessSettings;
use crate::address::Address;
use crate::blocking::{self, overdue_calls};
use crate::connection::ThreadContext;
use crate::generation::{ConfigSnapshot, Generation};
use crate::handler::{Handler, Waiters, WaitersFactory, WakeHandle};
use crate::http2::FloodCounter;
use crate::lifecycle::State;
use crate::limits::{BudgetMetrics, Budgets, Census, Guard, GuardMetrics, Room};
use crate::mailbox::{Letter, Mailbox};
use crate::metrics::{
    Ending, LoopMetrics, MARKED, SchedulerMetrics, ServerMetrics, Tallies, panics, time_at_work,
};
use crate::scheduler_names;
use crate::settings::Settings;
use crate::system::{Wakeup, event_counter};
use crate::time::Clock;
use crate::tls::HandshakeMetrics;

/// A server whose addresses are open. [`run`](Self::run) serves until the server is stopped.
pub struct Server {
    newest: Mutex<Arc<Generation>>,
    /// The number of changes of the generation, so that a check for a newer one takes no lock.
    changes: AtomicU32,
    pub(crate) census: Arc<Census>,
    pub(crate) guard: Guard,
    pub(crate) budgets: Arc<Budgets>,
    pub(crate) loops: Vec<Loop>,
    /// The number of event loops that run.
    pub(crate) running_loops: AtomicUsize,
    state: AtomicU8,
    /// Whether the server was asked to leave. It stops some time later.
    is_leaving: AtomicBool,
    /// `None` once it has run.
    on_leave: Mutex<Option<LeaveHook>>,
    /// Notifies tasks of `state`.
    state_changes: watch::Sender<State>,
    /// Whether the time to drain is over and connections are cut.
    pub(crate) is_drain_over: AtomicBool,
    /// Becomes readable, and stays so, when the server stops.
    stop_bell: OwnedFd,
    pub(crate) tallies: Arc<Tallies>,
    pub(crate) stalls: Stalls,
    pub(crate) http2_floods: Arc<FloodCounter>,
    /// Reads the metrics of the scheduler, once one runs.
    pub(crate) scheduler: OnceLock<Box<dyn Fn() -> SchedulerMetrics + Send + Sync>>,
    background: OnceLock<tokio::runtime::Handle>,
    /// Locked while the background runtime starts.
    background_start: Mutex<()>,
    make_waiters: OnceLock<WaitersFactory>,
    admission: Arc<Admission>,
    work_report: OnceLock<WorkReport>,
}

/// Describes the program's work in the background, such as writes that no client waits for: passes
/// a line for each kind of work that runs now.
pub type WorkReport = Arc<dyn Fn(&mut dyn FnMut(String)) + Send + Sync>;

/// Runs once when the server is asked to leave. It must not block.
pub type LeaveHook = Box<dyn FnOnce() + Send>;

/// Time after the drain's deadline to cut the remaining connections and to log it.
pub(crate) const GRACE: Duration = Duration::from_secs(1);

/// The part of an event loop's state that other threads use.
pub(crate) struct Loop {
    pub(crate) mailbox: Arc<Mailbox>,
    pub(crate) connections: AtomicUsize,
}

/// Findings of the watchdog, for the metrics.
#[derive(Default)]
pub(crate) struct Stalls {
    /// The number of reports of a stuck loop.
    pub(crate) total: AtomicU64,
    /// The number of loops that are stuck now.
    pub(crate) stuck: AtomicUsize,
    /// Whether the process drains because a new one will replace it.
    pub(crate) replaces: AtomicBool,
}

impl Server {
    /// Opens every address. [`run`](Self::run) starts the threads and asks the handler for their
    /// thread-local parts. With `access`, each reply gets a line in the access log.
    ///
    /// # Errors
    ///
    /// An address cannot be opened; the message names it and the remedy. There is no address. The
    /// scheduler is unknown.
    pub fn open(
        settings: Settings,
        handler: Arc<dyn Handler>,
        access: Option<AccessSettings>,
    ) -> io::Result<Self> {
        check(&settings)?;
        blocking::set_limit(settings.workers);
        let loops = (0..settings.loops.max(1)).map(|_| {
            let mailbox = Arc::new(Mailbox::new()?);
            Ok(Loop { mailbox, connections: AtomicUsize::new(0) })
        });
        let loops: Vec<Loop> = loops.collect::<io::Result<_>>()?;
        let most = settings.workers.max(settings.most_workers);
        let admission = Admission::new(settings.admission.clone(), most);
        let admission = Arc::new(admission.on_loops(loops.len()).on_change(log_admission));
        let budgets = Arc::new(Budgets::new(&settings));
        let (settings, shared) = (Arc::new(settings), Arc::clone(&admission));
        let own = Arc::clone(&budgets);
        let snapshot =
            ConfigSnapshot { settings, access, handler, admission: shared, budgets: own };
        Ok(Self {
            census: Arc::clone(&budgets.census),
            budgets,
            guard: Guard::default(),
            loops,
            running_loops: AtomicUsize::new(0),
            newest: Mutex::new(Arc::new(Generation::open(snapshot, None)?)),
            changes: AtomicU32::new(0),
            state: AtomicU8::new(State::Serving as u8),
            state_changes: watch::Sender::new(State::Serving),
            is_leaving: AtomicBool::new(false),
            on_leave: Mutex::new(None),
            is_drain_over: AtomicBool::new(false),
            stop_bell: event_counter()?,
            tallies: Arc::default(),
            stalls: Stalls::default(),
            http2_floods: Arc::default(),
            scheduler: OnceLock::new(),
            background: OnceLock::new(),
            background_start: Mutex::default(),
            make_waiters: OnceLock::new(),
            admission,
            work_report: OnceLock::new(),
        })
    }

    /// Sets the function that creates the waiters of each thread. Call it before
    /// [`run`](Self::run). Without it no response can be [suspended](crate::Answer::Suspend). A
    /// reload does not change it.
    pub fn set_waiters(&self, make: WaitersFactory) {
        // Set once, before threads exist.
        let _ = self.make_waiters.set(make);
    }

    /// Sets the function that describes the program's work in the background. The server logs its
    /// lines when a stop takes too long. Only the first call has an effect.
    pub fn set_work_report(&self, report: WorkReport) {
        let _ = self.work_report.set(report);
    }

    pub(crate) fn work_report(&self) -> Option<&WorkReport> {
        self.work_report.get()
    }

    /// The admission policy. Workers and loops report wait times to it.
    pub const fn admission(&self) -> &Arc<Admission> {
        &self.admission
    }

    /// Creates the waiters of the calling thread.
    pub(crate) fn waiters(
        &self,
        clock: &Rc<Clock>,
        wakeup: Arc<Wakeup>,
    ) -> Option<Box<dyn Waiters>> {
        self.make_waiters.get().map(|make| make(Rc::clone(clock), WakeHandle(wakeup)))
    }

    /// The addresses on which the server listens, with the ports that the kernel chose.
    pub fn addresses(&self) -> impl Iterator<Item = Address> {
        let generation = self.generation();
        let addresses: Vec<Address> =
            generation.listeners.iter().map(|listener| listener.address().clone()).collect();
        addresses.into_iter()
    }

    /// The addresses as URLs, such as `https://127.0.0.1:8443/` for an address with TLS.
    pub fn urls(&self) -> impl Iterator<Item = String> {
        let generation = self.generation();
        let urls = generation.listeners.iter().map(|listener| match listener.address() {
            Address::Tcp(address) if listener.is_secure() => format!("https://{address}/"),
            address if listener.is_secure() => format!("{address} (TLS)"),
            address => address.to_string(),
        });
        urls.collect::<Vec<_>>().into_iter()
    }

    /// Serves new connections with new settings, a new handler and a new access log. Existing
    /// connections keep the old ones until they close.
    ///
    /// New addresses are opened before any other change. An address that is no longer in the
    /// settings is closed after the connections that wait there were accepted. An address keeps the
    /// options of its socket. Scheduler, loops, workers and queue do not change.
    ///
    /// # Errors
    ///
    /// As for [`open`](Self::open); then the configuration is unchanged.
    pub fn replace(
        &self,
        settings: Settings,
        handler: Arc<dyn Handler>,
        access: Option<AccessSettings>,
    ) -> io::Result<()> {
        check(&settings)?;
        // Without the lock, two calls could open the same address.
        let mut newest = self.newest.lock().unwrap_or_else(PoisonError::into_inner);
        let (settings, admission) = (Arc::new(settings), Arc::clone(&self.admission));
        let budgets = Arc::clone(&self.budgets);
        let snapshot = ConfigSnapshot { settings, access, handler, admission, budgets };
        let next = Arc::new(Generation::open(snapshot, Some(&newest))?);
        self.budgets.limit(&next.settings);
        self.admission.amend(next.settings.admission.clone());
        let older = std::mem::replace(&mut *newest, next);
        self.changes.fetch_add(1, Ordering::Release);
        drop(newest);
        older.supersede();
        for each in &self.loops {
            each.mailbox.post(Letter::Look);
        }
        Ok(())
    }

    /// The generation for new connections.
    pub(crate) fn generation(&self) -> Arc<Generation> {
        Arc::clone(&self.newest.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// The number of changes of the generation.
    pub(crate) fn changes(&self) -> u32 {
        self.changes.load(Ordering::Acquire)
    }

    /// Metrics since the start. Takes a lock that otherwise only starting and ending threads take,
    /// and reads a small file of the kernel for each loop.
    pub fn metrics(&self) -> ServerMetrics {
        let sum = self.tallies.sum();
        let (open, most) = self.census.filled();
        let mut closed = Ending::ALL.map(|(_, name)| (name, 0));
        closed.iter_mut().zip(sum.closed).for_each(|(own, count)| own.1 = count);
        let mut marked = MARKED.map(|status| (status, 0));
        marked.iter_mut().zip(sum.marked).for_each(|(own, count)| own.1 = count);
        let loops = sum.loops.into_iter().map(|(number, thread, turns)| LoopMetrics {
            number,
            turns,
            connections: self
                .loops
                .get(number)
                .map_or(0, |each| each.connections.load(Ordering::Relaxed)),
            work: time_at_work(thread),
        });
        let mut loops: Vec<_> = loops.collect();
        loops.sort_by_key(|each| each.number);
        ServerMetrics {
            accepted: sum.accepted,
            open,
            most,
            refused: self.census.refused(),
            closed,
            http2_floods: self.http2_floods.closed(),
            requests: sum.requests,
            replies: sum.replies,
            marked,
            received: sum.received,
            sent: sum.sent,
            panics: panics(),
            overdue: overdue_calls(),
            loops,
            stalls: self.stalls.total.load(Ordering::Relaxed),
            stuck: self.stalls.stuck.load(Ordering::Relaxed),
            scheduler: self.scheduler.get().map(|metrics| metrics()),
        }
    }

    /// Metrics of the guards against overload.
    pub fn guards(&self) -> GuardMetrics {
        self.guard.metrics()
    }

    /// Metrics of the budgets that all connections share.
    pub fn budgets(&self) -> [BudgetMetrics; 3] {
        self.budgets.metrics()
    }

    /// Metrics of TLS handshakes.
    pub fn handshakes(&self) -> HandshakeMetrics {
        self.budgets.handshakes.metrics()
    }

    /// Lets the guards check the use of resources. Returns the request to close idle connections,
    /// if there is one.
    pub(crate) fn judge(&self, settings: &Settings) -> Option<Room> {
        let room = self.guard.judge(settings, &self.census);
        self.budgets.tighten(self.guard.refuses());
        room
    }

    /// Asks the server to stop. It finishes the current requests and announces `Connection: close`
    /// in each reply. After `timeouts.drain` it cuts the remaining connections. A second call stops
    /// it at once.
    pub fn stop(&self) {
        if !self.drain() {
            self.state.store(State::Over as u8, Ordering::Release);
            self.announce(State::Over);
        }
    }

    /// Begins to drain. Returns `false` if the server was asked to stop before.
    pub(crate) fn drain(&self) -> bool {
        let (from, to) = (State::Serving as u8, State::Draining as u8);
        let changed = self.state.compare_exchange(from, to, Ordering::AcqRel, Ordering::Acquire);
        if changed.is_ok() {
            self.announce(State::Draining);
        }
        changed.is_ok()
    }

    /// Notifies all threads and tasks of a new state.
    fn announce(&self, state: State) {
        self.state_changes.send_replace(state);
        if self.running_loops.load(Ordering::Acquire) == 0 {
            // Otherwise the loops refuse new connections, after they have accepted the pending
            // ones.
            self.refuse_connections();
        }
        // The counter of the eventfd cannot overflow in the life of a process.
        let _ = rustix::io::write(&self.stop_bell, &1u64.to_ne_bytes());
        self.wake_loops();
    }

    fn wake_loops(&self) {
        for each in &self.loops {
            each.mailbox.post(Letter::Look);
        }
    }

    /// Reports that the server leaves. Returns `false` if it was reported before.
    pub(crate) fn begin_leave(&self) -> bool {
        let is_first = !self.is_leaving.swap(true, Ordering::AcqRel);
        if is_first {
            self.wake_loops();
            self.run_leave_hook();
        }
        is_first
    }

    /// Runs the leave hook, unless it has run before.
    pub(crate) fn run_leave_hook(&self) {
        let hook = self.on_leave.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(run) = hook {
            run();
        }
    }

    /// Sets the function that runs once when the server is asked to leave.
    pub fn set_leave_hook(&self, run: LeaveHook) {
        *self.on_leave.lock().unwrap_or_else(PoisonError::into_inner) = Some(run);
    }

    /// Whether the server was asked to leave: it serves, and announces `Connection: close` in each
    /// reply.
    pub fn is_leaving(&self) -> bool {
        self.is_leaving.load(Ordering::Acquire)
    }

    /// Whether the server was asked to stop: it finishes current requests and accepts no
    /// connections.
    pub fn is_stopping(&self) -> bool {
        self.state() != State::Serving
    }

    pub(crate) fn state(&self) -> State {
        match self.state.load(Ordering::Acquire) {
            0 => State::Serving,
            1 => State::Draining,
            _ => State::Over,
        }
    }

    /// A receiver by which a task waits for changes of the state.
    pub(crate) fn subscribe_state(&self) -> watch::Receiver<State> {
        self.state_changes.subscribe()
    }

    /// Waits until the access log is written, for at most a second.
    pub(crate) fn finish_log(&self) {
        if let Some(access) = &self.generation().snapshot.access {
            access.writer.finish();
        }
    }

    /// Makes the kernel refuse new connections.
    pub(crate) fn refuse_connections(&self) {
        self.generation().listeners.iter().for_each(|listener| listener.refuse());
    }

    /// Removes the files of the server's Unix sockets.
    pub(crate) fn remove_socket_files(&self) {
        self.generation().listeners.iter().for_each(|listener| listener.remove_file());
    }

    pub(crate) fn stop_bell(&self) -> BorrowedFd<'_> {
        self.stop_bell.as_fd()
    }

    /// A view of the newest generation for the calling thread.
    pub(crate) fn view(&self) -> View {
        // Read before the generation: a change in between causes only one unnecessary check.
        let changes = self.changes();
        View { changes, generation: self.generation(), tallies: Arc::clone(&self.tallies) }
    }

    /// The runtime that drives timers and sockets for handlers on blocking threads. The first call
    /// starts it.
    pub(crate) fn background(&self) -> io::Result<&tokio::runtime::Handle> {
        if let Some(handle) = self.background.get() {
            return Ok(handle);
        }
        // Several threads may call this at once, and each runtime has a thread and descriptors.
        let _alone = self.background_start.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(handle) = self.background.get() {
            return Ok(handle);
        }
        let started = start_background()?;
        Ok(self.background.get_or_init(|| started))
    }
}

/// Ends the process with this status, whatever its other threads do, after its logs are written or
/// two seconds have passed.
#[expect(clippy::disallowed_methods, reason = "a thread that hangs cannot be asked to return")]
pub(crate) fn end_process(server: Option<&Server>, status: i32) -> ! {
    if let Some(server) = server {
        server.remove_socket_files();
        server.finish_log();
    }
    log::finish();
    std::process::exit(status)
}

/// The newest generation that a thread has seen.
pub(crate) struct View {
    changes: u32,
    pub(crate) generation: Arc<Generation>,
    tallies: Arc<Tallies>,
}

impl View {
    /// A context to run stages.
    pub(crate) fn context(&self) -> ThreadContext {
        self.context_with_clock(Rc::new(Clock::kernel()))
    }

    /// A context to run stages, with the time of `clock`.
    pub(crate) fn context_with_clock(&self, clock: Rc<Clock>) -> ThreadContext {
        let mut context = ThreadContext::under(&self.generation.snapshot, clock);
        context.tally = self.tallies.lease();
        context
    }

    pub(crate) fn is_old(&self, server: &Server) -> bool {
        self.changes != server.changes()
    }

    /// Switches to the newest generation of `server`. Returns the previous one if there was a
    /// change.
    pub(crate) fn keep_up(
        &mut self,
        server: &Server,
        context: &mut ThreadContext,
    ) -> Option<Arc<Generation>> {
        if !self.is_old(server) {
            return None;
        }
        let next = server.view();
        if !context.adopt(&next.generation.snapshot) {
            log::error(format_args!(
                "connections use too many old configurations; the new one is not used yet"
            ));
            return None;
        }
        Some(std::mem::replace(self, next).generation)
    }
}

fn check(settings: &Settings) -> io::Result<()> {
    if settings.listeners.is_empty() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "no address to listen on"));
    }
    if settings.tls.is_none() && settings.listeners.iter().any(|listen| listen.tls) {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "TLS without a certificate"));
    }
    if settings.proxies.is_empty() && settings.listeners.iter().any(|listen| listen.proxy) {
        let message = "an address expects PROXY headers, but no proxy is trusted";
        return Err(io::Error::new(io::ErrorKind::InvalidInput, message));
    }
    scheduler_names::check(&settings.scheduler)
}

fn start_background() -> io::Result<tokio::runtime::Handle> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let handle = runtime.handle().clone();
    thread::Builder::new()
        .name("bine async".to_owned())
        .spawn(move || runtime.block_on(std::future::pending::<()>()))?;
    Ok(handle)
}
/// Logs the states of admission that visitors notice.
fn log_admission(state: bine_admission::State) {
    use bine_admission::State;
    match state {
        State::Limiting => log::notice(format_args!(
            "the server is full: new visitors are admitted when sessions end"
        )),
        State::Watching => log::notice(format_args!("new visitors are admitted again")),
        State::Asleep => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::Listen;
    use crate::test_support::{NoContent, server};

    #[test]
    fn rejects_incomplete_settings_and_unknown_schedulers() {
        let listen = Listen::on("127.0.0.1:0".parse().unwrap());
        let with = |listeners, scheduler: &str| {
            let scheduler = scheduler.to_owned();
            Settings { listeners, scheduler, ..Settings::default() }
        };
        let good = server(Settings::default());
        for (settings, expected) in [
            (with(Vec::new(), "event"), "no address to listen on"),
            (
                with(vec![Listen { tls: true, ..listen.clone() }], "event"),
                "TLS without a certificate",
            ),
            (with(vec![Listen { proxy: true, ..listen.clone() }], "event"), "no proxy is trusted"),
            (with(vec![listen], "fastest"), "fastest"),
        ] {
            let opened = Server::open(settings.clone(), Arc::new(NoContent), None);
            let Err(error) = opened else { panic!("{expected}") };
            assert!(error.to_string().contains(expected), "{error}");
            let replaced = good.replace(settings, Arc::new(NoContent), None);
            assert!(replaced.unwrap_err().to_string().contains(expected));
        }
        assert_eq!(good.changes(), 0);
    }

    #[test]
    fn drains_at_the_first_stop_and_ends_at_the_second() {
        let server = server(Settings::default());
        let mut state = server.subscribe_state();
        assert!(!server.is_stopping() && server.state() == State::Serving);
        for expected in [State::Draining, State::Over, State::Over] {
            server.stop();
            assert!(server.is_stopping() && server.state() == expected);
            assert_eq!(*state.borrow_and_update(), expected);
        }
        let mut letters = Vec::new();
        server.loops[0].mailbox.take(&mut letters);
        assert_eq!(letters.len(), 3, "each loop checks the state");
    }

    #[test]
    fn shows_its_addresses_as_urls() {
        let plain = server(Settings::default());
        let address = plain.addresses().next().unwrap();
        assert_eq!(plain.urls().collect::<Vec<_>>(), [address.to_string()]);
        let listen = Listen::on("127.0.0.1:0".parse().unwrap());
        let tls = Some(Arc::new(crate::tls::test_support::tls()));
        let listeners = vec![Listen { tls: true, ..listen }];
        let settings = Settings { listeners, tls, ..Settings::default() };
        let secure = Server::open(settings, Arc::new(NoContent), None).unwrap();
        let Some(Address::Tcp(address)) = secure.addresses().next() else { panic!() };
        assert_eq!(secure.urls().collect::<Vec<_>>(), [format!("https://{address}/")]);
    }

    #[test]
    fn logs_the_states_of_admission_that_visitors_notice() {
        use bine_admission::State;
        let messages = log::test_support::capture();
        for state in [State::Asleep, State::Limiting, State::Asleep, State::Watching] {
            log_admission(state);
        }
        let messages = messages.end();
        assert_eq!(messages.len(), 2);
        assert!(messages[0].contains("the server is full"), "{messages:?}");
        assert!(messages[1].contains("new visitors are admitted again"), "{messages:?}");
    }
}

//! A running server for one test, which stops with the test.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::thread;

use bine_server::scheduler::Scheduler;
use bine_server::{AccessSettings, Address, Listen, Server, Settings, Timeouts};

use crate::PATIENCE;
use crate::news::News;
use crate::peer::Peer;
use crate::program::{Parts, Program};
use crate::secrecy::Trust;

/// All schedulers.
pub(crate) const SCHEDULERS: [&str; 8] =
    ["hybrid", "event", "cohort", "nothread", "one-to-one", "pool", "accept-many", "queue"];
/// Schedulers that serve several connections at a time, and so can suspend requests.
pub(crate) const AT_ONCE: [&str; 7] =
    ["hybrid", "event", "cohort", "one-to-one", "pool", "accept-many", "queue"];
/// Schedulers that run connections on event loops.
pub(crate) const LOOPS: [&str; 3] = ["hybrid", "event", "cohort"];

/// A running server.
pub(crate) struct House {
    pub(crate) program: Arc<Program>,
    pub(crate) server: Arc<Server>,
    ended: Receiver<io::Result<()>>,
}

/// Settings with one loop, a small fixed number of workers, and one free port. Queue timeouts are
/// long, so that requests do not time out on a busy machine.
pub(crate) fn settings(scheduler: &str) -> Settings {
    Settings {
        timeouts: Timeouts { queue: PATIENCE / 2, ..Timeouts::default() },
        listeners: vec![Listen { backlog: 1024, ..on("127.0.0.1:0") }],
        scheduler: scheduler.to_owned(),
        loops: 1,
        workers: 4,
        most_workers: 0,
        ..Settings::default()
    }
}

fn on(address: &str) -> Listen {
    Listen::on(address.parse().unwrap())
}

/// An unused Unix address.
pub(crate) fn unix() -> Listen {
    static COUNT: AtomicUsize = AtomicUsize::new(0);
    let name =
        format!("bine-server-{}-{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
    let path: PathBuf = std::env::temp_dir().join(name);
    Listen::on(Address::Unix(path))
}

impl House {
    pub(crate) fn open(scheduler: &str) -> Self {
        Self::with(settings(scheduler))
    }

    pub(crate) fn with(settings: Settings) -> Self {
        Self::with_log(settings, None)
    }

    pub(crate) fn with_log(settings: Settings, access: Option<AccessSettings>) -> Self {
        Self::run(settings, access, Server::run)
    }

    /// Starts a server on a custom scheduler.
    pub(crate) fn on(scheduler: Arc<dyn Scheduler>, settings: Settings) -> Self {
        Self::run(settings, None, move |server| server.run_with(scheduler))
    }

    fn run(
        settings: Settings,
        access: Option<AccessSettings>,
        run: impl FnOnce(&Arc<Server>) -> io::Result<()> + Send + 'static,
    ) -> Self {
        let program = Arc::new(Program::default());
        let parts = Arc::new(Parts(Arc::clone(&program)));
        let server = Arc::new(Server::open(settings, parts, access).unwrap());
        server.set_waiters(News::waiters(&program.news));
        let (tell, ended) = channel();
        let running = Arc::clone(&server);
        thread::spawn(move || {
            let outcome = run(&running);
            // The server drops its files and sockets before it reports its end.
            drop(running);
            let _ = tell.send(outcome);
        });
        Self { program, server, ended }
    }

    pub(crate) fn address(&self) -> Address {
        self.server.addresses().next().unwrap()
    }

    pub(crate) fn connect(&self) -> Peer {
        Peer::connect(&self.address()).unwrap()
    }

    /// Connects over TLS and trusts the default certificate.
    pub(crate) fn connect_secure(&self) -> Peer {
        Peer::connect_secure(&self.address(), &Trust::usual(), "localhost").unwrap()
    }

    /// Replaces the settings of the same program.
    pub(crate) fn replace(&self, settings: Settings) {
        let parts = Arc::new(Parts(Arc::clone(&self.program)));
        self.server.replace(settings, parts, None).unwrap();
    }

    pub(crate) fn stop(&self) {
        self.server.stop();
    }

    /// Waits until the server has ended without an error.
    #[track_caller]
    pub(crate) fn await_end(&self) {
        match self.ended.recv_timeout(PATIENCE) {
            Ok(outcome) => outcome.unwrap(),
            Err(error) => panic!("the server has not ended: {error}"),
        }
    }
}

impl House {
    /// Waits until the server has ended and cut its running requests.
    #[track_caller]
    pub(crate) fn await_cut(&self) {
        match self.ended.recv_timeout(PATIENCE) {
            Ok(outcome) => assert_eq!(outcome.unwrap_err().kind(), std::io::ErrorKind::TimedOut),
            Err(error) => panic!("the server has not ended: {error}"),
        }
    }
}

impl Drop for House {
    fn drop(&mut self) {
        self.server.stop();
        self.server.stop();
    }
}

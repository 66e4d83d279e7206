//! Decides how a program runs within a test: on a port of its own, with nothing kept and nothing left behind.

use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use bine_http::Method;
use bine_log::{self as log, Level};
use bine_server::{Address, Server};
use serde::Serialize;

use super::exchange::Reply;
use super::tab::Tab;
use super::visitor::{Fetch, Visitor};
use crate::app::App;

/// A program that runs within this process, for a test. It ends with this value.
///
/// It listens on a port of this machine that is free, keeps tables, channels and sessions in memory whatever it says,
/// reads neither `bine.toml` nor the environment, and its log tells errors alone. Any number may run at a time.
pub struct Site {
    address: SocketAddr,
    server: Arc<Server>,
    serving: Option<JoinHandle<()>>,
    /// Has a word, or no sender, when it has ended.
    ended: Receiver<()>,
    is_over: Arc<AtomicBool>,
}

/// A test has few visitors, and many tests run at one time.
const ARGUMENTS: [&str; 12] = [
    "--listen",
    "127.0.0.1:0",
    "--loops",
    "1",
    "--workers",
    "4",
    "--data",
    "memory",
    "--control",
    "off",
    // However busy the machine is that runs the tests.
    "--admission",
    "off",
];
/// Whoever is not ready to end by now is left to itself.
const PATIENCE: Duration = Duration::from_secs(10);

impl Site {
    /// Starts a program.
    ///
    /// # Panics
    ///
    /// It cannot start, with the reason that its user would read.
    #[track_caller]
    pub fn new(app: App) -> Self {
        log::set_level(Level::Error);
        let running = match app.open_by_itself(&ARGUMENTS) {
            Ok(running) => running,
            Err(reason) => panic!("the program cannot start: {reason}"),
        };
        let server = Arc::clone(&running.server);
        let address = server.addresses().find_map(|address| match address {
            Address::Tcp(address) => Some(address),
            Address::Unix(_) | Address::Inherited(_) => None,
        });
        let address = address.expect("it was told to listen on TCP");
        let (tell, ended) = channel();
        let is_over = Arc::new(AtomicBool::new(false));
        let is_meant = Arc::clone(&is_over);
        let serve = move || {
            // At the end connections are cut, of which a server tells.
            if let Err(reason) = running.run()
                && !is_meant.load(Ordering::Acquire)
            {
                log::error(format_args!("a program under test has ended: {reason}"));
            }
            // A site that has waited long enough does not hear it.
            let _ = tell.send(());
        };
        match thread::Builder::new().name("bine site".to_owned()).spawn(serve) {
            Ok(serving) => Self { address, server, serving: Some(serving), ended, is_over },
            Err(error) => panic!("no thread can be had for the program: {error}"),
        }
    }

    /// Opens a page as somebody who was never here before.
    ///
    /// # Panics
    ///
    /// As [`Visitor::visit`].
    #[track_caller]
    pub fn visit(&self, path: &str) -> Tab {
        self.visitor().visit(path)
    }

    /// Somebody who was never here before.
    pub fn visitor(&self) -> Visitor {
        Visitor::new(self.address)
    }

    /// Asks for `path` without a tab, as a stranger; so do the others. [`Visitor`] has the same for one who is known.
    #[track_caller]
    pub fn get(&self, path: &str) -> Reply {
        self.visitor().get(path)
    }

    /// Posts a value as JSON, and would like JSON back.
    #[track_caller]
    pub fn post_json(&self, path: &str, value: &(impl Serialize + ?Sized)) -> Reply {
        self.visitor().post_json(path, value)
    }

    /// A request of any kind, to be sent by [`send`](Fetch::send).
    #[track_caller]
    pub fn fetch(&self, method: Method, path: &str) -> Fetch {
        self.visitor().fetch(method, path)
    }

    /// Where it listens.
    pub const fn address(&self) -> SocketAddr {
        self.address
    }
}

impl fmt::Debug for Site {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.debug_struct("Site").field("address", &self.address).finish_non_exhaustive()
    }
}

impl Drop for Site {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Release);
        // Asked twice it ends at once: whoever still waits for an answer is cut.
        self.server.stop();
        self.server.stop();
        // It has ended if there is a word, or can be none; what hangs must not hang the test.
        let is_late = self.ended.recv_timeout(PATIENCE) == Err(RecvTimeoutError::Timeout);
        if let Some(serving) = self.serving.take().filter(|_| !is_late) {
            // A panic of it was told where it happened.
            let _ = serving.join();
        }
    }
}

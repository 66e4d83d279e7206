//! Runs a program inside a test: on its own port, with all data in memory.

use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use bine_http::Method;
use bine_log as log;
use bine_log::Level;
use bine_server::{Address, Server};
use serde::Serialize;

use super::client::{Client, RequestBuilder};
use super::exchange::Reply;
use super::tab::Tab;
use crate::accounts::keep_hash_priority;
use crate::app::App;

/// A program that runs in the test's process. Dropping the value stops it.
///
/// The program listens on a free local port and stores tables, channels and sessions in memory,
/// whatever its own configuration is. It reads neither `bine.toml` nor the environment, and logs
/// errors only. Any number of sites may run at a time.
pub struct Site {
    address: SocketAddr,
    server: Arc<Server>,
    serving: Option<JoinHandle<()>>,
    /// Receives a message, or is disconnected, when the program has ended.
    ended: Receiver<()>,
    is_over: Arc<AtomicBool>,
}

/// A test has few clients, and many tests run at a time.
const ARGUMENTS: [&str; 14] = [
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
    // Load from other tests must not cause rejections.
    "--admission",
    "off",
    "--queue-timeout",
    "60s",
];
/// A program that has not stopped by then is left running.
const PATIENCE: Duration = Duration::from_secs(10);

impl Site {
    /// Starts a program.
    ///
    /// # Panics
    ///
    /// The program cannot start. The message is the one that its user would read.
    #[track_caller]
    pub fn new(app: App) -> Self {
        Self::with_settings(app, &[])
    }

    /// Starts a program with further settings, as on the command line: `&["--cluster", url]`.
    ///
    /// # Panics
    ///
    /// The program cannot start, or a setting is invalid. The message is the one that its user would
    /// read.
    #[track_caller]
    pub fn with_settings(app: App, settings: &[&str]) -> Self {
        log::set_level(Level::Error);
        keep_hash_priority();
        let arguments = [&ARGUMENTS[..], settings].concat();
        let running = match app.open_by_itself(&arguments) {
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
            // The second `stop` cuts connections, which the server reports as an error.
            if let Err(reason) = running.run()
                && !is_meant.load(Ordering::Acquire)
            {
                log::error(format_args!("a program under test has ended: {reason}"));
            }
            // A site that has stopped waiting has dropped the receiver.
            let _ = tell.send(());
        };
        match thread::Builder::new().name("bine site".to_owned()).spawn(serve) {
            Ok(serving) => Self { address, server, serving: Some(serving), ended, is_over },
            Err(error) => panic!("no thread can be had for the program: {error}"),
        }
    }

    /// Opens a page as a new client.
    ///
    /// # Panics
    ///
    /// As [`Client::visit`].
    #[track_caller]
    pub fn visit(&self, path: &str) -> Tab {
        self.client().visit(path)
    }

    /// Returns a new client, without cookies.
    pub fn client(&self) -> Client {
        Client::new(self.address)
    }

    /// Requests `path` without a tab, as a new client. The methods below do so too; [`Client`]
    /// has the same methods for a client with cookies.
    #[track_caller]
    pub fn get(&self, path: &str) -> Reply {
        self.client().get(path)
    }

    /// Posts a value as JSON and accepts JSON.
    #[track_caller]
    pub fn post_json(&self, path: &str, value: &(impl Serialize + ?Sized)) -> Reply {
        self.client().post_json(path, value)
    }

    /// Builds a request of any method; [`send`](RequestBuilder::send) sends it.
    #[track_caller]
    pub fn request(&self, method: Method, path: &str) -> RequestBuilder {
        self.client().request(method, path)
    }

    /// Returns the address on which the program listens.
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
        // The second call ends the server at once and cuts the requests that are still waiting.
        self.server.stop();
        self.server.stop();
        // A message or a disconnected channel means that the program has ended. A program that
        // hangs must not block the test.
        let is_late = self.ended.recv_timeout(PATIENCE) == Err(RecvTimeoutError::Timeout);
        if let Some(serving) = self.serving.take().filter(|_| !is_late) {
            // The panic handler has reported its panic, if there was one.
            let _ = serving.join();
        }
    }
}

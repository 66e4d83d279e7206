//! Decides what a server allows when nobody said otherwise: every wait and every buffer has a
//! bound here, and every bound can be set.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use bine_admission::Terms;
use bine_http::{Limits, SecurityHeaders};

use crate::address::Address;
use crate::tls::Tls;

/// Everything the server can be told. The defaults are safe to ship.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Where to listen, each with its socket options.
    pub listeners: Vec<Listen>,
    /// The scheduler's name; [`SCHEDULERS`](crate::scheduler_names::SCHEDULERS) lists them.
    pub scheduler: String,
    /// Event loops, each one thread.
    pub loops: usize,
    /// Threads that may block.
    pub workers: usize,
    /// So many of them at the most, while requests wait for one and the cores have nothing to do; `workers`, if that is
    /// more.
    pub most_workers: usize,
    /// Jobs that may wait for a worker at one time.
    pub queue: usize,
    /// How long each step of a connection may take.
    pub timeouts: Timeouts,
    /// How large a request may be.
    pub limits: Limits,
    /// When too little is left of what everything needs.
    pub guards: Guards,
    /// How many bytes all connections together may hold.
    pub budgets: Budgeted,
    /// Connections at one time; `None` follows the descriptor limit.
    pub connections: Option<usize>,
    /// Connections at one time from one [block of addresses](crate::AddressBlock); four times that
    /// from one IPv6 /48. Clients on this machine count by `connections_local`.
    pub connections_per_address: usize,
    /// Connections at one time from this machine, by loopback or a Unix socket; `None` leaves a
    /// tenth of all places, 1 024 at most, to others.
    pub connections_local: Option<usize>,
    /// Content beyond this many bytes leaves in chunks while the page is still being written.
    pub chunk_at: usize,
    /// The most reply bytes one connection may have unsent in memory.
    pub unsent: usize,
    /// A request's body that no handler asked for is read and dropped up to this size, so that
    /// the connection can be kept; a longer one closes it.
    pub unread_body: u64,
    /// The most bytes of a body that a handler takes from disk.
    pub upload: u64,
    /// The folder where such bodies are kept, in files without a name.
    pub spool: PathBuf,
    /// What is spoken at addresses where TLS is wished for.
    pub tls: Option<Arc<Tls>>,
    /// TLS handshakes under way at one time, for each loop; an eighth of all for one
    /// [block of addresses](crate::AddressBlock), half for one IPv6 /48. Beyond that the oldest are dropped.
    pub handshakes: usize,
    /// TLS handshakes that one block of addresses may begin in a second, after five seconds' worth at once, and four
    /// times that one IPv6 /48: each computes for about as long as a hundred requests. 0 bounds nothing; this machine
    /// is exempt.
    pub handshake_rate: u32,
    /// For how many seconds a peer that has come in secret shall come so alone (RFC 6797); 0 says nothing
    /// of it.
    pub hsts: u32,
    /// When an event loop that is stuck is reported, and when its process is replaced.
    pub watchdog: WatchdogSettings,
    /// Security headers of each reply.
    pub security: SecurityHeaders,
    /// On which terms sessions are admitted when more come than can be served.
    pub admission: Terms,
}

impl Default for Settings {
    fn default() -> Self {
        let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        Self {
            listeners: Vec::new(),
            scheduler: "hybrid".to_owned(),
            loops: cores,
            workers: Self::usual_workers("hybrid"),
            most_workers: 256,
            queue: 1024,
            timeouts: Timeouts::default(),
            limits: Limits::default(),
            guards: Guards::default(),
            budgets: Budgeted::default(),
            connections: None,
            connections_per_address: 256,
            connections_local: None,
            chunk_at: 64 * 1024,
            unsent: 64 << 20,
            unread_body: 64 * 1024,
            upload: 100 << 20,
            spool: std::env::temp_dir(),
            tls: None,
            handshakes: 512,
            handshake_rate: 50,
            hsts: 0,
            watchdog: WatchdogSettings::default(),
            security: SecurityHeaders::NONE,
            admission: Terms::default(),
        }
    }
}

impl Settings {
    /// Threads that may block when nobody said how many.
    ///
    /// A worker has a request, so it is at work: eight a core keep the cores busy while most of them wait for a disk or another
    /// server. Where a thread has a connection it mostly waits for the next request, and there are as many as may be
    /// connected at one time before idle ones must go. Document 001 took 500; half of that is one browser's six for forty people.
    pub fn usual_workers(scheduler: &str) -> usize {
        const HOLDERS: usize = 256;
        let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        match scheduler {
            "pool" | "accept-many" | "queue" => HOLDERS,
            _ => (cores * 8).clamp(8, 64),
        }
    }
}

/// How many bytes all connections of a server may hold together. A connection whose bytes would exceed
/// a budget, or the share of its [block of addresses](crate::AddressBlock), is refused with a 503 or cut;
/// those that have stalled give way before that. The first 64 KiB of each connection are not counted.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Budgeted {
    /// Of request bodies in memory, until their handlers are done with them; `None` is an eighth of memory,
    /// and 64 MiB at least.
    pub bodies: Option<u64>,
    /// Of request bodies on disk; `None` is a quarter of what the disk has free at the start, and 64 MiB at least.
    pub uploads: Option<u64>,
    /// Of replies that their clients have not read yet; `None` as for `bodies`.
    pub unsent: Option<u64>,
    /// What one block of addresses may hold of each, in percent. Four times that is for one IPv6 /48, and nine
    /// tenths are for this machine. `None` is 25, or enough for one body of the usual bound if that is more.
    pub share: Option<u8>,
}

/// From how much on a server defends itself, in percent; `None` is never.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Guards {
    /// Of the descriptors that it may have: idle connections of strangers close from here on, and half-way from here
    /// to all of them every idle connection, while none is accepted.
    pub descriptors: Option<u8>,
    /// Of memory: newcomers and strangers are refused.
    pub memory_refuses: Option<u8>,
    /// Of memory: no connection is accepted.
    pub memory_pauses: Option<u8>,
    /// The bytes that memory is measured by; `None` is what the control group (version 2) or the system has left.
    pub memory: Option<u64>,
    /// Where sessions are not admitted, no connection is accepted while tasks wait too long for a worker (document 001
    /// section 4).
    pub back_pressure: bool,
}

impl Guards {
    /// Nobody is kept out and nothing is closed, whatever there is too little of.
    pub const OFF: Self = Self {
        descriptors: None,
        memory_refuses: None,
        memory_pauses: None,
        memory: None,
        back_pressure: false,
    };
}

impl Default for Guards {
    fn default() -> Self {
        Self {
            descriptors: Some(90),
            memory_refuses: Some(85),
            memory_pauses: Some(95),
            memory: None,
            back_pressure: true,
        }
    }
}

/// One listening socket and its options (document 000 section 3.3).
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Listen {
    /// Where.
    pub address: Address,
    /// Pending connections the kernel may hold: 4096, the most that Linux grants unless told otherwise. A crowd that comes
    /// back within a second overflows 128, which document 000 has, and whoever is not let in waits a second and more.
    pub backlog: i32,
    /// Send without waiting for more to send; off lets the kernel gather (Nagle).
    pub nodelay: bool,
    /// Bytes of the kernel's send buffer; `None` leaves its own choice.
    pub send_buffer: Option<usize>,
    /// TLS is spoken here, and nothing else.
    pub tls: bool,
}

impl Listen {
    /// `address` with the default options.
    pub const fn on(address: Address) -> Self {
        Self { address, backlog: 4096, nodelay: true, send_buffer: None, tls: false }
    }
}

/// How long each step of a connection may take.
///
/// Sources: research of the field's servers (nginx closes silent peers after 60 s, hyper never
/// unless a timer is installed) and of slow-peer attacks: a total for the head, a rate for what
/// has no natural size.
#[derive(Clone, Debug)]
pub struct Timeouts {
    /// From accept to the first byte.
    pub first_byte: Duration,
    /// From accept to the end of the TLS handshake; the time to the first byte begins then.
    pub handshake: Duration,
    /// From a head's first byte to its last.
    pub head: Duration,
    /// A body may pause this long, and must on the whole keep up [`rate`](Self::rate).
    pub body: Duration,
    /// From the request to the handler's answer, a wait for a worker included. A plain `fn` that
    /// runs in place (`event`, `pool`) cannot be stopped and is waited for.
    pub handler: Duration,
    /// A reply may stall this long, and must on the whole keep up [`rate`](Self::rate).
    pub write: Duration,
    /// Bytes per second that a slow peer must manage, sending or reading.
    pub rate: u32,
    /// Between two requests of a kept connection.
    pub idle: Duration,
    /// A job's wait for a worker.
    pub queue: Duration,
    /// After the last reply of a faulty connection: time for the peer to read it.
    pub linger: Duration,
    /// From the wish to stop until everything still open is cut.
    pub drain: Duration,
}

impl Default for Timeouts {
    fn default() -> Self {
        Self {
            first_byte: Duration::from_secs(10),
            handshake: Duration::from_secs(5),
            head: Duration::from_secs(10),
            body: Duration::from_secs(10),
            handler: Duration::from_secs(30),
            write: Duration::from_secs(30),
            rate: 1024,
            idle: Duration::from_secs(75),
            queue: Duration::from_secs(1),
            linger: Duration::from_secs(2),
            drain: Duration::from_secs(30),
        }
    }
}

/// When a stuck loop is reported, and when its process is replaced.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct WatchdogSettings {
    /// A loop that has not turned for this long is logged, with the stack of its thread; `None`: never.
    pub report: Option<Duration>,
    /// Under a supervisor, the process ends when a loop has not turned for this long; `None`: never.
    pub replace: Option<Duration>,
}

impl Default for WatchdogSettings {
    fn default() -> Self {
        Self { report: Some(Duration::from_secs(10)), replace: Some(Duration::from_secs(30)) }
    }
}

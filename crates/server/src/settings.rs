//! The settings of a server and their defaults: every wait and every buffer has a limit here.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use bine_admission::AdmissionSettings;
use bine_http::{Limits, SecurityHeaders};

use crate::address::Address;
use crate::proxies::TrustedProxies;
use crate::tls::Tls;

/// All settings of a server. The defaults are safe for production.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The addresses to listen on, each with its socket options.
    pub listeners: Vec<Listen>,
    /// The scheduler's name; [`SCHEDULERS`](crate::scheduler_names::SCHEDULERS) lists them.
    pub scheduler: String,
    /// The number of event loops. Each is one thread.
    pub loops: usize,
    /// The number of threads that may block.
    pub workers: usize,
    /// The largest number of these threads while requests wait and the CPU is idle; at
    /// least `workers`.
    pub most_workers: usize,
    /// The number of tasks that may wait for a worker.
    pub queue: usize,
    /// How long each step of a connection may take.
    pub timeouts: Timeouts,
    /// How large a request may be.
    pub limits: Limits,
    /// The thresholds for descriptors, memory and the queue above which the server defends itself.
    pub guards: Guards,
    /// The bytes that all connections together may hold.
    pub budgets: ByteBudgets,
    /// The proxies that may name the client of a request.
    pub proxies: Arc<TrustedProxies>,
    /// The maximum of connections; `None` follows the limit of descriptors.
    pub connections: Option<usize>,
    /// The maximum of connections from one [address block](crate::AddressBlock); four times that
    /// from one IPv6 /48. Clients on this machine count by `connections_local`.
    pub connections_per_address: usize,
    /// The maximum of connections from this machine, by loopback or a Unix socket; `None` reserves
    /// a tenth of all connections, at most 1 024, for remote clients.
    pub connections_local: Option<usize>,
    /// Content of more than this many bytes is sent in chunks while the page is still written.
    pub chunk_at: usize,
    /// The maximum of unsent reply bytes in memory for one connection.
    pub unsent: usize,
    /// The server reads and drops an unread request body up to this size, to keep the connection.
    /// It closes the connection for a longer one.
    pub unread_body: u64,
    /// The maximum size of a body that a handler takes from disk.
    pub upload: u64,
    /// The folder for these bodies, in files without a name.
    pub spool: PathBuf,
    /// The TLS configuration of the addresses with TLS.
    pub tls: Option<Arc<Tls>>,
    /// Whether clients may speak HTTP/2: over TLS by ALPN, otherwise by prior knowledge. Schedulers
    /// without event loops speak HTTP/1.1 only.
    pub http2: bool,
    /// The maximum of concurrent TLS handshakes for each loop: an eighth of all for one [address
    /// block](crate::AddressBlock), half for one IPv6 /48. Beyond that the server drops the oldest.
    pub handshakes: usize,
    /// TLS handshakes per second from one address block, with a burst of five seconds' worth; four
    /// times that for one IPv6 /48. One handshake costs as much CPU time as about a hundred
    /// requests. 0 sets no limit; this machine is exempt.
    pub handshake_rate: u32,
    /// The seconds for which a client that used TLS must use only TLS (RFC 6797); 0 sends no such
    /// header.
    pub hsts: u32,
    /// When the watchdog reports a stuck event loop, and when it replaces the process.
    pub watchdog: WatchdogSettings,
    /// The security headers of each reply.
    pub security: SecurityHeaders,
    /// The rules by which sessions are admitted under overload.
    pub admission: AdmissionSettings,
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
            budgets: ByteBudgets::default(),
            proxies: Arc::default(),
            connections: None,
            connections_per_address: 256,
            connections_local: None,
            chunk_at: 64 * 1024,
            unsent: 64 << 20,
            unread_body: 64 * 1024,
            upload: 100 << 20,
            spool: std::env::temp_dir(),
            tls: None,
            http2: true,
            handshakes: 512,
            handshake_rate: 50,
            hsts: 0,
            watchdog: WatchdogSettings::default(),
            security: SecurityHeaders::NONE,
            admission: AdmissionSettings::default(),
        }
    }
}

impl Settings {
    /// The default number of threads that may block.
    ///
    /// A thread of a worker pool runs one request at a time: eight threads per core keep the cores
    /// busy while most of them wait for a disk or another server. A thread that holds a connection
    /// mostly waits for the next request, so there are as many threads as concurrent connections
    /// before idle ones must close. Carrera et al. ("A Hybrid Web Server Architecture for
    /// e-Commerce Applications", 2005) used 500; half of that serves about forty browsers with six
    /// connections each.
    pub fn usual_workers(scheduler: &str) -> usize {
        const CONNECTION_THREADS: usize = 256;
        let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        match scheduler {
            "pool" | "accept-many" | "queue" => CONNECTION_THREADS,
            _ => pool_workers(cores),
        }
    }
}

/// Eight workers per core, within bounds.
const fn pool_workers(cores: usize) -> usize {
    match cores * 8 {
        ..8 => 8,
        workers @ 8..64 => workers,
        _ => 64,
    }
}

/// The bytes that all connections of a server may hold together.
///
/// The server rejects a request with a 503, or cuts a connection, if its bytes would exceed a
/// budget or the quota of its [address block](crate::AddressBlock). Before that it drops
/// connections that have stalled. The first 64 KiB of each connection are not counted.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct ByteBudgets {
    /// For request bodies in memory, until their handlers finish; `None` is an eighth of memory, at
    /// least 64 MiB.
    pub bodies: Option<u64>,
    /// For request bodies on disk; `None` is a quarter of the free space at the start, at least 64
    /// MiB.
    pub uploads: Option<u64>,
    /// For replies that their clients have not read yet; `None` as for `bodies`.
    pub unsent: Option<u64>,
    /// The quota of one address block in each budget, in percent. An IPv6 /48 has four times that,
    /// and this machine nine tenths. `None` is 25, or more if one body of the default size limit
    /// needs more.
    pub share: Option<u8>,
}

/// The thresholds at which the server defends itself, in percent; `None` is never.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Guards {
    /// Of the limit of descriptors. Above it the server closes idle connections of unknown clients;
    /// above the middle between it and 100 % it closes all idle connections and stops accepting.
    pub descriptors: Option<u8>,
    /// Of memory: above it the server rejects new connections and requests of unknown clients.
    pub memory_refuses: Option<u8>,
    /// Of memory: above it the server accepts no connection.
    pub memory_pauses: Option<u8>,
    /// The bytes that count as all memory; `None` is what the control group (version 2) or the
    /// system has available.
    pub memory: Option<u64>,
    /// Without admission of sessions: accept no connection while tasks wait too long for a worker
    /// (Carrera et al., "A Hybrid Web Server Architecture for e-Commerce Applications", 2005,
    /// section 4).
    pub back_pressure: bool,
}

impl Guards {
    /// No guard acts, whatever resource is short.
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

/// One listening socket and its options (Serrano, "Hop, a Fast Server for the Diffuse Web", 2009,
/// section 3.3).
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Listen {
    /// The address.
    pub address: Address,
    /// The number of connections that the kernel queues before the server accepts them. The default
    /// 4096 is the largest value that Linux grants in its default configuration. With 128 (Serrano
    /// 2009), the queue overflows when many clients reconnect within a second, and each rejected
    /// client waits for a second or more.
    pub backlog: i32,
    /// Sends small segments at once (`TCP_NODELAY`). If false, the kernel collects them (Nagle's
    /// algorithm).
    pub nodelay: bool,
    /// The size of the kernel's send buffer in bytes; `None` keeps the kernel's default.
    pub send_buffer: Option<usize>,
    /// Whether the socket speaks TLS, and only TLS.
    pub tls: bool,
    /// Whether each connection begins with a header of the PROXY protocol, which a [trusted
    /// proxy](Settings::proxies) sends.
    pub proxy: bool,
}

impl Listen {
    /// `address` with the default options.
    pub const fn on(address: Address) -> Self {
        Self { address, backlog: 4096, nodelay: true, send_buffer: None, tls: false, proxy: false }
    }
}

/// The time limits of each step of a connection.
///
/// Sources: a survey of servers (nginx closes silent clients after 60 s; hyper has no limit without
/// a timer) and of slow-client attacks. A head has a limit for its total time. A step whose data
/// has no natural size has a minimum rate.
#[derive(Clone, Debug)]
pub struct Timeouts {
    /// From accept to the first byte.
    pub first_byte: Duration,
    /// From accept to the end of the TLS handshake; the time to the first byte begins then.
    pub handshake: Duration,
    /// From a head's first byte to its last.
    pub head: Duration,
    /// The longest pause within a body. The body as a whole must keep up [`rate`](Self::rate).
    pub body: Duration,
    /// From the request to the handler's answer, including the wait for a worker. A plain `fn` that
    /// runs in place (`event`, `pool`) cannot be stopped; the server waits for it.
    pub handler: Duration,
    /// The longest pause of a client that reads a reply. The reply as a whole must keep up
    /// [`rate`](Self::rate).
    pub write: Duration,
    /// The minimum rate of a client that sends or reads, in bytes per second.
    pub rate: u32,
    /// Between two requests of a keep-alive connection.
    pub idle: Duration,
    /// The longest wait of a task for a worker.
    pub queue: Duration,
    /// After the last reply on a connection with an error: time for the client to read the reply.
    pub linger: Duration,
    /// From the request to leave until the stop. The server serves all clients in this time, and
    /// reports that it leaves, so that load balancers send no new ones. `None` and zero: it stops at
    /// once.
    pub leave: Option<Duration>,
    /// From the begin of a stop until the server closes all remaining connections.
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
            leave: None,
            drain: Duration::from_secs(30),
        }
    }
}

/// When the watchdog reports a stuck loop, and when it replaces the process.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct WatchdogSettings {
    /// Logs a loop that has not completed a turn for this time, with the stack of its thread;
    /// `None`: never.
    pub report: Option<Duration>,
    /// Under a supervisor, ends the process when a loop has not completed a turn for this time;
    /// `None`: never.
    pub replace: Option<Duration>,
}

impl Default for WatchdogSettings {
    fn default() -> Self {
        Self { report: Some(Duration::from_secs(10)), replace: Some(Duration::from_secs(30)) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn has_eight_workers_per_core_up_to_64() {
        assert_eq!([0, 1, 2, 7, 8, 9, 100].map(pool_workers), [8, 8, 16, 56, 64, 64, 64]);
        for scheduler in ["pool", "accept-many", "queue"] {
            assert_eq!(Settings::usual_workers(scheduler), 256);
        }
        let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        assert_eq!(Settings::usual_workers("hybrid"), pool_workers(cores));
    }
}

//! The connections to one origin: opens them, and keeps those that wait for their next exchange.

use std::collections::HashMap;
use std::fmt;
use std::io;
use std::ops::{Deref, DerefMut};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, ThreadId};
use std::time::Duration;

use tokio::time::{Instant, sleep_until, timeout};

use crate::address::OriginAddress;
use crate::connection::Connection;
use crate::tls::{OriginTls, TlsFault};

/// The limits of a pool.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PoolLimits {
    /// Idle connections of each thread.
    pub idle: usize,
    /// How long an idle connection is kept.
    pub idle_time: Duration,
    /// How long a connect may take, with the handshake of TLS.
    pub connect_time: Duration,
}

/// The connections to one origin. All threads share it; a connection stays on the thread that
/// opened it.
#[derive(Debug)]
pub struct Pool {
    address: OriginAddress,
    tls: Option<OriginTls>,
    limits: PoolLimits,
    idle: Mutex<HashMap<ThreadId, Shard>>,
}

/// The idle connections of one thread. The last one was used last.
#[derive(Debug, Default)]
struct Shard {
    connections: Vec<(Connection, Instant)>,
    /// Whether a task closes old connections.
    is_swept: bool,
}

/// A connection during an exchange. Dropping it closes it, unless it is [kept](Self::keep).
#[derive(Debug)]
pub struct PooledConnection {
    connection: Option<Connection>,
    is_reused: bool,
    pool: Arc<Pool>,
}

/// The reason why a connect failed.
#[derive(Debug)]
pub enum ConnectFailure {
    /// The origin refused it.
    Io(io::Error),
    /// The handshake of TLS failed.
    Tls(TlsFault),
    /// The origin did not accept it within the time limit.
    TimedOut(Duration),
}

impl Pool {
    /// Creates an empty pool. `tls` is for an address with TLS; without it, no connection to such an
    /// address is opened.
    pub fn new(address: OriginAddress, tls: Option<OriginTls>, limits: PoolLimits) -> Arc<Self> {
        Arc::new(Self { address, tls, limits, idle: Mutex::default() })
    }

    /// The origin.
    pub const fn address(&self) -> &OriginAddress {
        &self.address
    }

    /// The limits.
    pub const fn limits(&self) -> PoolLimits {
        self.limits
    }

    /// The idle connections of all threads.
    pub fn idle(&self) -> usize {
        self.lock().values().map(|shard| shard.connections.len()).sum()
    }

    /// Takes an idle connection of this thread, or opens one. `is_fresh`: does not reuse one.
    ///
    /// # Errors
    ///
    /// Why the pool has no connection.
    pub async fn connect(
        self: &Arc<Self>,
        is_fresh: bool,
    ) -> Result<PooledConnection, ConnectFailure> {
        let pooled = |connection, is_reused| PooledConnection {
            connection: Some(connection),
            is_reused,
            pool: Arc::clone(self),
        };
        if !is_fresh && let Some(connection) = self.take() {
            return Ok(pooled(connection, true));
        }
        let opening = Connection::open(&self.address, self.tls.as_ref());
        match timeout(self.limits.connect_time, opening).await {
            Ok(Ok(opened)) => Ok(pooled(opened, false)),
            Ok(Err(error)) => Err(match TlsFault::of(&error) {
                Some(fault) => ConnectFailure::Tls(fault),
                None => ConnectFailure::Io(error),
            }),
            Err(_) => Err(ConnectFailure::TimedOut(self.limits.connect_time)),
        }
    }

    /// Closes all idle connections.
    pub fn clear(&self) {
        self.lock().values_mut().for_each(|shard| shard.connections.clear());
    }

    fn take(&self) -> Option<Connection> {
        let mut idle = self.lock();
        let shard = idle.get_mut(&thread::current().id())?;
        while let Some((mut connection, _)) = shard.connections.pop() {
            if connection.is_usable() {
                return Some(connection);
            }
        }
        None
    }

    fn put(self: &Arc<Self>, mut connection: Connection) {
        connection.rest();
        let thread = thread::current().id();
        let mut idle = self.lock();
        let shard = idle.entry(thread).or_default();
        if shard.connections.len() >= self.limits.idle {
            return;
        }
        shard.connections.push((connection, Instant::now() + self.limits.idle_time));
        if !std::mem::replace(&mut shard.is_swept, true) {
            drop(idle);
            tokio::spawn(sweep(Arc::clone(self), thread));
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<ThreadId, Shard>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Closes the idle connections of a thread when their time has passed, until all are closed.
async fn sweep(pool: Arc<Pool>, thread: ThreadId) {
    loop {
        let next = {
            let mut idle = pool.lock();
            let Some(shard) = idle.get_mut(&thread) else { return };
            let now = Instant::now();
            shard.connections.retain(|(_, end)| *end > now);
            // A connection that is taken and put back moves to the end of the list.
            match shard.connections.first() {
                Some((_, end)) => *end,
                None => {
                    idle.remove(&thread);
                    return;
                }
            }
        };
        sleep_until(next).await;
    }
}

impl PooledConnection {
    /// Whether it has carried an earlier exchange, so that the origin may close it at any time.
    pub const fn is_reused(&self) -> bool {
        self.is_reused
    }

    /// Ends the exchange and keeps the connection for another one.
    pub fn keep(mut self) {
        if let Some(connection) = self.connection.take() {
            self.pool.put(connection);
        }
    }
}

impl Deref for PooledConnection {
    type Target = Connection;

    fn deref(&self) -> &Connection {
        // Only `keep` takes it, which consumes this value.
        self.connection.as_ref().expect("the exchange has a connection")
    }
}

impl DerefMut for PooledConnection {
    fn deref_mut(&mut self) -> &mut Connection {
        self.connection.as_mut().expect("the exchange has a connection")
    }
}

impl fmt::Display for ConnectFailure {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Io(error) => write!(to, "it cannot be reached: {error}"),
            Self::Tls(fault) => fault.fmt(to),
            Self::TimedOut(time) => write!(to, "it accepted no connection within {time:?}"),
        }
    }
}

impl std::error::Error for ConnectFailure {}

#[cfg(test)]
mod tests {
    use std::io::{Read as _, Write as _};
    use std::net::TcpListener;

    use bine_http::{Limits, ResponseFraming, ResponseHead, ResponseParser};

    use super::*;
    use crate::connection::ExchangeFault;

    const PATIENCE: Duration = Duration::from_secs(20);

    fn limits() -> PoolLimits {
        PoolLimits { idle: 4, idle_time: Duration::from_mins(10), connect_time: PATIENCE }
    }

    /// Runs `check` with the pool of an origin that answers each connection with these bytes, one
    /// after each request, and then closes it.
    fn with_origin(answers: Vec<Vec<&'static str>>, check: impl AsyncFnOnce(Arc<Pool>)) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let origin = thread::spawn(move || {
            for connection in answers {
                let (mut socket, _) = listener.accept().unwrap();
                for answer in connection {
                    let mut request = Vec::new();
                    while !request.ends_with(b"\r\n\r\n") {
                        let mut byte = [0];
                        if socket.read(&mut byte).unwrap() == 0 {
                            return;
                        }
                        request.push(byte[0]);
                    }
                    socket.write_all(answer.as_bytes()).unwrap();
                }
            }
        });
        let builder = &mut tokio::runtime::Builder::new_current_thread();
        let runtime = builder.enable_all().build().unwrap();
        let address = OriginAddress::Tcp { host: "127.0.0.1".to_owned(), port, is_tls: false };
        runtime.block_on(check(Pool::new(address, None, limits())));
        drop(runtime);
        origin.join().unwrap();
    }

    /// Sends a request and returns the framing and the content of the response.
    async fn ask(
        connection: &mut PooledConnection,
    ) -> Result<(ResponseFraming, String), ExchangeFault> {
        let (mut parser, limits) = (ResponseParser::new(false), Limits::default());
        connection.send(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n", PATIENCE).await?;
        let seen = |head: &ResponseHead<'_>| (head.status().code(), head.framing());
        let (status, framing) = connection.head(&mut parser, &limits, PATIENCE, seen).await?;
        assert_eq!(status, 200);
        let mut content = Vec::new();
        while let Some(piece) = connection.piece(&mut parser, &limits, PATIENCE).await? {
            content.extend_from_slice(connection.bytes(piece));
        }
        Ok((framing, String::from_utf8(content).unwrap()))
    }

    const ANSWER: &str = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi";

    #[test]
    fn keeps_a_connection_for_the_next_exchange() {
        with_origin(vec![vec![ANSWER, ANSWER], vec![ANSWER]], async |pool| {
            let mut first = pool.connect(false).await.unwrap();
            assert!(!first.is_reused());
            let told = ask(&mut first).await.unwrap();
            assert_eq!(told, (ResponseFraming::Length(2), "hi".to_owned()));
            first.keep();
            assert_eq!(pool.idle(), 1);
            let mut second = pool.connect(false).await.unwrap();
            assert!(second.is_reused());
            assert_eq!(ask(&mut second).await.unwrap().1, "hi");
            drop(second);
            let mut third = pool.connect(false).await.unwrap();
            assert!(!third.is_reused(), "a dropped connection is closed");
            assert_eq!(ask(&mut third).await.unwrap().1, "hi");
        });
    }

    #[test]
    fn reads_content_until_the_end_of_the_connection() {
        with_origin(vec![vec!["HTTP/1.0 200 OK\r\n\r\nall of it"]], async |pool| {
            let mut connection = pool.connect(false).await.unwrap();
            let told = ask(&mut connection).await.unwrap();
            assert_eq!(told, (ResponseFraming::UntilClose, "all of it".to_owned()));
        });
    }

    #[test]
    fn reports_a_response_that_breaks_off_and_an_origin_that_is_gone() {
        let short = "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhi";
        with_origin(vec![vec![short], vec![]], async |pool| {
            let mut connection = pool.connect(false).await.unwrap();
            let fault = ask(&mut connection).await.unwrap_err();
            let told = "it closed the connection before its response was complete";
            assert_eq!(fault.to_string(), told);
            drop(connection);
            drop(pool.connect(false).await);
        });
        let address = "http://127.0.0.1:1".parse().unwrap();
        let builder = &mut tokio::runtime::Builder::new_current_thread();
        builder.enable_all().build().unwrap().block_on(async {
            let failure = Pool::new(address, None, limits()).connect(false).await.unwrap_err();
            assert!(failure.to_string().starts_with("it cannot be reached: "), "{failure}");
        });
    }
}

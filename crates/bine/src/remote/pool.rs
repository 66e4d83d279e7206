//! The pool of idle connections to remote servers, and the limits on their number.

use std::collections::HashMap;
use std::hash::{Hash, Hasher};
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use rustls::ClientConfig;
use tokio::sync::Semaphore;

use super::address::Address;
use super::connection::{IdleConnection, RemoteConnection};

/// The pool for one server, shared by all callers that trust the same certificates.
#[derive(Debug)]
pub(super) struct ServerPool {
    /// Permits for concurrent calls; further calls wait within their time limit.
    pub(super) permits: Semaphore,
    idle: Mutex<Vec<(IdleConnection, Instant)>>,
}

/// Concurrent calls to one server.
const MAX_CALLS: usize = 64;
/// Idle connections to one server.
const MAX_IDLE: usize = 8;
/// Servers with a pool.
const MAX_POOLS: usize = 64;
/// Many servers close connections that were idle for five seconds, and a call on such a connection
/// is lost.
const IDLE_TIMEOUT: Duration = Duration::from_secs(4);

/// A server and the certificates that must vouch for it; `None`: the system's.
type Key = (Address, Option<Roots>);

/// Compared by address. The reference keeps the value alive, so that no other value can get the
/// same address.
#[derive(Debug)]
struct Roots(Arc<ClientConfig>);

static POOLS: LazyLock<Mutex<HashMap<Key, Arc<ServerPool>>>> = LazyLock::new(Mutex::default);

impl ServerPool {
    /// The pool of this server.
    pub(super) fn of(address: &Address, roots: Option<&Arc<ClientConfig>>) -> Arc<Self> {
        let mut pools = pools();
        let roots = roots.map(|roots| Roots(Arc::clone(roots)));
        let key = (Address { base: String::new(), ..address.clone() }, roots);
        if let Some(pool) = pools.get(&key) {
            return Arc::clone(pool);
        }
        if pools.len() >= MAX_POOLS {
            // Pools in use are not counted against the limit: their callers bound their number.
            pools.retain(|_, pool| Arc::strong_count(pool) > 1 || pool.is_fresh());
        }
        if pools.len() >= MAX_POOLS {
            pools.retain(|_, pool| Arc::strong_count(pool) > 1);
        }
        let pool = Arc::new(Self { permits: Semaphore::new(MAX_CALLS), idle: Mutex::default() });
        pools.insert(key, Arc::clone(&pool));
        pool
    }

    /// Takes the connection that was used last, if it is still open.
    pub(super) fn take(&self) -> Option<RemoteConnection> {
        loop {
            let (idle, since) = self.idle().pop()?;
            if since.elapsed() > IDLE_TIMEOUT {
                // All other connections were idle for longer.
                self.idle().clear();
                return None;
            }
            if let Some(connection) = idle.resume() {
                return Some(connection);
            }
        }
    }

    /// Returns a connection to the pool, and closes connections that were idle for too long.
    pub(super) fn keep(&self, connection: RemoteConnection) {
        for pool in pools().values() {
            pool.idle().retain(|(_, since)| since.elapsed() <= IDLE_TIMEOUT);
        }
        let Some(connection) = connection.into_idle() else { return };
        let mut idle = self.idle();
        if idle.len() == MAX_IDLE {
            idle.remove(0);
        }
        idle.push((connection, Instant::now()));
    }

    fn is_fresh(&self) -> bool {
        self.idle().last().is_some_and(|(_, since)| since.elapsed() <= IDLE_TIMEOUT)
    }

    fn idle(&self) -> MutexGuard<'_, Vec<(IdleConnection, Instant)>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Lock order: this lock before any pool's `idle`.
fn pools() -> MutexGuard<'static, HashMap<Key, Arc<ServerPool>>> {
    POOLS.lock().unwrap_or_else(PoisonError::into_inner)
}

impl PartialEq for Roots {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Eq for Roots {}

impl Hash for Roots {
    fn hash<H: Hasher>(&self, to: &mut H) {
        Arc::as_ptr(&self.0).hash(to);
    }
}

/// Closes the idle connections to a server.
#[cfg(test)]
pub(super) fn close_idle(address: &str) {
    let address = Address::parse(address).unwrap();
    for (_, pool) in pools().iter().filter(|((own, _), _)| *own == address) {
        pool.idle().clear();
    }
}

//! The pool of idle connections to remote servers, and the limits on their number.

use std::collections::HashMap;
use std::hash::{Hash, Hasher};
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use rustls::ClientConfig;
use tokio::sync::Semaphore;

use super::address::Address;
use super::line::{Line, Resting};

/// The pool for one server, shared by all callers that trust the same certificates.
#[derive(Debug)]
pub(super) struct Place {
    /// Permits for concurrent calls; further calls wait within their time limit.
    pub(super) turns: Semaphore,
    resting: Mutex<Vec<(Resting, Instant)>>,
}

/// Concurrent calls to one server.
const MOST_CALLS: usize = 64;
/// Idle connections to one server.
const MOST_RESTING: usize = 8;
/// Servers with a pool.
const MOST_PLACES: usize = 64;
/// Many servers close connections that were idle for five seconds, and a call on such a connection
/// is lost.
const REST: Duration = Duration::from_secs(4);

/// A server and the certificates that must vouch for it; `None`: the system's.
type Key = (Address, Option<Roots>);

/// Compared by address. The reference keeps the value alive, so that no other value can get the
/// same address.
#[derive(Debug)]
struct Roots(Arc<ClientConfig>);

static PLACES: LazyLock<Mutex<HashMap<Key, Arc<Place>>>> = LazyLock::new(Mutex::default);

impl Place {
    /// The pool of this server.
    pub(super) fn of(address: &Address, roots: Option<&Arc<ClientConfig>>) -> Arc<Self> {
        let mut places = places();
        let roots = roots.map(|roots| Roots(Arc::clone(roots)));
        let key = (Address { base: String::new(), ..address.clone() }, roots);
        if let Some(place) = places.get(&key) {
            return Arc::clone(place);
        }
        if places.len() >= MOST_PLACES {
            // Pools in use are not counted against the limit: their callers bound their number.
            places.retain(|_, place| Arc::strong_count(place) > 1 || place.is_fresh());
        }
        if places.len() >= MOST_PLACES {
            places.retain(|_, place| Arc::strong_count(place) > 1);
        }
        let place = Arc::new(Self { turns: Semaphore::new(MOST_CALLS), resting: Mutex::default() });
        places.insert(key, Arc::clone(&place));
        place
    }

    /// Takes the connection that was used last, if it is still open.
    pub(super) fn take(&self) -> Option<Line> {
        loop {
            let (resting, since) = self.resting().pop()?;
            if since.elapsed() > REST {
                // All other connections were idle for longer.
                self.resting().clear();
                return None;
            }
            if let Some(line) = resting.resume() {
                return Some(line);
            }
        }
    }

    /// Returns a connection to the pool, and closes connections that were idle for too long.
    pub(super) fn keep(&self, line: Line) {
        for place in places().values() {
            place.resting().retain(|(_, since)| since.elapsed() <= REST);
        }
        let Some(line) = line.rest() else { return };
        let mut resting = self.resting();
        if resting.len() == MOST_RESTING {
            resting.remove(0);
        }
        resting.push((line, Instant::now()));
    }

    fn is_fresh(&self) -> bool {
        self.resting().last().is_some_and(|(_, since)| since.elapsed() <= REST)
    }

    fn resting(&self) -> MutexGuard<'_, Vec<(Resting, Instant)>> {
        self.resting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Lock order: this lock before any pool's `resting`.
fn places() -> MutexGuard<'static, HashMap<Key, Arc<Place>>> {
    PLACES.lock().unwrap_or_else(PoisonError::into_inner)
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
pub(super) fn forget(address: &str) {
    let address = Address::read(address).unwrap();
    for (_, place) in places().iter().filter(|((own, _), _)| *own == address) {
        place.resting().clear();
    }
}

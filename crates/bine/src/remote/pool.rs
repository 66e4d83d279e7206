//! Decides which connections with other servers are kept, and how many there may be.

use std::collections::HashMap;
use std::hash::{Hash, Hasher};
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use rustls::ClientConfig;
use tokio::sync::Semaphore;

use super::address::Address;
use super::line::{Line, Resting};

/// What is kept of one server, for whoever trusts and calls it alike.
#[derive(Debug)]
pub(super) struct Place {
    /// For calls at one time; others wait for their turn, within their own time.
    pub(super) turns: Semaphore,
    resting: Mutex<Vec<(Resting, Instant)>>,
}

/// Calls of one server at one time.
const MOST_CALLS: usize = 64;
/// Connections with one server that nobody uses.
const MOST_RESTING: usize = 8;
/// Servers of which something is kept.
const MOST_PLACES: usize = 64;
/// Many servers end what has rested for five seconds, and a call on what is being ended is lost.
const REST: Duration = Duration::from_secs(4);

/// A server, and whom it must be vouched for by: those whom the system trusts, or other roots.
type Key = (Address, Option<Roots>);

/// The same roots are those of one value. They are held, or others could come to stand at their address.
#[derive(Debug)]
struct Roots(Arc<ClientConfig>);

static PLACES: LazyLock<Mutex<HashMap<Key, Arc<Place>>>> = LazyLock::new(Mutex::default);

impl Place {
    /// The one of this server.
    pub(super) fn of(address: &Address, roots: Option<&Arc<ClientConfig>>) -> Arc<Self> {
        let mut places = places();
        let roots = roots.map(|roots| Roots(Arc::clone(roots)));
        let key = (Address { base: String::new(), ..address.clone() }, roots);
        if let Some(place) = places.get(&key) {
            return Arc::clone(place);
        }
        if places.len() >= MOST_PLACES {
            // Those in use are bounded by whoever uses them.
            places.retain(|_, place| Arc::strong_count(place) > 1 || place.is_fresh());
        }
        if places.len() >= MOST_PLACES {
            places.retain(|_, place| Arc::strong_count(place) > 1);
        }
        let place = Arc::new(Self { turns: Semaphore::new(MOST_CALLS), resting: Mutex::default() });
        places.insert(key, Arc::clone(&place));
        place
    }

    /// The connection that rested last, if it still stands.
    pub(super) fn take(&self) -> Option<Line> {
        loop {
            let (resting, since) = self.resting().pop()?;
            if since.elapsed() > REST {
                // All others have rested for longer.
                self.resting().clear();
                return None;
            }
            if let Some(line) = resting.resume() {
                return Some(line);
            }
        }
    }

    /// Keeps a connection for the next call, and none of any server that has rested for too long.
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

/// Locked before what rests of any.
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

/// Ends the connections with a server that rest.
#[cfg(test)]
pub(super) fn forget(address: &str) {
    let address = Address::read(address).unwrap();
    for (_, place) in places().iter().filter(|((own, _), _)| *own == address) {
        place.resting().clear();
    }
}

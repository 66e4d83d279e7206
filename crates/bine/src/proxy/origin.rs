//! One origin of a rule: its places, its pool, its health, and its counts.

use std::ops::{Deref, DerefMut};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, LazyLock};
use std::time::{Duration, Instant};

use bine_client::{ConnectFailure, OriginAddress, Pool, PoolLimits, PooledConnection};
use bine_log as log;
use bine_server::AddressBlock;

use super::origin_tls::LoadedTls;
use super::place_book::PlaceLimits;
use super::places::{NoPlace, OriginPlace, OriginPlaces};
use crate::log_limiter::LogLimiter;

/// An origin. A reload keeps it if its address, its limits and its certificates stay the same.
pub(super) struct ProxyOrigin {
    /// Its address, for logs and metrics.
    pub(super) name: String,
    pub(super) pool: Arc<Pool>,
    /// `None`: its address is one without TLS.
    pub(super) tls: Option<LoadedTls>,
    pub(super) places: Arc<OriginPlaces>,
    health: OriginHealth,
    pub(super) counts: OriginCounts,
    refusal_log: LogLimiter,
}

/// The limits of an origin.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct OriginLimits {
    pub(super) pool: PoolLimits,
    pub(super) places: PlaceLimits,
}

/// A connection with the place at its origin. Dropping it closes the connection, unless it is
/// [kept](Self::keep).
pub(super) struct OriginConnection {
    connection: PooledConnection,
    _place: OriginPlace,
}

/// The reason why a request has no connection.
pub(super) enum NoConnection {
    Place(NoPlace),
    Failed(ConnectFailure),
}

/// Whether an origin gets requests.
#[derive(Debug, Default)]
struct OriginHealth {
    /// Failures without a success in between.
    failures: AtomicU32,
    /// Until when it rests after failures, in milliseconds since the start.
    rests_until: AtomicU64,
    /// Whether its active check fails.
    is_down: AtomicBool,
    /// Since when it is up again after a rest; 0: from the start.
    up_since: AtomicU64,
}

/// What happened to the requests for an origin.
#[derive(Debug, Default)]
pub(super) struct OriginCounts {
    /// Responses by the first digit of their status, from 1 to 5.
    pub(super) answered: [AtomicU64; 5],
    /// Requests without a complete response head.
    pub(super) failed: AtomicU64,
    /// Responses that broke off in their content.
    pub(super) cut: AtomicU64,
    /// Requests that were sent again on a new connection.
    pub(super) retried: AtomicU64,
}

/// The share of its weight with which a slow start begins.
const SLOWEST: f64 = 0.1;

/// Milliseconds since the first call, at least 1.
fn now() -> u64 {
    static START: LazyLock<Instant> = LazyLock::new(Instant::now);
    START.elapsed().as_millis() as u64 + 1
}

impl ProxyOrigin {
    pub(super) fn new(
        address: OriginAddress,
        tls: Option<LoadedTls>,
        limits: OriginLimits,
    ) -> Arc<Self> {
        let name = address.to_string();
        let pool = Pool::new(address, tls.as_ref().map(|loaded| loaded.tls.clone()), limits.pool);
        let places = OriginPlaces::new(limits.places);
        let (health, counts) = (OriginHealth::default(), OriginCounts::default());
        Arc::new(Self { name, pool, tls, places, health, counts, refusal_log: LogLimiter::new() })
    }

    pub(super) fn limits(&self) -> OriginLimits {
        OriginLimits { pool: self.pool.limits(), places: self.places.limits() }
    }

    /// Takes a place for a request of a client of `block`, and a connection. `is_fresh`: a new one.
    ///
    /// # Errors
    ///
    /// Why there is none.
    pub(super) async fn connect(
        &self,
        block: AddressBlock,
        is_fresh: bool,
    ) -> Result<OriginConnection, NoConnection> {
        let patience = self.pool.limits().connect_time;
        let place = self.places.acquire(block, patience).await.map_err(NoConnection::Place)?;
        let connection = self.pool.connect(is_fresh).await.map_err(NoConnection::Failed)?;
        Ok(OriginConnection { connection, _place: place })
    }

    /// Logs that a request of a client of `block` was rejected, at most once a second for each reason.
    pub(super) fn log_refusal(&self, reason: NoPlace, block: AddressBlock) {
        let limits = self.places.limits();
        let PlaceLimits { total, waiting, .. } = limits;
        let what = match reason {
            NoPlace::Origin => format!("{total} requests run already, the limit `connections`"),
            NoPlace::Client => {
                let most = limits.client_limit(block);
                format!("{most} of its requests run already, the limit `connections-per-client`")
            }
            NoPlace::Queue => format!("no further request may wait, the limit `waiting={waiting}`"),
        };
        let Some(left_out) = self.refusal_log.pass(&what, Instant::now()) else { return };
        let name = &self.name;
        log::warn(format_args!(
            "proxy: {name}: rejected a request of {block}: {what}; {left_out} similar lines were left out"
        ));
    }

    /// Whether it gets requests.
    pub(super) fn is_up(&self) -> bool {
        !self.health.is_down.load(Ordering::Relaxed)
            && self.health.rests_until.load(Ordering::Relaxed) <= now()
    }

    /// Whether its active check fails.
    pub(super) fn is_down(&self) -> bool {
        self.health.is_down.load(Ordering::Relaxed)
    }

    /// Its weight now, which grows during a slow start.
    pub(super) fn weight(&self, full: u32, slow_start: Duration) -> f64 {
        let since = self.health.up_since.load(Ordering::Relaxed);
        weight_after(now().saturating_sub(since), full, slow_start, since > 0)
    }

    /// Records that it has answered.
    pub(super) fn note_success(&self) {
        if self.health.failures.load(Ordering::Relaxed) > 0 {
            self.health.failures.store(0, Ordering::Relaxed);
        }
    }

    /// Records that it has not answered. After `limit` failures it rests for `time`. Returns whether
    /// the rest begins.
    pub(super) fn note_failure(&self, limit: u32, time: Duration) -> bool {
        if self.health.failures.fetch_add(1, Ordering::Relaxed) + 1 < limit {
            return false;
        }
        let end = now() + time.as_millis() as u64;
        let before = self.health.rests_until.swap(end, Ordering::Relaxed);
        self.health.up_since.store(end, Ordering::Relaxed);
        before <= now()
    }

    /// Records the result of an active check. Returns whether it is a change.
    pub(super) fn note_check(&self, is_down: bool) -> bool {
        let is_change = self.health.is_down.swap(is_down, Ordering::Relaxed) != is_down;
        if is_change && !is_down {
            self.health.failures.store(0, Ordering::Relaxed);
            self.health.rests_until.store(0, Ordering::Relaxed);
            self.health.up_since.store(now(), Ordering::Relaxed);
        }
        is_change
    }
}

impl OriginConnection {
    /// Gives the place back, and keeps the connection for another request.
    pub(super) fn keep(self) {
        self.connection.keep();
    }
}

impl Deref for OriginConnection {
    type Target = PooledConnection;

    fn deref(&self) -> &PooledConnection {
        &self.connection
    }
}

impl DerefMut for OriginConnection {
    fn deref_mut(&mut self) -> &mut PooledConnection {
        &mut self.connection
    }
}

/// The weight of an origin that has been up again for `time` milliseconds.
fn weight_after(time: u64, full: u32, slow_start: Duration, has_rested: bool) -> f64 {
    let whole = slow_start.as_millis() as u64;
    let full = f64::from(full);
    if !has_rested || time >= whole {
        return full;
    }
    full * (SLOWEST + (1.0 - SLOWEST) * time as f64 / whole as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn origin() -> Arc<ProxyOrigin> {
        let time = Duration::from_secs(1);
        let limits = OriginLimits {
            pool: PoolLimits { idle: 1, idle_time: time, connect_time: time },
            places: PlaceLimits { total: 1, client: 1, waiting: 1 },
        };
        ProxyOrigin::new("http://127.0.0.1:1".parse().unwrap(), None, limits)
    }

    #[test]
    fn rests_after_consecutive_failures() {
        let (origin, long) = (origin(), Duration::from_hours(1));
        assert!(!origin.note_failure(2, long) && origin.is_up());
        origin.note_success();
        assert!(!origin.note_failure(2, long) && origin.is_up());
        assert!(origin.note_failure(2, long) && !origin.is_up());
        assert!(!origin.note_failure(2, long), "it rests already");
    }

    #[test]
    fn follows_active_checks() {
        let origin = origin();
        assert!(!origin.note_check(false));
        assert!(origin.note_check(true) && !origin.is_up());
        assert!(!origin.note_check(true));
        assert!(origin.note_check(false) && origin.is_up());
        let weight = origin.weight(10, Duration::from_hours(1));
        assert!((1.0..2.0).contains(&weight), "it starts slowly: {weight}");
        assert!((origin.weight(10, Duration::ZERO) - 10.0).abs() < 1e-9);
    }

    #[test]
    fn grows_to_the_full_weight() {
        let slow = Duration::from_secs(10);
        for (time, expected) in [(0, 1.0), (5_000, 5.5), (10_000, 10.0), (20_000, 10.0)] {
            let weight = weight_after(time, 10, slow, true);
            assert!((weight - expected).abs() < 1e-9, "{weight} after {time} ms");
        }
        assert!((weight_after(0, 10, slow, false) - 10.0).abs() < 1e-9, "it never rested");
    }
}

//! Budgets that all connections of a server share: bytes of request bodies in memory, of uploads on
//! disk and of unsent responses, and the numbers of connections and of TLS handshakes in progress.

mod pool;

use std::path::Path;
use std::sync::Arc;

use crate::limits::census::{Census, ConnectionLimits, descriptors};
use crate::limits::readings::total_memory;
use crate::quota::Caps;
use crate::settings::{ByteBudgets, Settings};
use crate::tls::{HandshakeLimits, Handshakes};

pub use pool::BudgetMetrics;

pub(crate) use pool::{Budget, Claim, Refused, Reservation};

/// Default of each memory budget: this fraction (1/8) of the memory, but at least [`MIN_BUDGET`].
const MEMORY_FRACTION: u64 = 8;
const MIN_BUDGET: u64 = 64 << 20;
/// Default quota of an address block: a quarter of the budget, but enough for one request body of
/// the size that handlers usually accept, unless that exceeds half of the budget.
const BLOCK_FRACTION: u64 = 4;
const MIN_BLOCK: u64 = 17 << 20;
/// Default budget for uploads: this fraction (1/4) of the free space on their disk.
const DISK_FRACTION: u64 = 4;
/// Assumed size in bytes when the system does not report one.
const ASSUMED_MEMORY: u64 = 1 << 30;

/// The budgets of one server.
pub(crate) struct Budgets {
    /// Request bodies in memory, until the handler has finished.
    pub(crate) bodies: Arc<Budget>,
    /// Request bodies on disk.
    pub(crate) uploads: Arc<Budget>,
    /// Responses in memory that the clients have not read.
    pub(crate) unsent: Arc<Budget>,
    /// TLS handshakes in progress.
    pub(crate) handshakes: Arc<Handshakes>,
    /// Connections.
    pub(crate) census: Arc<Census>,
}

impl Budgets {
    pub(crate) fn new(settings: &Settings) -> Self {
        let [bodies, uploads, unsent] = sizes(settings);
        let open = |name, (most, caps)| Arc::new(Budget::new(name, most, caps));
        Self {
            bodies: open("bodies", bodies),
            uploads: open("uploads", uploads),
            unsent: open("unsent", unsent),
            handshakes: Arc::new(Handshakes::new(handshake_limits(settings))),
            census: Arc::new(Census::new(connection_limits(settings))),
        }
    }

    /// Changes the limits. Existing reservations stay.
    pub(crate) fn limit(&self, settings: &Settings) {
        for (budget, (most, caps)) in self.all().into_iter().zip(sizes(settings)) {
            budget.limit(most, caps);
        }
        self.handshakes.limit(handshake_limits(settings));
        self.census.limit(connection_limits(settings));
    }

    /// Halves the memory budgets while memory is short.
    pub(crate) fn tighten(&self, is_tight: bool) {
        self.bodies.tighten(is_tight);
        self.unsent.tighten(is_tight);
    }

    pub(crate) fn metrics(&self) -> [BudgetMetrics; 3] {
        self.all().map(|budget| budget.metrics())
    }

    fn all(&self) -> [&Arc<Budget>; 3] {
        [&self.bodies, &self.uploads, &self.unsent]
    }
}

/// Budgets without a limit on bytes.
#[cfg(test)]
impl Default for Budgets {
    fn default() -> Self {
        let open = |name| Arc::new(Budget::new(name, u64::MAX, Caps::new(u64::MAX, u64::MAX)));
        Self {
            bodies: open("bodies"),
            uploads: open("uploads"),
            unsent: open("unsent"),
            handshakes: Arc::new(Handshakes::new(handshake_limits(&Settings::default()))),
            census: Arc::new(Census::new(connection_limits(&Settings::default()))),
        }
    }
}

/// The setting counts handshakes per loop; the limit is the sum over all loops.
fn handshake_limits(settings: &Settings) -> HandshakeLimits {
    let most = settings.handshakes.saturating_mul(settings.loops.max(1)) as u64;
    HandshakeLimits::new(most, settings.handshake_rate)
}

fn connection_limits(settings: &Settings) -> ConnectionLimits {
    ConnectionLimits {
        most: settings.connections.unwrap_or(usize::MAX).min(descriptors()),
        per_block: settings.connections_per_address,
        local: settings.connections_local,
    }
}

fn sizes(settings: &Settings) -> [(u64, Caps); 3] {
    let ByteBudgets { bodies, uploads, unsent, share } = settings.budgets;
    let memory = || {
        let all = total_memory(settings.guards.memory).unwrap_or(ASSUMED_MEMORY);
        (all / MEMORY_FRACTION).max(MIN_BUDGET)
    };
    let disk = || {
        (free_on_disk(&settings.spool).unwrap_or(ASSUMED_MEMORY) / DISK_FRACTION).max(MIN_BUDGET)
    };
    let with_caps = |most: u64, least: u64| {
        let block = match share {
            Some(percent) => (u128::from(most) * u128::from(percent) / 100) as u64,
            None => (most / BLOCK_FRACTION).max(least.min(most / 2)),
        };
        (most, Caps::new(block, (most / 10 * 9).max(block)))
    };
    [
        with_caps(bodies.unwrap_or_else(memory), MIN_BLOCK),
        with_caps(uploads.unwrap_or_else(disk), settings.upload),
        with_caps(unsent.unwrap_or_else(memory), MIN_BLOCK),
    ]
}

fn free_on_disk(folder: &Path) -> Option<u64> {
    let disk = rustix::fs::statvfs(folder).ok()?;
    Some(disk.f_bavail.saturating_mul(disk.f_frsize))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::address::{AddressBlock, ClientAddress};
    use crate::quota::Owner;

    const MIB: u64 = 1 << 20;

    #[test]
    fn takes_an_eighth_of_memory_and_a_quarter_of_the_disk_by_default() {
        let guards = crate::settings::Guards { memory: Some(8 << 30), ..Default::default() };
        let budgets = Budgets::new(&Settings { guards: guards.clone(), ..Settings::default() });
        let most = budgets.metrics().map(|metrics| metrics.most);
        assert_eq!((most[0], most[2]), (1 << 30, 1 << 30));
        // Other programs use the disk meanwhile.
        let free = free_on_disk(&Settings::default().spool).unwrap();
        let quarter = (free / 4).max(MIN_BUDGET);
        assert!((quarter / 2..=quarter * 2).contains(&most[1]), "{most:?} of {free}");
        let small = crate::settings::Guards { memory: Some(1 << 20), ..guards };
        let settings =
            Settings { guards: small, spool: "/missing folder".into(), ..Settings::default() };
        let most = Budgets::new(&settings).metrics().map(|metrics| metrics.most);
        assert_eq!(most, [64 * MIB, 256 * MIB, 64 * MIB]);
    }

    fn settings(mib: u64) -> Settings {
        let bytes = Some(mib * MIB);
        let budgets =
            ByteBudgets { bodies: bytes, uploads: bytes, unsent: bytes, share: Some(100) };
        Settings { budgets, ..Settings::default() }
    }

    /// Which of the budgets for bodies, uploads and unsent replies grant a reservation of `mib`.
    fn grants(budgets: &Budgets, mib: u64) -> [bool; 3] {
        budgets.all().map(|budget| {
            let block = AddressBlock::of("192.0.2.1".parse().unwrap());
            let claim = Claim { block, owner: &Owner::default() };
            Reservation::default().reach(mib * MIB, budget, claim).is_ok()
        })
    }

    #[test]
    fn halves_the_budgets_of_memory_while_it_is_short() {
        let budgets = Budgets::new(&settings(16));
        assert_eq!(grants(&budgets, 10), [true; 3]);
        budgets.tighten(true);
        assert_eq!(grants(&budgets, 10), [false, true, false]);
        assert_eq!(grants(&budgets, 8), [true; 3]);
        budgets.tighten(false);
        assert_eq!(grants(&budgets, 10), [true; 3]);
    }

    #[test]
    fn applies_the_limits_of_new_settings() {
        let budgets = Budgets::new(&settings(16));
        budgets.limit(&settings(8));
        assert_eq!((grants(&budgets, 8), grants(&budgets, 9)), ([true; 3], [false; 3]));
    }

    #[test]
    fn limits_a_block_to_its_share() {
        let mut shared = settings(16);
        shared.budgets.share = Some(25);
        let budgets = Budgets::new(&shared);
        assert_eq!((grants(&budgets, 4), grants(&budgets, 5)), ([true; 3], [false; 3]));
        // By default a quarter, or enough for one body, but not more than half.
        shared.budgets.share = None;
        shared.upload = 6 * MIB;
        let budgets = Budgets::new(&shared);
        assert_eq!(grants(&budgets, 6), [true; 3]);
        assert_eq!(grants(&budgets, 8), [true, false, true]);
        assert_eq!(grants(&budgets, 9), [false; 3]);
    }

    #[test]
    fn derives_the_budgets_of_memory_from_its_size() {
        let of_memory = |mib: u64| {
            let guards = crate::settings::Guards { memory: Some(mib * MIB), ..Default::default() };
            let [bodies, uploads, unsent] = sizes(&Settings { guards, ..Settings::default() });
            assert_eq!(bodies, unsent);
            assert!(uploads.0 >= MIN_BUDGET, "{}", uploads.0);
            let remote = AddressBlock::of("192.0.2.1".parse().unwrap());
            let (most, caps) = bodies;
            [most, caps.of(remote), caps.of(ClientAddress::UNIX.block())]
                .map(|bytes| bytes * 10 / MIB)
        };
        // An eighth for all, a quarter of it for one block, nine tenths for this machine.
        assert_eq!(of_memory(4096), [5120, 1280, 4607]);
        // At least 64 MiB for all, and 17 MiB for one block.
        assert_eq!(of_memory(100), [640, 170, 575]);
        assert_eq!(of_memory(512), [640, 170, 575]);
        assert_eq!(of_memory(640), [800, 200, 720]);
    }
}

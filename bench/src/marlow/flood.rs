//! A flood of bogus requests: connections that send garbage, or a head that never ends.

use std::net::{IpAddr, Ipv4Addr};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Result, anyhow};

use crate::crowd::{Crowd, Habit, UNPACED};
use crate::marlow::point::MarlowPart;
use crate::peer::address;
use crate::tools::{pause, yield_priority};

/// No method, no version, a forbidden byte.
const GARBAGE: &[u8] = b"BOGUS\0 \x01 / HTTP/9.9\r\n\r\n";
const HEAD: &[u8] = b"GET /1024.html HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Slow: ";
/// The time between two bytes of a head.
const DRIP: Duration = Duration::from_secs(1);
/// Connections at one time. The load needs the remaining descriptors.
const MOST: usize = 4000;
/// Loopback addresses of the flood: one has too few ports.
const ADDRESSES: u8 = 16;
/// The flood begins this long before the load.
const LEAD: Duration = Duration::from_millis(500);

/// A flood of this many connections per second.
pub(super) struct Flood {
    pub(super) part: MarlowPart,
    pub(super) rate: u64,
    pub(super) port: u16,
}

/// Connections per second: those that began, and those that the server closed.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct FloodRates {
    pub(super) begun: f64,
    pub(super) closed: f64,
}

impl Flood {
    /// Runs `load` during the flood.
    pub(super) fn during<T>(&self, load: impl FnOnce() -> Result<T>) -> Result<(T, FloodRates)> {
        let Some(crowd) = self.crowd() else { return Ok((load()?, FloodRates::default())) };
        let stop = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let flooding = scope.spawn(|| {
                // The load has priority on their core, so the flood does not delay its clients.
                yield_priority()?;
                let begun = Instant::now();
                let tally = crowd.run(&stop)?;
                let seconds = begun.elapsed().as_secs_f64();
                let (begun, closed) = (tally.connected as f64, tally.closed as f64);
                anyhow::Ok(FloodRates { begun: begun / seconds, closed: closed / seconds })
            });
            pause(LEAD);
            let result = load();
            stop.store(true, Ordering::Relaxed);
            let rates = flooding.join().map_err(|_| anyhow!("the flood panicked"))??;
            Ok((result?, rates))
        })
    }

    /// `None` if there is no flood.
    fn crowd(&self) -> Option<Crowd> {
        let (opening, habit) = match self.part {
            MarlowPart::Garbage => (GARBAGE, Habit::Rest),
            MarlowPart::Heads => (HEAD, Habit::Drip(DRIP)),
            MarlowPart::Generator | MarlowPart::Load => return None,
        };
        let rate = u32::try_from(self.rate).ok().filter(|rate| *rate > 0)?;
        let from = (1..=ADDRESSES).map(|number| IpAddr::V4(Ipv4Addr::new(127, 0, 2, number)));
        Some(Crowd {
            from: from.collect(),
            to: address(self.port),
            connections: MOST,
            rate,
            pace: UNPACED,
            opening: opening.to_vec(),
            filler: 0,
            habit,
        })
    }
}

#[cfg(test)]
mod tests {
    //! The floods of each part.

    use super::*;

    #[test]
    fn floods_only_at_a_rate() {
        let crowd = |part, rate| Flood { part, rate, port: 9 }.crowd();
        assert!(crowd(MarlowPart::Garbage, 0).is_none());
        assert!(crowd(MarlowPart::Load, 100).is_none());
        let garbage = crowd(MarlowPart::Garbage, 100).unwrap();
        assert!(garbage.opening.ends_with(b"\r\n\r\n"), "a server must be able to judge it");
        let heads = crowd(MarlowPart::Heads, 100).unwrap();
        assert!(!heads.opening.ends_with(b"\n"), "the head is incomplete");
    }

    #[test]
    fn returns_the_result_of_the_load() {
        let flood = Flood { part: MarlowPart::Garbage, rate: 0, port: 9 };
        let (result, rates) = flood.during(|| Ok(7)).unwrap();
        assert_eq!(result, 7);
        assert!(rates.begun < 1.0);
        assert!(flood.during(|| Err::<(), _>(anyhow!("no load"))).is_err());
    }
}

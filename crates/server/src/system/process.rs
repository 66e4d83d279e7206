//! Decides what the kernel is asked about this process: what it has used, and what it may.

use std::fs;
use std::time::Duration;

use rustix::param::{clock_ticks_per_second, page_size};
use rustix::process::{Resource, getrlimit};
use rustix::time::{ClockId, clock_gettime};

/// What this process uses. Whatever the kernel does not tell is `None`.
#[derive(Clone, Copy, Debug, Default)]
pub struct ProcessMetrics {
    /// Time on CPUs, of all threads together, those that have ended included.
    pub cpu: Duration,
    /// Bytes of memory that are in use at this moment.
    pub resident: Option<u64>,
    /// Bytes of address space.
    pub virtual_size: Option<u64>,
    /// Open descriptors.
    pub descriptors: Option<u64>,
    /// How many descriptors may be open.
    pub most_descriptors: Option<u64>,
    /// Threads.
    pub threads: Option<u64>,
    /// When it was started, in seconds since 1970.
    pub started: Option<f64>,
}

/// Asks the kernel what this process uses, which takes some tens of microseconds however many connections there are.
pub fn process_metrics() -> ProcessMetrics {
    let stat = fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let pages = fs::read_to_string("/proc/self/statm").unwrap_or_default();
    let bytes = |place| Some(number(&pages, place)? * page_size() as u64);
    let cpu = clock_gettime(ClockId::ProcessCPUTime);
    ProcessMetrics {
        cpu: Duration::new(cpu.tv_sec.cast_unsigned(), cpu.tv_nsec.unsigned_abs() as u32),
        resident: bytes(1),
        virtual_size: bytes(0),
        descriptors: descriptors(),
        most_descriptors: getrlimit(Resource::Nofile).current,
        threads: number(behind_name(&stat), 17),
        started: number(behind_name(&stat), 19).map(since_1970),
    }
}

/// The name of a program may have spaces and brackets of its own, as `proc_pid_stat(5)` says.
fn behind_name(stat: &str) -> &str {
    stat.rsplit_once(')').map_or("", |(_, behind)| behind)
}

fn number(text: &str, place: usize) -> Option<u64> {
    text.split_whitespace().nth(place)?.parse().ok()
}

/// The moment so many ticks after the start of the system.
fn since_1970(ticks: u64) -> f64 {
    let seconds = |clock| {
        let time = clock_gettime(clock);
        time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
    };
    // A tick is a hundredth of a second: more figures would tremble from one reading to the next.
    let began = seconds(ClockId::Realtime) - seconds(ClockId::Boottime);
    let started = began + ticks as f64 / clock_ticks_per_second() as f64;
    (started * 10.0).round() / 10.0
}

/// Since Linux 6.2 the folder's size is their number. Before, they are counted, which is slow where they are many.
fn descriptors() -> Option<u64> {
    let folder = "/proc/self/fd";
    match fs::metadata(folder).ok()?.len() {
        0 => fs::read_dir(folder).ok().map(|entries| entries.count() as u64),
        count => Some(count),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_knows_what_it_uses() {
        let metrics = process_metrics();
        let now = clock_gettime(ClockId::Realtime).tv_sec as f64;
        assert!(metrics.cpu > Duration::ZERO);
        assert!(metrics.resident.is_some_and(|bytes| bytes > 100_000), "{metrics:?}");
        assert!(metrics.virtual_size > metrics.resident, "{metrics:?}");
        assert!(metrics.descriptors.is_some_and(|count| count >= 3), "{metrics:?}");
        assert!(metrics.threads.is_some_and(|count| count >= 1), "{metrics:?}");
        let age = now - metrics.started.unwrap();
        assert!((-2.0..1e6).contains(&age), "{metrics:?}");
    }

    #[test]
    fn a_program_may_have_any_name() {
        assert_eq!(number(behind_name("7 (a) 1 (b c)) S 1 2"), 2), Some(2));
        assert_eq!(number(behind_name(""), 1), None);
    }
}

//! Resource usage and limits of this process, as the kernel reports them.

use std::fs;
use std::time::Duration;

use rustix::param::{clock_ticks_per_second, page_size};
use rustix::process::{Resource, getrlimit};
use rustix::time::{ClockId, clock_gettime};

/// The resources that this process uses. A figure that the kernel does not report is `None`.
#[derive(Clone, Copy, Debug, Default)]
pub struct ProcessMetrics {
    /// CPU time of all threads, ended ones included.
    pub cpu: Duration,
    /// Resident memory in bytes.
    pub resident: Option<u64>,
    /// Virtual memory in bytes.
    pub virtual_size: Option<u64>,
    /// Open file descriptors.
    pub descriptors: Option<u64>,
    /// The limit of open file descriptors.
    pub most_descriptors: Option<u64>,
    /// Threads.
    pub threads: Option<u64>,
    /// Start time of the process, in seconds since 1970.
    pub started: Option<f64>,
}

/// Reads the resource usage of this process. It takes some tens of microseconds, independent of the
/// number of connections.
pub fn process_metrics() -> ProcessMetrics {
    let stat = fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let pages = fs::read_to_string("/proc/self/statm").unwrap_or_default();
    let bytes = |index| Some(number(&pages, index)? * page_size() as u64);
    ProcessMetrics {
        cpu: cpu_time(ClockId::ProcessCPUTime),
        resident: bytes(1),
        virtual_size: bytes(0),
        descriptors: descriptors(),
        most_descriptors: getrlimit(Resource::Nofile).current,
        threads: number(after_name(&stat), 17),
        started: number(after_name(&stat), 19).map(since_1970),
    }
}

/// The CPU time that the calling thread has used. It does not pass while the kernel runs other
/// threads on the core.
pub fn thread_cpu_time() -> Duration {
    cpu_time(ClockId::ThreadCPUTime)
}

fn cpu_time(clock: ClockId) -> Duration {
    let time = clock_gettime(clock);
    Duration::new(time.tv_sec.cast_unsigned(), time.tv_nsec.unsigned_abs() as u32)
}

/// Returns the fields after the program's name, which may itself contain spaces and brackets
/// (`proc_pid_stat(5)`).
fn after_name(stat: &str) -> &str {
    stat.rsplit_once(')').map_or("", |(_, behind)| behind)
}

fn number(text: &str, index: usize) -> Option<u64> {
    text.split_whitespace().nth(index)?.parse().ok()
}

/// Converts clock ticks since boot to seconds since 1970.
fn since_1970(ticks: u64) -> f64 {
    let seconds = |clock| {
        let time = clock_gettime(clock);
        time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
    };
    let booted = seconds(ClockId::Realtime) - seconds(ClockId::Boottime);
    to_tenth(booted + ticks as f64 / clock_ticks_per_second() as f64)
}

/// Rounds to a tenth. A tick is 10 ms; more digits would vary from one reading to the next.
fn to_tenth(seconds: f64) -> f64 {
    (seconds * 10.0).round() / 10.0
}

/// Counts the open descriptors. Since Linux 6.2 the size of the folder is their number. On older
/// kernels the function lists the folder, which is slow with many descriptors.
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
    fn reports_the_resource_usage_of_the_process() {
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
    fn cpu_time_is_that_of_the_calling_thread() {
        while thread_cpu_time() < Duration::from_millis(20) {
            std::hint::spin_loop();
        }
        let of_other = std::thread::spawn(thread_cpu_time).join().unwrap();
        assert!(of_other < thread_cpu_time(), "{of_other:?}");
        assert!(process_metrics().cpu >= thread_cpu_time());
    }

    #[test]
    fn parses_program_names_with_spaces_and_brackets() {
        assert_eq!(number(after_name("7 (a) 1 (b c)) S 1 2"), 2), Some(2));
        assert_eq!(number(after_name(""), 1), None);
    }

    #[test]
    fn converts_ticks_to_tenths_of_a_second() {
        assert_eq!(
            [1.04, 1.06, 7.96].map(|seconds| to_tenth(seconds).to_string()),
            ["1", "1.1", "8"]
        );
        let per_second = clock_ticks_per_second();
        let apart = since_1970(1000 * per_second) - since_1970(0);
        assert!((999.0..1001.0).contains(&apart), "{apart}");
    }
}

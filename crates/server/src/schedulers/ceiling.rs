//! Reads the limits of the system to determine how many threads this process may start.

use std::fs;
use std::path::Path;

use rustix::process::{Resource, getrlimit};

/// Threads reserved for everything else on this machine: event loops, log writers, threads that
/// handlers start, other processes.
const RESERVE: usize = 256;
/// The assumed limit where the system reports no limit.
const WITHOUT_LIMITS: usize = 1024;

/// Returns the lowest of the system's thread limits, less a reserve.
///
/// The limits also count threads of other processes, so starting a thread can fail below this
/// number. The caller must handle that failure.
pub(super) fn threads() -> usize {
    let number = |path: &str| fs::read_to_string(path).ok().and_then(|text| parse(&text));
    let limits = [
        getrlimit(Resource::Nproc).current.and_then(|most| usize::try_from(most).ok()),
        number("/proc/sys/kernel/threads-max"),
        // Each thread has a separate id.
        number("/proc/sys/kernel/pid_max"),
        // A thread needs two mappings: its stack and the guard page.
        number("/proc/sys/vm/max_map_count").map(|maps| maps / 2),
        cgroup_most(),
    ];
    less_reserve(lowest(limits))
}

/// Returns the lowest limit, or a small number if the system reports no limit.
fn lowest(limits: impl IntoIterator<Item = Option<usize>>) -> usize {
    limits.into_iter().flatten().min().unwrap_or(WITHOUT_LIMITS)
}

/// Returns the lowest `pids.max` from this process's cgroup up to the root (cgroup v2).
fn cgroup_most() -> Option<usize> {
    cgroup_limit(&fs::read_to_string("/proc/self/cgroup").ok()?, Path::new("/sys/fs/cgroup"))
}

/// Returns the lowest `pids.max` from the cgroup that `groups` names up to `root`.
fn cgroup_limit(groups: &str, root: &Path) -> Option<usize> {
    let group_path = groups.lines().find_map(|line| line.strip_prefix("0::/"))?;
    let limits = Path::new(group_path)
        .ancestors()
        .filter_map(|group| parse(&fs::read_to_string(root.join(group).join("pids.max")).ok()?));
    limits.min()
}

/// Parses a line that holds a number, or `max` for no limit.
fn parse(text: &str) -> Option<usize> {
    text.trim().parse().ok()
}

fn less_reserve(most: usize) -> usize {
    most.saturating_sub(RESERVE.min(most / 2)).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parses_a_limit_and_no_limit() {
        assert_eq!(parse("max\n"), None);
        assert_eq!(parse("4915\n"), Some(4915));
    }

    #[test]
    fn reserves_half_of_a_small_limit_and_a_fixed_number_of_a_large_one() {
        assert_eq!(less_reserve(1), 1);
        assert_eq!(less_reserve(100), 50);
        assert_eq!(less_reserve(30_000), 30_000 - RESERVE);
    }

    #[test]
    fn finds_a_limit_of_at_least_one_on_this_machine() {
        assert!(threads() >= 1);
    }

    #[test]
    fn uses_the_lowest_known_limit() {
        assert_eq!(lowest([None, Some(40), Some(7), None]), 7);
        assert_eq!(lowest([None, None]), 1024);
    }

    #[test]
    fn finds_the_lowest_limit_of_a_control_group_and_its_ancestors() {
        let folder = bine_log::test_support::ScratchFolder::new();
        let root = folder.path("");
        fs::create_dir_all(root.join("a/b")).unwrap();
        let limit = |groups: &str| cgroup_limit(groups, &root);
        assert_eq!(limit("0::/a/b\n"), None);
        fs::write(root.join("a/pids.max"), "70\n").unwrap();
        fs::write(root.join("a/b/pids.max"), "max\n").unwrap();
        assert_eq!(limit("1:pids:/x\n0::/a/b\n"), Some(70));
        fs::write(root.join("a/b/pids.max"), "90\n").unwrap();
        assert_eq!(limit("0::/a/b\n"), Some(70));
        fs::write(root.join("pids.max"), "60\n").unwrap();
        assert_eq!(limit("0::/a/b\n"), Some(60));
        assert_eq!(limit("1:pids:/a\n"), None, "of the first version");
    }
}

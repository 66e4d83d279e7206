//! Decides how many threads the kernel will let this process have.

use std::fs;
use std::path::Path;

use rustix::process::{Resource, getrlimit};

/// Kept back for everything else that runs here: loops, log writers, handlers' own threads, other processes.
const RESERVE: usize = 256;

/// As many threads as this process may have, whatever limit is the least, less a reserve.
///
/// The limits count what others have begun too, so fewer may be had: who starts threads must live with that.
pub(super) fn threads() -> usize {
    let number = |path: &str| fs::read_to_string(path).ok().and_then(|text| parse(&text));
    let limits = [
        getrlimit(Resource::Nproc).current.and_then(|most| usize::try_from(most).ok()),
        number("/proc/sys/kernel/threads-max"),
        // Each has a number of its own.
        number("/proc/sys/kernel/pid_max"),
        // Each has a stack and a page that guards it, a mapping each.
        number("/proc/sys/vm/max_map_count").map(|maps| maps / 2),
        cgroup_most(),
    ];
    less_reserve(limits.into_iter().flatten().min().unwrap_or(4 * RESERVE))
}

/// The least `pids.max` from this process's cgroup up to the root (cgroup v2).
fn cgroup_most() -> Option<usize> {
    let groups = fs::read_to_string("/proc/self/cgroup").ok()?;
    let own = groups.lines().find_map(|line| line.strip_prefix("0::/"))?;
    let limits = Path::new(own).ancestors().filter_map(|group| {
        let file = Path::new("/sys/fs/cgroup").join(group).join("pids.max");
        parse(&fs::read_to_string(file).ok()?)
    });
    limits.min()
}

/// A number on a line; `max` means that there is no limit.
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
    fn no_limit_is_told_from_one() {
        assert_eq!(parse("max\n"), None);
        assert_eq!(parse("4915\n"), Some(4915));
    }

    #[test]
    fn a_small_limit_is_shared_and_a_large_one_keeps_a_little_back() {
        assert_eq!(less_reserve(1), 1);
        assert_eq!(less_reserve(100), 50);
        assert_eq!(less_reserve(30_000), 30_000 - RESERVE);
    }

    #[test]
    fn this_machine_allows_some() {
        assert!(threads() >= 1);
    }
}

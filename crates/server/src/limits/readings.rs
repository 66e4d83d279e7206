//! Decides how many descriptors and how much memory a process uses of what it may, as the system tells it.

use std::fs;
use std::path::{Path, PathBuf};

use rustix::process::{Resource, getrlimit};

use crate::limits::pressure::Share;

/// Descriptors; `None` on a kernel that does not count them (before Linux 6.2), or without a limit.
pub(crate) fn descriptors() -> Option<Share> {
    let used = fs::metadata("/proc/self/fd").ok()?.len();
    let most = getrlimit(Resource::Nofile).current?;
    (used > 0).then_some(Share { used, most })
}

/// The memory that this process can have at most, in bytes: the system's or, where that is less, its control group's.
pub fn memory_limit() -> Option<u64> {
    let system = named(&read("/proc/meminfo")?, "MemTotal:")? * 1024;
    Some(groups().filter_map(|group| most_in(&group)).fold(system, u64::min))
}

/// Memory that is this process's own, of that and what else it could have: up to `bound` bytes if that is given, else
/// what the system has left for it, or its control group. What other programs use is not held against this one, and
/// neither is what the kernel keeps of files and would give back.
pub(crate) fn memory(bound: Option<u64>) -> Option<Share> {
    let used = own(&read("/proc/self/statm")?)? * rustix::param::page_size() as u64;
    if let Some(most) = bound {
        return Some(Share { used, most });
    }
    let system = available(&read("/proc/meminfo")?)?;
    let room = group().into_iter().fold(system, u64::min);
    Some(Share { used, most: used.saturating_add(room) })
}

/// The bytes of memory that this process could have in all: `bound` if that is given, else what it has and what the
/// system or its control group has left.
pub(crate) fn memory_in_all(bound: Option<u64>) -> Option<u64> {
    bound.or_else(|| memory(None).map(|share| share.most))
}

/// Pages that a process shares with no file, by its `statm` (`proc_pid_statm(5)`).
fn own(statm: &str) -> Option<u64> {
    let mut fields = statm.split_ascii_whitespace().skip(1).map(str::parse);
    let (resident, shared): (u64, u64) = (fields.next()?.ok()?, fields.next()?.ok()?);
    Some(resident.saturating_sub(shared))
}

/// What a system could give, in bytes, by its `meminfo` (`proc_meminfo(5)`).
fn available(meminfo: &str) -> Option<u64> {
    named(meminfo, "MemAvailable:").map(|kilobytes| kilobytes * 1024)
}

/// What is left in the control group of this process and in those around it, whichever is least (version 2).
fn group() -> Option<u64> {
    groups().filter_map(|group| left_in(&group)).min()
}

/// The folders of the control group of this process and of those around it (version 2).
fn groups() -> impl Iterator<Item = PathBuf> {
    let root = Path::new("/sys/fs/cgroup");
    let groups = read("/proc/self/cgroup").unwrap_or_default();
    let path = groups.lines().find_map(|line| line.strip_prefix("0::"));
    let own = path.map(|path| root.join(path.trim_start_matches('/')));
    std::iter::successors(own, |group| group.parent().map(Path::to_owned))
        .take_while(move |group| group.starts_with(root))
}

/// The limit of a control group. `max` is no number.
fn most_in(group: &Path) -> Option<u64> {
    fs::read_to_string(group.join("memory.max")).ok()?.trim().parse().ok()
}

fn left_in(group: &Path) -> Option<u64> {
    let text = |name: &str| fs::read_to_string(group.join(name)).ok();
    let most = most_in(group)?;
    let used: u64 = text("memory.current")?.trim().parse().ok()?;
    Some(left(most, used, &text("memory.stat")?))
}

/// Files that were read lie in memory that the kernel gives back when it is wanted.
fn left(most: u64, used: u64, stat: &str) -> u64 {
    let given_back = |name| named(stat, name).unwrap_or(0);
    let files = given_back("inactive_file") + given_back("active_file");
    most.saturating_sub(used.saturating_sub(files))
}

/// The number behind the first word of a line.
fn named(text: &str, name: &str) -> Option<u64> {
    let mut lines = text.lines().map(str::split_ascii_whitespace);
    let mut line = lines.find_map(|mut words| (words.next() == Some(name)).then_some(words))?;
    line.next()?.parse().ok()
}

fn read(path: &str) -> Option<String> {
    fs::read_to_string(path).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_system_is_understood() {
        assert_eq!(own("7000 1200 450 300 0 900 0\n"), Some(750));
        assert_eq!(own("7000\n"), None);
        let meminfo =
            "MemTotal:       24682788 kB\nMemFree:  13537 kB\nMemAvailable:      2048 kB\n";
        assert_eq!(available(meminfo), Some(2 << 20));
        let stat = "anon 500\nfile 300\ninactive_file 100\nactive_file 150\n";
        assert_eq!(left(1000, 900, stat), 350);
        assert_eq!(left(1000, 900, ""), 100);
        assert_eq!(left(1000, 2000, ""), 0);
    }

    #[test]
    fn this_process_has_memory_and_not_all_of_it() {
        let share = memory(None).unwrap();
        assert!(share.used > 0 && share.used < share.most, "{share:?}");
        assert_eq!(memory(Some(7)).unwrap().most, 7);
        assert!(memory_limit().is_some_and(|most| most > share.used), "{share:?}");
        let before = descriptors();
        let _file = fs::File::open("/dev/null").unwrap();
        // Other tests open and close some at the same time.
        assert!(before.is_none() || descriptors().is_some_and(|share| share.used < share.most));
    }
}

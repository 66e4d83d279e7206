//! Reads from the system the use and the limits of descriptors and memory of this process.

use std::fs;
use std::path::{Path, PathBuf};

use rustix::process::{Resource, getrlimit};

use crate::limits::pressure::Share;

/// Returns the open descriptors and their limit. `None` on a kernel that does not count them
/// (before Linux 6.2), or without a limit.
pub(crate) fn descriptors() -> Option<Share> {
    let used = fs::metadata("/proc/self/fd").ok()?.len();
    let most = getrlimit(Resource::Nofile).current?;
    (used > 0).then_some(Share { used, most })
}

/// Returns the maximum memory of this process in bytes: the memory of the system, or the limit of
/// its control group if that is lower.
pub fn memory_limit() -> Option<u64> {
    let system = total(&read("/proc/meminfo")?)?;
    Some(own_cgroups().filter_map(|group| cgroup_limit(&group)).fold(system, u64::min))
}

/// Returns the private memory of this process and its limit. The limit is `bound` if given, else
/// the private memory plus the memory still available from the system or the control group. Memory
/// of other programs and the reclaimable page cache do not count as used.
pub(crate) fn memory(bound: Option<u64>) -> Option<Share> {
    let used = resident(&read("/proc/self/statm")?)? * rustix::param::page_size() as u64;
    if let Some(most) = bound {
        return Some(Share { used, most });
    }
    let room = room(&read("/proc/meminfo")?, own_cgroups())?;
    Some(Share { used, most: used.saturating_add(room) })
}

/// Returns the limit that [`memory`] reports.
pub(crate) fn total_memory(bound: Option<u64>) -> Option<u64> {
    bound.or_else(|| memory(None).map(|share| share.most))
}

/// Parses the number of resident pages that are not file-backed from `statm` (`proc_pid_statm(5)`).
fn resident(statm: &str) -> Option<u64> {
    let mut fields = statm.split_ascii_whitespace().skip(1).map(str::parse);
    let (resident, shared): (u64, u64) = (fields.next()?.ok()?, fields.next()?.ok()?);
    Some(resident.saturating_sub(shared))
}

/// Parses the memory of the system in bytes from `meminfo` (`proc_meminfo(5)`).
fn total(meminfo: &str) -> Option<u64> {
    field(meminfo, "MemTotal:").map(|kilobytes| kilobytes * 1024)
}

/// Parses the available memory in bytes from `meminfo` (`proc_meminfo(5)`).
fn available(meminfo: &str) -> Option<u64> {
    field(meminfo, "MemAvailable:").map(|kilobytes| kilobytes * 1024)
}

/// Returns the memory that is available from the system and from all of `groups`.
fn room(meminfo: &str, groups: impl Iterator<Item = PathBuf>) -> Option<u64> {
    let system = available(meminfo)?;
    Some(groups.filter_map(|group| cgroup_free(&group)).fold(system, u64::min))
}

/// Returns the folders of the control group of this process and of its ancestors.
fn own_cgroups() -> impl Iterator<Item = PathBuf> {
    let groups = read("/proc/self/cgroup").unwrap_or_default();
    cgroups(&groups, Path::new("/sys/fs/cgroup"))
}

/// Returns the folders of the control group that `groups` names, and of its ancestors (cgroup v2).
fn cgroups<'r>(groups: &str, root: &'r Path) -> impl Iterator<Item = PathBuf> + use<'r> {
    let path = groups.lines().find_map(|line| line.strip_prefix("0::"));
    let leaf = path.map(|path| root.join(path.trim_start_matches('/')));
    std::iter::successors(leaf, |group| group.parent().map(Path::to_owned))
        .take_while(move |group| group.starts_with(root))
}

/// Reads the memory limit of a control group. `None` when it is `max`, which means no limit.
fn cgroup_limit(group: &Path) -> Option<u64> {
    fs::read_to_string(group.join("memory.max")).ok()?.trim().parse().ok()
}

fn cgroup_free(group: &Path) -> Option<u64> {
    let text = |name: &str| fs::read_to_string(group.join(name)).ok();
    let most = cgroup_limit(group)?;
    let used: u64 = text("memory.current")?.trim().parse().ok()?;
    Some(free_memory(most, used, &text("memory.stat")?))
}

/// Computes the free memory in a control group. The kernel reclaims the page cache on demand, so it
/// counts as free.
fn free_memory(most: u64, used: u64, stat: &str) -> u64 {
    let given_back = |name| field(stat, name).unwrap_or(0);
    let files = given_back("inactive_file") + given_back("active_file");
    most.saturating_sub(used.saturating_sub(files))
}

/// Finds the line whose first word is `name` and parses the number after it.
fn field(text: &str, name: &str) -> Option<u64> {
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
    fn parses_the_files_of_the_kernel() {
        assert_eq!(resident("7000 1200 450 300 0 900 0\n"), Some(750));
        assert_eq!(resident("7000\n"), None);
        let meminfo =
            "MemTotal:       24682788 kB\nMemFree:  13537 kB\nMemAvailable:      2048 kB\n";
        assert_eq!(available(meminfo), Some(2 << 20));
        let stat = "anon 500\nfile 300\ninactive_file 100\nactive_file 150\n";
        assert_eq!(free_memory(1000, 900, stat), 350);
        assert_eq!(free_memory(1000, 900, ""), 100);
        assert_eq!(free_memory(1000, 2000, ""), 0);
    }

    #[test]
    fn reads_the_limit_and_the_use_of_a_control_group() {
        let folder = bine_log::test_support::ScratchFolder::new();
        let write = |name: &str, text: &str| fs::write(folder.path(name), text).unwrap();
        let group = folder.path("");
        assert_eq!((cgroup_limit(&group), cgroup_free(&group)), (None, None));
        write("memory.max", "1000\n");
        assert_eq!((cgroup_limit(&group), cgroup_free(&group)), (Some(1000), None));
        write("memory.current", "900\n");
        write("memory.stat", "anon 650\ninactive_file 100\nactive_file 150\n");
        assert_eq!(cgroup_free(&group), Some(350));
        write("memory.max", "max\n");
        assert_eq!((cgroup_limit(&group), cgroup_free(&group)), (None, None));
    }

    #[test]
    fn reads_a_plausible_use_of_this_process() {
        let share = memory(None).unwrap();
        assert!(share.used > 1 << 18 && share.used < share.most, "{share:?}");
        assert_eq!(memory(Some(7)).unwrap().most, 7);
        assert!(memory_limit().is_some_and(|most| most > share.used), "{share:?}");
        let before = descriptors();
        let _file = fs::File::open("/dev/null").unwrap();
        // Other tests open and close descriptors concurrently, so the count is not compared.
        assert!(before.is_none() || descriptors().is_some_and(|share| share.used < share.most));
    }

    #[test]
    fn finds_a_control_group_and_its_ancestors() {
        let of = |groups: &str| -> Vec<String> {
            let folders = cgroups(groups, Path::new("/top"));
            folders.map(|folder| folder.display().to_string()).collect()
        };
        assert_eq!(of("0::/a/b\n"), ["/top/a/b", "/top/a", "/top"]);
        // Groups of the first version have other numbers.
        assert_eq!(of("4:memory:/x\n0::/\n"), ["/top/"]);
        assert!(of("4:memory:/x\n").is_empty());
    }

    #[test]
    fn limits_memory_by_the_system_and_by_each_control_group() {
        let folder = bine_log::test_support::ScratchFolder::new();
        let group = |name: &str, most: &str, used: &str| {
            let path = folder.path(name);
            fs::create_dir(&path).unwrap();
            for (file, text) in [("max", most), ("current", used), ("stat", "")] {
                fs::write(path.join(format!("memory.{file}")), text).unwrap();
            }
            path
        };
        let (wide, narrow) = (group("wide", "9000", "10"), group("narrow", "500", "100"));
        let meminfo = "MemTotal: 3 kB\nMemAvailable: 1 kB\n";
        assert_eq!(total(meminfo), Some(3072));
        let room_in = |groups: &[&PathBuf]| room(meminfo, groups.iter().map(|&path| path.clone()));
        assert_eq!(room_in(&[]), Some(1024));
        assert_eq!(room_in(&[&wide]), Some(1024));
        assert_eq!(room_in(&[&wide, &narrow]), Some(400));
        assert_eq!(room_in(&[&folder.path("missing"), &narrow]), Some(400));
        assert_eq!(room("", [wide].into_iter()), None);
    }
}

//! The resource usage of this process, as reported by the kernel.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result};
use rustix::time::{ClockId, clock_gettime};

/// The CPU seconds of all threads so far.
pub(crate) fn cpu() -> f64 {
    let time = Duration::try_from(clock_gettime(ClockId::ProcessCPUTime));
    time.unwrap_or_default().as_secs_f64()
}

/// The bytes written to the disk so far.
pub(crate) fn written() -> Result<u64> {
    field("/proc/self/io", "write_bytes:")
}

/// The resident bytes.
pub(crate) fn resident() -> Result<u64> {
    Ok(field("/proc/self/status", "VmRSS:")? * 1024)
}

/// The disk space of a folder with all its contents, in bytes.
pub(crate) fn on_disk(folder: &Path) -> Result<u64> {
    let mut bytes = 0;
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        // The file may have been removed since the folder was listed.
        let Ok(about) = entry.metadata() else { continue };
        bytes += if about.is_dir() { on_disk(&entry.path())? } else { about.blocks() * 512 };
    }
    Ok(bytes)
}

fn field(file: &str, name: &str) -> Result<u64> {
    let text = fs::read_to_string(file)?;
    let line = text.lines().find_map(|line| line.strip_prefix(name));
    let number = line.and_then(|line| line.split_whitespace().next());
    number.and_then(|number| number.parse().ok()).with_context(|| format!("{file} has no {name}"))
}

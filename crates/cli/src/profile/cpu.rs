//! Profiles of the processor: samples of a running program, taken by `perf`.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use bine_profile::{FunctionRow, Profile, Report, Selection};

use super::table::{heading, write_columns};

/// Samples per second and thread. No multiple of common timers.
const FREQUENCY: &str = "199";
/// The part of a stack that is copied with each sample, in bytes.
const CALL_GRAPH: &str = "dwarf,16384";
/// The longest text of samples that is read, in bytes.
const MAX_TEXT: usize = 1 << 30;

/// Samples the process for a time.
///
/// # Errors
///
/// A message that names the reason and, if there is one, the correction.
pub(super) fn sample(pid: u32, time: Duration) -> Result<Profile, String> {
    let recorded = Recorded::new();
    let seconds = format!("{:.3}", time.as_secs_f64());
    let mut record = perf("record");
    record.args(["--quiet", "--freq", FREQUENCY, "--call-graph", CALL_GRAPH]);
    record.args(["--pid", &pid.to_string()]).arg("--output").arg(&recorded.0);
    run(record.args(["--", "sleep", &seconds]))?;
    let mut script = perf("script");
    // Without files and inlined functions, which `perf` finds by a program for each address.
    script.args(["--no-inline", "--fields", "ip,sym"]).arg("--input").arg(&recorded.0);
    let text = run(&mut script)?;
    if text.len() > MAX_TEXT {
        return Err("there are more than 1 GiB of samples; choose a shorter time".to_owned());
    }
    let mut profile = Profile::of_samples(&String::from_utf8_lossy(&text));
    profile.program = name_of(pid);
    profile.milliseconds = u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
    if profile.stacks.is_empty() {
        return Err(format!("process {pid} did not use the processor during {seconds} s"));
    }
    Ok(profile)
}

/// Writes the functions as a table: the share of all samples in which a function ran itself, and with
/// the functions that it called.
pub(super) fn write(profile: &Profile, rows: usize) -> String {
    let selection = Selection { outside: true, route: None };
    let report = Report::of(profile, &selection);
    let all = report.count.number.max(1) as f64;
    let share = |number: u64| format!("{:.1} %", number as f64 / all * 100.0);
    let mut cells = vec![heading(&["own", "total", "function"])];
    cells.extend(report.functions.iter().take(rows).map(|row| {
        let FunctionRow { function, own, total, .. } = row;
        vec![share(own.number), share(total.number), function.clone()]
    }));
    let seconds = profile.milliseconds as f64 / 1000.0;
    let mut text =
        format!("{}: {} samples in {seconds:.1} s\n\n", profile.program, report.count.number);
    write_columns(&mut text, &cells);
    text
}

/// The file of `perf`, which is removed at the end: it has parts of the memory of the program.
struct Recorded(PathBuf);

impl Recorded {
    fn new() -> Self {
        let name = format!("bine-profile-{}.perf", std::process::id());
        Self(std::env::temp_dir().join(name))
    }
}

impl Drop for Recorded {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}

fn perf(word: &str) -> Command {
    let mut command = Command::new("perf");
    command.arg(word).stdin(Stdio::null());
    command
}

/// Runs `perf`, and returns its output.
fn run(command: &mut Command) -> Result<Vec<u8>, String> {
    let output = command.output().map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => {
            "`perf` is not installed; on Debian: apt install linux-perf".to_owned()
        }
        _ => format!("cannot run `perf`: {error}"),
    })?;
    if output.status.success() {
        return Ok(output.stdout);
    }
    let errors = String::from_utf8_lossy(&output.stderr);
    let reason = errors.lines().map(str::trim).find(|line| !line.is_empty() && *line != "Error:");
    let reason = reason.unwrap_or("it gives no reason");
    Err(format!(
        "`perf` failed: {reason}\nit needs the rights of the program's user, and kernel.perf_event_paranoid of at most 2 (sysctl)"
    ))
}

/// The name of a process.
fn name_of(pid: u32) -> String {
    let name = fs::read_to_string(Path::new("/proc").join(pid.to_string()).join("comm"));
    name.map_or_else(|_| format!("process {pid}"), |name| name.trim().to_owned())
}

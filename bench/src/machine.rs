//! Describes the machine, as context for figures.

use std::fmt;
use std::fs;
use std::process::Command;

/// The properties of a machine that affect figures.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Machine {
    pub(crate) kernel: String,
    pub(crate) processor: String,
    pub(crate) cores: u64,
}

impl Machine {
    /// The machine of this process.
    pub(crate) fn this() -> Self {
        let processors = read("/proc/cpuinfo");
        let cores = processors.lines().filter(|line| line.starts_with("processor")).count();
        Self {
            kernel: read("/proc/sys/kernel/osrelease").trim().to_owned(),
            processor: field(&processors, "model name").unwrap_or("unknown processor").to_owned(),
            cores: cores as u64,
        }
    }
}

impl fmt::Display for Machine {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "Linux {}, {}, {} cores", self.kernel, self.processor, self.cores)
    }
}

/// The time in ISO 8601 format, UTC.
pub(crate) fn now() -> String {
    first_line("date", &["-u", "+%FT%TZ"])
}

/// A paragraph of Markdown: date, kernel, processor, mitigations, versions, load.
pub(crate) fn facts() -> String {
    facts_with(&first_line("nginx", &["-v"]))
}

/// The same, with `versions` in place of the version of nginx.
pub(crate) fn facts_with(versions: &str) -> String {
    format!(
        "{date}; {machine}; mitigations: {mitigations}; {versions}; {rustc}; load average at the start {load}.",
        date = first_line("date", &["-u", "+%F %H:%M UTC"]),
        machine = Machine::this(),
        mitigations = mitigations(),
        rustc = first_line("rustc", &["--version"]),
        load = read("/proc/loadavg").split(' ').next().unwrap_or("unknown"),
    )
}

/// Mitigations with a cost, and unmitigated vulnerabilities: the cost of a system call depends on
/// them.
fn mitigations() -> String {
    let folder = fs::read_dir("/sys/devices/system/cpu/vulnerabilities");
    let mut active: Vec<String> = folder
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(|entry| {
            let state = fs::read_to_string(entry.path()).ok()?;
            let state = state.trim().trim_start_matches("Mitigation: ");
            let name = entry.file_name().into_string().ok()?;
            (state != "Not affected").then(|| format!("{name} ({state})"))
        })
        .collect();
    active.sort();
    if active.is_empty() { String::from("none") } else { active.join(", ") }
}

fn read(path: &str) -> String {
    fs::read_to_string(path).unwrap_or_default()
}

fn field<'text>(text: &'text str, name: &str) -> Option<&'text str> {
    let line = text.lines().find(|line| line.starts_with(name))?;
    Some(line.split_once(':')?.1.trim())
}

/// The first line that a program prints. nginx prints its version on stderr, other programs on stdout.
pub(crate) fn first_line(program: &str, arguments: &[&str]) -> String {
    let Ok(output) = Command::new(program).args(arguments).output() else {
        return format!("no {program}");
    };
    let text = if output.stdout.is_empty() { output.stderr } else { output.stdout };
    String::from_utf8_lossy(&text).lines().next().unwrap_or_default().trim().to_string()
}

//! Decides what must be known of the machine to judge a figure.

use std::fs;
use std::process::Command;

/// A paragraph of Markdown: date, kernel, processor, mitigations, versions, load.
pub(crate) fn facts() -> String {
    let processors = read("/proc/cpuinfo");
    let model = field(&processors, "model name").unwrap_or("unknown processor");
    let count = processors.lines().filter(|line| line.starts_with("processor")).count();
    format!(
        "{date}; Linux {kernel}; {model}, {count} cores; mitigations: {mitigations}; {nginx}; {rustc}; load average at \
         the start {load}.",
        date = first_line("date", &["-u", "+%F %H:%M UTC"]),
        kernel = read("/proc/sys/kernel/osrelease").trim(),
        mitigations = mitigations(),
        nginx = first_line("nginx", &["-v"]),
        rustc = first_line("rustc", &["--version"]),
        load = read("/proc/loadavg").split(' ').next().unwrap_or("unknown"),
    )
}

/// Only what costs something or lies open: a system call's price depends on these.
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

/// nginx tells its version on stderr, the others theirs on stdout.
fn first_line(program: &str, arguments: &[&str]) -> String {
    let Ok(output) = Command::new(program).args(arguments).output() else {
        return format!("no {program}");
    };
    let said = if output.stdout.is_empty() { output.stderr } else { output.stdout };
    String::from_utf8_lossy(&said).lines().next().unwrap_or_default().trim().to_string()
}

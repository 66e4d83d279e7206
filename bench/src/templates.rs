//! Runs the template benchmarks and prints their tables.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result, ensure};

use crate::arguments::Arguments;
use crate::machine;
use crate::tools::{Workspace, cargo};

/// Runs criterion in its own workspace and prints its medians relative to the first engine.
pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    let seconds = arguments.number("--seconds", 3)?.to_string();
    let facts = machine::facts();
    let workspace = Workspace::open()?;
    let target = workspace.target.join("bench/templates");
    // Results of an earlier run would be part of the tables.
    let _ = fs::remove_dir_all(target.join("criterion"));
    let mut command = cargo();
    command.current_dir(workspace.root.join("bench/templates")).args(["bench", "--locked"]);
    command.args(["--bench", "templates", "--bench", "escape"]);
    command.arg("--target-dir").arg(&target).args(["--", "--noplot", "--quiet"]);
    command.args(["--measurement-time", &seconds, "--warm-up-time", "1"]);
    // Only the tables go to stdout.
    command.stdout(std::io::stderr()).env("CRITERION_HOME", target.join("criterion"));
    ensure!(command.status()?.success(), "the benchmarks failed");
    println!("{facts}\n");
    let pages = ["table_fresh", "table_reused", "teams_fresh", "teams_reused"];
    table("page", &target, &pages.map(String::from), "sailfish")?;
    let texts = ["12", "40", "200", "16384"];
    let kinds = ["clean", "sparse", "dense"];
    let texts: Vec<String> = texts
        .into_iter()
        .flat_map(|length| kinds.map(|kind| format!("escape_{length} {kind}")))
        .collect();
    println!();
    table("escaping", &target, &texts, "v_htmlescape")?;
    println!();
    let mut command = cargo();
    command
        .current_dir(workspace.root.join("bench/templates"))
        .args(["bench", "--locked", "--quiet"]);
    command.args(["--bench", "turns", "--target-dir"]).arg(&target);
    ensure!(command.status()?.success(), "the race failed");
    Ok(())
}

fn table(what: &str, target: &Path, groups: &[String], yardstick: &str) -> Result<()> {
    println!("| {what} | engine | median, ns | x {yardstick} |\n|---|---|---|---|");
    for group in groups {
        let folder = target.join("criterion").join(group);
        let mut engines = Vec::new();
        for entry in fs::read_dir(&folder).with_context(|| folder.display().to_string())? {
            let entry = entry?;
            let estimates = entry.path().join("new/estimates.json");
            if let Ok(json) = fs::read_to_string(&estimates) {
                let median = median(&json).with_context(|| estimates.display().to_string())?;
                engines.push((median, entry.file_name().to_string_lossy().into_owned()));
            }
        }
        engines.sort_by(|one, other| one.0.total_cmp(&other.0));
        let unit = engines.iter().find(|(_, engine)| engine == yardstick);
        let unit = unit.with_context(|| format!("{group} lacks {yardstick}"))?.0;
        for (median, engine) in &engines {
            println!(
                "| {} | {engine} | {median:.1} | {:.2} |",
                group.replace('_', ", "),
                median / unit
            );
        }
    }
    Ok(())
}

/// The median in criterion's estimates, in nanoseconds.
fn median(json: &str) -> Option<f64> {
    let (_, median) = json.split_once("\"median\"")?;
    let (_, estimate) = median.split_once("\"point_estimate\":")?;
    estimate.split([',', '}']).next()?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parses_the_median() {
        let json = r#"{"mean":{"point_estimate":1.0},"median":{"confidence_interval":{"lower_bound":2.0},"point_estimate":3.5,"standard_error":0.1}}"#;
        assert_eq!(median(json), Some(3.5));
        assert_eq!(median("{}"), None);
    }
}

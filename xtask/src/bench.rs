//! Runs the benchmarks: installs what an experiment compares, and keeps its results in the
//! documentation.

use std::ffi::OsString;

use anyhow::Result;

use crate::{paths, process, tools};

/// A benchmark that needs more than a Rust toolchain, or whose results are part of the documentation.
struct Experiment {
    name: &'static str,
    /// Packages of Debian.
    packages: &'static [&'static str],
    /// Where its tables, figures and raw data belong, from the root of the repository. `None`: it
    /// keeps no data.
    folder: Option<&'static str>,
    /// Whether it starts NATS servers.
    needs_nats: bool,
}

/// The folder of the samples of experiments that print their tables.
const SAMPLES: Option<&str> = Some("docs/measurements/samples");

const EXPERIMENTS: [Experiment; 18] = [
    experiment(
        "hop",
        &[
            "apache2",
            "default-jre-headless",
            "gcc",
            "libapache2-mod-php",
            "lighttpd",
            "linux-perf",
            "nginx",
            "php-fpm",
            "procps",
            "tomcat10",
            "util-linux",
            "varnish",
            "yaws",
        ],
        Some("docs/measurements/hop"),
    ),
    experiment("hop-io", &["iproute2", "util-linux", "wrk"], SAMPLES),
    experiment(
        "marlow",
        &["apache2", "gcc", "nginx", "procps", "util-linux"],
        Some("docs/measurements/marlow"),
    ),
    experiment(
        "overload",
        &[
            "default-jdk-headless",
            "gcc",
            "openssl",
            "postgresql",
            "procps",
            "tomcat10",
            "util-linux",
        ],
        Some("docs/plots/carrera"),
    ),
    experiment(
        "board",
        &["curl", "gcc", "postgresql", "procps", "util-linux", "wrk"],
        Some("docs/measurements/board"),
    ),
    experiment("push", &["gcc", "libnginx-mod-nchan", "nginx"], Some("docs/plots")),
    experiment("fanout", &["gcc", "golang-go", "libnginx-mod-nchan", "nginx"], SAMPLES),
    Experiment {
        needs_nats: true,
        ..experiment("push-nodes", &["gcc", "haproxy"], Some("docs/plots/nodes"))
    },
    Experiment { needs_nats: true, ..experiment("commits", &[], None) },
    experiment("cost", COST, SAMPLES),
    experiment("schedulers", &["httperf", "linux-perf", "util-linux", "wrk"], SAMPLES),
    experiment("scripts", COST, SAMPLES),
    experiment("recorders", &["util-linux", "wrk"], SAMPLES),
    experiment("workers", &["util-linux", "wrk"], SAMPLES),
    experiment(
        "fremlin",
        &[
            "apache2-utils",
            "gcc",
            "golang-go",
            "nginx",
            "nodejs",
            "php-fpm",
            "procps",
            "puma",
            "util-linux",
            "varnish",
        ],
        SAMPLES,
    ),
    experiment(
        "arena",
        &[
            "brotli",
            "curl",
            "gcc",
            "libnginx-mod-http-brotli-static",
            "nginx",
            "procps",
            "util-linux",
            "wrk",
        ],
        SAMPLES,
    ),
    experiment("proxy", &["curl", "nginx", "procps", "util-linux", "wrk"], SAMPLES),
    experiment("memory", &["gcc", "nginx", "util-linux"], SAMPLES),
];

const COST: &[&str] = &[
    "curl",
    "gcc",
    "httperf",
    "lighttpd",
    "nghttp2-client",
    "nginx",
    "openssl",
    "php-fpm",
    "procps",
    "util-linux",
    "wrk",
];

const fn experiment(
    name: &'static str,
    packages: &'static [&'static str],
    folder: Option<&'static str>,
) -> Experiment {
    Experiment { name, packages, folder, needs_nats: false }
}

/// Runs the benchmark `words` in a release build. `--help` and unknown names are answered by it.
///
/// # Errors
///
/// A package cannot be installed, or the benchmark fails.
pub(crate) fn run(words: &[&str]) -> Result<()> {
    let mut arguments: Vec<OsString> = words.iter().map(OsString::from).collect();
    let is_question = words.iter().any(|word| matches!(*word, "--help" | "-h"));
    let known = EXPERIMENTS.iter().find(|experiment| words.first() == Some(&experiment.name));
    if let Some(experiment) = known.filter(|_| !is_question) {
        tools::install_debian_packages(experiment.packages)?;
        if experiment.needs_nats && !words.contains(&"--nats-server") {
            tools::install_nats_server()?;
            arguments.extend(["--nats-server".into(), tools::nats_server().into_os_string()]);
        }
        if let Some(folder) = experiment.into(words) {
            arguments.extend(["--into".into(), paths::root().join(folder).into_os_string()]);
        }
    }
    let mut command = process::cargo();
    command.args(["run", "--quiet", "--release", "--package", "bine-bench", "--"]);
    process::run(command.args(arguments).current_dir(paths::root()))
}

impl Experiment {
    /// The folder of a whole run. A trial, a part and a run with an own folder leave the documentation
    /// as it is.
    fn into(&self, words: &[&str]) -> Option<&'static str> {
        self.folder.filter(|_| words.len() == 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keeps_results_of_whole_runs_only() {
        let hop = &EXPERIMENTS[0];
        assert_eq!(hop.into(&["hop"]), Some("docs/measurements/hop"));
        for words in [&["hop", "--quick"][..], &["hop", "--into", "x"], &["hop", "--only", "nginx"]]
        {
            assert_eq!(hop.into(words), None, "{words:?}");
        }
    }

    #[test]
    fn names_each_experiment_once_which_has_a_help_text_and_a_trial() {
        let source = |name| std::fs::read_to_string(paths::root().join(name)).unwrap();
        let (help, trials) = (source("bench/src/main.rs"), source("bench/src/trials.rs"));
        for (place, experiment) in EXPERIMENTS.iter().enumerate() {
            assert!(help.contains(&format!("\n  {} ", experiment.name)), "{}", experiment.name);
            assert!(trials.contains(&format!("\"{}\",", experiment.name)), "{}", experiment.name);
            let first = EXPERIMENTS.iter().position(|other| other.name == experiment.name);
            assert_eq!(first, Some(place), "{}", experiment.name);
        }
    }
}

//! Decides which chore a command line asks for.

use std::env;
use std::process::{Command, ExitCode};

use anyhow::{Result, bail};

mod evidence;
mod fuzz;
mod media;
mod mutants;
mod places;
mod process;
mod report;
mod script;
mod test;
mod tidy;
mod tools;
mod vocabulary;

const HELP: &str = "\
The one door for chores.

    cargo xtask test [--bare]         everything that must hold before a change is handed in
    cargo xtask tidy                  the rules of the repository that no compiler knows
    cargo xtask fuzz [--seconds N]    every fuzz target in turn, 60 seconds each unless told
    cargo xtask mutants [OPTIONS]     which changes of the code no test notices (docs/mutants.md); fails above 8 %
        --crate NAME   http, store, push, files, log, admission or pipeline, repeatable; all unless told
        --shard K/N    part K, from 0 on, of N; --minutes N for each crate; --jobs N at one time, 1 unless told
    cargo xtask media                 makes the table of media types again; needs npm and the network
    cargo xtask vocabulary            makes the table of what HTML and CSS allow again; needs npm, node and the network
    cargo xtask script                makes the script of live pages again; needs npm and the network
    cargo xtask conformance           a fresh server judged by the public suite of Durable Streams; needs npm and node
    cargo xtask tutorial              does what docs/guide/tutorial.md says; needs curl
    cargo xtask bench [ARGUMENTS]     the measurements, in release; see bench/README.md

`test` installs what it needs: Debian packages when it may, everything else under target/tools.
`test --bare` needs nothing but a Rust toolchain; it names the steps it left out.
Every command answers --help.
";

fn main() -> ExitCode {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match perform(&words) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("xtask: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn perform(words: &[&str]) -> Result<()> {
    match words {
        // What follows `bench` belongs to the measuring program, its --help too.
        ["bench", rest @ ..] => bench(rest),
        [] | ["help"] => {
            print!("{HELP}");
            Ok(())
        }
        _ if words.iter().any(|word| matches!(*word, "--help" | "-h")) => {
            print!("{HELP}");
            Ok(())
        }
        ["test"] => test::run(test::Extent::Everything),
        ["test", "--bare"] => test::run(test::Extent::Bare),
        ["mutants", rest @ ..] => mutants::run(rest),
        ["media"] => media::run(),
        ["vocabulary"] => vocabulary::run(),
        ["script"] => script::run(),
        ["tidy"] => tidy::run(),
        ["conformance"] => evidence::streams::run(),
        ["tutorial"] => evidence::tutorial::run(),
        ["fuzz"] => fuzz::run(60),
        ["fuzz", "--seconds", seconds] => match seconds.parse() {
            Ok(seconds) => fuzz::run(seconds),
            Err(_) => bail!("--seconds wants a whole number, not `{seconds}`"),
        },
        _ => bail!("`{}` is no chore; see cargo xtask --help", words.join(" ")),
    }
}

fn bench(words: &[&str]) -> Result<()> {
    let mut command = Command::new("cargo");
    command.args(["run", "--quiet", "--release", "--package", "bine-bench", "--"]).args(words);
    process::run(command.current_dir(places::root()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_chore_is_refused_with_the_way_to_help() {
        for words in [&["tests"][..], &["test", "--all"], &["fuzz", "--seconds"], &["tidy", "now"]]
        {
            let told = perform(words).expect_err("no such chore").to_string();
            assert!(told.ends_with("see cargo xtask --help"), "{told}");
        }
    }

    #[test]
    fn seconds_are_a_whole_number() {
        let told = perform(&["fuzz", "--seconds", "soon"]).expect_err("no number").to_string();
        assert_eq!(told, "--seconds wants a whole number, not `soon`");
    }

    #[test]
    fn help_is_asked_for_in_every_chore() {
        for words in [&[][..], &["help"], &["--help"], &["test", "--help"], &["fuzz", "-h"]] {
            assert!(perform(words).is_ok(), "{words:?}");
        }
    }
}

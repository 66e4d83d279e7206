//! Parses the command line and runs the chosen chore.

use std::env;
use std::process::ExitCode;

use anyhow::{Result, bail};

mod bench;
mod end_to_end;
mod fuzz;
mod histories;
mod media;
mod mutants;
mod parallel;
mod paths;
mod process;
mod profile;
mod report;
mod script;
mod test;
mod testssl;
mod tidy;
mod tools;
mod typescript;
mod vocabulary;

const HELP: &str = "\
All chores of the repository.

    cargo xtask test [--bare]         every check that a change must pass
    cargo xtask tidy                  the rules of the repository that the compiler does not check
    cargo xtask fuzz [--seconds N]    each fuzz target, for 60 seconds by default
    cargo xtask mutants [OPTIONS]     mutation tests (docs/mutants.md); fails when more than 8 % survive
        --crate NAME   http, store, push, files, log, admission or server, repeatable; default: all
        --shard K/N    part K of N, counted from 0; --file TEXT: files whose path contains it
        --survivors    only those that survived the last run; --minutes N per crate; --jobs N, default 2
        --test-seconds N   without the tests that take longer; --quick   fewer trials of random tests
        --mutant-seconds N   tests of at most N seconds for each mutant
        --dev   an unoptimized build, which needs no build of the dependencies
    cargo xtask histories [OPTIONS]   histories of clients on 3 nodes with faults, each verified; needs nats-server
        --histories N  default 1000; --seed N  of the first one; --minutes M  no new round begins later
        --engine one   one node without a cluster; --faults LIST  all, none or names with commas
        --at-a-time N  histories of a round; --until-failure; --planted  checks that planted bugs are found
    cargo xtask media                 regenerates the table of media types; needs npm and the network
    cargo xtask vocabulary            regenerates the tables of HTML and CSS; needs npm, node and the network
    cargo xtask script                rebuilds the script of live pages; needs npm and the network
    cargo xtask conformance           runs the public Durable Streams suite against a new server, and a node of two; needs npm, node and python3
    cargo xtask testssl URL           checks the TLS of a running server, for four minutes; needs the package testssl.sh of Debian
    cargo xtask typescript            checks the types for scripts with the TypeScript compiler; needs npm and node
    cargo xtask end-to-end [WORD]...  the end-to-end tests in release builds, or the groups whose names contain a
                                      word; needs the tools that `test` installs
    cargo xtask tutorial              runs each step of docs/guide/tutorial.md; needs curl
    cargo xtask bench NAME [OPTIONS]  a benchmark, in a release build; installs the servers that it compares;
                                      see bench/README.md and cargo xtask bench --help

`test` installs the tools that it needs: Debian packages if it runs as root, the rest under target/tools.
`test --bare` needs only a Rust toolchain and lists the steps that it skips.
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
        // Arguments after `bench` are passed to the benchmark program, `--help` included.
        ["bench", rest @ ..] => bench::run(rest),
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
        ["histories", rest @ ..] => histories::run(rest),
        ["mutants", rest @ ..] => mutants::run(rest),
        ["media"] => media::run(),
        ["vocabulary"] => vocabulary::run(),
        ["script"] => script::run(),
        ["tidy"] => tidy::run(),
        ["conformance"] => end_to_end::streams::run(),
        ["end-to-end", groups @ ..] => test::run_groups(groups),
        ["testssl", url] => testssl::run(url),
        ["typescript"] => typescript::run(),
        ["tutorial"] => end_to_end::tutorial::run(),
        ["fuzz"] => fuzz::run(60),
        ["fuzz", "--seconds", seconds] => match seconds.parse() {
            Ok(seconds) => fuzz::run(seconds),
            Err(_) => bail!("--seconds needs a whole number, not `{seconds}`"),
        },
        _ => bail!("`{}` is not a chore; see cargo xtask --help", words.join(" ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rejects_an_unknown_chore_and_points_to_help() {
        for words in [&["tests"][..], &["test", "--all"], &["fuzz", "--seconds"], &["tidy", "now"]]
        {
            let message = perform(words).expect_err("no such chore").to_string();
            assert!(message.ends_with("see cargo xtask --help"), "{message}");
        }
    }

    #[test]
    fn rejects_seconds_that_are_not_a_number() {
        let message = perform(&["fuzz", "--seconds", "soon"]).expect_err("no number").to_string();
        assert_eq!(message, "--seconds needs a whole number, not `soon`");
    }

    #[test]
    fn prints_help_for_every_chore() {
        for words in [&[][..], &["help"], &["--help"], &["test", "--help"], &["fuzz", "-h"]] {
            assert!(perform(words).is_ok(), "{words:?}");
        }
    }
}

//! Tests of the `bine` program, on the command line and over the network.

mod access;
mod acme;
mod addresses;
#[cfg(feature = "script")]
mod board;
mod channel;
mod crash;
mod data;
mod demo;
#[cfg(all(feature = "cluster", feature = "script"))]
mod dev;
mod guide;
#[path = "../../../bine/tests/bine/harness/mod.rs"]
mod harness;
#[cfg(feature = "script")]
mod hostile_scripts;
mod identity;
#[cfg(feature = "cluster")]
mod moving;
mod new;
mod nodes;
mod options;
mod profile;
mod redirect;
mod reload;
mod serve;
#[cfg(feature = "script")]
mod sites;
mod supervise;
mod tls;
#[cfg(feature = "tracing")]
mod trace;
mod unit;
mod user;

use std::process::Command;

use harness::{Ended, Program};

/// Returns the program with these arguments.
fn bine(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_bine"));
    // File descriptors that were passed to the tests are not meant for the program.
    command.args(arguments).env_remove("LISTEN_FDS").env_remove("LISTEN_PID");
    // Admission control has its own tests; here it must not fail requests on a busy machine.
    command.envs([("BINE_ADMISSION", "off"), ("BINE_QUEUE_TIMEOUT", "60s")]);
    command
}

/// Starts the demo on a free port, with more options.
fn start(options: &[&str]) -> Program {
    Program::start(&mut bine(&[&["--listen", "127.0.0.1:0"], options].concat()))
}

/// Runs a command that exits by itself.
fn run(arguments: &[&str]) -> Ended {
    Program::run(&mut bine(arguments))
}

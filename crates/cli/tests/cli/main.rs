//! Decides that the `bine` program does on the command line, and on the wire, what it says it does.

mod access;
mod acme;
mod addresses;
mod channel;
mod crash;
mod data;
mod demo;
mod guide;
#[path = "../../../bine/tests/bine/harness/mod.rs"]
mod harness;
mod identity;
mod nodes;
mod options;
mod redirect;
mod reload;
mod serve;
mod supervise;
mod tls;
mod unit;

use std::process::Command;

use harness::{Ended, Program};

/// The program with these arguments.
fn bine(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_bine"));
    // What the one who runs the tests was started with is not meant for the program.
    command.args(arguments).env_remove("LISTEN_FDS").env_remove("LISTEN_PID");
    // However busy the machine is: what it does then has tests of its own.
    command.envs([("BINE_ADMISSION", "off"), ("BINE_QUEUE_TIMEOUT", "60s")]);
    command
}

/// The demo on a free port, with more options.
fn start(options: &[&str]) -> Program {
    Program::start(&mut bine(&[&["--listen", "127.0.0.1:0"], options].concat()))
}

/// Runs the program with arguments that make it end by itself.
fn run(arguments: &[&str]) -> Ended {
    Program::run(&mut bine(arguments))
}

//! The `bine` program: serves a folder, or a demo of Bine.

mod channel;
mod data;
mod demo;
mod user;

use std::ffi::OsString;

use bine::{App, Exit};

const USAGE: &str = "\
Usage: bine serve [DIR] [OPTION]...  serve the files below DIR, and channels if configured
       bine [OPTION]...              serve the demo
       bine config [OPTION]...       print the configuration, and where each value comes from
       bine routes [OPTION]...       print the routes and their access; --json for programs
       bine check-config [FILE]      check that a server could start with it
       bine reload [OPTION]...       make a running server read its configuration again
       bine status | stop            query a running server; stop it
       bine channel WORD NAME        create, publish to, follow and manage channels
       bine user WORD ...            manage users, groups and rights of a running server
       bine data WORD DIR            back up the data of a server, also a running one; restore, dump,
                                     load, compact, check or repair it
       bine --version";

fn main() -> Exit {
    let mut arguments: Vec<OsString> = std::env::args_os().skip(1).collect();
    let first = arguments.first().and_then(|argument| argument.to_str()).map(ToOwned::to_owned);
    match first.as_deref() {
        Some("serve") => App::new().run_with(USAGE, with_option("root", arguments)),
        Some("config") => demo(|app| app.show_configuration(USAGE, with_option("root", arguments))),
        Some("routes") => demo(|app| app.show_routes(USAGE, with_option("root", arguments))),
        Some("check-config") => {
            demo(|app| app.check_configuration(USAGE, with_option("config", arguments)))
        }
        Some(word @ ("reload" | "status" | "stop")) => {
            bine::run_control_command(word, USAGE, arguments.split_off(1))
        }
        Some("channel") => channel::run(&arguments[1..]),
        Some("user") => user::run(&arguments[1..]),
        Some("data") => data::run(&arguments[1..]),
        Some("--version" | "-V") => {
            println!("bine {}", env!("CARGO_PKG_VERSION"));
            Exit::success()
        }
        Some(word) if !word.starts_with('-') => {
            Exit::usage(format!("bine: there is no command `{word}`\n{USAGE}"))
        }
        _ => demo(|app| app.run_with(USAGE, arguments)),
    }
}

fn demo(run: impl FnOnce(App) -> Exit) -> Exit {
    match demo::app() {
        Ok(app) => run(app),
        Err(error) => {
            Exit::failure(format!("cannot create the folder of the demo's gallery: {error}"))
        }
    }
}

/// Turns the positional argument after the command into the option `name`.
fn with_option(name: &str, mut arguments: Vec<OsString>) -> Vec<OsString> {
    replace_positional(name, arguments.split_off(1))
}

/// Replaces the positional argument by `--name=ARGUMENT`, an ordinary option, which
/// overrides the configuration file.
fn replace_positional(name: &str, mut arguments: Vec<OsString>) -> Vec<OsString> {
    if let Some(index) = positional_index(&arguments) {
        let mut flag = OsString::from(format!("--{name}="));
        flag.push(&arguments[index]);
        arguments[index] = flag;
    }
    arguments
}

fn positional_index(arguments: &[OsString]) -> Option<usize> {
    let mut index = 0;
    while let Some(word) = arguments.get(index) {
        match word.to_str() {
            Some("--help" | "-h" | "--supervise" | "--routes" | "--json") => index += 1,
            Some(option) if option.starts_with("--") && option.contains('=') => index += 1,
            // Every other option takes one value.
            Some(option) if option.starts_with('-') => index += 2,
            _ => return Some(index),
        }
    }
    None
}

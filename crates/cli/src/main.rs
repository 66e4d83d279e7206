//! The `bine` program: serves a folder, or shows what Bine can do.

mod channel;
mod data;
mod demo;

use std::ffi::OsString;

use bine::{App, Exit};

const USAGE: &str = "\
Usage: bine serve [DIR] [OPTION]...  serve the files below DIR, and channels if options say so
       bine [OPTION]...              serve the demo
       bine config [OPTION]...       print the configuration, and where each value comes from
       bine routes [OPTION]...       print what is served, and for whom; with --json for programs
       bine check-config [FILE]      say whether a server could start with it
       bine reload [OPTION]...       have a running server read its configuration again
       bine status | stop            ask a running server how it is; end it
       bine channel WORD NAME        create, renew, publish in, follow or close a channel
       bine data WORD DIR            dump, load, compact, check or repair the tables of a server that has ended
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
            bine::tell(word, USAGE, arguments.split_off(1))
        }
        Some("channel") => channel::run(&arguments[1..]),
        Some("data") => data::run(&arguments[1..]),
        Some("--version" | "-V") => {
            println!("bine {}", env!("CARGO_PKG_VERSION"));
            Exit::fine()
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
        Err(error) => Exit::failed(format!("the demo's gallery has no folder: {error}")),
    }
}

/// The arguments behind the command, with its folder or file as an option.
fn with_option(name: &str, mut arguments: Vec<OsString>) -> Vec<OsString> {
    option(name, arguments.split_off(1))
}

/// The word that is no option and no value of one becomes `--name=word`: a flag like the others, which
/// wins over the configuration file.
fn option(name: &str, mut arguments: Vec<OsString>) -> Vec<OsString> {
    if let Some(place) = position(&arguments) {
        let mut flag = OsString::from(format!("--{name}="));
        flag.push(&arguments[place]);
        arguments[place] = flag;
    }
    arguments
}

fn position(arguments: &[OsString]) -> Option<usize> {
    let mut place = 0;
    while let Some(word) = arguments.get(place) {
        match word.to_str() {
            Some("--help" | "-h" | "--supervise" | "--routes" | "--json") => place += 1,
            Some(option) if option.starts_with("--") && option.contains('=') => place += 1,
            // Every other option takes one value.
            Some(option) if option.starts_with('-') => place += 2,
            _ => return Some(place),
        }
    }
    None
}

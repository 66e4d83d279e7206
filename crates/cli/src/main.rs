//! The `bine` program: serves a folder, or a demo of Bine, and writes new applications.

mod channel;
#[cfg(feature = "cluster")]
mod cluster;
mod data;
#[cfg(feature = "demo")]
mod demo;
mod dev;
mod profile;
mod starter;
mod user;

use std::ffi::OsString;
use std::path::Path;

use bine::{App, Exit};

const USAGE: &str = "\
Usage: bine serve [DIR] [OPTION]...  serve the files below DIR, and channels if configured
       bine [OPTION]...              serve the application in this folder; without one, the demo
       bine dev [DIR] [--nodes N]    the same in development, by N nodes on this machine; --help
                                     describes it
       bine new NAME                 write an application in TSX into a new folder
       bine types [DIR]              write the types of such an application, for editors
       bine config [OPTION]...       print the configuration, and where each value comes from
       bine routes [DIR] [OPTION]... print the routes and their access; --json for programs
       bine check [DIR] [OPTION]...  check such applications without running them, and their types if
                                     `tsc` is installed; --json for programs
       bine check-config [FILE]      check that a server could start with it
       bine reload [DIR]             make a running server, that of the site DIR, read its
                                     configuration again
       bine status [DIR] | stop [DIR]
                                     query a running server; stop it
       bine cluster status [DIR]     the nodes that share the data of a running server
       bine channel WORD NAME        create, publish to, follow and manage channels
       bine profile FILE             show the heap allocations that a program has recorded with
                                     --profile-allocations FILE, by stage, route and function
       bine user WORD ...            manage users, groups and rights of a running server
       bine data WORD DIR            back up the data of a server, also a running one; restore, dump,
                                     load, compact, check or repair it
       bine --version";

fn main() -> Exit {
    let mut arguments: Vec<OsString> = std::env::args_os().skip(1).collect();
    let first = arguments.first().and_then(|argument| argument.to_str()).map(ToOwned::to_owned);
    match first.as_deref() {
        Some("serve") => site().run_with(USAGE, with_option("root", arguments)),
        Some("config") => {
            with_demo(|app| app.show_configuration(USAGE, with_option("root", arguments)))
        }
        Some("routes") => routes(arguments.split_off(1)),
        Some("check") => check(arguments.split_off(1)),
        Some("check-config") => {
            with_demo(|app| app.check_configuration(USAGE, with_option("config", arguments)))
        }
        Some(word @ ("reload" | "status" | "stop")) => {
            bine::run_control_command(word, USAGE, at_data(arguments.split_off(1)))
        }
        Some("dev") => dev::run(arguments.split_off(1)),
        #[cfg(feature = "cluster")]
        Some(dev::RELAY) => dev::run_relay(&arguments[1..]),
        #[cfg(feature = "cluster")]
        Some("cluster") => cluster::run(arguments.split_off(1)),
        Some("profile") => profile::run(&arguments[1..]),
        Some("new") => starter::new(&arguments[1..]),
        Some("types") => starter::types(&arguments[1..]),
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
        _ => serve_here(arguments),
    }
}

/// Serves the application in this folder; without one, the demo.
fn serve_here(mut arguments: Vec<OsString>) -> Exit {
    if is_application(&arguments) {
        arguments.insert(0, "--root=.".into());
        return site().run_with(USAGE, arguments);
    }
    with_demo(|app| app.run_with(USAGE, arguments))
}

/// Prints the routes of a folder with its applications, or else those of the demo.
fn routes(arguments: Vec<OsString>) -> Exit {
    if positional_index(&arguments).is_some() {
        return site().show_routes(USAGE, replace_positional("root", arguments));
    }
    if is_application(&arguments) {
        return site().show_routes(USAGE, [vec!["--root=.".into()], arguments].concat());
    }
    with_demo(|app| app.show_routes(USAGE, arguments))
}

/// Checks the applications of a folder, by default the current one.
fn check(arguments: Vec<OsString>) -> Exit {
    let folder = match positional_index(&arguments) {
        Some(_) => replace_positional("root", arguments),
        None => [vec!["--root=.".into()], arguments].concat(),
    };
    site().check_sources(USAGE, folder)
}

/// The arguments of a command for a running server, with the data folder of the site that they name
/// or that is the current folder.
fn at_data(arguments: Vec<OsString>) -> Vec<OsString> {
    const LOCATORS: [&str; 4] = ["--control", "--config", "--data", "--help"];
    let data = |site: &Path| site.join(".bine/data");
    let mut option = OsString::from("--data=");
    let mut arguments = arguments;
    if let Some(index) = positional_index(&arguments) {
        option.push(data(Path::new(&arguments[index])));
        arguments[index] = option;
        return arguments;
    }
    let is_locator = |argument: &OsString| {
        let name = argument.to_str().unwrap_or_default().split('=').next().unwrap_or_default();
        LOCATORS.contains(&name)
    };
    let own = data(Path::new("."));
    let is_located = arguments.iter().any(is_locator)
        || ["BINE_CONTROL", "BINE_DATA"].iter().any(|name| std::env::var_os(name).is_some())
        || Path::new("bine.toml").exists();
    if own.is_dir() && !is_located {
        option.push(own);
        arguments.push(option);
    }
    arguments
}

/// Whether the current folder is an application in TSX, and no option names a different one.
fn is_application(arguments: &[OsString]) -> bool {
    let names_root = |argument: &OsString| {
        argument.to_str().is_some_and(|text| text == "--root" || text.starts_with("--root="))
    };
    cfg!(feature = "script")
        && Path::new("index.tsx").is_file()
        && !arguments.iter().any(names_root)
}

/// The files of a folder, and its applications, without the style sheet of the demo.
fn site() -> App {
    let app = App::new().without_linked_styles();
    #[cfg(feature = "script")]
    let app = app.scripts_in_root();
    app
}

/// Runs the program that is meant when no folder is named: the demo, or in a small program nothing but
/// what the configuration names.
#[cfg(not(feature = "demo"))]
fn with_demo(run: impl FnOnce(App) -> Exit) -> Exit {
    run(site())
}

/// Runs the program that is meant when no folder is named: the demo.
#[cfg(feature = "demo")]
fn with_demo(run: impl FnOnce(App) -> Exit) -> Exit {
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
            Some(
                "--help" | "-h" | "--supervise" | "--routes" | "--json" | "--types" | "--check",
            ) => {
                index += 1;
            }
            Some(option) if option.starts_with("--") && option.contains('=') => index += 1,
            // Every other option takes one value.
            Some(option) if option.starts_with('-') => index += 2,
            _ => return Some(index),
        }
    }
    None
}

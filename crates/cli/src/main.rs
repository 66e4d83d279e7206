//! The `bine` program: serves a folder, or shows what Bine can do.

mod demo;

use std::ffi::OsString;
use std::path::PathBuf;

use bine::{App, Exit};

const USAGE: &str = "\
Usage: bine serve DIR [OPTION]...    serve the files below DIR
       bine [OPTION]...              serve the demo
       bine --version";

fn main() -> Exit {
    let mut arguments: Vec<OsString> = std::env::args_os().skip(1).collect();
    let first = arguments.first().and_then(|argument| argument.to_str());
    match first {
        Some("serve") => {
            let rest = arguments.split_off(1);
            serve(rest)
        }
        Some("--version" | "-V") => {
            println!("bine {}", env!("CARGO_PKG_VERSION"));
            Exit::fine()
        }
        Some(word) if !word.starts_with('-') => {
            Exit::usage(format!("bine: there is no command `{word}`\n{USAGE}"))
        }
        _ => match demo::app() {
            Ok(app) => app.run_with(USAGE, arguments),
            Err(error) => Exit::failed(format!("the demo's gallery has no folder: {error}")),
        },
    }
}

/// `bine serve DIR [OPTION]...`, the folder before or behind the options.
fn serve(mut arguments: Vec<OsString>) -> Exit {
    // Every option takes one value, so a word that follows none is the folder.
    let mut place = 0;
    while let Some(word) = arguments.get(place) {
        match word.to_str() {
            Some("--help" | "-h") => return App::new().run_with(USAGE, arguments),
            Some(option) if option.starts_with("--") && option.contains('=') => place += 1,
            Some(option) if option.starts_with('-') => place += 2,
            _ => {
                let folder = PathBuf::from(arguments.remove(place));
                return App::new().files(folder).run_with(USAGE, arguments);
            }
        }
    }
    Exit::usage(format!("bine serve: which folder?\n{USAGE}"))
}

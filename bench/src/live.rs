//! Measures live pages and services, each figure with its comparison in the same run.

mod requests;
mod viewers;

use std::ffi::OsStr;

use anyhow::{Result, ensure};

use crate::arguments::Arguments;
use crate::machine;
use crate::peer::address;
use crate::tools::{Workspace, move_to_core_1};

const PARTS: [&str; 4] = ["viewers", "calls", "pages", "script"];
/// The measured programs.
const EXAMPLES: [&str; 3] = ["board", "hello", "wall"];
/// The target for readiness checks.
const HELLO: &str = "/hello?name=TLUG";
/// The body of a post to the wall: with its id a row of 100 bytes.
const LINE: &str = r#"{"words":"What is written here is read by all who look at this wall, and by nobody else in it."}"#;

/// Prints a table for each chosen part.
pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    let parts = arguments.names("--only").unwrap_or_else(|| PARTS.to_vec());
    for part in &parts {
        ensure!(PARTS.contains(part), "unknown part `{part}`; see --help");
    }
    let rounds = arguments.number("--rounds", 5)?;
    let seconds = arguments.number("--seconds", 3)?;
    let plan = viewers::Plan {
        counts: arguments.numbers("--viewers", &[1000, 10_000])?,
        lengths: arguments.numbers("--lengths", &[200])?,
        posts: arguments.number("--posts", 30)?,
        interval: arguments.number("--interval", 150)?,
        rounds,
    };
    let facts = machine::facts();
    let workspace = Workspace::open()?;
    for example in EXAMPLES {
        workspace.build_bine(&["--example", example].map(OsStr::new))?;
    }
    println!("{facts}");
    let has = |part| parts.contains(&part);
    if has("script") {
        requests::script(&workspace)?;
    }
    if has("calls") {
        requests::calls(&workspace, rounds, seconds)?;
    }
    if has("pages") {
        requests::pages(&workspace, rounds, seconds)?;
    }
    if has("viewers") {
        move_to_core_1()?;
        viewers::run(&workspace, &plan)?;
    }
    Ok(())
}

/// The command of an example with one loop and its tables in a folder, or in `memory`.
fn command(workspace: &Workspace, example: &str, port: u16, data: &str) -> Vec<String> {
    let program = workspace.bine("examples").join(example).display().to_string();
    // All viewers connect at once.
    let listen = format!("{},backlog=4096", address(port));
    let words = ["--listen", &listen, "--loops", "1", "--access-log", "off", "--data", data];
    std::iter::once(program).chain(words.map(str::to_owned)).collect()
}

//! Decides which figures of live pages and of services are taken, and what stands beside each in the same run.

mod requests;
mod viewers;

use std::ffi::OsStr;

use anyhow::{Result, ensure};

use crate::arguments::Arguments;
use crate::machine;
use crate::peer::address;
use crate::tools::{Workshop, leave_core_0};

const PARTS: [&str; 4] = ["viewers", "calls", "pages", "script"];
/// The programs that are measured.
const EXAMPLES: [&str; 3] = ["board", "hello", "wall"];
/// A page that is asked for until its program is ready.
const HELLO: &str = "/hello?name=TLUG";
/// What is posted to the wall: with its id a row of 100 bytes.
const LINE: &str = r#"{"words":"What is written here is read by all who look at this wall, and by nobody else in it."}"#;

/// Prints a table for each part that is asked for.
pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    let parts = arguments.names("--only").unwrap_or_else(|| PARTS.to_vec());
    for part in &parts {
        ensure!(PARTS.contains(part), "no part `{part}`; see --help");
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
    let shop = Workshop::open()?;
    for example in EXAMPLES {
        shop.cargo_build(&["-p", "bine", "--example", example].map(OsStr::new))?;
    }
    println!("{facts}");
    let asks_for = |part| parts.contains(&part);
    if asks_for("script") {
        requests::script(&shop)?;
    }
    if asks_for("calls") {
        requests::calls(&shop, rounds, seconds)?;
    }
    if asks_for("pages") {
        requests::pages(&shop, rounds, seconds)?;
    }
    if asks_for("viewers") {
        leave_core_0()?;
        viewers::run(&shop, &plan)?;
    }
    Ok(())
}

/// The words that start an example with one loop, and with its tables in a folder, or in `memory`.
fn command(shop: &Workshop, example: &str, port: u16, data: &str) -> Vec<String> {
    let program = shop.target.join("release/examples").join(example).display().to_string();
    // All viewers come at once.
    let listen = format!("{},backlog=4096", address(port));
    let words = ["--listen", &listen, "--loops", "1", "--access-log", "off", "--data", data];
    std::iter::once(program).chain(words.map(str::to_owned)).collect()
}

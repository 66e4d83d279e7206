//! The command `bine profile`: shows a profile of allocations, or ends the recording of a running
//! server.

mod arguments;
mod cpu;
mod flame;
mod json;
mod table;

use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, BufWriter, Read as _, Write as _};
use std::path::Path;

use bine::Exit;
use bine_profile::{MAX_FILE, Profile, Report, Selection};

use arguments::{Command, Format, Measure, Sampling, Shown};

const USAGE: &str = "\
Usage: bine profile FILE [OPTION]...  show a profile of allocations
       bine profile --cpu TIME        sample the functions of a running program by `perf`
       bine profile --write           make a running server write its profile now, and end the recording

A program writes FILE if it is started with `--profile-allocations FILE`, when it stops. The table
has the allocations in requests by stage, route or service, and function. `own` counts what a
function allocates itself, also by the standard library, and `total` adds all functions that it calls.

  --route NAME        only the allocations for this route or service, as the table names it
  --outside           only the allocations outside of requests: the start, timers, other threads
  --rows N            the number of functions in the table (default: 40)
  --json              print all sums as JSON
  --flame FILE.svg    write a flame graph of the call stacks
  --by number|bytes   the width in the flame graph (default: number)

With --cpu, the table has the functions in which the processor was, and `total` adds all functions
that they called:

  --pid N             the process; otherwise the server that the options below locate
  --rows N, --flame FILE.svg as above

For --cpu and --write, the options --control, --config and --data locate the server as for `bine status`.

  bine serve site --profile-allocations site.profile --profile-after 1000
  bine profile site.profile
  bine profile --cpu 10s --flame cpu.svg";

/// Runs the command with the arguments after `profile`.
pub(crate) fn run(arguments: &[OsString]) -> Exit {
    match arguments::parse(arguments) {
        Ok(Command::Help) => {
            println!("{USAGE}");
            Exit::success()
        }
        Ok(Command::Write(locators)) => {
            bine::run_control_command(r#"["profile","write"]"#, USAGE, locators)
        }
        Ok(Command::Sample(sampling)) => sample(sampling),
        Ok(Command::Show(shown)) => match show(&shown) {
            Ok(()) => Exit::success(),
            Err(message) => Exit::failure(message),
        },
        Err(message) => Exit::usage(format!("bine: {message}\n{USAGE}")),
    }
}

fn sample(sampling: Sampling) -> Exit {
    let Sampling { time, process, locators, flame, rows } = sampling;
    let process = match process {
        Some(process) => process,
        None => match bine::running_process(USAGE, locators) {
            Ok(process) => process,
            Err(exit) => return exit,
        },
    };
    let selection = Selection { outside: true, route: None };
    let done = cpu::sample(process, time).and_then(|profile| match flame {
        Some(to) => write_flame(&profile, &selection, Measure::Samples, &to),
        None => {
            print(&cpu::write(&profile, rows));
            Ok(())
        }
    });
    done.map_or_else(Exit::failure, |()| Exit::success())
}

fn show(shown: &Shown) -> Result<(), String> {
    let Shown { file, format, selection, rows } = shown;
    let name = file.display();
    let profile = read(file).map_err(|error| format!("cannot read {name}: {error}"))?;
    let profile = Profile::read(&profile).map_err(|error| format!("{name}: {error}"))?;
    check_route(&profile, selection)?;
    let report = Report::of(&profile, selection);
    let text = match format {
        Format::Table => table::write(&profile, &report, selection, *rows),
        Format::Json => json::write(&profile, &report),
        Format::Flame { to, measure } => return write_flame(&profile, selection, *measure, to),
    };
    print(&text);
    Ok(())
}

fn print(text: &str) {
    // The reader of standard output may have closed it.
    let _ = io::stdout().lock().write_all(text.as_bytes());
}

fn write_flame(
    profile: &Profile,
    selection: &Selection,
    measure: Measure,
    to: &Path,
) -> Result<(), String> {
    let write = || {
        let mut out = BufWriter::new(File::create(to)?);
        flame::write(profile, selection, measure, &mut out)?;
        out.flush()
    };
    write().map_err(|error: io::Error| format!("cannot write {}: {error}", to.display()))
}

/// Reads a file that is not too long.
fn read(file: &Path) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    fs::File::open(file)?.take(MAX_FILE + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > MAX_FILE {
        return Err(io::Error::other("it has more than 256 MiB, so it is no profile"));
    }
    Ok(bytes)
}

/// Checks that the profile knows the route, which an empty table would not show.
fn check_route(profile: &Profile, selection: &Selection) -> Result<(), String> {
    let Some(route) = &selection.route else { return Ok(()) };
    let routes = profile.routes.iter().map(|known| &known.route);
    let mut all: Vec<&str> = routes
        .chain(profile.stacks.iter().map(|stack| &stack.route))
        .map(|route| &**route)
        .collect();
    if all.contains(&&**route) {
        return Ok(());
    }
    all.retain(|route| !route.is_empty());
    all.sort_unstable();
    all.dedup();
    Err(format!("the profile has no route `{route}`; it has: {}", all.join(", ")))
}

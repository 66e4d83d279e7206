//! The arguments of `bine profile`.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use bine_profile::Selection;

/// What to do.
pub(super) enum Command {
    Help,
    /// Make a running server write its profile. The options locate it.
    Write(Vec<OsString>),
    Show(Shown),
    Sample(Sampling),
}

/// The running program to sample.
pub(super) struct Sampling {
    pub(super) time: Duration,
    /// The process; `None`: the server that the options locate.
    pub(super) process: Option<u32>,
    pub(super) locators: Vec<OsString>,
    pub(super) flame: Option<PathBuf>,
    pub(super) rows: usize,
}

/// The profile to show.
pub(super) struct Shown {
    pub(super) file: PathBuf,
    pub(super) format: Format,
    pub(super) selection: Selection,
    /// The number of functions in the table.
    pub(super) rows: usize,
}

/// The form of the output.
pub(super) enum Format {
    Table,
    Json,
    Flame { to: PathBuf, measure: Measure },
}

/// The width of a function in a flame graph.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Measure {
    Number,
    Bytes,
    /// The number of samples of the processor.
    Samples,
}

/// The longest time of samples.
const MAX_TIME: Duration = Duration::from_mins(10);
/// The number of functions in a table.
const ROWS: usize = 40;

/// The options that locate a running server.
const LOCATORS: [&str; 3] = ["--control", "--config", "--data"];

/// The arguments in the order in which they are read.
#[derive(Default)]
struct Given {
    file: Option<PathBuf>,
    locators: Vec<OsString>,
    selection: Selection,
    rows: Option<usize>,
    is_json: bool,
    is_write: bool,
    flame: Option<PathBuf>,
    measure: Option<Measure>,
    time: Option<Duration>,
    process: Option<u32>,
}

/// Parses the arguments after `profile`.
///
/// # Errors
///
/// Returns a message that names the wrong argument and the correction.
pub(super) fn parse(arguments: &[OsString]) -> Result<Command, String> {
    let mut given = Given::default();
    let mut rest = arguments.iter();
    while let Some(argument) = rest.next() {
        let text = argument.to_str().unwrap_or_default();
        let (name, inline) = match text.split_once('=') {
            Some((name, value)) if name.starts_with("--") => (name, Some(OsString::from(value))),
            _ => (text, None),
        };
        let mut value = || {
            let next = inline.clone().or_else(|| rest.next().cloned());
            next.ok_or_else(|| format!("`{name}` needs a value"))
        };
        match name {
            "--help" | "-h" => return Ok(Command::Help),
            "--json" => given.is_json = true,
            "--outside" => given.selection.outside = true,
            "--write" => given.is_write = true,
            "--route" => given.selection.route = Some(text_of(name, value()?)?),
            "--flame" => given.flame = Some(value()?.into()),
            "--by" => {
                given.measure = Some(match &*text_of(name, value()?)? {
                    "number" => Measure::Number,
                    "bytes" => Measure::Bytes,
                    other => return Err(format!("--by {other}: write `number` or `bytes`")),
                });
            }
            "--cpu" => given.time = Some(time_of(&text_of(name, value()?)?)?),
            "--pid" => {
                let text = text_of(name, value()?)?;
                let process = text.parse().ok().filter(|process| *process > 0);
                let process = process
                    .ok_or_else(|| format!("--pid {text}: write the number of a process"))?;
                given.process = Some(process);
            }
            "--rows" => {
                let text = text_of(name, value()?)?;
                let rows = text.parse().ok().filter(|rows| *rows > 0);
                let rows =
                    rows.ok_or_else(|| format!("--rows {text}: write a whole number, 1 or more"))?;
                given.rows = Some(rows);
            }
            _ if LOCATORS.contains(&name) => {
                let mut option = OsString::from(format!("{name}="));
                option.push(value()?);
                given.locators.push(option);
            }
            _ if text.starts_with('-') => return Err(format!("there is no option `{text}`")),
            _ if given.file.is_some() => {
                return Err(format!(
                    "one file at a time; `{}` is a second one",
                    argument.display()
                ));
            }
            _ => given.file = Some(argument.into()),
        }
    }
    given.into_command()
}

impl Given {
    fn into_command(self) -> Result<Command, String> {
        if let Some(time) = self.time {
            return self.into_sampling(time);
        }
        let Self {
            file,
            locators,
            selection,
            rows,
            is_json,
            is_write,
            flame,
            measure,
            process,
            ..
        } = self;
        if process.is_some() {
            return Err("`--pid` belongs to `--cpu TIME`".to_owned());
        }
        if is_write {
            let shows = file.is_some() || is_json || flame.is_some() || rows.is_some();
            if shows || selection != Selection::default() || measure.is_some() {
                return Err("`--write` takes only options that locate the server; show the file by a second command".to_owned());
            }
            return Ok(Command::Write(locators));
        }
        if !locators.is_empty() {
            return Err("options that locate a server belong to `--write` and `--cpu`".to_owned());
        }
        let file =
            file.ok_or("which file? Name the one that `--profile-allocations` has written")?;
        let format = match (flame, is_json) {
            (Some(_), true) => return Err("write `--json` or `--flame`, not both".to_owned()),
            (Some(to), false) => Format::Flame { to, measure: measure.unwrap_or(Measure::Number) },
            (None, _) if measure.is_some() => {
                return Err("`--by` belongs to `--flame FILE.svg`".to_owned());
            }
            (None, true) => Format::Json,
            (None, false) => Format::Table,
        };
        Ok(Command::Show(Shown { file, format, selection, rows: rows.unwrap_or(ROWS) }))
    }

    fn into_sampling(self, time: Duration) -> Result<Command, String> {
        let Self {
            file,
            locators,
            selection,
            rows,
            is_json,
            is_write,
            flame,
            measure,
            process,
            ..
        } = self;
        let is_of_file = file.is_some() || is_json || is_write || measure.is_some();
        if is_of_file || selection != Selection::default() {
            return Err("`--cpu` samples a running program: it takes `--pid` or options that locate the server, `--rows` and `--flame`".to_owned());
        }
        if process.is_some() && !locators.is_empty() {
            return Err("write `--pid` or options that locate the server, not both".to_owned());
        }
        let rows = rows.unwrap_or(ROWS);
        Ok(Command::Sample(Sampling { time, process, locators, flame, rows }))
    }
}

/// Parses a time like `10s` or `500ms`.
fn time_of(text: &str) -> Result<Duration, String> {
    let number = |digits: &str| digits.parse::<u32>().ok().filter(|number| *number > 0);
    let time = if let Some(digits) = text.strip_suffix("ms") {
        number(digits).map(|number| Duration::from_millis(number.into()))
    } else if let Some(digits) = text.strip_suffix('s') {
        number(digits).map(|number| Duration::from_secs(number.into()))
    } else {
        None
    };
    time.filter(|time| *time <= MAX_TIME)
        .ok_or_else(|| format!("--cpu {text}: write a time like 10s or 500ms, at most 600s"))
}

fn text_of(name: &str, value: OsString) -> Result<String, String> {
    value.into_string().map_err(|_| format!("the value of `{name}` is not UTF-8 text"))
}

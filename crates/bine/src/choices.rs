//! Decides what can be chosen when a program starts: one table, read by the command line, by the
//! configuration file and by `--help`.

use std::ffi::OsString;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use bine_pipeline::log::{self, Format, WhenFull};
use bine_pipeline::scheduler::{self, SCHEDULERS};
use bine_pipeline::{Listen, Settings, User, inherited};

/// What was chosen for a run.
#[derive(Clone, Debug, Default)]
pub(crate) struct Choices {
    /// How to serve.
    pub(crate) settings: Settings,
    /// Where requests are logged; `None`: nowhere.
    pub(crate) access_log: Option<PathBuf>,
    /// What its lines tell.
    pub(crate) access_format: Format,
    /// What happens to its lines when they come quicker than they can be written.
    pub(crate) access_when_full: WhenFull,
    /// Where messages go; `None`: to standard error.
    pub(crate) error_log: Option<PathBuf>,
    /// Where tables and channels are kept, once there are any.
    pub(crate) data: Option<PathBuf>,
    /// Whom to become when the addresses are open.
    pub(crate) user: Option<User>,
    /// `--help` was asked for.
    pub(crate) wants_help: bool,
}

/// One thing that can be chosen.
struct Choice {
    name: &'static str,
    /// What its value looks like.
    value: &'static str,
    help: &'static str,
    set: fn(&mut Choices, &str) -> Result<(), String>,
}

const fn choice(
    name: &'static str,
    value: &'static str,
    help: &'static str,
    set: fn(&mut Choices, &str) -> Result<(), String>,
) -> Choice {
    Choice { name, value, help, set }
}

const CHOICES: &[Choice] = &[
    choice(
        "listen",
        "ADDRESS",
        "HOST:PORT or unix:PATH to listen on, repeatable (127.0.0.1:8080); options follow it after commas: backlog=128, nodelay=on, send-buffer=BYTES",
        |c, v| {
            c.settings.listeners.push(listen(v)?);
            Ok(())
        },
    ),
    choice("scheduler", "NAME", "who runs what; `help` lists them (hybrid)", |c, v| {
        if v != "help" {
            scheduler::check(v).map_err(|error| error.to_string())?;
        }
        v.clone_into(&mut c.settings.scheduler);
        Ok(())
    }),
    choice("loops", "N", "event loops, a thread each (one per core)", |c, v| {
        c.settings.loops = number(v, 1)?;
        Ok(())
    }),
    choice(
        "workers",
        "N",
        "threads that may block (eight per core, at least 8, at most 64)",
        |c, v| {
            c.settings.workers = number(v, 1)?;
            Ok(())
        },
    ),
    choice("access-log", "FILE|off", "log each request (off)", |c, v| {
        c.access_log = if v == "off" { None } else { Some(v.into()) };
        Ok(())
    }),
    choice(
        "access-log-format",
        "FORMAT",
        "common, combined, json, or a text with directives (combined)",
        |c, v| {
            c.access_format = Format::parse(v)?;
            Ok(())
        },
    ),
    choice(
        "access-log-when-full",
        "drop|wait",
        "lines that come quicker than they are written: count them, or wait a second (drop)",
        |c, v| {
            c.access_when_full = match v {
                "drop" => WhenFull::Drop,
                "wait" => WhenFull::Wait,
                _ => return Err(format!("`{v}` is neither drop nor wait")),
            };
            Ok(())
        },
    ),
    choice("error-log", "FILE|off", "messages of the server (off: standard error)", |c, v| {
        c.error_log = if v == "off" { None } else { Some(v.into()) };
        Ok(())
    }),
    choice("log-level", "LEVEL", "error, warning, notice or debug (notice)", |_, v| {
        log::set_level(v.parse()?);
        Ok(())
    }),
    choice("data", "DIR", "the folder for what is kept; nothing is yet", |c, v| {
        c.data = Some(v.into());
        Ok(())
    }),
    choice("user", "NAME|UID:GID", "become this user once the addresses are open", |c, v| {
        c.user = Some(User::find(v).map_err(|error| error.to_string())?);
        Ok(())
    }),
    choice("connections", "N", "at one time (as many as descriptors allow)", |c, v| {
        c.settings.connections = Some(number(v, 1)?);
        Ok(())
    }),
    choice(
        "connections-per-address",
        "N",
        "from one peer that is not this machine (256)",
        |c, v| {
            c.settings.connections_per_address = number(v, 1)?;
            Ok(())
        },
    ),
    choice("queue", "N", "requests that may wait for a worker (1024)", |c, v| {
        c.settings.queue = number(v, 0)?;
        Ok(())
    }),
    choice("most-head", "BYTES", "of request line and fields (16k)", |c, v| {
        c.settings.limits.head = bytes(v)?;
        Ok(())
    }),
    choice("most-fields", "N", "fields of a request (100)", |c, v| {
        c.settings.limits.fields = number(v, 1)?;
        Ok(())
    }),
    choice("most-target", "BYTES", "of an address (8k)", |c, v| {
        c.settings.limits.target = bytes(v)?;
        Ok(())
    }),
    choice("most-body", "BYTES", "of any body, whatever its handler takes (1g)", |c, v| {
        c.settings.limits.body = bytes(v)?;
        Ok(())
    }),
    choice("first-byte-timeout", "TIME", "from connection to first byte (10s)", |c, v| {
        set_time(&mut c.settings.timeouts.first_byte, v)
    }),
    choice("head-timeout", "TIME", "from a head's first byte to its last (10s)", |c, v| {
        set_time(&mut c.settings.timeouts.head, v)
    }),
    choice("body-timeout", "TIME", "for a pause in a body (10s)", |c, v| {
        set_time(&mut c.settings.timeouts.body, v)
    }),
    choice("handler-timeout", "TIME", "for the answer of a handler (30s)", |c, v| {
        set_time(&mut c.settings.timeouts.handler, v)
    }),
    choice("write-timeout", "TIME", "for a pause of a peer that reads (30s)", |c, v| {
        set_time(&mut c.settings.timeouts.write, v)
    }),
    choice("least-rate", "BYTES", "a second, of slow bodies and slow readers (1k)", |c, v| {
        c.settings.timeouts.rate = bytes(v)?;
        Ok(())
    }),
    choice("idle-timeout", "TIME", "between two requests of a connection (75s)", |c, v| {
        set_time(&mut c.settings.timeouts.idle, v)
    }),
    choice("queue-timeout", "TIME", "for a request's wait for a worker (1s)", |c, v| {
        set_time(&mut c.settings.timeouts.queue, v)
    }),
    choice("linger-timeout", "TIME", "for a refused peer to read why (2s)", |c, v| {
        set_time(&mut c.settings.timeouts.linger, v)
    }),
    choice("drain-timeout", "TIME", "for what runs when the server stops (30s)", |c, v| {
        set_time(&mut c.settings.timeouts.drain, v)
    }),
    choice("unsent", "BYTES", "of replies that a connection may have unsent (64m)", |c, v| {
        c.settings.unsent = bytes(v)?;
        Ok(())
    }),
    choice(
        "unread-body",
        "BYTES",
        "of a body nobody wants, read to stay connected (64k)",
        |c, v| {
            c.settings.unread_body = bytes(v)?;
            Ok(())
        },
    ),
    choice(
        "chunk-at",
        "BYTES",
        "of a page; a longer one leaves while it is written (64k)",
        |c, v| {
            c.settings.chunk_at = bytes(v)?;
            Ok(())
        },
    ),
];

impl Choices {
    /// Reads the arguments of a command line, without the program's name.
    ///
    /// # Errors
    ///
    /// What is wrong, and what would be right.
    pub(crate) fn from_arguments(
        arguments: impl IntoIterator<Item = impl Into<OsString>>,
    ) -> Result<Self, String> {
        let mut choices = Self::default();
        let mut parser = lexopt::Parser::from_args(arguments);
        while let Some(argument) = parser.next().map_err(|error| error.to_string())? {
            match argument {
                lexopt::Arg::Long("help") | lexopt::Arg::Short('h') => {
                    choices.wants_help = true;
                    return Ok(choices);
                }
                lexopt::Arg::Long("config") => {
                    let path = parser.value().map_err(|error| error.to_string())?;
                    choices.read_file(Path::new(&path))?;
                }
                lexopt::Arg::Long(name) => {
                    let name = name.to_owned();
                    let known = find(&name).ok_or_else(|| unknown("option `--", &name))?;
                    let value = parser.value().map_err(|error| error.to_string())?;
                    let value =
                        value.into_string().map_err(|_| format!("--{name}: not UTF-8 text"))?;
                    (known.set)(&mut choices, &value)
                        .map_err(|reason| format!("--{name} {value}: {reason}"))?;
                }
                other => return Err(other.unexpected().to_string()),
            }
        }
        choices.check()
    }

    /// Reads a configuration file on top of what was chosen so far.
    fn read_file(&mut self, path: &Path) -> Result<(), String> {
        let text = std::fs::read_to_string(path)
            .map_err(|error| format!("cannot read {}: {error}", path.display()))?;
        self.read_configuration(&text).map_err(|(at, reason)| {
            let line = text[..at.min(text.len())].matches('\n').count() + 1;
            format!("{}:{line}: {reason}", path.display())
        })
    }

    /// The error is where in `text`, and what.
    fn read_configuration(&mut self, text: &str) -> Result<(), (usize, String)> {
        let table = toml::de::DeTable::parse(text).map_err(|error| {
            (error.span().map_or(0, |span| span.start), error.message().to_owned())
        })?;
        for (key, value) in table.get_ref() {
            let (name, at) = (key.get_ref(), key.span().start);
            let known = find(name).ok_or_else(|| (at, unknown("setting `", name)))?;
            let values = match value.get_ref() {
                toml::de::DeValue::Array(values) => values.iter().collect(),
                _ => vec![value],
            };
            for value in values {
                let text = plain(value.get_ref()).ok_or_else(|| {
                    (value.span().start, format!("{name}: write {}", known.value))
                })?;
                (known.set)(self, &text)
                    .map_err(|reason| (value.span().start, format!("{name}: {reason}")))?;
            }
        }
        Ok(())
    }

    fn check(mut self) -> Result<Self, String> {
        if self.settings.scheduler == "help" {
            self.wants_help = true;
            return Ok(self);
        }
        if self.settings.listeners.is_empty() {
            self.settings.listeners = inherited().into_iter().map(Listen::on).collect();
        }
        if self.settings.listeners.is_empty() {
            self.settings.listeners.push(listen("127.0.0.1:8080")?);
        }
        Ok(self)
    }

    /// What `--help` prints below a program's own usage line.
    pub(crate) fn help() -> String {
        let mut help = String::from("Options, and keys of a configuration file:\n");
        let more = ("config", "FILE", "read these from a TOML file: listen = [\"0.0.0.0:80\"]");
        let own = CHOICES.iter().map(|choice| (choice.name, choice.value, choice.help));
        for (name, value, text) in own.chain([more, ("help", "", "print this")]) {
            let option = format!("--{name} {value}");
            // Writing into a String cannot fail.
            let _ = writeln!(help, "  {option:<34} {text}");
        }
        help.push_str("\nTIME is a number with ms, s or m; BYTES may end in k, m or g.\n");
        help.push_str("\nSchedulers:\n");
        for (name, text) in SCHEDULERS {
            let _ = writeln!(help, "  {name:<34} {text}");
        }
        help
    }
}

fn find(name: &str) -> Option<&'static Choice> {
    CHOICES.iter().find(|choice| choice.name == name)
}

fn unknown(what: &str, name: &str) -> String {
    let near = CHOICES.iter().map(|choice| choice.name).min_by_key(|known| distance(known, name));
    let hint = near.filter(|known| distance(known, name) <= 3);
    let hint = hint.map_or(String::new(), |known| format!("; did you mean `{known}`?"));
    format!("unknown {what}{name}`{hint} (--help lists all)")
}

/// How many letters must be put in, taken out or changed to make one of the other.
fn distance(one: &str, other: &str) -> usize {
    let other: Vec<char> = other.chars().collect();
    let mut row: Vec<usize> = (0..=other.len()).collect();
    for (place, letter) in one.chars().enumerate() {
        let mut corner = row[0];
        row[0] = place + 1;
        for (column, wanted) in other.iter().enumerate() {
            let changed = corner + usize::from(letter != *wanted);
            corner = row[column + 1];
            row[column + 1] = changed.min(corner + 1).min(row[column] + 1);
        }
    }
    row[other.len()]
}

/// A TOML value as it would stand on a command line.
fn plain(value: &toml::de::DeValue<'_>) -> Option<String> {
    match value {
        toml::de::DeValue::String(text) => Some(text.to_string()),
        toml::de::DeValue::Integer(number) => Some(number.as_str().to_owned()),
        toml::de::DeValue::Boolean(true) => Some("on".to_owned()),
        toml::de::DeValue::Boolean(false) => Some("off".to_owned()),
        _ => None,
    }
}

/// `ADDRESS[,backlog=N][,nodelay=on|off][,send-buffer=BYTES]`.
fn listen(text: &str) -> Result<Listen, String> {
    let mut parts = text.split(',');
    let address = parts.next().unwrap_or_default().parse();
    let mut listen = Listen::on(address.map_err(|error| format!("{error}"))?);
    for part in parts {
        match part.split_once('=') {
            Some(("backlog", value)) => listen.backlog = number(value, 1)?,
            Some(("nodelay", "on")) => listen.nodelay = true,
            Some(("nodelay", "off")) => listen.nodelay = false,
            Some(("send-buffer", value)) => listen.send_buffer = Some(bytes(value)?),
            _ => {
                let options = "backlog=N, nodelay=on|off, send-buffer=BYTES";
                return Err(format!("`{part}` is none of {options}"));
            }
        }
    }
    Ok(listen)
}

fn number<N: std::str::FromStr + PartialOrd + Copy + std::fmt::Display>(
    text: &str,
    least: N,
) -> Result<N, String> {
    match text.parse() {
        Ok(number) if number >= least => Ok(number),
        _ => Err(format!("must be a whole number, {least} or more")),
    }
}

fn bytes<N: TryFrom<u64>>(text: &str) -> Result<N, String> {
    let wrong = || "must be a number of bytes, perhaps with k, m or g behind it".to_owned();
    let (digits, shift) = match text.bytes().last() {
        Some(b'k' | b'K') => (&text[..text.len() - 1], 10),
        Some(b'm' | b'M') => (&text[..text.len() - 1], 20),
        Some(b'g' | b'G') => (&text[..text.len() - 1], 30),
        _ => (text, 0),
    };
    let number: u64 = digits.parse().map_err(|_| wrong())?;
    let number = number.checked_mul(1 << shift).filter(|bytes| *bytes > 0).ok_or_else(wrong)?;
    N::try_from(number).map_err(|_| format!("{text} bytes are too many here"))
}

fn set_time(time: &mut Duration, text: &str) -> Result<(), String> {
    let wrong = || "must be a time like 500ms, 10s or 2m".to_owned();
    let digits = text.trim_end_matches(|letter: char| !letter.is_ascii_digit());
    let number: u64 = digits.parse().map_err(|_| wrong())?;
    let milliseconds = match &text[digits.len()..] {
        "ms" => Some(number),
        "s" => number.checked_mul(1000),
        "m" => number.checked_mul(60_000),
        _ => None,
    };
    // Ticks are compared within 24 days; a wait of more than a day is no timeout.
    let milliseconds = milliseconds.filter(|time| (1..=86_400_000).contains(time));
    *time = Duration::from_millis(milliseconds.ok_or_else(wrong)?);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(arguments: &[&str]) -> Result<Choices, String> {
        Choices::from_arguments(arguments)
    }

    #[test]
    fn an_option_can_be_spelled_as_people_do() {
        let choices =
            read(&["--listen", "127.0.0.1:0", "--loops=3", "--idle-timeout", "2m"]).unwrap();
        assert_eq!(choices.settings.listeners[0].address.to_string(), "http://127.0.0.1:0/");
        assert_eq!(choices.settings.loops, 3);
        assert_eq!(choices.settings.timeouts.idle, Duration::from_mins(2));
    }

    #[test]
    fn a_listener_carries_its_own_socket_options() {
        let choices = read(&["--listen", ":80,backlog=512,nodelay=off,send-buffer=12k"]).unwrap();
        let listen = &choices.settings.listeners[0];
        assert_eq!(
            (listen.backlog, listen.nodelay, listen.send_buffer),
            (512, false, Some(12_288))
        );
    }

    #[test]
    fn what_bounds_a_connection_can_be_chosen() {
        let all = ["--linger-timeout=3s", "--unsent=1m", "--unread-body=1k", "--chunk-at=2k"];
        let settings = read(&all).unwrap().settings;
        assert_eq!(settings.timeouts.linger, Duration::from_secs(3));
        let bytes = (settings.unsent, settings.unread_body, settings.chunk_at);
        assert_eq!(bytes, (1 << 20, 1 << 10, 2 << 10));
    }

    #[test]
    fn nothing_chosen_is_a_server_on_this_machine_alone() {
        let choices = read(&[]).unwrap();
        assert_eq!(choices.settings.listeners[0].address.to_string(), "http://127.0.0.1:8080/");
    }

    #[test]
    fn a_wrong_choice_says_what_would_be_right() {
        let cases: &[(&[&str], &str)] = &[
            (&["--lop", "3"], "did you mean `loops`"),
            (&["--loops", "0"], "--loops 0: must be a whole number, 1 or more"),
            (&["--listen", "nowhere"], "write HOST:PORT"),
            (&["--listen", ":80,fast"], "`fast` is none of backlog=N"),
            (&["--idle-timeout", "5"], "must be a time like"),
            (&["--idle-timeout", "99999999999999999999s"], "must be a time like"),
            (&["--most-head", "5t"], "must be a number of bytes"),
            (&["--most-head", "0"], "must be a number of bytes"),
            (&["--most-head", "5g"], "too many here"),
            (&["--config", "/nowhere/at/all"], "cannot read /nowhere/at/all"),
            (&["--user", "nobody-of-that-name"], "no user"),
        ];
        for (arguments, expected) in cases {
            let error = read(arguments).unwrap_err();
            assert!(error.contains(expected), "{arguments:?}: {error}");
        }
    }

    fn configure(text: &str) -> Result<Choices, String> {
        let mut choices = Choices::default();
        choices.read_configuration(text).map_err(|(at, reason)| {
            format!("{}: {reason}", text[..at].matches('\n').count() + 1)
        })?;
        Ok(choices)
    }

    #[test]
    fn a_file_has_the_same_names_as_the_command_line() {
        let text =
            "listen = [\"127.0.0.1:1\", \"unix:/tmp/x\"]\nloops = 2\nidle-timeout = \"5s\"\n";
        let choices = configure(text).unwrap();
        assert_eq!(choices.settings.listeners.len(), 2);
        assert_eq!(choices.settings.loops, 2);
        assert_eq!(choices.settings.timeouts.idle, Duration::from_secs(5));
    }

    #[test]
    fn a_wrong_line_of_a_file_is_named() {
        for (text, expected) in [
            ("loops = 2\nloop = 3\n", "2: unknown setting `loop`; did you mean `loops`?"),
            ("loops = 0\n", "1: loops: must be a whole number"),
            ("\n\nloops = {}\n", "3: loops: write N"),
            ("loops = \n", "1: "),
        ] {
            let error = configure(text).unwrap_err();
            assert!(error.starts_with(expected), "{text:?}: {error}");
        }
    }
}

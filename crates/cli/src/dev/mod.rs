//! The command `bine dev`: serves an application in development, on request by several nodes on this
//! machine.

#[cfg(feature = "cluster")]
mod addresses;
#[cfg(feature = "cluster")]
mod nats;
#[cfg(feature = "cluster")]
mod nodes;
#[cfg(feature = "cluster")]
mod processes;
#[cfg(feature = "cluster")]
mod relay;

use std::ffi::{OsStr, OsString};
use std::path::PathBuf;

use bine::Exit;

#[cfg(feature = "cluster")]
pub(crate) use relay::{WORD as RELAY, run as run_relay};

const USAGE: &str = "\
Usage: bine dev [DIR] [--nodes N] [OPTION]...   serve in development, by N nodes on this machine

DIR is the folder of files and applications; without it, the command serves what `bine` serves: the
application in this folder, or else the demo. The options are those of the server (`bine --help`), and
`--development` is on. With two or more nodes, the command starts a NATS server and all nodes, starts a
node again after a crash, and ends all on Ctrl-C:

  --nodes N             the number of nodes, from 1 to 16 (default 1)
  --nats-server FILE    the program `nats-server`, 2.12 or newer (default: the one on the PATH)
  --listen HOST:PORT    the address of the first node (default 127.0.0.1:8080); each further node has
                        the next port, and with port 0 each has a free one
  --data DIR            keep the data of the NATS server in this folder; without it, the data is gone
                        at the end";

/// The most nodes on one machine.
const MAX_NODES: u8 = 16;
/// The options without a value.
const FLAGS: [&str; 6] = ["--help", "-h", "--supervise", "--routes", "--types", "--check"];

/// The arguments of the command.
struct DevArguments {
    folder: Option<PathBuf>,
    #[cfg_attr(
        not(feature = "cluster"),
        expect(dead_code, reason = "without clusters there is one node")
    )]
    nodes: u8,
    nats_server: Option<PathBuf>,
    /// The options of the server.
    options: Vec<OsString>,
}

/// Runs the command with the arguments after `dev`.
pub(crate) fn run(arguments: Vec<OsString>) -> Exit {
    if arguments.iter().any(|argument| argument == "--help" || argument == "-h") {
        println!("{USAGE}");
        return Exit::success();
    }
    let arguments = match DevArguments::read(arguments) {
        Ok(arguments) => arguments,
        Err(message) => return Exit::usage(format!("{message}\n{USAGE}")),
    };
    #[cfg(feature = "cluster")]
    if arguments.nodes > 1 {
        return nodes::run(arguments);
    }
    if arguments.nats_server.is_some() {
        let message = "--nats-server: one node needs no NATS server; add `--nodes 2` or more";
        return Exit::usage(format!("{message}\n{USAGE}"));
    }
    let DevArguments { folder, options, .. } = arguments;
    // An option of the user follows, so it takes precedence.
    let options = [vec!["--development=on".into()], options].concat();
    match folder {
        Some(folder) => {
            let mut root = OsString::from("--root=");
            root.push(folder);
            super::site().run_with(super::USAGE, [vec![root], options].concat())
        }
        None => super::serve_here(options),
    }
}

impl DevArguments {
    /// Reads the arguments after `dev`.
    ///
    /// # Errors
    ///
    /// A message that names the correction.
    fn read(mut options: Vec<OsString>) -> Result<Self, String> {
        let nodes = match take_option(&mut options, "nodes")?.pop() {
            None => 1,
            Some(text) => number_of_nodes(&text)?,
        };
        if nodes > 1 && cfg!(not(feature = "cluster")) {
            return Err(format!(
                "--nodes {nodes}: this `bine` is built without clusters: build it with the feature `cluster`"
            ));
        }
        let nats_server = take_option(&mut options, "nats-server")?.pop().map(PathBuf::from);
        let mut index = 0;
        let mut folder = None;
        while let Some(word) = options.get(index) {
            let text = word.to_str().unwrap_or_default();
            if FLAGS.contains(&text) || (text.starts_with("--") && text.contains('=')) {
                index += 1;
            } else if text.starts_with('-') {
                // Every other option takes one value.
                index += 2;
            } else if folder.is_none() {
                folder = Some(PathBuf::from(options.remove(index)));
            } else {
                return Err(format!("unexpected argument \"{}\"", word.display()));
            }
        }
        Ok(Self { folder, nodes, nats_server, options })
    }
}

fn number_of_nodes(text: &OsStr) -> Result<u8, String> {
    let number = text.to_str().and_then(|text| text.parse().ok());
    number.filter(|number| (1..=MAX_NODES).contains(number)).ok_or_else(|| {
        format!("--nodes {}: must be a whole number from 1 to {MAX_NODES}", text.display())
    })
}

/// Removes an option, as `--name VALUE` or `--name=VALUE`, and returns its values in order.
///
/// # Errors
///
/// The last argument is the option without a value.
fn take_option(options: &mut Vec<OsString>, name: &str) -> Result<Vec<OsString>, String> {
    let flag = format!("--{name}");
    let mut values = Vec::new();
    let mut index = 0;
    while index < options.len() {
        let bytes = options[index].as_encoded_bytes();
        if bytes == flag.as_bytes() {
            options.remove(index);
            if index == options.len() {
                return Err(format!("missing argument for option '{flag}'"));
            }
            values.push(options.remove(index));
        } else if bytes.strip_prefix(flag.as_bytes()).is_some_and(|rest| rest.starts_with(b"=")) {
            let word = options.remove(index);
            values.push(after(&word, flag.len() + 1));
        } else {
            index += 1;
        }
    }
    Ok(values)
}

/// The rest of an argument after `count` bytes.
fn after(word: &OsStr, count: usize) -> OsString {
    use std::os::unix::ffi::OsStrExt as _;
    OsStr::from_bytes(word.as_bytes().get(count..).unwrap_or_default()).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(words: &[&str]) -> Result<DevArguments, String> {
        DevArguments::read(words.iter().map(Into::into).collect())
    }

    #[cfg(feature = "cluster")]
    #[test]
    fn separates_its_arguments_from_those_of_the_server() {
        let read =
            read(&["--loops", "2", "board", "--nodes=3", "--nats-server", "n", "--hsts=off"]);
        let DevArguments { folder, nodes, nats_server, options } = read.unwrap();
        assert_eq!((folder, nodes), (Some("board".into()), 3));
        assert_eq!(nats_server, Some("n".into()));
        assert_eq!(options, ["--loops", "2", "--hsts=off"]);
    }

    #[test]
    fn names_the_correction_of_wrong_arguments() {
        let fault = |words: &[&str]| read(words).err().unwrap();
        let range = "must be a whole number from 1 to 16";
        for number in ["0", "17", "three", ""] {
            assert_eq!(fault(&["--nodes", number]), format!("--nodes {number}: {range}"));
        }
        assert_eq!(fault(&["--nodes"]), "missing argument for option '--nodes'");
        assert_eq!(fault(&["a", "b"]), "unexpected argument \"b\"");
    }
}

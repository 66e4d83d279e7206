//! The control socket of a running server, and the commands that `bine reload` and its relatives
//! send to it.

use std::ffi::OsString;
use std::fmt::Write as _;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use bine_log as log;
use bine_server::control::{self, Control as Socket};

use crate::configuration::{Configuration, Control, Sources};
use crate::exit::{Exit, program_name};
use crate::reload::Reloader;

/// The commands, for messages.
const COMMANDS: &str = "reload, status, stop";

/// Opens the control socket at the path that `control` names. Dropping the returned value removes
/// it.
///
/// # Errors
///
/// Returns an error if a configured path cannot be used. If only the default path is unavailable,
/// for instance because a second server uses it, the log has a warning and the server runs without
/// a socket.
pub(crate) fn serve(
    control: &Control,
    data: Option<&Path>,
    reloader: Arc<Reloader>,
) -> Result<Option<Socket>, String> {
    let cannot = |path: &Path, error: io::Error| {
        format!("cannot open the control socket {}: {error}", path.display())
    };
    let (path, is_configured) = match control {
        Control::Off => return Ok(None),
        Control::At(path) => (path.clone(), true),
        Control::Usual => match default_path(data) {
            Some(path) => (path, false),
            None => return Ok(None),
        },
    };
    let mut socket = match Socket::open(&path) {
        Ok(socket) => socket,
        Err(error) if is_configured => return Err(cannot(&path, error)),
        Err(error) => {
            let reason = cannot(&path, error);
            log::warn(format_args!("{reason}; --control PATH sets a different path"));
            return Ok(None);
        }
    };
    socket
        .serve(move |command| answer(command, &reloader))
        .map_err(|error| cannot(&path, error))?;
    Ok(Some(socket))
}

fn answer(command: &str, reloader: &Reloader) -> Result<String, String> {
    let server = || reloader.server().ok_or_else(|| "the server has ended".to_owned());
    match command {
        "reload" => reloader.reload(),
        "stop" => {
            server()?.leave();
            Ok(String::new())
        }
        "status" => {
            let mut text = format!("process {}\n", std::process::id());
            for address in server()?.urls() {
                // Writing into a String cannot fail.
                let _ = writeln!(text, "listening on {address}");
            }
            Ok(text)
        }
        other => {
            // A command of a subsystem is a JSON array of its words.
            let words: Vec<String> = serde_json::from_str(other).unwrap_or_default();
            let running = &reloader.shared().running;
            running.iter().find_map(|one| one.command(&words)).unwrap_or_else(|| {
                Err(match &words[..] {
                    [first, verb, ..] => {
                        format!("unknown command `{first} {verb}`; see bine {first} --help")
                    }
                    _ => format!("unknown command `{other}`; known are {COMMANDS}"),
                })
            })
        }
    }
}

/// Sends `reload`, `status`, `stop` or a command of a subsystem, a JSON array of its words, to a
/// running server and prints its answer. `arguments` are
/// those that the server was started with, as far as they locate its control socket (`--control`,
/// `--config`, `--data`).
pub fn run_control_command(
    command: &str,
    usage: &str,
    arguments: impl IntoIterator<Item = impl Into<OsString>>,
) -> Exit {
    let path = match locate(usage, arguments) {
        Ok(path) => path,
        Err(exit) => return exit,
    };
    let is_of_subsystem = command.starts_with('[');
    match control::ask(&path, command) {
        Ok(Ok(text)) if command == "status" || is_of_subsystem => Exit::output(text),
        Ok(Ok(text)) => {
            let name = program_name();
            text.lines().for_each(|line| eprintln!("{name}: {line}"));
            Exit::success()
        }
        Ok(Err(reason)) => Exit::failure(reason.trim_end()),
        Err(error) => {
            let hint = if is_of_subsystem {
                "; start the server first, or locate it by --control, --config or --data"
            } else {
                ""
            };
            Exit::failure(format!("no server answers at {}: {error}{hint}", path.display()))
        }
    }
}

/// Returns the number of the process of a running server. `arguments` locate it as for
/// [`run_control_command`].
///
/// # Errors
///
/// The exit status and the message, if no server answers.
pub fn running_process(
    usage: &str,
    arguments: impl IntoIterator<Item = impl Into<OsString>>,
) -> Result<u32, Exit> {
    let path = locate(usage, arguments)?;
    let status = control::ask(&path, "status").map_err(|error| {
        let path = path.display();
        Exit::failure(format!("no server answers at {path}: {error}; start the server first, or locate it by --control, --config or --data"))
    })?;
    let status = status.map_err(|reason| Exit::failure(reason.trim_end()))?;
    let process = status.lines().find_map(|line| line.strip_prefix("process ")?.parse().ok());
    process.ok_or_else(|| Exit::failure("the server does not name its process"))
}

/// The path of the control socket.
fn locate(
    usage: &str,
    arguments: impl IntoIterator<Item = impl Into<OsString>>,
) -> Result<PathBuf, Exit> {
    match Sources::of_process(arguments).control() {
        Ok(None) => Err(Exit::output(format!("{usage}\n\n{}", Configuration::help()))),
        Ok(Some((Control::At(path), _))) => Ok(path),
        Ok(Some((Control::Off, _))) => {
            Err(Exit::failure("this server has no control socket (`control` is off)"))
        }
        Ok(Some((Control::Usual, data))) => default_path(data.as_deref()).ok_or_else(|| {
            Exit::failure("there is no run folder, and so no default control socket; name one with --control PATH")
        }),
        Err(message) => Err(Exit::usage(format!("{message}\n{usage}"))),
    }
}

/// Returns a running server's answer to a command such as `status`. Asks the server that
/// [`run_control_command`] would ask without arguments. Returns `None` if no server answers or if
/// it rejects the command.
pub fn query_running_server(command: &str) -> Option<String> {
    let path = match Sources::of_process(None::<OsString>).control().ok()?? {
        (Control::At(path), _) => path,
        (Control::Off, _) => return None,
        (Control::Usual, data) => default_path(data.as_deref())?,
    };
    control::ask(&path, command).ok()?.ok()
}

/// The default path: `bine.control` in the user's run folder, the system's, or else the data
/// folder.
fn default_path(data: Option<&Path>) -> Option<PathBuf> {
    let user = std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from);
    let system = PathBuf::from("/run/bine");
    let folders = [user, Some(system), data.map(Path::to_owned)];
    let folder = folders.into_iter().flatten().find(|folder| folder.is_dir())?;
    Some(folder.join("bine.control"))
}

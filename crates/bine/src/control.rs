//! Decides what a running server can be told by `bine reload` and its kin, and where it listens for that.

use std::ffi::OsString;
use std::fmt::Write as _;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use bine_log as log;
use bine_server::control::{self, Control as Socket};

use crate::configuration::{Configuration, Control, Sources};
use crate::exit::Exit;
use crate::reload::Reloader;

/// The words, and what each is for.
const WORDS: &str = "reload, status, stop";

/// Listens where `control` says. The socket goes with the value.
///
/// # Errors
///
/// A path that was wished for and cannot be had. The usual one is another server's as often as not,
/// which is told in the log.
pub(crate) fn serve(
    control: &Control,
    data: Option<&Path>,
    reloader: Arc<Reloader>,
) -> Result<Option<Socket>, String> {
    let cannot = |path: &Path, error: io::Error| {
        format!("cannot be told to reload at {}: {error}", path.display())
    };
    let (path, is_wished) = match control {
        Control::Off => return Ok(None),
        Control::At(path) => (path.clone(), true),
        Control::Usual => match usual(data) {
            Some(path) => (path, false),
            None => return Ok(None),
        },
    };
    let mut socket = match Socket::open(&path) {
        Ok(socket) => socket,
        Err(error) if is_wished => return Err(cannot(&path, error)),
        Err(error) => {
            let reason = cannot(&path, error);
            log::warn(format_args!("{reason}; --control PATH names another place"));
            return Ok(None);
        }
    };
    socket.serve(move |word| answer(word, &reloader)).map_err(|error| cannot(&path, error))?;
    Ok(Some(socket))
}

fn answer(word: &str, reloader: &Reloader) -> Result<String, String> {
    let server = || reloader.server().ok_or_else(|| "the server has ended".to_owned());
    match word {
        "reload" => reloader.reload(),
        "stop" => {
            server()?.stop();
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
        other => Err(format!("there is no word `{other}`, only {WORDS}")),
    }
}

/// Tells a running server one of `reload`, `status` and `stop`, and prints its answer. `arguments` are
/// those that it was started with, as far as they say where it listens for that (`--control`,
/// `--config`, `--data`).
pub fn tell(
    word: &str,
    usage: &str,
    arguments: impl IntoIterator<Item = impl Into<OsString>>,
) -> Exit {
    let sources = Sources::of_process(arguments);
    let path = match sources.control() {
        Ok(None) => return Exit::told(format!("{usage}\n\n{}", Configuration::help())),
        Ok(Some((Control::At(path), _))) => path,
        Ok(Some((Control::Off, _))) => {
            return Exit::failed("this server has no control socket (`control` is off)");
        }
        Ok(Some((Control::Usual, data))) => match usual(data.as_deref()) {
            Some(path) => path,
            None => {
                let reason =
                    "no run folder here, so no usual control socket; --control PATH names it";
                return Exit::failed(reason);
            }
        },
        Err(message) => return Exit::usage(format!("{message}\n{usage}")),
    };
    match control::ask(&path, word) {
        Ok(Ok(text)) if word == "status" => Exit::told(text),
        Ok(Ok(text)) => {
            text.lines().for_each(|line| eprintln!("bine: {line}"));
            Exit::fine()
        }
        Ok(Err(reason)) => Exit::failed(reason.trim_end()),
        Err(error) => Exit::failed(format!("no server answers at {}: {error}", path.display())),
    }
}

/// What a running server answers to a word, `status` for instance: the one that [`tell`] would ask if its command line
/// said nothing. `None`: there is none, or it refuses.
pub fn ask_running(word: &str) -> Option<String> {
    let path = match Sources::of_process(None::<OsString>).control().ok()?? {
        (Control::At(path), _) => path,
        (Control::Off, _) => return None,
        (Control::Usual, data) => usual(data.as_deref())?,
    };
    control::ask(&path, word).ok()?.ok()
}

/// `bine.control` in the run folder: the user's, the system's, or else the data folder.
fn usual(data: Option<&Path>) -> Option<PathBuf> {
    let user = std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from);
    let system = PathBuf::from("/run/bine");
    let folders = [user, Some(system), data.map(Path::to_owned)];
    let folder = folders.into_iter().flatten().find(|folder| folder.is_dir())?;
    Some(folder.join("bine.control"))
}

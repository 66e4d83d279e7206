//! A process between `bine dev` and a program that it starts: it asks the kernel to end it with
//! `bine dev`, and becomes the program.

use std::ffi::OsString;
use std::os::unix::process::CommandExt as _;
use std::process::Command;

use bine::Exit;
use rustix::process::{Pid, Signal, getpid, getppid, set_parent_process_death_signal};

/// The command, which only `bine dev` uses.
pub(crate) const WORD: &str = "dev-relay";

/// The name of this program in its messages.
const NAME: &str = "bine";
/// This program. The file at its path may be a newer one by now.
pub(super) const SELF: &str = "/proc/self/exe";

/// A command that runs `program`, and ends with this process. Its process id is that of the program.
///
/// The kernel ends it when the thread that starts it ends, so the main thread starts it.
pub(super) fn command(program: &OsString) -> Command {
    let mut command = Command::new(SELF);
    command.arg0(NAME).arg(WORD).arg(getpid().as_raw_nonzero().to_string()).arg(program);
    command
}

/// Becomes the program that the arguments after the command name. Returns only if that fails.
pub(crate) fn run(arguments: &[OsString]) -> Exit {
    let [parent, program, rest @ ..] = arguments else {
        return Exit::usage(format!("{WORD}: only `bine dev` uses this command"));
    };
    // The call fails only for invalid signals.
    let _ = set_parent_process_death_signal(Some(Signal::TERM));
    // The parent may have ended before the call.
    let actual = getppid().map(Pid::as_raw_nonzero).map(|number| number.to_string());
    if actual.as_deref() != parent.to_str() {
        return Exit::failure("`bine dev` has ended");
    }
    let mut command = Command::new(program);
    if program == SELF {
        command.arg0(NAME);
    }
    let error = command.args(rest).exec();
    Exit::failure(format!("cannot start {}: {error}", program.display()))
}

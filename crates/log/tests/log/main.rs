//! The error log of a whole process: levels, destinations and faults. A child process logs, because
//! the destination and the level belong to the process.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::{env, fs};

use bine_log::Level;

/// Set in the child process.
const FOLDER: &str = "BINE_ERROR_LOG_FOLDER";

/// Runs the test called `name` again, in a child process with its own folder, and returns its
/// output and the folder. `None` in the child process, which calls `log` instead.
fn in_child(name: &str, log: impl FnOnce(&Path)) -> Option<(Output, PathBuf)> {
    if let Some(folder) = env::var_os(FOLDER) {
        log(Path::new(&folder));
        return None;
    }
    let folder = env::temp_dir().join(format!("bine-error-log-{}-{name}", std::process::id()));
    fs::create_dir(&folder).unwrap();
    let mut child = Command::new(env::current_exe().unwrap());
    child.args(["--exact", name, "--nocapture", "--test-threads=1"]).env(FOLDER, &folder);
    let output = child.output().unwrap();
    assert!(output.status.success(), "{output:?}");
    Some((output, folder))
}

/// The lines without their times.
fn messages(text: &[u8]) -> Vec<String> {
    let text = String::from_utf8_lossy(text);
    let message = |line: &str| {
        let (time, message) = line.split_once(' ')?;
        (time.len() == 20 && time.ends_with('Z')).then(|| message.to_owned())
    };
    text.lines().filter_map(message).collect()
}

#[test]
fn logs_messages_of_the_level_to_standard_error() {
    let output = in_child("logs_messages_of_the_level_to_standard_error", |_| {
        // Without a message no wait is needed.
        bine_log::finish();
        bine_log::error(format_args!("an error"));
        bine_log::warn(format_args!("a warning"));
        bine_log::notice(format_args!("a notice"));
        bine_log::debug(format_args!("not logged by default"));
        bine_log::set_level(Level::Debug);
        bine_log::debug(format_args!("a detail"));
        bine_log::set_level(Level::Error);
        bine_log::warn(format_args!("not logged any more"));
        bine_log::finish();
    });
    let Some((output, folder)) = output else { return };
    let expected = ["error an error", "warning a warning", "notice a notice", "debug a detail"];
    assert_eq!(messages(&output.stderr), expected);
    fs::remove_dir_all(folder).unwrap();
}

#[test]
fn logs_to_a_file_and_to_standard_error_again() {
    let output = in_child("logs_to_a_file_and_to_standard_error_again", |folder| {
        bine_log::to_file(folder.join("log")).unwrap();
        bine_log::error(format_args!("in the file"));
        bine_log::finish();
        // A file that cannot be opened has no effect.
        let refused = bine_log::to_file(folder.join("log/below")).unwrap_err();
        assert!(refused.to_string().starts_with("cannot open the log "), "{refused}");
        bine_log::error(format_args!("in the file too"));
        bine_log::finish();
        bine_log::to_standard_error();
        bine_log::error(format_args!("not in the file"));
        bine_log::finish();
    });
    let Some((output, folder)) = output else { return };
    assert_eq!(messages(&output.stderr), ["error not in the file"]);
    let file = fs::read(folder.join("log")).unwrap();
    assert_eq!(messages(&file), ["error in the file", "error in the file too"]);
    fs::remove_dir_all(folder).unwrap();
}

#[test]
fn reports_a_log_file_that_cannot_be_written_on_standard_error() {
    let name = "reports_a_log_file_that_cannot_be_written_on_standard_error";
    let output = in_child(name, |_| {
        bine_log::to_file("/dev/full").unwrap();
        bine_log::error(format_args!("unwritable"));
        bine_log::finish();
        bine_log::to_standard_error();
        bine_log::error(format_args!("last"));
        bine_log::finish();
    });
    let Some((output, folder)) = output else { return };
    let messages = messages(&output.stderr);
    let begin = "error the log /dev/full cannot be written: ";
    assert!(messages.iter().any(|message| message.starts_with(begin)), "{messages:?}");
    let unwritten = "error the last lines of the log /dev/full are not written yet";
    assert!(messages.iter().any(|message| message == unwritten), "{messages:?}");
    assert!(!messages.iter().any(|message| message.contains("unwritable")), "{messages:?}");
    fs::remove_dir_all(folder).unwrap();
}

//! Runs child processes and describes their failures.

use std::env;
use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

/// A command of cargo, without the variables that cargo has set for this program. The build script of
/// `ring` runs again when they change, and with it the build of everything that depends on it: a
/// build by hand and one by this program would alternate.
pub(crate) fn cargo() -> Command {
    let mut command = Command::new("cargo");
    forget_package(&mut command);
    command
}

/// Removes the variables that cargo has set for this program.
pub(crate) fn forget_package(command: &mut Command) {
    for (name, _) in env::vars_os() {
        let begins = |prefix| name.to_string_lossy().starts_with(prefix);
        if begins("CARGO_PKG_") || begins("CARGO_MANIFEST_") {
            command.env_remove(&name);
        }
    }
}

/// Runs a command to its end. It inherits stdout and stderr.
pub(crate) fn run(command: &mut Command) -> Result<()> {
    let status = command
        .stdin(Stdio::null())
        .status()
        .with_context(|| format!("cannot start {}", command_line(command)))?;
    if !status.success() {
        bail!("failed ({status}); to repeat: {}", command_line(command));
    }
    Ok(())
}

/// Runs a command to its end, prints its stdout and passes each line to `on_line`.
pub(crate) fn run_reading(command: &mut Command, mut on_line: impl FnMut(&str)) -> Result<()> {
    let mut child = command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .with_context(|| format!("cannot start {}", command_line(command)))?;
    let stdout = child.stdout.take().expect("stdout was configured as a pipe above");
    for line in BufReader::new(stdout).split(b'\n') {
        let line = line.context("cannot read the output of a child process")?;
        let line = String::from_utf8_lossy(&line);
        println!("{line}");
        on_line(&line);
    }
    let status = child.wait()?;
    if !status.success() {
        bail!("failed ({status}); to repeat: {}", command_line(command));
    }
    Ok(())
}

/// Whether a program exists and succeeds.
pub(crate) fn is_available(program: &str, arguments: &[&str]) -> bool {
    Command::new(program)
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|status| status.success())
}

/// The command as a shell would accept it.
pub(crate) fn command_line(command: &Command) -> String {
    let set = command.get_envs().filter_map(|(name, value)| {
        Some(format!("{}={}", name.to_string_lossy(), quoted(&value?.to_string_lossy())))
    });
    let words = std::iter::once(command.get_program()).chain(command.get_args());
    let words = words.map(|word| quoted(&word.to_string_lossy()));
    set.chain(words).collect::<Vec<_>>().join(" ")
}

fn quoted(word: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_./:=,+@%".contains(&byte);
    if !word.is_empty() && word.bytes().all(plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', "'\\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formats_a_command_for_the_shell() {
        let mut command = Command::new("cargo");
        command.args(["doc", "it's"]).env("RUSTDOCFLAGS", "-D warnings");
        assert_eq!(command_line(&command), r"RUSTDOCFLAGS='-D warnings' cargo doc 'it'\''s'");
    }

    /// Cargo has set them for this test, too.
    #[test]
    fn hides_its_own_package_from_cargo() {
        assert!(env::var_os("CARGO_PKG_NAME").is_some());
        let command = cargo();
        let removed: Vec<_> =
            command.get_envs().filter(|(_, value)| value.is_none()).map(|(name, _)| name).collect();
        for name in ["CARGO_PKG_NAME", "CARGO_MANIFEST_DIR"] {
            assert!(removed.contains(&name.as_ref()), "{removed:?}");
        }
        assert_eq!(command_line(&command), "cargo");
    }

    #[test]
    fn names_the_command_that_failed() {
        let message = run(&mut Command::new("false")).expect_err("false fails").to_string();
        assert!(message.ends_with("to repeat: false"), "{message}");
    }

    #[test]
    fn passes_every_line_of_output() {
        let mut lines = Vec::new();
        let mut command = Command::new("printf");
        run_reading(command.arg("one\ntwo"), |line| lines.push(line.to_owned())).expect("runs");
        assert_eq!(lines, ["one", "two"]);
    }
}

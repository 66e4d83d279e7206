//! Checks the session cookies in a browser, with and without TLS.

use std::process::Command;

use anyhow::Result;

use super::program::Program;
use super::{run_checks, tool_script, work_folder};
use crate::report::Tally;
use crate::{paths, tools};

/// Logs users of the example in and out.
pub(super) fn check(tally: &mut Tally) -> Result<()> {
    let example = |folder: &str, options: &[&str]| {
        let mut session = Command::new(paths::release("examples/session"));
        session.args(["--listen", "127.0.0.1:0", "--data"]).arg(work_folder().join(folder));
        session.args(options);
        Program::start(session)
    };
    let plain = example("sessions", &[])?;
    let secure = example("secure-sessions", &["--tls", "self-signed"])?;
    let secure_url = format!("https://{}/", secure.address());
    run_checks(
        tally,
        tool_script(tools::selenium(), "sessions_browser.py").args([plain.url("/"), secure_url]),
    )
}

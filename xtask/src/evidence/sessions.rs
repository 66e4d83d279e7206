//! Decides what a real browser must do with the cookies of sessions, without TLS and with it.

use std::process::Command;

use anyhow::Result;

use super::program::Program;
use super::{claims, evidence, script};
use crate::report::Tally;
use crate::{places, tools};

/// Logs visitors of the example in and out.
pub(super) fn judge(tally: &mut Tally) -> Result<()> {
    let example = |folder: &str, options: &[&str]| {
        let mut session = Command::new(places::release("examples/session"));
        session.args(["--listen", "127.0.0.1:0", "--data"]).arg(evidence().join(folder));
        session.args(options);
        Program::start(session)
    };
    let plain = example("sessions", &[])?;
    let secure = example("secure-sessions", &["--tls", "self-signed"])?;
    let secure_url = format!("https://{}/", secure.address());
    claims(
        tally,
        script(tools::selenium(), "sessions_browser.py").args([plain.url("/"), secure_url]),
    )
}

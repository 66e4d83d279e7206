//! Checks several nodes behind a load balancer.

use anyhow::Result;

use super::nats::Nats;
use super::{run_checks, tool_script, work_folder};
use crate::report::Tally;
use crate::{paths, tools};

/// Runs the demo and the auction on three nodes behind `HAProxy`, with the configuration of the guide:
/// stops, kills and restarts nodes while browsers and other clients use them.
pub(super) fn check(tally: &mut Tally) -> Result<()> {
    if !tools::has_haproxy() {
        println!("left out: several nodes behind HAProxy (needs the package haproxy of Debian)");
        return Ok(());
    }
    for (script, program) in
        [("cluster_board.py", "bine"), ("cluster_auction.py", "examples/auction")]
    {
        let mut command = tool_script(tools::selenium(), script);
        let nats = Nats::start()?;
        command.arg(paths::release(program)).arg(nats.url());
        command.arg(paths::root().join("docs/guide/cluster.md"));
        run_checks(tally, command.arg(work_folder().join("screenshots")))?;
    }
    Ok(())
}

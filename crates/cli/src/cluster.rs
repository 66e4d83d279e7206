//! The command `bine cluster`: asks a running server about the nodes of its cluster.

use std::ffi::OsString;

use bine::Exit;

const USAGE: &str = "\
Usage: bine cluster status [DIR] [OPTION]...   the link of a running server to its cluster, and all nodes

The server is that of the site DIR, or the one that the options --control, --config and --data locate
as for `bine status`. A server shares its data with others if its configuration has the key `cluster`:

  nats-server --jetstream --store_dir data/nats &
  bine serve site --cluster nats://127.0.0.1:4222
  bine cluster status site";

/// Runs the command with the arguments after `cluster`.
pub(crate) fn run(mut arguments: Vec<OsString>) -> Exit {
    if arguments.iter().any(|argument| argument == "--help" || argument == "-h") {
        println!("{USAGE}");
        return Exit::success();
    }
    if arguments.first().is_none_or(|verb| verb != "status") {
        return Exit::usage(USAGE.to_owned());
    }
    arguments.remove(0);
    bine::run_control_command(r#"["cluster","status"]"#, USAGE, super::at_data(arguments))
}

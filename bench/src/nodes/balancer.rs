//! The configuration of `HAProxy`: that of the guide, or one that balances connections.

use std::fmt::Write as _;

use anyhow::{Result, ensure};

use crate::nodes::plan::Distribution;

/// The clients of one process. `HAProxy` has two connections for each, and in the mode of HTTP idle
/// ones besides.
const MOST_CLIENTS: u64 = 6000;
/// The connections of clients that one process accepts: more than its share, because the kernel
/// spreads connections over the processes by chance.
const MOST_CONNECTIONS: u64 = 7000;

/// Begins each configuration. `HAProxy` closes connections to servers after each response while
/// more than `pool-low-fd-ratio` percent of the descriptors, by default 20, are in use. Clients
/// that wait use more.
const GLOBAL: &str = "\
global
    nbthread 1
    maxconn @CONNECTIONS@
    tune.pool-low-fd-ratio 85
    tune.pool-high-fd-ratio 90

";
/// The lines of the guide that depend on the machine.
const GUIDE_BIND: &str = "    bind :80\n";
const GUIDE_SERVER: &str = "    server ";

/// The number of processes for this number of clients.
pub(crate) const fn processes(clients: u64) -> u64 {
    clients.div_ceil(MOST_CLIENTS)
}

/// The configuration of one process, which accepts clients at `ports`. Each `number` has a
/// different source address for connections to the nodes, so that the kernel finds a free port at
/// once.
pub(crate) fn configuration(
    distribution: Distribution,
    guide: &str,
    tcp: &str,
    number: u64,
    ports: [u16; 2],
    nodes: &[u16],
) -> Result<String> {
    let bind = ports.map(|port| format!("127.0.0.1:{port}")).join(",");
    let mut servers = format!("    source 127.0.2.{}\n", number + 1);
    for (index, node) in nodes.iter().enumerate() {
        writeln!(servers, "    server node{index} 127.0.0.1:{node}")?;
    }
    let own = match distribution {
        Distribution::Stream => of_guide(guide, &bind, &servers)?,
        Distribution::StreamTcp | Distribution::Unicast => {
            tcp.replace("@BIND@", &bind).replace("    @SERVERS@\n", &servers)
        }
    };
    Ok(GLOBAL.replace("@CONNECTIONS@", &MOST_CONNECTIONS.to_string()) + &own)
}

/// Replaces the address and the servers of the guide's configuration.
fn of_guide(guide: &str, bind: &str, servers: &str) -> Result<String> {
    let block = guide.split("```haproxy\n").nth(1).and_then(|rest| rest.split("```").next());
    let block = block.unwrap_or_default();
    let has_lines = block.matches(GUIDE_BIND).count() == 1 && block.contains(GUIDE_SERVER);
    ensure!(has_lines, "docs/guide/cluster.md has no configuration of HAProxy that is known here");
    let kept = block.lines().filter(|line| !line.starts_with(GUIDE_SERVER));
    let text = kept.flat_map(|line| [line, "\n"]).collect::<String>();
    Ok(text.replace(GUIDE_BIND, &format!("    bind {bind}\n")) + servers)
}

#[cfg(test)]
mod tests {
    use super::*;

    const GUIDE: &str = include_str!("../../../docs/guide/cluster.md");
    const TCP: &str = include_str!("../../peers/balancer-tcp.cfg");

    fn of(distribution: Distribution) -> String {
        configuration(distribution, GUIDE, TCP, 1, [5000, 5001], &[6000, 6001]).unwrap()
    }

    #[test]
    fn puts_nodes_into_the_configuration_of_the_guide() {
        let text = of(Distribution::Stream);
        assert!(text.contains("    mode http\n") && text.contains("retry-on"), "{text}");
        assert!(text.contains("    bind 127.0.0.1:5000,127.0.0.1:5001\n"), "{text}");
        let end = "    source 127.0.2.2\n    server node0 127.0.0.1:6000\n    server node1 127.0.0.1:6001\n";
        assert!(text.ends_with(end), "{text}");
        assert!(!text.contains("10.0.0.11"), "{text}");
    }

    #[test]
    fn balances_connections_for_unicast() {
        let text = of(Distribution::Unicast);
        assert!(text.contains("    mode tcp\n") && !text.contains('@'), "{text}");
        assert!(text.ends_with("    server node1 127.0.0.1:6001\n"), "{text}");
    }

    #[test]
    fn rejects_a_guide_without_a_configuration() {
        let result = configuration(Distribution::Stream, "", TCP, 0, [1, 2], &[3]);
        assert!(result.unwrap_err().to_string().contains("docs/guide/cluster.md"));
    }

    #[test]
    fn gives_each_process_no_more_clients_than_descriptors_allow() {
        assert_eq!([500, 6000, 8000, 16_000].map(processes), [1, 1, 2, 3]);
    }
}

//! The servers of one point: NATS, the nodes, and `HAProxy` before them.

use std::fs;

use anyhow::{Context, Result, ensure};

use crate::nats::{NatsServers, SyncInterval};
use crate::nodes::balancer;
use crate::nodes::plan::{Distribution, NodesPoint};
use crate::servers::{Running, free_port};
use crate::tools::Workspace;

/// The target for readiness checks.
const HELLO: &str = "/hello?name=TLUG";

/// Running servers. All are killed when dropped: the balancer first, then the nodes.
pub(crate) struct Setup {
    balancers: Vec<Running>,
    nodes: Vec<Running>,
    nats: Option<NatsServers>,
    /// The port of the balancer.
    pub(crate) port: u16,
}

impl Setup {
    /// Starts nodes and NATS on core 0, and the balancer on core 1.
    pub(crate) fn start(workspace: &Workspace, nats: &str, point: &NodesPoint) -> Result<Self> {
        let ports = (0..point.nodes).map(|_| free_port()).collect::<Result<Vec<u16>>>()?;
        let nats = match point.distribution {
            Distribution::Unicast => None,
            Distribution::Stream | Distribution::StreamTcp => {
                Some(NatsServers::start(workspace, nats, 1, SyncInterval::Default)?)
            }
        };
        let mut nodes = Vec::new();
        for &port in &ports {
            let words = node_command(workspace, port, &ports, nats.as_ref());
            let log = workspace.work.join(format!("node-{port}.log"));
            let running = Running::start(&words, port, HELLO, &log);
            nodes.push(running.with_context(|| format!("node {} did not start", nodes.len()))?);
        }
        let (port, mut balancers) = (free_port()?, Vec::new());
        let guide = fs::read_to_string(workspace.root.join("docs/guide/cluster.md"))?;
        let tcp = fs::read_to_string(workspace.root.join("bench/peers/balancer-tcp.cfg"))?;
        for number in 0..balancer::processes(point.peers) {
            let own = free_port()?;
            let text = balancer::configuration(
                point.distribution,
                &guide,
                &tcp,
                number,
                [port, own],
                &ports,
            )?;
            let file = workspace.work.join(format!("haproxy-{own}.cfg"));
            fs::write(&file, text)?;
            let file = file.display().to_string();
            let words = ["taskset", "--cpu-list", "1", "haproxy", "-db", "-f", &file];
            let log = workspace.work.join(format!("haproxy-{own}.log"));
            let running = Running::start(&words.map(str::to_owned), own, HELLO, &log);
            balancers.push(running.context("haproxy did not start")?);
        }
        Ok(Self { balancers, nodes, nats, port })
    }

    /// The processes as `followers` expects them: nodes, NATS, `HAProxy`.
    pub(crate) fn groups(&self) -> String {
        let ids = |all: &[Running]| all.iter().map(Running::leader).collect::<Vec<_>>();
        let nats = self.nats.as_ref().map(NatsServers::processes).unwrap_or_default();
        let groups = [ids(&self.nodes), nats, ids(&self.balancers)];
        let text =
            |ids: &Vec<u32>| ids.iter().map(ToString::to_string).collect::<Vec<_>>().join(",");
        groups.iter().map(text).collect::<Vec<_>>().join("+")
    }

    /// Fails if a server has ended by itself.
    pub(crate) fn check(&mut self) -> Result<()> {
        for running in self.nodes.iter_mut().chain(&mut self.balancers) {
            let ended = running.ended()?;
            ensure!(ended.is_none(), "the server at port {} has ended", running.port);
        }
        Ok(())
    }
}

/// The command of the node at `port`.
fn node_command(
    workspace: &Workspace,
    port: u16,
    all: &[u16],
    nats: Option<&NatsServers>,
) -> Vec<String> {
    let program = workspace.bine("examples/push-node").display().to_string();
    // All clients connect at once.
    let listen = format!("127.0.0.1:{port},backlog=4096");
    let others = all.iter().filter(|other| **other != port);
    let others: Vec<String> = others.map(|port| format!("127.0.0.1:{port}")).collect();
    let unicast = if nats.is_none() { others.join(",") } else { String::new() };
    let mut words = vec!["env".to_owned(), format!("UNICAST_TO={unicast}"), program];
    let own = ["--listen", &listen, "--loops", "1", "--access-log", "off"];
    words.extend(own.map(str::to_owned));
    if let Some(nats) = nats {
        let (name, addresses) = (format!("node-{port}"), nats.addresses());
        words.extend(["--cluster", &addresses, "--cluster-node", &name].map(str::to_owned));
    }
    words
}

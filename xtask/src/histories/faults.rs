//! The faults: how each begins, how it ends, and in which order a seed chooses them.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use anyhow::{Result, bail};

use super::nats;
use super::pause::pause;
use super::random::Random;
use super::world::{World, set_clock};

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum Fault {
    /// A node loses all packets to and from all NATS servers.
    NodePartition,
    /// The same for one NATS server.
    LinkPartition,
    /// Two NATS servers lose all packets between them.
    ServerPartition,
    /// A NATS server loses all packets to and from the other two; nodes reach all three.
    ServerIsolation,
    /// Packets are delayed and lost.
    SlowLink,
    NodeKill,
    ServerKill,
    NodePause,
    ServerPause,
    LeaderChange,
    FullDisk,
    ClockJump,
}

/// All faults with their names on the command line.
pub(super) const FAULTS: [(Fault, &str); 12] = [
    (Fault::NodePartition, "node-partition"),
    (Fault::LinkPartition, "link-partition"),
    (Fault::ServerPartition, "server-partition"),
    (Fault::ServerIsolation, "server-isolation"),
    (Fault::SlowLink, "slow-link"),
    (Fault::NodeKill, "node-kill"),
    (Fault::ServerKill, "server-kill"),
    (Fault::NodePause, "node-pause"),
    (Fault::ServerPause, "server-pause"),
    (Fault::LeaderChange, "leader-change"),
    (Fault::FullDisk, "full-disk"),
    (Fault::ClockJump, "clock-jump"),
];

/// How often each fault was injected.
pub(super) type Counts = BTreeMap<&'static str, usize>;

/// Injects faults while a history runs.
pub(super) struct Injector<'w> {
    pub(super) world: &'w mut World,
    pub(super) random: Random,
    /// The faults that are possible here.
    pub(super) faults: Vec<Fault>,
    pub(super) start: Instant,
    pub(super) counts: Counts,
    /// A line for each begin and end.
    pub(super) timeline: Vec<String>,
}

/// A fault that lasts, with its target.
struct Active {
    fault: Fault,
    /// The number of the node or of the NATS server.
    target: usize,
    /// The number of the NATS server at the remote end.
    other: usize,
}

/// Without packet scheduling in the kernel, a slow link alternates: it loses all packets, then
/// passes all packets, for these times in milliseconds.
const LOSING: u64 = 120;
const PASSING: u64 = 80;
/// The delay and the share of lost packets otherwise.
const NETEM: (&str, &str) = ("40ms", "10%");
/// Milliseconds between two faults.
const GAP: (u64, u64) = (50, 500);
/// The same for one node, which serves no client during its faults.
const GAP_OF_ONE: (u64, u64) = (500, 2_500);
/// The largest jump of a clock, in seconds.
const MAX_JUMP: u64 = 3_000;

impl Fault {
    /// The faults with these names: `all`, `none`, or a list with commas.
    pub(super) fn parse(list: &str) -> Result<Vec<Self>> {
        match list {
            "all" => return Ok(FAULTS.map(|(fault, _)| fault).to_vec()),
            "none" => return Ok(Vec::new()),
            _ => {}
        }
        list.split(',')
            .map(|name| {
                let found = FAULTS.iter().find(|(_, own)| *own == name);
                let Some((fault, _)) = found else {
                    let all = FAULTS.map(|(_, name)| name).join(", ");
                    bail!("`{name}` is not a fault; --faults takes all, none, or a list of: {all}");
                };
                Ok(*fault)
            })
            .collect()
    }

    /// Why the fault cannot be injected here; `None` if it can.
    pub(super) fn obstacle(self, world: &World) -> Option<&'static str> {
        let needs_nats = !matches!(self, Self::NodeKill | Self::NodePause | Self::ClockJump);
        let is_of_links = matches!(
            self,
            Self::NodePartition
                | Self::LinkPartition
                | Self::ServerPartition
                | Self::ServerIsolation
                | Self::SlowLink
        );
        if needs_nats && world.nats.is_empty() {
            Some("one node has no NATS servers")
        } else if is_of_links && !world.has_namespaces {
            Some("no network namespaces")
        } else if self == Self::FullDisk && world.disks.is_empty() {
            Some("no mount namespaces")
        } else if self == Self::ClockJump && world.clocks.is_empty() {
            Some("no libfaketime; install the package libfaketime of Debian")
        } else {
            None
        }
    }

    fn name(self) -> &'static str {
        FAULTS.iter().find(|(fault, _)| *fault == self).map_or("", |(_, name)| name)
    }

    /// Milliseconds that the fault lasts: at least, and at most.
    const fn duration(self) -> (u64, u64) {
        match self {
            Self::NodePartition | Self::LinkPartition => (200, 4_500),
            Self::ServerPartition | Self::ServerIsolation => (200, 3_000),
            Self::SlowLink => (500, 2_000),
            Self::NodeKill | Self::ServerKill => (0, 1_500),
            Self::NodePause | Self::ServerPause => (100, 4_500),
            Self::LeaderChange => (0, 200),
            Self::FullDisk | Self::ClockJump => (300, 1_200),
        }
    }
}

impl Injector<'_> {
    /// Injects one or two faults at a time until `end`; the last ones may end later.
    pub(super) fn run(&mut self, end: Instant) -> Result<()> {
        if self.faults.is_empty() {
            pause(end.saturating_duration_since(Instant::now()));
            return Ok(());
        }
        while Instant::now() < end {
            let (from, to) = if self.world.nodes.len() == 1 { GAP_OF_ONE } else { GAP };
            let milliseconds = self.random.between(from, to);
            pause(Duration::from_millis(milliseconds));
            let count = if self.random.chance(40) { 2 } else { 1 };
            let mut active: Vec<Active> = Vec::new();
            for _ in 0..count {
                let fault = *self.random.pick(&self.faults);
                let target = self.target(fault);
                let is_known = active.iter().any(|other| other.fault == fault);
                if !is_known {
                    self.begin(&target)?;
                    active.push(target);
                }
            }
            let longest = active.iter().map(|active| active.fault.duration()).max();
            let (from, to) = longest.unwrap_or_default();
            let milliseconds = self.random.between(from, to);
            self.hold(&active, Duration::from_millis(milliseconds))?;
            for target in active.iter().rev() {
                self.end(target)?;
            }
        }
        Ok(())
    }

    /// Chooses where a fault happens; the leader of the stream in half of the cases.
    fn target(&mut self, fault: Fault) -> Active {
        let nodes = self.world.nodes.len();
        let servers = self.world.nats.len();
        let is_of_node = matches!(
            fault,
            Fault::NodePartition
                | Fault::LinkPartition
                | Fault::NodeKill
                | Fault::NodePause
                | Fault::ClockJump
        );
        let mut target = self.random.below(if is_of_node { nodes } else { servers });
        let mut other = self.random.below(servers);
        let prefers_leader = self.random.chance(50);
        if !is_of_node {
            if let (true, Some(leader)) = (prefers_leader, self.leader()) {
                target = leader;
            }
            if other == target {
                other = (target + 1) % servers;
            }
        }
        Active { fault, target, other }
    }

    /// The number of the NATS server that leads the stream of messages.
    fn leader(&self) -> Option<usize> {
        let servers = &self.world.nats;
        let name = servers.iter().find_map(|server| nats::leader(server.address, "bine").ok())?;
        servers.iter().position(|server| server.name == name)
    }

    fn begin(&mut self, active: &Active) -> Result<()> {
        let Active { fault, target, other } = *active;
        self.note(active, "begins");
        let world = &mut *self.world;
        match fault {
            Fault::NodePartition => {
                for server in &world.nats {
                    world.nodes[target].machine.cut(&server.machine)?;
                }
            }
            Fault::LinkPartition => {
                world.nodes[target].machine.cut(&world.nats[other].machine)?;
            }
            Fault::ServerPartition => world.nats[target].machine.cut(&world.nats[other].machine)?,
            Fault::ServerIsolation => {
                for server in (0..world.nats.len()).filter(|server| *server != target) {
                    world.nats[target].machine.cut(&world.nats[server].machine)?;
                }
            }
            Fault::SlowLink if world.has_netem => {
                world.nats[target].machine.slow_down(NETEM.0, NETEM.1)?;
            }
            // `hold` loses packets.
            Fault::SlowLink => {}
            Fault::NodeKill => world.nodes[target].kill(),
            Fault::ServerKill => world.nats[target].kill(),
            Fault::NodePause => world.nodes[target].pause()?,
            Fault::ServerPause => world.nats[target].pause()?,
            Fault::LeaderChange => self.change_leader(),
            Fault::FullDisk => world.disks[target].fill()?,
            Fault::ClockJump => {
                let jump = self.random.between(1, MAX_JUMP).cast_signed();
                let jump = if self.random.chance(50) { -jump } else { jump };
                set_clock(&self.world.clocks[target], jump)?;
            }
        }
        *self.counts.entry(fault.name()).or_default() += 1;
        Ok(())
    }

    fn end(&mut self, active: &Active) -> Result<()> {
        let Active { fault, target, other } = *active;
        self.note(active, "ends");
        let world = &mut *self.world;
        match fault {
            Fault::NodePartition => {
                for server in &world.nats {
                    world.nodes[target].machine.join(&server.machine)?;
                }
            }
            Fault::LinkPartition => {
                world.nodes[target].machine.join(&world.nats[other].machine)?;
            }
            Fault::ServerPartition => {
                world.nats[target].machine.join(&world.nats[other].machine)?;
            }
            Fault::ServerIsolation => {
                for server in (0..world.nats.len()).filter(|server| *server != target) {
                    world.nats[target].machine.join(&world.nats[server].machine)?;
                }
            }
            Fault::SlowLink if world.has_netem => world.nats[target].machine.speed_up()?,
            Fault::SlowLink | Fault::LeaderChange => {}
            Fault::NodeKill => world.nodes[target].start()?,
            Fault::ServerKill => world.nats[target].start()?,
            Fault::NodePause => world.nodes[target].resume()?,
            Fault::ServerPause => world.nats[target].resume()?,
            Fault::FullDisk => {
                world.disks[target].free()?;
                // After a failed write the server uses the stream no more until it starts again.
                world.nats[target].kill();
                world.nats[target].start()?;
            }
            Fault::ClockJump => set_clock(&world.clocks[target], 0)?,
        }
        Ok(())
    }

    /// Waits while faults last. Slow links lose packets in turns meanwhile.
    fn hold(&self, active: &[Active], duration: Duration) -> Result<()> {
        let end = Instant::now() + duration;
        let slow = active.iter().find(|active| active.fault == Fault::SlowLink);
        let Some(slow) = slow.filter(|_| !self.world.has_netem) else {
            pause(duration);
            return Ok(());
        };
        // Links to nodes, so that no other fault of this moment cuts them too.
        let server = &self.world.nats[slow.target].machine;
        let is_cut = |node: &usize| {
            active.iter().any(|other| {
                matches!(other.fault, Fault::NodePartition | Fault::LinkPartition)
                    && other.target == *node
            })
        };
        let nodes: Vec<usize> = (0..self.world.nodes.len()).filter(|node| !is_cut(node)).collect();
        while Instant::now() < end {
            for node in &nodes {
                server.cut(&self.world.nodes[*node].machine)?;
            }
            pause(Duration::from_millis(LOSING));
            for node in &nodes {
                server.join(&self.world.nodes[*node].machine)?;
            }
            pause(Duration::from_millis(PASSING));
        }
        Ok(())
    }

    /// Makes the leader of a stream step down. Without a leader, an election is under way already.
    fn change_leader(&mut self) {
        let servers: Vec<_> = self.world.nats.iter().map(|server| server.address).collect();
        for server in servers {
            let Ok(streams) = nats::streams(server) else { continue };
            if streams.is_empty() {
                continue;
            }
            let stream = self.random.pick(&streams).clone();
            if let Err(error) = nats::step_down(server, &stream) {
                self.timeline.push(format!("no leader has changed: {error}"));
            }
            return;
        }
    }

    fn note(&mut self, active: &Active, what: &str) {
        let Active { fault, target, other } = active;
        let milliseconds = self.start.elapsed().as_secs_f64() * 1e3;
        let line = format!("{milliseconds:.1} ms: {} {what} at {target} ({other})", fault.name());
        for server in self.world.nodes.iter().chain(&self.world.nats) {
            server.note(&line);
        }
        self.timeline.push(line);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_the_faults_in_an_error() {
        let parsed = Fault::parse("node-kill,clock-jump").expect("two faults");
        assert_eq!(parsed, [Fault::NodeKill, Fault::ClockJump]);
        let message = Fault::parse("node-kill,quake").expect_err("no fault").to_string();
        assert!(message.starts_with("`quake` is not a fault; --faults takes all, none, or"));
        assert_eq!(Fault::parse("all").expect("all").len(), FAULTS.len());
    }
}

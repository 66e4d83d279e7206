//! The servers of a verification: three nodes and three NATS servers, or one node with a data folder.

use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Result, bail};

use super::machines::{self, Machine};
use super::pause::pause;
use super::servers::{Launch, Server, SmallDisk};

/// The servers that a history runs on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Engine {
    /// One node without a cluster, which keeps its data in a folder.
    One,
    /// Three nodes, and three NATS servers that store each change on all of them.
    Cluster,
}

/// The programs and the folder of a world.
pub(super) struct Site {
    pub(super) engine: Engine,
    pub(super) program: PathBuf,
    pub(super) nats_server: PathBuf,
    /// A library that gives a process its own time; `None` without one.
    pub(super) faketime: Option<PathBuf>,
    /// Emptied at the start.
    pub(super) folder: PathBuf,
    /// Whether each server gets a network namespace.
    pub(super) has_namespaces: bool,
}

/// The running servers. They end when it is dropped.
pub(super) struct World {
    pub(super) nodes: Vec<Server>,
    pub(super) nats: Vec<Server>,
    /// Of the NATS servers, in their order; empty without namespaces.
    pub(super) disks: Vec<SmallDisk>,
    /// The files with the offsets of the clocks of the nodes; empty without the library.
    pub(super) clocks: Vec<PathBuf>,
    pub(super) has_namespaces: bool,
    pub(super) has_netem: bool,
}

/// Nodes of a cluster, and NATS servers.
const COUNT: u8 = 3;
/// Bytes of the disk of a NATS server.
const DISK: u64 = 256 << 20;
/// A cluster must follow its stream again within this time after all faults.
const HEAL_TIMEOUT: Duration = Duration::from_mins(2);
const CHECK_INTERVAL: Duration = Duration::from_millis(100);

impl World {
    /// Starts all servers, and waits until the nodes are ready.
    pub(super) fn start(site: &Site) -> Result<Self> {
        if site.folder.exists() {
            fs::remove_dir_all(&site.folder)?;
        }
        fs::create_dir_all(&site.folder)?;
        let mut own = Self {
            nodes: Vec::new(),
            nats: Vec::new(),
            disks: Vec::new(),
            clocks: Vec::new(),
            has_namespaces: site.has_namespaces,
            has_netem: false,
        };
        if site.engine == Engine::Cluster {
            own.start_nats(site)?;
        }
        let count = if site.engine == Engine::Cluster { COUNT } else { 1 };
        for number in 1..=count {
            let node = own.node(site, number)?;
            own.nodes.push(node);
        }
        own.has_netem = site.has_namespaces && machines::has_netem(&own.nodes[0].machine);
        own.heal()?;
        Ok(own)
    }

    /// The addresses of the nodes.
    pub(super) fn addresses(&self) -> Vec<SocketAddr> {
        self.nodes.iter().map(|node| node.address).collect()
    }

    /// Starts and resumes all servers until all nodes are ready.
    pub(super) fn heal(&mut self) -> Result<()> {
        let begun = Instant::now();
        for server in self.nats.iter_mut().chain(&mut self.nodes) {
            server.resume()?;
        }
        loop {
            // A node that cannot reach the NATS servers at its start, or that cannot follow the stream
            // any more, ends; an operator runs it with `--supervise`.
            for server in self.nats.iter_mut().chain(&mut self.nodes) {
                server.start()?;
            }
            let is_healed = self.nats.iter().all(Server::greets)
                && self.nodes.iter_mut().all(|node| node.is_running() && node.is_ready());
            if is_healed {
                return Ok(());
            }
            if begun.elapsed() > HEAL_TIMEOUT {
                let waiting = self.nats.iter().filter(|server| !server.greets());
                let waiting = waiting.chain(self.nodes.iter().filter(|node| !node.is_ready()));
                let logs: Vec<String> = waiting
                    .map(|server| format!("{}:\n{}", server.name, server.last_lines(12)))
                    .collect();
                let logs = logs.join("\n");
                bail!("servers are not ready {HEAL_TIMEOUT:?} after all faults:\n{logs}");
            }
            pause(CHECK_INTERVAL);
        }
    }

    fn start_nats(&mut self, site: &Site) -> Result<()> {
        let mut places = Vec::new();
        for number in 1..=COUNT {
            let mut machine = machine(site, number)?;
            let (clients, routes) = (machine.listener(4222), machine.listener(6222));
            places.push((machine, clients, routes));
        }
        let routes: Vec<String> =
            places.iter().map(|(_, _, routes)| format!("nats://{routes}")).collect();
        for (number, (machine, clients, own)) in (1..).zip(places) {
            let name = format!("nats-{number}");
            let files = site.folder.join(&name);
            fs::create_dir_all(&files)?;
            if site.has_namespaces {
                self.disks.push(SmallDisk::mount(&files, DISK)?);
            }
            let files = files.display();
            let configuration = site.folder.join(format!("{name}.conf"));
            let routes = routes.join(", ");
            fs::write(
                &configuration,
                format!(
                    "server_name: {name}\nlisten: \"{clients}\"\n\
                     jetstream {{ store_dir: \"{files}\", max_memory_store: 64MB, max_file_store: 4GB }}\n\
                     cluster {{ name: histories, listen: \"{own}\", routes: [{routes}] }}\n"
                ),
            )?;
            let launch = Launch {
                name,
                program: site.nats_server.clone(),
                arguments: vec!["--config".into(), configuration.display().to_string()],
                variables: Vec::new(),
                folder: site.folder.clone(),
            };
            self.nats.push(Server::new(machine, clients, launch));
        }
        Ok(())
    }

    fn node(&mut self, site: &Site, number: u8) -> Result<Server> {
        let mut machine = machine(site, COUNT + number)?;
        let (address, name) = (machine.listener(8080), format!("node-{number}"));
        let folder = &site.folder;
        let control = folder.join(format!("{name}.control")).display().to_string();
        let mut arguments = vec!["--listen".to_owned(), address.to_string()];
        // All clients have one address.
        for (key, value) in [
            ("--control", &*control),
            ("--connections-per-address", "4096"),
            ("--channels-holds-per-address", "4096"),
            ("--drain-timeout", "1s"),
        ] {
            arguments.extend([key.to_owned(), value.to_owned()]);
        }
        let data = folder.join(format!("{name}.data")).display().to_string();
        let urls: Vec<String> =
            self.nats.iter().map(|server| format!("nats://{}", server.address)).collect();
        let urls = urls.join(",");
        let own: &[&str] = match site.engine {
            Engine::One => &["--data", &data],
            // Small, so that nodes write snapshots and load them.
            Engine::Cluster => &[
                "--data",
                "memory",
                "--cluster",
                &urls,
                "--cluster-copies",
                "3",
                "--cluster-node",
                &name,
                "--cluster-snapshot",
                "1M",
            ],
        };
        arguments.extend(own.iter().map(|&word| word.to_owned()));
        let mut variables = Vec::new();
        if let Some(library) = &site.faketime {
            let clock = folder.join(format!("{name}.clock"));
            set_clock(&clock, 0)?;
            for (variable, value) in [
                ("LD_PRELOAD", library.display().to_string()),
                ("FAKETIME_TIMESTAMP_FILE", clock.display().to_string()),
                ("FAKETIME_NO_CACHE", "1".to_owned()),
                ("FAKETIME_DONT_FAKE_MONOTONIC", "1".to_owned()),
            ] {
                variables.push((variable.to_owned(), value));
            }
            self.clocks.push(clock);
        }
        let program = site.program.clone();
        let launch = Launch { name, program, arguments, variables, folder: folder.clone() };
        Ok(Server::new(machine, address, launch))
    }
}

/// Sets the clock of a node forward or back by seconds.
pub(super) fn set_clock(file: &Path, seconds: i64) -> Result<()> {
    // The node reads the file while it changes, so that it must never be empty.
    let new = file.with_extension("new");
    fs::write(&new, format!("{seconds:+}\n"))?;
    Ok(fs::rename(new, file)?)
}

fn machine(site: &Site, number: u8) -> Result<Machine> {
    if site.has_namespaces { Machine::separate(number) } else { Ok(Machine::local(number)) }
}

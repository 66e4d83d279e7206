//! Machines: network namespaces that a bridge connects, or this machine itself.
//!
//! A partition is a permanent neighbor entry with a hardware address that no machine has, on both
//! sides. So packets between two machines vanish without an error, and all other links work.

use std::fs;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use bine_nats_server::ReservedPort;

use super::pause::pause;
use crate::process;

/// A machine on which servers run.
pub(super) struct Machine {
    /// Its number, from 1 on.
    number: u8,
    /// Keeps the namespace alive; `None` on this machine itself.
    holder: Option<Child>,
    /// The ports of its servers, on this machine itself.
    ports: Vec<ReservedPort>,
}

/// The name of the interface inside a namespace.
const INTERFACE: &str = "eth0";
/// The network of the machines, which only they can reach.
const NETWORK: [u8; 3] = [10, 83, 0];
/// The address of the clients.
const OWN: u8 = 254;
/// The longest wait for a namespace.
const PATIENCE: Duration = Duration::from_secs(10);

/// Prepares the bridge, inside a namespace that is this process's own.
pub(super) fn prepare() -> Result<()> {
    let own = address(OWN);
    batch(
        None,
        &[
            "link set lo up".to_owned(),
            "link add name machines type bridge".to_owned(),
            format!("addr add {own}/24 dev machines"),
            "link set machines up".to_owned(),
        ],
    )
}

/// Whether the kernel can delay and drop packets.
pub(super) fn has_netem(machine: &Machine) -> bool {
    let mut add = machine.command("tc");
    add.args(["qdisc", "add", "dev", INTERFACE, "root", "netem", "delay", "1ms"]);
    let is_added = add.stderr(Stdio::null()).status().is_ok_and(|status| status.success());
    if is_added {
        let mut remove = machine.command("tc");
        let _ = remove.args(["qdisc", "del", "dev", INTERFACE, "root"]).status();
    }
    is_added
}

impl Machine {
    /// This machine itself.
    pub(super) const fn local(number: u8) -> Self {
        Self { number, holder: None, ports: Vec::new() }
    }

    /// A separate namespace on the bridge.
    pub(super) fn separate(number: u8) -> Result<Self> {
        let mut command = Command::new("unshare");
        command.args(["--net", "sleep", "infinity"]).stdin(Stdio::null());
        let holder = command.spawn().context("cannot start unshare")?;
        let process = holder.id();
        let own = Self { number, holder: Some(holder), ports: Vec::new() };
        let namespace = |process: &str| fs::read_link(format!("/proc/{process}/ns/net")).ok();
        let begun = Instant::now();
        while namespace(&process.to_string()).is_none()
            || namespace(&process.to_string()) == namespace("self")
        {
            ensure!(begun.elapsed() < PATIENCE, "no network namespace after {PATIENCE:?}");
            pause(Duration::from_millis(2));
        }
        batch(
            None,
            &[
                format!("link add name m{number} type veth peer name {INTERFACE} netns {process}"),
                format!("link set m{number} master machines up"),
            ],
        )?;
        batch(
            Some(&own),
            &[
                "link set lo up".to_owned(),
                format!("link set {INTERFACE} address {}", hardware(number)),
                format!("addr add {}/24 dev {INTERFACE}", address(number)),
                format!("link set {INTERFACE} up"),
            ],
        )?;
        Ok(own)
    }

    /// A command that runs on this machine.
    pub(super) fn command(&self, program: impl AsRef<Path>) -> Command {
        let program = program.as_ref();
        let mut command;
        match &self.holder {
            Some(holder) => {
                command = Command::new("nsenter");
                command.arg(format!("--net=/proc/{}/ns/net", holder.id())).arg(program);
            }
            // A child must not survive this process; a namespace ends its processes by itself.
            None if process::is_available("setpriv", &["--version"]) => {
                command = Command::new("setpriv");
                command.args(["--pdeathsig", "KILL"]).arg(program);
            }
            None => command = Command::new(program),
        }
        command.stdin(Stdio::null());
        command
    }

    /// An address for a server of this machine: `port` in a namespace, otherwise a free one.
    pub(super) fn listener(&mut self, port: u16) -> SocketAddr {
        if self.holder.is_some() {
            return SocketAddr::new(address(self.number), port);
        }
        let reserved = ReservedPort::new();
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, reserved.number()));
        self.ports.push(reserved);
        address
    }

    /// Drops all packets between two machines from now on.
    pub(super) fn cut(&self, other: &Self) -> Result<()> {
        let nowhere = hardware(0xff);
        for (from, to) in [(self, other), (other, self)] {
            let to = address(to.number);
            let rule = format!("neigh replace {to} lladdr {nowhere} dev {INTERFACE} nud permanent");
            batch(Some(from), &[rule])?;
        }
        Ok(())
    }

    /// Undoes [`cut`](Self::cut).
    pub(super) fn join(&self, other: &Self) -> Result<()> {
        for (from, to) in [(self, other), (other, self)] {
            batch(Some(from), &[format!("neigh del {} dev {INTERFACE}", address(to.number))])?;
        }
        Ok(())
    }

    /// Delays all packets of this machine and drops some; needs `netem`.
    pub(super) fn slow_down(&self, delay: &str, loss: &str) -> Result<()> {
        let mut tc = self.command("tc");
        tc.args(["qdisc", "replace", "dev", INTERFACE, "root", "netem", "delay", delay, delay]);
        process::run(tc.args(["loss", loss]))
    }

    /// Undoes [`slow_down`](Self::slow_down).
    pub(super) fn speed_up(&self) -> Result<()> {
        process::run(self.command("tc").args(["qdisc", "del", "dev", INTERFACE, "root"]))
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        if let Some(holder) = &mut self.holder {
            // The calls fail only if it has ended already.
            let _ = holder.kill();
            let _ = holder.wait();
            // The kernel removes it later, after the next machine of this number may have begun.
            let mut remove = Command::new("ip");
            remove.args(["link", "del", &format!("m{}", self.number)]).stderr(Stdio::null());
            let _ = remove.status();
        }
    }
}

fn address(number: u8) -> IpAddr {
    let [a, b, c] = NETWORK;
    Ipv4Addr::new(a, b, c, number).into()
}

fn hardware(number: u8) -> String {
    format!("02:53:00:00:00:{number:02x}")
}

/// Runs commands of `ip` on a machine, or where this process runs.
fn batch(machine: Option<&Machine>, lines: &[String]) -> Result<()> {
    for line in lines {
        let mut command = match machine {
            Some(machine) => machine.command("ip"),
            None => Command::new("ip"),
        };
        command.args(line.split(' '));
        let output = command.stdin(Stdio::null()).output().context("cannot start ip")?;
        if !output.status.success() {
            let why = String::from_utf8_lossy(&output.stderr);
            bail!("{}: {}", process::command_line(&command), why.trim());
        }
    }
    Ok(())
}

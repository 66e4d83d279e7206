//! The reverse proxy compared with nginx: CPU time per request, and a large response.

use std::ffi::OsStr;
use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};

use crate::arguments::Arguments;
use crate::cost::Sample;
use crate::figures::Spread;
use crate::machine;
use crate::peer::{address, request};
use crate::samples::{Run, Samples, figures};
use crate::servers::{Running, filled, free_port, nginx_with};
use crate::tools::{Workspace, move_to_core_1, output, require};

/// The options of the command.
pub(crate) const OPTIONS: [&str; 6] =
    ["--rounds", "--seconds", "--connections", "--megabytes", "--only", "--into"];

/// A measured proxy.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Measured {
    Bine,
    Nginx,
}

const PROXIES: [Measured; 2] = [Measured::Bine, Measured::Nginx];

/// The path and the length of the small response.
const SMALL: &str = "/small";
const SMALL_LENGTH: usize = 1024;
/// The path of the large response.
const LARGE: &str = "/large";
/// The limit for each wait for a large response.
const PATIENCE: Duration = Duration::from_secs(30);

/// The figures of one proxy in one round.
#[derive(Clone, Copy, Debug)]
struct Proxied {
    /// CPU time of a small response, in microseconds.
    user: f64,
    system: f64,
    total: f64,
    /// Small responses per second.
    rate: f64,
    /// The rate of a download in megabytes (a million bytes) per second.
    download: f64,
    /// The peak of resident memory in a download minus the resident memory before, in KiB.
    growth: f64,
}

figures!(Proxied {
    user: "user_us",
    system: "system_us",
    total: "total_us",
    rate: "rate",
    download: "mb_per_s",
    growth: "growth_kib",
});

/// Samples both proxies by turns, in front of the same origin, and prints the tables.
pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    let (rounds, seconds) = (arguments.number("--rounds", 5)?, arguments.number("--seconds", 5)?);
    let connections = arguments.number("--connections", 64)?;
    let megabytes = arguments.number("--megabytes", 100)?;
    let proxies = chosen(arguments)?;
    for (tool, package) in [("nginx", "nginx"), ("wrk", "wrk"), ("setpriv", "util-linux")] {
        require(tool, package)?;
    }
    let facts = machine::facts();
    let workspace = Workspace::open()?;
    workspace.build_bine(&["-p", "bine-cli"].map(OsStr::new))?;
    let length = usize::try_from(megabytes * 1_000_000)?;
    fs::write(workspace.files().join(&LARGE[1..]), vec![b'x'; length])?;
    let origin = start_origin(&workspace)?;
    move_to_core_1()?;
    let run = Run { arguments, workspace: &workspace, facts: &facts };
    let mut samples = Samples::open("proxy", "proxy", &run, proxies.len() * rounds as usize)?;
    let mut all: Vec<Vec<Proxied>> = proxies.iter().map(|_| Vec::new()).collect();
    for round in 1..=rounds {
        for (proxy, own) in proxies.iter().zip(&mut all) {
            own.push(samples.take(&[proxy.name()], round, || {
                let small = proxy.sample(&workspace, origin.port, connections, seconds)?;
                let (download, growth) = proxy.download(&workspace, origin.port, length)?;
                let Sample { user, system, total, rate } = small;
                Ok(Proxied { user, system, total, rate, download, growth })
            })?);
        }
    }
    origin.stop()?;
    println!("{facts}\n\n{}", table(&proxies, &all)?);
    println!(
        "Medians (least-most) of {rounds} rounds. CPU time of the proxy alone, in microseconds per \
         request of a response of {SMALL_LENGTH} bytes, with {connections} kept connections, in {seconds} s. \
         A download has {megabytes} MB; memory is the peak of resident memory minus the resident \
         memory before."
    );
    samples.finish()
}

fn chosen(arguments: &Arguments) -> Result<Vec<Measured>> {
    let Some(names) = arguments.names("--only") else { return Ok(PROXIES.to_vec()) };
    let named = |name| PROXIES.into_iter().find(|proxy| proxy.name() == name);
    let missing = |name| format!("`{name}` is not a proxy of this benchmark: bine, nginx");
    names.into_iter().map(|name| named(name).with_context(|| missing(name))).collect()
}

/// Starts nginx as the origin, on core 1, so that the proxy has core 0 alone.
fn start_origin(workspace: &Workspace) -> Result<Running> {
    let port = free_port()?;
    let body = "x".repeat(SMALL_LENGTH);
    let values = [("@PORT@", &*port.to_string()), ("@BODY@", &body)];
    let command = nginx_with(workspace, &filled(workspace, "nginx-origin.conf", &values)?)?;
    let log = workspace.work.join("origin.log");
    Running::start_on(1, &command, port, SMALL, &log).context("the origin did not start")
}

impl Measured {
    fn name(self) -> &'static str {
        match self {
            Self::Bine => "bine",
            Self::Nginx => "nginx",
        }
    }

    /// The command of the proxy at `port`, with one thread or worker.
    fn command(self, workspace: &Workspace, port: u16, origin: u16) -> Result<Vec<String>> {
        let listen = address(port).to_string();
        match self {
            Self::Bine => {
                let program = workspace.bine("bine").display().to_string();
                // All connections of the load are one client.
                let rule = format!(
                    "to=http://{} connections=1024 connections-per-client=1024 kept=64",
                    address(origin)
                );
                let empty = workspace.work.join("empty");
                fs::create_dir_all(&empty)?;
                let empty = empty.display().to_string();
                let words = [
                    &*program,
                    "serve",
                    &empty,
                    "--listen",
                    &listen,
                    "--loops",
                    "1",
                    "--access-log",
                    "off",
                    "--proxy",
                    &rule,
                ];
                Ok(words.map(String::from).to_vec())
            }
            Self::Nginx => {
                let values = [("@PORT@", &*port.to_string()), ("@ORIGIN@", &origin.to_string())];
                nginx_with(workspace, &filled(workspace, "nginx-proxy.conf", &values)?)
            }
        }
    }

    /// CPU time for each small response.
    fn sample(
        self,
        workspace: &Workspace,
        origin: u16,
        connections: u64,
        seconds: u64,
    ) -> Result<Sample> {
        let port = free_port()?;
        let mut command = Command::new(workspace.root.join("bench/cost.sh"));
        command.args([self.name(), &format!("http://{}{SMALL}", address(port))]);
        command.args([&connections.to_string(), &seconds.to_string(), "--"]);
        let line = output(command.args(self.command(workspace, port, origin)?))?;
        Sample::parse(&line).with_context(|| format!("cost.sh printed `{}`", line.trim()))
    }

    /// Starts the proxy and downloads a large response through it. Returns the rate in megabytes per
    /// second, and the growth of the memory in KiB.
    fn download(self, workspace: &Workspace, origin: u16, length: usize) -> Result<(f64, f64)> {
        let port = free_port()?;
        let command = self.command(workspace, port, origin)?;
        let log = workspace.work.join(format!("{}.log", self.name()));
        let running = Running::start(&command, port, SMALL, &log)
            .with_context(|| format!("{} did not start", self.name()))?;
        let rest = running.memory()?.resident;
        let begun = Instant::now();
        receive(port, length).with_context(|| format!("a download through {}", self.name()))?;
        let rate = length as f64 / 1e6 / begun.elapsed().as_secs_f64();
        let growth = running.peak_memory()?.saturating_sub(rest);
        running.stop()?;
        Ok((rate, growth as f64))
    }
}

/// Requests the large response and checks its length.
fn receive(port: u16, length: usize) -> Result<()> {
    let mut stream = TcpStream::connect(address(port))?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.write_all(request(LARGE).as_bytes())?;
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        ensure!(stream.read(&mut byte)? > 0 && head.len() < 16 << 10, "no complete head");
        head.push(byte[0]);
    }
    ensure!(head.starts_with(b"HTTP/1.1 200 "), "answered {}", String::from_utf8_lossy(&head));
    let mut piece = vec![0; 256 << 10];
    let mut left = length;
    while left > 0 {
        let most = left.min(piece.len());
        match stream.read(&mut piece[..most])? {
            0 => bail!("{left} of {length} bytes are missing"),
            count => left -= count,
        }
    }
    Ok(())
}

fn table(proxies: &[Measured], all: &[Vec<Proxied>]) -> Result<String> {
    let mut lines = vec![
        String::from(
            "| proxy | user | system | total (least-most) | x nginx | requests/s | download, MB/s | memory, KiB |",
        ),
        String::from("|---|---|---|---|---|---|---|---|"),
    ];
    let nginx = proxies.iter().position(|proxy| *proxy == Measured::Nginx);
    for (proxy, own) in proxies.iter().zip(all) {
        let spread =
            |figure: fn(&Proxied) -> f64| Spread::of(own.iter().map(figure)).context("no sample");
        let ratio = nginx.and_then(|place| {
            let pairs = own.iter().zip(&all[place]);
            Spread::of(pairs.map(|(own, nginx)| own.total / nginx.total))
        });
        lines.push(format!(
            "| {} | {:.2} | {:.2} | {} | {} | {:.0} | {:.0} | {:.0} |",
            proxy.name(),
            spread(|sample| sample.user)?.median,
            spread(|sample| sample.system)?.median,
            spread(|sample| sample.total)?,
            ratio.map_or_else(|| String::from("-"), |ratio| format!("{:.2}", ratio.median)),
            spread(|sample| sample.rate)?.median,
            spread(|sample| sample.download)?.median,
            spread(|sample| sample.growth)?.median,
        ));
    }
    Ok(lines.join("\n") + "\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn compares_samples_of_the_same_round() {
        let samples = |totals: [f64; 2], download: f64| {
            let (user, rate, growth) = (1.0, 9.0, 7.0);
            let of = |total| Proxied { user, system: total - user, total, rate, download, growth };
            totals.map(of).to_vec()
        };
        let table =
            table(&PROXIES, &[samples([2.0, 6.0], 100.0), samples([4.0, 4.0], 200.0)]).unwrap();
        let rows: Vec<_> = table.lines().skip(2).collect();
        assert_eq!(rows[0], "| bine | 1.00 | 3.00 | 4.00 (2.00-6.00) | 1.00 | 9 | 100 | 7 |");
        assert_eq!(rows[1], "| nginx | 1.00 | 3.00 | 4.00 (4.00-4.00) | 1.00 | 9 | 200 | 7 |");
    }
}

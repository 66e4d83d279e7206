//! Several nodes on this machine, and the NATS server that connects them.

use std::ffi::OsString;
use std::fmt::{Display, Write as _};
use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::process::ExitStatus;
use std::time::{Duration, Instant};

use bine::Exit;

use super::addresses::Addresses;
use super::processes::{Ended, Event, Output, Process, Processes, describe, say_error};
use super::relay::SELF;
use super::{DevArguments, USAGE, nats, take_option};

/// The time that the NATS server may take to start.
const NATS_TIMEOUT: Duration = Duration::from_secs(30);
/// The interval of attempts to connect to it.
const NATS_INTERVAL: Duration = Duration::from_millis(20);
/// The time that nodes may take to stop.
const NODE_STOP_TIMEOUT: Duration = Duration::from_secs(10);
/// The time that the NATS server may take to stop.
const NATS_STOP_TIMEOUT: Duration = Duration::from_secs(5);
/// The longest wait for an event; nothing depends on it.
const IDLE: Duration = Duration::from_hours(1);
/// The address of the first node, as the server has it without an option.
const DEFAULT_LISTEN: &str = "127.0.0.1:8080";
/// The environment variable of that option.
const LISTEN_VARIABLE: &str = "BINE_LISTEN";
/// Options that each node has for itself.
const OWN_OPTIONS: [&str; 3] = ["cluster", "cluster-node", "control"];

/// Runs nodes until a signal asks to stop.
pub(super) fn run(arguments: DevArguments) -> Exit {
    let plan = match Plan::new(arguments) {
        Ok(plan) => plan,
        Err(message) => return Exit::usage(format!("{message}\n{USAGE}")),
    };
    match plan.run() {
        Ok(()) => Exit::success(),
        Err(message) => Exit::failure(message),
    }
}

/// What is to be started.
struct Plan {
    nats_server: Option<PathBuf>,
    /// The folder of the NATS server's files; `None`: a temporary one.
    data: Option<PathBuf>,
    listen: String,
    count: u8,
    /// The arguments that all nodes have.
    arguments: Vec<OsString>,
}

impl Plan {
    /// # Errors
    ///
    /// A message that names the correction.
    fn new(arguments: DevArguments) -> Result<Self, String> {
        let DevArguments { folder, nodes: count, nats_server, mut options } = arguments;
        for name in OWN_OPTIONS {
            if !take_option(&mut options, name)?.is_empty() {
                return Err(format!("--{name}: `bine dev` sets it for each node; remove it"));
            }
        }
        if options.iter().any(|option| option == "--supervise") {
            return Err(
                "--supervise: `bine dev` starts nodes again by itself; remove it".to_owned()
            );
        }
        let data = take_option(&mut options, "data")?.pop().map(PathBuf::from);
        let given = take_option(&mut options, "listen")?;
        let given = match &given[..] {
            [] => std::env::var_os(LISTEN_VARIABLE),
            [one] => Some(one.clone()),
            _ => {
                return Err("--listen: name the address of the first node; the others have the ports after it".to_owned());
            }
        };
        let listen = given.unwrap_or_else(|| DEFAULT_LISTEN.into());
        let listen = listen.into_string().map_err(|_| "--listen: not UTF-8 text".to_owned())?;
        let mut words: Vec<OsString> = match folder {
            Some(folder) => vec!["serve".into(), folder.into()],
            None => Vec::new(),
        };
        // An option of the user follows, so it takes precedence. The stream has the data, and waiting
        // clients should notice soon that their node has ended.
        let usual = ["--development=on", "--data=memory", "--drain-timeout=3s"];
        words.extend(usual.map(OsString::from));
        words.extend(options);
        Ok(Self { nats_server, data, listen, count, arguments: words })
    }

    fn run(self) -> Result<(), String> {
        let nats_server = nats::find(self.nats_server.clone())?;
        let addresses = Addresses::choose(&self.listen, self.count)?;
        let folder = TemporaryFolder::new()?;
        let processes =
            Processes::new().map_err(|error| format!("cannot watch for signals: {error}"))?;
        let mut group = Group { processes, nats: Vec::new(), nodes: Vec::new(), urls: Vec::new() };
        let outcome = self.serve(&mut group, &nats_server, &addresses, &folder);
        group.processes.stop(&group.nodes, NODE_STOP_TIMEOUT);
        group.processes.stop(&group.nats, NATS_STOP_TIMEOUT);
        group.processes.finish_output();
        outcome
    }

    /// Starts all processes, and starts them again after crashes, until a signal asks to stop.
    fn serve(
        &self,
        group: &mut Group,
        nats_server: &Path,
        addresses: &Addresses,
        folder: &TemporaryFolder,
    ) -> Result<(), String> {
        let data = self.data.clone().unwrap_or_else(|| folder.0.join("nats"));
        let words = nats::arguments(addresses.nats, &data);
        let shown = Output::Only(nats::is_error);
        let server = Process::new("nats".to_owned(), nats_server.into(), words, shown);
        let index = group.processes.start(server).map_err(cannot_start)?;
        group.nats.push(index);
        if !group.await_nats(addresses)? {
            return Ok(());
        }
        for (number, listen) in (1..).zip(&addresses.nodes) {
            let name = format!("node-{number}");
            let url = format!("nats://{}", addresses.nats);
            let control = folder.0.join(&name);
            let mut words = self.arguments.clone();
            let own = ["--listen", listen, "--cluster", &url, "--cluster-node", &name, "--control"];
            words.extend(own.map(OsString::from));
            words.push(control.into());
            let node = Process::new(name, SELF.into(), words, Output::All);
            let index = group.processes.start(node).map_err(cannot_start)?;
            group.nodes.push(index);
            group.urls.push(None);
        }
        group.watch(folder)
    }
}

fn cannot_start(error: impl Display) -> String {
    format!("cannot start a process: {error}")
}

/// The running processes.
struct Group {
    processes: Processes,
    /// The index of the NATS server, once it is started.
    nats: Vec<usize>,
    nodes: Vec<usize>,
    /// The first address of each node, once it has listened.
    urls: Vec<Option<String>>,
}

impl Group {
    /// Waits until the NATS server answers. Returns false if a signal asks to stop.
    fn await_nats(&mut self, addresses: &Addresses) -> Result<bool, String> {
        let deadline = Instant::now() + NATS_TIMEOUT;
        loop {
            if nats::is_ready(addresses.nats) {
                return Ok(true);
            }
            if let Some(Ended { status, .. }) = self.ended()?.pop() {
                self.processes.finish_output();
                let how = describe(status);
                return Err(format!(
                    "the NATS server ended {how} at its start; is its data folder free and writable?"
                ));
            }
            if Instant::now() >= deadline {
                let seconds = NATS_TIMEOUT.as_secs();
                return Err(format!("the NATS server does not answer within {seconds} s"));
            }
            if let Event::Stop = self.processes.wait(NATS_INTERVAL) {
                return Ok(false);
            }
        }
    }

    /// Starts processes again after crashes, until a signal asks to stop or all nodes have stopped.
    fn watch(&mut self, folder: &TemporaryFolder) -> Result<(), String> {
        let mut next = None;
        while self.processes.is_any_alive(&self.nodes) {
            match self.processes.wait(next.unwrap_or(IDLE)) {
                Event::Stop => return Ok(()),
                Event::Listening(index, url) => {
                    if let Some(node) = self.nodes.iter().position(|node| *node == index)
                        && self.urls[node].is_none()
                    {
                        self.urls[node] = Some(url);
                        if self.urls.iter().all(Option::is_some) {
                            self.announce(folder);
                        }
                    }
                }
                Event::Child | Event::EndOfOutput | Event::Timeout => {}
            }
            for ended in self.ended()? {
                self.handle_end(&ended)?;
            }
            next = self.processes.start_due().map_err(cannot_start)?;
        }
        say_error("all nodes have stopped");
        Ok(())
    }

    fn handle_end(&mut self, ended: &Ended) -> Result<(), String> {
        let Ended { index, status } = *ended;
        let name = &self.processes.get(index).name;
        let node = self.nodes.iter().position(|node| *node == index);
        let has_failed = node.is_some_and(|node| self.urls[node].is_none()) && !is_signal(status);
        if has_failed {
            let how = describe(status);
            return Err(format!("{name} could not start and ended {how}; its messages are above"));
        }
        if node.is_some() && status.success() {
            say_error(&format!("{name} has stopped"));
            return Ok(());
        }
        say_error(&format!("{name} ended {} and starts again", describe(status)));
        self.processes.schedule_restart(index);
        Ok(())
    }

    fn ended(&mut self) -> Result<Vec<Ended>, String> {
        self.processes.ended().map_err(|error| format!("cannot query a process: {error}"))
    }

    /// Prints the addresses of all nodes.
    fn announce(&self, folder: &TemporaryFolder) {
        use io::Write as _;
        let count = self.nodes.len();
        let mut text =
            format!("\n{count} nodes share their data. Open any of them; Ctrl-C ends all.\n");
        for (index, url) in self.nodes.iter().zip(&self.urls) {
            let node = self.processes.get(*index);
            let (name, url) = (&node.name, url.as_deref().unwrap_or_default());
            let id = node.id().map_or_else(String::new, |id| format!("  process {id}"));
            // Writing into a String cannot fail.
            let _ = writeln!(text, "  {name}  {url}{id}");
        }
        let control = folder.0.join(&self.processes.get(self.nodes[0]).name);
        let _ = writeln!(text, "To list them: bine cluster status --control {}", control.display());
        let _ = writeln!(text, "To see a crash: kill -9 the process of a node.\n");
        // A closed output is ignored.
        let _ = io::stdout().lock().write_all(text.as_bytes());
    }
}

fn is_signal(status: ExitStatus) -> bool {
    status.code().is_none()
}

/// A folder that only this user can read. It is removed when it is dropped.
struct TemporaryFolder(PathBuf);

impl TemporaryFolder {
    fn new() -> Result<Self, String> {
        let path = std::env::temp_dir().join(format!("bine-dev-{}", std::process::id()));
        // A folder of that name is left by an earlier process with this number, or is not ours.
        let created = DirBuilder::new().mode(0o700).create(&path);
        created.map_err(|error| format!("cannot create {}: {error}", path.display()))?;
        Ok(Self(path))
    }
}

impl Drop for TemporaryFolder {
    fn drop(&mut self) {
        // The system removes what stays.
        let _ = fs::remove_dir_all(&self.0);
    }
}

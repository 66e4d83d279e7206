//! Builds, starts, inspects and stops the measured servers.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::net::TcpStream;
use std::os::unix::fs::MetadataExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicU16, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Error, Result, bail, ensure};

use crate::arguments::Arguments;
use crate::peer::{Peer, address};
use crate::tools::{Workspace, output, pause, require};

/// A measured server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Server {
    /// A raw epoll loop with canned bytes.
    Limit,
    /// The example `hello` for the page, `bine serve` for files.
    Bine,
    Nginx,
    /// nginx, with PHP for the page.
    Php,
    Lighttpd,
    Hyper,
    /// axum for the page, tower-http for files.
    Axum,
}

/// The requested content.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Content {
    /// The hello page.
    Page,
    /// The hello page with the length of the small file; its address has nearly that length.
    LongPage,
    /// A page of the same length with twenty values.
    Values,
    /// A file of this many bytes.
    File(usize),
    /// The same file over TLS.
    SecureFile(usize),
    /// The page of twenty values over TLS. nginx sends canned bytes of the same length.
    SecureValues,
}

/// The parameters of a server.
pub(crate) struct Setting<'run> {
    pub(crate) content: Content,
    pub(crate) port: u16,
    /// Threads, or processes for servers with one thread per process.
    pub(crate) loops: u32,
    /// The bytes that the limit sends instead of the default page.
    pub(crate) canned: Option<&'run Path>,
}

/// A server that has answered a request. Killed with all its processes when dropped.
pub(crate) struct Running {
    leader: Child,
    /// The port of the listener.
    pub(crate) port: u16,
    /// The time from exec to the end of the first response.
    pub(crate) ready_after: Duration,
}

/// Resident memory of a server's processes, in KiB.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Memory {
    /// Includes the program's text and libraries.
    pub(crate) resident: u64,
    /// Excludes file-backed pages.
    pub(crate) anonymous: u64,
}

/// The length of the file in Fremlin, "Serving dynamic webpages in less than a millisecond".
const LONG_PAGE: usize = 984;
/// The cheapest response of nginx.
const HELLO_CANNED: &str =
    r#"default_type "text/html; charset=utf-8"; return 200 "<h1>Hello TLUG</h1>";"#;
const HELLO_PHP: &str = "fastcgi_pass unix:@WORK@/php.sock; fastcgi_keep_conn on; \
    fastcgi_param SCRIPT_FILENAME @WORK@/hello.php; fastcgi_param QUERY_STRING $query_string; \
    fastcgi_param REQUEST_METHOD $request_method;";
/// The program of the Debian package.
pub(crate) const PHP: &str = "php-fpm8.2";
/// Enough workers to keep one core busy without waits.
const PHP_WORKERS: u32 = 4;
/// The largest response that the limit stores in memory and sends in one call.
const LARGEST_CANNED: usize = 32 * 1024;

/// The time limit for the first response: a program in Java that generates data needs several seconds.
const START_LIMIT: Duration = Duration::from_secs(30);
/// The time limit for a stop.
const STOP_LIMIT: Duration = Duration::from_secs(5);

impl Server {
    /// The servers named by `--only`, which must be among `offered`, or `default`.
    pub(crate) fn chosen(
        arguments: &Arguments,
        offered: &[Self],
        default: &[Self],
    ) -> Result<Vec<Self>> {
        let Some(names) = arguments.names("--only") else { return Ok(default.to_vec()) };
        let named = |name| offered.iter().copied().find(|server| server.name() == name);
        names
            .into_iter()
            .map(|name| {
                named(name).with_context(|| format!("`{name}` is not a server of this benchmark"))
            })
            .collect()
    }

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Limit => "limit",
            Self::Bine => "bine",
            Self::Nginx => "nginx",
            Self::Php => "php",
            Self::Lighttpd => "lighttpd",
            Self::Hyper => "hyper",
            Self::Axum => "axum",
        }
    }

    pub(crate) fn serves(self, content: Content) -> bool {
        if content.is_secure() {
            return matches!(self, Self::Bine | Self::Nginx);
        }
        match self {
            // It sends from memory, so it is no comparison for content from a disk.
            Self::Limit => content.len() <= LARGEST_CANNED,
            Self::Bine => true,
            _ if content == Content::Values => false,
            Self::Php | Self::Hyper => content.is_page(),
            Self::Lighttpd => !content.is_page(),
            Self::Nginx => content != Content::LongPage,
            Self::Axum => true,
        }
    }

    /// Whether it can use more than one thread.
    pub(crate) fn scales(self) -> bool {
        !matches!(self, Self::Hyper | Self::Axum)
    }

    /// Builds our programs, so that the current sources are measured; checks that the rest is
    /// installed.
    pub(crate) fn build(self, workspace: &Workspace, content: Content) -> Result<()> {
        require("taskset", "util-linux")?;
        require("setpriv", "util-linux")?;
        let words = |words: &[&'static str]| -> Vec<&OsStr> {
            words.iter().map(|&word| OsStr::new(word)).collect()
        };
        match (self, content) {
            (Self::Limit, _) => workspace.compile("limit", &["-pthread"]).map(drop),
            (Self::Bine, Content::Page | Content::LongPage) => {
                workspace.build_bine(&words(&["--example", "hello"]))
            }
            (Self::Bine, Content::Values) => workspace.build_bine(&words(&["--example", "values"])),
            (Self::Bine, Content::SecureValues) => {
                workspace.make_certificate()?;
                workspace.build_bine(&words(&["--example", "values"]))
            }
            (Self::Bine, Content::File(_)) => workspace.build_bine(&words(&["-p", "bine-cli"])),
            (Self::Bine, Content::SecureFile(_)) => {
                workspace.make_certificate()?;
                workspace.build_bine(&words(&["-p", "bine-cli"]))
            }
            (Self::Nginx, _) => require("nginx", "nginx"),
            (Self::Php, _) => {
                require("nginx", "nginx")?;
                require(PHP, "php-fpm")
            }
            (Self::Lighttpd, _) => require("lighttpd", "lighttpd"),
            (Self::Hyper | Self::Axum, _) => workspace.build_peer_in(self.name()),
        }
    }

    /// The command of a server with this setting.
    pub(crate) fn command(
        self,
        workspace: &Workspace,
        setting: &Setting<'_>,
    ) -> Result<Vec<String>> {
        let built = |name: &str| workspace.target.join(name).display().to_string();
        let (port, loops) = (setting.port.to_string(), setting.loops.to_string());
        let listen = address(setting.port).to_string();
        let files = workspace.files().display().to_string();
        let command = |program: String, words: &[&str]| -> Vec<String> {
            std::iter::once(program).chain(words.iter().map(ToString::to_string)).collect()
        };
        let pem = workspace.certificate().display().to_string();
        let tls = ["--tls", "on", "--certificate", &pem, "--certificate-key", &pem];
        let tls: &[&str] = if setting.content.is_secure() { &tls } else { &[] };
        Ok(match (self, setting.content) {
            (Self::Limit, _) => {
                let mut words = command(built("bench/limit"), &[&port, &loops]);
                words.extend(setting.canned.map(|file| file.display().to_string()));
                words
            }
            (Self::Bine, Content::File(_) | Content::SecureFile(_)) => {
                let words = ["serve", &files, "--listen", &listen, "--loops", &loops];
                command(built("dist/bine"), &[&words, tls].concat())
            }
            (Self::Bine, content) => {
                let is_short = matches!(content, Content::Page | Content::LongPage);
                let example = if is_short { "hello" } else { "values" };
                let words = ["--listen", &listen, "--loops", &loops, "--access-log", "off"];
                command(built(&format!("dist/examples/{example}")), &[&words, tls].concat())
            }
            (Self::Nginx, content) => {
                let listen =
                    if content.is_secure() { NginxListen::Tls } else { NginxListen::Plain };
                nginx(workspace, &port, &loops, HELLO_CANNED, listen)?
            }
            (Self::Php, _) => {
                let workers = (setting.loops * PHP_WORKERS).to_string();
                let pool = filled(workspace, "php-fpm.conf", &[("@WORKERS@", &workers)])?;
                fs::copy(
                    workspace.root.join("bench/peers/hello.php"),
                    workspace.work.join("hello.php"),
                )?;
                // Both in one process group, so that both are counted and stopped.
                let script = r#""$0" --allow-to-run-as-root --nodaemonize --fpm-config "$1" & shift; exec "$@""#;
                let mut words = command(String::from("sh"), &["-c", script, PHP, &pool]);
                words.extend(nginx(workspace, &port, &loops, HELLO_PHP, NginxListen::Plain)?);
                words
            }
            (Self::Lighttpd, _) => {
                let configuration = filled(workspace, "lighttpd.conf", &[("@PORT@", &port)])?;
                command(String::from("lighttpd"), &["-D", "-f", &configuration])
            }
            (Self::Hyper, _) => command(built("bench/hyper/release/bine-bench-hyper"), &[&listen]),
            (Self::Axum, _) => {
                command(built("bench/axum/release/bine-bench-axum"), &[&listen, &files])
            }
        })
    }

    /// Starts nginx or hyper with one loop on core 0, for HTTP/2 by prior knowledge.
    pub(crate) fn start_http2(self, workspace: &Workspace, port: u16) -> Result<Running> {
        let setting = Setting { content: Content::Page, port, loops: 1, canned: None };
        let command = match self {
            Self::Nginx => {
                nginx(workspace, &port.to_string(), "1", HELLO_CANNED, NginxListen::Http2)?
            }
            Self::Hyper => {
                let own = self.command(workspace, &setting)?;
                own.into_iter().chain(["http2".to_owned()]).collect()
            }
            _ => bail!("{} has no HTTP/2 without TLS here", self.name()),
        };
        let log = workspace.work.join(format!("{}.log", self.name()));
        // It answers no request of HTTP/1.1.
        let is_ready = || TcpStream::connect(address(port)).map(drop).map_err(Error::from);
        Running::start_until(0, &command, port, &log, is_ready)
            .with_context(|| format!("{} did not start", self.name()))
    }

    /// Starts the server with one loop on core 0 and waits for its first response.
    ///
    /// Call only from the main thread: the kernel stops the server when the thread that started it
    /// ends.
    pub(crate) fn start(
        self,
        workspace: &Workspace,
        content: Content,
        port: u16,
    ) -> Result<Running> {
        let setting = Setting { content, port, loops: 1, canned: None };
        let command = self.command(workspace, &setting)?;
        let log = workspace.work.join(format!("{}.log", self.name()));
        Running::start(&command, port, &content.path(), &log)
            .with_context(|| format!("{} did not start", self.name()))
    }
}

impl Content {
    pub(crate) fn path(self) -> String {
        match self {
            Self::Page => String::from("/hello?name=TLUG"),
            Self::Values | Self::SecureValues => String::from("/values"),
            Self::LongPage => {
                format!("/hello?name={}", "a".repeat(LONG_PAGE - "<h1>Hello </h1>".len()))
            }
            Self::File(size) | Self::SecureFile(size) => format!("/{size}.html"),
        }
    }

    /// The length of the body in bytes.
    pub(crate) fn len(self) -> usize {
        match self {
            Self::Page => "<h1>Hello TLUG</h1>".len(),
            Self::LongPage | Self::Values | Self::SecureValues => LONG_PAGE,
            Self::File(size) | Self::SecureFile(size) => size,
        }
    }

    pub(crate) fn is_page(self) -> bool {
        !matches!(self, Self::File(_) | Self::SecureFile(_))
    }

    /// Whether it is served over TLS.
    pub(crate) fn is_secure(self) -> bool {
        matches!(self, Self::SecureFile(_) | Self::SecureValues)
    }
}

impl Running {
    /// Runs `command` on core 0 until `path` is answered on `port`; `log` receives its output.
    pub(crate) fn start(command: &[String], port: u16, path: &str, log: &Path) -> Result<Self> {
        Self::start_on(0, command, port, path, log)
    }

    /// The same on the core `core`.
    pub(crate) fn start_on(
        core: u8,
        command: &[String],
        port: u16,
        path: &str,
        log: &Path,
    ) -> Result<Self> {
        let is_ready = || Peer::connect(port).and_then(|mut peer| peer.get(path).map(drop));
        Self::start_until(core, command, port, log, is_ready)
    }

    /// The same, until `is_ready` succeeds.
    pub(crate) fn start_until(
        core: u8,
        command: &[String],
        port: u16,
        log: &Path,
        is_ready: impl Fn() -> Result<()>,
    ) -> Result<Self> {
        let log_file = File::create(log)?;
        let begun = Instant::now();
        let leader = Command::new("setpriv")
            .args(["--pdeathsig", "TERM", "taskset", "--cpu-list", &core.to_string()])
            .args(command)
            .process_group(0)
            .stdin(Stdio::null())
            .stdout(log_file.try_clone()?)
            .stderr(log_file)
            .spawn()?;
        let mut running = Self { leader, port, ready_after: Duration::ZERO };
        loop {
            let answer = is_ready();
            running.ready_after = begun.elapsed();
            let Err(error) = answer else { return Ok(running) };
            let ended = running.leader.try_wait()?;
            if ended.is_some() || running.ready_after > START_LIMIT {
                let text = fs::read_to_string(log).unwrap_or_default();
                bail!("{error:#}; its log: {}", text.trim());
            }
            // Short enough for a start of one millisecond, and yields the core to other threads.
            pause(Duration::from_micros(100));
        }
    }

    /// Sends SIGTERM and waits for the end.
    pub(crate) fn stop(mut self) -> Result<()> {
        self.signal("TERM")?;
        let begun = Instant::now();
        while self.leader.try_wait()?.is_none() {
            ensure!(begun.elapsed() < STOP_LIMIT, "still running {STOP_LIMIT:?} after SIGTERM");
            pause(Duration::from_millis(5));
        }
        Ok(())
    }

    /// Ends it with SIGKILL, with all its processes.
    pub(crate) fn kill(&mut self) -> Result<()> {
        if self.leader.try_wait()?.is_none() {
            self.signal("KILL")?;
            self.leader.wait()?;
        }
        Ok(())
    }

    /// The exit status of the started process, if it has ended.
    pub(crate) fn ended(&mut self) -> Result<Option<ExitStatus>> {
        Ok(self.leader.try_wait()?)
    }

    /// The id of the started process.
    pub(crate) fn leader(&self) -> u32 {
        self.leader.id()
    }

    /// Its processes, including workers of a master process.
    pub(crate) fn processes(&self) -> Result<Vec<u32>> {
        let (members, descendants) = self.members()?;
        Ok([members, descendants].concat())
    }

    /// The processes of the group, and their descendants in different groups: php-fpm begins a new
    /// group.
    fn members(&self) -> Result<(Vec<u32>, Vec<u32>)> {
        let group = self.leader.id();
        let (mut members, mut others) = (Vec::new(), Vec::new());
        for entry in fs::read_dir("/proc")? {
            let Ok(process) = entry?.file_name().to_string_lossy().parse() else { continue };
            // The process may have ended since the folder was listed.
            let stat = fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
            // After the name, which may contain any bytes: state, parent, group.
            let rest = stat.rsplit_once(") ").map_or("", |(_, rest)| rest);
            let mut fields = rest.split(' ').skip(1).map(|field| field.parse::<u32>().ok());
            let (parent, own) = (fields.next().flatten(), fields.next().flatten());
            if own == Some(group) {
                members.push(process);
            } else if let Some(parent) = parent {
                others.push((process, parent));
            }
        }
        let (mut descendants, mut parents) = (Vec::new(), members.clone());
        while !parents.is_empty() {
            let children = others.extract_if(.., |(_, parent)| parents.contains(parent));
            parents = children.map(|(process, _)| process).collect();
            descendants.extend(&parents);
        }
        Ok((members, descendants))
    }

    /// The current memory of all processes.
    pub(crate) fn memory(&self) -> Result<Memory> {
        let mut memory = Memory::default();
        for process in self.processes()? {
            let status = fs::read_to_string(format!("/proc/{process}/status"))?;
            let kibibytes = |name: &str| -> u64 {
                let line = status.lines().find_map(|line| line.strip_prefix(name));
                line.and_then(|line| line.split_whitespace().next()?.parse().ok()).unwrap_or(0)
            };
            memory.resident += kibibytes("VmRSS:");
            memory.anonymous += kibibytes("RssAnon:");
        }
        Ok(memory)
    }

    /// The sum of the peaks of the resident memory of all processes, in KiB.
    pub(crate) fn peak_memory(&self) -> Result<u64> {
        let mut sum = 0;
        for process in self.processes()? {
            let status = fs::read_to_string(format!("/proc/{process}/status"))?;
            let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
            let peak = line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok());
            sum += peak.context("the kernel reports no peak of memory")?;
        }
        Ok(sum)
    }

    /// The CPU seconds of all processes so far, in steps of a hundredth. Includes the processes
    /// that have ended, if their parent still runs.
    pub(crate) fn cpu(&self) -> Result<f64> {
        let mut ticks = 0;
        for process in self.processes()? {
            // The figure of the parent includes a process that has just ended.
            let stat = fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
            let rest = stat.rsplit_once(") ").map_or("", |(_, rest)| rest);
            // The 14th to 17th of all fields: user and kernel mode, of itself and of ended children.
            let fields = rest.split(' ').skip(11).take(4);
            ticks += fields.filter_map(|field| field.parse::<u64>().ok()).sum::<u64>();
        }
        // The kernel always reports hundredths here, whatever its own resolution.
        Ok(ticks as f64 / 100.0)
    }

    /// The number of open sockets of all processes, including listeners.
    pub(crate) fn sockets(&self) -> Result<usize> {
        let mut count = 0;
        for process in self.processes()? {
            for entry in fs::read_dir(format!("/proc/{process}/fd"))? {
                // It may have been closed since the folder was listed.
                let target = fs::read_link(entry?.path()).unwrap_or_default();
                count += usize::from(target.to_string_lossy().starts_with("socket:"));
            }
        }
        Ok(count)
    }

    fn signal(&self, name: &str) -> Result<()> {
        // A descendant may have ended meanwhile.
        let script = r#"group="$1"; shift; [ $# = 0 ] || kill -s "$0" "$@" 2>/dev/null; kill -s "$0" -- "-$group""#;
        let (_, descendants) = self.members()?;
        let mut command = Command::new("sh");
        command.args(["-c", script, name, &self.leader.id().to_string()]);
        command.args(descendants.iter().map(ToString::to_string));
        output(&mut command)?;
        Ok(())
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // An error is already on its way to the caller; the parent-death signal is the fallback.
        let _ = self.kill();
    }
}

/// An unused port, different for each call. Below the range for outgoing connections, because an
/// outgoing connection could take the port of a restarting server.
pub(crate) fn free_port() -> Result<u16> {
    static NEXT: AtomicU16 = AtomicU16::new(18100);
    loop {
        let port = NEXT.fetch_add(1, Ordering::Relaxed);
        ensure!(port < 30000, "no free port from 18100 to 29999");
        if std::net::TcpListener::bind(address(port)).is_ok() {
            return Ok(port);
        }
    }
}

/// The protocol that nginx accepts.
#[derive(Clone, Copy)]
pub(crate) enum NginxListen {
    /// HTTP/1.1.
    Plain,
    /// HTTP/2 by prior knowledge.
    Http2,
    /// Both, over TLS.
    Tls,
}

/// The command of nginx.
pub(crate) fn nginx(
    workspace: &Workspace,
    port: &str,
    loops: &str,
    hello: &str,
    listen: NginxListen,
) -> Result<Vec<String>> {
    let pem = workspace.certificate().display().to_string();
    let (ssl, certificate) = match listen {
        NginxListen::Plain => ("", String::new()),
        NginxListen::Http2 => (" http2", String::new()),
        NginxListen::Tls => {
            (" ssl http2", format!("ssl_certificate {pem}; ssl_certificate_key {pem};"))
        }
    };
    let values = [
        ("@PORT@", port),
        ("@LOOPS@", loops),
        ("@HELLO@", hello),
        ("@VALUES@", &"a".repeat(LONG_PAGE)),
        ("@SSL@", ssl),
        ("@CERTIFICATE@", &certificate),
    ];
    nginx_with(workspace, &filled(workspace, "nginx.conf", &values)?)
}

/// The command of nginx with the configuration in this file.
pub(crate) fn nginx_with(workspace: &Workspace, configuration: &str) -> Result<Vec<String>> {
    let work = workspace.work.display().to_string();
    let mut words =
        ["nginx", "-e", "stderr", "-p", &work, "-c", configuration].map(String::from).to_vec();
    // A worker that drops root privileges might not be able to read the files.
    if fs::metadata("/proc/self")?.uid() == 0 {
        words.extend(["-g", "user root;"].map(String::from));
    }
    Ok(words)
}

/// Fills a server's configuration with our folders and these `values`; returns its path.
pub(crate) fn filled(
    workspace: &Workspace,
    template: &str,
    values: &[(&str, &str)],
) -> Result<String> {
    let mut text = fs::read_to_string(workspace.root.join("bench/peers").join(template))?;
    let (files, work) =
        (workspace.files().display().to_string(), workspace.work.display().to_string());
    for (mark, value) in values.iter().chain(&[("@FILES@", &*files), ("@WORK@", &*work)]) {
        text = text.replace(mark, value);
    }
    let port = values.iter().find(|(mark, _)| *mark == "@PORT@").map_or("", |(_, port)| port);
    let file = workspace.work.join(format!("{port}-{template}"));
    fs::write(&file, text)?;
    Ok(file.display().to_string())
}

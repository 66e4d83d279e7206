//! The folders of a run, its tools, and helpers for processes and threads.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};

/// The folders of one run. Working files are deleted at the end; build output stays.
pub(crate) struct Workspace {
    /// The repository.
    pub(crate) root: PathBuf,
    /// The target folder of cargo.
    pub(crate) target: PathBuf,
    /// Logs, configurations and served files of this run.
    pub(crate) work: PathBuf,
}

impl Workspace {
    /// Creates the folders and raises the limit of open files for this process and its children.
    pub(crate) fn open() -> Result<Self> {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let bench = Path::new(env!("CARGO_MANIFEST_DIR"));
        let root = bench.parent().context("bench/ has no parent")?.to_path_buf();
        let target =
            std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), PathBuf::from);
        let target = std::path::absolute(target)?;
        // Tests open several in one process.
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let work = target.join("bench").join(format!("run-{}-{number}", std::process::id()));
        fs::create_dir_all(work.join("files"))?;
        raise_open_files()?;
        Ok(Self { root, target, work })
    }

    /// The folder of served files.
    pub(crate) fn files(&self) -> PathBuf {
        self.work.join("files")
    }

    /// The file with a certificate and its key.
    pub(crate) fn certificate(&self) -> PathBuf {
        self.work.join("certificate.pem")
    }

    /// Creates a self-signed certificate of the most common kind (ECDSA on P-256).
    pub(crate) fn make_certificate(&self) -> Result<()> {
        require("openssl", "openssl")?;
        let (key, own) = (self.work.join("key.pem"), self.work.join("own.pem"));
        let mut command = Command::new("openssl");
        command.args(["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1"]);
        command.args(["-nodes", "-days", "30", "-subj", "/CN=localhost", "-keyout"]).arg(&key);
        output(command.arg("-out").arg(&own))?;
        let pem = fs::read_to_string(own)? + &fs::read_to_string(key)?;
        Ok(fs::write(self.certificate(), pem)?)
    }

    /// Creates the file `SIZE.html` with that many bytes.
    pub(crate) fn make_file(&self, size: usize) -> Result<()> {
        Ok(fs::write(self.files().join(format!("{size}.html")), vec![b'x'; size])?)
    }

    /// Compiles a C program of this folder and returns its path.
    pub(crate) fn compile(&self, name: &str, options: &[&str]) -> Result<PathBuf> {
        require("cc", "gcc")?;
        let program = self.target.join("bench").join(name);
        let source = self.root.join("bench").join(name).with_extension("c");
        output(Command::new("cc").arg("-O2").args(options).arg("-o").arg(&program).arg(source))?;
        Ok(program)
    }

    /// Builds programs of Bine with the profile that is shipped; cargo's messages are shown.
    pub(crate) fn build_bine(&self, words: &[&OsStr]) -> Result<()> {
        self.cargo_build("dist", words)
    }

    /// The path of a program that [`build_bine`](Self::build_bine) has built: `bine`, or
    /// `examples/NAME`.
    pub(crate) fn bine(&self, name: &str) -> PathBuf {
        self.target.join("dist").join(name)
    }

    /// Builds a peer, which is a separate workspace; cargo's messages are shown.
    pub(crate) fn build_peer(&self, words: &[&OsStr]) -> Result<()> {
        self.cargo_build("release", words)
    }

    /// Builds the peer in the folder `bench/peers/NAME` with its locked dependencies.
    pub(crate) fn build_peer_in(&self, name: &str) -> Result<()> {
        require("cc", "gcc")?;
        let folder = self.peer_folder(name);
        let manifest = format!("bench/peers/{name}/Cargo.toml");
        let words = ["--locked", "--manifest-path", &manifest, "--target-dir"];
        let mut all = words.map(OsStr::new).to_vec();
        all.push(folder.as_os_str());
        self.build_peer(&all)
    }

    /// The folder of the build of a peer.
    pub(crate) fn peer_folder(&self, name: &str) -> PathBuf {
        self.target.join("bench").join(name)
    }

    /// The versions of `crates` in the lock file of `peer`.
    pub(crate) fn locked_versions(&self, peer: &str, crates: &[&str]) -> String {
        let file = self.root.join(format!("bench/peers/{peer}/Cargo.lock"));
        let text = fs::read_to_string(file).unwrap_or_default();
        let version = |name: &&str| {
            let (_, rest) = text.split_once(&format!("name = \"{name}\"\nversion = \""))?;
            Some(format!("{name} {}", rest.split('"').next()?))
        };
        crates.iter().filter_map(version).collect::<Vec<_>>().join("; ")
    }

    /// Builds a program of a Go module in the folder of cargo's output, once for each version, and
    /// returns its path. `module` is the package, `name` the program's name.
    pub(crate) fn build_go(&self, module: &str, version: &str, name: &str) -> Result<PathBuf> {
        let folder = self.target.join("bench/go").join(name).join(version);
        let program = folder.join(name);
        if !program.is_file() {
            require("go", "golang-go")?;
            fs::create_dir_all(&folder)?;
            eprintln!("building {module}@{version}: some minutes, once");
            let mut command = Command::new("go");
            // The module may need a newer Go, which Go 1.21 and later fetch by themselves.
            command.envs([("GOTOOLCHAIN", "auto"), ("CGO_ENABLED", "0"), ("GOFLAGS", "")]);
            command.env("GOBIN", &folder).args(["install", &format!("{module}@{version}")]);
            output(&mut command).context("this needs Go 1.21 or later, from go.dev/dl")?;
        }
        Ok(program)
    }

    fn cargo_build(&self, profile: &str, words: &[&OsStr]) -> Result<()> {
        let mut command = cargo();
        command.current_dir(&self.root).args(["build", "--profile", profile]).args(words);
        ensure!(command.status()?.success(), "failed: {}", command_line(&command));
        Ok(())
    }
}

impl Drop for Workspace {
    fn drop(&mut self) {
        // A folder that cannot be removed is under target/, where `cargo clean` removes it.
        let _ = fs::remove_dir_all(&self.work);
    }
}

/// A command of cargo, without the variables that `cargo run` has set for this program. The build
/// script of `ring` runs again when they change, and with it the build of everything that depends on
/// it.
pub(crate) fn cargo() -> Command {
    let program = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(program);
    for (name, _) in std::env::vars_os() {
        let begins = |prefix| name.to_string_lossy().starts_with(prefix);
        if begins("CARGO_PKG_") || begins("CARGO_MANIFEST_") {
            command.env_remove(&name);
        }
    }
    command
}

/// Fails with the package to install if `tool` is not in the path.
pub(crate) fn require(tool: &str, package: &str) -> Result<()> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let found = std::env::split_paths(&path).any(|folder| folder.join(tool).is_file());
    ensure!(found, "{tool} is missing: apt-get install {package}");
    Ok(())
}

/// Runs a command to its end and returns its stdout; its stderr becomes the error.
pub(crate) fn output(command: &mut Command) -> Result<String> {
    let done = command
        .stdin(Stdio::null())
        .output()
        .with_context(|| format!("cannot run {}", command_line(command)))?;
    if !done.status.success() {
        let errors = String::from_utf8_lossy(&done.stderr);
        bail!("failed: {}\n{}", command_line(command), errors.trim());
    }
    Ok(String::from_utf8_lossy(&done.stdout).into_owned())
}

/// Moves this process, and its future threads and children, to core 1; servers have core 0.
pub(crate) fn move_to_core_1() -> Result<()> {
    require("taskset", "util-linux")?;
    let process = std::process::id().to_string();
    output(Command::new("taskset").args(["--cpu-list", "--pid", "1", &process]))
        .context("benchmarks need two cores")?;
    Ok(())
}

/// Moves the current thread to core 0.
pub(crate) fn move_to_core_0() -> Result<()> {
    let thread = current_thread()?;
    output(Command::new("taskset").args(["--cpu-list", "--pid", "0"]).arg(thread))?;
    Ok(())
}

/// Gives the current thread real-time priority on its core, so that its measurements do not include
/// waits for the processor. The kernel grants this to root.
pub(crate) fn take_priority() -> Result<()> {
    schedule(["--fifo", "--pid", "1"])
}

/// Gives the current thread the lowest priority, so that a load generator takes no time from the
/// measuring thread on its core.
pub(crate) fn yield_priority() -> Result<()> {
    schedule(["--idle", "--pid", "0"])
}

fn schedule(policy: [&str; 3]) -> Result<()> {
    output(Command::new("chrt").args(policy).arg(current_thread()?))?;
    Ok(())
}

fn current_thread() -> Result<OsString> {
    let thread = fs::read_link("/proc/thread-self")?;
    Ok(thread.file_name().context("a thread without id")?.to_owned())
}

/// Sleeps: a benchmark controls its own pace.
pub(crate) fn pause(time: Duration) {
    #[expect(
        clippy::disallowed_methods,
        reason = "the ban protects servers; here time itself is measured"
    )]
    std::thread::sleep(time);
}

/// The standard library cannot raise the limit of this process; prlimit can.
fn raise_open_files() -> Result<()> {
    require("prlimit", "util-linux")?;
    let limits = fs::read_to_string("/proc/self/limits")?;
    let line = limits.lines().find_map(|line| line.strip_prefix("Max open files"));
    let most =
        line.and_then(|line| line.split_whitespace().nth(1)).context("no limit of open files")?;
    let process = std::process::id().to_string();
    output(Command::new("prlimit").args(["--pid", &process, &format!("--nofile={most}:{most}")]))?;
    Ok(())
}

fn command_line(command: &Command) -> String {
    let words = std::iter::once(command.get_program()).chain(command.get_args());
    words.map(OsStr::to_string_lossy).collect::<Vec<_>>().join(" ")
}

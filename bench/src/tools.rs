//! Decides where things are built and kept, and what must be installed.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};

/// The folders of one run. What it keeps while running goes with it; what it builds stays.
pub(crate) struct Workshop {
    /// The repository.
    pub(crate) root: PathBuf,
    /// Cargo's target folder.
    pub(crate) target: PathBuf,
    /// Logs, configurations and served files of this run alone.
    pub(crate) work: PathBuf,
}

impl Workshop {
    /// Makes the folders and lets this process and its children open all the files they may.
    pub(crate) fn open() -> Result<Self> {
        let bench = Path::new(env!("CARGO_MANIFEST_DIR"));
        let root = bench.parent().context("bench/ has no parent")?.to_path_buf();
        let target =
            std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), PathBuf::from);
        let target = std::path::absolute(target)?;
        let work = target.join("bench").join(format!("run-{}", std::process::id()));
        fs::create_dir_all(work.join("files"))?;
        raise_open_files()?;
        Ok(Self { root, target, work })
    }

    /// The folder that servers serve.
    pub(crate) fn files(&self) -> PathBuf {
        self.work.join("files")
    }

    /// A certificate and its key.
    pub(crate) fn certificate(&self) -> PathBuf {
        self.work.join("certificate.pem")
    }

    /// Makes a certificate of the kind that most sites have (ECDSA on P-256), signed by itself.
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

    /// Makes the file `SIZE.html` with that many bytes.
    pub(crate) fn make_file(&self, size: usize) -> Result<()> {
        Ok(fs::write(self.files().join(format!("{size}.html")), vec![b'x'; size])?)
    }

    /// Compiles a C program of this folder and returns where it is.
    pub(crate) fn compile(&self, name: &str, options: &[&str]) -> Result<PathBuf> {
        require("cc", "gcc")?;
        let program = self.target.join("bench").join(name);
        let source = self.root.join("bench").join(name).with_extension("c");
        output(Command::new("cc").arg("-O2").args(options).arg("-o").arg(&program).arg(source))?;
        Ok(program)
    }

    /// Runs cargo's release build, whose messages show.
    pub(crate) fn cargo_build(&self, words: &[&OsStr]) -> Result<()> {
        let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
        let mut command = Command::new(cargo);
        command.current_dir(&self.root).args(["build", "--release"]).args(words);
        ensure!(command.status()?.success(), "failed: {}", shown(&command));
        Ok(())
    }
}

impl Drop for Workshop {
    fn drop(&mut self) {
        // What remains lies under target/, where `cargo clean` finds it.
        let _ = fs::remove_dir_all(&self.work);
    }
}

/// Fails with the package to install if `tool` is not in the path.
pub(crate) fn require(tool: &str, package: &str) -> Result<()> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let found = std::env::split_paths(&path).any(|folder| folder.join(tool).is_file());
    ensure!(found, "{tool} is missing: apt-get install {package}");
    Ok(())
}

/// Runs a command to its end and returns what it printed; its errors become ours.
pub(crate) fn output(command: &mut Command) -> Result<String> {
    let done = command
        .stdin(Stdio::null())
        .output()
        .with_context(|| format!("cannot run {}", shown(command)))?;
    if !done.status.success() {
        let said = String::from_utf8_lossy(&done.stderr);
        bail!("failed: {}\n{}", shown(command), said.trim());
    }
    Ok(String::from_utf8_lossy(&done.stdout).into_owned())
}

/// Moves this process, and the threads and children it will have, to core 1; servers have core 0.
pub(crate) fn leave_core_0() -> Result<()> {
    require("taskset", "util-linux")?;
    let process = std::process::id().to_string();
    output(Command::new("taskset").args(["--cpu-list", "--pid", "1", &process]))
        .context("a measurement needs two cores")?;
    Ok(())
}

/// Moves the current thread alone to core 0.
pub(crate) fn take_core_0() -> Result<()> {
    let thread = current_thread()?;
    output(Command::new("taskset").args(["--cpu-list", "--pid", "0"]).arg(thread))?;
    Ok(())
}

/// Lets the current thread run before all others of its core, so that what it measures is not the
/// wait for its own turn. The kernel grants this to root.
pub(crate) fn come_first() -> Result<()> {
    schedule(["--fifo", "--pid", "1"])
}

/// Lets the current thread run only when no other wants its core, so that a load generator takes
/// nothing from the one who measures beside it.
pub(crate) fn give_way() -> Result<()> {
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

/// Waits: a measurement has its own pace.
pub(crate) fn pause(time: Duration) {
    #[expect(
        clippy::disallowed_methods,
        reason = "the ban protects servers; here time itself is measured"
    )]
    std::thread::sleep(time);
}

/// The standard library cannot raise its own limit; prlimit can do it for us.
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

fn shown(command: &Command) -> String {
    let words = std::iter::once(command.get_program()).chain(command.get_args());
    words.map(OsStr::to_string_lossy).collect::<Vec<_>>().join(" ")
}

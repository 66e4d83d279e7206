//! Decides whether a server is after hours of mixed use what it was after minutes: its memory, its
//! descriptors, its threads.

use std::fs::{self, File};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Barrier};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};

use crate::arguments::Arguments;
use crate::machine;
use crate::peer::{Peer, address, request};
use crate::random::Random;
use crate::servers::free_port;
use crate::tools::{Workshop, output, pause, require};

/// Those who use the server at one time.
const USERS: u64 = 8;
/// From one look at the server to the next. Between two looks all users leave.
const SHIFT: Duration = Duration::from_mins(1);
/// A server takes what it needs in its first minutes; from then on it shall stay the same.
const WARM_UP: u64 = 10;
/// Until then everything comes so many times as fast. What a server keeps of its buffers is as much as its worst moment
/// needed, and the worst moment of hours, when other programs have the machine, is to lie in these minutes.
const HASTE: u64 = 4;
/// The most that a look may be away from the first one that counts, in percent.
const BOUND: f64 = 5.0;
/// A server that is silent for this long has failed a request.
const PATIENCE: Duration = Duration::from_secs(10);
/// After so many shifts the configuration is read again.
const RELOADED_EVERY: u64 = 5;

/// The demo under the use of many, with everything that the use of many brings along.
pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    let minutes = arguments.number("--minutes", 120)?;
    let rate = arguments.number("--rate", 400)?;
    ensure!(minutes > WARM_UP, "--minutes must be more than the {WARM_UP} to warm up");
    require("setpriv", "util-linux")?;
    let shop = Workshop::open()?;
    shop.cargo_build(&["-p".as_ref(), "bine-cli".as_ref()])?;
    for size in [984, 64 * 1024, 10 << 20] {
        shop.make_file(size)?;
    }
    let port = free_port()?;
    let mut server = Served::start(&shop, port)?;
    println!("{}\n", machine::facts());
    println!("| minute | requests | failed | resident, KiB | descriptors | threads |");
    println!("|---|---|---|---|---|---|");
    let pace = 1_000_000 * USERS / rate;
    let shared = Arc::new(Shared {
        port,
        pace: AtomicU64::new(pace / HASTE),
        // The users, and whoever looks.
        barrier: Barrier::new(USERS as usize + 1),
        over: AtomicBool::new(false),
        done: AtomicU64::new(0),
        failed: AtomicU64::new(0),
    });
    let users: Vec<_> = (1..=USERS)
        .map(|seed| {
            let shared = Arc::clone(&shared);
            std::thread::spawn(move || User { random: Random(seed), peer: None, shared }.run())
        })
        .collect();
    let mut looks = Vec::new();
    for minute in 1..=minutes {
        shared.barrier.wait();
        let look = server.look();
        let last = minute == minutes || look.is_err();
        shared.over.store(last, Ordering::Relaxed);
        if minute % RELOADED_EVERY == 0 {
            server.reload()?;
        }
        shared.barrier.wait();
        let look = look?;
        println!(
            "| {minute} | {} | {} | {} | {} | {} |",
            shared.done.load(Ordering::Relaxed),
            shared.failed.load(Ordering::Relaxed),
            look.resident,
            look.descriptors,
            look.threads
        );
        if minute >= WARM_UP {
            looks.push(look);
            shared.pace.store(pace, Ordering::Relaxed);
        }
    }
    for user in users {
        user.join().ok().context("a user panicked")?;
    }
    judge(&looks, shared.failed.load(Ordering::Relaxed))
}

/// What a server has at one moment when nobody uses it.
#[derive(Clone, Copy, Debug)]
struct Look {
    resident: u64,
    descriptors: usize,
    threads: u64,
}

fn judge(looks: &[Look], failed: u64) -> Result<()> {
    let first = looks.first().context("nobody looked")?;
    let (mut least, mut most) = (first.resident, first.resident);
    for look in looks {
        ensure!(
            look.descriptors == first.descriptors,
            "{} descriptors, then {}",
            first.descriptors,
            look.descriptors
        );
        (least, most) = (least.min(look.resident), most.max(look.resident));
    }
    let percent = |resident: u64| (resident as f64 / first.resident as f64 - 1.0) * 100.0;
    println!("\nresident {:+.1} % to {:+.1} % of minute {WARM_UP}", percent(least), percent(most));
    ensure!(percent(most) <= BOUND, "memory grew by more than {BOUND} %");
    ensure!(failed == 0, "{failed} requests failed");
    Ok(())
}

/// The server. Asked to stop when dropped.
struct Served {
    child: Child,
    /// What it serves.
    files: PathBuf,
}

impl Served {
    fn start(shop: &Workshop, port: u16) -> Result<Self> {
        let listen = address(port).to_string();
        let files = shop.files().display().to_string();
        let access = shop.work.join("access.log").display().to_string();
        let said = File::create(shop.work.join("soak.log"))?;
        let child = Command::new("setpriv")
            .args(["--pdeathsig", "TERM"])
            .arg(shop.target.join("release/bine"))
            .args(["--listen", &listen, "--root", &files, "--access-log", &access])
            .args(["--write-timeout", "5s"])
            .stdin(Stdio::null())
            .stdout(said.try_clone()?)
            .stderr(said)
            .spawn()?;
        let own = Self { child, files: shop.files() };
        let begun = Instant::now();
        while let Err(error) =
            Peer::connect(port).and_then(|mut peer| peer.get("/984.html").map(drop))
        {
            ensure!(begun.elapsed() < PATIENCE, "it did not start: {error:#}");
            pause(Duration::from_millis(20));
        }
        Ok(own)
    }

    /// Waits until those who left are noticed: as many descriptors twice in a row.
    fn look(&mut self) -> Result<Look> {
        ensure!(self.child.try_wait()?.is_none(), "the server has ended");
        let process = self.child.id();
        let count = || -> Result<usize> {
            let mut count = 0;
            for entry in fs::read_dir(format!("/proc/{process}/fd"))? {
                // Served files are kept open while they are asked for, and come and go by that.
                let target = fs::read_link(entry?.path()).unwrap_or_default();
                count += usize::from(!target.starts_with(&self.files));
            }
            Ok(count)
        };
        let mut descriptors = count()?;
        loop {
            // Whoever stopped reading is given up after the write timeout of five seconds.
            pause(Duration::from_secs(6));
            let now = count()?;
            if now == descriptors {
                break;
            }
            descriptors = now;
        }
        let status = fs::read_to_string(format!("/proc/{process}/status"))?;
        let number = |name: &str| -> Result<u64> {
            let line = status.lines().find_map(|line| line.strip_prefix(name));
            let word = line.and_then(|line| line.split_whitespace().next());
            word.and_then(|word| word.parse().ok()).with_context(|| format!("no {name}"))
        };
        Ok(Look { resident: number("VmRSS:")?, descriptors, threads: number("Threads:")? })
    }

    fn reload(&self) -> Result<()> {
        let script = r#"kill -s HUP "$0""#;
        output(Command::new("sh").args(["-c", script, &self.child.id().to_string()]))?;
        Ok(())
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        // On the way out there is nobody left to tell.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

struct Shared {
    port: u16,
    /// From one step of a user to the next, in microseconds.
    pace: AtomicU64,
    barrier: Barrier,
    over: AtomicBool,
    done: AtomicU64,
    failed: AtomicU64,
}

struct User {
    random: Random,
    /// A connection that is kept between requests.
    peer: Option<Peer>,
    shared: Arc<Shared>,
}

impl User {
    fn run(mut self) {
        while !self.shared.over.load(Ordering::Relaxed) {
            let begun = Instant::now();
            let mut due = begun;
            while begun.elapsed() < SHIFT {
                if let Err(error) = self.step() {
                    eprintln!("failed: {error:#}");
                    self.shared.failed.fetch_add(1, Ordering::Relaxed);
                    self.peer = None;
                }
                self.shared.done.fetch_add(1, Ordering::Relaxed);
                due += Duration::from_micros(self.shared.pace.load(Ordering::Relaxed));
                pause(due.saturating_duration_since(Instant::now()));
            }
            self.peer = None;
            self.shared.barrier.wait();
            // Somebody looks.
            self.shared.barrier.wait();
        }
    }

    /// One thing that users do, mostly what most of them do.
    fn step(&mut self) -> Result<()> {
        match self.random.below(1000) {
            0..500 => self.kept("/hello?name=soak"),
            500..650 => self.kept("/984.html"),
            650..750 => self.kept("/65536.html"),
            750..760 => self.kept("/10485760.html"),
            760..820 => self.kept("/board/garden"),
            820..850 => self.post(),
            850..880 => self.once("GET /65536.html HTTP/1.1\r\nHost: a\r\nRange: bytes=9-99\r\n", 206),
            880..900 => self.once(
                "GET /984.html HTTP/1.1\r\nHost: a\r\nIf-Modified-Since: Fri, 01 Jan 2100 00:00:00 GMT\r\n",
                304,
            ),
            900..930 => self.once("GET /nothing HTTP/1.1\r\nHost: a\r\n", 404),
            930..950 => self.once("GET / HTTP/1.1\r\nHost : a\r\n", 400),
            950..970 => self.abandon(b"GET /hello HTTP/1.1\r\nHos"),
            970..985 => self.abandon(b""),
            // A long file of which nothing is read.
            985..990 => self.abandon(request("/10485760.html").as_bytes()),
            _ => self.kept_pipeline(),
        }
    }

    /// A request on the connection that is kept; now and then on a new one.
    fn kept(&mut self, path: &str) -> Result<()> {
        if self.random.below(50) == 0 {
            self.peer = None;
        }
        let mut peer = match self.peer.take() {
            Some(peer) => peer,
            None => Peer::connect(self.shared.port)?,
        };
        peer.get(path).with_context(|| path.to_owned())?;
        self.peer = Some(peer);
        Ok(())
    }

    fn connect(&self) -> Result<TcpStream> {
        let stream = TcpStream::connect(address(self.shared.port))?;
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.set_write_timeout(Some(PATIENCE))?;
        Ok(stream)
    }

    /// A request on a connection of its own, whose answer must have `status`.
    fn once(&self, head: &str, status: u16) -> Result<()> {
        self.ask(&format!("{head}Connection: close\r\n\r\n"), status)
    }

    fn ask(&self, bytes: &str, status: u16) -> Result<()> {
        let mut stream = self.connect()?;
        stream.write_all(bytes.as_bytes())?;
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer)?;
        if !answer.starts_with(format!("HTTP/1.1 {status} ").as_bytes()) {
            let line = answer.split(|&byte| byte == b'\r').next().unwrap_or_default();
            bail!("`{}` in place of {status}", String::from_utf8_lossy(line));
        }
        Ok(())
    }

    fn post(&self) -> Result<()> {
        let body = "author=Soak&body=Water+the+hops";
        let head = "POST /board/garden HTTP/1.1\r\nHost: a\r\nContent-Type: application/x-www-form-urlencoded\r\n";
        let length = body.len();
        self.ask(&format!("{head}Content-Length: {length}\r\nConnection: close\r\n\r\n{body}"), 303)
    }

    /// Says something, perhaps, and leaves without a word.
    fn abandon(&self, said: &[u8]) -> Result<()> {
        Ok(self.connect()?.write_all(said)?)
    }

    /// Sixteen requests at once, the last one of the connection.
    fn kept_pipeline(&self) -> Result<()> {
        let mut bytes = request("/hello?name=a").repeat(15);
        bytes += "GET /hello HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n";
        self.ask(&bytes, 200)
    }
}

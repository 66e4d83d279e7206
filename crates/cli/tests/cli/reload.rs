//! Tests of a server that reloads its configuration, and of the commands that control it.

use std::net::{SocketAddr, TcpListener};
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use crate::bine;
use crate::harness::{Ended, Folder, KINDS, Peer, Program};

/// A folder with the files of two sites and a configuration.
struct Site(Folder);

impl Site {
    fn new() -> Self {
        let folder = Folder::new();
        folder.write("one/index.html", b"one");
        folder.write("two/index.html", b"two");
        Self(folder)
    }

    /// Writes the configuration, which always contains an address and a control socket.
    fn configure(&self, scheduler: &str, rest: &str) {
        // A full pool would give the thread of an idle connection to a new one.
        let head = "listen = \"127.0.0.1:0\"\ncontrol = \"control\"\nloops = 2\nworkers = 64\n";
        let text = format!("{head}scheduler = \"{scheduler}\"\n{rest}");
        self.0.write("bine.toml", text.as_bytes());
    }

    fn bine(&self, word: &str) -> Command {
        let config = self.0.join("bine.toml");
        bine(&[word, "--config", config.to_str().unwrap()])
    }

    fn run(&self, word: &str) -> Ended {
        Program::run(&mut self.bine(word))
    }
}

#[test]
fn reloads_for_new_connections_and_ignores_wrong_file() {
    for scheduler in KINDS {
        let site = Site::new();
        site.configure(scheduler, "root = \"one\"\n");
        let program = Program::start(&mut site.bine("serve"));
        let mut old = program.connect();
        assert_eq!(old.get("/").text(), "one");
        site.configure(scheduler, "root = \"two\"\n");
        let ended = site.run("reload");
        assert_eq!((ended.code, ended.errors.as_str()), (Some(0), ""));
        assert_eq!(program.connect().get("/").text(), "two", "{scheduler}");
        assert_eq!(old.get("/").text(), "one", "{scheduler}");
        for (wrong, line, reason) in [
            ("rot = \"one\"\n", 6, "unknown setting `rot`; did you mean `root`?"),
            ("root = \"one\nx = 1\n", 6, ""),
            ("root = \"one\"\n[[site]]\nroot = \"two\"\n", 7, "a site says for whom it is"),
        ] {
            site.configure(scheduler, wrong);
            let ended = site.run("reload");
            assert_eq!(ended.code, Some(1), "{ended:?}");
            let expected = format!("bine.toml:{line}: {reason}");
            assert!(ended.errors.contains(&expected), "{expected} is not in {}", ended.errors);
            assert_eq!(program.connect().get("/").text(), "two", "{scheduler}");
        }
        let ended = program.stop();
        assert_eq!(ended.code, Some(0));
        assert!(
            ended.errors.contains("bine.toml:6: "),
            "the log contains the error: {}",
            ended.errors
        );
    }
}

#[test]
fn failed_reload_keeps_the_log() {
    let site = Site::new();
    site.configure("hybrid", "root = \"one\"\n");
    let program = Program::start(&mut site.bine("serve"));
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap();
    let text = format!(
        "listen = [\"127.0.0.1:0\", \"{address}\"]\ncontrol = \"control\"\nroot = \"two\"\n\
         error-log = \"new.log\"\n"
    );
    site.0.write("bine.toml", text.as_bytes());
    let ended = site.run("reload");
    assert_eq!(ended.code, Some(1), "{ended:?}");
    assert_eq!(program.connect().get("/").text(), "one");
    let log = program.stop().errors;
    assert!(log.contains("nothing has changed"), "{log}");
}

#[test]
fn reports_settings_that_need_a_restart() {
    let site = Site::new();
    site.configure("hybrid", "root = \"one\"\n");
    let program = Program::start(&mut site.bine("serve"));
    site.configure("event", "root = \"two\"\n");
    let ended = site.run("reload");
    assert_eq!((ended.code, ended.errors.as_str()), (Some(0), "bine: scheduler needs a restart\n"));
    assert_eq!(program.connect().get("/").text(), "two");
}

#[test]
fn reports_status_and_stops_on_command() {
    let site = Site::new();
    site.configure("hybrid", "root = \"one\"\n");
    let program = Program::start(&mut site.bine("serve"));
    let status = site.run("status");
    assert!(status.output.contains("listening on http://127.0.0.1:"), "{status:?}");
    assert_eq!(site.run("stop").code, Some(0));
    assert_eq!(program.wait().code, Some(0));
    let ended = site.run("reload");
    assert_eq!(ended.code, Some(1));
    assert!(ended.errors.contains("no server answers at"), "{}", ended.errors);
}

#[test]
fn selects_site_by_host() {
    let site = Site::new();
    site.configure(
        "hybrid",
        "root = \"one\"\n[[site]]\nhosts = [\"two.org\", \"*.two.org\"]\nroot = \"two\"\n",
    );
    let program = Program::start(&mut site.bine("serve"));
    let mut peer = program.connect();
    for (host, text) in [("two.org", "two"), ("A.Two.org:80", "two"), ("one.org", "one")] {
        peer.send(format!("GET / HTTP/1.1\r\nHost: {host}\r\n\r\n"));
        assert_eq!(peer.reply().text(), text, "{host}");
    }
}

#[test]
fn fails_no_request_during_a_hundred_reloads() {
    for scheduler in KINDS {
        println!("on {scheduler}:");
        let site = Site::new();
        site.configure(scheduler, "root = \"one\"\n");
        let program = Program::start(&mut site.bine("serve"));
        let stop = AtomicBool::new(false);
        thread::scope(|scope| {
            for keeps_connection in [true, false] {
                let (stop, address) = (&stop, program.address());
                scope.spawn(move || send_requests(address, keeps_connection, stop));
            }
            let _stop = StopOnDrop(&stop);
            for number in 0..100 {
                let name = ["one", "two"][number % 2];
                site.configure(scheduler, &format!("root = \"{name}\"\n"));
                assert_eq!(site.run("reload").code, Some(0));
                assert_eq!(program.connect().get("/").text(), name, "{scheduler}");
            }
        });
        assert_eq!(program.stop().code, Some(0));
    }
}

/// Sets the flag on drop, also after a panic: a scope waits for its threads.
struct StopOnDrop<'o>(&'o AtomicBool);

impl Drop for StopOnDrop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::SeqCst);
    }
}

fn send_requests(address: SocketAddr, keeps_connection: bool, stop: &AtomicBool) {
    let mut peer = Peer::tcp(address);
    while !stop.load(Ordering::SeqCst) {
        if !keeps_connection {
            peer = Peer::tcp(address);
        }
        assert_eq!(peer.get("/").status(), 200);
    }
}

#[test]
fn checks_and_shows_configuration() {
    let site = Site::new();
    site.configure("hybrid", "root = \"one\"\n");
    let ended = site.run("check-config");
    assert_eq!((ended.code, ended.output.as_str()), (Some(0), "OK\n"), "{}", ended.errors);
    let shown = site.run("config").output;
    assert!(
        shown.contains("bine.toml:6\n") && shown.contains("queue = 1024  # default\n"),
        "{shown}"
    );
    site.configure("hybrid", "root = \"absent\"\n");
    assert_eq!(site.run("check-config").code, Some(1));
    site.configure("hybrid", "root = 1.5\n");
    assert_eq!(site.run("check-config").code, Some(2));
}

/// A configuration with many settings that a reload may change, as the base of mutations.
const FULL: &str = r#"
index = ["index.html", "start.html"]  # two
field = ["*.css Cache-Control: max-age=3600"]
hidden = false
listing = "on"
idle-timeout = "50s"
most-head = "16k"
access-log-format = "%h %s"
connections = 1000

[[site]]
hosts = ["example.org", "*.example.org"]
root = "two"

[[site]]
hosts = ["b.org"]
pages = false
root = 'one'
"#;

#[test]
fn survives_two_hundred_mutated_configurations() {
    let site = Site::new();
    site.0.write("bine.toml", FULL.as_bytes());
    // A file cannot override an option: address and control socket remain.
    let mut command = site.bine("serve");
    command.args(["--listen", "127.0.0.1:0", "--control"]).arg(site.0.join("control"));
    command.arg("--root").arg(site.0.join("one"));
    let program = Program::start(&mut command);
    let mut state = 1_u64;
    let mut draw = |bound: usize| {
        // Xorshift (Marsaglia 2003) generates the same files in each run.
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state % bound as u64) as usize
    };
    let (mut taken, mut refused) = (0, 0);
    for _ in 0..200 {
        let mut text = FULL.as_bytes().to_vec();
        for _ in 0..=draw(2) {
            let start = draw(text.len());
            let end = text.len().min(start + draw(2));
            let instead = [
                "", "\"", "[", "=", "\n", "'", "#", "x", "9", "\u{e4}", "\0", ".", " ", "a", "1",
                "0",
            ];
            text.splice(start..end, instead[draw(instead.len())].bytes());
        }
        site.0.write("bine.toml", &text);
        let ended = Program::run(Command::new(env!("CARGO_BIN_EXE_bine")).args([
            "reload",
            "--control",
            site.0.join("control").to_str().unwrap(),
        ]));
        let shown = String::from_utf8_lossy(&text);
        match ended.code {
            Some(0) => taken += 1,
            Some(1) => {
                refused += 1;
                let line = ended.errors.split("bine.toml:").nth(1);
                let line = line.and_then(|rest| rest.split(':').next()?.parse().ok());
                let has_line =
                    line.is_some_and(|line: usize| (1..=shown.lines().count() + 1).contains(&line));
                // A missing folder is reported by its own name.
                let names_folder = ended.errors.contains("cannot serve files from ");
                assert!(has_line || names_folder, "{}\n{shown}", ended.errors);
            }
            _ => panic!("{ended:?}\n{shown}"),
        }
        assert_eq!(program.connect().get("/index.html").text(), "one", "{shown}");
    }
    assert!(
        taken > 20 && refused > 20,
        "{taken} taken, {refused} refused: the mutations are too weak or too strong"
    );
    assert_eq!(program.stop().code, Some(0));
}

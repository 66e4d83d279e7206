//! Claims about a server that reads its configuration again, and about what it is told by.

use std::net::SocketAddr;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use crate::bine;
use crate::harness::{Ended, Folder, KINDS, Peer, Program};

/// A folder with two sites' files and a configuration.
struct Site(Folder);

impl Site {
    fn new() -> Self {
        let folder = Folder::new();
        folder.write("one/index.html", b"one");
        folder.write("two/index.html", b"two");
        Self(folder)
    }

    /// Writes the configuration, which always has an address and a control socket.
    fn configure(&self, scheduler: &str, rest: &str) {
        // A pool that is full would give the thread of an idle connection to a newcomer.
        let head = "listen = \"127.0.0.1:0\"\ncontrol = \"control\"\nloops = 2\nworkers = 64\n";
        let text = format!("{head}scheduler = \"{scheduler}\"\n{rest}");
        self.0.write("bine.toml", text.as_bytes());
    }

    fn bine(&self, word: &str) -> Command {
        let config = self.0.join("bine.toml");
        bine(&[word, "--config", config.to_str().unwrap()])
    }

    fn tell(&self, word: &str) -> Ended {
        Program::run(&mut self.bine(word))
    }
}

#[test]
fn a_reload_is_for_newcomers_and_a_wrong_file_changes_nothing() {
    for scheduler in KINDS {
        let site = Site::new();
        site.configure(scheduler, "root = \"one\"\n");
        let program = Program::start(&mut site.bine("serve"));
        let mut old = program.connect();
        assert_eq!(old.get("/").text(), "one");
        site.configure(scheduler, "root = \"two\"\n");
        let told = site.tell("reload");
        assert_eq!((told.code, told.errors.as_str()), (Some(0), ""));
        assert_eq!(program.connect().get("/").text(), "two", "{scheduler}");
        assert_eq!(old.get("/").text(), "one", "{scheduler}");
        for (wrong, line, reason) in [
            ("rot = \"one\"\n", 6, "unknown setting `rot`; did you mean `root`?"),
            ("root = \"one\nx = 1\n", 6, ""),
            ("root = \"one\"\n[[site]]\nroot = \"two\"\n", 7, "a site says for whom it is"),
        ] {
            site.configure(scheduler, wrong);
            let told = site.tell("reload");
            assert_eq!(told.code, Some(1), "{told:?}");
            let expected = format!("bine.toml:{line}: {reason}");
            assert!(told.errors.contains(&expected), "{expected} is not in {}", told.errors);
            assert_eq!(program.connect().get("/").text(), "two", "{scheduler}");
        }
        let ended = program.stop();
        assert_eq!(ended.code, Some(0));
        assert!(ended.errors.contains("bine.toml:6: "), "the log has it too: {}", ended.errors);
    }
}

#[test]
fn what_needs_a_restart_is_told_and_the_rest_is_taken() {
    let site = Site::new();
    site.configure("hybrid", "root = \"one\"\n");
    let program = Program::start(&mut site.bine("serve"));
    site.configure("event", "root = \"two\"\n");
    let told = site.tell("reload");
    assert_eq!((told.code, told.errors.as_str()), (Some(0), "bine: scheduler needs a restart\n"));
    assert_eq!(program.connect().get("/").text(), "two");
}

#[test]
fn a_server_can_be_asked_and_stopped_by_its_own_user() {
    let site = Site::new();
    site.configure("hybrid", "root = \"one\"\n");
    let program = Program::start(&mut site.bine("serve"));
    let status = site.tell("status");
    assert!(status.output.contains("listening on http://127.0.0.1:"), "{status:?}");
    assert_eq!(site.tell("stop").code, Some(0));
    assert_eq!(program.wait().code, Some(0));
    let told = site.tell("reload");
    assert_eq!(told.code, Some(1));
    assert!(told.errors.contains("no server answers at"), "{}", told.errors);
}

#[test]
fn a_site_is_found_by_its_host() {
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
fn a_hundred_reloads_under_load_fail_no_request() {
    for scheduler in KINDS {
        println!("on {scheduler}:");
        let site = Site::new();
        site.configure(scheduler, "root = \"one\"\n");
        let program = Program::start(&mut site.bine("serve"));
        let over = AtomicBool::new(false);
        thread::scope(|scope| {
            for kept in [true, false] {
                let (over, address) = (&over, program.address());
                scope.spawn(move || talk(address, kept, over));
            }
            let _over = Over(&over);
            for number in 0..100 {
                let name = ["one", "two"][number % 2];
                site.configure(scheduler, &format!("root = \"{name}\"\n"));
                assert_eq!(site.tell("reload").code, Some(0));
                assert_eq!(program.connect().get("/").text(), name, "{scheduler}");
            }
        });
        assert_eq!(program.stop().code, Some(0));
    }
}

/// Says that it is over, be it by a failure: a scope waits for its threads.
struct Over<'o>(&'o AtomicBool);

impl Drop for Over<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::SeqCst);
    }
}

fn talk(address: SocketAddr, kept: bool, over: &AtomicBool) {
    let mut peer = Peer::tcp(address);
    while !over.load(Ordering::SeqCst) {
        if !kept {
            peer = Peer::tcp(address);
        }
        assert_eq!(peer.get("/").status(), 200);
    }
}

#[test]
fn a_configuration_is_checked_and_shown() {
    let site = Site::new();
    site.configure("hybrid", "root = \"one\"\n");
    let told = site.tell("check-config");
    assert_eq!((told.code, told.output.as_str()), (Some(0), "OK\n"), "{}", told.errors);
    let shown = site.tell("config").output;
    assert!(
        shown.contains("bine.toml:6\n") && shown.contains("queue = 1024  # default\n"),
        "{shown}"
    );
    site.configure("hybrid", "root = \"absent\"\n");
    assert_eq!(site.tell("check-config").code, Some(1));
    site.configure("hybrid", "root = 1.5\n");
    assert_eq!(site.tell("check-config").code, Some(2));
}

/// A configuration of much that a reload may change, for mutations.
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
fn two_hundred_mutated_files_are_taken_or_told_of_and_the_server_goes_on() {
    let site = Site::new();
    site.0.write("bine.toml", FULL.as_bytes());
    // What a flag says no file can change: the address stays, and so does the way to ask for a reload.
    let mut command = site.bine("serve");
    command.args(["--listen", "127.0.0.1:0", "--control"]).arg(site.0.join("control"));
    command.arg("--root").arg(site.0.join("one"));
    let program = Program::start(&mut command);
    let mut state = 1_u64;
    let mut draw = |bound: usize| {
        // Xorshift (Marsaglia 2003): the same files each time.
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
        let told = Program::run(Command::new(env!("CARGO_BIN_EXE_bine")).args([
            "reload",
            "--control",
            site.0.join("control").to_str().unwrap(),
        ]));
        let shown = String::from_utf8_lossy(&text);
        match told.code {
            Some(0) => taken += 1,
            Some(1) => {
                refused += 1;
                let line = told.errors.split("bine.toml:").nth(1);
                let line = line.and_then(|rest| rest.split(':').next()?.parse().ok());
                let is_there =
                    line.is_some_and(|line: usize| (1..=shown.lines().count() + 1).contains(&line));
                // A folder that is not there is told by its own name.
                let is_named = told.errors.contains("cannot serve files from ");
                assert!(is_there || is_named, "{}\n{shown}", told.errors);
            }
            _ => panic!("{told:?}\n{shown}"),
        }
        assert_eq!(program.connect().get("/index.html").text(), "one", "{shown}");
    }
    assert!(
        taken > 20 && refused > 20,
        "{taken} taken, {refused} refused: the mutations are too weak or too strong"
    );
    assert_eq!(program.stop().code, Some(0));
}

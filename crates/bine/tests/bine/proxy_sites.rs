//! Unmodified sites in PHP and Python behind the proxy: Bine answers channels, the site all else.

use std::io::{BufRead as _, BufReader};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::channel;
use std::thread;

use crate::harness::{PATIENCE, Peer};
use crate::proxy::start;

/// The server of a site, which ends with the test.
struct Site {
    child: Child,
    address: String,
}

impl Site {
    /// Starts a server and waits until it prints its address.
    fn start(command: &mut Command) -> Self {
        let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/origins");
        let command = command.current_dir(root).stdin(Stdio::null());
        let mut child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
        let lines = BufReader::new(child.stderr.take().unwrap()).lines();
        let (tell, told) = channel();
        thread::spawn(move || {
            for line in lines.map_while(Result::ok) {
                if let Some((_, rest)) = line.split_once("http://127.0.0.1:") {
                    let port: String = rest.chars().take_while(char::is_ascii_digit).collect();
                    // The test has ended if nobody listens.
                    let _ = tell.send(port);
                }
            }
        });
        let port = told.recv_timeout(PATIENCE).expect("the site prints its address");
        Self { child, address: format!("http://127.0.0.1:{port}") }
    }
}

impl Drop for Site {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Whether this command succeeds, so that the site can run here.
fn is_installed(program: &str, arguments: &[&str]) -> bool {
    let mut command = Command::new(program);
    command.args(arguments).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let is_there = command.status().is_ok_and(|status| status.success());
    if !is_there {
        println!("{program} {} is missing, so its site is left out", arguments.join(" "));
    }
    is_there
}

/// Twenty visitors wait for a message, one publishes it by a form of the site, and all get it. The
/// site runs one request at a time, so it could not hold one of those that wait.
fn check(title: &str, site: impl FnOnce(&str) -> Command) {
    let folder = crate::harness::Folder::new();
    let file = folder.write(
        "bine.toml",
        b"channels-follow = [\"public/*\"]\nchannels-publish = [\"public/*\"]\n",
    );
    let file = file.to_str().unwrap();
    let program = start(&["--config", file]);
    let url = format!("http://{}", program.address());
    let site = Site::start(&mut site(&url));
    let rule = format!("[[proxy]]\nto = [\"{}\"]\n", site.address);
    let text = std::fs::read_to_string(file).unwrap() + &rule;
    std::fs::write(file, text).unwrap();
    program.signal(rustix::process::Signal::HUP);
    let patience = std::time::Instant::now() + PATIENCE;
    while program.connect().get("/").status() != 200 {
        assert!(std::time::Instant::now() < patience, "the site is not proxied");
    }
    let mut visitors: Vec<Peer> = (0..20).map(|_| program.connect()).collect();
    for visitor in &mut visitors {
        let page = visitor.get("/");
        assert!(page.text().contains(&format!("<title>{title}</title>")), "{}", page.text());
        assert!(page.text().contains("A page for 127.0.0.1"), "{}", page.text());
        visitor.send("GET /channels?c=public/news&after=earliest HTTP/1.1\r\nHost: a\r\n\r\n");
    }
    let fields = "Content-Type: application/x-www-form-urlencoded\r\n";
    let posted = program.connect().request("POST", "/", fields, "text=good+news");
    assert_eq!((posted.status(), posted.header("Location")), (303, Some("/")));
    for visitor in &mut visitors {
        let reply = visitor.reply();
        assert!(reply.text().contains("good news"), "{}", reply.text());
    }
}

#[test]
fn site_in_php_gains_push() {
    if is_installed("php", &["--version"]) {
        check("PHP", |url| {
            let mut command = Command::new("php");
            command.args(["-S", "127.0.0.1:0", "index.php"]);
            command.env("BINE_URL", url);
            command
        });
    }
}

#[test]
fn site_in_flask_gains_push() {
    if is_installed("python3", &["-c", "import flask"]) {
        check("Flask", |url| {
            let mut command = Command::new("python3");
            command.args(["-m", "flask", "--app", "news", "run", "--port", "0"]);
            command.env("BINE_URL", url);
            command.env("PYTHONDONTWRITEBYTECODE", "1");
            command
        });
    }
}

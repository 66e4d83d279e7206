//! Runs the commands of the guide, chapter by chapter and in order.
//!
//! A block of `sh` runs in an empty folder and must succeed; a block of `sh server` is started and
//! runs until the chapter ends; a block of `toml` is saved as `bine.toml` and checked. The
//! documentation tests of `bine` compile the Rust blocks, and run them where possible.
//!
//! A block with the name of a file of an application in TSX, such as `tsx index.tsx`, is saved in the
//! folder `board`. The blocks of `sh tsx` and `sh tsx server` need the feature `script`. If a chapter
//! has such files and starts no server for them, its files are served together, and each page must
//! answer.
//!
//! A block of `sh nats` starts a NATS server, and `sh nats server` and `sh nats command` use it; a
//! block of `sh nats dev` is a command that starts one by itself. They need the feature `cluster`, and
//! the variable `NATS_SERVER` with the path of the program.

use std::collections::BTreeSet;
use std::fs;
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Output};
use std::thread;
use std::time::{Duration, Instant};

use bine_nats_server::ReservedPort;

use crate::harness::{Folder, PATIENCE, Program};

/// The address in the guide, which the tests replace by a free port.
const PORT: &str = "127.0.0.1:8080";
/// The address of the NATS server in the guide.
const NATS: &str = "127.0.0.1:4222";
/// The addresses of nodes in the guide.
const NODES: [&str; 2] = ["127.0.0.1:8081", "127.0.0.1:8082"];
/// Whether the program runs applications in TSX.
const HAS_SCRIPTS: bool = cfg!(feature = "script");

#[test]
fn runs_every_command_of_the_guide() {
    let guide = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/guide");
    let mut chapters: Vec<_> =
        fs::read_dir(guide).unwrap().map(|entry| entry.unwrap().path()).collect();
    chapters.sort();
    assert!(chapters.iter().any(|chapter| chapter.ends_with("start.md")));
    for chapter in chapters {
        println!("{}:", chapter.display());
        Reader::new().follow(&fs::read_to_string(chapter).unwrap());
    }
}

/// A reader who runs the blocks of a chapter.
struct Reader {
    folder: Folder,
    servers: Vec<Program>,
    nats: Option<Nats>,
    /// The files of an application, unless a block serves them.
    unserved: Option<BTreeSet<String>>,
}

impl Reader {
    fn new() -> Self {
        Self {
            folder: Folder::new(),
            servers: Vec::new(),
            nats: None,
            unserved: Some(BTreeSet::new()),
        }
    }

    fn follow(mut self, chapter: &str) {
        for (kind, text) in blocks(chapter) {
            match kind {
                "sh server" => {
                    let mut server =
                        self.shell(&format!("exec {}", text.replace(PORT, "127.0.0.1:0")));
                    self.servers.push(Program::start(&mut server));
                }
                "sh tsx server" if HAS_SCRIPTS => {
                    self.unserved = None;
                    // A data folder has one server at a time.
                    self.servers.drain(..).for_each(|server| drop(server.stop()));
                    let mut server = self.shell(&format!("exec {text}"));
                    self.servers.push(Program::start(server.env("BINE_LISTEN", "127.0.0.1:0")));
                }
                "sh nats" => self.nats = self.start_nats(text),
                "sh nats dev" => self.try_nodes(text),
                "sh nats server" => {
                    if let Some(nats) = &self.nats {
                        let text = NODES.iter().fold(nats.addressed(text), |text, node| {
                            text.replace(node, "127.0.0.1:0")
                        });
                        let mut server = self.shell(&format!("exec {text}"));
                        self.servers.push(Program::start(&mut server));
                    }
                }
                "sh nats command" => {
                    if let Some(nats) = &self.nats {
                        let nodes = NODES.iter().zip(&self.servers);
                        self.succeed(&nodes.fold(nats.addressed(text), |text, (address, node)| {
                            text.replace(address, &node.address().to_string())
                        }));
                    }
                }
                "sh" => self.succeed(&self.addressed(text)),
                "sh tsx" if HAS_SCRIPTS => self.succeed_soon(&self.addressed(text)),
                "toml" => {
                    self.folder.write("bine.toml", text.as_bytes());
                    self.succeed("bine check-config");
                }
                _ => {
                    if let Some(name) = file_name(kind) {
                        self.folder
                            .write(&format!("board/{name}"), self.addressed(text).as_bytes());
                        if let Some(unserved) = &mut self.unserved {
                            unserved.insert(name.to_owned());
                        }
                    }
                }
            }
        }
        // Files of the browser alone belong to a program in Rust.
        let is_served = |name: &String| !name.ends_with(".browser.ts");
        let has_files = |files: &BTreeSet<String>| HAS_SCRIPTS && files.iter().any(is_served);
        if let Some(files) = self.unserved.take().filter(has_files) {
            self.serve_files(&files);
        }
    }

    /// Starts a NATS server on a free port, if its program is known.
    fn start_nats(&self, text: &str) -> Option<Nats> {
        let program = std::env::var_os("NATS_SERVER").filter(|_| cfg!(feature = "cluster"))?;
        let reserved = ReservedPort::new();
        let (program, port) = (program.to_str().unwrap(), reserved.number());
        let text =
            text.replace("nats-server", &format!("{program} --addr 127.0.0.1 --port {port}"));
        let server = self.shell(&format!("exec {text}")).spawn().unwrap();
        let nats = Nats { server, port: reserved };
        let began = Instant::now();
        while TcpStream::connect(("127.0.0.1", port)).is_err() {
            assert!(began.elapsed() < PATIENCE, "the NATS server does not start");
            thread::park_timeout(Duration::from_millis(10));
        }
        Some(nats)
    }

    /// Starts and stops nodes by a command, if the program of a NATS server is known.
    fn try_nodes(&self, text: &str) {
        let program = std::env::var("NATS_SERVER").ok().filter(|_| cfg!(feature = "cluster"));
        let Some(program) = program else { return };
        let options = format!("--nats-server {program} --listen 127.0.0.1:0");
        let mut nodes = self.shell(&format!("exec {} {options}", text.trim_end()));
        let nodes = Program::start(&mut nodes);
        assert_eq!(nodes.connect().get("/").status(), 200);
        assert_eq!(nodes.stop().code, Some(0));
    }

    /// Serves the files of a chapter, and requests each of its pages.
    fn serve_files(&self, files: &BTreeSet<String>) {
        // A page that loads the files that are no pages. The server itself runs the start script.
        let modules = files.iter().filter(|name| *name != "start.ts");
        let modules = modules.filter_map(|name| name.strip_suffix(".ts"));
        let import = |name: &str| format!("import \"./{name}.ts\";");
        let imports = modules.map(import).collect::<Vec<_>>().join("\n");
        let index = format!(
            "import {{ page }} from \"bine\";\n{imports}\nexport default page(() => <p>A chapter</p>);\n"
        );
        self.folder.write("board/index.tsx", index.as_bytes());
        let mut server = self.shell("exec bine serve board --development on --listen 127.0.0.1:0");
        let server = Program::start(&mut server);
        let mut peer = server.connect();
        let pages = files.iter().filter_map(|name| name.strip_suffix(".tsx"));
        for page in pages.filter(|name| !name.starts_with('_')).chain(["index"]) {
            // Any value for each parameter.
            let parts = page.split('/').map(|part| if part.starts_with('[') { "7" } else { part });
            let path = parts.collect::<Vec<_>>().join("/");
            let reply = peer.get(&format!("/{}", path.trim_end_matches("index")));
            assert!(
                matches!(reply.status(), 200 | 303 | 400..=499)
                    && !reply.text().starts_with("There is"),
                "{page}: {} {}",
                reply.status(),
                reply.text()
            );
        }
    }

    /// The commands with the address of the last server.
    fn addressed(&self, text: &str) -> String {
        let address = self.servers.last().map(|server| server.address().to_string());
        text.replace(PORT, address.as_deref().unwrap_or(PORT))
    }

    /// Repeats commands until they succeed: a server looks for changed files a few times a second.
    fn succeed_soon(&self, text: &str) {
        let began = Instant::now();
        while began.elapsed() < PATIENCE {
            if self.output(text).status.success() {
                return;
            }
        }
        self.succeed(text);
    }

    fn output(&self, text: &str) -> Output {
        self.shell(text).output().unwrap()
    }

    fn succeed(&self, text: &str) {
        let output = self.output(text);
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{text}\n{}\n{said}", output.status);
    }

    /// Returns a shell in the reader's folder, with the tested `bine` on its path.
    fn shell(&self, text: &str) -> Command {
        let program = Path::new(env!("CARGO_BIN_EXE_bine"));
        let path = std::env::var("PATH").unwrap_or_default();
        let mut shell = Command::new("sh");
        shell
            .args(["-e", "-c", text])
            .current_dir(self.folder.join(""))
            .env("PATH", format!("{}:{path}", program.parent().unwrap().display()))
            .env_remove("LISTEN_FDS")
            .env_remove("LISTEN_PID");
        shell
    }
}

/// A NATS server of a chapter. It is killed when it is dropped.
struct Nats {
    server: Child,
    port: ReservedPort,
}

impl Nats {
    fn addressed(&self, text: &str) -> String {
        text.replace(NATS, &format!("127.0.0.1:{}", self.port.number()))
    }
}

impl Drop for Nats {
    fn drop(&mut self) {
        let _ = self.server.kill();
        let _ = self.server.wait();
    }
}

/// Returns the fenced blocks of a chapter: their language and text.
fn blocks(chapter: &str) -> impl Iterator<Item = (&str, &str)> {
    chapter.split("\n```").skip(1).step_by(2).map(|block| block.split_once('\n').unwrap())
}

/// The name of the file in the kind of a block: `index.tsx` in `tsx index.tsx`.
fn file_name(kind: &str) -> Option<&str> {
    let (language, name) = kind.split_once(' ')?;
    (["css", "js", "ts", "tsx", "toml"].contains(&language) && name.contains('.')).then_some(name)
}

//! End-to-end tests: checks the real programs with third-party tools.

use std::ffi::OsStr;
use std::fs;
use std::io::Write;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use anyhow::{Context, Result, anyhow, ensure};

use self::exchange::{Answer, exchange};
use self::program::Program;
use crate::report::Tally;
use crate::{parallel, paths, process, tools};

mod accounts;
mod channels;
mod cluster;
mod console;
mod exchange;
mod faults;
mod handlers;
mod histories;
mod http2;
mod inert;
mod limits;
mod live;
mod nats;
mod observed;
mod pages;
mod program;
mod scripts;
mod sessions;
pub(crate) mod streams;
mod tracer;
pub(crate) mod tutorial;
mod websocket;

/// A group of checks that depends on no other group. Returns an error if a program does not start.
type Group = fn(&mut Tally) -> Result<()>;

/// All groups with their names; the ones that take longest are first.
const GROUPS: [(&str, Group); 19] = [
    ("the tutorial", tutorial::follow),
    ("the live script", live::check_script),
    ("handlers in TSX", handlers::check),
    ("several nodes", cluster::check),
    ("histories", histories::check),
    ("forms of live pages", live::check_forms),
    ("the servers", check_servers),
    ("live pages", live::check),
    ("the browser's console", console::check),
    ("stored content", inert::check),
    ("HTTP/2", http2::check),
    ("WebSocket", websocket::check),
    ("channels", channels::check),
    ("sessions", sessions::check),
    ("applications in TSX", scripts::check),
    ("accounts", accounts::check),
    ("limits in forms", limits::check),
    ("logs, threads and system calls", observed::check),
    ("failing system calls", faults::check),
];

/// The number of groups that run at a time. More than one, since most of their time is waiting:
/// for browsers to start, and for timeouts.
const AT_A_TIME: usize = 2;

/// Runs the groups whose names contain one of these words, or all without a word. A group that ends
/// with an error counts as one failed check.
pub(crate) fn run(tally: &mut Tally, words: &[&str]) -> Result<()> {
    let counts = parallel::map(groups(words)?, AT_A_TIME, |(name, group)| {
        let mut tally = Tally::default();
        let started = Instant::now();
        if let Err(error) = group(&mut tally) {
            tally.check(name, Err(error));
        }
        println!("{name}: {:.0} s", started.elapsed().as_secs_f64());
        Ok(tally)
    })?;
    for counts in counts {
        tally.add(counts);
    }
    Ok(())
}

fn groups(words: &[&str]) -> Result<Vec<(&'static str, Group)>> {
    let is_named = |name: &str| words.iter().any(|word| name.contains(word));
    let named: Vec<_> =
        GROUPS.into_iter().filter(|(name, _)| words.is_empty() || is_named(name)).collect();
    let names = || GROUPS.map(|(name, _)| name).join("; ");
    ensure!(
        !named.is_empty(),
        "no group is named `{}`; the groups are: {}",
        words.join(" "),
        names()
    );
    Ok(named)
}

/// Starts the file server, the hello example and the demo, and tests them over the network.
fn check_servers(tally: &mut Tally) -> Result<()> {
    let site = site()?;
    let mut serve = Command::new(paths::release("bine"));
    serve.arg("serve").arg(&site).args(["--listen", "127.0.0.1:0", "--listing", "on"]);
    let files = Program::start(serve)?;
    let mut hello = Command::new(paths::release("examples/hello"));
    hello.args(["--listen", "127.0.0.1:0"]);
    let hello = Program::start(hello)?;
    let mut demo = Command::new(paths::release("bine"));
    demo.args(["--listen", "127.0.0.1:0"]);
    let demo = Program::start(demo)?;

    lint(tally, "a page", &hello, "/hello?name=TLUG");
    lint(tally, "a file", &files, "/notes.txt");
    lint(tally, "an index", &files, "/");
    lint(tally, "a missing file", &files, "/missing");
    lint(tally, "a missing page", &hello, "/missing");
    lint_files(tally, &files);
    lint_as(tally, "a wrong argument", &demo, "POST", "/board/post", "", 400);
    lint_as(tally, "a wrong method", &demo, "DELETE", "/board", "", 405);
    let xhtml = "Accept: application/xhtml+xml\r\n";
    lint_as(tally, "a page of XHTML", &demo, "GET", "/board", xhtml, 200);
    lint_head(tally, "the head of a page", &hello, "/hello?name=TLUG");
    lint_head(tally, "the head of a file", &files, "/notes.txt");

    tally.check("a page carries its argument", carries_its_argument(&hello));
    tally.check("a page escapes its argument", escapes_its_argument(&hello));
    tally.check("curl keeps one connection for two pages", curl_keeps(&hello, "/hello?name=a"));
    tally.check("curl keeps one connection for two files", curl_keeps(&files, "/notes.txt"));
    tally.check("curl keeps its connection after HEAD", curl_heads(&files, "/notes.txt"));
    tally.check("curl need not wait for 100-continue", curl_expects(&hello, "/hello?name=a"));
    tally.check("curl sends the body after 100-continue", curl_sends_after_continue(&demo));
    tally.check("curl is served over HTTP/1.0", curl_old(&hello));
    tally.check("pipelined requests are answered in order", pipelines(&hello));
    tally.check("a space before the colon is rejected and the connection closed", refuses(&hello));
    tally.check("files outside the folder are not served", stays_inside(&files));
    pages::validate(tally, &demo);
    browse(tally, &demo)?;
    tally.check("the hello example ends on SIGTERM", hello.end());
    tally.check("bine serve ends on SIGTERM", files.end());
    tally.check("the demo ends on SIGTERM", demo.end());
    Ok(())
}

/// Returns the folder of a small site. The first call creates it; groups that run at the same time
/// serve the same files.
fn site() -> Result<PathBuf> {
    static CREATED: Mutex<Option<PathBuf>> = Mutex::new(None);
    let mut created = CREATED.lock().unwrap_or_else(PoisonError::into_inner);
    match &*created {
        Some(site) => Ok(site.clone()),
        None => Ok(created.insert(create_site()?).clone()),
    }
}

/// Creates a small site, and outside its folder a file that the server must never send.
fn create_site() -> Result<PathBuf> {
    let folder = work_folder();
    let site = folder.join("site");
    fs::create_dir_all(&site)?;
    fs::write(site.join("index.html"), "<!doctype html><title>Site</title><p>Welcome.\n")?;
    fs::write(site.join("notes.txt"), "A file of one line.\n")?;
    fs::write(site.join("style.css"), "p { color: green }\n")?;
    process::run(Command::new("gzip").args(["--keep", "--force"]).arg(site.join("style.css")))?;
    fs::create_dir_all(site.join("pictures"))?;
    fs::write(site.join("pictures/one.txt"), "none yet\n")?;
    fs::write(folder.join("outside.txt"), "outside\n")?;
    Ok(site)
}

/// The folder for the files that the tests write.
fn work_folder() -> PathBuf {
    paths::target().join("end-to-end")
}

/// Checks that the linter finds no problem in the response.
fn lint(tally: &mut Tally, what: &str, program: &Program, target: &str) {
    let linted = program.get(target).and_then(|answer| lint_response(&answer.bytes));
    tally.check(&format!("httplint finds nothing bad in {what}"), linted);
}

/// Lints all responses for files except those with several ranges: the linter requires a
/// Content-Range there, which RFC 9110 section 15.3.7.2 forbids.
fn lint_files(tally: &mut Tally, files: &Program) {
    let tag = files.get("/notes.txt").ok().and_then(|answer| answer.field("ETag"));
    let same = format!("If-None-Match: {}\r\n", tag.unwrap_or_default());
    for (what, target, fields, status) in [
        ("a range of a file", "/notes.txt", "Range: bytes=2-5\r\n", 206),
        ("a range after the end of a file", "/notes.txt", "Range: bytes=99-\r\n", 416),
        ("an unchanged file", "/notes.txt", &same, 304),
        ("a changed file", "/notes.txt", "If-Match: \"x\"\r\n", 412),
        ("a compressed file", "/style.css", "Accept-Encoding: gzip\r\n", 200),
        ("a file that has a compressed copy", "/style.css", "", 200),
        ("a listing", "/pictures/", "", 200),
        ("a folder without its slash", "/pictures", "", 301),
    ] {
        lint_as(tally, what, files, "GET", target, fields, status);
    }
    lint_as(tally, "the methods of a file", files, "OPTIONS", "/notes.txt", "", 204);
    lint_as(tally, "a wrong method for a file", files, "DELETE", "/notes.txt", "", 405);
}

/// Checks the status of a response and that the linter finds no problem in it.
fn lint_as(
    tally: &mut Tally,
    what: &str,
    program: &Program,
    method: &str,
    target: &str,
    fields: &str,
    status: u16,
) {
    let linted = program.ask_with(method, target, fields).and_then(|answer| {
        ensure!(answer.status() == status, "not {status}: {answer}");
        lint_response(&answer.bytes)
    });
    tally.check(&format!("httplint finds nothing bad in {what}"), linted);
}

/// Lints the response to HEAD together with the body of GET: alone, its length would not match.
fn lint_head(tally: &mut Tally, what: &str, program: &Program, target: &str) {
    let linted = || -> Result<()> {
        let head = program.ask("HEAD", target)?;
        ensure!(head.body().is_empty(), "HEAD has a body of {} bytes", head.body().len());
        let body = program.get(target)?;
        lint_response(&[head.bytes.as_slice(), body.body()].concat())
    };
    tally.check(&format!("httplint finds nothing bad in {what}"), linted());
}

fn lint_response(answer: &[u8]) -> Result<()> {
    let mut linter = Command::new(tools::httplint())
        .arg("--now")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .context("cannot start httplint")?;
    linter.stdin.take().expect("stdin was configured as a pipe above").write_all(answer)?;
    let output = linter.wait_with_output()?;
    let notes = String::from_utf8_lossy(&output.stdout);
    ensure!(output.status.success(), "not a response: {notes}");
    ensure!(notes.contains("* ["), "httplint printed no notes");
    let bad: Vec<&str> = notes.lines().filter(|line| line.contains("[BAD]")).collect();
    ensure!(bad.is_empty(), "{}", bad.join("; "));
    Ok(())
}

fn carries_its_argument(hello: &Program) -> Result<()> {
    let answer = hello.get("/hello?name=TLUG")?;
    ensure!(answer.body() == b"<h1>Hello TLUG</h1>", "{answer}");
    Ok(())
}

fn escapes_its_argument(hello: &Program) -> Result<()> {
    let answer = hello.get("/hello?name=%3Cb%3E")?;
    ensure!(answer.body() == b"<h1>Hello &lt;b&gt;</h1>", "{answer}");
    Ok(())
}

fn curl_keeps(program: &Program, target: &str) -> Result<()> {
    let url = program.url(target);
    let connects = curl(&["-o", "-", "-o", "-", "-w", "\n%{num_connects}\n", &url, &url])?;
    let connects: Vec<&str> = connects.lines().filter(|line| matches!(*line, "0" | "1")).collect();
    ensure!(connects == ["1", "0"], "connections made: {connects:?}");
    Ok(())
}

/// Checks the connection after HEAD. A client would read a body after HEAD as the next response, or
/// close the connection. [`lint_head`] checks that the body is empty: curl drops bytes that arrive
/// together with the head.
fn curl_heads(program: &Program, target: &str) -> Result<()> {
    let url = program.url(target);
    let codes = "\n%{http_code} %{num_connects}\n";
    let output =
        curl(&["--head", "-w", codes, &url, "--next", "-sS", "-m", "10", "-w", codes, &url])?;
    let codes: Vec<&str> = output.lines().filter(|line| line.starts_with("200 ")).collect();
    ensure!(codes == ["200 1", "200 0"], "statuses and connections made: {codes:?}");
    Ok(())
}

/// curl would wait for longer than its time limit; an interim 100 or a final status must arrive
/// before.
fn curl_expects(program: &Program, target: &str) -> Result<()> {
    let url = program.url(target);
    let output = curl(&[
        "--expect100-timeout",
        "20",
        "--header",
        "Expect: 100-continue",
        "--data",
        "name=a",
        "--dump-header",
        "-",
        "--output",
        "/dev/null",
        &url,
    ])?;
    ensure!(output.starts_with("HTTP/1.1 "), "{output}");
    Ok(())
}

/// Without the interim response curl would delay its body for longer than the time limit.
fn curl_sends_after_continue(demo: &Program) -> Result<()> {
    let (sent, received) = (work_folder().join("sent"), work_folder().join("received"));
    let body: Vec<u8> = (0..=255).cycle().take(2048).collect();
    fs::write(&sent, &body)?;
    let output = curl(&[
        "--expect100-timeout",
        "20",
        "--header",
        "Expect: 100-continue",
        "--data-binary",
        &format!("@{}", sent.display()),
        "--dump-header",
        "-",
        "--output",
        &received.to_string_lossy(),
        &demo.url("/echo"),
    ])?;
    ensure!(output.starts_with("HTTP/1.1 100 "), "{output}");
    ensure!(output.contains("\r\n\r\nHTTP/1.1 200 "), "{output}");
    ensure!(fs::read(received)? == body, "the server returned a different body");
    Ok(())
}

fn curl_old(hello: &Program) -> Result<()> {
    let output = curl(&["--http1.0", &hello.url("/hello?name=old")])?;
    ensure!(output == "<h1>Hello old</h1>", "{output}");
    Ok(())
}

fn curl(arguments: &[&str]) -> Result<String> {
    let mut command = Command::new("curl");
    command.args(["--silent", "--show-error", "--max-time", "10"]).args(arguments);
    let output = command.output().context("cannot start curl")?;
    let errors = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "{}; to repeat: {}", errors, process::command_line(&command));
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

fn pipelines(hello: &Program) -> Result<()> {
    let requests = "GET /hello?name=one HTTP/1.1\r\nHost: localhost\r\n\r\n\
        GET /hello?name=two HTTP/1.1\r\nHost: localhost\r\n\r\n\
        GET /hello?name=three HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
    let answers = String::from_utf8(exchange(hello.address(), requests.as_bytes())?)?;
    let positions = ["one", "two", "three"].map(|name| answers.find(&format!("Hello {name}<")));
    ensure!(answers.matches("HTTP/1.1 200 OK\r\n").count() == 3, "{answers}");
    ensure!(positions.iter().all(Option::is_some) && positions.is_sorted(), "{answers}");
    Ok(())
}

fn refuses(hello: &Program) -> Result<()> {
    let mut bytes = b"GET /hello HTTP/1.1\r\nHost : localhost\r\n\r\n".to_vec();
    bytes.extend_from_slice(b"GET /hello?name=smuggled HTTP/1.1\r\nHost: localhost\r\n\r\n");
    let answer = Answer { bytes: exchange(hello.address(), &bytes)? };
    ensure!(answer.bytes.starts_with(b"HTTP/1.1 400 "), "{answer}");
    ensure!(!answer.to_string().contains("smuggled"), "{answer}");
    Ok(())
}

/// Runs the browser tests of the demo.
fn browse(tally: &mut Tally, demo: &Program) -> Result<()> {
    let screenshots = work_folder().join("screenshots");
    let folder = screenshots.display().to_string();
    run_checks(tally, tool_script(tools::selenium(), "demo.py").args([demo.url("/"), folder]))?;
    println!("screenshots: {}", screenshots.display());
    Ok(())
}

/// A test script that uses a third-party tool, run by the interpreter that has the tool.
fn tool_script(interpreter: impl AsRef<OsStr>, name: &str) -> Command {
    let mut command = Command::new(interpreter);
    command.arg(paths::root().join("xtask/test-tools").join(name));
    // Python must not write compiled copies of the shared modules into the checkout.
    command.env("PYTHONDONTWRITEBYTECODE", "1");
    command
}

/// Runs a test script that prints one line per check: `holds: CLAIM`, or `fails: CLAIM: WHY`.
fn run_checks(tally: &mut Tally, command: &mut Command) -> Result<()> {
    let output = command
        .output()
        .with_context(|| format!("cannot start {}", process::command_line(command)))?;
    let stdout = String::from_utf8_lossy(&output.stdout);
    let mut claims = 0;
    for line in stdout.lines() {
        let (outcome, claim) = line.split_once(": ").unwrap_or(("", line));
        let (claim, why) = claim.split_once(": ").unwrap_or((claim, ""));
        claims += 1;
        tally.check(claim, if outcome == "holds" { Ok(()) } else { Err(anyhow!("{why}")) });
    }
    ensure!(claims > 0, "no claim was checked: {}", String::from_utf8_lossy(&output.stderr));
    Ok(())
}

fn stays_inside(files: &Program) -> Result<()> {
    for target in ["/../outside.txt", "/%2e%2e/outside.txt", "/..%2foutside.txt"] {
        let answer = files.get(target)?;
        ensure!(answer.bytes.starts_with(b"HTTP/1.1 4"), "{target}: {answer}");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_groups_by_a_part_of_their_names() {
        let names = |words: &[&str]| {
            groups(words).unwrap().into_iter().map(|(name, _)| name).collect::<Vec<_>>()
        };
        assert_eq!(names(&["console", "HTTP"]), ["the browser's console", "HTTP/2"]);
        assert_eq!(names(&[]).len(), GROUPS.len());
        let error = groups(&["nothing"]).unwrap_err().to_string();
        assert!(error.starts_with("no group is named `nothing`; the groups are: the tutorial; "));
    }

    #[test]
    fn creates_a_file_outside_the_site() {
        let site = site().expect("the target folder can be written");
        assert!(site.join("../outside.txt").exists());
    }
}

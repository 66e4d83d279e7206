//! Decides what the real programs must show to tools that we did not write.

use std::ffi::OsStr;
use std::fs;
use std::io::Write;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, anyhow, ensure};

use self::exchange::{Answer, exchange};
use self::program::Program;
use crate::report::Tally;
use crate::{places, process, tools};

mod channels;
mod console;
mod exchange;
mod inert;
mod live;
mod pages;
mod program;
mod sessions;
pub(crate) mod streams;
pub(crate) mod tutorial;
mod websocket;

/// Starts the file server, the hello example and the demo, and looks at them from outside.
pub(crate) fn gather(tally: &mut Tally) -> Result<()> {
    let site = site()?;
    let mut serve = Command::new(places::release("bine"));
    serve.arg("serve").arg(&site).args(["--listen", "127.0.0.1:0", "--listing", "on"]);
    let files = Program::start(serve)?;
    let mut hello = Command::new(places::release("examples/hello"));
    hello.args(["--listen", "127.0.0.1:0"]);
    let hello = Program::start(hello)?;
    let mut demo = Command::new(places::release("bine"));
    demo.args(["--listen", "127.0.0.1:0"]);
    let demo = Program::start(demo)?;

    lint(tally, "a page", &hello, "/hello?name=TLUG");
    lint(tally, "a file", &files, "/notes.txt");
    lint(tally, "an index", &files, "/");
    lint(tally, "a missing file", &files, "/missing");
    lint(tally, "a missing page", &hello, "/missing");
    lint_files(tally, &files);
    lint_as(tally, "a wrong argument", &demo, "POST", "/board/garden", "", 400);
    lint_as(tally, "a wrong method", &demo, "DELETE", "/board", "", 405);
    let xhtml = "Accept: application/xhtml+xml\r\n";
    lint_as(tally, "a page of XHTML", &demo, "GET", "/board", xhtml, 200);
    lint_head(tally, "the head of a page", &hello, "/hello?name=TLUG");
    lint_head(tally, "the head of a file", &files, "/notes.txt");

    tally.check("a page carries its argument", carries_its_argument(&hello));
    tally.check("a page escapes its argument", escapes_its_argument(&hello));
    tally.check("curl keeps one connection for two pages", curl_keeps(&hello, "/hello?name=a"));
    tally.check("curl keeps one connection for two files", curl_keeps(&files, "/notes.txt"));
    tally.check("curl keeps its connection behind HEAD", curl_heads(&files, "/notes.txt"));
    tally.check("curl need not wait for 100-continue", curl_expects(&hello, "/hello?name=a"));
    tally.check("curl is told to go on by 100-continue", curl_is_told_to_go_on(&demo));
    tally.check("curl is served over HTTP/1.0", curl_old(&hello));
    tally.check("pipelined requests are answered in order", pipelines(&hello));
    tally.check("a space before the colon is refused and closed", refuses(&hello));
    tally.check("nothing outside the folder is served", stays_inside(&files));
    pages::validate(tally, &demo);
    browse(tally, &demo)?;
    websocket::judge(tally)?;
    channels::judge(tally)?;
    live::judge(tally)?;
    sessions::judge(tally)?;
    inert::judge(tally)?;
    console::judge(tally)?;
    tutorial::follow(tally)?;
    tally.check("the hello example ends when asked", hello.end());
    tally.check("bine serve ends when asked", files.end());
    tally.check("the demo ends when asked", demo.end());
    Ok(())
}

/// A small site, made anew, with a file beside it that must never be served.
fn site() -> Result<PathBuf> {
    let place = evidence();
    let site = place.join("site");
    fs::create_dir_all(&site)?;
    fs::write(site.join("index.html"), "<!doctype html><title>Site</title><p>Welcome.\n")?;
    fs::write(site.join("notes.txt"), "A file of one line.\n")?;
    fs::write(site.join("style.css"), "p { color: green }\n")?;
    process::run(Command::new("gzip").args(["--keep", "--force"]).arg(site.join("style.css")))?;
    fs::create_dir_all(site.join("pictures"))?;
    fs::write(site.join("pictures/one.txt"), "none yet\n")?;
    fs::write(place.join("outside.txt"), "outside\n")?;
    Ok(site)
}

/// Where files of these checks lie.
fn evidence() -> PathBuf {
    places::target().join("evidence")
}

/// The linter must find nothing bad in the whole answer.
fn lint(tally: &mut Tally, what: &str, program: &Program, target: &str) {
    let linted = program.get(target).and_then(|answer| judge(&answer.bytes));
    tally.check(&format!("httplint finds nothing bad in {what}"), linted);
}

/// All that a file can be answered with, but several parts of it: the linter wants a Content-Range with them, which RFC
/// 9110 section 15.3.7.2 forbids.
fn lint_files(tally: &mut Tally, files: &Program) {
    let tag = files.get("/notes.txt").ok().and_then(|answer| answer.field("ETag"));
    let same = format!("If-None-Match: {}\r\n", tag.unwrap_or_default());
    for (what, target, fields, status) in [
        ("a part of a file", "/notes.txt", "Range: bytes=2-5\r\n", 206),
        ("a part behind a file's end", "/notes.txt", "Range: bytes=99-\r\n", 416),
        ("a file that is the same", "/notes.txt", &same, 304),
        ("a file that is another", "/notes.txt", "If-Match: \"x\"\r\n", 412),
        ("a packed file", "/style.css", "Accept-Encoding: gzip\r\n", 200),
        ("a file that lies packed too", "/style.css", "", 200),
        ("a listing", "/pictures/", "", 200),
        ("a folder without its slash", "/pictures", "", 301),
    ] {
        lint_as(tally, what, files, "GET", target, fields, status);
    }
    lint_as(tally, "what a file can be asked", files, "OPTIONS", "/notes.txt", "", 204);
    lint_as(tally, "what a file cannot be asked", files, "DELETE", "/notes.txt", "", 405);
}

/// The linter must find nothing bad in the answer, which must have this status.
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
        judge(&answer.bytes)
    });
    tally.check(&format!("httplint finds nothing bad in {what}"), linted);
}

/// A head alone cannot be linted: its length would not match. With the body of GET behind it, it must.
fn lint_head(tally: &mut Tally, what: &str, program: &Program, target: &str) {
    let linted = || -> Result<()> {
        let head = program.ask("HEAD", target)?;
        ensure!(head.body().is_empty(), "HEAD has a body of {} bytes", head.body().len());
        let body = program.get(target)?;
        judge(&[head.bytes.as_slice(), body.body()].concat())
    };
    tally.check(&format!("httplint finds nothing bad in {what}"), linted());
}

fn judge(answer: &[u8]) -> Result<()> {
    let mut linter = Command::new(tools::httplint())
        .arg("--now")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .context("cannot start httplint")?;
    linter.stdin.take().expect("stdin was asked to be a pipe above").write_all(answer)?;
    let output = linter.wait_with_output()?;
    let notes = String::from_utf8_lossy(&output.stdout);
    ensure!(output.status.success(), "not a response: {notes}");
    ensure!(notes.contains("* ["), "httplint said nothing");
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

/// A body behind HEAD would be taken for the beginning of the next answer, or cost the connection. That there is
/// none at all is for [`lint_head`] to say: curl drops what comes in one piece with the head.
fn curl_heads(program: &Program, target: &str) -> Result<()> {
    let url = program.url(target);
    let codes = "\n%{http_code} %{num_connects}\n";
    let told =
        curl(&["--head", "-w", codes, &url, "--next", "-sS", "-m", "10", "-w", codes, &url])?;
    let codes: Vec<&str> = told.lines().filter(|line| line.starts_with("200 ")).collect();
    ensure!(codes == ["200 1", "200 0"], "statuses and connections made: {codes:?}");
    Ok(())
}

/// curl would wait eight seconds for a word; an interim 100 or a final status must come first.
fn curl_expects(program: &Program, target: &str) -> Result<()> {
    let url = program.url(target);
    let told = curl(&[
        "--expect100-timeout",
        "8",
        "--header",
        "Expect: 100-continue",
        "--data",
        "name=a",
        "--dump-header",
        "-",
        "--output",
        "/dev/null",
        "--write-out",
        "took %{time_total}\n",
        &url,
    ])?;
    ensure!(told.starts_with("HTTP/1.1 "), "{told}");
    let took = told.lines().find_map(|line| line.strip_prefix("took "));
    let took: f64 = took.context("curl told no time")?.parse()?;
    ensure!(took < 4.0, "curl waited {took} s");
    Ok(())
}

/// Without the interim answer curl would keep its body back for longer than it may take in all.
fn curl_is_told_to_go_on(demo: &Program) -> Result<()> {
    let (sent, came) = (evidence().join("sent"), evidence().join("came"));
    let body: Vec<u8> = (0..=255).cycle().take(2048).collect();
    fs::write(&sent, &body)?;
    let told = curl(&[
        "--expect100-timeout",
        "20",
        "--header",
        "Expect: 100-continue",
        "--data-binary",
        &format!("@{}", sent.display()),
        "--dump-header",
        "-",
        "--output",
        &came.to_string_lossy(),
        &demo.url("/echo"),
    ])?;
    ensure!(told.starts_with("HTTP/1.1 100 "), "{told}");
    ensure!(told.contains("\r\n\r\nHTTP/1.1 200 "), "{told}");
    ensure!(fs::read(came)? == body, "another body came back");
    Ok(())
}

fn curl_old(hello: &Program) -> Result<()> {
    let told = curl(&["--http1.0", &hello.url("/hello?name=old")])?;
    ensure!(told == "<h1>Hello old</h1>", "{told}");
    Ok(())
}

fn curl(arguments: &[&str]) -> Result<String> {
    let mut command = Command::new("curl");
    command.args(["--silent", "--show-error", "--max-time", "10"]).args(arguments);
    let output = command.output().context("cannot start curl")?;
    let errors = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "{}; to repeat: {}", errors, process::shown(&command));
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

fn pipelines(hello: &Program) -> Result<()> {
    let requests = "GET /hello?name=one HTTP/1.1\r\nHost: localhost\r\n\r\n\
        GET /hello?name=two HTTP/1.1\r\nHost: localhost\r\n\r\n\
        GET /hello?name=three HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
    let answers = String::from_utf8(exchange(hello.address(), requests.as_bytes())?)?;
    let places = ["one", "two", "three"].map(|name| answers.find(&format!("Hello {name}<")));
    ensure!(answers.matches("HTTP/1.1 200 OK\r\n").count() == 3, "{answers}");
    ensure!(places.iter().all(Option::is_some) && places.is_sorted(), "{answers}");
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

/// What a browser finds.
fn browse(tally: &mut Tally, demo: &Program) -> Result<()> {
    let screenshots = evidence().join("screenshots");
    let folder = screenshots.display().to_string();
    claims(tally, script(tools::selenium(), "demo.py").args([demo.url("/"), folder]))?;
    println!("screenshots: {}", screenshots.display());
    Ok(())
}

/// A script that looks at something with a tool of others, by the interpreter that has the tool.
fn script(interpreter: impl AsRef<OsStr>, name: &str) -> Command {
    let mut judge = Command::new(interpreter);
    judge.arg(places::root().join("xtask/judges").join(name));
    // No compiled copy of what scripts share should lie about.
    judge.env("PYTHONDONTWRITEBYTECODE", "1");
    judge
}

/// Runs a judge that tells each claim by itself: `holds: CLAIM`, or `fails: CLAIM: WHY`.
fn claims(tally: &mut Tally, judge: &mut Command) -> Result<()> {
    let output =
        judge.output().with_context(|| format!("cannot start {}", process::shown(judge)))?;
    let told = String::from_utf8_lossy(&output.stdout);
    let mut claims = 0;
    for line in told.lines() {
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
    fn the_site_has_a_file_beside_it() {
        let site = site().expect("the target folder can be written");
        assert!(site.join("../outside.txt").exists());
    }
}

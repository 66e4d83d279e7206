//! The program that most tests run, with a page for each thing a handler can do.
//!
//! The program is this test binary, started again for a single test. It is therefore always built
//! from the current sources, and has its own signals, panics and log.

use std::fmt::Write as _;
use std::future::{Future, pending};
use std::io::Read;
use std::net::TcpStream;
use std::pin::Pin;
use std::process::Command;
use std::task::{Context, Poll};
use std::time::Duration;

use bine::{App, Body, Exit, Page, PageExt, Path, Query, Request, Respond, Response, Status, Text};
use bine::{html, page, timeout};

use crate::harness::{PATIENCE, Peer, Program, SCHEDULERS};

/// Environment variable with the options of the program under test.
const OPTIONS: &str = "BINE_TEST_OPTIONS";

/// Starts the program on a free port.
pub(crate) fn start(options: &[&str]) -> Program {
    Program::start(&mut program("app::serve_program", options))
}

/// Returns a command that runs this binary for the single test which is the program.
pub(crate) fn program(test: &str, options: &[&str]) -> Command {
    program_at(&std::env::current_exe().unwrap(), test, options)
}

/// Returns a command that runs a copy of this binary.
pub(crate) fn program_at(file: &std::path::Path, test: &str, options: &[&str]) -> Command {
    let mut command = Command::new(file);
    command.args(["--exact", test, "--nocapture"]);
    // Admission and timeouts have tests of their own; a busy machine must not trigger them here.
    let usual = ["--listen", "127.0.0.1:0", "--admission", "off"];
    let patient = ["--queue-timeout", "60s", "--first-byte-timeout", "60s"];
    command.env(OPTIONS, [&usual, &patient, options].concat().join("\n"));
    command
}

/// Runs `check` against the program with each scheduler in turn.
pub(crate) fn on_each_scheduler(check: impl Fn(&Program)) {
    on_each(&SCHEDULERS, check);
}

/// Runs `check` against the program with each of the given schedulers.
pub(crate) fn on_each(schedulers: &[&str], check: impl Fn(&Program)) {
    for scheduler in schedulers {
        println!("on {scheduler}:");
        check(&start(&["--scheduler", scheduler]));
    }
}

/// Runs the program of a test with each of these schedulers, and `check` with a connection to it.
pub(crate) fn on_each_of(test: &str, schedulers: &[&str], check: impl Fn(&mut Peer)) {
    for scheduler in schedulers {
        println!("on {scheduler}:");
        let program = Program::start(&mut program(test, &["--scheduler", scheduler]));
        check(&mut program.connect());
    }
}

/// Returns the program's options, one on a line, if this process is the program under test.
pub(crate) fn options() -> Option<String> {
    std::env::var(OPTIONS).ok()
}

/// The program under test. Ordinary test runs skip it.
#[test]
fn serve_program() -> Exit {
    let Some(options) = options() else { return Exit::success() };
    App::new()
        .page(hello)
        .page(plain_hello)
        .page(numbers)
        .page(number_from_a_worker)
        .page(number_after_a_while)
        .page(rows)
        .page(plain_rows)
        .page(broken_rows)
        .page(kinds)
        .page(echo)
        .page(plain_echo)
        .page(method)
        .page(lost)
        .page(moved)
        .page(slow)
        .page(late)
        .page(stuck)
        .page(broken)
        .page(broken_worker)
        .page(broken_later)
        .page(broken_with)
        .asset("/asset", "text/plain; charset=utf-8", b"compiled in\n")
        .run_with("Usage: app", options.lines())
}

#[test]
fn rejects_two_pages_for_one_path() {
    if let Some(options) = options() {
        let app = App::new().page(hello).page(lost).asset("/hello", "text/plain", b"");
        println!("{:?}", app.run_with("Usage: app", options.lines()));
        return;
    }
    let test = "app::rejects_two_pages_for_one_path";
    let output = Program::run(&mut program(test, &[])).output;
    let told = "bine::app::hello and /hello are both at /hello; give one of them another path or other methods";
    assert!(output.contains(told), "{output}");
}

#[page("/hello")]
pub(crate) async fn hello(name: Query<Text>) -> impl Page {
    html!(<h1>Hello {name}</h1>)
}

/// The same page from a worker.
#[page("/hello/plain")]
pub(crate) fn plain_hello(name: Query<Text>) -> impl Page {
    html!(<h1>Hello {name}</h1>)
}

/// A page of `bytes` bytes, see [`numbered`].
#[page("/numbers")]
async fn numbers(bytes: Query<usize>) -> impl Page {
    // Write in pieces, as real pages are written.
    let text = numbered(*bytes);
    html!({
        for piece in text.as_bytes().chunks(1000) {
            { str::from_utf8(piece).unwrap() }
        }
    })
}

#[page("/numbers/plain")]
fn number_from_a_worker(bytes: Query<usize>) -> impl Page {
    let text = numbered(*bytes);
    html!({ text })
}

#[page("/numbers/later")]
async fn number_after_a_while(bytes: Query<usize>) -> impl Page {
    OnceMore::default().await;
    let text = numbered(*bytes);
    html!({ text })
}

/// Writes its last row only when the test at `port` permits it.
#[page("/rows/{port}")]
async fn rows(port: Path<u16>) -> impl Page {
    html!({numbered(FIRST_ROWS)}{last_row(*port)})
}

#[page("/rows/plain/{port}")]
fn plain_rows(port: Path<u16>) -> impl Page {
    html!({numbered(FIRST_ROWS)}{last_row(*port)})
}

#[page("/rows/broken/{port}")]
fn broken_rows(port: Path<u16>) -> impl Page {
    html!({numbered(FIRST_ROWS)}{last_row(*port)} {broken_row()})
}

/// Bytes of all rows but the last: more than the server buffers.
pub(crate) const FIRST_ROWS: usize = 100_000;

fn last_row(port: u16) -> &'static str {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream.read_exact(&mut [0]).unwrap();
    "the last row"
}

fn broken_row() -> &'static str {
    fail("broken in the middle");
    "never"
}

/// Returns `bytes` bytes in which a lost, repeated or misplaced piece is visible.
pub(crate) fn numbered(bytes: usize) -> String {
    let mut text = String::new();
    for number in 0..=bytes / 8 {
        // Writing to a String cannot fail.
        let _ = write!(text, "{number:07} ");
    }
    text.truncate(bytes);
    text
}

#[page("/kinds")]
async fn kinds(
    text: Query<Text>,
    small: Query<u8>,
    sign: Query<i32>,
    ratio: Query<f64>,
    letter: Query<char>,
    flag: Query<bool>,
    Query(maybe): Query<Option<u16>>,
) -> impl Page {
    html!({text} {small} {sign} {ratio} {letter} {if *flag { yes } else { no }} {maybe})
}

#[page(* "/echo")]
async fn echo(body: Body) -> impl Respond {
    Response::bytes("application/octet-stream", body.0)
}

#[page(* "/echo/plain")]
fn plain_echo(body: Body) -> impl Respond {
    Response::bytes("application/octet-stream", body.0)
}

#[page(* "/method")]
async fn method(request: Request) -> impl Respond {
    Response::text(format!("{} {}", request.method().as_str(), request.target()))
}

#[page("/lost")]
async fn lost() -> impl Respond {
    html!(<h1>Not here</h1>).with_status(Status::NOT_FOUND).with_header("X-Kind", "lost")
}

#[page("/moved")]
async fn moved() -> impl Respond {
    Response::see_other("/hello?name=a")
}

/// Prints that it has begun and responds after `time` milliseconds.
#[page("/slow")]
async fn slow(time: Query<u64>) -> impl Page {
    println!("\nslow has begun");
    timeout(Duration::from_millis(*time), pending(), async || ()).await;
    html!(<p>slow</p>)
}

/// Never responds.
#[page("/late")]
async fn late() -> impl Page {
    pending::<()>().await;
    html!(<p>never</p>)
}

/// Prints that it has begun and blocks its thread forever.
#[page("/stuck")]
fn stuck() -> impl Page {
    println!("\nstuck has begun");
    park_for_ever();
    html!()
}

fn park_for_ever() {
    loop {
        std::thread::park();
    }
}

#[page("/broken")]
async fn broken() -> impl Page {
    fail("broken on purpose");
    html!()
}

#[page("/broken/plain")]
fn broken_worker() -> impl Page {
    fail("broken on a worker");
    html!()
}

#[page("/broken/later")]
async fn broken_later() -> impl Page {
    OnceMore::default().await;
    fail("broken after a while");
    html!()
}

/// Panics with the client's input, as an `unwrap` of a parse error does.
#[page("/broken/with")]
async fn broken_with(words: Query<Text>) -> impl Page {
    fail(&words);
    html!()
}

fn fail(message: &str) {
    assert!(message.is_empty(), "{message}");
}

/// Pending once, then ready.
#[derive(Default)]
struct OnceMore {
    asked: bool,
}

impl Future for OnceMore {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, task: &mut Context<'_>) -> Poll<()> {
        if self.asked {
            return Poll::Ready(());
        }
        self.asked = true;
        task.waker().wake_by_ref();
        Poll::Pending
    }
}

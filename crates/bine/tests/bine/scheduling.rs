//! A program with its own scheduler, written with the facade's public API only.

use std::io;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::time::Instant;

use bine::scheduler::{Next, Placement, ResponseKind, Scheduler, Server, Task, serve_loops};
use bine::{App, Exit, Filter, FilterDecision, FilterRequest, Page, Path, Text, html, page};

use crate::app;
use crate::harness::{PATIENCE, Program};

#[allow(dead_code, reason = "its `main` is for people")]
#[path = "../../../../examples/scheduler.rs"]
mod example;

/// Runs everything on the event loops and counts the stages that may block.
#[derive(Default)]
struct Counting {
    stages: AtomicUsize,
}

impl Scheduler for Counting {
    fn accept(self: Arc<Self>, server: &Arc<Server>) -> io::Result<()> {
        let own: Arc<dyn Scheduler> = Arc::<Self>::clone(&self);
        let outcome = serve_loops(server, &own);
        println!("\nstages: {}", self.stages.load(Ordering::Relaxed));
        outcome
    }

    fn stage(&self, next: Next) -> Placement {
        let may_block = next == Next::Response(ResponseKind::Dynamic);
        self.stages.fetch_add(usize::from(may_block), Ordering::Relaxed);
        Placement::SameThread
    }

    fn spawn(&self, task: Task) -> Result<(), Task> {
        Err(task)
    }

    fn load(&self) -> f32 {
        0.0
    }
}

#[test]
fn runs_with_scheduler_of_the_program() -> Exit {
    if let Some(options) = app::options() {
        let app = App::new().page(app::hello).page(app::plain_hello);
        return app
            .scheduler(Arc::new(Counting::default()))
            .run_with("Usage: app", options.lines());
    }
    let test = "scheduling::runs_with_scheduler_of_the_program";
    let program = Program::start(&mut app::program(test, &[]));
    let mut peer = program.connect();
    for target in ["/hello?name=a", "/hello/plain?name=a"] {
        assert_eq!(peer.get(target).text(), "<h1>Hello a</h1>");
    }
    let ended = program.stop();
    assert_eq!(ended.code, Some(0), "{ended:?}");
    // The loop asks for each stage that may block; there was one.
    assert!(ended.output.contains("\nstages: 1\n"), "{ended:?}");
    Exit::success()
}

/// Order in which requests ran, and the number of blocked threads that may continue.
static TURNS: Mutex<Vec<Text>> = Mutex::new(Vec::new());
static GATE: (Mutex<usize>, Condvar) = (Mutex::new(0), Condvar::new());

#[page("/hold")]
fn hold() -> impl Page {
    TURNS.lock().unwrap().push("held".into());
    *GATE.1.wait_while(GATE.0.lock().unwrap(), |may_go| *may_go == 0).unwrap() -= 1;
    html!("held")
}

#[page("/say/{word}")]
fn say(word: Path<Text>) -> impl Page {
    TURNS.lock().unwrap().push(word.0);
    html!("said")
}

#[page("/open")]
async fn open() -> impl Page {
    *GATE.0.lock().unwrap() += 1;
    GATE.1.notify_one();
    html!("open")
}

/// The last word requested.
static ASKED: Mutex<String> = Mutex::new(String::new());

/// Records it on the loop, before the loop asks the scheduler.
struct Noting;

impl Filter for Noting {
    fn filter(&self, request: &FilterRequest<'_>) -> FilterDecision {
        if let Some(word) = request.path().strip_prefix("/say/") {
            word.clone_into(&mut ASKED.lock().unwrap());
        }
        FilterDecision::Continue
    }
}

#[page("/asked")]
async fn asked() -> impl Page {
    html!({ ASKED.lock().unwrap().clone() })
}

#[page("/turns")]
async fn turns() -> impl Page {
    let turns = TURNS.lock().unwrap().join(" ");
    html!({ turns })
}

#[test]
fn example_scheduler_serves_last_request_first() -> Exit {
    if let Some(options) = app::options() {
        let app = App::new().filter(Noting).page(hold).page(say).page(open).page(turns).page(asked);
        let stack = Arc::<example::Stack>::default();
        return app.scheduler(stack).run_with("Usage: app", options.lines());
    }
    let test = "scheduling::example_scheduler_serves_last_request_first";
    let program = Program::start(&mut app::program(test, &["--loops", "1"]));
    let mut asking = program.connect();
    let mut held: Vec<_> = (0..4).map(|_| program.connect()).collect();
    for peer in &mut held {
        peer.send(b"GET /hold HTTP/1.1\r\nHost: a\r\n\r\n");
    }
    let began = Instant::now();
    while asking.get("/turns").text() != "held held held held" {
        assert!(began.elapsed() < PATIENCE, "not all threads are blocked");
    }
    let mut waiting = ["first", "second", "third"].map(|word| {
        let mut peer = program.connect();
        peer.send(format!("GET /say/{word} HTTP/1.1\r\nHost: a\r\n\r\n"));
        // The only loop answers this after it has queued the request.
        while asking.get("/asked").text() != word {
            assert!(began.elapsed() < PATIENCE, "the request {word} does not arrive");
        }
        peer
    });
    // One thread becomes free and runs all queued requests.
    assert_eq!(asking.get("/open").text(), "open");
    for peer in &mut waiting {
        assert_eq!(peer.reply().text(), "said");
    }
    assert_eq!(asking.get("/turns").text(), "held held held held third second first");
    for _ in 1..held.len() {
        assert_eq!(asking.get("/open").text(), "open");
    }
    for peer in &mut held {
        assert_eq!(peer.reply().text(), "held");
    }
    Exit::success()
}

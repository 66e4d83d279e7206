//! Programs whose allocations are recorded: the allocations of small responses, and the report of those
//! that a handler makes.
//!
//! The program is this test binary, started again for a single test.

#[path = "../bine/harness/mod.rs"]
mod harness;

use std::future::pending;
use std::hint::black_box;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use bine::prelude::*;
use bine_profile::{Count, FunctionRow, Profile, Report, Selection, Stage};

use harness::{Ended, Folder, Program};

/// Environment variable with the options of the program under test.
const OPTIONS: &str = "BINE_TEST_OPTIONS";

/// Enough requests to fill every pool and cache that fills on first use.
const WARM_UP: usize = 500;

/// The length of the page and of the file: that of the file in Hop's measurements.
const LENGTH: usize = 984;

/// The number of rows of a long page.
const ROWS: usize = 40_000;

/// The size of the blocks that a handler allocates.
const SIZES: [usize; 2] = [1234, 77];

#[page("/hello")]
async fn hello(name: Query<Text>) -> impl Page {
    html!(<h1>Hello {name}</h1>)
}

/// A page of [`LENGTH`] bytes.
#[page("/page")]
async fn long_page(name: Query<Text>) -> impl Page {
    // Without the elements and the name.
    const FILL: [u8; LENGTH - 18] = [b'x'; LENGTH - 18];
    const TEXT: &str = match std::str::from_utf8(&FILL) {
        Ok(text) => text,
        Err(_) => "",
    };
    html!(<p>{name}</p><p>{TEXT}</p>)
}

/// A page that outgrows every buffer and is sent in chunks: [`ROWS`] rows.
#[page("/rows")]
async fn rows() -> impl Page {
    html!(<ul>{for row in 0..ROWS { <li>{row}</li> }}</ul>)
}

/// Allocates one block of each size.
#[inline(never)]
fn allocate_twice() {
    drop(black_box(vec![1_u8; SIZES[0]]));
    drop(black_box(Box::new([1_u8; SIZES[1]])));
}

/// Allocates on the event loop, before and after an await.
#[page("/allocating")]
async fn allocating() -> impl Page {
    allocate_twice();
    bine::timeout(Duration::from_millis(1), pending(), async || ()).await;
    allocate_twice();
    html!(<p>done</p>)
}

/// Allocates on a worker.
#[page("/blocking")]
fn blocking() -> impl Page {
    allocate_twice();
    html!(<p>done</p>)
}

/// The program under test. Ordinary test runs skip it.
#[test]
fn serve_program() -> Exit {
    let Ok(options) = std::env::var(OPTIONS) else { return Exit::success() };
    App::new()
        .page(hello)
        .page(long_page)
        .page(rows)
        .page(allocating)
        .page(blocking)
        .run_with("Usage: app", options.lines())
}

fn start(options: &[&str]) -> Program {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "serve_program", "--nocapture"]);
    let usual = ["--listen", "127.0.0.1:0", "--admission", "off", "--queue-timeout", "60s"];
    command.env(OPTIONS, [&usual, options].concat().join("\n"));
    Program::start(&mut command)
}

fn read(file: &Path) -> Profile {
    Profile::read(&std::fs::read(file).unwrap()).unwrap()
}

/// The allocations of the program for the requests of `send` after the first [`WARM_UP`] ones. It serves
/// a file of [`LENGTH`] bytes.
fn recorded(send: impl FnOnce(&Program)) -> Report {
    let folder = Folder::new();
    folder.write("root/file.txt", &[b'x'; LENGTH]);
    let (root, file) = (folder.join("root"), folder.join("profile"));
    let program = start(&[
        "--root",
        root.to_str().unwrap(),
        "--profile-allocations",
        file.to_str().unwrap(),
        "--profile-after",
        &WARM_UP.to_string(),
        // A busy machine makes requests slow, and the warning about it allocates.
        "--error-log-level",
        "error",
    ]);
    send(&program);
    let Ended { code, errors, .. } = program.stop();
    assert_eq!(code, Some(0), "{errors}");
    Report::of(&read(&file), &Selection::default())
}

#[test]
fn hello_a_page_and_a_file_allocate_nothing() {
    for (target, length, route) in [
        ("/hello?name=TLUG", 19, "profile::hello"),
        ("/page?name=TLUG", LENGTH, "profile::long_page"),
        ("/file.txt", LENGTH, "files"),
    ] {
        let report = recorded(|program| {
            let mut peer = program.connect();
            for _ in 0..2 * WARM_UP {
                assert_eq!(peer.get(target).body.len(), length);
            }
        });
        assert_eq!(report.requests, WARM_UP as u64);
        assert_eq!(report.count, Count::default(), "{target}: {:#?}", report.functions);
        assert_eq!(report.routes.len(), 1, "{:?}", report.routes);
        assert_eq!(
            (&*report.routes[0].name, report.routes[0].requests),
            (route, Some(WARM_UP as u64))
        );
    }
}

/// Hop's measurement, with accept and close: its paper tells 457 bytes for each connection.
#[test]
fn a_connection_of_one_request_allocates_nothing() {
    for (target, length) in [("/hello?name=TLUG", 19), ("/file.txt", LENGTH)] {
        let report = recorded(|program| {
            for _ in 0..2 * WARM_UP {
                assert_eq!(program.connect().get(target).body.len(), length);
            }
        });
        assert_eq!(report.requests, WARM_UP as u64);
        assert_eq!(report.count, Count::default(), "{target}: {:#?}", report.functions);
    }
}

/// The page is written into the buffer that is sent, and the buffer does not grow with the page.
#[test]
fn a_page_that_is_sent_in_chunks_allocates_nothing() {
    let list: Vec<String> = (0..ROWS).map(|row| format!("<li>{row}</li>")).collect();
    let page = format!("<ul>{}</ul>", list.concat());
    let report = || {
        recorded(|program| {
            let mut peer = program.connect();
            for _ in 0..WARM_UP + 20 {
                assert_eq!(peer.get("/rows").text(), page);
            }
        })
    };
    // For a client that reads late, as on a busy machine, the server keeps what is unsent.
    for attempt in 1..=5 {
        let report = report();
        assert_eq!(report.requests, 20);
        if report.count == Count::default() {
            return;
        }
        println!("attempt {attempt}: {:#?}", report.functions);
    }
    panic!("each attempt allocates");
}

#[test]
fn reports_each_allocation_of_a_handler() {
    const REQUESTS: u64 = 50;
    let folder = Folder::new();
    let file = folder.join("profile");
    let file = file.to_str().unwrap();
    let requests = (2 * REQUESTS).to_string();
    let options = ["--profile-allocations", file, "--profile-requests", &requests];
    let program = start(&options);
    let mut peer = program.connect();
    for _ in 0..REQUESTS {
        assert_eq!(peer.get("/allocating").text(), "<p>done</p>");
        assert_eq!(peer.get("/blocking").text(), "<p>done</p>");
    }
    // These requests are too many, so they are not recorded.
    (0..5).for_each(|_| assert_eq!(peer.get("/allocating").text(), "<p>done</p>"));
    let Ended { code, errors, .. } = program.stop();
    assert_eq!(code, Some(0), "{errors}");
    assert!(errors.contains("allocations during 100 requests; `bine profile "), "{errors}");
    let profile = read(Path::new(file));
    for (route, calls) in [("profile::allocating", 2), ("profile::blocking", 1)] {
        let selection = Selection { route: Some(route.to_owned()), ..Selection::default() };
        let report = Report::of(&profile, &selection);
        assert_eq!(report.requests, REQUESTS);
        // The module of a function may be missing, as there are no complete debug data.
        let is_named = |row: &&FunctionRow| row.function.ends_with("allocate_twice");
        let row = report.functions.iter().find(is_named).unwrap();
        let number = REQUESTS * calls * SIZES.len() as u64;
        let bytes = REQUESTS * calls * SIZES.iter().sum::<usize>() as u64;
        assert_eq!((row.own, row.total), (Count { number, bytes }, Count { number, bytes }));
        assert!(row.file.ends_with("profile/main.rs"), "{row:?}");
        let stages = report.stages.iter().find(|row| row.name == Stage::Handler.name()).unwrap();
        assert!(stages.count.number >= number, "{stages:?}");
    }
}

//! A program's tables: acknowledged changes survive any end of the program.

use std::thread;

use bine::prelude::*;
use bine::store;

use crate::app::{options, program};
use crate::harness::{Folder, KINDS, Program};

#[derive(Table)]
struct Name {
    id: Id<Name>,
    #[table(unique, length = 1..=20)]
    text: Text,
}

/// The program under test. Ordinary test runs skip it.
#[test]
fn serve_table_program() -> Exit {
    let Some(options) = options() else { return Exit::success() };
    App::new()
        .table::<Name>()
        .on_store_open(|store| {
            if store.read().count::<Name>() == 0 {
                store.insert(Name { id: Id::unassigned(), text: "first".into() }).wait()?;
            }
            Ok(())
        })
        .page(names)
        .page(add)
        .page(add_plainly)
        .page(lose)
        .page(collide)
        .run_with("Usage: kept", options.lines())
}

#[page("/names")]
async fn names(store: Store) -> Response {
    let names: Vec<Text> = store.read().all::<Name>().map(|name| name.text).collect();
    Response::text(names.join(" "))
}

#[page(POST "/add/{text}")]
async fn add(store: Store, text: Path<Text>) -> Result<Response, Error> {
    store.insert(Name { id: Id::unassigned(), text: text.0 }).await?;
    Ok(Response::text("kept"))
}

#[page(POST "/add-plainly/{text}")]
fn add_plainly(store: Store, text: Path<Text>) -> Result<Response, store::Error> {
    store.insert(Name { id: Id::unassigned(), text: text.0 }).wait()?;
    Ok(Response::text("kept"))
}

#[page(POST "/lose")]
async fn lose(store: Store) -> Result<Response, Error> {
    let missing = Id::unassigned();
    store.update(missing, |name: &mut Name| name.text = "found".into()).await?;
    Ok(Response::text("changed"))
}

/// Conflicts: a concurrent change always commits first.
#[page(POST "/collide")]
fn collide(store: Store) -> Result<Response, Error> {
    let first = store.read().all::<Name>().next().map(|name| name.id).unwrap_or_default();
    let grow = |name: &mut Name| name.text = format!("{}+", name.text).into();
    store
        .change_once(|change| {
            store.update(first, grow).wait()?;
            change.update(first, grow)
        })
        .wait()?;
    Ok(Response::text("changed"))
}

fn start(options: &[&str]) -> Program {
    Program::start(&mut program("kept::serve_table_program", options))
}

fn post(program: &Program, target: &str) -> (u16, String) {
    crate::channels::post(&mut program.connect(), target, "")
}

fn names_of(program: &Program) -> Vec<String> {
    let reply = program.connect().get("/names");
    reply.text().split_whitespace().map(ToOwned::to_owned).collect()
}

#[test]
fn acknowledged_changes_survive_a_kill() {
    for scheduler in KINDS {
        println!("on {scheduler}:");
        let folder = Folder::new();
        let data = folder.join("data");
        let options = ["--scheduler", scheduler, "--data", data.to_str().unwrap()];
        let program = start(&options);
        assert_eq!(post(&program, "/add/second"), (200, "kept".to_owned()));
        assert_eq!(post(&program, "/add-plainly/third"), (200, "kept".to_owned()));
        program.kill();
        let program = start(&options);
        assert_eq!(names_of(&program), ["first", "second", "third"]);
        let ended = program.stop();
        assert_eq!(ended.code, Some(0), "{}", ended.errors);
        assert_eq!(names_of(&start(&options)), ["first", "second", "third"]);
    }
}

#[test]
fn keeps_each_of_many_concurrent_changes() {
    const PEERS: usize = 8;
    const CHANGES: usize = 25;
    let folder = Folder::new();
    let data = folder.join("data");
    let options = ["--data", data.to_str().unwrap()];
    let program = start(&options);
    thread::scope(|scope| {
        for number in 0..PEERS {
            let mut peer = program.connect();
            scope.spawn(move || {
                for change in 0..CHANGES {
                    let way = if number % 2 == 0 { "add" } else { "add-plainly" };
                    peer.send(format!(
                        "POST /{way}/{number}-{change} HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n"
                    ));
                    assert_eq!(peer.reply().status(), 200);
                }
            });
        }
    });
    program.kill();
    let kept = names_of(&start(&options));
    assert_eq!(kept.len(), 1 + PEERS * CHANGES);
    for number in 0..PEERS {
        let own = format!("{number}-");
        let own: Vec<_> = kept.iter().filter_map(|name| name.strip_prefix(&own)).collect();
        let in_order: Vec<String> = (0..CHANGES).map(|change| change.to_string()).collect();
        assert_eq!(own, in_order);
    }
}

#[test]
fn reports_reason_of_failed_change() {
    let program = start(&["--data", "memory"]);
    let long = "x".repeat(21);
    let told = [
        post(&program, "/add/first"),
        post(&program, &format!("/add/{long}")),
        post(&program, "/lose"),
        post(&program, "/collide"),
    ];
    let expected = [
        (409, "`text` is taken already"),
        (422, "`text` must have from 1 to 20 letters, not 21"),
        (404, "what this is about is not there any more"),
        (409, "others changed the same at the same time; try again"),
    ];
    for ((status, message), (wanted, words)) in told.iter().zip(expected) {
        assert_eq!((*status, message.lines().next()), (wanted, Some(words)), "{message}");
    }
    assert_eq!(names_of(&program), ["first+"]);
}

#[test]
fn rejects_second_server_on_same_folder() {
    let folder = Folder::new();
    let data = folder.join("data");
    let options = ["--data", data.to_str().unwrap()];
    let first = start(&options);
    let second = Program::run(&mut program("kept::serve_table_program", &options));
    assert!(second.errors.contains("data/journal") || second.output.contains("data/journal"));
    assert_eq!(post(&first, "/add/still"), (200, "kept".to_owned()));
}

#[test]
fn page_that_needs_tables_prevents_start_without_tables() {
    if let Some(options) = options() {
        println!("{:?}", App::new().page(add).run_with("Usage: app", options.lines()));
        return;
    }
    let test = "kept::page_that_needs_tables_prevents_start_without_tables";
    let output = Program::run(&mut program(test, &[])).output;
    assert!(output.contains("kept::add takes the `Store`"), "{output}");
    assert!(output.contains("add `.table::<..>()`"), "{output}");
}

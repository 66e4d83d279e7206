//! Tests of `trace-stages`: the file that a program writes.

use std::path::Path;

use serde_json::Value;

use crate::harness::{Folder, Program};
use crate::{bine, run};

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

/// The spans of the file: name and route.
fn spans(path: &Path) -> Vec<(String, String)> {
    let text = std::fs::read_to_string(path).unwrap();
    let json: Vec<Value> = serde_json::from_str(&text).unwrap();
    let word = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    json.iter()
        .map(|span| {
            assert_eq!((&span["ph"], &span["cat"]), (&"X".into(), &"bine::stage".into()));
            assert!(span["ts"].as_f64().unwrap() >= 0.0 && span["dur"].as_f64().unwrap() >= 0.0);
            (word(&span["name"]), word(&span["args"]["route"]))
        })
        .collect()
}

#[test]
fn records_the_stages_of_requests_with_their_routes() {
    let folder = Folder::new();
    folder.write("site/a.txt", b"a");
    let (site, file) = (folder.join("site"), folder.join("trace.json"));
    let mut command = bine(&["serve", text(&site), "--listen", "127.0.0.1:0"]);
    let program = Program::start(command.args(["--trace-stages", text(&file)]));
    let mut peer = program.connect();
    (0..3).for_each(|_| assert_eq!(peer.get("/a.txt").text(), "a"));
    let ended = program.stop();
    assert_eq!(ended.code, Some(0), "{}", ended.errors);
    assert!(ended.errors.contains("the trace is complete with "), "{}", ended.errors);
    let spans = spans(&file);
    let count = |name: &str| spans.iter().filter(|span| span.0 == name).count();
    assert_eq!(count("accept"), 1);
    assert!(count("parse") >= 3 && count("write") >= 3, "{spans:?}");
    let handlers: Vec<_> = spans.iter().filter(|span| span.0 == "handler").collect();
    assert_eq!(handlers, [&("handler".to_owned(), "files".to_owned()); 3]);
}

#[cfg(feature = "script")]
#[test]
fn records_the_pages_of_an_application_in_tsx() {
    let folder = Folder::new();
    folder.write(
        "app/index.tsx",
        b"import { page } from \"bine\";\nexport default page(() => <h1>Hello</h1>);\n",
    );
    let (app, file) = (folder.join("app"), folder.join("trace.json"));
    let mut command = bine(&["serve", text(&app), "--listen", "127.0.0.1:0"]);
    let program = Program::start(command.args(["--trace-stages", text(&file), "--data", "memory"]));
    assert!(program.connect().get("/").text().contains("<h1>Hello</h1>"));
    assert_eq!(program.stop().code, Some(0));
    let spans = spans(&file);
    let page = ("handler".to_owned(), "script site".to_owned());
    assert!(spans.contains(&page), "{spans:?}");
}

#[test]
fn ends_the_recording_after_a_number_of_spans() {
    let folder = Folder::new();
    folder.write("site/a.txt", b"a");
    let (site, file) = (folder.join("site"), folder.join("trace.json"));
    let mut command = bine(&["serve", text(&site), "--listen", "127.0.0.1:0"]);
    command.args(["--trace-stages", text(&file), "--trace-spans", "7"]);
    let program = Program::start(&mut command);
    let mut peer = program.connect();
    (0..10).for_each(|_| assert_eq!(peer.get("/a.txt").text(), "a"));
    // The file is complete while the server runs.
    assert_eq!(spans(&file).len(), 7);
    let ended = program.stop();
    assert!(ended.errors.contains("the trace is complete with 7 stages"), "{}", ended.errors);
}

#[test]
fn stops_the_start_if_the_file_cannot_be_created() {
    let folder = Folder::new();
    let arguments = ["serve", text(folder.path()), "--listen", "127.0.0.1:0"];
    let ended = run(&[&arguments[..], &["--trace-stages", "/nowhere/a"]].concat());
    assert_eq!(ended.code, Some(1));
    let message = "bine: trace-stages /nowhere/a: No such file or directory";
    assert!(ended.errors.contains(message), "{}", ended.errors);
}

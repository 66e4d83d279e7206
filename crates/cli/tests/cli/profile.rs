//! Tests of `bine profile`: a recording of the program itself, and its reports.

use std::ffi::OsStr;
use std::path::Path;
use std::process::Command;

use crate::harness::{Folder, Program};
use crate::{bine, run};

/// A profile of two routes, as docs/formats/allocations.md describes it.
const PROFILE: &str = "bine allocations 1\nprogram\tshop\nrequests\t20\nmilliseconds\t1500\n\
    left-out\t0\t0\ncut\t0\nroute\t15\tshop::cart\nroute\t5\tshop::help\n\
    frame\t9\t/rustc/0/library/alloc/src/vec.rs\talloc::vec::Vec<T>::push\n\
    frame\t7\tsrc/price.rs\tshop::price\n\
    frame\t3\tsrc/cart.rs\t<shop::Cart as bine::Page>::write\n\
    stack\t30\t600\thandler\tshop::cart\t0 1 2\nstack\t15\t75\thandler\tshop::cart\t2\n\
    stack\t4\t4000\toutside\t\t0\nend\t14\n";

fn profile(arguments: &[&str]) -> crate::harness::Ended {
    run(&[&["profile"], arguments].concat())
}

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

#[test]
fn shows_a_profile_as_a_table() {
    let folder = Folder::new();
    let file = folder.write("shop.profile", PROFILE.as_bytes());
    let ended = profile(&[text(&file)]);
    assert_eq!((ended.code, &*ended.errors), (Some(0), ""));
    let expected = "\
shop: 20 requests in 1.5 s

allocations  per request  bytes  per request
         45        2.250    675         33.8  in requests
          4                4000               outside of requests

allocations  per request  bytes  per request  stage
         45        2.250    675         33.8  handler

requests  allocations  per request  bytes  per request  route or service
      15           45        3.000    675         45.0  shop::cart
       5            0        0.000      0          0.0  shop::help

  own  bytes  total  bytes  function
1.500   30.0  1.500   30.0  shop::price (src/price.rs:7)
0.750    3.8  2.250   33.8  <shop::Cart as bine::Page>::write (src/cart.rs:3)
(functions: per request)
";
    assert_eq!(ended.output, expected);
    let ended = profile(&[text(&file), "--outside", "--rows", "1"]);
    assert!(ended.output.contains("4000               outside of requests"), "{}", ended.output);
    assert!(ended.output.contains("alloc::vec::Vec<T>::push"), "{}", ended.output);
    let ended = profile(&[text(&file), "--route=shop::help"]);
    assert!(ended.output.contains("shop: 5 requests"), "{}", ended.output);
}

#[test]
fn writes_a_profile_as_json_and_as_a_flame_graph() {
    let folder = Folder::new();
    let file = folder.write("shop.profile", PROFILE.as_bytes());
    let ended = profile(&[text(&file), "--json"]);
    let json: serde_json::Value = serde_json::from_str(&ended.output).unwrap();
    assert_eq!(json["requests"], 20);
    assert_eq!(json["allocations"], serde_json::json!({ "number": 45, "bytes": 675 }));
    assert_eq!(json["functions"][0]["function"], "shop::price");
    assert_eq!(json["functions"][1]["total"]["bytes"], 675);
    for (measure, width) in [("number", "799.50"), ("bytes", "1066.17")] {
        let image = folder.join("shop.svg");
        let ended = profile(&[text(&file), "--flame", text(&image), "--by", measure]);
        assert_eq!((ended.code, &*ended.output, &*ended.errors), (Some(0), "", ""));
        let image = std::fs::read_to_string(image).unwrap();
        let image = roxmltree::Document::parse(&image).unwrap();
        let title = "alloc::vec::Vec<T>::push: 30 allocations, 600 bytes";
        let named = |node: &roxmltree::Node<'_, '_>| node.text() == Some(title);
        let title = image.descendants().find(named).unwrap();
        let function = title.next_sibling().unwrap();
        assert_eq!(function.attribute("width"), Some(width));
        assert_eq!(function.attribute("y"), Some("102"), "the sixth row");
    }
}

#[track_caller]
fn check_error(arguments: &[&str], code: i32, message: &str) {
    let ended = profile(arguments);
    assert_eq!((ended.code, &*ended.output), (Some(code), ""), "{ended:?}");
    assert!(ended.errors.starts_with(message), "{}", ended.errors);
}

#[test]
fn names_the_error_of_a_wrong_file_or_argument() {
    let folder = Folder::new();
    let file = folder.write("shop.profile", PROFILE.as_bytes());
    let file = text(&file);
    let page = folder.write("page.html", b"<html></html>\n");
    let page = text(&page);
    let cut = folder.write("cut.profile", &PROFILE.as_bytes()[..100]);
    let cut = text(&cut);
    let absent = folder.join("absent");
    let absent = text(&absent);
    check_error(&[page], 1, &format!("bine: {page}: line 1: this is no profile of allocations;"));
    check_error(&[cut], 1, &format!("bine: {cut}: line 7: the file ends here and is incomplete"));
    check_error(&[absent], 1, &format!("bine: cannot read {absent}: No such file or directory"));
    check_error(
        &[file, "--route", "shop::card"],
        1,
        "bine: the profile has no route `shop::card`; it has: shop::cart, shop::help",
    );
    check_error(&[file, "--flame", "/nowhere/a.svg"], 1, "bine: cannot write /nowhere/a.svg: ");
    check_error(&[], 2, "bine: which file? Name the one that `--profile-allocations` has written");
    check_error(&[file, page], 2, &format!("bine: one file at a time; `{page}` is a second one"));
    check_error(&[file, "--rows", "none"], 2, "bine: --rows none: write a whole number, 1 or more");
    check_error(&[file, "--by", "time"], 2, "bine: --by time: write `number` or `bytes`");
    check_error(&[file, "--by", "bytes"], 2, "bine: `--by` belongs to `--flame FILE.svg`");
    check_error(
        &[file, "--json", "--flame", "a.svg"],
        2,
        "bine: write `--json` or `--flame`, not both",
    );
    check_error(&[file, "--tree"], 2, "bine: there is no option `--tree`");
    check_error(&[file, "--route"], 2, "bine: `--route` needs a value");
    check_error(
        &[file, "--write"],
        2,
        "bine: `--write` takes only options that locate the server;",
    );
    check_error(
        &[file, "--data", "x"],
        2,
        "bine: options that locate a server belong to `--write` and `--cpu`",
    );
}

#[test]
fn records_a_server_and_writes_the_profile_on_demand() {
    let folder = Folder::new();
    folder.write("site/a.txt", b"a");
    let (site, socket) = (folder.join("site"), folder.join("control"));
    let file = folder.join("site.profile");
    let mut command = bine(&["serve", text(&site), "--listen", "127.0.0.1:0"]);
    command.args([OsStr::new("--control"), socket.as_os_str()]);
    command.args([OsStr::new("--profile-allocations"), file.as_os_str()]);
    let program = Program::start(&mut command);
    let mut peer = program.connect();
    (0..3).for_each(|_| assert_eq!(peer.get("/a.txt").text(), "a"));
    let ended = profile(&["--write", "--control", text(&socket)]);
    assert!(ended.output.contains(" allocations during 3 requests; `bine profile "), "{ended:?}");
    let again = profile(&["--write", "--control", text(&socket)]);
    assert!(again.errors.contains("the profile has been written already"), "{again:?}");
    assert_eq!(program.stop().code, Some(0));
    let ended = profile(&[text(&file)]);
    assert!(ended.output.starts_with("bine: 3 requests in "), "{}", ended.output);
    // The first request opens the file.
    assert!(ended.output.contains("  files\n"), "{}", ended.output);
    assert!(ended.output.contains("bine_files::"), "{}", ended.output);
}

#[test]
fn names_the_error_of_wrong_samples() {
    check_error(&["--cpu", "soon"], 2, "bine: --cpu soon: write a time like 10s or 500ms");
    check_error(&["--cpu", "601s"], 2, "bine: --cpu 601s: write a time like 10s or 500ms");
    check_error(&["--cpu", "1s", "--pid", "x"], 2, "bine: --pid x: write the number of a process");
    check_error(&["--cpu", "1s", "a"], 2, "bine: `--cpu` samples a running program: it takes");
    check_error(&["--pid", "1"], 2, "bine: `--pid` belongs to `--cpu TIME`");
    let both = ["--cpu", "1s", "--pid", "1", "--data", "x"];
    check_error(&both, 2, "bine: write `--pid` or options that locate the server, not both");
    // Without a path for programs, `perf` cannot be found.
    let mut command = bine(&["profile", "--cpu", "1s", "--pid", "1"]);
    let ended = Program::run(command.env("PATH", "/nowhere"));
    assert_eq!(ended.errors, "bine: `perf` is not installed; on Debian: apt install linux-perf\n");
}

/// Skipped where `perf` is missing or may not observe processes.
#[test]
fn samples_the_functions_of_a_running_server() {
    let mut perf = Command::new("perf");
    perf.args(["record", "--quiet", "--output", "/dev/null", "--", "true"]);
    if !perf.output().is_ok_and(|output| output.status.success()) {
        return;
    }
    let folder = Folder::new();
    folder.write("site/a.txt", b"a");
    let (site, socket) = (folder.join("site"), folder.join("control"));
    let mut command = bine(&["serve", text(&site), "--listen", "127.0.0.1:0"]);
    let program = Program::start(command.args(["--control", text(&socket)]));
    let mut peer = program.connect();
    let image = folder.join("cpu.svg");
    for last in [&["--rows", "500"][..], &["--flame", text(&image)]] {
        let arguments = ["profile", "--cpu", "500ms", "--control", text(&socket)];
        let ended = std::thread::scope(|scope| {
            let sampler = scope.spawn(|| run(&[&arguments, last].concat()));
            while !sampler.is_finished() {
                assert_eq!(peer.get("/a.txt").text(), "a");
            }
            sampler.join().unwrap()
        });
        assert_eq!((ended.code, &*ended.errors), (Some(0), ""));
        let shown = if last[0] == "--rows" {
            ended.output
        } else {
            std::fs::read_to_string(&image).unwrap()
        };
        assert!(shown.contains("bine_server::event_loop::EventLoop"), "{shown}");
        assert!(shown.contains(" samples"), "{shown}");
    }
}

#[test]
fn stops_the_start_if_the_profile_cannot_be_written() {
    let folder = Folder::new();
    let arguments = ["serve", text(folder.path()), "--listen", "127.0.0.1:0"];
    let ended = run(&[&arguments[..], &["--profile-allocations", "/nowhere/a"]].concat());
    assert_eq!(ended.code, Some(1));
    let message = "bine: profile-allocations /nowhere/a: the file cannot be created: ";
    assert!(ended.errors.contains(message), "{}", ended.errors);
}

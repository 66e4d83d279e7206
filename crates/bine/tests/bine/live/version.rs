//! Open pages take a new version of the program: the server makes each load the page again once,
//! and none while the version stays.

use std::fs::File;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use rustix::process::Signal;

use super::add_note;
use super::viewer::{Event, Viewer};
use crate::app::program_at;
use crate::harness::{Folder, PATIENCE, Program};

/// Bytes before the build id of a program: the sizes of a name and a SHA-1, the type, the name.
const NOTE: &[u8] = b"\x04\0\0\0\x14\0\0\0\x03\0\0\0GNU\0";

/// Copies this program into a folder. A new version differs from it as another build would.
///
/// Other processes write the copy: a program cannot start while a process has it open for writing,
/// and those that other tests fork have what this process has.
fn copy(folder: &Folder, name: &str, is_new: bool) -> PathBuf {
    let (own, path) = (std::env::current_exe().unwrap(), folder.join(name));
    run(Command::new("cp").arg(&own).arg(&path));
    if is_new {
        let mut head = vec![0; 16 << 10];
        File::open(&own).unwrap().read_exact(&mut head).unwrap();
        let place = head.windows(NOTE.len()).position(|bytes| bytes == NOTE).expect("a build id");
        let id = folder.write("id", b"the id of a new one!");
        let options = ["bs=1", "conv=notrunc", "status=none"].map(str::to_owned);
        let operands = [
            format!("if={}", id.display()),
            format!("of={}", path.display()),
            format!("seek={}", place + NOTE.len()),
        ];
        run(Command::new("dd").args(options).args(operands));
    }
    path
}

fn run(command: &mut Command) {
    assert!(command.status().unwrap().success(), "{command:?}");
}

fn start(program: &Path, folder: &Folder) -> Program {
    let data = folder.join("data");
    let options = ["--data", data.to_str().unwrap()];
    Program::start(&mut program_at(program, "live::serve_live_program", &options))
}

/// Pages that are followed by a stream and by polls, alone and together with others.
fn open(program: &Program) -> Vec<Viewer> {
    let mut viewers: Vec<_> =
        ["/two", "/two", "/room/a"].map(|page| Viewer::of(program, page)).into();
    viewers.extend(["/two", "/room/a/later"].map(|page| Viewer::polling(program, page)));
    viewers
}

/// Checks that the next thing which happens to each page is a patch.
fn expect_only_patches(program: &Program, viewers: &mut [Viewer], text: &str) {
    add_note(program, "a", text);
    for viewer in viewers {
        assert_eq!(viewer.await_shown(text), [Event::Patch(0)]);
    }
}

#[test]
fn new_version_refreshes_each_open_page_once() {
    let folder = Folder::new();
    let old = start(&copy(&folder, "old", false), &folder);
    add_note(&old, "a", "before");
    let mut viewers = open(&old);
    old.kill();
    let new = start(&copy(&folder, "new", true), &folder);
    let current = Viewer::of(&new, "/two").version.expect("a page has a version");
    for viewer in &mut viewers {
        assert_eq!(viewer.follow_at(&new), 200);
        assert_eq!(viewer.next(), Event::Reload);
        assert_eq!(viewer.reload_data, current);
        viewer.load();
        assert_eq!(viewer.version.as_ref(), Some(&current));
        assert_eq!(viewer.follow(), 200);
    }
    expect_only_patches(&new, &mut viewers, "after");
}

/// A cache between browser and server may still have the old page.
#[test]
fn outdated_copy_of_a_page_is_not_refreshed_in_a_loop() {
    let folder = Folder::new();
    let old = start(&copy(&folder, "old", false), &folder);
    let mut viewers = open(&old);
    old.kill();
    let new = start(&copy(&folder, "new", true), &folder);
    for viewer in &mut viewers {
        assert_eq!(viewer.follow_at(&new), 200);
        assert_eq!(viewer.next(), Event::Reload);
        viewer.version = Some(viewer.reload_data.clone());
        assert_eq!(viewer.follow(), 200);
    }
    expect_only_patches(&new, &mut viewers, "after");
}

#[test]
fn same_version_refreshes_no_page_after_a_restart() {
    let folder = Folder::new();
    let program = start(&copy(&folder, "program", false), &folder);
    let mut viewers = open(&program);
    program.kill();
    // A copy has another time of change.
    let program = start(&copy(&folder, "installed-again", false), &folder);
    for viewer in &mut viewers {
        assert!(viewer.version.is_some());
        assert_eq!(viewer.follow_at(&program), 200);
    }
    expect_only_patches(&program, &mut viewers, "after");
}

#[test]
fn reload_of_the_configuration_refreshes_no_page() {
    let folder = Folder::new();
    let configuration = folder.write("bine.toml", b"nosniff = \"on\"\n");
    let data = folder.join("data");
    let options = ["--data", data.to_str().unwrap(), "--config", configuration.to_str().unwrap()];
    let own = std::env::current_exe().unwrap();
    let program = Program::start(&mut program_at(&own, "live::serve_live_program", &options));
    let mut viewers = ["/two", "/room/a"].map(|page| Viewer::of(&program, page));
    folder.write("bine.toml", b"nosniff = \"off\"\n");
    program.signal(Signal::HUP);
    let patience = Instant::now() + PATIENCE;
    while program.connect().get("/two").header("X-Content-Type-Options").is_some() {
        assert!(Instant::now() < patience, "the configuration stays");
    }
    for viewer in &mut viewers {
        assert!(viewer.version.is_some());
        viewer.leave();
        // A page that was rendered during the reload is answered with 503.
        while viewer.follow() != 200 {
            assert!(Instant::now() < patience, "no page can be followed");
        }
    }
    expect_only_patches(&program, &mut viewers, "after");
}

#[test]
fn new_version_leaves_the_response_to_a_form_alone() {
    let folder = Folder::new();
    let program = start(&copy(&folder, "program", false), &folder);
    let version = format!("998.{:016x}", 1);
    for (page, status) in [("/say/a", 204), ("/missing", 404), ("/two", 200)] {
        let target = format!("/_bine/live?page={page}&have={version}");
        assert_eq!(program.connect().get(&target).status(), status, "{page}");
    }
}

//! Decides which links are followed, and what that is no regular file is refused.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::sync::Arc;
use std::thread;

use bine_files::{Files, Root};
use bine_pipeline::Clock;
use rustix::fs::{CWD, FileType, Mode, mknodat};
use rustix::process::{Uid, geteuid};
use rustix::thread::set_thread_uid;

use crate::asking::{Asker, NOW, check};
use crate::place::Place;

const INSIDE: &str = "200 OK; Content-Type: text/plain; charset=utf-8; Content-Length: 6 | inside";

#[test]
fn a_link_that_stays_inside_is_followed() {
    let place = Place::with(&[("a/b.txt", "inside"), ("c/d.txt", "inside")]);
    place.link("a/b.txt", "file.txt");
    place.link("../a/b.txt", "c/up.txt");
    place.link("a", "directory");
    place.link("../c/../a", "c/around");
    for target in ["/file.txt", "/c/up.txt", "/directory/b.txt", "/c/around/b.txt"] {
        check(&place, &format!("GET {target}"), INSIDE);
    }
}

#[test]
fn a_link_that_leads_out_is_not_there() {
    let place = Place::with(&[("../outside/a.txt", "outside"), ("a.txt", "inside"), ("b/c", "")]);
    place.link("../outside/a.txt", "relative.txt");
    place.link(place.at("../outside/a.txt"), "absolute.txt");
    place.link("../outside", "directory");
    place.link("b/../../outside/a.txt", "b-out.txt");
    place.link("relative.txt", "twice.txt");
    // Even one that comes back, and one that is absolute and inside: what an absolute path means is not
    // for the root to say.
    place.link("../site/a.txt", "back.txt");
    place.link(place.at("a.txt"), "absolute-inside.txt");
    let targets = [
        "/relative.txt",
        "/absolute.txt",
        "/directory/a.txt",
        "/b-out.txt",
        "/twice.txt",
        "/back.txt",
        "/absolute-inside.txt",
    ];
    for target in targets {
        check(&place, &format!("GET {target}"), "none");
    }
}

#[test]
fn a_link_to_nothing_or_to_itself_is_not_there() {
    let place = Place::new();
    place.link("nothing.txt", "dangling.txt");
    place.link("loop.txt", "loop.txt");
    check(&place, "GET /dangling.txt", "none");
    check(&place, "GET /loop.txt", "none");
}

/// The links of `/proc` lead to open files, wherever those are.
#[test]
fn a_magic_link_is_not_there() {
    let root = Root::open(Path::new("/proc/self")).expect("Linux has it");
    let mut asker =
        Asker { files: Files::new(Arc::new(root), Arc::default()), clock: Clock::told(NOW) };
    for target in ["/exe", "/cwd/Cargo.toml", "/fd/0"] {
        // Not told as text: what it leads to may be a whole program.
        assert!(asker.hear(&format!("GET {target}")).is_none(), "{target}");
    }
}

#[test]
fn a_fifo_is_refused_and_nobody_waits_for_it() {
    let place = Place::new();
    let mode = Mode::RUSR | Mode::WUSR;
    mknodat(CWD, place.at("fifo.txt"), FileType::Fifo, mode, 0).expect("the place is writable");
    check(&place, "GET /fifo.txt", "none");
    check(&place, "POST /fifo.txt", "none");
}

#[test]
fn a_socket_is_refused() {
    let place = Place::new();
    let _listener = UnixListener::bind(place.at("socket.txt")).expect("the place is writable");
    check(&place, "GET /socket.txt", "none");
}

/// A thread of its own, since what a superuser may not read is nothing: it becomes somebody else first.
#[test]
fn what_may_not_be_read_is_not_there() {
    let place = Place::with(&[("closed.txt", "secret"), ("open.txt", "inside")]);
    place.write("directory/a.txt", "secret");
    let forbid = |name: &str| {
        fs::set_permissions(place.at(name), Permissions::from_mode(0o000)).expect("it is ours");
    };
    forbid("closed.txt");
    forbid("directory");
    thread::scope(|scope| {
        scope.spawn(|| {
            if geteuid().is_root() {
                set_thread_uid(Uid::from_raw(65_534)).expect("the superuser may be anybody");
            }
            check(&place, "GET /open.txt", INSIDE);
            check(&place, "GET /closed.txt", "none");
            check(&place, "GET /directory/a.txt", "none");
            check(&place, "GET /directory/", "none");
        });
    });
    // So that the place can be removed.
    fs::set_permissions(place.at("directory"), Permissions::from_mode(0o700)).expect("it is ours");
}

#[test]
fn a_root_that_is_renamed_is_served_on() {
    let place = Place::with(&[("a.txt", "inside")]);
    let mut asker = Asker::of(&place);
    fs::rename(place.site(), place.at("../moved")).expect("the place is writable");
    assert_eq!(asker.ask("GET /a.txt"), INSIDE);
}

#[test]
fn a_root_knows_the_path_it_was_opened_by() {
    let place = Place::new();
    let root = Root::open(&place.site()).expect("it was made with the place");
    assert_eq!(root.path(), place.site());
}

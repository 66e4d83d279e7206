//! Tests of links and of files that are not regular.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::sync::Arc;
use std::thread;

use bine_files::{Files, Root};
use bine_server::Clock;
use rustix::fs::{CWD, FileType, Mode, mknodat};
use rustix::process::{Uid, geteuid};
use rustix::thread::set_thread_uid;

use crate::client::{Client, NOW, check};
use crate::site::TestSite;

const INSIDE: &str = "200 OK; Content-Type: text/plain; charset=utf-8; Content-Length: 6 | inside";

#[test]
fn follows_links_inside_root() {
    let site = TestSite::with(&[("a/b.txt", "inside"), ("c/d.txt", "inside")]);
    site.link("a/b.txt", "file.txt");
    site.link("../a/b.txt", "c/up.txt");
    site.link("a", "directory");
    site.link("../c/../a", "c/around");
    for target in ["/file.txt", "/c/up.txt", "/directory/b.txt", "/c/around/b.txt"] {
        check(&site, &format!("GET {target}"), INSIDE);
    }
}

#[test]
fn does_not_follow_links_out_of_root() {
    let site = TestSite::with(&[("../outside/a.txt", "outside"), ("a.txt", "inside"), ("b/c", "")]);
    site.link("../outside/a.txt", "relative.txt");
    site.link(site.at("../outside/a.txt"), "absolute.txt");
    site.link("../outside", "directory");
    site.link("b/../../outside/a.txt", "b-out.txt");
    site.link("relative.txt", "twice.txt");
    // A link that leaves the root and returns is rejected, and so is an absolute link into the
    // root, because the root does not interpret absolute paths.
    site.link("../site/a.txt", "back.txt");
    site.link(site.at("a.txt"), "absolute-inside.txt");
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
        check(&site, &format!("GET {target}"), "none");
    }
}

#[test]
fn does_not_find_dangling_or_cyclic_links() {
    let site = TestSite::new();
    site.link("nothing.txt", "dangling.txt");
    site.link("loop.txt", "loop.txt");
    check(&site, "GET /dangling.txt", "none");
    check(&site, "GET /loop.txt", "none");
}

/// The links in `/proc` refer to open files anywhere on the system.
#[test]
fn does_not_follow_magic_links() {
    let root = Root::open(Path::new("/proc/self")).expect("Linux has it");
    let mut client =
        Client { files: Files::new(Arc::new(root), Arc::default()), clock: Clock::told(NOW) };
    for target in ["/exe", "/cwd/Cargo.toml", "/fd/0"] {
        // Not compared as text, since the target may be a whole program.
        assert!(client.send(&format!("GET {target}")).is_none(), "{target}");
    }
}

#[test]
fn rejects_fifo_without_waiting() {
    let site = TestSite::new();
    let mode = Mode::RUSR | Mode::WUSR;
    mknodat(CWD, site.at("fifo.txt"), FileType::Fifo, mode, 0).expect("the site is writable");
    check(&site, "GET /fifo.txt", "none");
    check(&site, "POST /fifo.txt", "none");
}

#[test]
fn rejects_socket() {
    let site = TestSite::new();
    let _listener = UnixListener::bind(site.at("socket.txt")).expect("the site is writable");
    check(&site, "GET /socket.txt", "none");
}

/// Runs `test` without the superuser's rights, with which it could read everything. It runs on its
/// own thread, because a thread does not get them back.
fn without_superuser(test: impl FnOnce() + Send) {
    thread::scope(|scope| {
        scope.spawn(|| {
            if geteuid().is_root() {
                set_thread_uid(Uid::from_raw(65_534)).expect("the superuser may be anybody");
            }
            test();
        });
    });
}

#[test]
fn serves_root_that_cannot_be_listed() {
    let site = TestSite::with(&[("a.txt", "inside")]);
    check(&site, "GET /a.txt", INSIDE);
    fs::set_permissions(site.root(), Permissions::from_mode(0o111)).expect("it is ours");
    without_superuser(|| check(&site, "GET /a.txt", INSIDE));
    // Otherwise the directory could not be removed.
    fs::set_permissions(site.root(), Permissions::from_mode(0o700)).expect("it is ours");
}

#[test]
fn does_not_find_unreadable_files() {
    let site = TestSite::with(&[("closed.txt", "secret"), ("open.txt", "inside")]);
    site.write("directory/a.txt", "secret");
    let forbid = |name: &str| {
        fs::set_permissions(site.at(name), Permissions::from_mode(0o000)).expect("it is ours");
    };
    forbid("closed.txt");
    forbid("directory");
    without_superuser(|| {
        check(&site, "GET /open.txt", INSIDE);
        check(&site, "GET /closed.txt", "none");
        check(&site, "GET /directory/a.txt", "none");
        check(&site, "GET /directory/", "none");
    });
    // Otherwise the directory could not be removed.
    fs::set_permissions(site.at("directory"), Permissions::from_mode(0o700)).expect("it is ours");
}

#[test]
fn keeps_serving_renamed_root() {
    let site = TestSite::with(&[("a.txt", "inside")]);
    let mut client = Client::of(&site);
    fs::rename(site.root(), site.at("../moved")).expect("the site is writable");
    assert_eq!(client.ask("GET /a.txt"), INSIDE);
}

#[test]
fn returns_path_of_root() {
    let site = TestSite::new();
    let root = Root::open(&site.root()).expect("it was made with the site");
    assert_eq!(root.path(), site.root());
}

//! Tests of the files that `bine serve DIR` serves, and of files that it must not serve.

use std::fs;
use std::os::unix::fs::symlink;

use crate::harness::{Folder, KINDS, Program};
use crate::{bine, start};

fn site() -> Folder {
    let folder = Folder::new();
    folder.write("secret.txt", b"outside");
    folder.write("site/index.html", b"<h1>home</h1>");
    folder.write("site/a.css", b"p { color: green }");
    folder.write("site/README", b"\x00\xff");
    folder.write("site/empty.txt", b"");
    folder.write("site/below/index.html", b"below");
    folder.write("site/bare/a b.txt", b"space");
    folder.write("site/.hidden", b"hidden");
    folder.write("site/large.bin", &large());
    symlink("../secret.txt", folder.join("site/way-out.txt")).unwrap();
    symlink("a.css", folder.join("site/alias.css")).unwrap();
    folder
}

/// Returns more bytes than the cache of files keeps, and than a socket takes at once.
fn large() -> Vec<u8> {
    (0..3_000_000_u32).map(|number| (number * 7 / 5) as u8).collect()
}

fn on_each_scheduler(check: impl Fn(&Program)) {
    for scheduler in KINDS {
        println!("on {scheduler}:");
        let folder = site();
        let site = folder.join("site");
        let options = ["serve", site.to_str().unwrap(), "--listen", "127.0.0.1:0"];
        check(&Program::start(bine(&options).args(["--scheduler", scheduler])));
    }
}

#[test]
fn serves_files_with_their_types() {
    on_each_scheduler(|program| {
        let mut peer = program.connect();
        let cases: [(&str, &str, &[u8]); 8] = [
            ("/", "text/html; charset=utf-8", b"<h1>home</h1>"),
            ("/index.html", "text/html; charset=utf-8", b"<h1>home</h1>"),
            ("/a.css?version=2", "text/css; charset=utf-8", b"p { color: green }"),
            ("/alias.css", "text/css; charset=utf-8", b"p { color: green }"),
            ("/README", "application/octet-stream", b"\x00\xff"),
            ("/empty.txt", "text/plain; charset=utf-8", b""),
            ("/below/", "text/html; charset=utf-8", b"below"),
            ("/bare/a%20b.txt", "text/plain; charset=utf-8", b"space"),
        ];
        // The second pass is served from the cache.
        for (target, media_type, content) in cases.iter().chain(&cases) {
            let reply = peer.get(target);
            assert_eq!((reply.status(), reply.header("Content-Type")), (200, Some(*media_type)));
            assert_eq!(reply.body, *content, "{target}");
            assert!(reply.header("Last-Modified").is_some());
            peer.send(format!("HEAD {target} HTTP/1.1\r\nHost: a\r\n\r\n"));
            let head = peer.reply_to_head();
            assert_eq!(head.status(), 200);
            assert_eq!(head.header("Content-Length"), Some(&*content.len().to_string()));
        }
    });
}

#[test]
fn serves_large_files_completely_and_in_order() {
    on_each_scheduler(|program| {
        let mut peer = program.connect();
        for target in ["/large.bin", "/a.css", "/large.bin", "/"] {
            peer.send(format!("GET {target} HTTP/1.1\r\nHost: a\r\n\r\n"));
        }
        assert!(peer.reply().body == large());
        assert_eq!(peer.reply().text(), "p { color: green }");
        assert!(peer.reply().body == large());
        assert_eq!(peer.reply().text(), "<h1>home</h1>");
    });
}

#[test]
fn serves_nothing_outside_the_folder() {
    on_each_scheduler(|program| {
        let targets = [
            "/secret.txt",
            "/way-out.txt",
            "/.hidden",
            "/bare/",
            "/bare",
            "/a.css/",
            "/below/../../secret.txt",
            "/%2e%2e/secret.txt",
            "/..%2fsecret.txt",
            "//secret.txt",
        ];
        for target in targets {
            let mut peer = program.connect();
            let reply = peer.get(target);
            assert!(matches!(reply.status(), 400 | 404), "{target}: {}", reply.head);
            assert!(!reply.text().contains("outside"));
        }
    });
}

#[test]
fn redirects_folders_to_trailing_slash() {
    on_each_scheduler(|program| {
        let reply = program.connect().get("/below?a=b");
        assert_eq!((reply.status(), reply.header("Location")), (301, Some("/below/?a=b")));
    });
}

#[test]
fn allows_only_reading_files() {
    on_each_scheduler(|program| {
        let mut peer = program.connect();
        for method in ["POST", "PUT", "DELETE"] {
            peer.send(format!("{method} /a.css HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\n\r\nx"));
            let reply = peer.reply();
            assert_eq!(
                (reply.status(), reply.header("Allow")),
                (405, Some("GET, HEAD, OPTIONS")),
                "{method}"
            );
        }
        assert_eq!(peer.get("/a.css").status(), 200);
    });
}

#[test]
fn accepts_folder_before_or_after_options() {
    let folder = site();
    let site = folder.join("site");
    let site = site.to_str().unwrap();
    for arguments in
        [["serve", site, "--listen", "127.0.0.1:0"], ["serve", "--listen", "127.0.0.1:0", site]]
    {
        let program = Program::start(&mut bine(&arguments));
        assert_eq!(program.connect().get("/").text(), "<h1>home</h1>");
    }
    let program = Program::start(&mut bine(&["serve", "--listen=127.0.0.1:0", site]));
    assert_eq!(program.connect().get("/").text(), "<h1>home</h1>");
}

/// Regression: each thread of a pool had an epoll instance of its own, so that a poll that waits took
/// three descriptors in place of two.
#[test]
fn shares_descriptors_among_threads_that_wait_for_connections() {
    let program = start(&["--scheduler", "pool", "--workers", "300", "--loops", "1"]);
    assert_eq!(program.connect().get("/").status(), 200);
    let threads = || fs::read_dir(format!("/proc/{}/task", program.id())).unwrap().count();
    while threads() < 300 {
        std::thread::yield_now();
    }
    let descriptors = fs::read_dir(format!("/proc/{}/fd", program.id())).unwrap().count();
    assert!(descriptors < 100, "{descriptors}");
}

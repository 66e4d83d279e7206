//! Tests that every kind of response works with every scheduler and kind of socket.

use std::fs::{self, File};
use std::sync::Arc;

use bine_server::Settings;
use rustix::fs::{Advice, fadvise};

use crate::house::{House, SCHEDULERS, settings, unix};
use crate::peer::get;
use crate::program::{FILE, file_byte};
use crate::secrecy::{secret, tls};

/// Requests each path alone, and then all paths in one pipeline.
#[track_caller]
fn check(asked: &[(&str, &str)]) {
    for scheduler in SCHEDULERS {
        let on_unix = Settings { listeners: vec![unix()], ..settings(scheduler) };
        for settings in [settings(scheduler), on_unix, secret(scheduler, tls())] {
            let is_secret = settings.tls.is_some();
            let house = House::with(settings);
            let mut peer = if is_secret { house.connect_secure() } else { house.connect() };
            for (path, expected) in asked {
                assert_eq!(peer.ask(path), *expected, "{path}, {scheduler}");
            }
            peer.send(asked.iter().map(|(path, _)| get(path)).collect::<String>());
            for (path, expected) in asked {
                assert_eq!(peer.reply().to_string(), *expected, "pipelined {path}, {scheduler}");
            }
        }
    }
}

#[test]
fn answers_every_kind_of_handler_alone_and_pipelined() {
    check(&[
        ("/", "200 hello"),
        ("/sleep/1", "200 later"),
        ("/yield", "200 later"),
        ("/work", "200 work"),
        ("/say/word", "200 word"),
        ("/work", "200 work"),
        ("/page/5", "200 ppppp"),
        ("/page/300000", "200 <300000>"),
        ("/long/300000", "200 <300000>"),
        ("/file", "200 <9000000>"),
        ("/yield", "200 later"),
        ("/", "200 hello"),
    ]);
}

#[test]
fn sends_a_file_unchanged() {
    for scheduler in SCHEDULERS {
        let house = House::open(scheduler);
        let mut peer = house.connect();
        peer.send(get("/file"));
        let content = peer.reply().content;
        assert_eq!(content.len(), FILE);
        let differs = content.iter().enumerate().find(|(at, byte)| **byte != file_byte(*at));
        assert_eq!(differs, None, "{scheduler}");
    }
}

#[test]
fn sends_a_file_unchanged_after_page_cache_eviction() {
    for scheduler in SCHEDULERS {
        let path =
            std::env::temp_dir().join(format!("bine-cold-{}-{scheduler}", std::process::id()));
        let bytes: Vec<u8> = (0..FILE).map(file_byte).collect();
        fs::write(&path, &bytes).unwrap();
        let file = File::open(&path).unwrap();
        fs::remove_file(&path).unwrap();
        file.sync_all().unwrap();
        fadvise(&file, 0, None, Advice::DontNeed).unwrap();
        let house = House::open(scheduler);
        house.program.disk.set(Arc::new(file.into())).unwrap();
        let mut peer = house.connect();
        peer.send(get("/disk") + &get("/say/behind"));
        assert!(peer.reply().content == bytes, "{scheduler}");
        assert_eq!(peer.reply().to_string(), "200 behind", "{scheduler}");
    }
}

#[test]
fn collects_a_body_in_pieces_or_after_100_continue() {
    for scheduler in SCHEDULERS {
        let house = House::open(scheduler);
        let mut peer = house.connect();
        let content: Vec<u8> = (0..500_000).map(file_byte).collect();
        peer.send(format!(
            "POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: {}\r\n\r\n",
            content.len()
        ));
        for piece in content.chunks(77_777) {
            peer.send(piece);
        }
        let reply = peer.reply();
        assert!(reply.content == content && !reply.close, "{scheduler}");
        peer.send(
            "POST /echo HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 3\r\n\r\n",
        );
        assert_eq!(peer.reply().status, 100, "{scheduler}");
        peer.send("abc");
        assert_eq!(peer.reply().to_string(), "200 abc", "{scheduler}");
        peer.send("POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 9999999\r\n\r\n");
        assert_eq!(peer.reply().to_string(), "413 close", "{scheduler}");
        peer.expect_closed();
    }
}

#[test]
fn answers_a_client_that_closes_its_sending_side() {
    for scheduler in SCHEDULERS {
        for path in ["/", "/yield", "/work", "/file"] {
            let house = House::open(scheduler);
            let mut peer = house.connect();
            peer.send(get(path));
            peer.finish();
            assert_eq!(peer.reply().status, 200, "{path}, {scheduler}");
            peer.expect_closed();
        }
    }
}

#[test]
fn delivers_an_early_rejection_to_a_sending_client() {
    for scheduler in SCHEDULERS {
        let house = House::open(scheduler);
        let mut peer = house.connect();
        // If the server closed with unread bytes, the kernel would reset the connection and drop
        // the response.
        peer.send("POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 9999999\r\n\r\n");
        peer.send(vec![b'x'; 150_000]);
        assert_eq!(peer.reply().to_string(), "413 close", "{scheduler}");
        peer.expect_closed();
    }
}

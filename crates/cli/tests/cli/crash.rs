//! Tests of a crash: it costs only the requests in progress.

use std::thread;

use crate::bine;
use crate::harness::{KINDS, Peer, Program};

#[test]
fn restarts_at_once_after_kill_under_load() {
    for scheduler in KINDS {
        // Nothing else on this machine opens connections from this address, so the port stays free
        // while no process listens on it.
        let mut address = "127.7.7.7:0".to_owned();
        for _ in 0..5 {
            let options = ["--scheduler", scheduler, "--listen", &address];
            let program = Program::start(&mut bine(&options));
            let reached = program.address();
            address = reached.to_string();
            let load = (0..4).map(|_| {
                let mut peer = Peer::tcp(reached);
                assert_eq!(peer.get("/hello?name=a").status(), 200);
                thread::spawn(move || {
                    // Any reply is accepted until the connection ends.
                    peer.send("GET /hello?name=a HTTP/1.1\r\nHost: a\r\n\r\n".repeat(500));
                    peer.rest()
                })
            });
            let load: Vec<_> = load.collect();
            program.kill();
            for peer in load {
                // A client whose writes failed received no reply to compare.
                let _ = peer.join();
            }
        }
    }
}

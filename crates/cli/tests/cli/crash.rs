//! Decides what a crash costs: what was under way, and nothing behind it.

use std::thread;

use crate::bine;
use crate::harness::{KINDS, Peer, Program};

#[test]
fn a_program_killed_under_load_can_be_started_again_at_once() {
    for scheduler in KINDS {
        // An address that nothing else on this machine opens connections from, so that its port
        // cannot be taken while nobody listens there.
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
                    // Whatever comes until the end of the connection is right.
                    peer.send("GET /hello?name=a HTTP/1.1\r\nHost: a\r\n\r\n".repeat(500));
                    peer.rest()
                })
            });
            let load: Vec<_> = load.collect();
            program.kill();
            for peer in load {
                // A peer whose sending was cut off has nothing to compare.
                let _ = peer.join();
            }
        }
    }
}

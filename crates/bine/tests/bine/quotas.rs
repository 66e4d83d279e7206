//! Claims about what clients can make a server hold in channels: in memory, and on the disk.

use std::fs;
use std::path::Path;

use crate::channels::start;
use crate::durable::{ask, check};
use crate::harness::{Folder, Peer};

const MIB: usize = 1 << 20;

fn post(peer: &mut Peer, body: &str) -> (u16, String) {
    let length = body.len();
    peer.send(format!(
        "POST /channels HTTP/1.1\r\nHost: a\r\nContent-Length: {length}\r\n\r\n{body}"
    ));
    let reply = peer.reply();
    (reply.status(), reply.text().to_owned())
}

/// One batch for many channels was checked once and counted for each: two locked every channel, also after a restart.
#[test]
fn a_batch_for_many_channels_counts_once_also_after_a_restart() {
    let folder = Folder::new();
    let data = folder.join("data");
    let options = ["--data", data.to_str().unwrap()];
    let program = start(&options);
    let mut peer = program.connect();
    let names: Vec<String> = (0..64).map(|number| format!("\"all/{number}\"")).collect();
    for number in 0..64 {
        check(&mut peer, ("PUT", &format!("all/{number}"), "", ""), 201);
    }
    let message = format!(
        "{{\"channels\":[{}],\"type\":\"application/octet-stream\",\"data\":\"{}\"}}",
        names.join(","),
        "x".repeat(MIB - 1024)
    );
    let batch = format!("[{}]", vec![message; 15].join(","));
    for _ in 0..2 {
        let (status, told) = post(&mut peer, &batch);
        assert_eq!(status, 200, "{told}");
    }
    check(&mut peer, ("PUT", "mine", "Content-Type: text/plain\r\n", "one"), 201);
    check(&mut peer, ("POST", "all/7", "Content-Type: application/octet-stream\r\n", "two"), 204);
    program.kill();
    let program = start(&options);
    let mut peer = program.connect();
    check(&mut peer, ("POST", "mine", "Content-Type: text/plain\r\n", "three"), 204);
    check(&mut peer, ("POST", "all/7", "Content-Type: application/octet-stream\r\n", "four"), 204);
}

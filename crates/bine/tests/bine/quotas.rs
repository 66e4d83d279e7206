//! Quotas on the channel data that clients can make a server hold, in memory and on the disk.

use std::fs;
use std::path::Path;
use std::thread;
use std::time::Instant;

use crate::channels::{post, start};
use crate::durable::{ask, check};
use crate::harness::{Folder, PATIENCE};

const MIB: usize = 1 << 20;

/// Regression: a batch for many channels was checked once but charged to each channel. Two batches
/// blocked all channels, even after a restart.
#[test]
fn charges_batch_for_many_channels_once_even_after_restart() {
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
        let (status, told) = post(&mut peer, "/channels", &batch);
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

/// Returns the size of all files below a folder.
fn size_of(folder: &Path) -> u64 {
    let entries = fs::read_dir(folder).unwrap();
    // Compaction of the journal may delete a file meanwhile.
    let sizes = entries.filter_map(Result::ok).map(|entry| match entry.metadata() {
        Ok(kind) if kind.is_dir() => size_of(&entry.path()),
        Ok(kind) => kind.len(),
        Err(_) => 0,
    });
    sizes.sum()
}

/// Regression: a hundred channels with a first body of 16 MiB each took 1 735 MiB of memory and 2
/// 224 MiB of journal.
#[test]
fn limits_first_bodies_of_channels_in_memory_and_on_disk() {
    let folder = Folder::new();
    let data = folder.join("data");
    let quota = 64 * MIB as u64;
    let program = start(&["--data", data.to_str().unwrap(), "--channels-bytes", "64m"]);
    let mut peer = program.connect();
    let (body, kind) = ("x".repeat(15 * MIB), "Content-Type: text/plain\r\n");
    let mut put = |number: usize| ask(&mut peer, "PUT", &format!("big/{number}"), kind, &body);
    let refused: Vec<_> = (0..20).map(&mut put).filter(|reply| reply.status() != 201).collect();
    assert_eq!(refused.len(), 16);
    for reply in &refused {
        assert_eq!(reply.status(), 507, "{reply:?}");
        let told = reply.text();
        assert!(told.contains("of 67108864 bytes") && told.contains("channels-bytes"), "{told}");
        assert!(told.contains("`bine channel list --by size`"), "{told}");
        assert!(told.contains("`bine channel delete NAME`"), "{told}");
    }
    // The journal does not contain the rejected bodies.
    assert!(size_of(&data) < quota + MIB as u64, "{}", size_of(&data));
    // An administrator can find the largest channels and remove them.
    check(&mut peer, ("PUT", "small", kind, "one"), 201);
    let listed = check(&mut peer, ("GET", "?by=size&limit=4", "", ""), 200);
    let listed: serde_json::Value = serde_json::from_slice(listed.text().as_bytes()).unwrap();
    let names: Vec<_> = listed.as_array().unwrap().iter().map(|one| &one["channel"]).collect();
    assert_eq!(names, ["big/0", "big/1", "big/2", "big/3"]);
    assert!(listed[0]["bytes"].as_u64().unwrap() > 15 * MIB as u64);
    // Room for a snapshot, its successor, and the growth of the journal meanwhile.
    let most = 6 * quota;
    for round in 0..12 {
        for number in 0..4 {
            check(&mut peer, ("DELETE", &format!("big/{number}"), "", ""), 204);
        }
        for number in 0..4 {
            check(&mut peer, ("PUT", &format!("big/{number}"), kind, &body), 201);
        }
        // A thread of its own writes snapshots and removes what they replace.
        let begun = Instant::now();
        while size_of(&data) >= most {
            assert!(begun.elapsed() < PATIENCE, "round {round}: {}", size_of(&data));
            thread::yield_now();
        }
    }
    check(&mut peer, ("GET", "small", "", ""), 200);
}

#[test]
fn rejects_first_body_beyond_quota_of_publisher() {
    let quotas = ["--channels-bytes", "4m", "--channels-bytes-per-subject", "3m"];
    let program = start(&[&["--data", "memory"], &quotas[..]].concat());
    let mut peer = program.connect();
    let (body, kind) = ("x".repeat(MIB), "Content-Type: text/plain\r\n");
    let mut put = |name: &str| ask(&mut peer, "PUT", name, kind, &body);
    assert_eq!([put("a").status(), put("b").status()], [201, 201]);
    let refused = put("c");
    assert_eq!(refused.status(), 507);
    let told = refused.text();
    assert!(told.contains("`address/local`") && told.contains("of 3145728 bytes"), "{told}");
}

#[test]
fn lists_manageable_channels_in_requested_order() {
    let program = start(&["--data", "memory"]);
    let mut peer = program.connect();
    for (name, length) in [("b", 1000), ("a", 10), ("c", 100_000)] {
        check(&mut peer, ("PUT", name, "Content-Type: text/plain\r\n", &"x".repeat(length)), 201);
    }
    for (query, names) in [
        ("", "a b c"),
        ("?by=name&after=a", "b c"),
        ("?limit=1", "a"),
        ("?by=size", "c b a"),
        ("?by=size&limit=2", "c b"),
    ] {
        let listed = check(&mut peer, ("GET", query, "", ""), 200);
        let listed: serde_json::Value = serde_json::from_slice(listed.text().as_bytes()).unwrap();
        let own = listed.as_array().unwrap().iter().map(|one| one["channel"].as_str().unwrap());
        assert_eq!(own.collect::<Vec<_>>().join(" "), names, "{query}");
        assert_eq!(listed[0]["publisher"], "address/local");
    }
    check(&mut peer, ("GET", "?by=age", "", ""), 400);
    check(&mut peer, ("GET", "?x=1", "", ""), 400);
}

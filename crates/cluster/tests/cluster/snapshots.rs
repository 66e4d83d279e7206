//! Snapshots, and the purge of the stream after them.

use bine_cluster::{Cluster, Options};
use bine_nats_server::NatsServer;

use crate::harness::Node;

/// Blocks of 20 MB in all, which exist one at a time.
fn blocks(seed: u8) -> impl Iterator<Item = Vec<u8>> {
    (0..200_u32).map(move |index| {
        (0..100_000_u32).map(|byte| (byte.wrapping_mul(31) ^ index) as u8 ^ seed).collect()
    })
}

#[test]
fn reads_back_the_snapshot_that_was_written() {
    let Some(server) = NatsServer::start() else { return };
    let cluster = Cluster::connect(Options::new(server.url(), "a")).unwrap();
    assert!(cluster.newest_snapshot().unwrap().is_none());
    let summary = cluster.write_snapshot(0, blocks(1)).unwrap();
    assert_eq!((summary.position, summary.blocks, summary.purged_to), (0, 200, None));
    assert!(summary.bytes > 20_000_000);
    let reader = cluster.newest_snapshot().unwrap().unwrap();
    assert_eq!(reader.position(), 0);
    let mut count = 0;
    let mut expected_blocks = blocks(1);
    for read in reader {
        let expected = expected_blocks.next().unwrap_or_default();
        assert!(read.unwrap() == expected, "block {count}");
        count += 1;
    }
    assert_eq!(count, 200);
}

#[test]
fn keeps_two_snapshots_and_the_messages_after_the_older_one() {
    let Some(server) = NatsServer::start() else { return };
    let node = Node::start(&server.url(), "a");
    let mut summaries = Vec::new();
    for length in [100, 200, 300] {
        node.publish(100);
        node.list.wait_for_length(length);
        let blocks = [length.to_string().into_bytes()].into_iter();
        summaries.push(node.cluster.write_snapshot(length as u64, blocks).unwrap());
    }
    assert_eq!(
        summaries.iter().map(|one| one.purged_to).collect::<Vec<_>>(),
        [None, Some(100), Some(200)]
    );
    assert_eq!(summaries[2].removed, [100]);
    assert_eq!(node.cluster.snapshots().unwrap(), [200, 300]);
    let newest = node.cluster.newest_snapshot().unwrap().unwrap();
    assert_eq!(newest.map(Result::unwrap).collect::<Vec<_>>(), [b"300"]);
    let previous = node.cluster.snapshot(200);
    assert_eq!(previous.map(Result::unwrap).collect::<Vec<_>>(), [b"200"]);
    let gone = node.cluster.snapshot(100).next().unwrap().unwrap_err().to_string();
    assert!(gone.contains("try again, or use an older one"), "{gone}");
    node.publish(10);
    node.list.wait_for_length(310);
    for after in [200, 300] {
        let late = Node::start_with(Options::new(server.url(), "b"), after);
        late.list.wait_for_connected();
        assert_eq!(late.cluster.position(), 310);
    }
}

#[test]
fn ends_a_node_whose_messages_are_purged() {
    let Some(server) = NatsServer::start() else { return };
    let node = Node::start(&server.url(), "a");
    for length in [100, 200] {
        node.publish(100);
        node.list.wait_for_length(length);
        node.cluster.write_snapshot(length as u64, [Vec::new()].into_iter()).unwrap();
    }
    let late = Node::start_with(Options::new(server.url(), "b"), 99);
    let reason = late.list.wait_for_end();
    let expected = "the stream `bine` begins at 101, and this node is only at 99: restart the node, \
                    which loads a snapshot";
    assert_eq!(reason, expected);
}

#[test]
fn stores_nothing_of_a_snapshot_whose_blocks_fail() {
    let Some(server) = NatsServer::start() else { return };
    let cluster = Cluster::connect(Options::new(server.url(), "a")).unwrap();
    let blocks = (0..10).map(|index| if index < 5 { vec![0; 300_000] } else { panic!("no block") });
    let writing = std::panic::AssertUnwindSafe(|| cluster.write_snapshot(1, blocks));
    assert!(std::panic::catch_unwind(writing).is_err());
    assert!(cluster.snapshots().unwrap().is_empty());
}

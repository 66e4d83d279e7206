//! The reservation of a stream, and its first snapshot.

use bine_cluster::{Cluster, Options, SnapshotReader};
use bine_nats_server::{NatsServer, wait_until};

use crate::harness::Node;

/// No message of the test's replica.
const RESERVATION: &[u8] = &[0];

fn connect(server: &NatsServer) -> Cluster {
    Cluster::connect(Options::new(server.url(), "mover")).unwrap()
}

fn content(snapshot: SnapshotReader) -> Vec<Vec<u8>> {
    snapshot.map(Result::unwrap).collect()
}

#[test]
fn staged_snapshot_is_found_once_it_is_published() {
    let Some(server) = NatsServer::start() else { return };
    let cluster = connect(&server);
    let position = cluster.reserve(RESERVATION).unwrap();
    assert_eq!(position, 1);
    let blocks = || [b"one".to_vec(), vec![7; 300_000]];
    assert!(cluster.stage_snapshot(position, blocks().into_iter()).unwrap() > 300_000);
    assert!(cluster.snapshots().unwrap().is_empty());
    assert_eq!(content(cluster.staged_snapshot(position)), blocks());
    cluster.publish_snapshot(position).unwrap();
    assert_eq!(cluster.snapshots().unwrap(), [position]);
    let newest = cluster.newest_snapshot().unwrap().unwrap();
    assert_eq!((newest.position(), content(newest)), (position, blocks().to_vec()));
    // Published snapshots stay.
    cluster.discard_staged_snapshots().unwrap();
    assert_eq!(content(cluster.snapshot(position)), blocks());
    // A node continues after the reservation.
    let node = Node::start_with(Options::new(server.url(), "a"), position);
    node.publish(3);
    node.list.wait_for_length(3);
    // The position follows the message by a moment.
    wait_until("the node has the position", || node.cluster.position() == 4);
    let refused = cluster.reserve(RESERVATION).unwrap_err().to_string();
    assert!(refused.contains("choose a new `cluster-name`"), "{refused}");
}

#[test]
fn stream_with_messages_of_nodes_is_not_reserved() {
    let Some(server) = NatsServer::start() else { return };
    let node = Node::start(&server.url(), "a");
    node.publish(1);
    node.list.wait_for_length(1);
    let refused = connect(&server).reserve(RESERVATION).unwrap_err().to_string();
    assert!(refused.contains("the cluster `bine` has data already"), "{refused}");
    wait_until("the node has the position", || node.cluster.position() == 1);
}

#[test]
fn interrupted_reservation_is_repeated_and_the_later_one_wins() {
    let Some(server) = NatsServer::start() else { return };
    let (first, second) = (connect(&server), connect(&server));
    assert_eq!(first.reserve(RESERVATION).unwrap(), 1);
    first.stage_snapshot(1, [b"first".to_vec()].into_iter()).unwrap();
    assert_eq!(second.reserve(RESERVATION).unwrap(), 2);
    second.stage_snapshot(2, [b"second".to_vec()].into_iter()).unwrap();
    let refused = first.publish_snapshot(1).unwrap_err().to_string();
    assert!(refused.contains("another program has written to the stream `bine`"), "{refused}");
    second.publish_snapshot(2).unwrap();
    assert_eq!(second.snapshots().unwrap(), [2]);
    second.discard_staged_snapshots().unwrap();
    let gone = first.staged_snapshot(1).next().unwrap().unwrap_err().to_string();
    assert!(gone.contains("the snapshot at position 1 cannot be read"), "{gone}");
}

#[test]
fn missing_stream_is_not_created_unasked() {
    let Some(server) = NatsServer::start() else { return };
    let options = || Options { creates: false, ..Options::new(server.url(), "a") };
    for _ in 0..2 {
        let error = Cluster::connect(options()).map(drop).unwrap_err().to_string();
        let expected = "the NATS server has no cluster `bine`: correct the address or the name";
        assert_eq!(error, expected);
    }
    let id = connect(&server).stream_id();
    assert_eq!(Cluster::connect(options()).unwrap().stream_id(), id);
}

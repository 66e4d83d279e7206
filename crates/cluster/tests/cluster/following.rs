//! One order for all nodes.

use std::sync::Arc;
use std::thread;

use bine_cluster::{Error, Replica};
use bine_nats_server::{NatsServer, wait_until};

use crate::harness::Node;

#[test]
fn delivers_concurrent_messages_in_one_order_exactly_once() {
    let Some(server) = NatsServer::start() else { return };
    let nodes = ["a", "b", "c"].map(|name| Node::start(&server.url(), name));
    thread::scope(|scope| {
        for node in &nodes {
            scope.spawn(|| node.publish(1000));
        }
    });
    for node in &nodes {
        node.list.wait_for_length(3000);
        node.list.check(&[("a", 1000), ("b", 1000), ("c", 1000)]);
        assert_eq!(node.list.accepted(), nodes[0].list.accepted());
        // The replica learns of a message before the position moves.
        wait_until("the position moves", || node.cluster.position() >= 3000);
    }
}

#[test]
fn delivers_earlier_messages_to_a_late_node() {
    let Some(server) = NatsServer::start() else { return };
    let first = Node::start(&server.url(), "a");
    first.publish(200);
    first.list.wait_for_length(200);
    let late = Node::start(&server.url(), "b");
    late.list.wait_for_length(200);
    assert_eq!(late.list.accepted(), first.list.accepted());
    assert_eq!(late.cluster.stream_id(), first.cluster.stream_id());
}

#[test]
fn confirms_messages_before_it_leaves() {
    let Some(server) = NatsServer::start() else { return };
    let node = Node::start(&server.url(), "a");
    node.list.wait_for_connected();
    node.publish(500);
    node.cluster.leave();
    node.list.check(&[("a", 500)]);
    assert_eq!(node.cluster.snapshots(), Err(Error::Left));
}

#[test]
fn ends_when_a_message_cannot_be_applied() {
    let Some(server) = NatsServer::start() else { return };
    let good = Node::start(&server.url(), "a");
    let strange = Node::start(&server.url(), "no_space_follows");
    strange.list.wait_for_connected();
    good.list.wait_for_connected();
    let other =
        bine_cluster::Cluster::connect(bine_cluster::Options::new(server.url(), "c")).unwrap();
    other.follow(Arc::new(Garbage), 0).unwrap();
    other.notify();
    let reason = good.list.wait_for_end();
    assert_eq!(reason, "the message at position 1 cannot be applied: garbage");
    assert_eq!(other.follow(Arc::new(Garbage), 0), {
        Err(Error::Misuse("the cluster already follows its stream".to_owned()))
    });
}

/// A replica that publishes what lists do not understand.
struct Garbage;

impl Replica for Garbage {
    fn unconfirmed_after(&self, number: u64) -> Option<bine_cluster::Outgoing> {
        let bytes = "garbage".into();
        (number == 0).then_some(bine_cluster::Outgoing { number: 1, bytes })
    }

    fn deliver(&self, _: u64, _: &[u8]) -> Result<(), String> {
        Ok(())
    }

    fn use_link(&self, _: &bine_cluster::Link) {}
}

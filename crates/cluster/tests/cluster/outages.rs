//! Servers that crash, hang, or lose their majority.

use bine_cluster::Options;
use bine_nats_server::{NatsServer, wait_until};

use crate::harness::Node;

#[test]
fn loses_no_message_when_the_server_is_killed() {
    let Some(mut server) = NatsServer::start() else { return };
    let nodes = ["a", "b", "c"].map(|name| Node::start(&server.url(), name));
    for node in &nodes {
        node.list.wait_for_connected();
        node.publish(1000);
    }
    nodes[0].list.wait_for_length(300);
    server.kill();
    for node in &nodes {
        node.list.wait_for_cut_off();
        node.publish(100);
    }
    server.restart();
    for node in &nodes {
        node.list.wait_for_length(3300);
        node.list.wait_for_connected();
        node.list.check(&[("a", 1100), ("b", 1100), ("c", 1100)]);
        assert_eq!(node.list.accepted(), nodes[0].list.accepted());
    }
}

#[test]
fn reports_a_hanging_server_and_recovers() {
    let Some(server) = NatsServer::start() else { return };
    let nodes = ["a", "b"].map(|name| Node::start(&server.url(), name));
    for node in &nodes {
        node.publish(10);
    }
    for node in &nodes {
        node.list.wait_for_connected();
        node.list.wait_for_length(20);
    }
    server.pause();
    for node in &nodes {
        node.publish(200);
        node.list.wait_for_cut_off();
    }
    server.resume();
    for node in &nodes {
        node.list.wait_for_length(420);
        node.list.wait_for_connected();
        node.list.check(&[("a", 210), ("b", 210)]);
        assert_eq!(node.list.accepted(), nodes[0].list.accepted());
    }
}

#[test]
fn survives_the_loss_of_a_server_and_reports_the_loss_of_the_majority() {
    let Some(mut servers) = NatsServer::start_three() else { return };
    let urls = servers.iter().map(NatsServer::url).collect::<Vec<_>>().join(",");
    let nodes = ["a", "b", "c"].map(|name| {
        let options = Options { replicas: 3, ..Options::new(&*urls, name) };
        Node::start_with(options, 0)
    });
    assert_eq!(nodes[0].cluster.durability().replicas, 3);
    for node in &nodes {
        node.list.wait_for_connected();
        node.publish(1000);
    }
    nodes[0].list.wait_for_length(300);
    let leader = nodes[0].cluster.leader().unwrap().unwrap();
    servers.iter_mut().find(|server| server.name() == leader).unwrap().kill();
    for node in &nodes {
        node.list.wait_for_length(3000);
        node.list.check(&[("a", 1000), ("b", 1000), ("c", 1000)]);
        assert_eq!(node.list.accepted(), nodes[0].list.accepted());
        node.list.wait_for_connected();
    }
    let second = servers.iter_mut().position(|server| server.name() != leader).unwrap();
    servers[second].kill();
    for node in &nodes {
        node.list.wait_for_cut_off();
        node.publish(10);
    }
    servers[second].restart();
    for node in &nodes {
        node.list.wait_for_length(3030);
        node.list.wait_for_connected();
        assert_eq!(node.list.accepted(), nodes[0].list.accepted());
    }
}

#[test]
fn ends_when_the_stream_is_deleted_and_created_again() {
    let Some(mut server) = NatsServer::start() else { return };
    let node = Node::start(&server.url(), "a");
    node.publish(5);
    node.list.wait_for_length(5);
    server.kill();
    server.erase();
    server.restart();
    let other = Node::start(&server.url(), "b");
    let reason = node.list.wait_for_end();
    assert!(reason.contains("was deleted and created again: restart the node"), "{reason}");
    wait_until("the other node works", || other.cluster.nodes().iter().any(|node| node.id == "b"));
}

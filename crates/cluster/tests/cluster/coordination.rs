//! Membership and leases.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use bine_cluster::{Cluster, NodeDetails, Options};
use bine_nats_server::{NatsServer, wait_until};

#[test]
fn shows_nodes_as_they_arrive_and_leave() {
    let Some(server) = NatsServer::start() else { return };
    let connect = |name: &str| Cluster::connect(Options::new(server.url(), name)).unwrap();
    let (a, b, c) = (connect("a"), connect("b"), connect("c"));
    for cluster in [&a, &b, &c] {
        wait_until("all nodes appear", || names(cluster) == ["a", "b", "c"]);
    }
    let details = NodeDetails {
        name: "second".to_owned(),
        version: "1".to_owned(),
        addresses: vec!["https://b".to_owned()],
        is_leaving: true,
        load: BTreeMap::from([("cpu".to_owned(), "0.5".to_owned())]),
    };
    b.set_node_details(details.clone());
    wait_until("the details change", || a.nodes().iter().any(|node| node.details == details));
    b.leave();
    wait_until("a node that leaves vanishes", || names(&a) == ["a", "c"]);
    drop(c);
    wait_until("a node that is gone vanishes", || names(&a) == ["a"]);
}

#[test]
fn moves_a_lease_when_its_holder_leaves_or_is_gone() {
    let Some(server) = NatsServer::start() else { return };
    let duration = Duration::from_secs(1);
    let connect = |name: &str| {
        let cluster = Cluster::connect(Options::new(server.url(), name)).unwrap();
        cluster.lease("job", duration).unwrap();
        cluster
    };
    let mut waiting = vec![connect("a"), connect("b"), connect("c")];
    for is_clean in [true, false] {
        let mut take = || {
            let index = waiting.iter().position(|cluster| cluster.holds("job"))?;
            Some(waiting.remove(index))
        };
        let mut holder = None;
        while holder.is_none() {
            thread::park_timeout(Duration::from_millis(5));
            holder = take();
        }
        let holder = holder.unwrap();
        assert!(waiting.iter().all(|cluster| !cluster.holds("job")));
        if is_clean {
            holder.leave();
        } else {
            drop(holder);
        }
    }
    wait_until("the last node takes the lease", || waiting[0].holds("job"));
    waiting[0].release("job");
    assert!(!waiting[0].holds("job"));
    assert!(!waiting[0].lease("job", duration).unwrap());
    wait_until("the node takes a lease again", || waiting[0].holds("job"));
}

#[test]
fn has_never_two_holders_while_the_server_hangs() {
    let Some(server) = NatsServer::start() else { return };
    let duration = Duration::from_millis(500);
    let nodes = ["a", "b"].map(|name| {
        let cluster = Cluster::connect(Options::new(server.url(), name)).unwrap();
        cluster.lease("job", duration).unwrap();
        cluster
    });
    let ended = Arc::new(AtomicBool::new(false));
    thread::scope(|scope| {
        scope.spawn(|| {
            while !ended.load(Ordering::Relaxed) {
                // The first holds before and after the second does: both do at one moment.
                let both = nodes[0].holds("job") && nodes[1].holds("job") && nodes[0].holds("job");
                assert!(!both);
                thread::yield_now();
            }
        });
        for _ in 0..3 {
            wait_until("a node holds the lease", || nodes.iter().any(|node| node.holds("job")));
            server.pause();
            wait_until("no node does", || nodes.iter().all(|node| !node.holds("job")));
            server.resume();
        }
        ended.store(true, Ordering::Relaxed);
    });
}

#[test]
fn rejects_leases_that_are_no_names_or_too_short() {
    let Some(server) = NatsServer::start() else { return };
    let cluster = Cluster::connect(Options::new(server.url(), "a")).unwrap();
    assert!(cluster.lease("a b", Duration::from_secs(1)).is_err());
    assert!(cluster.lease("a", Duration::from_millis(1)).is_err());
}

fn names(cluster: &Cluster) -> Vec<String> {
    cluster.nodes().into_iter().map(|node| node.id).collect()
}

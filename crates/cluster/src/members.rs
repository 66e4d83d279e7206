//! Membership: each node writes a record regularly, and watches those of all nodes.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use async_nats::jetstream::kv::{self, Operation, Store};
use async_nats::jetstream::stream::StorageType;
use bytes::Bytes;
use futures_util::StreamExt as _;
use serde_json::{Value, json};
use tokio::sync::Notify;
use tokio::time::timeout;

use crate::backoff::{Backoff, jittered};
use crate::connection::Connection;
use crate::connector::REQUEST_TIMEOUT;
use crate::error::{Error, root_cause};
use crate::options::NodeDetails;

/// The time between two records of a node.
const PERIOD: Duration = Duration::from_secs(3);
/// A node without a record for this long is gone.
const LIFETIME: Duration = Duration::from_secs(10);
/// The longest record.
const LONGEST_RECORD: i32 = 64 * 1024;
/// The most nodes that are remembered.
const MOST_NODES: usize = 1024;

/// A node of the cluster, as it reports itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Node {
    /// The name that is unique in the cluster.
    pub id: String,
    /// What the node reports about itself.
    pub details: NodeDetails,
    /// The position of the last message that it had applied.
    pub position: u64,
    /// Its start by its own clock, in seconds since 1970.
    pub started_at: u64,
}

impl Node {
    fn encode(&self) -> Bytes {
        let NodeDetails { name, version, addresses, is_leaving, load } = &self.details;
        let record = json!({
            "id": self.id, "name": name, "version": version, "addresses": addresses,
            "leaving": is_leaving, "load": load, "position": self.position,
            "started_at": self.started_at,
        });
        Bytes::from(record.to_string())
    }

    /// Reads a record. Missing parts are empty, so that nodes of different versions see each other.
    fn decode(key: &str, record: &[u8]) -> Option<Self> {
        let record: Value = serde_json::from_slice(record).ok()?;
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let number = |name: &str| record[name].as_u64().unwrap_or_default();
        let load = record["load"].as_object().into_iter().flatten();
        Some(Self {
            id: key.to_owned(),
            details: NodeDetails {
                name: text(&record["name"]),
                version: text(&record["version"]),
                addresses: record["addresses"].as_array().into_iter().flatten().map(text).collect(),
                is_leaving: record["leaving"].as_bool().unwrap_or_default(),
                load: load.map(|(name, value)| (name.clone(), text(value))).collect(),
            },
            position: number("position"),
            started_at: number("started_at"),
        })
    }
}

/// The records of all nodes, and the details of this one.
pub(crate) struct Members {
    /// Each node, with the time at which its record arrived. Clocks of other machines do not count.
    nodes: Mutex<BTreeMap<String, (Node, Instant)>>,
    details: Mutex<NodeDetails>,
    /// The details have changed.
    change: Notify,
}

impl Members {
    pub(crate) fn new(details: NodeDetails) -> Self {
        Self {
            nodes: Mutex::new(BTreeMap::new()),
            details: Mutex::new(details),
            change: Notify::new(),
        }
    }

    pub(crate) fn set_details(&self, details: NodeDetails) {
        *lock(&self.details) = details;
        self.change.notify_one();
    }

    pub(crate) fn nodes(&self) -> Vec<Node> {
        let nodes = lock(&self.nodes);
        let is_fresh = |(_, seen): &&(Node, Instant)| seen.elapsed() < LIFETIME;
        nodes.values().filter(is_fresh).map(|(node, _)| node.clone()).collect()
    }

    fn insert(&self, node: Node) {
        let mut nodes = lock(&self.nodes);
        nodes.retain(|_, (_, seen)| seen.elapsed() < LIFETIME);
        if nodes.len() < MOST_NODES || nodes.contains_key(&node.id) {
            nodes.insert(node.id.clone(), (node, Instant::now()));
        }
    }

    /// Opens the bucket of records.
    pub(crate) async fn open(connection: &Connection) -> Result<Store, Error> {
        let bucket = format!("{}-nodes", connection.name);
        open_bucket(
            connection,
            kv::Config {
                bucket,
                description: "the nodes of a Bine cluster".to_owned(),
                max_age: LIFETIME,
                max_value_size: LONGEST_RECORD,
                // Every node writes its record again within seconds.
                storage: StorageType::Memory,
                ..kv::Config::default()
            },
        )
        .await
    }

    /// Writes the record of this node regularly, and at each change.
    pub(crate) async fn announce(
        &self,
        store: Store,
        id: String,
        started_at: u64,
        position: impl Fn() -> u64,
    ) {
        loop {
            let details = lock(&self.details).clone();
            let node = Node { id: id.clone(), details, position: position(), started_at };
            // A record that fails is followed by another one soon.
            let _ = timeout(REQUEST_TIMEOUT, store.put(&id, node.encode())).await;
            let _ = timeout(jittered(PERIOD), self.change.notified()).await;
        }
    }

    /// Watches the records of all nodes.
    pub(crate) async fn watch(&self, store: Store) {
        let mut backoff = Backoff::new();
        loop {
            if let Ok(Ok(mut watch)) = timeout(REQUEST_TIMEOUT, store.watch_with_history(">")).await
            {
                // This node writes a record each 3 s, so silence means that the watch is broken.
                while let Ok(Some(Ok(entry))) = timeout(LIFETIME, watch.next()).await {
                    backoff.reset();
                    if entry.operation != Operation::Put {
                        lock(&self.nodes).remove(&entry.key);
                    } else if let Some(node) = Node::decode(&entry.key, &entry.value) {
                        self.insert(node);
                    }
                }
            }
            backoff.wait().await;
        }
    }
}

/// Opens a bucket, or creates it.
pub(crate) async fn open_bucket(
    connection: &Connection,
    config: kv::Config,
) -> Result<Store, Error> {
    let bucket = config.bucket.clone();
    if let Ok(store) = connection.requests.get_key_value(&bucket).await {
        return Ok(store);
    }
    let config = kv::Config { history: 1, num_replicas: connection.replicas, ..config };
    connection.requests.create_key_value(config).await.map_err(|error| {
        Error::Server(format!(
            "the bucket `{bucket}` cannot be opened or created ({}): check that the NATS servers run",
            root_cause(&error)
        ))
    })
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_its_own_records_and_survives_foreign_ones() {
        let details = NodeDetails {
            name: "one \"a\"".to_owned(),
            version: "0.1.0".to_owned(),
            addresses: vec!["https://a".to_owned()],
            is_leaving: true,
            load: BTreeMap::from([("cpu".to_owned(), "0.5".to_owned())]),
        };
        let node = Node { id: "a".to_owned(), details, position: 7, started_at: 8 };
        assert_eq!(Node::decode("a", &node.encode()), Some(node));
        assert_eq!(Node::decode("a", b"no JSON"), None);
        let foreign = Node::decode("a", br#"{"name": 1, "addresses": {}, "load": [1]}"#).unwrap();
        assert_eq!((foreign.details, foreign.position), (NodeDetails::default(), 0));
    }
}

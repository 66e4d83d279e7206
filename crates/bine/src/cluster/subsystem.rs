//! The cluster as a subsystem of a program: it opens the store, and answers `bine cluster status`.

use std::sync::{Arc, OnceLock};

use super::node::ClusterNode;
use crate::cluster_choices::ClusterChoices;
use crate::configuration::Configuration;
use crate::node_directory::NodeDirectory;
use crate::positions::NodePositions;
use crate::prometheus::PrometheusText;
use crate::read_position::ReadPositions;
use crate::staleness::Staleness;
use crate::subsystem::{Definition, Outline, Registration, Running, Start, Subsystem};
use crate::tables::StoreOpener;

/// The cluster of a program that has not started.
#[derive(Default)]
struct ClusterSubsystem {
    choices: ClusterChoices,
    node: Arc<OnceLock<Arc<ClusterNode>>>,
    /// That of the program, once it is defined.
    staleness: Arc<Staleness>,
    /// For handlers.
    positions: NodePositions,
}

inventory::submit! {
    // It stops after all others except the recorders: profiles and stages.
    Registration { rank: 2, create: || Box::new(ClusterSubsystem::default()) }
}

impl Subsystem for ClusterSubsystem {
    fn needs_store(&self, _outline: &Outline<'_>) -> bool {
        self.choices.servers.is_some()
    }

    fn configure(&mut self, configuration: &Configuration) {
        self.choices = configuration.choice();
    }

    fn define(&mut self, definition: &mut Definition) -> Result<(), String> {
        if self.choices.servers.is_some() {
            definition.running.push(Arc::new(RunningCluster(Arc::clone(&self.node))));
            definition.nodes = Some(Arc::new(ClusterNodes(Arc::clone(&self.node))));
            definition.staleness.share();
            self.staleness = Arc::clone(&definition.staleness);
            definition.states.add(self.positions.clone());
        }
        Ok(())
    }

    fn store_opener(&mut self) -> Option<StoreOpener> {
        self.choices.servers.as_ref()?;
        let (choices, own) = (self.choices.clone(), Arc::clone(&self.node));
        let staleness = Arc::clone(&self.staleness);
        Some(Box::new(move |options| {
            let node = ClusterNode::start(&choices, options, staleness)?;
            let store = node.store().clone();
            // A program starts once.
            let _ = own.set(node);
            Ok(store)
        }))
    }

    fn start(&mut self, start: &Start<'_>) -> Result<(), String> {
        if let Some(node) = self.node.get() {
            node.stop_at_end(Arc::downgrade(start.server));
            let positions = ReadPositions::new(node.store(), &self.staleness, node.stream_id());
            self.positions.set(Arc::clone(&positions));
            // A program starts once.
            let _ = start.shared.positions.set(positions);
            node.report_addresses(start.server.urls().collect());
        }
        Ok(())
    }
}

/// The nodes of the cluster.
struct ClusterNodes(Arc<OnceLock<Arc<ClusterNode>>>);

impl NodeDirectory for ClusterNodes {
    fn own_name(&self) -> Option<Arc<str>> {
        self.0.get().map(|node| node.name().into())
    }

    fn names(&self) -> Option<Vec<String>> {
        self.0.get()?.node_names()
    }
}

/// The hooks of the cluster while the program runs.
struct RunningCluster(Arc<OnceLock<Arc<ClusterNode>>>);

impl Running for RunningCluster {
    fn command(&self, words: &[String]) -> Option<Result<String, String>> {
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        match words[..] {
            ["cluster", "status"] => {
                Some(match self.0.get() {
                    Some(node) => Ok(node.status()),
                    None => Err("the program has no tables and no channels, so it uses no cluster"
                        .to_owned()),
                })
            }
            _ => None,
        }
    }

    fn write_metrics(&self, text: &mut PrometheusText) {
        let Some(node) = self.0.get() else { return };
        let (position, waiting) = node.figures();
        text.gauge("bine_cluster_connected", "Whether this node follows the stream.")
            .is(u8::from(node.is_connected()));
        text.gauge("bine_cluster_nodes", "Nodes that have reported themselves lately.")
            .is(node.node_count());
        text.counter("bine_cluster_position", "The position of the last message.").is(position);
        text.gauge("bine_cluster_waiting", "Changes of this node that wait for the stream.")
            .is(waiting);
    }

    fn announcement(&self) -> Option<String> {
        self.0.get().map(|node| format!("cluster: {}", node.durability()))
    }

    fn unfinished_work(&self) -> Option<String> {
        let (_, waiting) = self.0.get()?.figures();
        (waiting > 0).then(|| format!("cluster (changes that wait for the stream: {waiting})"))
    }

    fn leave(&self) {
        if let Some(node) = self.0.get() {
            node.report_leaving();
        }
    }

    fn failure(&self) -> Option<String> {
        self.0.get()?.failure()
    }

    fn stop(&self) {
        if let Some(node) = self.0.get() {
            node.leave();
        }
    }
}

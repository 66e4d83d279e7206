//! One node: a replica of the store, and its link to the stream.

use std::fmt::Write as _;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError, Weak, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use bine_cluster::{Cluster, Link, NodeDetails, Outgoing};
use bine_log as log;
use bine_server::Server;
use bytes::Bytes;

use super::upload::upload;
use crate::cluster_choices::ClusterChoices;
use crate::staleness::Staleness;
use crate::store::{DeclareError, Delivered, Error, Options, Replica, ReplicaSnapshot, Store};

/// A node of a cluster.
pub(crate) struct ClusterNode {
    replica: Replica,
    link: Arc<OnceLock<Cluster>>,
    /// The last state of the link; `None` before the first one.
    state: Mutex<Option<Link>>,
    changed: Condvar,
    /// Why the node that starts does not follow the stream yet.
    hindrance: Mutex<String>,
    /// Bytes of changes after which a snapshot is due, if the last one was not larger.
    min_growth: u64,
    snapshots: Arc<SnapshotProgress>,
    details: Mutex<NodeDetails>,
    staleness: Arc<Staleness>,
    /// The server to stop when the node cannot follow the stream any more.
    server: OnceLock<Weak<Server>>,
}

/// The snapshots that this node writes.
#[derive(Default)]
struct SnapshotProgress {
    /// The size of this node's last snapshot.
    last_size: AtomicU64,
    is_running: AtomicBool,
}

/// Bytes of changes after which a snapshot is due.
const MIN_GROWTH: u64 = 64 << 20;
/// The lease of the node that writes snapshots.
const LEASE: &str = "snapshots";
const LEASE_DURATION: Duration = Duration::from_secs(30);
/// The interval of progress messages while a node catches up.
const PROGRESS_INTERVAL: Duration = Duration::from_secs(1);
/// How long a start waits for the next progress.
const START_TIMEOUT: Duration = Duration::from_mins(1);

impl ClusterNode {
    /// Connects to the cluster, loads its newest snapshot and follows the stream to its end.
    ///
    /// # Errors
    ///
    /// A message that names the correction.
    pub(super) fn start(
        choices: &ClusterChoices,
        options: Options,
        staleness: Arc<Staleness>,
    ) -> Result<Arc<Self>, String> {
        let min_growth = choices.snapshot.unwrap_or(MIN_GROWTH);
        Self::follow(link_options(choices), min_growth, options, staleness, &mut |_| {})
    }

    /// As [`start`](Self::start), for a program that only reads: it writes no snapshot. `loaded`
    /// receives the bytes of the snapshot that are loaded so far.
    ///
    /// # Errors
    ///
    /// As [`start`](Self::start).
    pub(crate) fn observe(
        link: bine_cluster::Options,
        options: Options,
        loaded: &mut dyn FnMut(u64),
    ) -> Result<Arc<Self>, String> {
        Self::follow(link, u64::MAX, options, Arc::default(), loaded)
    }

    fn follow(
        link: bine_cluster::Options,
        min_growth: u64,
        options: Options,
        staleness: Arc<Staleness>,
        loaded: &mut dyn FnMut(u64),
    ) -> Result<Arc<Self>, String> {
        let details = link.details.clone();
        let cluster = connect(link)?;
        let link: Arc<OnceLock<Cluster>> = Arc::default();
        let own = Arc::clone(&link);
        let wake = move || {
            if let Some(cluster) = own.get() {
                cluster.notify();
            }
        };
        let replica = match cluster.newest_snapshot().map_err(|error| error.to_string())? {
            Some(snapshot) => {
                let position = snapshot.position();
                log::notice(format_args!("loading the snapshot at position {position}"));
                let mut bytes = 0;
                let blocks = snapshot.map(|block| {
                    let block = block.map_err(|error| error.to_string())?;
                    bytes += block.len() as u64;
                    loaded(bytes);
                    Ok(block)
                });
                let replica = Replica::from_snapshot(options, blocks, wake)?;
                if replica.position() != position {
                    let inside = replica.position();
                    return Err(format!("the snapshot at position {position} is one of {inside}"));
                }
                replica
            }
            None => Replica::new(options, wake)?,
        };
        let after = replica.position();
        let own = Arc::new(Self {
            replica,
            link,
            state: Mutex::default(),
            changed: Condvar::new(),
            hindrance: Mutex::default(),
            min_growth,
            snapshots: Arc::default(),
            details: Mutex::new(details),
            staleness,
            server: OnceLock::new(),
        });
        // Set once.
        let _ = own.link.set(cluster);
        let following: Arc<dyn bine_cluster::Replica> = Arc::<Self>::clone(&own);
        own.cluster().follow(following, after).map_err(|error| error.to_string())?;
        let begun = Instant::now();
        loop {
            own.wait_until_connected()?;
            match own.declare() {
                Ok(()) => return Ok(own),
                // The node was cut off meanwhile; a repeated declaration has no effect.
                Err(DeclareError::Failed(Error::CutOff(_) | Error::Unconfirmed(_)))
                    if begun.elapsed() < START_TIMEOUT => {}
                Err(error) => return Err(error.to_string()),
            }
        }
    }

    /// Declares the tables of the program.
    fn declare(&self) -> Result<(), DeclareError> {
        self.replica.declare()?.wait().map(drop).map_err(DeclareError::Failed)
    }

    pub(super) const fn store(&self) -> &Store {
        self.replica.store()
    }

    /// Identifies the stream: one that is deleted and created again has a different id.
    pub(super) fn stream_id(&self) -> u64 {
        self.cluster().stream_id()
    }

    /// Reports the addresses of this node to the others.
    pub(super) fn report_addresses(&self, addresses: Vec<String>) {
        let mut details = self.details.lock().unwrap_or_else(PoisonError::into_inner);
        details.addresses = addresses;
        self.cluster().set_node_details(details.clone());
    }

    /// Reports to the others that this node is going to stop.
    pub(super) fn report_leaving(&self) {
        let mut details = self.details.lock().unwrap_or_else(PoisonError::into_inner);
        details.is_leaving = true;
        self.cluster().set_node_details(details.clone());
    }

    /// Stops the server if the node cannot follow the stream any more. A new process loads a
    /// snapshot.
    pub(super) fn stop_at_end(&self, server: Weak<Server>) {
        // Called once.
        let _ = self.server.set(server);
        if self.failure().is_some() {
            self.stop_server();
        }
    }

    /// The reason why the node cannot follow the stream any more.
    pub(super) fn failure(&self) -> Option<String> {
        match &*self.state() {
            Some(Link::Ended(why)) => {
                Some(format!("this node cannot follow the cluster any more: {why}"))
            }
            Some(Link::Connected | Link::CutOff(_)) | None => None,
        }
    }

    fn stop_server(&self) {
        if let Some(server) = self.server.get().and_then(Weak::upgrade) {
            server.stop();
        }
    }

    /// Leaves the cluster.
    pub(crate) fn leave(&self) {
        self.cluster().leave();
    }

    /// The replica of this node.
    pub(crate) const fn replica(&self) -> &Replica {
        &self.replica
    }

    /// The ids of the nodes that have reported themselves lately.
    pub(crate) fn node_ids(&self) -> Vec<String> {
        self.cluster().nodes().into_iter().map(|node| node.id).collect()
    }

    /// What an acknowledged change has survived, for the log.
    pub(super) fn durability(&self) -> String {
        match self.cluster().durability().replicas {
            1 => "each change is on one NATS server: it survives crashes, and a power failure only with `sync_interval: always` in the configuration of that server".to_owned(),
            copies => format!("each change is on {copies} NATS servers, most of which have it before it is acknowledged"),
        }
    }

    /// The position of the last message, and the number of changes that wait for the stream.
    pub(super) fn figures(&self) -> (u64, usize) {
        (self.replica.position(), self.replica.waiting())
    }

    /// Whether the node follows the stream now.
    pub(super) fn is_connected(&self) -> bool {
        matches!(*self.state(), Some(Link::Connected))
    }

    /// The name of this node.
    pub(super) fn name(&self) -> String {
        self.details.lock().unwrap_or_else(PoisonError::into_inner).name.clone()
    }

    /// The names of the nodes that have reported themselves lately; `None` while this node is cut off.
    pub(super) fn node_names(&self) -> Option<Vec<String>> {
        let names = || self.cluster().nodes().into_iter().map(|node| node.id).collect();
        self.is_connected().then(names)
    }

    /// The number of nodes that have reported themselves lately.
    pub(super) fn node_count(&self) -> usize {
        self.cluster().nodes().len()
    }

    /// Describes the link and all nodes, one on each line.
    pub(super) fn status(&self) -> String {
        let mut text = match &*self.state() {
            Some(Link::Connected) => "this node follows the stream\n".to_owned(),
            Some(Link::CutOff(why)) => format!("this node is cut off: {why}\n"),
            Some(Link::Ended(why)) => format!("this node has ended: {why}\n"),
            None => "this node is starting\n".to_owned(),
        };
        let own = self.replica.position();
        let growth = self.replica.growth();
        // Writing into a String cannot fail.
        let _ = writeln!(text, "position {own}, {growth} bytes since the last snapshot");
        for node in self.cluster().nodes() {
            let bine_cluster::Node { id, details, position, .. } = node;
            let addresses = details.addresses.join(" ");
            let version = details.version;
            let leaving = if details.is_leaving { "  leaving" } else { "" };
            let _ = writeln!(
                text,
                "{id}  version {version}  position {position}  {addresses}{leaving}"
            );
        }
        text
    }

    fn cluster(&self) -> &Cluster {
        self.link.get().expect("`start` has set it")
    }

    fn state(&self) -> MutexGuard<'_, Option<Link>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until the node has caught up with the stream.
    fn wait_until_connected(&self) -> Result<(), String> {
        let (mut last, mut moved) = (self.replica.position(), Instant::now());
        let mut state = self.state();
        loop {
            match &*state {
                Some(Link::Connected) => return Ok(()),
                Some(Link::Ended(why)) => return Err(why.clone()),
                Some(Link::CutOff(_)) | None => {}
            }
            let waited = self.changed.wait_timeout(state, PROGRESS_INTERVAL);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
            let position = self.replica.position();
            if position != last {
                (last, moved) = (position, Instant::now());
                log::notice(format_args!(
                    "following the stream of the cluster: position {position}"
                ));
            } else if moved.elapsed() >= START_TIMEOUT {
                let seconds = START_TIMEOUT.as_secs();
                let why = self.hindrance.lock().unwrap_or_else(PoisonError::into_inner);
                return Err(format!(
                    "the stream of the cluster has sent nothing for {seconds} s ({why}): check the NATS servers"
                ));
            }
        }
    }

    /// Asks for a snapshot if one is due and this node is the one that writes them.
    fn snapshot_if_due(&self) {
        let due = self.min_growth.max(self.snapshots.last_size.load(Ordering::Relaxed));
        if self.replica.growth() < due || self.snapshots.is_running.load(Ordering::Acquire) {
            return;
        }
        if !matches!(self.cluster().lease(LEASE, LEASE_DURATION), Ok(true)) {
            return;
        }
        self.snapshots.is_running.store(true, Ordering::Release);
        let (link, begun) = (Arc::clone(&self.link), Instant::now());
        let (sender, receiver) = mpsc::sync_channel(1);
        let requested = self.replica.request_snapshot(move |snapshot| {
            // An error means that the thread below is gone.
            let _ = sender.send(snapshot);
        });
        if requested.is_err() {
            self.snapshots.is_running.store(false, Ordering::Release);
            return;
        }
        self.upload(receiver, link, begun);
    }

    fn upload(
        &self,
        snapshot: mpsc::Receiver<ReplicaSnapshot>,
        link: Arc<OnceLock<Cluster>>,
        begun: Instant,
    ) {
        let snapshots = Arc::clone(&self.snapshots);
        let write = move || {
            // The channel closes without a snapshot if the node was cut off.
            if let (Ok(snapshot), Some(cluster)) = (snapshot.recv(), link.get()) {
                match write_snapshot(cluster, snapshot) {
                    Ok((position, bytes)) => {
                        snapshots.last_size.store(bytes, Ordering::Relaxed);
                        let seconds = begun.elapsed().as_secs_f32();
                        log::notice(format_args!(
                            "wrote a snapshot of {bytes} bytes at position {position} in {seconds:.1} s"
                        ));
                    }
                    Err(why) => log::error(format_args!("no snapshot was written: {why}")),
                }
            }
            snapshots.is_running.store(false, Ordering::Release);
        };
        let spawned = thread::Builder::new().name("cluster image".to_owned()).spawn(write);
        if let Err(error) = spawned {
            self.snapshots.is_running.store(false, Ordering::Release);
            log::error(format_args!("no snapshot was written: cannot start a thread: {error}"));
        }
    }
}

/// Connects to a cluster.
///
/// # Errors
///
/// A message that names the correction.
pub(crate) fn connect(link: bine_cluster::Options) -> Result<Cluster, String> {
    let cluster = Cluster::connect(link).map_err(|error| error.to_string())?;
    let (accepted, needed) = (cluster.max_message(), Replica::MAX_MESSAGE);
    if accepted < needed {
        return Err(format!(
            "the NATS server accepts messages of {accepted} bytes and Bine sends up to {needed}: set its `max_payload` to 1MB, the default, or more"
        ));
    }
    Ok(cluster)
}

/// Writes a snapshot to the object store. Returns its position and its bytes.
fn write_snapshot(cluster: &Cluster, snapshot: ReplicaSnapshot) -> Result<(u64, u64), String> {
    let position = snapshot.position();
    let stored = upload(snapshot, |blocks| cluster.write_snapshot(position, blocks))?;
    Ok((stored.position, stored.bytes))
}

impl bine_cluster::Replica for ClusterNode {
    fn unconfirmed_after(&self, number: u64) -> Option<Outgoing> {
        let (number, bytes) = self.replica.unconfirmed_after(number)?;
        Some(Outgoing { number, bytes: Bytes::from_owner(bytes) })
    }

    fn deliver(&self, position: u64, message: &[u8]) -> Result<(), String> {
        if self.replica.deliver(position, message)? == Delivered::NeedsResend {
            self.cluster().resend();
        }
        self.snapshot_if_due();
        Ok(())
    }

    fn warn(&self, problem: &str) {
        log::warn(format_args!("{problem}"));
    }

    fn use_link(&self, link: &Link) {
        // Before the first connection, the node catches up and accepts no client.
        let is_starting = !matches!(*self.state(), Some(Link::Connected | Link::CutOff(_)));
        match link {
            Link::CutOff(why) if is_starting => {
                why.clone_into(&mut self.hindrance.lock().unwrap_or_else(PoisonError::into_inner));
                return;
            }
            Link::Connected => {
                self.replica.reconnect();
                self.staleness.set(false);
                log::notice(format_args!("this node follows the stream of the cluster"));
            }
            Link::CutOff(why) => {
                self.replica.cut_off(why);
                self.staleness.set(true);
                log::error(format_args!(
                    "this node is cut off from the cluster ({why}): pages are served and may be old, changes are refused with 503"
                ));
            }
            Link::Ended(why) => {
                self.replica.end(why);
                self.staleness.set(true);
                log::error(format_args!(
                    "this node cannot follow the cluster any more, so the server stops: {why}"
                ));
            }
        }
        *self.state() = Some(link.clone());
        self.changed.notify_all();
        if let Link::Ended(_) = link {
            self.stop_server();
        }
    }
}

pub(crate) fn link_options(choices: &ClusterChoices) -> bine_cluster::Options {
    let node = choices.node.clone().unwrap_or_else(default_name);
    let servers = choices.servers.clone().unwrap_or_default();
    let mut options = bine_cluster::Options::new(servers, node.clone());
    if let Some(name) = &choices.name {
        options.name.clone_from(name);
    }
    options.replicas = choices.copies.unwrap_or(1).into();
    options.credentials.clone_from(&choices.credentials);
    options.authority.clone_from(&choices.authority);
    options.certificate.clone_from(&choices.certificate);
    options.certificate_key.clone_from(&choices.certificate_key);
    options.details.name = node;
    env!("CARGO_PKG_VERSION").clone_into(&mut options.details.version);
    options
}

/// The name of the machine, as far as a node's name may contain it, and the number of the process.
fn default_name() -> String {
    let machine = std::fs::read_to_string(Path::new("/proc/sys/kernel/hostname"));
    let machine = machine.unwrap_or_else(|_| "node".to_owned());
    let is_allowed = |letter: &char| letter.is_ascii_alphanumeric() || *letter == '-';
    let machine: String = machine.chars().filter(is_allowed).take(40).collect();
    format!("{machine}-{}", std::process::id())
}

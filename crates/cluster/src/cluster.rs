//! The cluster as a program uses it: one thread, and calls into it.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError, SyncSender};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::thread;
use std::time::{Duration, SystemTime};

use tokio::runtime::{Builder, Handle, Runtime};
use tokio::sync::Notify;
use tokio::task::JoinHandle;
use tokio::time::timeout;

use crate::connection::Connection;
use crate::error::Error;
use crate::follower::Follower;
use crate::leases::Leases;
use crate::link_state::LinkState;
use crate::members::{Members, Node};
use crate::options::{NodeDetails, Options};
use crate::publisher::{Publisher, Signals};
use crate::replica::Replica;
use crate::reservation;
use crate::snapshots::{self, Part, SnapshotReader, SnapshotSummary};

/// The time for connecting, and for opening stream and buckets.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(30);
/// The time for a call that makes a few requests.
const CALL_TIMEOUT: Duration = Duration::from_secs(30);
/// The time that an upload may take after its last block.
const UPLOAD_TIMEOUT: Duration = Duration::from_mins(1);
/// The time for leaving, and the parts of it.
const LEAVE_TIMEOUT: Duration = Duration::from_secs(5);
const FLUSH_TIMEOUT: Duration = Duration::from_secs(2);
const GOODBYE_TIMEOUT: Duration = Duration::from_secs(2);
/// The most frames of a snapshot between the caller's thread and the cluster's.
const FRAMES_IN_FLIGHT: usize = 4;

/// A node's part in a cluster. See the [crate](crate).
///
/// Dropping it without [`leave`](Self::leave) stops the thread as well; other nodes then notice
/// after some seconds.
pub struct Cluster {
    shared: Arc<Shared>,
    runtime: Handle,
    /// Closed when the thread has ended.
    ended: Mutex<mpsc::Receiver<()>>,
}

/// What an acknowledged message has survived.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Durability {
    /// The number of servers that store each message. A majority of them had written it to a file
    /// before it was acknowledged.
    ///
    /// With one, a crash of the server loses no acknowledged message, but a power failure can. A
    /// server calls `fsync` each `sync_interval` of its configuration, by default two minutes, or
    /// for each message with `sync_interval: always`. A client cannot see this setting.
    pub replicas: usize,
}

struct Shared {
    connection: Connection,
    node: String,
    started_at: u64,
    signals: Arc<Signals>,
    members: Members,
    leases: Leases,
    /// Set once by `follow`.
    state: OnceLock<Arc<LinkState>>,
    is_following: AtomicBool,
    leaving: Notify,
    is_left: AtomicBool,
}

impl Cluster {
    /// Connects, and creates the stream if it is missing. Starts the thread of the cluster.
    pub fn connect(options: Options) -> Result<Self, Error> {
        let (started, start) = mpsc::sync_channel(1);
        let (end, ended) = mpsc::sync_channel(1);
        let spawned = thread::Builder::new().name("cluster".to_owned()).spawn(move || {
            run(options, &started);
            drop(end);
        });
        let no_thread = |error: io::Error| Error::Server(format!("no thread can start: {error}"));
        spawned.map_err(no_thread)?;
        let (shared, runtime) =
            start.recv_timeout(CONNECT_TIMEOUT + CALL_TIMEOUT).map_err(|_| {
                Error::Unreachable("the thread of the cluster does not start".to_owned())
            })??;
        Ok(Self { shared, runtime, ended: Mutex::new(ended) })
    }

    /// Identifies the stream. After an operator has deleted and created it, the id differs, and
    /// positions of the old stream mean nothing.
    pub fn stream_id(&self) -> u64 {
        self.shared.connection.stream_id()
    }

    /// Returns what an acknowledged message has survived.
    pub fn durability(&self) -> Durability {
        Durability { replicas: self.shared.connection.stream.cached_info().config.num_replicas }
    }

    /// Returns the name of the server that leads the stream; `None` without a cluster of servers.
    pub fn leader(&self) -> Result<Option<String>, Error> {
        let shared = Arc::clone(&self.shared);
        self.call(CALL_TIMEOUT, async move { shared.connection.leader().await })
    }

    /// The most bytes of one message. Does not block.
    pub fn max_message(&self) -> usize {
        self.shared.connection.client.max_payload()
    }

    /// Starts to follow the stream after this position, and to publish.
    ///
    /// The replica has applied all messages up to the position: 0 for a new one, or the position of
    /// the snapshot that it has loaded.
    pub fn follow(&self, replica: Arc<dyn Replica>, after: u64) -> Result<(), Error> {
        if self.shared.is_following.swap(true, Ordering::AcqRel) {
            return Err(Error::Misuse("the cluster already follows its stream".to_owned()));
        }
        let shared = Arc::clone(&self.shared);
        self.runtime.spawn(async move {
            // Here, so that the replica is called from this thread only.
            let state = Arc::new(LinkState::new(replica, after));
            let _ = shared.state.set(Arc::clone(&state));
            let connection = shared.connection.clone();
            let signals = Arc::clone(&shared.signals);
            let doubt = Arc::clone(&signals.doubt);
            let follower = Follower::new(connection.clone(), Arc::clone(&state), doubt);
            let publisher = Publisher { connection, state, signals };
            tokio::select! {
                () = follower.run() => {}
                () = publisher.run() => {}
            }
        });
        Ok(())
    }

    /// The position of the last message that the replica has applied. Does not block.
    pub fn position(&self) -> u64 {
        self.shared.position()
    }

    /// Reports that the replica has a new message to publish. Does not block; any thread may call it.
    pub fn notify(&self) {
        self.shared.signals.news.notify_one();
    }

    /// Publishes all unconfirmed messages again, after those under way: the replica has refused one
    /// after a gap. Does not block; the replica may call it while it applies a message.
    pub fn resend(&self) {
        self.shared.signals.resend.notify_one();
    }

    /// Returns the positions of the complete snapshots, ascending.
    pub fn snapshots(&self) -> Result<Vec<u64>, Error> {
        let shared = Arc::clone(&self.shared);
        self.call(CALL_TIMEOUT, async move { snapshots::list(&shared.connection).await })
    }

    /// Opens the newest complete snapshot.
    pub fn newest_snapshot(&self) -> Result<Option<SnapshotReader>, Error> {
        Ok(self.snapshots()?.last().map(|position| self.snapshot(*position)))
    }

    /// Opens the snapshot at this position. If it is gone, its first block is an error.
    pub fn snapshot(&self, position: u64) -> SnapshotReader {
        let (blocks, reader) = tokio::sync::mpsc::channel(FRAMES_IN_FLIGHT);
        let shared = Arc::clone(&self.shared);
        self.runtime.spawn(async move {
            snapshots::read(&shared.connection, position, blocks).await;
        });
        SnapshotReader::new(position, reader)
    }

    /// Stores a snapshot of the state after the message at `position`.
    ///
    /// Keeps the newest two snapshots and removes older ones. Then it purges the messages that the older
    /// kept snapshot contains. Only one node should do so at a time: use a [lease](Self::lease).
    pub fn write_snapshot(
        &self,
        position: u64,
        blocks: impl Iterator<Item = Vec<u8>>,
    ) -> Result<SnapshotSummary, Error> {
        let (sender, frames) = tokio::sync::mpsc::channel(FRAMES_IN_FLIGHT);
        let shared = Arc::clone(&self.shared);
        let outcome =
            self.start(async move { snapshots::write(&shared.connection, position, frames).await });
        send_blocks(blocks, &sender)?;
        wait(&outcome, UPLOAD_TIMEOUT)
    }

    /// Reserves a stream that no node has used for a snapshot of a state from elsewhere: appends a
    /// message, and returns its position, which is that of the snapshot. The message must be one that
    /// no replica accepts. A node that starts before the snapshot is published then ends with the
    /// replica's error.
    ///
    /// A stream whose messages are all equal to this one was reserved by a program that was
    /// interrupted; it is reserved again. If two programs do so at the same time, the later one wins,
    /// and [`publish_snapshot`](Self::publish_snapshot) of the earlier one fails.
    pub fn reserve(&self, message: &'static [u8]) -> Result<u64, Error> {
        let shared = Arc::clone(&self.shared);
        self.call(
            CALL_TIMEOUT,
            async move { reservation::append(&shared.connection, message).await },
        )
    }

    /// Stores the first snapshot of a [reserved](Self::reserve) stream. No node finds it before
    /// [`publish_snapshot`](Self::publish_snapshot). Returns its bytes.
    pub fn stage_snapshot(
        &self,
        position: u64,
        blocks: impl Iterator<Item = Vec<u8>>,
    ) -> Result<u64, Error> {
        let (sender, frames) = tokio::sync::mpsc::channel(FRAMES_IN_FLIGHT);
        let shared = Arc::clone(&self.shared);
        let outcome =
            self.start(async move { snapshots::stage(&shared.connection, position, frames).await });
        send_blocks(blocks, &sender)?;
        wait(&outcome, UPLOAD_TIMEOUT)
    }

    /// Opens a staged snapshot, to verify it.
    pub fn staged_snapshot(&self, position: u64) -> SnapshotReader {
        let (blocks, reader) = tokio::sync::mpsc::channel(FRAMES_IN_FLIGHT);
        let shared = Arc::clone(&self.shared);
        self.runtime.spawn(async move {
            snapshots::read_staged(&shared.connection, position, blocks).await;
        });
        SnapshotReader::new(position, reader)
    }

    /// Makes a staged snapshot the one with which nodes begin, in one step.
    pub fn publish_snapshot(&self, position: u64) -> Result<(), Error> {
        let shared = Arc::clone(&self.shared);
        self.call(CALL_TIMEOUT, async move {
            reservation::check_is_last(&shared.connection, position).await?;
            snapshots::publish(&shared.connection, position).await
        })
    }

    /// Removes all staged snapshots.
    pub fn discard_staged_snapshots(&self) -> Result<(), Error> {
        let shared = Arc::clone(&self.shared);
        self.call(CALL_TIMEOUT, async move { snapshots::discard_staged(&shared.connection).await })
    }

    /// Returns the nodes that have reported themselves within the last 10 s, ordered by their ids.
    /// Does not block.
    pub fn nodes(&self) -> Vec<Node> {
        self.shared.members.nodes()
    }

    /// Changes what this node reports about itself. Does not block.
    pub fn set_node_details(&self, details: NodeDetails) {
        self.shared.members.set_details(details);
    }

    /// Asks for a lease, and returns whether this node holds it now. Does not block.
    ///
    /// The node renews the lease, or tries to acquire it, until [`release`](Self::release). At most
    /// one node holds a lease at a time. Check it before each step of the work: a cut-off node loses
    /// it after `duration`.
    pub fn lease(&self, name: &str, duration: Duration) -> Result<bool, Error> {
        if let Some(lease) = self.shared.leases.want(name, duration)? {
            let shared = Arc::clone(&self.shared);
            self.runtime.spawn(async move {
                // Without a replica nothing follows the stream yet.
                let warn = |problem: &str| {
                    if let Some(state) = shared.state.get() {
                        state.warn(problem);
                    }
                };
                shared.leases.run(&shared.connection, &lease, warn).await;
            });
        }
        Ok(self.holds(name))
    }

    /// Whether this node holds the lease now. Does not block.
    pub fn holds(&self, name: &str) -> bool {
        self.shared.leases.holds(name)
    }

    /// Gives a lease back, or stops asking for it. Does not block.
    pub fn release(&self, name: &str) {
        self.shared.leases.release(name);
    }

    /// Leaves the cluster: waits for messages under way, gives leases back, removes the record of the
    /// node, and stops the thread. Takes at most 5 s.
    /// Later calls of methods that make requests return [`Error::Left`].
    pub fn leave(&self) {
        self.shared.is_left.store(true, Ordering::Release);
        self.shared.leaving.notify_one();
        // The thread sends no value; the channel closes when it has ended.
        let ended = self.ended.lock().unwrap_or_else(PoisonError::into_inner);
        let _ = ended.recv_timeout(LEAVE_TIMEOUT);
    }

    /// Runs a future on the thread of the cluster, and waits for its result.
    fn call<T: Send + 'static>(
        &self,
        limit: Duration,
        future: impl Future<Output = Result<T, Error>> + Send + 'static,
    ) -> Result<T, Error> {
        wait(&self.start(future), limit)
    }

    fn start<T: Send + 'static>(
        &self,
        future: impl Future<Output = Result<T, Error>> + Send + 'static,
    ) -> mpsc::Receiver<Result<T, Error>> {
        let (sender, receiver) = mpsc::sync_channel(1);
        let events = self.shared.connection.events.clone();
        self.runtime.spawn(async move {
            let _ = events.take_denial();
            // The server does not answer a request that it does not permit.
            let outcome = future.await.map_err(|error| events.take_denial().unwrap_or(error));
            // An error means that the caller does not wait any more.
            let _ = sender.send(outcome);
        });
        receiver
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        self.shared.leaving.notify_one();
    }
}

impl Shared {
    fn position(&self) -> u64 {
        self.state.get().map_or(0, |state| state.position())
    }
}

/// Sends the blocks of a snapshot and their end to the upload. If the upload has failed, its outcome
/// has the reason.
fn send_blocks(
    blocks: impl Iterator<Item = Vec<u8>>,
    upload: &tokio::sync::mpsc::Sender<Part>,
) -> Result<(), Error> {
    let mut count = 0;
    for block in blocks {
        let Some(frame) = crate::frame::encode(&block) else {
            let longest = crate::frame::LONGEST_BLOCK;
            return Err(Error::Misuse(format!("a block is longer than {longest} bytes")));
        };
        if upload.blocking_send(Part::Frame(frame)).is_err() {
            return Ok(());
        }
        count += 1;
    }
    let _ = upload.blocking_send(Part::End(count));
    Ok(())
}

fn wait<T>(outcome: &mpsc::Receiver<Result<T, Error>>, limit: Duration) -> Result<T, Error> {
    outcome.recv_timeout(limit).unwrap_or_else(|error| match error {
        RecvTimeoutError::Timeout => {
            let seconds = limit.as_secs();
            Err(Error::Unreachable(format!(
                "the NATS servers have not answered within {seconds} s: check that they run"
            )))
        }
        RecvTimeoutError::Disconnected => Err(Error::Left),
    })
}

type Started = Result<(Arc<Shared>, Handle), Error>;

/// The thread of the cluster.
fn run(options: Options, started: &SyncSender<Started>) {
    let runtime = match Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => {
            let _ = started.send(Err(Error::Server(format!("no event loop can start: {error}"))));
            return;
        }
    };
    match runtime.block_on(open(&runtime, options)) {
        Ok((shared, announcing)) => {
            // An error means that the caller is gone; then the loop ends by `leaving`.
            if started.send(Ok((Arc::clone(&shared), runtime.handle().clone()))).is_ok() {
                runtime.block_on(serve(&shared, &announcing));
            }
        }
        Err(error) => {
            let _ = started.send(Err(error));
        }
    }
    // Tasks that still run are dropped. A lookup of a host may block; do not wait for it.
    runtime.shutdown_background();
}

/// Connects, and starts the tasks of the membership. Returns the one that writes this node's record.
async fn open(runtime: &Runtime, options: Options) -> Result<(Arc<Shared>, JoinHandle<()>), Error> {
    let limit = CONNECT_TIMEOUT;
    let opening = async {
        let connection = Connection::open(&options).await?;
        let records = Members::open(&connection).await;
        let records = records.map_err(|error| connection.events.take_denial().unwrap_or(error))?;
        Ok((connection, records))
    };
    let (connection, records) = timeout(limit, opening).await.unwrap_or_else(|_| {
        let seconds = limit.as_secs();
        Err(Error::Unreachable(format!(
            "the NATS servers have not opened the stream within {seconds} s: check that they run"
        )))
    })?;
    let since_1970 = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    let shared = Arc::new(Shared {
        leases: Leases::new(&options.node, connection.client.new_inbox().replace('.', "-")),
        connection,
        node: options.node,
        started_at: since_1970.map_or(0, |since| since.as_secs()),
        signals: Arc::default(),
        members: Members::new(options.details),
        state: OnceLock::new(),
        is_following: AtomicBool::new(false),
        leaving: Notify::new(),
        is_left: AtomicBool::new(false),
    });
    let own = Arc::clone(&shared);
    let store = records.clone();
    let announcing = runtime.spawn(async move {
        let position = || own.position();
        own.members.announce(store, own.node.clone(), own.started_at, position).await;
    });
    let watching = Arc::clone(&shared);
    runtime.spawn(async move { watching.members.watch(records).await });
    Ok((shared, announcing))
}

/// Waits for the end of the cluster while its tasks run, and says goodbye.
async fn serve(shared: &Arc<Shared>, announcing: &JoinHandle<()>) {
    shared.leaving.notified().await;
    if !shared.is_left.load(Ordering::Acquire) {
        return;
    }
    let _ = timeout(FLUSH_TIMEOUT, confirmed(shared)).await;
    shared.leases.release_all();
    // Otherwise a new record could follow the removal.
    announcing.abort();
    let goodbye = async {
        if let Ok(store) = Members::open(&shared.connection).await {
            let _ = store.delete(&shared.node).await;
        }
        // The leases' own tasks free them meanwhile.
        shared.leases.released().await;
        let _ = shared.connection.client.flush().await;
    };
    let _ = timeout(GOODBYE_TIMEOUT, goodbye).await;
}

/// Waits until the stream has delivered all messages of this node.
async fn confirmed(shared: &Shared) {
    let Some(state) = shared.state.get() else { return };
    let mut position = state.watch_position();
    while state.replica().unconfirmed_after(0).is_some() {
        if position.changed().await.is_err() {
            return;
        }
    }
}

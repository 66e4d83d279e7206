//! Snapshots of the replicas' state, in an object store.
//!
//! An object is named by the id of the stream and by the position, so that a snapshot of a stream that
//! was deleted is never loaded into its successor. The object store lists an object only after all of
//! it is stored.

use std::io;
use std::pin::Pin;
use std::task::{Context as TaskContext, Poll};
use std::time::Duration;

use async_nats::jetstream::object_store::{self, ObjectStore};
use async_nats::jetstream::stream::StorageType;
use futures_util::StreamExt as _;
use tokio::io::{AsyncRead, ReadBuf};
use tokio::sync::mpsc::{Receiver, Sender};
use tokio::time::timeout;

use crate::connection::Connection;
use crate::error::{Error, root_cause};
use crate::frame;

/// The number of snapshots to keep: the second serves a node that is reading it, or a damaged first.
const KEPT: usize = 2;
/// Begins the names of snapshots that are not complete or not verified.
const STAGED: &str = "staged-";
/// The time for a list, or for the next bytes of a snapshot.
const READ_TIMEOUT: Duration = Duration::from_secs(10);
/// Chunks without an object that are older than this belong to an upload that has failed.
const ORPHAN_AGE: Duration = Duration::from_mins(10);

/// A stored snapshot.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SnapshotSummary {
    /// The position of the last message that the snapshot contains.
    pub position: u64,
    /// The number of blocks.
    pub blocks: u64,
    /// The bytes of the stored object.
    pub bytes: u64,
    /// The positions of older snapshots that were removed.
    pub removed: Vec<u64>,
    /// The stream keeps the messages after this position; `None`: all that it had.
    pub purged_to: Option<u64>,
}

/// The blocks of a snapshot in their order. After an error, the blocks so far are worthless.
#[derive(Debug)]
pub struct SnapshotReader {
    position: u64,
    blocks: Receiver<Result<Option<Vec<u8>>, Error>>,
    is_done: bool,
}

impl SnapshotReader {
    pub(crate) fn new(position: u64, blocks: Receiver<Result<Option<Vec<u8>>, Error>>) -> Self {
        Self { position, blocks, is_done: false }
    }

    /// The position of the last message that the snapshot contains.
    pub fn position(&self) -> u64 {
        self.position
    }
}

impl Iterator for SnapshotReader {
    type Item = Result<Vec<u8>, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.is_done {
            return None;
        }
        let item = self.blocks.blocking_recv().unwrap_or(Err(Error::Left)).transpose();
        self.is_done = !matches!(item, Some(Ok(_)));
        item
    }
}

/// Returns the positions of the complete snapshots of this stream, ascending.
pub(crate) async fn list(connection: &Connection) -> Result<Vec<u64>, Error> {
    let store = open(connection).await?;
    timeout(READ_TIMEOUT, list_store(&store, connection.stream_id()))
        .await
        .map_err(|_| Error::Server("the list of snapshots is incomplete after 10 s".to_owned()))?
}

/// Reads the snapshot at this position, and sends its blocks.
pub(crate) async fn read(
    connection: &Connection,
    position: u64,
    blocks: Sender<Result<Option<Vec<u8>>, Error>>,
) {
    let name = object_name(connection.stream_id(), position);
    read_object(connection, (position, &name), blocks).await;
}

/// Reads the staged snapshot at this position, and sends its blocks.
pub(crate) async fn read_staged(
    connection: &Connection,
    position: u64,
    blocks: Sender<Result<Option<Vec<u8>>, Error>>,
) {
    let name = staged_name(connection.stream_id(), position);
    read_object(connection, (position, &name), blocks).await;
}

async fn read_object(
    connection: &Connection,
    object: (u64, &str),
    blocks: Sender<Result<Option<Vec<u8>>, Error>>,
) {
    if let Err(error) = read_blocks(connection, object, &blocks).await {
        // An error means that the reader is gone.
        let _ = blocks.send(Err(error)).await;
    }
}

async fn read_blocks(
    connection: &Connection,
    (position, name): (u64, &str),
    blocks: &Sender<Result<Option<Vec<u8>>, Error>>,
) -> Result<(), Error> {
    let damaged = |reason: String| {
        Error::Damaged(format!(
            "the snapshot at position {position} cannot be read ({reason}): try again, or use an \
             older one"
        ))
    };
    let store = open(connection).await?;
    let mut object = timeout(READ_TIMEOUT, store.get(name))
        .await
        .map_err(|_| damaged("no answer within 10 s".to_owned()))?
        .map_err(|error| damaged(root_cause(&error)))?;
    let mut count = 0;
    loop {
        let block = timeout(READ_TIMEOUT, frame::decode(&mut object, count))
            .await
            .map_err(|_| damaged("no bytes for 10 s".to_owned()))?
            .map_err(damaged)?;
        let is_end = block.is_none();
        if blocks.send(Ok(block)).await.is_err() || is_end {
            return Ok(());
        }
        count += 1;
    }
}

/// Uploads a snapshot from frames, removes older snapshots, and purges the stream.
pub(crate) async fn write(
    connection: &Connection,
    position: u64,
    frames: Receiver<Part>,
) -> Result<SnapshotSummary, Error> {
    let store = open(connection).await?;
    let name = object_name(connection.stream_id(), position);
    let (blocks, bytes) = upload(&store, &name, position, frames).await?;
    let mut positions =
        timeout(READ_TIMEOUT, list_store(&store, connection.stream_id())).await.map_err(
            |_| Error::Server("the list of snapshots is incomplete after 10 s".to_owned()),
        )??;
    let kept = positions.split_off(positions.len().saturating_sub(KEPT));
    for old in &positions {
        let name = object_name(connection.stream_id(), *old);
        store.delete(&name).await.map_err(|error| failed("remove a snapshot", &error))?;
    }
    let purged_to = match kept[..] {
        [older, _] => {
            let purge = connection.stream.purge().sequence(older + 1);
            purge.await.map_err(|error| failed("purge the stream", &error))?;
            Some(older)
        }
        _ => None,
    };
    remove_orphans(connection).await?;
    Ok(SnapshotSummary { position, blocks, bytes, removed: positions, purged_to })
}

/// Uploads a snapshot that no node finds yet. Returns its bytes.
pub(crate) async fn stage(
    connection: &Connection,
    position: u64,
    frames: Receiver<Part>,
) -> Result<u64, Error> {
    let store = open(connection).await?;
    let name = staged_name(connection.stream_id(), position);
    let (_, bytes) = upload(&store, &name, position, frames).await?;
    Ok(bytes)
}

/// Makes a staged snapshot one that nodes find.
pub(crate) async fn publish(connection: &Connection, position: u64) -> Result<(), Error> {
    let store = open(connection).await?;
    let stream_id = connection.stream_id();
    let metadata = object_store::UpdateMetadata {
        name: object_name(stream_id, position),
        ..object_store::UpdateMetadata::default()
    };
    let renamed = store.update_metadata(staged_name(stream_id, position), metadata);
    renamed.await.map(drop).map_err(|error| failed("publish the snapshot", &error))
}

/// Removes all staged snapshots.
pub(crate) async fn discard_staged(connection: &Connection) -> Result<(), Error> {
    let store = open(connection).await?;
    let mut objects = store.list().await.map_err(|error| failed("list snapshots", &error))?;
    let mut staged = Vec::new();
    while let Some(object) = objects.next().await {
        let object = object.map_err(|error| failed("list snapshots", &error))?;
        if !object.deleted && object.name.starts_with(STAGED) {
            staged.push(object.name);
        }
    }
    for name in staged {
        store.delete(&name).await.map_err(|error| failed("remove a snapshot", &error))?;
    }
    Ok(())
}

/// Stores an object from frames. Returns the numbers of its blocks and bytes.
async fn upload(
    store: &ObjectStore,
    name: &str,
    position: u64,
    frames: Receiver<Part>,
) -> Result<(u64, u64), Error> {
    let mut upload = Upload { frames, current: Vec::new(), read: 0, end: None };
    let info = store.put(name, &mut upload).await.map_err(|error| {
        Error::Server(format!(
            "the snapshot at position {position} cannot be stored ({}): check the space of the NATS \
             server",
            root_cause(&error)
        ))
    })?;
    Ok((upload.end.unwrap_or_default(), info.size as u64))
}

/// Removes the chunks of uploads that have failed.
async fn remove_orphans(connection: &Connection) -> Result<(), Error> {
    let bucket = bucket_name(connection);
    let failed = |error: &dyn std::error::Error| failed("list the chunks of snapshots", error);
    let stream = connection.requests.get_stream(format!("OBJ_{bucket}")).await;
    let stream = stream.map_err(|error| failed(&error))?;
    let store = open(connection).await?;
    let mut used = Vec::new();
    let mut objects = store.list().await.map_err(|error| failed(&error))?;
    while let Some(object) = objects.next().await {
        used.push(format!("$O.{bucket}.C.{}", object.map_err(|error| failed(&error))?.nuid));
    }
    let chunks = stream.info_with_subjects(format!("$O.{bucket}.C.>")).await;
    let mut chunks = chunks.map_err(|error| failed(&error))?;
    let now = chunks.info.state.last_timestamp;
    while let Some(entry) = chunks.next().await {
        let (subject, _) = entry.map_err(|error| failed(&error))?;
        if used.contains(&subject) {
            continue;
        }
        let Ok(last) = stream.get_last_raw_message_by_subject(&subject).await else { continue };
        // Both times are the server's.
        if now - last.time > ORPHAN_AGE {
            let purge = stream.purge().filter(&subject);
            purge.await.map_err(|error| failed(&error))?;
        }
    }
    Ok(())
}

async fn open(connection: &Connection) -> Result<ObjectStore, Error> {
    let bucket = bucket_name(connection);
    if let Ok(store) = connection.publishing.get_object_store(&bucket).await {
        return Ok(store);
    }
    let config = object_store::Config {
        bucket,
        description: Some("the snapshots of a Bine cluster".to_owned()),
        storage: StorageType::File,
        num_replicas: connection.replicas,
        ..object_store::Config::default()
    };
    let store = connection.publishing.create_object_store(config).await;
    store.map_err(|error| failed("open the bucket of snapshots", &error))
}

async fn list_store(store: &ObjectStore, stream_id: u64) -> Result<Vec<u64>, Error> {
    let mut objects = store.list().await.map_err(|error| failed("list snapshots", &error))?;
    let mut positions = Vec::new();
    while let Some(object) = objects.next().await {
        let object = object.map_err(|error| failed("list snapshots", &error))?;
        if !object.deleted {
            positions.extend(position_of(&object.name, stream_id));
        }
    }
    positions.sort_unstable();
    Ok(positions)
}

fn failed(what: &str, error: &dyn std::error::Error) -> Error {
    let cause = root_cause(error);
    Error::Server(format!(
        "cannot {what} ({cause}): check that the NATS servers run, and try again"
    ))
}

fn bucket_name(connection: &Connection) -> String {
    format!("{}-snapshots", connection.name)
}

/// The name of an object that nodes do not find.
fn staged_name(stream_id: u64, position: u64) -> String {
    format!("{STAGED}{}", object_name(stream_id, position))
}

fn object_name(stream_id: u64, position: u64) -> String {
    format!("{stream_id:016x}-{position:016x}")
}

/// The position in the name of an object of this stream.
fn position_of(name: &str, stream_id: u64) -> Option<u64> {
    let (stream, position) = name.split_once('-')?;
    let position = u64::from_str_radix(position, 16).ok()?;
    (stream == format!("{stream_id:016x}") && object_name(stream_id, position) == name)
        .then_some(position)
}

/// A part of an upload, from the caller's thread.
pub(crate) enum Part {
    Frame(Vec<u8>),
    /// All blocks were sent: their number.
    End(u64),
}

/// The frames as a source of bytes. Without an end, reading fails, so that half a snapshot is never
/// stored.
struct Upload {
    frames: Receiver<Part>,
    current: Vec<u8>,
    read: usize,
    end: Option<u64>,
}

impl AsyncRead for Upload {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut TaskContext<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let own = &mut *self;
        while own.read == own.current.len() {
            if own.end.is_some() {
                return Poll::Ready(Ok(()));
            }
            let frame = match own.frames.poll_recv(context) {
                Poll::Ready(Some(Part::Frame(frame))) => frame,
                Poll::Ready(Some(Part::End(count))) => {
                    own.end = Some(count);
                    frame::encode_end(count)
                }
                Poll::Ready(None) => {
                    return Poll::Ready(Err(io::Error::other("the blocks have no end")));
                }
                Poll::Pending => return Poll::Pending,
            };
            (own.current, own.read) = (frame, 0);
        }
        let length = buffer.remaining().min(own.current.len() - own.read);
        buffer.put_slice(&own.current[own.read..own.read + length]);
        own.read += length;
        Poll::Ready(Ok(()))
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt as _;
    use tokio::io::AsyncReadExt as _;

    use super::*;

    /// An upload repeated a frame whenever it had to wait for the next one: the place of reading was
    /// set back before the next frame had arrived.
    #[test]
    fn uploads_each_frame_once_if_the_next_one_is_late() {
        let (sender, frames) = tokio::sync::mpsc::channel(1);
        let mut upload = Upload { frames, current: Vec::new(), read: 0, end: None };
        let mut read = || {
            let mut bytes = [0; 8];
            let length = upload.read(&mut bytes).now_or_never()?.ok()?;
            Some(bytes[..length].to_vec())
        };
        assert!(sender.try_send(Part::Frame(b"one".to_vec())).is_ok());
        assert_eq!(read(), Some(b"one".to_vec()));
        assert_eq!(read(), None);
        assert!(sender.try_send(Part::Frame(b"two".to_vec())).is_ok());
        assert_eq!(read(), Some(b"two".to_vec()));
        drop(sender);
        assert_eq!(read(), None, "an error, as the end is missing");
    }

    #[test]
    fn finds_only_positions_of_its_own_stream() {
        let name = object_name(7, 300);
        assert_eq!(name, "0000000000000007-000000000000012c");
        assert_eq!(position_of(&name, 7), Some(300));
        for other in
            ["", "a-b", "7-12c", "0000000000000007-12c", "0000000000000007-+00000000000012c"]
        {
            assert_eq!(position_of(other, 7), None, "{other}");
        }
        assert_eq!(position_of(&name, 8), None);
        assert_eq!(position_of(&staged_name(7, 300), 7), None);
    }
}

//! From a data folder into a cluster that has no data.

use std::path::Path;

use bine_cluster::Cluster;

use super::{ClusterLocation, MoveProgress, MoveStep, MoveSummary, channels_of_copy};
use crate::cluster::{connect, upload};
use crate::sessions::share_keys;
use crate::store::disk::{RealFolder, boot_id};
use crate::store::{Options, Replica, ReplicaSnapshot, StoreContents};

/// Moves a data folder into a cluster that has no data. `journal` is the folder of the tables in the
/// data folder. Neither is changed, except for the lock file.
///
/// Nodes find the data once it is complete and verified. A move that was interrupted can be repeated.
///
/// # Errors
///
/// A message that names the correction: a server uses the folder, it is damaged, the cluster cannot be
/// reached or has data, or the copy differs.
pub fn move_into_cluster(
    data: &Path,
    journal: &Path,
    location: &ClusterLocation,
    progress: &mut MoveProgress<'_>,
) -> Result<MoveSummary, String> {
    let folder = RealFolder::open_read_only(journal).map_err(|error| error.to_string())?;
    let channels = channels_of_copy();
    let mut read = |done, all| progress(MoveStep::Read, done, Some(all));
    let mut contents = StoreContents::read(&folder, Some(channels.store_extension()), &mut read)?;
    let has_new_epoch = channels.engine().settle_previous_run(boot_id());
    let session_keys = share_keys(&mut contents, data)?;
    let cluster = connect(location.link(true))?;
    let moved = copy(&cluster, &contents, progress);
    if moved.is_err() {
        // What stays is removed by the next move. No node finds it.
        let _ = cluster.discard_staged_snapshots();
    }
    cluster.leave();
    let warnings = contents.warnings().to_vec();
    let size = contents.size();
    let summary = MoveSummary::of(size, &channels);
    Ok(MoveSummary { session_keys, has_new_epoch, position: moved?, warnings, ..summary })
}

/// Writes contents into a cluster, and verifies them. Returns their position.
fn copy(
    cluster: &Cluster,
    contents: &StoreContents,
    progress: &mut MoveProgress<'_>,
) -> Result<u64, String> {
    let told = |error: bine_cluster::Error| error.to_string();
    let position = cluster.reserve(Replica::RESERVATION).map_err(told)?;
    // Those of interrupted moves.
    cluster.discard_staged_snapshots().map_err(told)?;
    let snapshot = ReplicaSnapshot::first(contents, position);
    let mut written = 0;
    let bytes = upload(snapshot, |blocks| {
        let counted = blocks.inspect(|block| {
            written += block.len() as u64;
            progress(MoveStep::Write, written, None);
        });
        cluster.stage_snapshot(position, counted)
    })?;
    verify(cluster, position, contents, &mut |done| {
        progress(MoveStep::Verify, done, Some(bytes));
    })?;
    cluster.publish_snapshot(position).map_err(told)?;
    Ok(position)
}

/// Loads the snapshot as a node does, and compares it.
fn verify(
    cluster: &Cluster,
    position: u64,
    contents: &StoreContents,
    progress: &mut dyn FnMut(u64),
) -> Result<(), String> {
    let mut done = 0;
    let blocks = cluster.staged_snapshot(position).map(|block| {
        let block = block.map_err(|error| error.to_string())?;
        done += block.len() as u64;
        progress(done);
        Ok(block)
    });
    let channels = channels_of_copy();
    let options = Options::new().extension(channels.store_extension());
    let replica = Replica::from_snapshot(options, blocks, || {})?;
    let copy = replica.contents();
    let why = match contents.difference(&copy) {
        Some(difference) => difference.to_string(),
        None if (replica.position(), copy.sequence()) != (position, contents.sequence()) => {
            "its position differs".to_owned()
        }
        None => return Ok(()),
    };
    Err(format!(
        "the cluster does not have what was written: {why}. Nothing was moved; check the NATS servers and their disks, and try again"
    ))
}

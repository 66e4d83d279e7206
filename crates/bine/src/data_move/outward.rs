//! From a cluster into a new data folder.

use std::fs::{self, DirBuilder, File};
use std::io;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::{ClusterLocation, MoveProgress, MoveStep, MoveSummary, channels_of_copy};
use crate::cluster::ClusterNode;
use crate::sessions::unshare_keys;
use crate::shared_state::DiscardedState;
use crate::store::disk::{Folder as _, RealFolder};
use crate::store::{Options, StoreContents, journal};
use crate::tables::JOURNAL;

/// The prefix of the folder's name until it is complete.
const UNFINISHED: &str = "moving-";

/// Copies the data of a cluster into a new data folder, with which a program starts on one machine. The
/// cluster stays as it is, and its nodes may run.
///
/// The folder gets its name once it is complete and verified.
///
/// # Errors
///
/// A message that names the correction: the folder has files, the cluster cannot be reached or has no
/// data, the disk fails or is full, or the copy differs.
pub fn move_out_of_cluster(
    location: &ClusterLocation,
    data: &Path,
    progress: &mut MoveProgress<'_>,
) -> Result<MoveSummary, String> {
    check_is_unused(data)?;
    let unfinished = unfinished_folder(data)?;
    let channels = channels_of_copy();
    // What nodes share for one run stays with them.
    let shared_state = Arc::new(DiscardedState);
    let options = Options::new().extension(channels.store_extension()).extension(shared_state);
    let link = location.link(false);
    let own = link.node.clone();
    let mut loaded = |bytes| progress(MoveStep::Read, bytes, None);
    let node = ClusterNode::observe(link, options, &mut loaded)?;
    let nodes = node.node_ids().into_iter().filter(|id| *id != own).collect();
    // Afterwards no message arrives any more.
    node.leave();
    let contents = node.replica().contents();
    if contents.sequence() == 0 {
        return Err("the cluster has no data: start a node first, or correct the name".to_owned());
    }
    // The stream loses no record, so a start from the folder keeps the cursors.
    channels.engine().end_previous_run();
    let copied = copy(&contents, &unfinished, progress).and_then(|session_keys| {
        check_is_unused(data)?;
        give_name(&unfinished, data).map_err(named(data))?;
        Ok(session_keys)
    });
    if copied.is_err() {
        // The next move removes what stays.
        let _ = fs::remove_dir_all(&unfinished);
    }
    let position = node.replica().position();
    let summary = MoveSummary::of(contents.size(), &channels);
    Ok(MoveSummary { session_keys: copied?, position, nodes, ..summary })
}

/// Writes contents into a folder, and verifies them. Returns the number of session keys.
fn copy(
    contents: &StoreContents,
    data: &Path,
    progress: &mut MoveProgress<'_>,
) -> Result<usize, String> {
    let path = data.join(JOURNAL);
    DirBuilder::new().recursive(true).mode(0o700).create(&path).map_err(named(&path))?;
    let folder = RealFolder::open(&path).map_err(|error| error.to_string())?;
    let mut written = |bytes| progress(MoveStep::Write, bytes, None);
    let last = contents
        .write(Arc::new(folder), journal::Options::default(), &mut written)
        .map_err(|error| error.to_string())?;
    let session_keys = unshare_keys(contents, data)?;
    let folder = RealFolder::open_read_only(&path).map_err(|error| error.to_string())?;
    let channels = channels_of_copy();
    let mut read = |done, all| progress(MoveStep::Verify, done, Some(all));
    let copy = StoreContents::read(&folder, Some(channels.store_extension()), &mut read)?;
    let why = match contents.difference(&copy) {
        Some(difference) => difference.to_string(),
        None if copy.sequence() != last => "its last record differs".to_owned(),
        None => return Ok(session_keys),
    };
    Err(format!(
        "{} does not have what was written: {why}. Nothing was moved; check the disk, and try again",
        path.display()
    ))
}

/// Checks that a folder is missing or empty.
fn check_is_unused(data: &Path) -> Result<(), String> {
    let is_empty = match fs::read_dir(data) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        entries => entries.map_err(named(data))?.next().is_none(),
    };
    if is_empty {
        return Ok(());
    }
    Err(format!(
        "{} has files already: choose a new folder, or move that one elsewhere",
        data.display()
    ))
}

/// The folder beside the data folder in which the copy is written. Removes what an interrupted move has
/// left there.
fn unfinished_folder(data: &Path) -> Result<PathBuf, String> {
    let Some(name) = data.file_name() else {
        return Err(format!("{}: choose a folder with a name", data.display()));
    };
    let mut unfinished = std::ffi::OsString::from(UNFINISHED);
    unfinished.push(name);
    let unfinished = data.with_file_name(unfinished);
    let journal = unfinished.join(JOURNAL);
    if journal.is_dir() {
        let folder = RealFolder::open_read_only(&journal).map_err(|error| error.to_string())?;
        folder.lock("lock").map_err(|_| {
            format!("another move writes {}: wait for its end", unfinished.display())
        })?;
    }
    if unfinished.exists() {
        fs::remove_dir_all(&unfinished).map_err(named(&unfinished))?;
    }
    Ok(unfinished)
}

/// Renames the complete folder. A data folder that exists is empty, so the rename replaces it.
fn give_name(unfinished: &Path, data: &Path) -> io::Result<()> {
    File::open(unfinished)?.sync_all()?;
    fs::rename(unfinished, data)?;
    let parent = data.parent().filter(|parent| !parent.as_os_str().is_empty());
    File::open(parent.unwrap_or(Path::new(".")))?.sync_all()
}

fn named(path: &Path) -> impl Fn(io::Error) -> String {
    move |error| format!("{}: {error}", path.display())
}

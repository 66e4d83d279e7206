//! The files of a store's folder.

use super::format::{BACKUP, FileKind, UNFINISHED};
use super::{Error, Sequence};
use crate::disk::Folder;

/// The journal files of a folder, as their names describe them.
#[derive(Debug, Default)]
pub(super) struct FolderContents {
    /// The first record of each segment, sorted.
    pub(super) segments: Vec<Sequence>,
    /// The last record of each snapshot, sorted.
    pub(super) snapshots: Vec<Sequence>,
    /// The names of unfinished files.
    pub(super) unfinished: Vec<String>,
}

/// The total size of the segments and snapshots in a folder, in bytes.
pub(crate) fn bytes(folder: &dyn Folder) -> Result<u64, Error> {
    let size = |name: String| {
        let size = folder.open(&name).and_then(|file| file.size());
        size.map_err(|error| Error::disk(&name, "open", error))
    };
    FolderContents::of(folder)?.names().map(size).sum()
}

impl FolderContents {
    /// Lists a folder.
    ///
    /// # Errors
    ///
    /// [`Error::Disk`]. [`Error::Refused`] for a backup: a journal that used its files would remove
    /// some of them.
    pub(super) fn of(folder: &dyn Folder) -> Result<Self, Error> {
        let names = folder.list();
        let names = names.map_err(|error| Error::disk(&folder.name(), "read", error))?;
        if names.iter().any(|name| name == BACKUP) {
            let folder = folder.name();
            let why = format!("{folder} is a backup: restore it with `bine data restore` first");
            return Err(Error::Refused(why));
        }
        let mut contents = Self::default();
        for name in names {
            match FileKind::of(&name) {
                Some((FileKind::Segment, first)) => contents.segments.push(first),
                Some((FileKind::Snapshot, last)) => contents.snapshots.push(last),
                None => {
                    let finished = name.strip_suffix(UNFINISHED);
                    if finished.is_some_and(|finished| FileKind::of(finished).is_some()) {
                        contents.unfinished.push(name);
                    }
                }
            }
        }
        contents.segments.sort_unstable();
        contents.snapshots.sort_unstable();
        Ok(contents)
    }

    /// The names of all finished files.
    fn names(&self) -> impl Iterator<Item = String> {
        let segments = self.segments.iter().map(|first| FileKind::Segment.name(*first));
        segments.chain(self.snapshots.iter().map(|last| FileKind::Snapshot.name(*last)))
    }

    /// The segments with the record `sequence` and all later ones, each with the first record of
    /// its successor.
    pub(super) fn from(&self, sequence: Sequence) -> Vec<(Sequence, Option<Sequence>)> {
        let begin = self.segments.partition_point(|first| *first <= sequence).saturating_sub(1);
        let following = self.segments.iter().skip(begin + 1).copied().map(Some);
        let firsts = self.segments.iter().skip(begin).copied();
        firsts.zip(following.chain([None])).collect()
    }
}

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
    /// The number of each file of times, sorted.
    pub(super) times: Vec<Sequence>,
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
                Some((FileKind::Times, first)) => contents.times.push(first),
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
        contents.times.sort_unstable();
        Ok(contents)
    }

    /// Whether the folder has no file of a journal.
    pub(super) fn is_empty(&self) -> bool {
        let Self { segments, snapshots, times, unfinished } = self;
        [segments, snapshots, times].iter().all(|files| files.is_empty()) && unfinished.is_empty()
    }

    /// The names of all segments and snapshots.
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::disk::SimulatedFolder;

    #[test]
    fn finds_the_segments_with_a_record_and_all_later_ones() {
        let contents = FolderContents { segments: vec![3, 7, 9], ..FolderContents::default() };
        let (first, second, third) = ((3, Some(7)), (7, Some(9)), (9, None));
        // No segment has the records before 3; the first one follows them.
        for sequence in [0, 1, 3, 6] {
            assert_eq!(contents.from(sequence), [first, second, third], "{sequence}");
        }
        for sequence in [7, 8] {
            assert_eq!(contents.from(sequence), [second, third], "{sequence}");
        }
        for sequence in [9, 100] {
            assert_eq!(contents.from(sequence), [third], "{sequence}");
        }
        assert_eq!(FolderContents::default().from(1), []);
    }

    #[test]
    fn lists_and_measures_only_files_of_the_journal() {
        let folder = SimulatedFolder::new(1, 1 << 20);
        for (name, length) in [
            ("journal-000000000000000a.log", 1),
            ("journal-0000000000000002.log", 10),
            ("snapshot-0000000000000009.bin", 100),
            ("snapshot-0000000000000003.bin", 1000),
            ("snapshot-0000000000000009.bin.new", 10_000),
            ("notes.new", 100_000),
            ("damaged-journal-0000000000000001.log", 200_000),
            ("synced", 32),
        ] {
            folder.put(name, &vec![7; length]);
        }
        let contents = FolderContents::of(&folder).unwrap();
        assert_eq!(contents.segments, [2, 10]);
        assert_eq!(contents.snapshots, [3, 9]);
        assert_eq!(contents.unfinished, ["snapshot-0000000000000009.bin.new"]);
        assert_eq!(bytes(&folder).ok(), Some(1111));
        folder.put("backup", b"");
        assert!(matches!(FolderContents::of(&folder), Err(Error::Refused(_))));
    }
}

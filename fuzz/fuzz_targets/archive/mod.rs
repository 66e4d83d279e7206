//! Checks that tables survive a dump and a load.

use std::sync::Arc;

use bine_store::Archive;
use bine_store::disk::SimulatedFolder;
use bine_store::journal::Options;

/// A short limit, so that a snapshot is fast.
pub const SEGMENT: Options = Options { segment: 4096 };

pub fn folder() -> SimulatedFolder {
    SimulatedFolder::new(1, 1 << 24)
}

pub fn open(folder: &SimulatedFolder) -> Result<Archive, String> {
    Archive::open_with(Arc::new(folder.clone()), SEGMENT, None, &mut |_, _| {})
}

/// All lines, unless one of them cannot be read.
pub fn dump(archive: &Archive) -> Option<Vec<u8>> {
    let mut lines = Vec::new();
    archive.dump(&[], &mut lines).ok().map(|_| lines)
}

/// Loads lines, checks that their dump survives a restart, and returns it; `None`: they are rejected.
pub fn load(lines: &[u8]) -> Option<Vec<u8>> {
    let folder = folder();
    let mut archive = open(&folder).expect("it is empty");
    archive.load(&mut &*lines).ok()?;
    let before = dump(&archive).expect("what was loaded can be read");
    archive.close().expect("the disk is well");
    let after = dump(&open(&folder).expect("it is whole")).expect("what was loaded can be read");
    assert_eq!(String::from_utf8(before), String::from_utf8(after.clone()));
    Some(after)
}

//! Decides what must hold of tables that are dumped: what was loaded of a dump is dumped as the same.

use std::sync::Arc;

use bine_store::Archive;
use bine_store::disk::SimulatedFolder;
use bine_store::journal::Options;

/// Short, so that one is made in no time.
pub const SEGMENT: Options = Options { segment: 4096 };

pub fn folder() -> SimulatedFolder {
    SimulatedFolder::new(1, 1 << 24)
}

pub fn open(folder: &SimulatedFolder) -> Result<Archive, String> {
    Archive::open_with(Arc::new(folder.clone()), SEGMENT, None, &mut |_, _| {})
}

/// All lines, unless something in it cannot be read.
pub fn dump(archive: &Archive) -> Option<Vec<u8>> {
    let mut lines = Vec::new();
    archive.dump(&[], &mut lines).ok().map(|_| lines)
}

/// Loads lines, which may be refused, and says what they are dumped as, before and after a start.
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

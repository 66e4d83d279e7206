//! Backups: a folder with the files of a journal up to some record, and with older files that the
//! journal has removed since.
//!
//! A backup reads the journal's folder without its lock, while a server may use it. Four properties
//! of the journal make this safe:
//!
//! - Files are immutable, except for the last segment: a snapshot and a segment get their final
//!   names when they are complete, and a segment with a successor does not change again.
//! - The last segment only grows by groups. A group is valid as a whole or not at all, so a group
//!   that is being written ends the copy, and the server has not acknowledged it yet.
//! - The header of each group has a checksum that depends on all groups before it in the segment.
//!   One header therefore proves that a copied part and the segment are the same.
//! - Files are only removed, by a compaction, when a newer snapshot and the records after it exist.
//!   Each removal is detected, and the backup then lists the folder again.
//!
//! Before a group counts as copied, the backup syncs the segment it was read from. So a power
//! failure cannot remove from the journal what the backup has.

mod copy;
mod manifest;
mod restore;
mod verify;

pub use copy::{BackupOptions, BackupSummary, Link, backup};
pub use manifest::{Moment, StoredFile};
pub use restore::{RestoreSummary, Until, restore};
pub use verify::{BackupReport, check_backup};

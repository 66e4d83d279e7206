//! The key by which this process hashes the regions of its pages.

use std::sync::LazyLock;

use bine_html::RegionKey;

/// The key of this process, random and kept nowhere.
///
/// A browser whose page another process made, before a restart or at another server, shows hashes that this one does not
/// know. It is sent each region once, as after any change.
pub(crate) fn region_key() -> &'static RegionKey {
    static KEY: LazyLock<RegionKey> = LazyLock::new(|| {
        let mut bytes = [0; 16];
        bine_store::disk::random(&mut bytes);
        RegionKey::new(bytes)
    });
    &KEY
}

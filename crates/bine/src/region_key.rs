//! The key by which a program hashes the regions of its pages.

use std::io::Read as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::sync::OnceLock;
use std::{fs, io};

use bine_html::RegionKey;
use bine_log as log;
use bine_server::write_private;

/// The file in the data folder that has the key: its 16 bytes.
const FILE: &str = "region-key";
const LENGTH: usize = 16;

static KEY: OnceLock<RegionKey> = OnceLock::new();

/// The key of this process.
///
/// A browser whose page was made under another key shows hashes that this process does not know. It is sent each region
/// once, as after any change.
pub(crate) fn region_key() -> &'static RegionKey {
    KEY.get_or_init(|| RegionKey::new(random()))
}

/// Uses the key in this data folder, or leaves one there, so that pages that are open during a restart need nothing that
/// has not changed. To be called before the first page is made; a later call has no effect.
pub(crate) fn keep_region_key(data: &Path) {
    let path = data.join(FILE);
    let bytes = match read(&path) {
        Ok(Some(bytes)) => bytes,
        found => {
            let bytes = random();
            let written = found.and_then(|_| write_private(&path, &bytes));
            if let Err(error) = written {
                log::warn(format_args!(
                    "open pages will be sent their regions after a restart: cannot keep {}: {error}",
                    path.display()
                ));
            }
            bytes
        }
    };
    // Pages that are made already have another.
    let _ = KEY.set(RegionKey::new(bytes));
}

/// The key in a file; `None`: there is none, or one that others may know.
fn read(path: &Path) -> io::Result<Option<[u8; LENGTH]>> {
    let mut file = match fs::File::open(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        opened => opened?,
    };
    let mut bytes = Vec::new();
    // One more, by which a file that is too long is noticed.
    file.by_ref().take(LENGTH as u64 + 1).read_to_end(&mut bytes)?;
    let is_private = matches!(file.metadata()?.mode() & 0o777, 0o400 | 0o600);
    Ok(bytes.try_into().ok().filter(|_| is_private))
}

fn random() -> [u8; LENGTH] {
    let mut bytes = [0; LENGTH];
    bine_store::disk::random(&mut bytes);
    bytes
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;
    use std::path::PathBuf;

    use super::*;

    /// A file in an empty folder for this test alone.
    fn file_of(test: &str) -> PathBuf {
        let name = format!("bine-region-key-{test}-{}", std::process::id());
        let folder = std::env::temp_dir().join(name);
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir(&folder).unwrap();
        folder.join(FILE)
    }

    #[test]
    fn a_key_is_read_as_it_was_written() {
        let path = file_of("read");
        assert_eq!(read(&path).unwrap(), None);
        write_private(&path, &[7; LENGTH]).unwrap();
        assert_eq!(read(&path).unwrap(), Some([7; LENGTH]));
        fs::remove_dir_all(path.parent().unwrap()).unwrap();
    }

    #[test]
    fn a_key_that_others_may_read_or_of_another_length_is_none() {
        let path = file_of("refused");
        for bytes in [&[][..], &[7; LENGTH - 1], &[7; LENGTH + 1]] {
            write_private(&path, bytes).unwrap();
            assert_eq!(read(&path).unwrap(), None, "{} bytes", bytes.len());
        }
        for mode in [0o640, 0o604, 0o660] {
            write_private(&path, &[7; LENGTH]).unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
            assert_eq!(read(&path).unwrap(), None, "{mode:o}");
        }
        fs::remove_dir_all(path.parent().unwrap()).unwrap();
    }
}

//! The key that the server uses to hash the regions of its pages.

use std::io::Read as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::sync::OnceLock;
use std::{fs, io};

use bine_html::RegionKey;
use bine_log as log;
use bine_server::write_private;

/// The file in the data folder that stores the 16 bytes of the key.
const FILE: &str = "region-key";
const LENGTH: usize = 16;

static KEY: OnceLock<RegionKey> = OnceLock::new();

/// The key of this process.
///
/// A browser whose page was rendered under an older key shows hashes that this process does not
/// know. It receives each region once, as after any change.
pub(crate) fn region_key() -> &'static RegionKey {
    KEY.get_or_init(|| RegionKey::new(random()))
}

/// Uses the key in this data folder, or stores a new one there, so that pages that are open during
/// a restart only receive regions that changed. Call it before the first page is rendered; a later
/// call has no effect.
pub(crate) fn keep_region_key(data: &Path) {
    let path = data.join(FILE);
    let bytes = match read(&path) {
        Ok(Some(bytes)) => bytes,
        found => {
            let bytes = random();
            let written = found.and_then(|_| write_private(&path, &bytes));
            if let Err(error) = written {
                log::warn(format_args!(
                    "open pages will receive all their regions after a restart: cannot store {}: {error}",
                    path.display()
                ));
            }
            bytes
        }
    };
    // An error means that pages already use a random key.
    let _ = KEY.set(RegionKey::new(bytes));
}

/// Uses the key that `choose` returns for a random one. Call it before the first page is rendered; a
/// later call has no effect.
///
/// # Errors
///
/// Those of `choose`.
pub(crate) fn choose_region_key(
    choose: impl FnOnce([u8; LENGTH]) -> Result<[u8; LENGTH], String>,
) -> Result<(), String> {
    let bytes = choose(random())?;
    // An error means that pages already use a random key.
    let _ = KEY.set(RegionKey::new(bytes));
    Ok(())
}

/// The key in a file, or `None` if there is no key or other users may know it.
fn read(path: &Path) -> io::Result<Option<[u8; LENGTH]>> {
    let mut file = match fs::File::open(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        opened => opened?,
    };
    let mut bytes = Vec::new();
    // One byte more detects a file that is too long.
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

    /// A file in an empty folder of this test.
    fn file_of(test: &str) -> PathBuf {
        let name = format!("bine-region-key-{test}-{}", std::process::id());
        let folder = std::env::temp_dir().join(name);
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir(&folder).unwrap();
        folder.join(FILE)
    }

    #[test]
    fn reads_back_a_written_key() {
        let path = file_of("read");
        assert_eq!(read(&path).unwrap(), None);
        write_private(&path, &[7; LENGTH]).unwrap();
        assert_eq!(read(&path).unwrap(), Some([7; LENGTH]));
        fs::remove_dir_all(path.parent().unwrap()).unwrap();
    }

    #[test]
    fn rejects_keys_of_other_lengths_or_with_public_permissions() {
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

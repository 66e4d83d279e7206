//! The keys of sessions when a program moves between one machine and several: from the key file to the
//! shared table, and back. So cookies stay valid, and users stay logged in.

use std::io;
use std::path::Path;

use super::KEYS;
use super::keys::{self, SessionKey};
use super::shared_keys::{LINE, TABLE, schema};
use crate::store::{StoreContents, Value};

/// Adds the keys in a data folder to the shared table of contents. Returns how many keys it then has.
///
/// # Errors
///
/// The key file cannot be read, or the table has other columns.
pub(crate) fn share_keys(contents: &mut StoreContents, data: &Path) -> Result<usize, String> {
    let path = data.join(KEYS);
    let mut keys =
        keys::read(&path).map_err(|error| format!("cannot read {}: {error}", path.display()))?;
    let shared = shared_keys(contents);
    keys.retain(|key| shared.iter().all(|known| known.name != key.name));
    let lines: Vec<String> = keys.iter().map(SessionKey::line).collect();
    if !lines.is_empty() {
        let rows: Vec<[Value<'_>; 1]> = lines.iter().map(|line| [Value::Text(line)]).collect();
        let rows: Vec<&[Value<'_>]> = rows.iter().map(|row| &row[..]).collect();
        contents.insert(&schema(), &rows)?;
    }
    Ok(shared.len() + lines.len())
}

/// Writes the keys in the shared table of contents into a new data folder. Returns how many keys it
/// then has.
///
/// # Errors
///
/// The key file cannot be written, or does not have what was written.
pub(crate) fn unshare_keys(contents: &StoreContents, data: &Path) -> Result<usize, String> {
    let path = data.join(KEYS);
    let mut keys = shared_keys(contents);
    keys::sort(&mut keys);
    if keys.is_empty() {
        return Ok(0);
    }
    let lines = |keys: &[SessionKey]| keys.iter().map(SessionKey::line).collect::<Vec<_>>();
    let copied = keys::write(&path, &keys).and_then(|()| {
        let read = keys::read(&path)?;
        let is_equal = lines(&read) == lines(&keys);
        if is_equal { Ok(()) } else { Err(io::Error::other("it has other keys than were written")) }
    });
    copied.map_err(|error| format!("cannot write {}: {error}", path.display()))?;
    Ok(keys.len())
}

/// The keys in the shared table, each once.
fn shared_keys(contents: &StoreContents) -> Vec<SessionKey> {
    let mut keys: Vec<SessionKey> = Vec::new();
    for line in contents.texts(TABLE, LINE) {
        let key = SessionKey::parse(line.trim_end());
        keys.extend(key.filter(|key| keys.iter().all(|known| known.name != key.name)));
    }
    keys
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::MetadataExt as _;

    use super::*;
    use crate::store::disk::{Folder, SimulatedFolder};

    fn empty() -> StoreContents {
        let folder = SimulatedFolder::new(1, 1 << 20);
        StoreContents::read(&folder.process() as &dyn Folder, None, &mut |_, _| {}).unwrap()
    }

    #[test]
    fn keys_move_into_the_table_once_and_out_again() {
        let data = std::env::temp_dir().join(format!("bine-moved-keys-{}", std::process::id()));
        fs::create_dir_all(&data).unwrap();
        let mut contents = empty();
        assert_eq!(share_keys(&mut contents, &data), Ok(0));
        assert_eq!((contents.size().tables, unshare_keys(&contents, &data)), (0, Ok(0)));
        let key = |created, letter: char| {
            let line = format!("{created} {} {}", letter.to_string().repeat(8), "ab".repeat(32));
            SessionKey::parse(&line).unwrap()
        };
        let file = data.join(KEYS);
        keys::write(&file, &[key(9, 'b'), key(5, 'a')]).unwrap();
        assert_eq!(share_keys(&mut contents, &data), Ok(2));
        // A second move finds the keys of the first one.
        keys::write(&file, &[key(12, 'c'), key(9, 'b')]).unwrap();
        assert_eq!(share_keys(&mut contents, &data), Ok(3));
        assert_eq!(contents.size().rows, 3);
        fs::remove_file(&file).unwrap();
        assert_eq!(unshare_keys(&contents, &data), Ok(3));
        assert_eq!(fs::metadata(&file).unwrap().mode() & 0o777, 0o600);
        let created: Vec<_> = keys::read(&file).unwrap().iter().map(SessionKey::line).collect();
        let expected = [key(12, 'c'), key(9, 'b'), key(5, 'a')].map(|key| key.line());
        assert_eq!(created, expected);
        fs::remove_dir_all(&data).unwrap();
    }
}

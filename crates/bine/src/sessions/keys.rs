//! Decides with which keys cookies of sessions are signed, how long each is good, and where they are kept.

use std::fmt::{self, Write as _};
use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::{PoisonError, RwLock, RwLockReadGuard};

use bine_pipeline::log;
use ring::hmac;
use ring::rand::{SecureRandom as _, SystemRandom};

use crate::secrecy::keep;

/// Keys, the newest of which signs.
pub(super) struct Keys {
    /// The newest first, at least one.
    known: RwLock<Vec<Key>>,
    file: Option<PathBuf>,
    /// Seconds for which what one has signed may still be good.
    lifetime: u64,
}

/// One of them.
pub(super) struct Key {
    pub(super) name: Name,
    secret: [u8; 32],
    /// When it was made, in seconds since 1970.
    born: u64,
    pub(super) hmac: hmac::Key,
}

/// By this a cookie says which key has signed it.
pub(super) type Name = [u8; 4];

/// Seconds for which a key signs.
const TURN: u64 = 30 * 86_400;
/// The first line of the file.
const TITLE: &str = "bine session keys 1";
/// A file of keys is not longer.
const LONGEST: u64 = 16 << 10;
/// More have never been good at one time, unless a clock went astray.
const MOST_KEYS: usize = 64;

impl Keys {
    /// Keys that end with this value.
    pub(super) fn passing(now: u64, lifetime: u64) -> Self {
        Self { known: RwLock::new(vec![Key::new(now)]), file: None, lifetime }
    }

    /// The keys that an earlier run has left at `path`, and new ones will be left there in turn. Nobody but their user
    /// may read them.
    ///
    /// # Errors
    ///
    /// The file cannot be read or written.
    pub(super) fn kept(path: &Path, now: u64, lifetime: u64) -> io::Result<Self> {
        let known = RwLock::new(read(path)?);
        let own = Self { known, file: Some(path.to_owned()), lifetime };
        own.turn(now)?;
        Ok(own)
    }

    /// Signs with the key whose turn it is, which `sign` is given.
    pub(super) fn newest<T>(&self, now: u64, sign: impl FnOnce(&Key) -> T) -> T {
        if !self.read().first().is_some_and(|newest| newest.has_turn(now))
            && let Err(error) = self.turn(now)
        {
            log::warn(format_args!("sessions of today will not outlast a restart: {error}"));
        }
        // There is always one.
        sign(&self.read()[0])
    }

    /// What `look` finds out with the key of this name, if there is one that is still good.
    pub(super) fn named<T>(
        &self,
        name: Name,
        now: u64,
        look: impl FnOnce(&Key) -> Option<T>,
    ) -> Option<T> {
        let keys = self.read();
        look(keys.iter().find(|key| key.name == name && key.is_good(now, self.lifetime))?)
    }

    /// Makes a new key if the newest has had its turn, and forgets those that nothing good is signed with.
    fn turn(&self, now: u64) -> io::Result<()> {
        let mut keys = self.known.write().unwrap_or_else(PoisonError::into_inner);
        if keys.first().is_some_and(|newest| newest.has_turn(now)) {
            return Ok(());
        }
        keys.retain(|key| key.is_good(now, self.lifetime));
        keys.insert(0, Key::new(now));
        keys.truncate(MOST_KEYS);
        let Some(file) = &self.file else { return Ok(()) };
        let lines: String = keys.iter().map(Key::line).collect();
        keep(file, format!("{TITLE}\n{lines}").as_bytes())
    }

    fn read(&self) -> RwLockReadGuard<'_, Vec<Key>> {
        self.known.read().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Without the keys.
impl fmt::Debug for Keys {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.debug_struct("Keys").field("file", &self.file).finish_non_exhaustive()
    }
}

impl Key {
    fn new(now: u64) -> Self {
        Self::of(random(), random(), now)
    }

    fn of(name: Name, secret: [u8; 32], born: u64) -> Self {
        Self { name, secret, born, hmac: hmac::Key::new(hmac::HMAC_SHA256, &secret) }
    }

    /// Whether it signs. A key from the future comes from a clock that was wrong.
    fn has_turn(&self, now: u64) -> bool {
        now.checked_sub(self.born).is_some_and(|age| age < TURN)
    }

    /// Whether what it has signed may be good.
    fn is_good(&self, now: u64, lifetime: u64) -> bool {
        now.checked_sub(self.born).is_some_and(|age| age < TURN.saturating_add(lifetime))
    }

    fn line(&self) -> String {
        format!("{} {} {}\n", self.born, hex(&self.name), hex(&self.secret))
    }

    fn parse(line: &str) -> Option<Self> {
        let mut words = line.split(' ');
        let (born, name, secret) = (words.next()?, words.next()?, words.next()?);
        Some(Self::of(unhex(name)?, unhex(secret)?, born.parse().ok()?))
    }
}

/// The keys in a file; none if it is not there, not ours alone, or no such file.
fn read(path: &Path) -> io::Result<Vec<Key>> {
    let found = match fs::metadata(path) {
        Ok(found) => found,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(error),
    };
    let told = path.display();
    if found.mode() & 0o077 != 0 || found.len() > LONGEST {
        log::warn(format_args!("{told}: others may know these keys; all sessions begin anew"));
        return Ok(Vec::new());
    }
    let bytes = fs::read(path)?;
    let text = String::from_utf8_lossy(&bytes);
    let mut lines = text.lines();
    if lines.next() != Some(TITLE) {
        log::warn(format_args!("{told}: no keys of sessions; all sessions begin anew"));
        return Ok(Vec::new());
    }
    Ok(lines.filter_map(Key::parse).take(MOST_KEYS).collect())
}

/// Bytes that nobody can foresee.
pub(super) fn random<const N: usize>() -> [u8; N] {
    let mut bytes = [0; N];
    // Without randomness from the system nothing here could be kept secret.
    SystemRandom::new().fill(&mut bytes).expect("the system has random bytes");
    bytes
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::with_capacity(2 * bytes.len()), |mut text, byte| {
        // Writing to a text cannot fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}

fn unhex<const N: usize>(text: &str) -> Option<[u8; N]> {
    let mut bytes = [0; N];
    if text.len() != 2 * N || !text.bytes().all(|letter| letter.is_ascii_hexdigit()) {
        return None;
    }
    for (place, byte) in bytes.iter_mut().enumerate() {
        *byte = u8::from_str_radix(&text[2 * place..2 * place + 2], 16).ok()?;
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    const DAY: u64 = 86_400;

    fn newest(keys: &Keys, now: u64) -> Name {
        keys.newest(now, |key| key.name)
    }

    fn knows(keys: &Keys, name: Name, now: u64) -> bool {
        keys.named(name, now, |_| Some(())).is_some()
    }

    #[test]
    fn a_key_signs_for_a_month_and_is_good_as_long_as_what_it_signed() {
        let keys = Keys::passing(0, 90 * DAY);
        let first = newest(&keys, 30 * DAY - 1);
        assert!(knows(&keys, first, 0));
        let second = newest(&keys, 30 * DAY);
        assert_ne!(first, second);
        assert!(knows(&keys, first, 120 * DAY - 1) && !knows(&keys, first, 120 * DAY));
        assert!(knows(&keys, second, 120 * DAY));
    }

    #[test]
    fn keys_are_in_a_file_that_nobody_else_may_read() {
        let folder = std::env::temp_dir().join(format!("bine-keys-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let path = folder.join("session-keys");
        let first = newest(&Keys::kept(&path, 0, DAY).unwrap(), 0);
        assert_eq!(fs::metadata(&path).unwrap().mode() & 0o777, 0o600);
        let again = Keys::kept(&path, 1, DAY).unwrap();
        assert_eq!(newest(&again, 1), first);
        let second = newest(&again, 30 * DAY);
        let again = Keys::kept(&path, 30 * DAY, DAY).unwrap();
        assert!(newest(&again, 30 * DAY) == second && knows(&again, first, 30 * DAY));
        fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
        let anew = Keys::kept(&path, 30 * DAY, DAY).unwrap();
        assert!(!knows(&anew, first, 30 * DAY) && !knows(&anew, second, 30 * DAY));
        fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn a_line_that_is_no_key_is_passed_over() {
        let line = Key::of([1, 2, 3, 0xff], [7; 32], 9).line();
        let key = Key::parse(line.trim_end()).unwrap();
        assert_eq!((key.name, key.secret, key.born), ([1, 2, 3, 0xff], [7; 32], 9));
        for wrong in ["", "9", "9 010203ff", "x 010203ff 00", &line[..line.len() - 2]] {
            assert!(Key::parse(wrong).is_none(), "{wrong:?}");
        }
    }
}

//! The keys that sign session cookies and seal texts of pages: their rotation, their lifetime, and
//! the file or table that stores them.

use std::fmt::{self, Write as _};
use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError, RwLock, RwLockReadGuard};

use bine_log as log;

use bine_server::{is_disk_full, write_private};
use ring::hmac;
use ring::rand::{SecureRandom as _, SystemRandom};

use super::age;
use super::derived_keys::{SealingKeys, ticket_key};
use super::shared_keys::SharedKeys;
use crate::store::{Pending, Store};

/// The known keys. The newest signs, unless a clock was wrong.
pub(crate) struct Keys {
    /// The newest first, at least one.
    known: RwLock<Vec<SessionKey>>,
    storage: KeyStorage,
    /// Whether the file lacks a key.
    is_unsaved: AtomicBool,
    /// When the last write failed, or when a key was last added to the table. The thread that holds
    /// this lock writes.
    failed: Mutex<Option<u64>>,
    /// Seconds for which a signed text stays valid.
    lifetime: u64,
}

/// Where keys outlive the process.
#[derive(Debug)]
enum KeyStorage {
    Memory,
    File(PathBuf),
    /// In a table that several nodes share.
    Table(SharedKeys),
}

/// A secret and the keys derived from it.
pub(crate) struct SessionKey {
    pub(crate) name: KeyName,
    secret: [u8; 32],
    /// When the key was created, in seconds since 1970.
    created: u64,
    pub(super) hmac: hmac::Key,
    pub(super) sealing: SealingKeys,
    /// Signs tickets.
    pub(crate) tickets: hmac::Key,
}

/// Names the key that signed a cookie.
pub(crate) type KeyName = [u8; 4];

/// Seconds for which a key signs.
const ROTATION: u64 = 30 * 86_400;
/// Seconds after which all nodes know a key that one of them has created.
const SHARE_TIME: u64 = 60;
/// The first line of the file.
const FILE_TITLE: &str = "bine session keys 1";
/// Bytes of the key file at most.
const MAX_FILE_BYTES: u64 = 16 << 10;
/// More keys are never valid at once, unless a clock was wrong.
const MAX_KEYS: usize = 64;
/// Seconds between attempts to write the file.
const RETRY_INTERVAL: u64 = 60;

impl Keys {
    /// Creates keys that exist in memory only.
    pub(crate) fn in_memory(now: u64, lifetime: u64) -> Self {
        Self::of(vec![SessionKey::new(now)], KeyStorage::Memory, lifetime)
    }

    /// Reads the keys that an earlier process stored at `path`; later keys are stored there too.
    /// Only the owner may read the file.
    ///
    /// # Errors
    ///
    /// The file cannot be read or written. A full disk is only logged, and the write is retried.
    pub(super) fn load(path: &Path, now: u64, lifetime: u64) -> io::Result<Self> {
        let own = Self::of(read(path)?, KeyStorage::File(path.to_owned()), lifetime);
        own.rotate(now);
        match own.save(now) {
            Err(error) if is_disk_full(&error) => {
                log::warn(format_args!(
                    "the disk is full: sessions with today's key will end at a restart ({}: {error})",
                    path.display()
                ));
            }
            saved => saved?,
        }
        Ok(own)
    }

    /// Reads the keys of all nodes from a table that they share, and adds one if none is current.
    ///
    /// # Errors
    ///
    /// The store rejects the table or the key.
    pub(super) fn shared(store: &Store, now: u64, lifetime: u64) -> Result<Self, String> {
        let table = SharedKeys::open(store)?;
        let own = Self::of(Vec::new(), KeyStorage::Table(table), lifetime);
        own.adopt();
        if let KeyStorage::Table(table) = &own.storage
            && !own.read().iter().any(|key| key.is_current(now))
        {
            let added = table.add(&SessionKey::new(now).line()).and_then(Pending::wait);
            added.map_err(|error| error.to_string())?;
            own.adopt();
        }
        Ok(own)
    }

    fn of(known: Vec<SessionKey>, storage: KeyStorage, lifetime: u64) -> Self {
        let (is_unsaved, failed) = (AtomicBool::new(false), Mutex::default());
        Self { known: RwLock::new(known), storage, is_unsaved, failed, lifetime }
    }

    /// Takes over the keys that other nodes have created. Returns whether there are any.
    fn adopt(&self) -> bool {
        let KeyStorage::Table(table) = &self.storage else { return false };
        // Clients may send names that no key has: a key is derived only from a line that is new, and
        // only then do other threads wait.
        let names: Vec<String> = self.read().iter().map(|key| hex(&key.name)).collect();
        let is_new = |line: &String| {
            line.split(' ').nth(1).is_some_and(|name| names.iter().all(|known| known != name))
        };
        let lines = table.lines().into_iter().filter(is_new);
        let mut found: Vec<SessionKey> =
            lines.filter_map(|line| SessionKey::parse(line.trim_end())).collect();
        if found.is_empty() {
            return false;
        }
        let mut known = self.known.write().unwrap_or_else(PoisonError::into_inner);
        found.retain(|key| known.iter().all(|own| own.name != key.name));
        let has_found = !found.is_empty();
        known.extend(found);
        sort(&mut known);
        has_found
    }

    /// Calls `sign` with the current key.
    pub(crate) fn newest<T>(&self, now: u64, sign: impl FnOnce(&SessionKey) -> T) -> T {
        self.rotate(now);
        if let Err(error) = self.save(now) {
            log::warn(format_args!(
                "cannot store the newest session key, so its sessions will end at a restart: {error}"
            ));
        }
        let keys = self.read();
        // Other nodes may not know a new key yet, so an older one signs meanwhile.
        let is_shared = |key: &&SessionKey| {
            matches!(self.storage, KeyStorage::Table(_))
                && age(now, key.created).is_some_and(|age| age >= SHARE_TIME)
                && key.is_good(now, self.lifetime)
        };
        let current = || keys.iter().find(|key| key.is_current(now));
        // There is always a key.
        sign(keys.iter().find(is_shared).or_else(current).unwrap_or(&keys[0]))
    }

    /// Calls `look` with the key of this name, if it is still valid.
    pub(crate) fn find<T>(
        &self,
        name: KeyName,
        now: u64,
        look: impl FnOnce(&SessionKey) -> Option<T>,
    ) -> Option<T> {
        let is_named = |key: &&SessionKey| key.name == name && key.is_good(now, self.lifetime);
        let keys = self.read();
        if let Some(key) = keys.iter().find(is_named) {
            return look(key);
        }
        drop(keys);
        // Another node may have created it.
        if !self.adopt() {
            return None;
        }
        look(self.read().iter().find(is_named)?)
    }

    /// Creates a key if no key is current, and drops expired keys.
    fn rotate(&self, now: u64) {
        let is_current = |key: &SessionKey| key.is_current(now);
        if self.read().iter().any(is_current) || self.adopt() && self.read().iter().any(is_current)
        {
            return;
        }
        if let KeyStorage::Table(table) = &self.storage {
            self.request(table, now);
            return;
        }
        let new = SessionKey::new(now);
        let mut keys = self.known.write().unwrap_or_else(PoisonError::into_inner);
        // A concurrent call has created one.
        if keys.iter().any(is_current) {
            return;
        }
        keys.retain(|key| key.is_good(now, self.lifetime));
        keys.insert(0, new);
        keys.truncate(MAX_KEYS);
        self.is_unsaved.store(true, Ordering::Release);
    }

    /// Adds a key to the table that nodes share, at most once a minute. Older keys sign until it is
    /// there.
    fn request(&self, table: &SharedKeys, now: u64) {
        let Ok(mut last) = self.failed.try_lock() else { return };
        if last.is_none_or(|then| now.abs_diff(then) >= RETRY_INTERVAL) {
            *last = Some(now);
            // A failed attempt is repeated after a minute.
            let _ = table.add(&SessionKey::new(now).line());
        }
    }

    /// Writes the file if it lacks a key. It does not wait for a concurrent write, and
    /// retries a failed write after a minute.
    fn save(&self, now: u64) -> io::Result<()> {
        let KeyStorage::File(file) = &self.storage else { return Ok(()) };
        if !self.is_unsaved.load(Ordering::Acquire) {
            return Ok(());
        }
        let Ok(mut failed) = self.failed.try_lock() else { return Ok(()) };
        if failed.is_some_and(|then| now.abs_diff(then) < RETRY_INTERVAL) {
            return Ok(());
        }
        // A key that is created from now on sets the flag again.
        self.is_unsaved.store(false, Ordering::Release);
        let written = write(file, &self.read());
        *failed = written.is_err().then_some(now);
        if written.is_err() {
            self.is_unsaved.store(true, Ordering::Release);
        }
        written
    }

    fn read(&self) -> RwLockReadGuard<'_, Vec<SessionKey>> {
        self.known.read().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Without the keys, which are secret.
impl fmt::Debug for Keys {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.debug_struct("Keys").field("storage", &self.storage).finish_non_exhaustive()
    }
}

impl SessionKey {
    fn new(now: u64) -> Self {
        Self::of(random(), random(), now)
    }

    fn of(name: KeyName, secret: [u8; 32], created: u64) -> Self {
        let hmac = hmac::Key::new(hmac::HMAC_SHA256, &secret);
        let (sealing, tickets) = (SealingKeys::of(&hmac), ticket_key(&hmac));
        Self { name, secret, created, hmac, sealing, tickets }
    }

    /// Derives a key for a different purpose, which `label` names. It reveals no other key.
    pub(crate) fn derive(&self, label: &str) -> hmac::Key {
        let derived = hmac::sign(&self.hmac, label.as_bytes());
        hmac::Key::new(hmac::HMAC_SHA256, derived.as_ref())
    }

    /// Whether the key signs. A key far in the future was created by a wrong clock.
    fn is_current(&self, now: u64) -> bool {
        age(now, self.created).is_some_and(|age| age < ROTATION)
    }

    /// Whether a text that the key signed may be valid. A key from the future counts as valid,
    /// since this clock may be the wrong one.
    fn is_good(&self, now: u64, lifetime: u64) -> bool {
        now.saturating_sub(self.created) < ROTATION.saturating_add(lifetime)
    }

    pub(super) fn line(&self) -> String {
        format!("{} {} {}\n", self.created, hex(&self.name), hex(&self.secret))
    }

    pub(super) fn parse(line: &str) -> Option<Self> {
        let mut words = line.split(' ');
        let (created, name, secret) = (words.next()?, words.next()?, words.next()?);
        Some(Self::of(unhex(name)?, unhex(secret)?, created.parse().ok()?))
    }
}

/// Orders keys, the newest first, and drops those beyond the limit. The name decides between nodes that
/// started at the same time.
pub(super) fn sort(keys: &mut Vec<SessionKey>) {
    keys.sort_by_key(|key| (std::cmp::Reverse(key.created), key.name));
    keys.truncate(MAX_KEYS);
}

/// Writes a file of keys, which only the owner may read.
pub(super) fn write(path: &Path, keys: &[SessionKey]) -> io::Result<()> {
    let lines: String = keys.iter().map(SessionKey::line).collect();
    write_private(path, format!("{FILE_TITLE}\n{lines}").as_bytes())
}

/// Reads the keys of a file. The list is empty if the file is missing, readable for other users, or
/// not a key file.
pub(super) fn read(path: &Path) -> io::Result<Vec<SessionKey>> {
    let found = match fs::metadata(path) {
        Ok(found) => found,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(error),
    };
    let told = path.display();
    if found.mode() & 0o077 != 0 || found.len() > MAX_FILE_BYTES {
        log::warn(format_args!(
            "{told}: other users may have read these keys, so they are ignored and all sessions end"
        ));
        return Ok(Vec::new());
    }
    let bytes = fs::read(path)?;
    let text = String::from_utf8_lossy(&bytes);
    let mut lines = text.lines();
    if lines.next() != Some(FILE_TITLE) {
        log::warn(format_args!("{told}: not a file of session keys; all sessions end"));
        return Ok(Vec::new());
    }
    Ok(lines.filter_map(SessionKey::parse).take(MAX_KEYS).collect())
}

/// Returns random bytes of the operating system.
pub(super) fn random<const N: usize>() -> [u8; N] {
    let mut bytes = [0; N];
    // Without randomness no secret can be created.
    SystemRandom::new().fill(&mut bytes).expect("the system has random bytes");
    bytes
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::with_capacity(2 * bytes.len()), |mut text, byte| {
        // Writing to a string cannot fail.
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

    fn newest(keys: &Keys, now: u64) -> KeyName {
        keys.newest(now, |key| key.name)
    }

    fn knows(keys: &Keys, name: KeyName, now: u64) -> bool {
        keys.find(name, now, |_| Some(())).is_some()
    }

    #[test]
    fn key_signs_for_a_month_and_outlives_its_signatures() {
        let keys = Keys::in_memory(0, 90 * DAY);
        let first = newest(&keys, 30 * DAY - 1);
        assert!(knows(&keys, first, 0));
        let second = newest(&keys, 30 * DAY);
        assert_ne!(first, second);
        assert!(knows(&keys, first, 120 * DAY - 1) && !knows(&keys, first, 120 * DAY));
        assert!(knows(&keys, second, 120 * DAY));
    }

    #[test]
    fn nodes_with_a_shared_table_know_the_keys_of_each_other() {
        let store = Store::in_memory(crate::store::Options::new()).unwrap();
        let lines = |store: &Store| SharedKeys::open(store).unwrap().lines().len();
        let [one, other] = [0, 1].map(|_| Keys::shared(&store, 0, 90 * DAY).unwrap());
        let first = newest(&one, 0);
        assert_eq!((newest(&other, 0), lines(&store)), (first, 1));
        // When it is too old, each node adds a key at most once a minute. Until a key is known to all,
        // the old one signs.
        let late = 30 * DAY;
        for _ in 0..10 {
            assert_eq!(newest(&one, late), first);
        }
        assert_eq!(lines(&store), 2);
        assert_eq!((newest(&other, late), lines(&store)), (first, 2));
        let second = newest(&one, late + SHARE_TIME);
        assert_ne!(second, first);
        assert!(knows(&other, second, late) && knows(&other, first, late));
        assert_eq!(newest(&other, late + SHARE_TIME), second);
        assert!(!knows(&other, [7; 4], late));
        assert_eq!(lines(&store), 2);
    }

    #[test]
    fn stores_keys_in_file_readable_by_owner_only() {
        let folder = folder("keys");
        let path = folder.join("session-keys");
        let first = newest(&Keys::load(&path, 0, DAY).unwrap(), 0);
        assert_eq!(fs::metadata(&path).unwrap().mode() & 0o777, 0o600);
        let again = Keys::load(&path, 1, DAY).unwrap();
        assert_eq!(newest(&again, 1), first);
        let second = newest(&again, 30 * DAY);
        let again = Keys::load(&path, 30 * DAY, DAY).unwrap();
        assert!(newest(&again, 30 * DAY) == second && knows(&again, first, 30 * DAY));
        fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
        let anew = Keys::load(&path, 30 * DAY, DAY).unwrap();
        assert!(!knows(&anew, first, 30 * DAY) && !knows(&anew, second, 30 * DAY));
        fs::remove_dir_all(&folder).unwrap();
    }

    fn folder(name: &str) -> PathBuf {
        let folder = std::env::temp_dir().join(format!("bine-{name}-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        folder
    }

    /// Regression: a slow request, or a thread with a slow clock, dropped the newest key. All
    /// visitors with a cookie of that key were logged out.
    #[test]
    fn slow_clock_keeps_newest_key() {
        let keys = Keys::in_memory(0, 90 * DAY);
        let new = newest(&keys, 30 * DAY + 10);
        assert_eq!(newest(&keys, 30 * DAY - 20), new);
        assert!(knows(&keys, new, 30 * DAY - 20) && knows(&keys, new, 30 * DAY + 20));
        // A clock that is far too slow gets a new key.
        assert_ne!(newest(&keys, 29 * DAY), new);
        assert_eq!(newest(&keys, 30 * DAY + 20), new);
    }

    /// Regression: a machine that booted with its clock in the past logged all visitors out.
    #[test]
    fn start_with_clock_in_past_keeps_keys() {
        let folder = folder("keys-past");
        let path = folder.join("session-keys");
        let start = |now| Keys::load(&path, now, 90 * DAY).unwrap();
        let first = newest(&start(1000 * DAY), 1000 * DAY);
        for _ in 0..MAX_KEYS {
            assert_ne!(newest(&start(0), 0), first);
        }
        let keys = start(1000 * DAY);
        assert!(knows(&keys, first, 1000 * DAY));
        assert_eq!(newest(&keys, 1000 * DAY), first);
        fs::remove_dir_all(&folder).unwrap();
    }

    /// Regression: the write was retried only with the next key, a month later. A restart before
    /// that logged all visitors out.
    #[test]
    fn retries_failed_key_write_after_a_minute() {
        let folder = folder("keys-late");
        let path = folder.join("session-keys");
        let keys = Keys::load(&path, 0, DAY).unwrap();
        fs::remove_dir_all(&folder).unwrap();
        let now = 30 * DAY;
        let second = newest(&keys, now);
        fs::create_dir_all(&folder).unwrap();
        assert_eq!((newest(&keys, now + 59), path.exists()), (second, false));
        assert_eq!((newest(&keys, now + 60), path.exists()), (second, true));
        assert_eq!(newest(&Keys::load(&path, now + 61, DAY).unwrap(), now + 61), second);
        fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn skips_invalid_lines_of_key_file() {
        let line = SessionKey::of([1, 2, 3, 0xff], [7; 32], 9).line();
        let key = SessionKey::parse(line.trim_end()).unwrap();
        assert_eq!((key.name, key.secret, key.created), ([1, 2, 3, 0xff], [7; 32], 9));
        for wrong in ["", "9", "9 010203ff", "x 010203ff 00", &line[..line.len() - 2]] {
            assert!(SessionKey::parse(wrong).is_none(), "{wrong:?}");
        }
    }
}

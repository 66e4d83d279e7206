//! TLS session tickets (RFC 8446 section 4.6.1, RFC 5077): their lifetime, the rotation of their
//! keys, and a file that preserves the keys across restarts.

use std::fmt;
use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::{PoisonError, RwLock};
use std::time::{SystemTime, UNIX_EPOCH};

use bine_log as log;
use ring::aead::{AES_256_GCM, Aad, LessSafeKey, Nonce, UnboundKey};
use ring::rand::{SecureRandom as _, SystemRandom};
use rustls::server::ProducesTickets;

use crate::system::{is_disk_full, write_private};

/// Seconds for which a key encrypts new tickets. A stolen key decrypts the sessions resumed with
/// it, so keys rotate often.
const ROTATION: u64 = 6 * 60 * 60;
/// Lifetime of a ticket, in seconds.
const LIFETIME: u64 = 12 * 60 * 60;
/// Maximum number of keys with unexpired tickets.
const MAX_KEYS: usize = (LIFETIME.div_ceil(ROTATION) + 1) as usize;
/// First line of a key file.
const TITLE: &str = "bine ticket keys 1";
/// Maximum length of a key file in bytes.
const MAX_FILE: u64 = 4096;

/// The keys that encrypt session tickets.
pub struct Tickets {
    /// At least one key, the newest first.
    keys: RwLock<Vec<Key>>,
    file: Option<PathBuf>,
}

/// One ticket key.
struct Key {
    name: [u8; NAME],
    secret: [u8; SECRET],
    /// Creation time in seconds since 1970.
    created: u64,
}

const NAME: usize = 16;
const SECRET: usize = 32;
const NONCE: usize = 12;

impl Tickets {
    /// Creates keys in memory only; they are lost when this value is dropped.
    pub fn passing() -> Self {
        Self { keys: RwLock::new(vec![Key::new(now())]), file: None }
    }

    /// Loads the unexpired keys that an earlier server saved at `path`, and saves new keys there.
    /// The file is readable by its owner only.
    ///
    /// # Errors
    ///
    /// Fails when the file cannot be read or written. A full disk only causes a log line.
    pub fn kept(path: &Path) -> io::Result<Self> {
        let now = now();
        let mut keys = read(path)?;
        keys.retain(|key| key.is_valid(now));
        let tickets = Self { keys: RwLock::new(keys), file: Some(path.to_owned()) };
        match tickets.rotate(now) {
            Err(error) if is_disk_full(&error) => {
                log::warn(format_args!(
                    "the disk is full: the newest TLS ticket key is not saved, so clients cannot \
                     resume sessions after a restart; free space for {} ({error})",
                    path.display()
                ));
            }
            result => result?,
        }
        Ok(tickets)
    }

    /// Creates a new key if the newest is older than [`ROTATION`].
    fn rotate(&self, now: u64) -> io::Result<()> {
        let mut keys = self.keys.write().unwrap_or_else(PoisonError::into_inner);
        if keys.first().is_some_and(|newest| newest.is_current(now)) {
            return Ok(());
        }
        keys.insert(0, Key::new(now));
        keys.truncate(MAX_KEYS);
        match &self.file {
            Some(file) => write(file, &keys),
            None => Ok(()),
        }
    }

    fn encrypt_at(&self, now: u64, plain: &[u8]) -> Option<Vec<u8>> {
        let is_current = |key: &Key| key.is_current(now);
        if !self.keys.read().unwrap_or_else(PoisonError::into_inner).first().is_some_and(is_current)
            && let Err(error) = self.rotate(now)
        {
            log::warn(format_args!(
                "the TLS ticket keys are not saved, so clients cannot resume sessions after a \
                 restart: {error}"
            ));
        }
        let keys = self.keys.read().unwrap_or_else(PoisonError::into_inner);
        let key = keys.first()?;
        let nonce: [u8; NONCE] = random()?;
        let mut sealed = plain.to_vec();
        let aead = key.aead()?;
        let nonce_once = Nonce::assume_unique_for_key(nonce);
        aead.seal_in_place_append_tag(nonce_once, Aad::from(key.name), &mut sealed).ok()?;
        Some([&key.name[..], &nonce, &sealed].concat())
    }

    fn decrypt_at(&self, now: u64, ticket: &[u8]) -> Option<Vec<u8>> {
        let (name, rest) = ticket.split_first_chunk::<NAME>()?;
        let (nonce, sealed) = rest.split_first_chunk::<NONCE>()?;
        let keys = self.keys.read().unwrap_or_else(PoisonError::into_inner);
        let key = keys.iter().find(|key| key.name == *name && key.is_valid(now))?;
        let mut sealed = sealed.to_vec();
        let nonce = Nonce::assume_unique_for_key(*nonce);
        let plain = key.aead()?.open_in_place(nonce, Aad::from(key.name), &mut sealed).ok()?.len();
        sealed.truncate(plain);
        Some(sealed)
    }
}

impl Key {
    fn new(now: u64) -> Self {
        // Without random bytes from the system, no key would be secret.
        let name = random().expect("the system has random bytes");
        let secret = random().expect("the system has random bytes");
        Self { name, secret, created: now }
    }

    /// Whether this key encrypts new tickets. A creation time in the future means that the clock
    /// was wrong, and such a key is not used.
    fn is_current(&self, now: u64) -> bool {
        now.checked_sub(self.created).is_some_and(|age| age < ROTATION)
    }

    /// Whether tickets of this key are still accepted.
    fn is_valid(&self, now: u64) -> bool {
        now.checked_sub(self.created).is_some_and(|age| age < ROTATION + LIFETIME)
    }

    fn aead(&self) -> Option<LessSafeKey> {
        UnboundKey::new(&AES_256_GCM, &self.secret).ok().map(LessSafeKey::new)
    }

    fn line(&self) -> String {
        format!("{} {} {}\n", self.created, hex(&self.name), hex(&self.secret))
    }

    fn parse(line: &str) -> Option<Self> {
        let mut words = line.split(' ');
        let (created, name, secret) = (words.next()?, words.next()?, words.next()?);
        Some(Self { created: created.parse().ok()?, name: unhex(name)?, secret: unhex(secret)? })
    }
}

impl ProducesTickets for Tickets {
    fn enabled(&self) -> bool {
        true
    }

    fn lifetime(&self) -> u32 {
        LIFETIME as u32
    }

    fn encrypt(&self, plain: &[u8]) -> Option<Vec<u8>> {
        self.encrypt_at(now(), plain)
    }

    fn decrypt(&self, cipher: &[u8]) -> Option<Vec<u8>> {
        self.decrypt_at(now(), cipher)
    }
}

/// Omits the keys.
impl fmt::Debug for Tickets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tickets").field("file", &self.file).finish_non_exhaustive()
    }
}

/// Reads the keys from a file. Returns no keys when the file does not exist, is accessible to other
/// users, or is not a key file.
fn read(path: &Path) -> io::Result<Vec<Key>> {
    let found = match fs::metadata(path) {
        Ok(found) => found,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(error),
    };
    if found.mode() & 0o077 != 0 || found.len() > MAX_FILE {
        let path = path.display();
        log::warn(format_args!(
            "{path}: other users can read these TLS ticket keys, or the file is too long; \
             the server creates new keys"
        ));
        return Ok(Vec::new());
    }
    let text = String::from_utf8_lossy(&fs::read(path)?).into_owned();
    let mut lines = text.lines();
    if lines.next() != Some(TITLE) {
        log::warn(format_args!(
            "{}: not a file of TLS ticket keys; the server creates new keys",
            path.display()
        ));
        return Ok(Vec::new());
    }
    Ok(lines.filter_map(Key::parse).take(MAX_KEYS).collect())
}

fn write(path: &Path, keys: &[Key]) -> io::Result<()> {
    let lines: String = keys.iter().map(Key::line).collect();
    write_private(path, format!("{TITLE}\n{lines}").as_bytes())
}

fn random<const N: usize>() -> Option<[u8; N]> {
    let mut bytes = [0; N];
    SystemRandom::new().fill(&mut bytes).ok()?;
    Some(bytes)
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().flat_map(|byte| [byte >> 4, byte & 15]).map(digit).collect()
}

fn digit(half: u8) -> char {
    char::from(b"0123456789abcdef"[usize::from(half)])
}

fn unhex<const N: usize>(text: &str) -> Option<[u8; N]> {
    let mut bytes = [0; N];
    if text.len() != 2 * N || !text.is_ascii() {
        return None;
    }
    for (index, byte) in bytes.iter_mut().enumerate() {
        *byte = u8::from_str_radix(&text[2 * index..2 * index + 2], 16).ok()?;
    }
    Some(bytes)
}

fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}

#[cfg(test)]
mod tests {
    use std::fs::OpenOptions;
    use std::io::Write as _;
    use std::os::unix::fs::OpenOptionsExt as _;

    use proptest::prelude::*;

    use super::*;
    use bine_log::test_support::ScratchFolder;

    #[test]
    fn reads_the_time_of_the_system() {
        let system = || SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs();
        let before = system();
        assert!((before..=system()).contains(&now()));
    }

    #[test]
    fn accepts_a_ticket_for_twelve_hours_at_any_age_of_its_key() {
        let tickets = Tickets::passing();
        let start = now();
        assert_eq!(tickets.lifetime(), 12 * 3600);
        for age in [0, ROTATION - 1, ROTATION, 2 * ROTATION] {
            let ticket = tickets.encrypt_at(start + age, b"agreed").unwrap();
            let opened = |later| tickets.decrypt_at(start + age + later, &ticket);
            assert_eq!(opened(0).as_deref(), Some(&b"agreed"[..]));
            assert_eq!(opened(LIFETIME).as_deref(), Some(&b"agreed"[..]));
            assert_eq!(opened(LIFETIME + ROTATION), None);
        }
    }

    #[test]
    fn keys_survive_a_restart_in_a_private_file() {
        let folder = ScratchFolder::new();
        let path = folder.path("tickets");
        let ticket = Tickets::kept(&path).unwrap().encrypt(b"agreed").unwrap();
        assert_eq!(fs::metadata(&path).unwrap().mode() & 0o777, 0o600);
        let again = Tickets::kept(&path).unwrap();
        assert_eq!(again.decrypt(&ticket).as_deref(), Some(&b"agreed"[..]));
        // Keys that other users could read are replaced.
        fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o644)).unwrap();
        assert_eq!(Tickets::kept(&path).unwrap().decrypt(&ticket), None);
        assert_eq!(fs::metadata(&path).unwrap().mode() & 0o777, 0o600);
    }

    /// Symptom: the test tried 0644 alone, so a mask of 0007 passed, and keys that the group can
    /// read stayed in use.
    #[test]
    fn replaces_keys_that_the_group_or_others_may_use() {
        use std::os::unix::fs::PermissionsExt as _;

        for mode in [0o640, 0o660, 0o620, 0o610, 0o604, 0o602, 0o601] {
            let folder = ScratchFolder::new();
            let path = folder.path("tickets");
            let ticket = Tickets::kept(&path).unwrap().encrypt(b"agreed").unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
            assert_eq!(Tickets::kept(&path).unwrap().decrypt(&ticket), None, "{mode:o}");
            assert_eq!(fs::metadata(&path).unwrap().mode() & 0o777, 0o600, "{mode:o}");
        }
        for mode in [0o600, 0o400] {
            let folder = ScratchFolder::new();
            let path = folder.path("tickets");
            let ticket = Tickets::kept(&path).unwrap().encrypt(b"agreed").unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
            assert!(Tickets::kept(&path).unwrap().decrypt(&ticket).is_some(), "{mode:o}");
        }
    }

    #[test]
    fn replaces_a_file_without_keys() {
        let folder = ScratchFolder::new();
        let path = folder.path("tickets");
        for text in ["", "something else", "bine ticket keys 1\n1 2 3\nx", TITLE] {
            fs::remove_file(&path).ok();
            OpenOptions::new()
                .write(true)
                .create_new(true)
                .mode(0o600)
                .open(&path)
                .and_then(|mut file| file.write_all(text.as_bytes()))
                .unwrap();
            assert!(Tickets::kept(&path).unwrap().encrypt(b"agreed").is_some(), "{text:?}");
            assert_eq!(read(&path).unwrap().len(), 1, "{text:?}");
        }
    }

    #[test]
    fn rejects_a_key_created_in_the_future() {
        let tickets = Tickets::passing();
        let ticket = tickets.encrypt_at(now() + 10 * ROTATION, b"agreed").unwrap();
        assert_eq!(tickets.decrypt_at(now(), &ticket), None);
    }

    proptest! {
        #[test]
        fn rejects_forged_and_changed_tickets(ticket: Vec<u8>, index: usize, flip in 1u8..) {
            let tickets = Tickets::passing();
            prop_assert_eq!(tickets.decrypt(&ticket), None);
            let mut changed = tickets.encrypt(&ticket).unwrap();
            let index = index % changed.len();
            changed[index] ^= flip;
            prop_assert_eq!(tickets.decrypt(&changed), None);
        }
    }

    #[test]
    fn reads_no_keys_from_a_missing_file_and_reports_other_errors() {
        let folder = ScratchFolder::new();
        assert!(read(&folder.path("missing")).unwrap().is_empty());
        std::fs::write(folder.path("file"), "").unwrap();
        assert!(read(&folder.path("file").join("keys")).is_err(), "it is no folder");
    }

    #[test]
    fn formats_the_file_and_no_key() {
        let folder = ScratchFolder::new();
        let text = format!("{:?}", Tickets::kept(&folder.path("keys")).unwrap());
        assert!(
            text.starts_with("Tickets { file: Some(\"") && text.ends_with("keys\"), .. }"),
            "{text}"
        );
    }

    #[test]
    fn reads_a_file_of_up_to_4_kib() {
        let messages = log::test_support::capture();
        let folder = ScratchFolder::new();
        let path = folder.path("keys");
        let tickets = Tickets::kept(&path).unwrap();
        drop(tickets);
        let mut content = fs::read(&path).unwrap();
        let keys = read(&path).unwrap().len();
        assert!(keys > 0);
        // Other lines are ignored.
        for (length, expected) in [(MAX_FILE, keys), (MAX_FILE + 1, 0)] {
            content.resize(length as usize, b'\n');
            fs::write(&path, &content).unwrap();
            assert_eq!(read(&path).unwrap().len(), expected, "{length}");
        }
        assert_eq!(messages.end().len(), 1);
    }
}

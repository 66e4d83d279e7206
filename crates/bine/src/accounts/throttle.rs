//! The throttle of log-ins: each failure in a row lengthens the delay before the next try.
//!
//! Time is an argument, in seconds since 1970. The memory is a table of fixed size: a new subject
//! replaces the one of its set with the fewest failures, so that a flood of names displaces other
//! single failures first.

use std::hash::{BuildHasher as _, RandomState};
use std::sync::{Mutex, MutexGuard, PoisonError};

use bine_server::AddressBlock;

/// Counts failures by subject.
pub(super) struct Throttle {
    hasher: RandomState,
    entries: Mutex<Box<[[ThrottleEntry; WAYS]]>>,
}

/// A subject whose failures are counted.
#[derive(Clone, Copy, Hash, Debug)]
pub(super) enum Subject<'s> {
    /// Tries for one account from one address block.
    AccountAt(&'s str, AddressBlock),
    /// Tries for any account from one address block.
    Block(AddressBlock),
    /// Tries for one account from anywhere, except from known devices and address blocks.
    Account(&'s str),
    /// Tries for one account by a device on which its user has logged in.
    Device(&'s str, [u8; 8]),
    /// Sign-ups from one address block.
    SignUp(AddressBlock),
    /// Mails to one account.
    Mail(&'s str),
    /// Requests for mails from one address block.
    MailFrom(AddressBlock),
    /// Success of one account from one address block: not a failure, but its table is the same.
    Success(&'s str, AddressBlock),
}

/// How delays grow with the number of tries.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Growth {
    /// Tries without a delay.
    pub(super) free: u32,
    /// The longest delay in seconds.
    pub(super) longest: u64,
}

/// A try that must wait.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Wait {
    /// Seconds until the next try.
    pub(super) seconds: u64,
}

#[derive(Clone, Copy, Default)]
struct ThrottleEntry {
    /// The hash of the subject; 0: empty.
    key: u64,
    failures: u32,
    /// When the last one was.
    last: u64,
}

/// Sets of the table. With four entries of 24 bytes each, the table has 1.5 MiB.
const SETS: usize = 1 << 14;
const WAYS: usize = 4;
/// Seconds after which a subject without failures is forgotten.
const FORGET: u64 = 24 * 60 * 60;

impl Subject<'_> {
    /// After the free tries, delays double from one second up to 15 minutes. A single account from
    /// anywhere has more free tries and at most a minute of delay: its owner may be among the
    /// clients that try.
    const fn growth(&self) -> Growth {
        match self {
            Self::AccountAt(..) | Self::Device(..) => Growth { free: 5, longest: 15 * 60 },
            Self::Block(_) => Growth { free: 20, longest: 15 * 60 },
            Self::Account(_) => Growth { free: 100, longest: 60 },
            Self::SignUp(_) | Self::MailFrom(_) => Growth { free: 10, longest: 60 * 60 },
            Self::Mail(_) => Growth { free: 3, longest: 60 * 60 },
            Self::Success(..) => Growth { free: u32::MAX, longest: 0 },
        }
    }
}

impl Subject<'_> {
    /// Whether it would join strangers: all visitors of a proxy on the server's machine are one
    /// block.
    const fn is_crowd(&self) -> bool {
        match self {
            Self::Block(block) | Self::SignUp(block) | Self::MailFrom(block) => block.is_local(),
            _ => false,
        }
    }
}

impl Growth {
    /// Seconds that must pass after this many tries.
    fn delay(self, tries: u32) -> u64 {
        match tries.checked_sub(self.free) {
            None => 0,
            // Beyond 2^20 s the limit applies anyway.
            Some(above) => (1_u64 << above.min(20)).min(self.longest),
        }
    }
}

impl Throttle {
    pub(super) fn new() -> Self {
        let entries = vec![[ThrottleEntry::default(); WAYS]; SETS].into_boxed_slice();
        Self { hasher: RandomState::new(), entries: Mutex::new(entries) }
    }

    /// Counts a try of all these subjects, unless a subject must wait. A try counts as a failure
    /// until [`undo`](Self::undo) or [`clear`](Self::clear), so that concurrent tries cannot outrun
    /// the count.
    ///
    /// # Errors
    ///
    /// The longest wait among the subjects. No try is counted then.
    pub(super) fn attempt(&self, subjects: &[Subject<'_>], now: u64) -> Result<(), Wait> {
        let mut entries = self.entries();
        let wait = subjects.iter().filter(|subject| !subject.is_crowd()).map(|subject| {
            let Some(entry) = self.find(&mut entries, subject, now) else { return 0 };
            let until = entry.last.saturating_add(subject.growth().delay(entry.failures));
            // A clock that was set back must not lock anyone out.
            until.saturating_sub(now).min(subject.growth().longest)
        });
        let seconds = wait.max().unwrap_or(0);
        if seconds > 0 {
            return Err(Wait { seconds });
        }
        for subject in subjects {
            let entry = self.find_or_insert(&mut entries, subject, now);
            entry.failures = entry.failures.saturating_add(1);
            entry.last = now;
        }
        Ok(())
    }

    /// Takes back one try of each subject, which was no failure.
    pub(super) fn undo(&self, subjects: &[Subject<'_>], now: u64) {
        let mut entries = self.entries();
        for subject in subjects {
            if let Some(entry) = self.find(&mut entries, subject, now) {
                entry.failures = entry.failures.saturating_sub(1);
            }
        }
    }

    /// Forgets the failures of a subject.
    pub(super) fn clear(&self, subject: Subject<'_>, now: u64) {
        if let Some(entry) = self.find(&mut self.entries(), &subject, now) {
            *entry = ThrottleEntry::default();
        }
    }

    /// Notes a subject without a limit.
    pub(super) fn note(&self, subject: Subject<'_>, now: u64) {
        let mut entries = self.entries();
        let entry = self.find_or_insert(&mut entries, &subject, now);
        // Entries with more failures stay longer.
        (entry.failures, entry.last) = (FAMILIAR, now);
    }

    /// The number of recent tries of a subject.
    pub(super) fn count(&self, subject: Subject<'_>, now: u64) -> u32 {
        self.find(&mut self.entries(), &subject, now).map_or(0, |entry| entry.failures)
    }

    fn find<'e>(
        &self,
        entries: &'e mut [[ThrottleEntry; WAYS]],
        subject: &Subject<'_>,
        now: u64,
    ) -> Option<&'e mut ThrottleEntry> {
        let (set, key) = self.place(subject);
        let entry = entries[set].iter_mut().find(|entry| entry.key == key)?;
        if entry.is_forgotten(now, subject) {
            *entry = ThrottleEntry::default();
            return None;
        }
        Some(entry)
    }

    fn find_or_insert<'e>(
        &self,
        entries: &'e mut [[ThrottleEntry; WAYS]],
        subject: &Subject<'_>,
        now: u64,
    ) -> &'e mut ThrottleEntry {
        let (set, key) = self.place(subject);
        let set = &mut entries[set];
        let found = set.iter().position(|entry| entry.key == key);
        let place = found.unwrap_or_else(|| {
            let least = (0..WAYS).min_by_key(|place| {
                let entry = &set[*place];
                let is_old = now.saturating_sub(entry.last) >= FORGET;
                if entry.key == 0 || is_old { (0, 0) } else { (1 + entry.failures, entry.last) }
            });
            least.unwrap_or(0)
        });
        if found.is_none() || set[place].is_forgotten(now, subject) {
            set[place] = ThrottleEntry { key, failures: 0, last: now };
        }
        &mut set[place]
    }

    fn place(&self, subject: &Subject<'_>) -> (usize, u64) {
        let hash = self.hasher.hash_one(subject);
        ((hash as usize) % SETS, hash.max(1))
    }

    fn entries(&self) -> MutexGuard<'_, Box<[[ThrottleEntry; WAYS]]>> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The count by which a success is kept among failures.
const FAMILIAR: u32 = 50;
/// Seconds for which an address block from which a user has logged in counts as known.
const FAMILIAR_FOR: u64 = 30 * 24 * 60 * 60;

impl ThrottleEntry {
    fn is_forgotten(&self, now: u64, subject: &Subject<'_>) -> bool {
        let time = if matches!(subject, Subject::Success(..)) { FAMILIAR_FOR } else { FORGET };
        now.saturating_sub(self.last) >= time
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DAY: u64 = 24 * 60 * 60;
    const ANN: &str = "ann";

    fn block(last: u8) -> AddressBlock {
        AddressBlock::of([192, 0, 2, last].into())
    }

    /// Tries as often as the throttle permits until `end`, and returns the number of tries.
    fn tries(throttle: &Throttle, subjects: &[Subject<'_>], start: u64, end: u64) -> u32 {
        let (mut now, mut count) = (start, 0);
        while now < end {
            match throttle.attempt(subjects, now) {
                Ok(()) => count += 1,
                Err(wait) => now += wait.seconds,
            }
        }
        count
    }

    #[test]
    fn delays_double_up_to_fifteen_minutes() {
        let throttle = Throttle::new();
        let subject = [Subject::AccountAt(ANN, block(1))];
        let mut now = 1_000_000;
        let mut waits = Vec::new();
        for _ in 0..18 {
            if let Err(wait) = throttle.attempt(&subject, now) {
                waits.push(wait.seconds);
                now += wait.seconds;
                assert_eq!(throttle.attempt(&subject, now), Ok(()));
            }
        }
        assert_eq!(waits, [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 900, 900, 900]);
    }

    #[test]
    fn one_block_tries_a_hundred_passwords_a_day_for_one_account() {
        let throttle = Throttle::new();
        let pair = [Subject::AccountAt(ANN, block(1)), Subject::Block(block(1))];
        assert_eq!(tries(&throttle, &pair, 0, DAY), 109);
        // The delays go on for days.
        assert_eq!(tries(&throttle, &pair, DAY, 3 * DAY), 192);
    }

    #[test]
    fn one_block_cannot_spread_its_tries_over_accounts() {
        let throttle = Throttle::new();
        let names: Vec<String> = (0..10_000).map(|number| format!("user {number}")).collect();
        let (mut now, mut count) = (0, 0);
        for name in names.iter().cycle() {
            if now >= DAY {
                break;
            }
            let subjects = [Subject::AccountAt(name, block(1)), Subject::Block(block(1))];
            match throttle.attempt(&subjects, now) {
                Ok(()) => count += 1,
                Err(wait) => now += wait.seconds,
            }
        }
        assert!(count <= 125, "{count}");
    }

    #[test]
    fn delays_mails_to_one_address_up_to_an_hour() {
        let throttle = Throttle::new();
        let mails = [Subject::Mail("ann@example.org")];
        assert_eq!(tries(&throttle, &mails, 0, 1), 3);
        assert!(tries(&throttle, &mails, 1, DAY) <= 24 + 12);
        let Err(Wait { seconds }) = throttle.attempt(&mails, DAY) else { panic!("no wait") };
        assert!(seconds <= 60 * 60, "{seconds}");
    }

    #[test]
    fn visitors_of_a_local_proxy_do_not_delay_each_other() {
        let throttle = Throttle::new();
        for number in 0..1000 {
            let name = format!("user {number}");
            let local = AddressBlock::LOCAL;
            let subjects = [Subject::AccountAt(&name, local), Subject::Block(local)];
            assert_eq!(throttle.attempt(&subjects, 0), Ok(()));
        }
        assert!(tries(&throttle, &[Subject::AccountAt(ANN, AddressBlock::LOCAL)], 0, 1) == 5);
    }

    #[test]
    fn owner_on_known_device_is_not_delayed_by_attackers() {
        let throttle = Throttle::new();
        // For an hour, 256 blocks try in turn.
        let mut last = 0;
        for now in 0..3600 {
            let subjects = [Subject::AccountAt(ANN, block(now as u8)), Subject::Account(ANN)];
            if throttle.attempt(&subjects, now).is_ok() {
                last = now;
            }
        }
        let now = last + 1;
        assert_eq!(throttle.attempt(&[Subject::Device(ANN, [7; 8])], now), Ok(()));
        // On an unknown device, a minute is the longest wait.
        let Err(Wait { seconds }) = throttle.attempt(&[Subject::Account(ANN)], now) else {
            panic!("no wait")
        };
        assert_eq!(seconds, 59);
    }

    #[test]
    fn success_ends_the_delay_and_a_day_without_tries_too() {
        let throttle = Throttle::new();
        let subject = Subject::AccountAt(ANN, block(1));
        tries(&throttle, &[subject], 0, 60);
        assert!(throttle.attempt(&[subject], 60).is_err());
        throttle.clear(subject, 60);
        assert_eq!(throttle.attempt(&[subject], 60), Ok(()));
        throttle.undo(&[subject], 60);
        assert_eq!(throttle.count(subject, 60), 0);
        assert_eq!(tries(&throttle, &[subject], 60, 61), 5);
        assert_eq!(tries(&throttle, &[subject], 61 + DAY, 62 + DAY), 5);
        throttle.note(Subject::Success(ANN, block(1)), DAY);
        assert!(throttle.count(Subject::Success(ANN, block(1)), 20 * DAY) > 0);
        assert_eq!(throttle.count(Subject::Success(ANN, block(1)), 40 * DAY), 0);
    }

    #[test]
    fn clock_that_was_set_back_locks_nobody_out() {
        let throttle = Throttle::new();
        let subject = [Subject::AccountAt(ANN, block(1))];
        tries(&throttle, &subject, 400 * DAY, 400 * DAY + 60);
        let Err(Wait { seconds }) = throttle.attempt(&subject, 0) else { panic!("no wait") };
        assert!(seconds <= 900, "{seconds}");
    }

    #[test]
    fn flood_of_names_does_not_displace_a_subject_with_failures() {
        let throttle = Throttle::new();
        let subject = [Subject::AccountAt(ANN, block(1))];
        tries(&throttle, &subject, 0, 60);
        for number in 0..300_000_u32 {
            let name = number.to_string();
            let _ = throttle.attempt(&[Subject::AccountAt(&name, block(2))], 60);
        }
        assert!(throttle.attempt(&subject, 60).is_err());
        assert_eq!(size_of::<ThrottleEntry>() * WAYS * SETS, 3 << 19);
    }
}

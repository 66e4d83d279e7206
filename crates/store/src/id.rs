//! Row ids: UUIDs of version 7, ordered by creation time and hard to guess.

use std::cmp::Ordering;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::marker::PhantomData;
use std::str::FromStr;

/// The id of a row, in any table: a UUID of version 7 (RFC 9562 section 5.7). Ids are ordered by
/// creation time.
// Two halves, because a `u128` would force an alignment of sixteen bytes on every key that holds
// one.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct RowId(u64, u64);

/// The id of a row of the table `T`.
///
/// A new row has [`Id::unassigned`] until the store inserts it and returns its id.
pub struct Id<T> {
    row: RowId,
    table: PhantomData<fn() -> T>,
}

/// A generator of increasing ids, whatever the clock does.
#[derive(Debug)]
pub(crate) struct Ids {
    last: RowId,
    random: fn(&mut [u8]),
    /// Random bytes, drawn for many ids at once because the system call takes longer than all the
    /// rest.
    drawn: [u8; DRAWN],
    /// The number of random bytes already used.
    used: usize,
}

/// The random bits drawn for each step within a millisecond, of the 74 bits that the time does not
/// use: enough that a client cannot guess a neighboring id, and few enough that 2^13 ids fit into
/// one millisecond. With shorter steps, the ids of one millisecond would share so long a prefix
/// that a search could not distinguish them by a few bytes.
const STEP_BITS: u32 = 60;
const FREE_BITS: u32 = 74;
/// The free bits below the version.
const LOW_BITS: u32 = 62;
/// The positions of the hyphens in an id's text.
const HYPHENS: [usize; 4] = [8, 13, 18, 23];
/// The system returns up to 256 bytes in one piece.
const DRAWN: usize = 256;

impl RowId {
    /// The length of an id's text.
    pub(crate) const LENGTH: usize = 36;

    /// The id with this number, which must be a result of [`RowId::number`].
    pub const fn from_number(number: u128) -> Self {
        Self((number >> 64) as u64, number as u64)
    }

    /// The id as a number, the highest byte first, as the standard orders its bytes.
    pub const fn number(self) -> u128 {
        (self.0 as u128) << 64 | self.1 as u128
    }

    /// The id as bytes, which compare as ids do.
    pub(crate) const fn bytes(self) -> [u8; 16] {
        self.number().to_be_bytes()
    }

    /// The creation time, in milliseconds since 1970.
    pub const fn milliseconds(self) -> u64 {
        self.0 >> 16
    }

    /// Whether the id is the placeholder of a row that is not inserted yet.
    pub const fn is_unassigned(self) -> bool {
        self.0 == 0 && self.1 == 0
    }

    /// Writes the id into `buffer`, as RFC 9562 section 4 spells it:
    /// `0193f9a0-4c5e-7b3a-9c1d-5e6f70819203`.
    pub(crate) fn write_to(self, buffer: &mut [u8; Self::LENGTH]) -> &str {
        let mut number = self.number();
        for (at, byte) in buffer.iter_mut().enumerate().rev() {
            *byte = b'-';
            if !HYPHENS.contains(&at) {
                *byte = b"0123456789abcdef"[(number & 0xf) as usize];
                number >>= 4;
            }
        }
        str::from_utf8(buffer).unwrap_or_default()
    }

    fn of(milliseconds: u64, free: u128) -> Self {
        let high = (free >> LOW_BITS) & 0xfff;
        let low = free & ((1 << LOW_BITS) - 1);
        Self(milliseconds << 16 | 0x7000 | high as u64, 0b10 << LOW_BITS | low as u64)
    }

    /// The bits that hold neither time nor version nor variant.
    const fn free(self) -> u128 {
        (self.0 as u128 & 0xfff) << LOW_BITS | self.1 as u128 & ((1 << LOW_BITS) - 1)
    }
}

impl Ids {
    /// A generator whose first id is above `last`. `random` fills its argument with unpredictable
    /// bytes.
    pub(crate) const fn after(last: RowId, random: fn(&mut [u8])) -> Self {
        Self { last, random, drawn: [0; DRAWN], used: DRAWN }
    }

    /// The next id. `now` is in milliseconds since 1970; a clock that stops or is set back makes
    /// the ids count on.
    pub(crate) fn next(&mut self, now: u64) -> RowId {
        let random = self.draw();
        let now = now & ((1 << 48) - 1);
        let last = self.last.milliseconds();
        self.last = if now > last {
            // One bit stays zero, so that later ids of the millisecond have room to count.
            RowId::of(now, random & ((1 << (FREE_BITS - 1)) - 1))
        } else {
            let free = self.last.free() + 1 + (random & ((1 << STEP_BITS) - 1));
            // The millisecond has no free id: use the next one.
            RowId::of(last + u64::from(free >> FREE_BITS != 0), free & ((1 << FREE_BITS) - 1))
        };
        self.last
    }

    fn draw(&mut self) -> u128 {
        if self.used == DRAWN {
            (self.random)(&mut self.drawn);
            self.used = 0;
        }
        let bytes = self.drawn[self.used..].first_chunk().copied().unwrap_or_default();
        self.used += size_of_val(&bytes);
        u128::from_le_bytes(bytes)
    }
}

/// Compares both halves at once: each lookup in a table makes about twenty comparisons.
impl Ord for RowId {
    #[inline]
    fn cmp(&self, other: &Self) -> Ordering {
        self.number().cmp(&other.number())
    }
}

impl PartialOrd for RowId {
    #[inline]
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// Writes the id as RFC 9562 section 4 spells it: `0193f9a0-4c5e-7b3a-9c1d-5e6f70819203`.
impl fmt::Display for RowId {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str(self.write_to(&mut [0; Self::LENGTH]))
    }
}

impl fmt::Debug for RowId {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, to)
    }
}

/// The error for a text that is not an id.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ParseIdError;

impl fmt::Display for ParseIdError {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str("an id is 32 hexadecimal digits, like 0193f9a0-4c5e-7b3a-9c1d-5e6f70819203")
    }
}

impl std::error::Error for ParseIdError {}

impl FromStr for RowId {
    type Err = ParseIdError;

    /// Parses the displayed form, in upper or lower case.
    fn from_str(text: &str) -> Result<Self, ParseIdError> {
        let bytes = text.as_bytes();
        if bytes.len() != Self::LENGTH {
            return Err(ParseIdError);
        }
        let mut all = 0;
        for (position, byte) in bytes.iter().enumerate() {
            if HYPHENS.contains(&position) {
                if *byte != b'-' {
                    return Err(ParseIdError);
                }
            } else {
                all = all << 4 | u128::from((*byte as char).to_digit(16).ok_or(ParseIdError)?);
            }
        }
        Ok(Self::from_number(all))
    }
}

impl<T> Id<T> {
    /// The placeholder in a row that is not inserted yet: all digits are zero. The store ignores it
    /// and assigns an id when it inserts the row.
    pub const fn unassigned() -> Self {
        Self::of(RowId(0, 0))
    }

    /// The typed id of a row in the table `T`.
    pub const fn of(row: RowId) -> Self {
        Self { row, table: PhantomData }
    }

    /// The id without its table.
    pub const fn row(self) -> RowId {
        self.row
    }
}

// A derived implementation would require the same trait of `T`.
impl<T> Clone for Id<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Id<T> {}

impl<T> Default for Id<T> {
    fn default() -> Self {
        Self::unassigned()
    }
}

impl<T> PartialEq for Id<T> {
    fn eq(&self, other: &Self) -> bool {
        self.row == other.row
    }
}

impl<T> Eq for Id<T> {}

impl<T> PartialOrd for Id<T> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<T> Ord for Id<T> {
    fn cmp(&self, other: &Self) -> Ordering {
        self.row.cmp(&other.row)
    }
}

impl<T> Hash for Id<T> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.row.hash(state);
    }
}

impl<T> fmt::Display for Id<T> {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.row.fmt(to)
    }
}

impl<T> fmt::Debug for Id<T> {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.row.fmt(to)
    }
}

impl<T> FromStr for Id<T> {
    type Err = ParseIdError;

    fn from_str(text: &str) -> Result<Self, ParseIdError> {
        text.parse().map(Self::of)
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use proptest::prelude::*;

    use super::*;

    thread_local! {
        static STATE: Cell<u64> = const { Cell::new(1) };
    }

    /// Returns the same bytes in each run (Marsaglia's xorshift).
    fn random(bytes: &mut [u8]) {
        STATE.with(|cell| {
            for byte in bytes {
                let mut state = cell.get();
                state ^= state << 13;
                state ^= state >> 7;
                state ^= state << 17;
                cell.set(state);
                *byte = state as u8;
            }
        });
    }

    /// The largest random bytes, so that the counter overflows as soon as possible.
    fn ones(bytes: &mut [u8]) {
        bytes.fill(0xff);
    }

    #[test]
    fn creates_uuids_of_version_7() {
        let id = Ids::after(RowId::default(), random).next(1_795_208_400_123);
        assert_eq!(id.milliseconds(), 1_795_208_400_123);
        let text = id.to_string();
        assert_eq!((&text[14..15], text.len()), ("7", 36), "{text}");
        assert!("89ab".contains(&text[19..20]), "{text}");
    }

    /// A repeated random number would let a client guess a neighboring id.
    #[test]
    fn uses_each_random_byte_once() {
        thread_local! {
            static DRAWS: Cell<u8> = const { Cell::new(0) };
        }
        /// Fills each draw with numbers that no other draw has.
        fn numbered(bytes: &mut [u8]) {
            let draw = DRAWS.get();
            DRAWS.set(draw + 1);
            for (number, byte) in (0..).zip(bytes.chunks_mut(16)) {
                byte.fill(draw * 16 + number);
            }
        }
        let mut ids = Ids::after(RowId::default(), numbered);
        let lowest: Vec<u8> = (1..=40).map(|now| ids.next(now).number() as u8).collect();
        assert_eq!(lowest, (0..40).collect::<Vec<u8>>());
        assert_eq!(DRAWS.get(), 3);
    }

    #[test]
    fn first_id_of_a_millisecond_leaves_half_of_it() {
        let id = Ids::after(RowId::default(), ones).next(8);
        assert_eq!((id.milliseconds(), id.free()), (8, (1 << (FREE_BITS - 1)) - 1));
        let id = Ids::after(RowId::default(), ones).next(5 << 48 | 8);
        assert_eq!(id.milliseconds(), 8, "a time has 48 bits");
    }

    #[test]
    fn later_ids_of_a_millisecond_count_on_within_it() {
        let mut ids = Ids::after(RowId::default(), random);
        let first = ids.next(8);
        for _ in 0..100 {
            let before = ids.last;
            let next = ids.next(8);
            assert_eq!(next.milliseconds(), 8);
            // By one more than the random bits of a step, at most.
            let step = next.free() - before.free();
            assert!((1..=1 << STEP_BITS).contains(&step), "{step}");
        }
        // A clock that is set back does not set the ids back.
        assert!(ids.next(7) > first && ids.last.milliseconds() == 8);
        assert_eq!(ids.next(9).milliseconds(), 9);
    }

    #[test]
    fn only_zero_is_unassigned() {
        assert!(Id::<()>::unassigned().row().is_unassigned() && RowId::default().is_unassigned());
        for number in [1, 1 << 64, u128::MAX] {
            assert!(!RowId::from_number(number).is_unassigned(), "{number}");
        }
    }

    #[test]
    fn typed_id_compares_and_formats_as_its_row() {
        let [low, high] = [1 << 70, 1 << 71].map(RowId::from_number);
        let [one, other]: [Id<()>; 2] = [Id::of(low), Id::of(high)];
        assert!(one < other && one != other && one == Id::of(low));
        assert_eq!((one.to_string(), format!("{one:?}")), (low.to_string(), low.to_string()));
        assert_eq!(low.to_string().parse(), Ok(one));
        let ids: std::collections::HashSet<_> = [one, other, one].into();
        assert_eq!((ids.len(), ids.contains(&other)), (2, true));
        let error = "1".parse::<Id<()>>().unwrap_err().to_string();
        assert!(error.starts_with("an id is 32 hexadecimal digits"), "{error}");
    }

    #[test]
    fn full_millisecond_continues_in_the_next() {
        let mut ids = Ids::after(RowId::of(7, (1 << FREE_BITS) - 2), ones);
        let next = ids.next(7);
        assert_eq!(next.milliseconds(), 8);
        assert!(next > RowId::of(7, (1 << FREE_BITS) - 1));
    }

    /// Symptom: lookups among rows of one burst took half as long again, or not, from start to
    /// start. Cause: all ids of a millisecond shared their first nine bytes, so that tree nodes
    /// with two milliseconds could not distinguish keys by four bytes. Fix: longer steps.
    #[test]
    fn ids_of_one_millisecond_differ_in_few_bytes() {
        let mut ids = Ids::after(RowId::default(), random);
        let all: Vec<u128> = (0..1000).map(|_| ids.next(7).number() >> 56).collect();
        let are_alike = |few: &&[u128]| few.first() == few.last();
        assert_eq!(all.windows(31).filter(are_alike).count(), 0);
    }

    #[test]
    fn rejects_invalid_ids() {
        for text in [
            "",
            "1",
            "0193f9a0-4c5e-7b3a-9c1d-5e6f7081920",
            "0193f9a0x4c5e-7b3a-9c1d-5e6f70819203",
            "0193f9a0-4c5e-7b3a-9c1d-5e6f7081920g",
            "+193f9a0-4c5e-7b3a-9c1d-5e6f70819203",
        ] {
            assert_eq!(text.parse::<RowId>(), Err(ParseIdError), "{text}");
        }
    }

    proptest! {
        #[test]
        fn ids_increase_despite_the_clock(clock in prop::collection::vec(0_u64..5, 1..200)) {
            let mut ids = Ids::after(RowId::default(), random);
            let mut last = RowId::default();
            for now in clock {
                let id = ids.next(now);
                prop_assert!(id > last);
                prop_assert_eq!((id.number() >> 76 & 0xf, id.number() >> 62 & 3), (7, 2));
                last = id;
            }
        }

        #[test]
        fn parses_formatted_ids(number: u128) {
            let id = RowId::from_number(number);
            prop_assert_eq!(id.to_string().parse(), Ok(id));
            prop_assert_eq!(id.to_string().to_uppercase().parse(), Ok(id));
        }
    }
}

//! Decides how bytes are appended, and when there are enough of them to leave: the one place of this room where code is
//! unsafe, since appending is what a large page spends its time on (docs/measurements.md, "Templates").

use alloc::vec::Vec;
use core::fmt;
use core::mem::{self, MaybeUninit};
use core::slice;

use crate::{decimal, escape, xml};

/// The most text that is escaped at once: its room is reserved as if every byte of it were special.
const PIECE: usize = 1024;

/// The least room that is made: more than a short page takes.
const LEAST_ROOM: usize = 1024;

/// Bytes of text that are looked at together: a vector register's.
const BLOCK: usize = 16;

/// As many blocks as are worth a loop of their own: with one glance for all four, clean text is copied twice as fast.
const STRIP: usize = 4 * BLOCK;

/// The length and the limit of a buffer whose spill panicked: any room at all is more than there is.
const LOST: (usize, usize) = (1, 0);

/// Takes what it wants of a full buffer.
pub(crate) type Spill<'a> = &'a mut dyn FnMut(&mut Vec<u8>);

/// Appends to a `Vec`, and lets it spill when it has become long enough.
///
/// The `Vec` learns of what was appended when it spills, and when the buffer is dropped. Where its bytes are and how
/// many is known here alone until then: of a `Vec` behind a reference the compiler must believe that each byte written
/// changes it, of a field it need not, and keeps it in a register.
pub(crate) struct Buffer<'a> {
    out: &'a mut Vec<u8>,
    /// Invariant: the bytes of `out`.
    start: *mut u8,
    /// So many bytes from `start` on are what is here. Invariant: never above the capacity of `out`.
    length: usize,
    /// What ends behind it goes through [`make_room`](Self::make_room). Invariant: never above the capacity of `out`.
    limit: usize,
    /// The length that makes it spill; out of reach without a spill.
    spill_at: usize,
    chunk_at: usize,
    spill: Option<Spill<'a>>,
    /// If it is read as XML, the length up to which nothing is left that XML cannot hold.
    clean: Option<usize>,
    /// What comes behind that length stands in the value of an attribute.
    in_value: bool,
}

/// From where on a buffer spills nothing.
pub(crate) struct Kept {
    start: usize,
    /// As it was before.
    spill_at: usize,
}

impl<'a> Buffer<'a> {
    /// Appends to `out`, however long it grows.
    pub(crate) fn new(out: &'a mut Vec<u8>) -> Self {
        let (start, length, limit) = (out.as_mut_ptr(), out.len(), out.capacity());
        let (spill_at, chunk_at) = (usize::MAX, usize::MAX);
        Self {
            out,
            start,
            length,
            limit,
            spill_at,
            chunk_at,
            spill: None,
            clean: None,
            in_value: false,
        }
    }

    /// Appends to `out`, and calls `spill` before it appends more to what has grown by `chunk_at` or more bytes.
    pub(crate) fn with_spill(out: &'a mut Vec<u8>, chunk_at: usize, spill: Spill<'a>) -> Self {
        let chunk_at = chunk_at.max(1);
        let spill_at = out.len().saturating_add(chunk_at);
        let mut buffer = Self::new(out);
        buffer.limit = buffer.limit.min(spill_at);
        buffer.spill_at = spill_at;
        buffer.chunk_at = chunk_at;
        buffer.spill = Some(spill);
        buffer
    }

    /// Has what is appended from here on read as XML: what that cannot hold is replaced before anybody sees it.
    pub(crate) const fn go_over_to_xml(&mut self) {
        self.clean = Some(self.length);
    }

    pub(crate) const fn is_in_xml(&self) -> bool {
        self.clean.is_some()
    }

    /// What is appended from here on stands in the value of an attribute, or no longer does.
    #[inline]
    pub(crate) fn enter_value(&mut self, in_value: bool) {
        if self.is_in_xml() {
            self.clean_up();
            self.in_value = in_value;
        }
    }

    /// How much is here, as it will be seen.
    pub(crate) fn settled_length(&mut self) -> usize {
        self.clean_up();
        self.length
    }

    /// Spills nothing from here on, so that all that comes can be [looked at](Self::kept).
    pub(crate) fn keep(&mut self) -> Kept {
        let start = self.settled_length();
        Kept { start, spill_at: mem::replace(&mut self.spill_at, usize::MAX) }
    }

    /// What has come since, which may spill from here on.
    pub(crate) fn kept(&mut self, kept: &Kept) -> &[u8] {
        self.clean_up();
        self.settle();
        self.spill_at = kept.spill_at;
        // Of a lost buffer it is below any length, and stays there.
        self.limit = self.limit.min(self.spill_at.max(self.length));
        // A spill that panicked before may have taken more than it was given.
        self.out.get(kept.start..).unwrap_or_default()
    }

    /// Appends `bytes`.
    #[inline]
    pub(crate) fn bytes(&mut self, bytes: &[u8]) {
        let end = self.reserve(bytes.len());
        // SAFETY: there is room for as many bytes, and nobody else has it; then they are written.
        unsafe {
            end.copy_from_nonoverlapping(bytes.as_ptr(), bytes.len());
            self.advance(bytes.len());
        }
    }

    /// Appends a number in decimal.
    #[inline]
    pub(crate) fn decimal(&mut self, negative: bool, magnitude: u64) {
        let end = self.reserve(decimal::LONGEST);
        // SAFETY: there is room for as many bytes as the array has, and nobody else has it. Bytes of a `MaybeUninit`
        // need not have been written; as many as `write` says it has.
        unsafe {
            let space = &mut *end.cast::<[MaybeUninit<u8>; decimal::LONGEST]>();
            let length = decimal::write(space, negative, magnitude);
            self.advance(length);
        }
    }

    /// Appends `text`, escaped.
    #[inline]
    pub(crate) fn text(&mut self, text: &str) {
        if text.len() <= PIECE {
            self.piece(text.as_bytes());
        } else {
            self.pieces(text);
        }
    }

    /// Whole characters each, since XML is looked at in such pieces.
    #[cold]
    fn pieces(&mut self, text: &str) {
        let mut rest = text;
        while !rest.is_empty() {
            let (piece, behind) = rest.split_at(rest.floor_char_boundary(PIECE));
            self.piece(piece.as_bytes());
            rest = behind;
        }
    }

    #[inline]
    fn piece(&mut self, text: &[u8]) {
        let end = self.reserve(text.len() * escape::LONGEST + escape::SPACE);
        // SAFETY: there is the room that `escape_to` asks for, and nobody else has it. It answers where it stopped,
        // which is not behind that room, and has written all before it.
        unsafe {
            let length = escape_to(end, text).offset_from_unsigned(end);
            self.advance(length);
        }
    }

    /// Sees to it that there is room for so many `more` bytes, and tells where.
    #[inline]
    fn reserve(&mut self, more: usize) -> *mut u8 {
        // Neither is above `isize::MAX`: one is a `Vec`'s length, the other a slice's or a small multiple of `PIECE`.
        if self.length + more > self.limit {
            self.make_room(more);
        }
        // SAFETY: the length is within the capacity, of a lost buffer too now that it went through `make_room`.
        unsafe { self.start.add(self.length) }
    }

    /// Makes so many `more` bytes a part of what is here.
    ///
    /// # Safety
    ///
    /// [`reserve`](Self::reserve) has found room for them, and they have been written.
    #[inline]
    const unsafe fn advance(&mut self, more: usize) {
        self.length += more;
    }

    /// Spills if it is due, and makes room for so many `more` bytes.
    #[cold]
    #[inline(never)]
    fn make_room(&mut self, more: usize) {
        self.clean_up();
        self.settle();
        // If the spill panics, nothing is known of what it left, and whoever comes again has to come here.
        (self.length, self.limit) = LOST;
        if let Some(spill) = &mut self.spill
            && self.out.len() >= self.spill_at
        {
            spill(self.out);
            self.spill_at = self.out.len().saturating_add(self.chunk_at);
            self.clean = self.clean.map(|_| self.out.len());
        }
        self.out.reserve(more.max(LEAST_ROOM));
        self.start = self.out.as_mut_ptr();
        self.length = self.out.len();
        // What is asked for may be more than it will be, so it does not spill yet.
        self.limit = self.spill_at.max(self.length + more).min(self.out.capacity());
    }

    /// Replaces what XML cannot hold, if it is read as XML.
    fn clean_up(&mut self) {
        let Some(clean) = self.clean else { return };
        if (self.length, self.limit) == LOST {
            return;
        }
        self.settle();
        xml::clean(self.out, clean, self.in_value);
        self.clean = Some(self.out.len());
        self.start = self.out.as_mut_ptr();
        self.length = self.out.len();
        self.limit = self.spill_at.max(self.length).min(self.out.capacity());
    }

    /// Tells the `Vec` how much is there.
    fn settle(&mut self) {
        if (self.length, self.limit) != LOST {
            // SAFETY: the length is within the capacity, and what is there has been written.
            unsafe { self.out.set_len(self.length) }
        }
    }
}

impl Drop for Buffer<'_> {
    fn drop(&mut self) {
        self.clean_up();
        self.settle();
    }
}

impl fmt::Debug for Buffer<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Buffer").field("length", &self.length).finish_non_exhaustive()
    }
}

/// Writes `text`, escaped, and tells where it ends. Clean text is copied while it is looked at.
///
/// # Safety
///
/// From `to` on there is room for `LONGEST` bytes for each of `text` and for `SPACE` more, and none of it is `text`'s.
unsafe fn escape_to(to: *mut u8, text: &[u8]) -> *mut u8 {
    // SAFETY: each write is of a byte of `text`, or of its reference: no more than `LONGEST` bytes further; a write
    // may reach further than `to` then moves, but by no more than `SPACE`.
    unsafe {
        if text.len() >= BLOCK {
            return escape_long(to, text);
        }
        // Looked at as two parts that overlap, which needs no loop.
        if let (Some(first), Some(last)) = (text.first_chunk::<8>(), text.last_chunk::<8>()) {
            if is_clean(&[joined(*first, *last)]) {
                to.cast::<[u8; 8]>().write_unaligned(*first);
                to.add(text.len() - 8).cast::<[u8; 8]>().write_unaligned(*last);
                return to.add(text.len());
            }
        } else if let (Some(first), Some(last)) = (text.first_chunk::<4>(), text.last_chunk::<4>())
            && is_clean(&[joined(*first, *last)])
        {
            to.cast::<[u8; 4]>().write_unaligned(*first);
            to.add(text.len() - 4).cast::<[u8; 4]>().write_unaligned(*last);
            return to.add(text.len());
        }
        escape_each(to, text)
    }
}

/// The same for any length. Apart, so that a short text need not save the registers that a long one wants.
///
/// # Safety
///
/// As for [`escape_to`].
#[inline(never)]
unsafe fn escape_long(mut to: *mut u8, text: &[u8]) -> *mut u8 {
    let (strips, rest) = text.as_chunks::<STRIP>();
    let (blocks, rest) = rest.as_chunks::<BLOCK>();
    // SAFETY: as for `escape_to`.
    unsafe {
        for strip in strips {
            let blocks = strip.as_chunks::<BLOCK>().0;
            if is_clean(blocks) {
                to.cast::<[u8; STRIP]>().write_unaligned(*strip);
                to = to.add(STRIP);
            } else {
                to = escape_blocks(to, blocks);
            }
        }
        to = escape_blocks(to, blocks);
        escape_to(to, rest)
    }
}

/// Writes so many blocks, escaped, and tells where they end.
///
/// # Safety
///
/// As for [`escape_to`].
#[inline]
unsafe fn escape_blocks(mut to: *mut u8, blocks: &[[u8; BLOCK]]) -> *mut u8 {
    for block in blocks {
        // SAFETY: as for `escape_to`.
        unsafe {
            if is_clean(slice::from_ref(block)) {
                to.cast::<[u8; BLOCK]>().write_unaligned(*block);
                to = to.add(BLOCK);
            } else {
                to = escape_each(to, block);
            }
        }
    }
    to
}

/// Whether no byte of these blocks needs an escape; a `#` counts as one that does, which saves a comparison, and is
/// written as itself. Wider registers would have to be looked for at run time, and win nothing: clean text is copied at
/// the speed of the cache.
#[cfg(target_arch = "x86_64")]
#[allow(clippy::cast_ptr_alignment, reason = "`_mm_loadu_si128` reads from any address")]
#[inline]
fn is_clean(blocks: &[[u8; BLOCK]]) -> bool {
    use core::arch::x86_64::{
        __m128i, _mm_cmpeq_epi8, _mm_loadu_si128, _mm_movemask_epi8, _mm_or_si128, _mm_set1_epi8,
        _mm_setzero_si128,
    };
    // SAFETY: SSE2 is a part of x86-64, and the bytes that are read are those of a block.
    unsafe {
        let mut found = _mm_setzero_si128();
        for block in blocks {
            let block = _mm_loadu_si128(block.as_ptr().cast::<__m128i>());
            let quotes = _mm_or_si128(block, _mm_set1_epi8(0b101));
            let quotes = _mm_cmpeq_epi8(quotes, _mm_set1_epi8(b'\''.cast_signed()));
            let angles = _mm_or_si128(block, _mm_set1_epi8(0b10));
            let angles = _mm_cmpeq_epi8(angles, _mm_set1_epi8(b'>'.cast_signed()));
            found = _mm_or_si128(found, _mm_or_si128(quotes, angles));
        }
        _mm_movemask_epi8(found) == 0
    }
}

/// Whether no byte of these blocks needs an escape. All bytes are marked without a branch and their marks looked at as
/// one number, which lets it become vector code.
#[cfg(not(target_arch = "x86_64"))]
#[inline]
fn is_clean(blocks: &[[u8; BLOCK]]) -> bool {
    let marked = |block: &[u8; BLOCK]| block.map(|byte| u8::from(escape::is_special(byte)));
    blocks.iter().fold(0, |found, block| found | u128::from_ne_bytes(marked(block))) == 0
}

/// Two parts as a block, with nothing special between them.
#[inline]
fn joined<const LENGTH: usize>(first: [u8; LENGTH], last: [u8; LENGTH]) -> [u8; BLOCK] {
    let mut block = [0; BLOCK];
    block[..LENGTH].copy_from_slice(&first);
    block[BLOCK - LENGTH..].copy_from_slice(&last);
    block
}

/// Writes what each byte becomes, without a branch that depends on it, and tells where it ends.
///
/// # Safety
///
/// As for [`escape_to`].
#[inline]
unsafe fn escape_each(mut to: *mut u8, bytes: &[u8]) -> *mut u8 {
    for &byte in bytes {
        let (written, length) = escape::written(byte);
        // SAFETY: the caller has room for `LONGEST` bytes for each of `bytes`, and `SPACE` behind them.
        unsafe {
            to.cast::<[u8; escape::SPACE]>().write_unaligned(written);
            to = to.add(length);
        }
    }
    to
}

#[cfg(test)]
mod tests {
    use alloc::string::String;

    use proptest::prelude::*;

    use super::*;

    /// What a buffer appends for `text`, said without one.
    fn escaped(text: &str) -> String {
        let mut escaped = String::new();
        for letter in text.chars() {
            match letter {
                '&' => escaped.push_str("&amp;"),
                '<' => escaped.push_str("&lt;"),
                '>' => escaped.push_str("&gt;"),
                '"' => escaped.push_str("&quot;"),
                '\'' => escaped.push_str("&#39;"),
                plain => escaped.push(plain),
            }
        }
        escaped
    }

    /// One call, so that a sequence of them can be made up.
    #[derive(Clone, Debug)]
    enum Call {
        Bytes(String),
        Text(String),
        Decimal(bool, u64),
    }

    impl Call {
        fn perform(&self, buffer: &mut Buffer<'_>) {
            match self {
                Self::Bytes(bytes) => buffer.bytes(bytes.as_bytes()),
                Self::Text(text) => buffer.text(text),
                Self::Decimal(negative, magnitude) => buffer.decimal(*negative, *magnitude),
            }
        }

        fn expected(&self) -> String {
            match self {
                Self::Bytes(bytes) => bytes.clone(),
                Self::Text(text) => escaped(text),
                Self::Decimal(true, magnitude) => alloc::format!("-{magnitude}"),
                Self::Decimal(false, magnitude) => alloc::format!("{magnitude}"),
            }
        }
    }

    fn text() -> impl Strategy<Value = String> {
        prop_oneof![
            any::<String>(),
            "[&<>\"'#a;l]{0,90}",
            "[a-z]{0,80}[&<>\"'][a-z]{0,80}",
            (1000_usize..1100).prop_map(|length| "<a".repeat(length)),
        ]
    }

    fn call() -> impl Strategy<Value = Call> {
        prop_oneof![
            "[a-z<]{0,40}".prop_map(Call::Bytes),
            text().prop_map(Call::Text),
            (any::<bool>(), any::<u64>(), 0_u32..64)
                .prop_map(|(negative, number, shift)| Call::Decimal(negative, number >> shift)),
        ]
    }

    #[test]
    fn a_special_byte_is_found_wherever_it_stands() {
        for length in 1..150 {
            for place in 0..length {
                for special in ["<", ">", "&", "\"", "'"] {
                    let mut text = "x".repeat(length);
                    text.replace_range(place..=place, special);
                    let mut out = Vec::new();
                    Buffer::new(&mut out).text(&text);
                    assert_eq!(String::from_utf8(out).unwrap(), escaped(&text));
                }
            }
        }
    }

    #[test]
    fn a_lost_buffer_leaves_what_is_there() {
        extern crate std;
        let mut out = Vec::new();
        let mut spill = |out: &mut Vec<u8>| {
            *out = Vec::from(*b"new");
            panic!("it fails");
        };
        let spilling = std::panic::AssertUnwindSafe(|| {
            let mut buffer = Buffer::with_spill(&mut out, 1, &mut spill);
            buffer.bytes(b"a");
            buffer.bytes(b"b");
        });
        assert!(std::panic::catch_unwind(spilling).is_err());
        assert_eq!(out, b"new");
    }

    #[test]
    fn a_spill_that_panics_leaves_a_buffer_that_can_be_used() {
        extern crate std;
        let mut out = Vec::new();
        let mut times = 0;
        let mut spill = |out: &mut Vec<u8>| {
            *out = Vec::from(*b"new");
            times += 1;
            assert_ne!(times, 1, "the first spill fails");
        };
        let mut buffer = Buffer::with_spill(&mut out, 4, &mut spill);
        buffer.bytes(b"full");
        let twice = std::panic::AssertUnwindSafe(|| buffer.bytes(b"a"));
        assert!(std::panic::catch_unwind(twice).is_err());
        buffer.bytes(b"");
        buffer.bytes(b"b");
        drop(buffer);
        assert_eq!(out, b"newb");
    }

    proptest! {
        #[test]
        fn whatever_room_there_is_the_same_is_appended(
            calls in prop::collection::vec(call(), 0..12),
            room in 0_usize..200,
        ) {
            let mut out = Vec::new();
            out.reserve_exact(room);
            let mut buffer = Buffer::new(&mut out);
            for call in &calls {
                call.perform(&mut buffer);
            }
            drop(buffer);
            let expected: String = calls.iter().map(Call::expected).collect();
            prop_assert_eq!(String::from_utf8(out).unwrap(), expected);
        }

        #[test]
        fn whatever_a_spill_does_nothing_is_lost(
            calls in prop::collection::vec(call(), 0..12),
            chunk_at in 0_usize..200,
            left in 0_usize..40,
            moves: bool,
        ) {
            let (mut out, mut sent) = (Vec::new(), Vec::new());
            let mut spill = |out: &mut Vec<u8>| {
                let taken = out.len() - left.min(out.len());
                sent.extend(out.drain(..taken));
                if moves {
                    *out = out.clone();
                }
            };
            let mut buffer = Buffer::with_spill(&mut out, chunk_at, &mut spill);
            for call in &calls {
                call.perform(&mut buffer);
            }
            drop(buffer);
            sent.extend(out);
            let expected: String = calls.iter().map(Call::expected).collect();
            prop_assert_eq!(String::from_utf8(sent).unwrap(), expected);
        }
    }
}

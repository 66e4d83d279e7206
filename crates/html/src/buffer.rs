//! The byte buffer that a page is written to.
//!
//! The only module of this crate with unsafe code: a large page spends its time on appending
//! (docs/measurements/templates.md).

use alloc::vec::Vec;
use core::fmt;
use core::mem::{self, MaybeUninit};
use core::slice;

use crate::{decimal, escape, xml};

/// The longest text that is escaped at once: the buffer reserves room as if each byte were special.
const PIECE: usize = 1024;

/// The smallest reservation: more than a short page needs.
const MIN_RESERVE: usize = 1024;

/// Bytes of text that are checked together: the width of a vector register.
const BLOCK: usize = 16;

/// Bytes per iteration of the outer loop. One test for four blocks doubles the speed of copying
/// clean text.
const STRIP: usize = 4 * BLOCK;

/// Length and limit of a buffer whose spill panicked: every reservation exceeds this limit.
const POISONED: (usize, usize) = (1, 0);

/// Takes any part of a full buffer.
pub(crate) type Spill<'a> = &'a mut dyn FnMut(&mut Vec<u8>);

/// Appends to a `Vec`, and calls the spill when it is long enough.
///
/// The length of the `Vec` is updated when the buffer spills and when it is dropped. Until then the
/// start and the length are kept in fields: the compiler must assume that each byte written changes
/// a `Vec` behind a reference, but it can keep a field in a register.
pub(crate) struct Buffer<'a> {
    out: &'a mut Vec<u8>,
    /// Invariant: points to the bytes of `out`.
    start: *mut u8,
    /// Initialized bytes, counted from `start`. Invariant: never above the capacity of `out`.
    length: usize,
    /// A write that ends past this length calls [`make_room`](Self::make_room). Invariant: never
    /// above the capacity of `out`.
    limit: usize,
    /// The length at which the buffer spills; `usize::MAX` without a spill.
    spill_at: usize,
    chunk_at: usize,
    spill: Option<Spill<'a>>,
    /// In XML syntax, the length up to which all characters are valid XML.
    clean: Option<usize>,
    /// Whether the bytes past that length belong to an attribute's value.
    in_value: bool,
}

/// A pause of spilling, and the position where it began.
pub(crate) struct Hold {
    start: usize,
    /// The buffer's value before the pause.
    spill_at: usize,
}

impl<'a> Buffer<'a> {
    /// Appends to `out` without a limit.
    pub(crate) fn new(out: &'a mut Vec<u8>) -> Self {
        let start = out.as_mut_ptr();
        let (length, limit) = (out.len(), out.capacity());
        Self {
            out,
            start,
            length,
            limit,
            spill_at: usize::MAX,
            chunk_at: usize::MAX,
            spill: None,
            clean: None,
            in_value: false,
        }
    }

    /// Appends to `out`, and calls `spill` before a write if `out` has grown by at least `chunk_at`
    /// bytes.
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

    /// Switches to XML syntax: invalid characters are replaced before the bytes become visible.
    pub(crate) const fn switch_to_xml(&mut self) {
        self.clean = Some(self.length);
    }

    pub(crate) const fn is_in_xml(&self) -> bool {
        self.clean.is_some()
    }

    /// Sets whether the bytes from here on belong to an attribute's value.
    #[inline]
    pub(crate) fn enter_value(&mut self, in_value: bool) {
        if self.is_in_xml() {
            self.clean_up();
            self.in_value = in_value;
        }
    }

    /// The length of the output after invalid characters are replaced.
    pub(crate) fn settled_length(&mut self) -> usize {
        self.clean_up();
        self.length
    }

    /// Pauses spilling, so that [`release`](Self::release) can return all bytes from here on.
    pub(crate) fn hold(&mut self) -> Hold {
        let start = self.settled_length();
        Hold { start, spill_at: mem::replace(&mut self.spill_at, usize::MAX) }
    }

    /// Resumes spilling and returns the bytes appended since [`hold`](Self::hold).
    pub(crate) fn release(&mut self, hold: &Hold) -> &[u8] {
        self.clean_up();
        self.sync_length();
        self.spill_at = hold.spill_at;
        // The limit of a poisoned buffer is below any length and stays there.
        self.limit = self.limit.min(self.spill_at.max(self.length));
        // A spill that panicked earlier may have taken more than the buffer held at `start`.
        self.out.get(hold.start..).unwrap_or_default()
    }

    /// Appends `bytes`.
    #[inline]
    pub(crate) fn bytes(&mut self, bytes: &[u8]) {
        let end = self.reserve(bytes.len());
        // SAFETY: `reserve` made room for this many bytes, and `self` has exclusive access to it;
        // the copy initializes them before `advance`.
        unsafe {
            end.copy_from_nonoverlapping(bytes.as_ptr(), bytes.len());
            self.advance(bytes.len());
        }
    }

    /// Appends a number in decimal.
    #[inline]
    pub(crate) fn decimal(&mut self, negative: bool, magnitude: u64) {
        let end = self.reserve(decimal::LONGEST);
        // SAFETY: `reserve` made room for the whole array, and `self` has exclusive access to it.
        // A `MaybeUninit` may be uninitialized; `write` returns how many bytes it initialized.
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

    /// Escapes `text` in chunks of whole characters, as the cleaning of XML requires.
    #[cold]
    fn pieces(&mut self, text: &str) {
        let mut rest = text;
        while !rest.is_empty() {
            let (piece, after) = rest.split_at(rest.floor_char_boundary(PIECE));
            self.piece(piece.as_bytes());
            rest = after;
        }
    }

    #[inline]
    fn piece(&mut self, text: &[u8]) {
        let end = self.reserve(text.len() * escape::LONGEST + escape::SPACE);
        // SAFETY: `reserve` made the room that `escape_to` requires, and `self` has exclusive
        // access to it. `escape_to` returns an end within that room and has initialized all bytes
        // before it.
        unsafe {
            let length = escape_to(end, text).offset_from_unsigned(end);
            self.advance(length);
        }
    }

    /// Ensures room for `more` bytes and returns the address where they belong.
    #[inline]
    fn reserve(&mut self, more: usize) -> *mut u8 {
        // The sum cannot overflow, both are at most `isize::MAX`: a `Vec`'s length, and a slice's
        // length or a small multiple of `PIECE`.
        if self.length + more > self.limit {
            self.make_room(more);
        }
        // SAFETY: the length is within the capacity. A poisoned buffer has passed through
        // `make_room`.
        unsafe { self.start.add(self.length) }
    }

    /// Adds `more` bytes to the length.
    ///
    /// # Safety
    ///
    /// [`reserve`](Self::reserve) has made room for them, and the caller has initialized them.
    #[inline]
    const unsafe fn advance(&mut self, more: usize) {
        self.length += more;
    }

    /// Spills if the buffer is long enough, and makes room for `more` bytes.
    #[cold]
    #[inline(never)]
    fn make_room(&mut self, more: usize) {
        self.clean_up();
        self.sync_length();
        // If the spill panics, the state of `out` is unknown and the next write has to call this
        // again.
        (self.length, self.limit) = POISONED;
        if let Some(spill) = &mut self.spill
            && self.out.len() >= self.spill_at
        {
            spill(self.out);
            self.spill_at = self.out.len().saturating_add(self.chunk_at);
            self.clean = self.clean.map(|_| self.out.len());
        }
        self.out.reserve(more.max(MIN_RESERVE));
        self.start = self.out.as_mut_ptr();
        self.length = self.out.len();
        // `more` is an upper bound, so this write must not count toward the spill yet.
        self.limit = self.spill_at.max(self.length + more).min(self.out.capacity());
    }

    /// Replaces characters that XML does not allow, if the buffer is in XML syntax.
    fn clean_up(&mut self) {
        let Some(clean) = self.clean else { return };
        if (self.length, self.limit) == POISONED {
            return;
        }
        self.sync_length();
        xml::clean(self.out, clean, self.in_value);
        self.clean = Some(self.out.len());
        self.start = self.out.as_mut_ptr();
        self.length = self.out.len();
        self.limit = self.spill_at.max(self.length).min(self.out.capacity());
    }

    /// Updates the length of the `Vec`.
    fn sync_length(&mut self) {
        if (self.length, self.limit) != POISONED {
            // SAFETY: the length is within the capacity, and the bytes up to it are initialized.
            unsafe { self.out.set_len(self.length) }
        }
    }
}

impl Drop for Buffer<'_> {
    fn drop(&mut self) {
        self.clean_up();
        self.sync_length();
    }
}

impl fmt::Debug for Buffer<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Buffer").field("length", &self.length).finish_non_exhaustive()
    }
}

/// Writes `text`, escaped, and returns the end. Copies clean text while it checks it.
///
/// # Safety
///
/// `to` has room for `LONGEST` bytes per byte of `text` and `SPACE` more, and does not overlap
/// `text`.
unsafe fn escape_to(to: *mut u8, text: &[u8]) -> *mut u8 {
    // SAFETY: each write copies bytes of `text` or a character reference, at most `LONGEST` bytes
    // per byte of `text`. A write may extend past the new `to`, but by at most `SPACE`.
    unsafe {
        if text.len() >= BLOCK {
            return escape_long(to, text);
        }
        // Two chunks that overlap need no loop.
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

/// Escapes text of any length. A separate function, so that a short text does not save the
/// registers that a long one uses.
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

/// Writes `blocks`, escaped, and returns the end.
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

/// Whether no byte of `blocks` needs an escape. `#` counts as special, which saves a comparison; it
/// is written as itself. Wider registers would require detection at run time and gain nothing:
/// clean text already copies at the speed of the cache.
#[cfg(target_arch = "x86_64")]
#[allow(clippy::cast_ptr_alignment, reason = "`_mm_loadu_si128` reads from any address")]
#[inline]
fn is_clean(blocks: &[[u8; BLOCK]]) -> bool {
    use core::arch::x86_64::{
        __m128i, _mm_cmpeq_epi8, _mm_loadu_si128, _mm_movemask_epi8, _mm_or_si128, _mm_set1_epi8,
        _mm_setzero_si128,
    };
    // SAFETY: SSE2 is part of x86-64, and each load reads exactly one block.
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

/// Whether no byte of `blocks` needs an escape. The bytes are marked without a branch and the marks
/// tested as one number, so the compiler can vectorize it.
#[cfg(not(target_arch = "x86_64"))]
#[inline]
fn is_clean(blocks: &[[u8; BLOCK]]) -> bool {
    let marked = |block: &[u8; BLOCK]| block.map(|byte| u8::from(escape::is_special(byte)));
    blocks.iter().fold(0, |found, block| found | u128::from_ne_bytes(marked(block))) == 0
}

/// Two chunks as one block, with zeros between them.
#[inline]
fn joined<const LENGTH: usize>(first: [u8; LENGTH], last: [u8; LENGTH]) -> [u8; BLOCK] {
    let mut block = [0; BLOCK];
    block[..LENGTH].copy_from_slice(&first);
    block[BLOCK - LENGTH..].copy_from_slice(&last);
    block
}

/// Writes each byte's escaped form without a branch on its value, and returns the end.
///
/// # Safety
///
/// As for [`escape_to`].
#[inline]
unsafe fn escape_each(mut to: *mut u8, bytes: &[u8]) -> *mut u8 {
    for &byte in bytes {
        let (written, length) = escape::written(byte);
        // SAFETY: the caller reserved `LONGEST` bytes for each of `bytes`, and `SPACE` after them.
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

    /// The expected output for `text`, computed without a buffer.
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

    /// One method call, so that a strategy can generate sequences.
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
    fn escapes_a_special_byte_at_every_position() {
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
    fn poisoned_buffer_keeps_the_vec_unchanged() {
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
    fn buffer_remains_usable_after_a_spill_panics() {
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
        fn capacity_does_not_change_the_output(
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
        fn spilling_loses_no_bytes(
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

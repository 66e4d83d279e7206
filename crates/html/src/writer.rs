//! Decides where a page's bytes go, and when a long page leaves in pieces.

use alloc::vec::Vec;
use core::fmt;

use crate::attribute::{AddressValue, Attribute, AttributeValue, CodeValue};
use crate::buffer::Buffer;
use crate::hole::RawText;

/// Where a page writes itself: a buffer, and perhaps a place for it to overflow to.
///
/// There is one method per trust: [`constant`](Self::constant) takes what stands in the source,
/// [`text`](Self::text) and [`attribute`](Self::attribute) take anything and escape it, [`link`](Self::link) and
/// [`image`](Self::image) look at the scheme as well, and [`code`](Self::code) takes only [`raw`](crate::raw) text.
#[derive(Debug)]
pub struct Writer<'a> {
    buffer: Buffer<'a>,
}

impl<'a> Writer<'a> {
    /// Writes to the end of `out`, however long it grows; all is there when the writer is dropped.
    pub fn new(out: &'a mut Vec<u8>) -> Self {
        Self { buffer: Buffer::new(out) }
    }

    /// Writes to the end of `out`, and calls `spill` when it has grown by `chunk_at` bytes or more and more is to come,
    /// so that a long page leaves in pieces while it is written.
    ///
    /// What `out` holds already (a head) does not count. `spill` may take all of `out`, a part of it or nothing; it
    /// is called again when `out` has grown by `chunk_at` bytes from what it left. The last piece is in `out` when
    /// the writer is dropped.
    pub fn with_spill(
        out: &'a mut Vec<u8>,
        chunk_at: usize,
        spill: &'a mut dyn FnMut(&mut Vec<u8>),
    ) -> Self {
        Self { buffer: Buffer::with_spill(out, chunk_at, spill) }
    }

    /// Writes what stands in the program's source, as it is.
    #[inline]
    pub fn constant(&mut self, text: &'static str) {
        self.bytes(text.as_bytes());
    }

    /// Writes text from anywhere, escaped.
    #[inline]
    pub fn text(&mut self, text: &str) {
        self.buffer.text(text);
    }

    /// Writes a whole attribute, or nothing if its value says so. `opening` is all that comes before the value,
    /// as in ` class="`.
    #[inline]
    pub fn attribute(&mut self, opening: &'static str, value: &(impl AttributeValue + ?Sized)) {
        value.write_attribute(Attribute::text(opening), self);
    }

    /// Writes a whole attribute whose value is an address, as `href`. One that a browser would run (`javascript:`,
    /// `data:`) is replaced by one that leads nowhere.
    #[inline]
    pub fn link(&mut self, opening: &'static str, value: &(impl AddressValue + ?Sized)) {
        value.write_address(Attribute::address(opening, false), self);
    }

    /// Writes a whole attribute whose value is the address of an image, which may also be `data:image/..`.
    #[inline]
    pub fn image(&mut self, opening: &'static str, value: &(impl AddressValue + ?Sized)) {
        value.write_address(Attribute::address(opening, true), self);
    }

    /// Writes a whole attribute that a browser runs or draws by, as `onclick` and `style`.
    #[inline]
    pub fn code(&mut self, opening: &'static str, value: &(impl CodeValue + ?Sized)) {
        value.write_code(opening, self);
    }

    /// Fills a hole of `<script>` or `<style>`: a call that `html!` writes.
    #[doc(hidden)]
    #[inline]
    pub fn fill_raw(&mut self, value: &(impl RawText + ?Sized)) {
        value.render(self);
    }

    /// Writes text as it is: the way of [`raw`](crate::raw) alone.
    #[inline]
    pub(crate) fn unescaped(&mut self, text: &str) {
        self.bytes(text.as_bytes());
    }

    /// Writes bytes known to need no escape.
    #[inline]
    pub(crate) fn bytes(&mut self, bytes: &[u8]) {
        self.buffer.bytes(bytes);
    }

    /// Writes an integer in decimal.
    #[inline]
    pub(crate) fn decimal(&mut self, negative: bool, magnitude: u64) {
        self.buffer.decimal(negative, magnitude);
    }
}

/// Formatted text is escaped like any other.
impl fmt::Write for Writer<'_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.text(text);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use alloc::string::String;

    use proptest::prelude::*;

    use super::*;

    fn write_all(writer: &mut Writer<'_>, texts: &[String]) {
        for text in texts {
            writer.constant("<p>");
            writer.text(text);
            writer.attribute(" title=\"", text);
        }
    }

    #[test]
    fn a_short_page_never_spills() {
        let mut out = Vec::from(*b"a head that does not count");
        let mut spill = |_: &mut Vec<u8>| panic!("spilled");
        Writer::with_spill(&mut out, 6, &mut spill).constant("short");
        assert!(out.ends_with(b"countshort"));
    }

    #[test]
    fn a_page_spills_as_soon_as_the_piece_is_full() {
        let (mut out, mut pieces) = (Vec::new(), Vec::new());
        let mut spill = |out: &mut Vec<u8>| pieces.push(core::mem::take(out));
        let mut writer = Writer::with_spill(&mut out, 4, &mut spill);
        for word in ["ab", "cd", "ef", "ghij", "k"] {
            writer.constant(word);
        }
        drop(writer);
        assert_eq!(pieces, [b"abcd".as_slice(), b"efghij"]);
        assert_eq!(out, b"k");
    }

    #[test]
    fn formatted_text_is_escaped() {
        let mut out = Vec::new();
        fmt::Write::write_fmt(&mut Writer::new(&mut out), format_args!("{:>3}", "<")).unwrap();
        assert_eq!(out, b"  &lt;");
    }

    proptest! {
        #[test]
        fn pieces_of_any_size_make_the_same_page(
            texts in prop::collection::vec("[a-z<&]{0,30}", 0..12),
            chunk_at in 0_usize..80,
            left_behind in 0_usize..4,
        ) {
            let mut whole = Vec::new();
            write_all(&mut Writer::new(&mut whole), &texts);

            let (mut out, mut sent) = (Vec::new(), Vec::new());
            let mut spill = |out: &mut Vec<u8>| {
                let taken = out.len() - left_behind.min(out.len());
                sent.extend(out.drain(..taken));
            };
            write_all(&mut Writer::with_spill(&mut out, chunk_at, &mut spill), &texts);
            sent.extend(out);
            prop_assert_eq!(sent, whole);
        }
    }
}

//! Decides where a page's bytes go, and when a long page leaves in pieces.

use alloc::vec::Vec;
use core::fmt;

use crate::attribute::{Address, Attribute, AttributeValue, CodeValue};
use crate::buffer::{Buffer, Kept};
use crate::hole::RawText;
use crate::region::{RegionKey, Regions};
use crate::tree::Finding;

/// Where a page writes itself: a buffer, and perhaps a place for it to overflow to.
///
/// There is one method per trust: [`constant`](Self::constant) takes what stands in the source,
/// [`text`](Self::text) and [`attribute`](Self::attribute) take anything and escape it, [`link`](Self::link) and
/// [`image`](Self::image) look at the scheme as well, and [`code`](Self::code) takes only [`raw`](crate::raw) text.
#[derive(Debug)]
pub struct Writer<'a> {
    buffer: Buffer<'a>,
    head: Head<'a>,
    inspector: Option<Inspector>,
    pub(crate) regions: Regions,
    /// By which regions are hashed, if they are marked.
    pub(crate) region_key: RegionKey,
    /// For whom the page is made, until that is written.
    pub(crate) made_for: Option<u64>,
}

/// What happens where the page's `<head>` ends.
#[derive(Debug)]
enum Head<'a> {
    /// This is still to be written.
    Markup(&'a str),
    /// The place is noted, for what is only known later.
    Noted(&'a mut Option<usize>),
}

/// Is told what is wrong with a tree.
type Inspector = fn(&Finding);

impl<'a> Writer<'a> {
    /// Writes to the end of `out`, however long it grows; all is there when the writer is dropped.
    pub fn new(out: &'a mut Vec<u8>) -> Self {
        Self::of(Buffer::new(out))
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
        Self::of(Buffer::with_spill(out, chunk_at, spill))
    }

    fn of(buffer: Buffer<'a>) -> Self {
        let (head, inspector, regions) = (Head::Markup(""), None, Regions::default());
        let region_key = RegionKey::default();
        Self { buffer, head, inspector, regions, region_key, made_for: None }
    }

    /// The same for readers of XML: a page of `html!` is then written as XHTML.
    ///
    /// What XML cannot hold (U+0000 and most control characters) is written as U+FFFD, an attribute that it has no name
    /// for (`"@click"`) is left out, and what stands in `<script>` and `<style>` is escaped, as XML reads it. Text from
    /// [`raw`](crate::raw) is written as it is: whether it is XML, whoever wrote it answers for.
    #[must_use]
    pub fn in_xml(mut self) -> Self {
        self.buffer.go_over_to_xml();
        self
    }

    /// Whether it writes for readers of XML.
    pub const fn is_in_xml(&self) -> bool {
        self.buffer.is_in_xml()
    }

    /// The same with markup that is to stand at the end of the page's `<head>`, such as the link to a style sheet.
    #[must_use]
    pub fn with_head(self, head: &'a str) -> Self {
        Self { head: Head::Markup(head), ..self }
    }

    /// The same, and notes in `place` how much was written when the `<head>` ended.
    pub(crate) fn noting_head(self, place: &'a mut Option<usize>) -> Self {
        Self { head: Head::Noted(place), ..self }
    }

    /// The `<head>` ends here: a call that `html!` writes.
    #[doc(hidden)]
    pub fn end_head(&mut self) {
        match core::mem::replace(&mut self.head, Head::Markup("")) {
            Head::Markup(head) => self.bytes(head.as_bytes()),
            Head::Noted(place) => *place = Some(self.buffer.settled_length()),
        }
    }

    /// Has each tree that is written looked at, as in development: `tell` hears what is wrong with it.
    pub fn inspect_by(&mut self, tell: fn(&Finding)) {
        self.inspector = Some(tell);
    }

    pub(crate) const fn inspector(&self) -> Option<Inspector> {
        self.inspector
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
    pub fn link<Kind>(&mut self, opening: &'static str, value: &(impl Address<Kind> + ?Sized)) {
        value.write(Attribute::address(opening, false), self);
    }

    /// Writes a whole attribute whose value is the address of an image, which may also be `data:image/..`.
    #[inline]
    pub fn image<Kind>(&mut self, opening: &'static str, value: &(impl Address<Kind> + ?Sized)) {
        value.write(Attribute::address(opening, true), self);
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
        if self.is_in_xml() { self.text(value.code()) } else { self.unescaped(value.code()) }
    }

    /// Writes what HTML and XML spell in two ways: a call that `html!` writes.
    #[doc(hidden)]
    #[inline]
    pub fn either(&mut self, html: &'static str, xml: &'static str) {
        self.constant(if self.is_in_xml() { xml } else { html });
    }

    /// Writes the beginning of an attribute, ` class="`. What follows is its value.
    #[inline]
    pub(crate) fn open_value(&mut self, opening: &'static str) {
        self.constant(opening);
        self.buffer.enter_value(true);
    }

    /// Ends the value.
    #[inline]
    pub(crate) fn close_value(&mut self) {
        self.buffer.enter_value(false);
        self.constant("\"");
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

    /// Spills nothing until what is written from here on was [looked at](Self::kept).
    pub(crate) fn keep(&mut self) -> Kept {
        self.buffer.keep()
    }

    /// What was written since.
    pub(crate) fn kept(&mut self, kept: &Kept) -> &[u8] {
        self.buffer.kept(kept)
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
    fn a_page_has_one_head() {
        let mut out = Vec::new();
        let mut writer = Writer::new(&mut out).with_head("<link />");
        for _ in 0..2 {
            writer.end_head();
            writer.constant("</head>");
        }
        drop(writer);
        assert_eq!(out, b"<link /></head></head>");
    }

    #[test]
    fn formatted_text_is_escaped() {
        let mut out = Vec::new();
        fmt::Write::write_fmt(&mut Writer::new(&mut out), format_args!("{:>3}", "<")).unwrap();
        assert_eq!(out, b"  &lt;");
    }

    #[test]
    fn xml_holds_nothing_that_it_cannot() {
        let mut out = Vec::from(*b"a head\r\n");
        let mut writer = Writer::new(&mut out).in_xml();
        writer.constant("<p");
        writer.attribute(" title=\"", "a\tb\nc\rd\u{b}e");
        writer.link(" href=\"", "/a\n\u{ffff}");
        writer.constant(">");
        writer.text("a\tb\nc\rd\0<\u{fffe}\u{fffd}");
        drop(writer);
        assert_eq!(
            String::from_utf8(out).unwrap(),
            "a head\r\n<p title=\"a&#9;b&#10;c&#13;d\u{fffd}e\" href=\"/a&#10;\u{fffd}\">\
             a\tb\nc&#13;d\u{fffd}&lt;\u{fffd}\u{fffd}"
        );
    }

    #[test]
    fn a_script_is_escaped_for_xml_alone() {
        let write = |mut writer: Writer<'_>| {
            writer.either("<script>", "<script xmlns=\"x\">");
            writer.fill_raw(&crate::raw("a < b"));
        };
        let (mut html, mut xml) = (Vec::new(), Vec::new());
        write(Writer::new(&mut html));
        write(Writer::new(&mut xml).in_xml());
        assert_eq!(html, b"<script>a < b");
        assert_eq!(xml, b"<script xmlns=\"x\">a &lt; b");
    }

    proptest! {
        #[test]
        fn pieces_of_any_size_make_the_same_page(
            texts in prop::collection::vec("[a-z<&\0\r\u{ffff}]{0,30}", 0..12),
            chunk_at in 0_usize..80,
            left_behind in 0_usize..4,
            in_xml: bool,
        ) {
            let written_for = |writer| if in_xml { Writer::in_xml(writer) } else { writer };
            let mut whole = Vec::new();
            write_all(&mut written_for(Writer::new(&mut whole)), &texts);

            let (mut out, mut sent) = (Vec::new(), Vec::new());
            let mut spill = |out: &mut Vec<u8>| {
                let taken = out.len() - left_behind.min(out.len());
                sent.extend(out.drain(..taken));
            };
            write_all(&mut written_for(Writer::with_spill(&mut out, chunk_at, &mut spill)), &texts);
            sent.extend(out);
            prop_assert_eq!(sent, whole);
        }
    }
}

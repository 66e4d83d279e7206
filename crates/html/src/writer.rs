//! [`Writer`]: the output of a page, which may be sent in chunks while the page is written.

use alloc::vec::Vec;
use core::fmt;

use crate::attribute::{Attribute, AttributeValue, CodeValue, IntoUrl};
use crate::buffer::{Buffer, Hold};
use crate::hole::RawText;
use crate::region::{RegionKey, Regions};
use crate::tree::Finding;

/// The output of a page: a buffer, with an optional callback that empties it.
///
/// Each level of trust has its own method: [`constant`](Self::constant) takes text of the program's
/// source, [`text`](Self::text) and [`attribute`](Self::attribute) escape any value,
/// [`link`](Self::link) and [`image`](Self::image) check the URL's scheme as well, and
/// [`code`](Self::code) accepts only [`raw`](crate::raw) text.
#[derive(Debug)]
pub struct Writer<'a> {
    buffer: Buffer<'a>,
    head: Head<'a>,
    inspector: Option<Inspector>,
    pub(crate) regions: Regions,
    /// The key that regions are hashed with, if they are marked.
    pub(crate) region_key: RegionKey,
    /// The id of the user that the page is rendered for, until it is written.
    pub(crate) viewer: Option<u64>,
    pub(crate) version: Option<u64>,
}

/// The action at the end of the page's `<head>`.
#[derive(Debug)]
enum Head<'a> {
    /// Writes this markup.
    Markup(&'a str),
    /// Records the position, for content that is known only later.
    Record(&'a mut Option<usize>),
}

/// Receives each problem that is found in a tree.
type Inspector = fn(&Finding);

impl<'a> Writer<'a> {
    /// Writes to the end of `out` without a limit. All bytes are in `out` once the writer is
    /// dropped.
    pub fn new(out: &'a mut Vec<u8>) -> Self {
        Self::of(Buffer::new(out))
    }

    /// Writes to the end of `out` and calls `spill` between two writes when `out` has grown by
    /// `chunk_at` bytes or more, so that a long page is sent in chunks while it is written.
    ///
    /// Bytes that `out` already holds (a response head) do not count. `spill` may take all, a part
    /// or no byte of `out`. The next call follows when `out` has grown by another `chunk_at` bytes.
    /// The last chunk is in `out` when the writer is dropped.
    pub fn with_spill(
        out: &'a mut Vec<u8>,
        chunk_at: usize,
        spill: &'a mut dyn FnMut(&mut Vec<u8>),
    ) -> Self {
        Self::of(Buffer::with_spill(out, chunk_at, spill))
    }

    fn of(buffer: Buffer<'a>) -> Self {
        Self {
            buffer,
            head: Head::Markup(""),
            inspector: None,
            regions: Regions::default(),
            region_key: RegionKey::default(),
            viewer: None,
            version: None,
        }
    }

    /// Switches to XML syntax: a page of `html!` is then written as XHTML.
    ///
    /// Characters that XML does not allow (U+0000 and most control characters) become U+FFFD,
    /// attributes whose name is not valid XML (`"@click"`) are omitted, and the content of
    /// `<script>` and `<style>` is escaped, as XML requires. Text from [`raw`](crate::raw) is
    /// written unchanged: its author vouches that it is well-formed XML.
    pub fn switch_to_xml(&mut self) {
        self.buffer.switch_to_xml();
    }

    /// Whether the writer produces XML syntax.
    pub const fn is_in_xml(&self) -> bool {
        self.buffer.is_in_xml()
    }

    /// Sets the markup at the end of the page's `<head>`, such as the link to a style sheet.
    pub fn set_head(&mut self, head: &'a str) {
        self.head = Head::Markup(head);
    }

    /// Records in `place` the length of the output at the end of the `<head>`.
    pub(crate) fn record_head_end(&mut self, place: &'a mut Option<usize>) {
        self.head = Head::Record(place);
    }

    /// Marks the end of the `<head>`. `html!` generates the call.
    #[doc(hidden)]
    pub fn end_head(&mut self) {
        match core::mem::replace(&mut self.head, Head::Markup("")) {
            Head::Markup(head) => self.bytes(head.as_bytes()),
            Head::Record(place) => *place = Some(self.buffer.settled_length()),
        }
    }

    /// Checks every tree that is written, as in development. `report` receives each problem.
    pub fn inspect_with(&mut self, report: fn(&Finding)) {
        self.inspector = Some(report);
    }

    /// Calls `write` without a check of the trees in it: for trees whose elements have no position in
    /// the program's source.
    pub fn without_inspection(&mut self, write: impl FnOnce(&mut Self)) {
        let inspector = self.inspector.take();
        write(self);
        self.inspector = inspector;
    }

    pub(crate) const fn inspector(&self) -> Option<Inspector> {
        self.inspector
    }

    /// Writes text of the program's source, unchanged.
    #[inline]
    pub fn constant(&mut self, text: &'static str) {
        self.bytes(text.as_bytes());
    }

    /// Writes markup of another writer as it is. The caller vouches that each value in it was escaped
    /// for its context, and that its quotes and elements are complete.
    pub fn trusted(&mut self, markup: &str) {
        self.bytes(markup.as_bytes());
    }

    /// Writes text from any source, escaped.
    #[inline]
    pub fn text(&mut self, text: &str) {
        self.buffer.text(text);
    }

    /// Writes a whole attribute, or nothing if the value is absent. `opening` is everything before
    /// the value, as in ` class="`.
    #[inline]
    pub fn attribute(&mut self, opening: &'static str, value: &(impl AttributeValue + ?Sized)) {
        value.write_attribute(Attribute::text(opening), self);
    }

    /// Writes a whole attribute whose value is a URL, as `href`. A URL that a browser would run
    /// (`javascript:`, `data:`) is replaced by an invalid one.
    #[inline]
    pub fn link<Kind>(&mut self, opening: &'static str, value: &(impl IntoUrl<Kind> + ?Sized)) {
        value.write(Attribute::address(opening, false), self);
    }

    /// Writes a whole attribute whose value is the URL of an image. `data:image/..` is allowed
    /// here.
    #[inline]
    pub fn image<Kind>(&mut self, opening: &'static str, value: &(impl IntoUrl<Kind> + ?Sized)) {
        value.write(Attribute::address(opening, true), self);
    }

    /// Writes a whole attribute that a browser runs or applies as style, as `onclick` and `style`.
    #[inline]
    pub fn code(&mut self, opening: &'static str, value: &(impl CodeValue + ?Sized)) {
        value.write_code(opening, self);
    }

    /// Fills a hole of `<script>` or `<style>`. `html!` generates the call.
    #[doc(hidden)]
    #[inline]
    pub fn fill_raw(&mut self, value: &(impl RawText + ?Sized)) {
        if self.is_in_xml() { self.text(value.code()) } else { self.unescaped(value.code()) }
    }

    /// Writes markup that HTML and XML spell differently. `html!` generates the call.
    #[doc(hidden)]
    #[inline]
    pub fn either(&mut self, html: &'static str, xml: &'static str) {
        self.constant(if self.is_in_xml() { xml } else { html });
    }

    /// Writes the beginning of an attribute, ` class="`. The value follows.
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

    /// Writes text unescaped. Only [`raw`](crate::raw) uses it.
    #[inline]
    pub(crate) fn unescaped(&mut self, text: &str) {
        self.bytes(text.as_bytes());
    }

    /// Writes bytes known to need no escape.
    #[inline]
    pub(crate) fn bytes(&mut self, bytes: &[u8]) {
        self.buffer.bytes(bytes);
    }

    /// Pauses spilling until [`release`](Self::release), so that all bytes from here on stay
    /// readable.
    pub(crate) fn hold(&mut self) -> Hold {
        self.buffer.hold()
    }

    /// Resumes spilling and returns the bytes written since [`hold`](Self::hold).
    pub(crate) fn release(&mut self, hold: &Hold) -> &[u8] {
        self.buffer.release(hold)
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
    fn does_not_spill_a_short_page() {
        let mut out = Vec::from(*b"a head that does not count");
        let mut spill = |_: &mut Vec<u8>| panic!("spilled");
        Writer::with_spill(&mut out, 6, &mut spill).constant("short");
        assert!(out.ends_with(b"countshort"));
    }

    #[test]
    fn spills_when_a_chunk_is_full() {
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
    fn writes_head_markup_once() {
        let mut out = Vec::new();
        let mut writer = Writer::new(&mut out);
        writer.set_head("<link />");
        for _ in 0..2 {
            writer.end_head();
            writer.constant("</head>");
        }
        drop(writer);
        assert_eq!(out, b"<link /></head></head>");
    }

    #[test]
    fn escapes_formatted_text() {
        let mut out = Vec::new();
        fmt::Write::write_fmt(&mut Writer::new(&mut out), format_args!("{:>3}", "<")).unwrap();
        assert_eq!(out, b"  &lt;");
    }

    #[test]
    fn replaces_characters_that_xml_forbids() {
        let mut out = Vec::from(*b"a head\r\n");
        let mut writer = Writer::new(&mut out);
        writer.switch_to_xml();
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
    fn escapes_scripts_only_in_xml() {
        let write = |writer: &mut Writer<'_>| {
            writer.either("<script>", "<script xmlns=\"x\">");
            writer.fill_raw(&crate::raw("a < b"));
        };
        let (mut html, mut xml) = (Vec::new(), Vec::new());
        write(&mut Writer::new(&mut html));
        let mut writer = Writer::new(&mut xml);
        writer.switch_to_xml();
        write(&mut writer);
        drop(writer);
        assert_eq!(html, b"<script>a < b");
        assert_eq!(xml, b"<script xmlns=\"x\">a &lt; b");
    }

    proptest! {
        #[test]
        fn chunk_size_does_not_change_the_page(
            texts in prop::collection::vec("[a-z<&\0\r\u{ffff}]{0,30}", 0..12),
            chunk_at in 0_usize..80,
            remaining in 0_usize..4,
            in_xml: bool,
        ) {
            let write_to = |mut writer: Writer<'_>| {
                if in_xml {
                    writer.switch_to_xml();
                }
                write_all(&mut writer, &texts);
            };
            let mut whole = Vec::new();
            write_to(Writer::new(&mut whole));

            let (mut out, mut sent) = (Vec::new(), Vec::new());
            let mut spill = |out: &mut Vec<u8>| {
                let taken = out.len() - remaining.min(out.len());
                sent.extend(out.drain(..taken));
            };
            write_to(Writer::with_spill(&mut out, chunk_at, &mut spill));
            sent.extend(out);
            prop_assert_eq!(sent, whole);
        }
    }
}

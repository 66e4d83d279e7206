//! Markup of a page, with marks for the host: where the head ends, and where regions are.

use std::borrow::Cow;
use std::fmt;

use bine_html::Raw;
use bine_html::tree::RawMarkup;

/// The marks. None of these bytes occurs in UTF-8, so no text of a script contains a mark.
const HEAD_END: u8 = 0xFD;
const REGION_END: u8 = 0xFE;
/// Begins a region. The number of the region follows, in 7 bits per byte, lowest first.
const REGION_START: u8 = 0xFF;
const NUMBER_BYTES: usize = 5;
/// A hyphen of trusted markup that disables an attribute `data-on`. In code it is a hyphen.
const DISABLED_HYPHEN: u8 = 0xFC;
/// A disabled hyphen in markup, as [`Raw`] writes it.
const HYPHEN_REFERENCE: &str = "&#45;";

/// Markup that a script has built: text, and marks that only the host can place or read.
///
/// Each begin of a region has its end, because [`in_region`](Self::in_region) makes both, and markup
/// is only ever nested as a whole.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Markup {
    bytes: Vec<u8>,
}

/// A part of [`Markup`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MarkupPart<'m> {
    /// Text, which is escaped already. It is not empty.
    Text(&'m str),
    /// The end of the page's `<head>`. The host writes its own markup there.
    HeadEnd,
    /// The begin of a region, with its number.
    RegionStart(u32),
    /// The end of the innermost region that has not ended.
    RegionEnd,
}

/// The parts of markup, in order. See [`Markup::parts`].
#[derive(Clone, Debug)]
pub struct MarkupParts<'m> {
    rest: &'m [u8],
}

impl Markup {
    /// Text as markup, without marks. The text must be escaped already.
    pub fn from_text(text: &str) -> Self {
        Self { bytes: text.as_bytes().to_vec() }
    }

    /// Markup of the engine.
    pub(crate) fn from_bytes(bytes: &[u8]) -> Self {
        Self { bytes: bytes.to_vec() }
    }

    /// Markup that was written by templates.
    pub(crate) const fn from_vec(bytes: Vec<u8>) -> Self {
        Self { bytes }
    }

    /// This markup as the content of a region. The host decides what the number means.
    #[must_use]
    pub fn in_region(self, region: u32) -> Self {
        let mut bytes = Vec::with_capacity(self.bytes.len() + 2 + NUMBER_BYTES);
        bytes.push(REGION_START);
        // 7 bits fit into a byte.
        bytes.extend((0..NUMBER_BYTES).map(|at| (region >> (7 * at) & 0x7F) as u8));
        bytes.extend_from_slice(&self.bytes);
        bytes.push(REGION_END);
        Self { bytes }
    }

    /// The text and the marks, in order.
    pub fn parts(&self) -> MarkupParts<'_> {
        MarkupParts { rest: &self.bytes }
    }

    /// The text without marks. It is copied only if there are marks.
    pub fn text(&self) -> Cow<'_, str> {
        text_of(&self.bytes)
    }

    /// The number of bytes, with those of the marks.
    pub const fn len(&self) -> usize {
        self.bytes.len()
    }

    /// Whether there is neither text nor a mark.
    pub const fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    pub(crate) fn as_bytes(&self) -> &[u8] {
        &self.bytes
    }
}

/// The text in markup, without marks.
pub(crate) fn text_of(markup: &[u8]) -> Cow<'_, str> {
    if let Ok(text) = std::str::from_utf8(markup) {
        return Cow::Borrowed(text);
    }
    let texts = MarkupParts { rest: markup }.map(|part| match part {
        MarkupPart::Text(text) => text,
        _ => "",
    });
    Cow::Owned(texts.collect())
}

/// Markup as code: the content of `<script>`, or the value of an attribute such as `style`, where no
/// attribute can begin.
pub(crate) fn code_of(markup: &[u8]) -> Cow<'_, [u8]> {
    if !markup.contains(&DISABLED_HYPHEN) {
        return Cow::Borrowed(markup);
    }
    let hyphen = |byte: &u8| if *byte == DISABLED_HYPHEN { b'-' } else { *byte };
    Cow::Owned(markup.iter().map(hyphen).collect())
}

/// Trusted text as markup of the engine. Attributes `data-on` in it are disabled, as by [`Raw`].
pub(crate) fn trusted(text: &str) -> Cow<'_, [u8]> {
    if !text.contains('-') {
        return Cow::Borrowed(text.as_bytes());
    }
    let disabled = RawMarkup::from(Raw(text.to_owned()));
    let mut disabled = disabled.as_str().as_bytes();
    if disabled.len() == text.len() {
        return Cow::Borrowed(text.as_bytes());
    }
    let mut markup = Vec::with_capacity(text.len());
    for byte in text.bytes() {
        // Both texts differ in disabled hyphens only.
        let is_same = disabled.first() == Some(&byte);
        markup.push(if is_same { byte } else { DISABLED_HYPHEN });
        let length = if is_same { 1 } else { HYPHEN_REFERENCE.len() };
        disabled = disabled.get(length..).unwrap_or_default();
    }
    Cow::Owned(markup)
}

/// Appends the mark for the end of the head.
pub(crate) fn mark_head_end(markup: &mut Vec<u8>) {
    markup.push(HEAD_END);
}

impl<'m> MarkupParts<'m> {
    /// The parts of markup of the engine.
    pub(crate) const fn of(markup: &'m [u8]) -> Self {
        Self { rest: markup }
    }
}

impl<'m> Iterator for MarkupParts<'m> {
    type Item = MarkupPart<'m>;

    /// The next part. Bytes that are neither text nor a mark are skipped; markup has no such bytes.
    fn next(&mut self) -> Option<MarkupPart<'m>> {
        loop {
            let text_length = match std::str::from_utf8(self.rest) {
                Ok("") => return None,
                Ok(text) => {
                    self.rest = &[];
                    return Some(MarkupPart::Text(text));
                }
                Err(error) => error.valid_up_to(),
            };
            let (text, rest) = self.rest.split_at(text_length);
            if !text.is_empty() {
                self.rest = rest;
                // The error confirms that the text is valid.
                return std::str::from_utf8(text).ok().map(MarkupPart::Text);
            }
            let (mark, rest) = rest.split_first()?;
            self.rest = rest;
            match *mark {
                HEAD_END => return Some(MarkupPart::HeadEnd),
                REGION_END => return Some(MarkupPart::RegionEnd),
                DISABLED_HYPHEN => return Some(MarkupPart::Text(HYPHEN_REFERENCE)),
                REGION_START => {
                    let Some((number, rest)) = rest.split_at_checked(NUMBER_BYTES) else {
                        continue;
                    };
                    self.rest = rest;
                    let digits = number.iter().rev();
                    let number = digits.fold(0, |sum, byte| sum << 7 | u32::from(byte & 0x7F));
                    return Some(MarkupPart::RegionStart(number));
                }
                _ => {}
            }
        }
    }
}

impl From<String> for Markup {
    /// The same as [`Markup::from_text`], without a copy.
    fn from(text: String) -> Self {
        Self { bytes: text.into_bytes() }
    }
}

impl fmt::Debug for Markup {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_list().entries(self.parts()).finish()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn head_end() -> Markup {
        let mut bytes = Vec::new();
        mark_head_end(&mut bytes);
        Markup { bytes }
    }

    #[test]
    fn regions_are_marked_around_their_content() {
        let inner = Markup::from_text("<b>\u{e9}</b>").in_region(u32::MAX);
        let outer = Markup::from_bytes(&[b"<p>", inner.as_bytes(), b"</p>"].concat()).in_region(0);
        let expected = [
            MarkupPart::RegionStart(0),
            MarkupPart::Text("<p>"),
            MarkupPart::RegionStart(u32::MAX),
            MarkupPart::Text("<b>\u{e9}</b>"),
            MarkupPart::RegionEnd,
            MarkupPart::Text("</p>"),
            MarkupPart::RegionEnd,
        ];
        assert_eq!(outer.parts().collect::<Vec<_>>(), expected);
        assert_eq!(outer.text(), "<p><b>\u{e9}</b></p>");
    }

    #[test]
    fn text_without_marks_is_not_copied() {
        let markup = Markup::from("<p>".to_owned());
        assert!(matches!(markup.text(), Cow::Borrowed("<p>")));
        assert_eq!((Markup::default().text(), Markup::default().parts().next()), ("".into(), None));
    }

    #[test]
    fn trusted_text_has_hyphens_in_code_and_none_in_attribute_names() {
        for (text, written) in [
            ("<p a-b>data - on</p>", "<p a-b>data - on</p>"),
            ("<p data-on=a data-one>\u{e9}", "<p data&#45;on=a data-one>\u{e9}"),
            ("a data-on data-on b", "a data&#45;on data&#45;on b"),
            ("<p data-", "<p data&#45;"),
            ("&#45;", "&#45;"),
        ] {
            let markup = trusted(text);
            assert_eq!((&*code_of(&markup), &*text_of(&markup)), (text.as_bytes(), written));
        }
    }

    /// Ways to build markup from markup.
    #[derive(Clone, Debug)]
    enum Step {
        Text(String),
        HeadEnd,
        InRegion(u32),
    }

    fn steps() -> impl Strategy<Value = Vec<Step>> {
        let step = prop_oneof![
            any::<String>().prop_map(Step::Text),
            Just(Step::HeadEnd),
            any::<u32>().prop_map(Step::InRegion),
        ];
        prop::collection::vec(step, 0..12)
    }

    proptest! {
        #[test]
        fn any_sequence_of_steps_gives_the_same_parts(steps in steps()) {
            let (mut markup, mut expected) = (Markup::default(), Vec::new());
            for step in &steps {
                match step {
                    Step::Text(text) => {
                        let added = Markup::from_text(text);
                        markup = Markup::from_bytes(&[markup.as_bytes(), added.as_bytes()].concat());
                        expected.extend(text.chars().map(String::from));
                    }
                    Step::HeadEnd => {
                        let added = head_end();
                        markup = Markup::from_bytes(&[markup.as_bytes(), added.as_bytes()].concat());
                        expected.push("head".to_owned());
                    }
                    Step::InRegion(region) => {
                        markup = markup.in_region(*region);
                        expected.insert(0, format!("region {region}"));
                        expected.push("end".to_owned());
                    }
                }
            }
            let mut found = Vec::new();
            for part in markup.parts() {
                match part {
                    MarkupPart::Text(text) => found.extend(text.chars().map(String::from)),
                    MarkupPart::HeadEnd => found.push("head".to_owned()),
                    MarkupPart::RegionStart(region) => found.push(format!("region {region}")),
                    MarkupPart::RegionEnd => found.push("end".to_owned()),
                }
            }
            prop_assert_eq!(found, expected);
        }

        #[test]
        fn parts_of_any_bytes_end(
            bytes in prop::collection::vec(
                prop_oneof![any::<u8>(), 0xFB_u8.., Just(b'a'), Just(0xC3), Just(0xA9)], 0..64
            )
        ) {
            let markup = Markup::from_bytes(&bytes);
            let parts: Vec<_> = markup.parts().collect();
            prop_assert!(parts.len() <= bytes.len());
            let texts: String = parts.iter().map(|part| match part {
                MarkupPart::Text(text) => *text,
                _ => "",
            }).collect();
            prop_assert_eq!(markup.text(), texts);
        }
    }
}

//! The URL filter: replaces URLs that make a browser run code instead of fetching a resource.
//!
//! It rejects the schemes `javascript`, `vbscript` and `data` in every spelling (URL Standard,
//! section 4.4: case is ignored, as are leading controls and spaces, and tabs and line ends
//! anywhere). All other schemes pass, because they do not run text.

use core::fmt;

use crate::writer::Writer;

/// Replaces a rejected URL. It is a valid URL of an invalid resource (CSS Values, section 4.5.4),
/// and its fragment shows the reason in the page's source.
const REFUSED: &str = "about:invalid#refused";

/// Images may have a `data` URL of this prefix: scripts inside an image never run.
const IMAGE_DATA: &[u8] = b"data:image/";

const SCHEMES: [&[u8]; 3] = [b"javascript:", b"vbscript:", b"data:"];

/// The longest of the prefixes above: the verdict is known at this length.
const LONGEST: usize = IMAGE_DATA.len();

/// Writes one URL, escaped, and holds its beginning back until it is known to be harmless.
pub(crate) struct UrlFilter<'w, 'a> {
    writer: &'w mut Writer<'a>,
    /// Whether the URL is that of an image.
    is_image: bool,
    held: [u8; LONGEST],
    length: usize,
    verdict: Verdict,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Verdict {
    Open,
    Passed,
    Refused,
}

impl<'w, 'a> UrlFilter<'w, 'a> {
    pub(crate) fn new(writer: &'w mut Writer<'a>, is_image: bool) -> Self {
        Self { writer, is_image, held: [0; LONGEST], length: 0, verdict: Verdict::Open }
    }

    /// Writes the next part of the URL.
    pub(crate) fn text(&mut self, text: &str) {
        match self.verdict {
            Verdict::Open => self.judge(text),
            Verdict::Passed => self.writer.text(text),
            Verdict::Refused => {}
        }
    }

    /// Decides about the bytes still held back. A scheme's name without a colon is a relative URL;
    /// an incomplete `data:` URL is not an image.
    pub(crate) fn end(mut self) {
        if self.verdict == Verdict::Open {
            if self.held[..self.length].contains(&b':') { self.refuse() } else { self.pass("") }
        }
    }

    fn judge(&mut self, text: &str) {
        for (index, byte) in text.bytes().enumerate() {
            let is_ignored = matches!(byte, b'\t' | b'\n' | b'\r');
            if is_ignored || self.length == 0 && byte <= b' ' {
                continue;
            }
            self.held[self.length] = byte;
            match verdict(&self.held[..=self.length], self.is_image) {
                // `held` spells a prefix, so it has room for one more byte.
                Verdict::Open => self.length += 1,
                // All bytes before are ASCII, so a character begins here.
                Verdict::Passed => return self.pass(&text[index..]),
                Verdict::Refused => return self.refuse(),
            }
        }
    }

    fn refuse(&mut self) {
        self.verdict = Verdict::Refused;
        self.writer.constant(REFUSED);
    }

    fn pass(&mut self, rest: &str) {
        self.verdict = Verdict::Passed;
        // Only letters, a colon and a slash, which need no escape.
        self.writer.bytes(&self.held[..self.length]);
        self.writer.text(rest);
    }
}

impl fmt::Write for UrlFilter<'_, '_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.text(text);
        Ok(())
    }
}

/// The verdict on the first bytes of a URL, given that all but the last byte left it open.
fn verdict(start: &[u8], is_image: bool) -> Verdict {
    if is_image && begins_with(IMAGE_DATA, start) {
        return if start.len() == IMAGE_DATA.len() { Verdict::Passed } else { Verdict::Open };
    }
    if SCHEMES.iter().any(|scheme| begins_with(start, scheme)) {
        return Verdict::Refused;
    }
    let may_become_one = SCHEMES.iter().any(|scheme| begins_with(scheme, start));
    if may_become_one { Verdict::Open } else { Verdict::Passed }
}

fn begins_with(text: &[u8], prefix: &[u8]) -> bool {
    text.get(..prefix.len()).is_some_and(|start| start.eq_ignore_ascii_case(prefix))
}

#[cfg(test)]
mod tests {
    use alloc::string::String;
    use alloc::vec::Vec;

    use proptest::prelude::*;

    use super::*;

    fn written(parts: &[&str], is_image: bool) -> String {
        let mut out = Vec::new();
        let mut writer = Writer::new(&mut out);
        let mut filter = UrlFilter::new(&mut writer, is_image);
        for part in parts {
            filter.text(part);
        }
        filter.end();
        drop(writer);
        String::from_utf8(out).unwrap()
    }

    #[track_caller]
    fn refused(address: &str) {
        assert_eq!(written(&[address], false), REFUSED);
    }

    #[track_caller]
    fn passes(address: &str) {
        assert_eq!(written(&[address], false), address);
    }

    #[test]
    fn rejects_script_urls_in_every_spelling() {
        refused("javascript:alert(1)");
        refused("JavaScript:alert(1)");
        refused(" \u{1}\tjavascript:alert(1)");
        refused("j\na\rv\tascript\n:alert(1)");
        refused("vbscript:x");
        refused("data:text/html,<script>alert(1)</script>");
        refused("data:image/svg+xml,<svg onload='alert(1)'/>");
    }

    #[test]
    fn passes_other_urls_unchanged() {
        for address in [
            "",
            "/",
            "j",
            "javascript",
            "java/script:",
            "data",
            "data/a:b",
            "dat\u{e4}:",
            "#data:",
            "?javascript:",
            "./javascript:",
            "https://example.org/javascript:",
            "mailto:a@example.org",
            "matrix:r/a:example.org",
            "javascripts:x",
            "//example.org",
        ] {
            passes(address);
        }
    }

    #[test]
    fn allows_image_data_but_no_script_urls() {
        let check = |address, expected| assert_eq!(written(&[address], true), expected);
        check("data:image/png;base64,AA==", "data:image/png;base64,AA==");
        check("Data:Image/png,", "Data:Image/png,");
        check("data:text/html,x", REFUSED);
        check("data:image,x", REFUSED);
        check("data:ima", REFUSED);
        check("javascript:x", REFUSED);
    }

    #[test]
    fn escapes_urls() {
        assert_eq!(written(&["/a?b=1&c=\"<"], false), "/a?b=1&amp;c=&quot;&lt;");
    }

    /// The scheme that a browser parses (URL Standard, section 4.4, the states "scheme start" and
    /// "scheme").
    fn scheme(address: &str) -> Option<String> {
        let stripped = address.trim_start_matches(|letter| letter <= ' ');
        let seen: String = stripped.chars().filter(|letter| !"\t\n\r".contains(*letter)).collect();
        let (scheme, _) = seen.split_once(':')?;
        let is_scheme = scheme.starts_with(|first: char| first.is_ascii_alphabetic())
            && scheme
                .chars()
                .all(|letter| letter.is_ascii_alphanumeric() || "+-.".contains(letter));
        is_scheme.then(|| scheme.to_ascii_lowercase())
    }

    fn address() -> impl Strategy<Value = String> {
        let blank = || "[ \t\n\r\u{1}]{0,2}";
        let word = prop_oneof![Just("javascript"), Just("vbscript"), Just("data"), Just("http")];
        let near = (blank(), word, any::<u16>(), blank(), ".{0,12}").prop_map(
            |(before, word, upper, between, after)| {
                let letters = word.chars().enumerate().map(|(index, letter)| {
                    if upper >> index & 1 == 1 { letter.to_ascii_uppercase() } else { letter }
                });
                before + &letters.collect::<String>() + &between + ":" + &after
            },
        );
        prop_oneof![any::<String>(), "[javscriptd:/ \t\n]{0,14}", near]
    }

    proptest! {
        #[test]
        fn rejects_exactly_the_urls_that_run(address in address(), cut in any::<prop::sample::Index>()) {
            let places: Vec<usize> =
                (0..=address.len()).filter(|&place| address.is_char_boundary(place)).collect();
            let (before, after) = address.split_at(*cut.get(&places));
            let written = written(&[before, after], false);
            if matches!(scheme(&address).as_deref(), Some("javascript" | "vbscript" | "data")) {
                prop_assert_eq!(written, REFUSED);
            } else {
                prop_assert_eq!(scheme(&written), scheme(&address.replace('&', "&amp;")));
                let mut whole = Vec::new();
                Writer::new(&mut whole).text(&address);
                let blank = |text: &str| text.replace(|letter| letter <= ' ', "");
                prop_assert_eq!(blank(&written), blank(&String::from_utf8(whole).unwrap()));
            }
        }
    }
}

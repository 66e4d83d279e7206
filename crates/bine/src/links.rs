//! The links to the style sheet and the script of a program, in the head of each page.

/// What belongs into the head of each page.
#[derive(Debug)]
pub(crate) struct Links {
    markup: String,
    /// Of all that is named.
    hash: String,
}

impl Links {
    /// `hash` is of all that the markup names.
    pub(crate) const fn new(markup: String, hash: String) -> Self {
        Self { markup, hash }
    }

    pub(crate) fn markup(&self) -> &str {
        &self.markup
    }

    /// The tag of a page that has these links and would have this one without them; `place` has room for it.
    pub(crate) fn tag_of<'p>(&self, page: &str, place: &'p mut [u8; 64]) -> &'p str {
        let mut length = 0;
        for part in [page.trim_end_matches('"'), "-", &self.hash, "\""] {
            place[length..][..part.len()].copy_from_slice(part.as_bytes());
            length += part.len();
        }
        str::from_utf8(&place[..length]).expect("two tags")
    }
}

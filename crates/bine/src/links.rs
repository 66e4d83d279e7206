//! The links to the style sheet and the script of a program, in the head of each page.

/// The markup for the head of each page.
#[derive(Debug)]
pub(crate) struct Links {
    markup: String,
    /// The hash of all linked assets.
    hash: String,
}

impl Links {
    /// `hash` covers all assets that the markup links to.
    pub(crate) const fn new(markup: String, hash: String) -> Self {
        Self { markup, hash }
    }

    pub(crate) fn markup(&self) -> &str {
        &self.markup
    }

    /// The hash of all linked assets.
    pub(crate) fn hash(&self) -> &str {
        &self.hash
    }

    /// Combines the entity tag of a page without links with the hash of the links; `place` is the
    /// buffer.
    pub(crate) fn tag_of<'p>(&self, page: &str, place: &'p mut [u8; 64]) -> &'p str {
        let mut length = 0;
        for part in [page.trim_end_matches('"'), "-", &self.hash, "\""] {
            place[length..][..part.len()].copy_from_slice(part.as_bytes());
            length += part.len();
        }
        str::from_utf8(&place[..length]).expect("two tags")
    }
}

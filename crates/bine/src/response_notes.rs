//! Facts about a response that its bytes do not show. The core notes them while it writes the response,
//! for a [`ResponseStage`](crate::response_stage::ResponseStage) that receives the bytes.
//!
//! Each thread has the notes of the response that it writes now. A future or a task for a worker takes
//! its notes along: the stage stores them between two polls.

use std::cell::Cell;

/// The notes of one response.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct ResponseNotes {
    /// Whether the handler has read cookies or the whole head of the request by itself.
    pub(crate) reads_secrets: bool,
    /// Whether the handler wants its content compressed; `None`: the configuration decides.
    pub(crate) compression: Option<bool>,
}

thread_local! {
    static CURRENT: Cell<ResponseNotes> = const {
        Cell::new(ResponseNotes { reads_secrets: false, compression: None })
    };
}

/// Notes that the handler has read a part of the request that may contain a secret.
pub(crate) fn note_secrets() {
    let notes = CURRENT.get();
    CURRENT.set(ResponseNotes { reads_secrets: true, ..notes });
}

/// Notes that the handler has read the header field of this name.
pub(crate) fn note_field(name: &str) {
    if ["cookie", "authorization"].iter().any(|own| own.eq_ignore_ascii_case(name)) {
        note_secrets();
    }
}

/// Notes whether the handler wants its content compressed.
pub(crate) fn note_compression(is_compressed: bool) {
    let notes = CURRENT.get();
    CURRENT.set(ResponseNotes { compression: Some(is_compressed), ..notes });
}

#[cfg(feature = "compress")]
impl ResponseNotes {
    /// Runs `write` with these notes, and returns them with those that it has added.
    pub(crate) fn during<T>(self, write: impl FnOnce() -> T) -> (T, Self) {
        let outer = self.enter();
        let written = write();
        (written, outer.restore())
    }

    /// Makes these the notes of the thread. Returns those that it had.
    #[inline]
    pub(crate) fn enter(self) -> OuterNotes {
        OuterNotes(CURRENT.replace(self))
    }
}

/// The notes of the response around another one.
#[cfg(feature = "compress")]
#[must_use = "the notes of the outer response come back by `restore`"]
pub(crate) struct OuterNotes(ResponseNotes);

#[cfg(feature = "compress")]
impl OuterNotes {
    /// Makes these the notes of the thread again. Returns those of the inner response.
    #[inline]
    pub(crate) fn restore(self) -> ResponseNotes {
        CURRENT.replace(self.0)
    }
}

#[cfg(all(test, feature = "compress"))]
mod tests {
    use super::*;

    #[test]
    fn keeps_the_notes_of_each_response_apart() {
        let ((), first) = ResponseNotes::default().during(note_secrets);
        assert_eq!(first, ResponseNotes { reads_secrets: true, compression: None });
        let (inner, outer) = ResponseNotes::default().during(|| {
            note_compression(true);
            first.during(|| note_compression(false)).1
        });
        assert_eq!(inner, ResponseNotes { reads_secrets: true, compression: Some(false) });
        assert_eq!(outer, ResponseNotes { reads_secrets: false, compression: Some(true) });
    }
}

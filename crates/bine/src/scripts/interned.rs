//! Texts that are kept for the rest of the process, for parts of the web core that need them.

use std::collections::HashSet;
use std::sync::{Mutex, PoisonError};

/// A text for the rest of the process. Each text is kept once, so that files which are renamed again
/// and again during development cost little.
pub(super) fn interned(text: &str) -> &'static str {
    static KNOWN: Mutex<Option<HashSet<&'static str>>> = Mutex::new(None);
    let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    let known = known.get_or_insert_default();
    match known.get(text) {
        Some(known) => known,
        None => {
            let kept: &'static str = text.to_owned().leak();
            known.insert(kept);
            kept
        }
    }
}

#[cfg(test)]
mod tests {
    use super::interned;

    #[test]
    fn keeps_each_text_once() {
        assert!(std::ptr::eq(interned("/one"), interned("/one")));
        assert_ne!(interned("/one"), interned("/two"));
    }
}

//! Decides whether what was measured otherwise before is taken or measured anew, and says which.

use std::collections::BTreeMap;
use std::fmt::Write;

use super::raw::Kept;

/// What a run makes of what its folder holds.
#[derive(Default)]
pub(super) struct Mixture {
    is_allowed: bool,
    /// Names of what was taken, by how it was measured.
    taken: BTreeMap<String, Vec<String>>,
}

impl Mixture {
    /// With `is_allowed`, versions and options may be mixed.
    pub(super) fn new(is_allowed: bool) -> Self {
        Self { is_allowed, taken: BTreeMap::new() }
    }

    /// What was kept, unless it is to be measured anew.
    pub(super) fn take<T>(&mut self, name: &str, kept: Kept<T>) -> Option<T> {
        match kept {
            Kept::Nothing => None,
            Kept::Same(kept) => Some(kept),
            Kept::Other(kept, how) if self.is_allowed => {
                eprintln!("{name} was measured otherwise, and is taken: {how}");
                self.taken.entry(how).or_default().push(name.to_owned());
                Some(kept)
            }
            Kept::Other(_, how) => {
                eprintln!(
                    "{name} was measured otherwise ({how}) and is measured anew; --mixed would take it"
                );
                None
            }
        }
    }

    /// A paragraph of Markdown; nothing where nothing was measured otherwise.
    pub(super) fn stated(&self) -> String {
        let mut text = String::new();
        for (how, names) in &self.taken {
            let _ = write!(text, "\n- {how}: {}", names.join(", "));
        }
        if text.is_empty() {
            return text;
        }
        format!("\n\nTaken though measured otherwise than said here:\n{text}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn other(how: &str) -> Kept<u8> {
        Kept::Other(7, how.to_owned())
    }

    #[test]
    fn what_was_measured_otherwise_is_measured_anew() {
        let mut mixture = Mixture::new(false);
        assert_eq!(mixture.take("a", Kept::Same(7)), Some(7));
        assert_eq!(mixture.take::<u8>("b", Kept::Nothing), None);
        assert_eq!(mixture.take("c", other("an unknown version")), None);
        assert_eq!(mixture.stated(), "");
    }

    #[test]
    fn what_is_mixed_is_taken_and_stated() {
        let mut mixture = Mixture::new(true);
        assert_eq!(mixture.take("a", Kept::Same(7)), Some(7));
        assert_eq!(mixture.take("b", other("version 0.1.0 (a)")), Some(7));
        assert_eq!(mixture.take("c", other("an unknown version")), Some(7));
        assert_eq!(mixture.take("d", other("an unknown version")), Some(7));
        let told = "- an unknown version: c, d\n- version 0.1.0 (a): b";
        assert!(mixture.stated().ends_with(told), "{}", mixture.stated());
    }
}

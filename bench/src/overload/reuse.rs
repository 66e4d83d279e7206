//! Decides whether results of different versions or options are reused, and reports them.

use std::collections::BTreeMap;
use std::fmt::Write;

use super::raw::Stored;

/// The policy of a run for existing results.
#[derive(Default)]
pub(super) struct ReusePolicy {
    is_allowed: bool,
    /// Names of the reused results, by how they were measured.
    taken: BTreeMap<String, Vec<String>>,
}

impl ReusePolicy {
    /// With `is_allowed`, results of different versions and options are reused.
    pub(super) fn new(is_allowed: bool) -> Self {
        Self { is_allowed, taken: BTreeMap::new() }
    }

    /// Returns the stored result, unless it must be measured again.
    pub(super) fn take<T>(&mut self, name: &str, kept: Stored<T>) -> Option<T> {
        match kept {
            Stored::Nothing => None,
            Stored::Same(kept) => Some(kept),
            Stored::Other(kept, how) if self.is_allowed => {
                eprintln!("{name} has a different version or options and is reused: {how}");
                self.taken.entry(how).or_default().push(name.to_owned());
                Some(kept)
            }
            Stored::Other(_, how) => {
                eprintln!(
                    "{name} has a different version or options ({how}) and is measured again; use --mixed to reuse it"
                );
                None
            }
        }
    }

    /// A paragraph of Markdown; empty if no such result was reused.
    pub(super) fn stated(&self) -> String {
        let mut text = String::new();
        for (how, names) in &self.taken {
            let _ = write!(text, "\n- {how}: {}", names.join(", "));
        }
        if text.is_empty() {
            return text;
        }
        format!("\n\nReused results of different versions or options:\n{text}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn other(how: &str) -> Stored<u8> {
        Stored::Other(7, how.to_owned())
    }

    #[test]
    fn measures_different_results_again() {
        let mut reuse = ReusePolicy::new(false);
        assert_eq!(reuse.take("a", Stored::Same(7)), Some(7));
        assert_eq!(reuse.take::<u8>("b", Stored::Nothing), None);
        assert_eq!(reuse.take("c", other("an unknown version")), None);
        assert_eq!(reuse.stated(), "");
    }

    #[test]
    fn reuses_and_reports_mixed_results() {
        let mut reuse = ReusePolicy::new(true);
        assert_eq!(reuse.take("a", Stored::Same(7)), Some(7));
        assert_eq!(reuse.take("b", other("version 0.1.0 (a)")), Some(7));
        assert_eq!(reuse.take("c", other("an unknown version")), Some(7));
        assert_eq!(reuse.take("d", other("an unknown version")), Some(7));
        let expected = "- an unknown version: c, d\n- version 0.1.0 (a): b";
        assert!(reuse.stated().ends_with(expected), "{}", reuse.stated());
    }
}

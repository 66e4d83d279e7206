//! Decides which names of channels a rule means.

/// Names of channels: one as it is written; `*` at the end stands for any rest, and a segment like `{room}` for any one
/// segment that is not empty.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Pattern(Box<str>);

impl Pattern {
    /// # Errors
    ///
    /// What is wrong with it, and what may stand there.
    pub(super) fn new(text: &str) -> Result<Self, String> {
        let front = text.strip_suffix('*').unwrap_or(text);
        let is_right = |segment: &str| {
            let inner = segment.strip_prefix('{').and_then(|rest| rest.strip_suffix('}'));
            !inner.unwrap_or(segment).contains(['{', '}', '*'])
        };
        if !text.is_empty() && front.split('/').all(is_right) {
            return Ok(Self(text.into()));
        }
        Err(format!(
            "`{text}` means no channels: write a name, `*` at its end for any rest, or `{{any}}` for a whole segment"
        ))
    }

    pub(super) fn text(&self) -> &str {
        &self.0
    }

    pub(super) fn matches(&self, name: &str) -> bool {
        let (mut pattern, mut name) = (&*self.0, name);
        loop {
            let (own, own_rest) = split(pattern);
            if let (Some(front), None) = (own.strip_suffix('*'), own_rest) {
                return name.starts_with(front);
            }
            let (segment, rest) = split(name);
            let fits = if own.starts_with('{') { !segment.is_empty() } else { own == segment };
            match (fits, own_rest, rest) {
                (true, None, None) => return true,
                (true, Some(own_rest), Some(rest)) => (pattern, name) = (own_rest, rest),
                _ => return false,
            }
        }
    }
}

fn split(text: &str) -> (&str, Option<&str>) {
    text.split_once('/').map_or((text, None), |(first, rest)| (first, Some(rest)))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::Pattern;

    #[track_caller]
    fn check(pattern: &str, right: &[&str], wrong: &[&str]) {
        let own = Pattern::new(pattern).unwrap();
        for name in right {
            assert!(own.matches(name), "{pattern} means {name}");
        }
        for name in wrong {
            assert!(!own.matches(name), "{pattern} does not mean {name}");
        }
    }

    #[test]
    fn a_rule_means_a_name_any_rest_or_any_segment() {
        check("news", &["news"], &["", "new", "newsletter", "news/", "news/today"]);
        check("news/*", &["news/", "news/today", "news/today/1"], &["news", "newsletter", ""]);
        check("news*", &["news", "newsletter", "news/today"], &["new", "old/news"]);
        check("*", &["", "news", "news/today"], &[]);
        check("chat/{room}", &["chat/1", "chat/*"], &["chat/", "chat", "chat/1/2", "chats/1"]);
        check("{user}/*", &["ann/", "ann/1/2"], &["ann", "/1"]);
        check("{a}/x/{b}", &["1/x/2"], &["1/y/2", "1/x/", "1/x/2/3"]);
    }

    #[test]
    fn what_means_nothing_is_refused() {
        for wrong in ["", "a*b", "**", "*/a", "a/{b}c", "a/{b", "b}", "{a{b}}", "{*}"] {
            let told = Pattern::new(wrong).unwrap_err();
            assert!(told.starts_with(&format!("`{wrong}` means no channels")), "{told}");
        }
    }

    proptest! {
        #[test]
        fn a_name_means_itself_and_no_other(name in "[a-z/]{1,8}", other in "[a-z/]{1,8}") {
            let own = Pattern::new(&name).unwrap();
            prop_assert_eq!(own.matches(&other), name == other);
            prop_assert!(own.matches(&name));
        }

        #[test]
        fn a_star_means_whatever_begins_so(front in "[a-z/]{0,4}", name in "[a-z/]{0,8}") {
            let own = Pattern::new(&format!("{front}*")).unwrap();
            prop_assert_eq!(own.matches(&name), name.starts_with(&front));
        }
    }
}

//! Names and patterns: which channels a rule is for.

use std::borrow::Cow;
use std::fmt;

use crate::user_name::UserName;

/// A pattern of channel names. `*` at the end matches any rest, a segment in braces such as
/// `{room}` matches one non-empty segment, and other characters match themselves.
///
/// Where an API takes a [`ChannelRule`], a text is the name of one channel and only a `Pattern` is
/// a pattern. A name that contains a visitor's input can therefore never become a pattern.
///
/// ```
/// use bine::channels::{Grant, Pattern};
///
/// const ROOMS: Pattern = Pattern::new("chat/{room}");
///
/// let user = "ann";
/// let grant = Grant::to(user).follow(format!("inbox/{user}")).publish(ROOMS);
/// # drop(grant);
/// ```
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Pattern(Cow<'static, str>);

/// The channels that a rule applies to: one by its name, or those that match a [`Pattern`].
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum ChannelRule {
    /// The channel of this name. A name with `*`, `{` or `}` is rejected as a probable pattern.
    Name(Box<str>),
    /// All channels whose names match.
    Pattern(Pattern),
}

/// The error for a text that is not a [`Pattern`].
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct BadPattern(String);

/// The segment that represents the user's name in rules for users.
pub(super) const USER: &str = "{user}";

impl Pattern {
    /// Creates a pattern from a literal. In a `const`, an invalid pattern does not compile.
    ///
    /// # Panics
    ///
    /// The text is not a pattern.
    pub const fn new(text: &'static str) -> Self {
        assert!(
            is_pattern(text.as_bytes()),
            "a pattern is a name, with `*` at its end for any rest or whole segments in braces"
        );
        Self(Cow::Borrowed(text))
    }

    /// Parses a pattern from the configuration or another trusted source. A visitor's input may be
    /// inserted only as a [`UserName`].
    ///
    /// # Errors
    ///
    /// The text is not a pattern; the error shows the valid forms.
    pub fn parse(text: &str) -> Result<Self, BadPattern> {
        if is_pattern(text.as_bytes()) {
            return Ok(Self(Cow::Owned(text.to_owned())));
        }
        Err(BadPattern(text.to_owned()))
    }

    /// Returns the text of the pattern.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether the pattern matches a channel's name.
    pub fn matches(&self, name: &str) -> bool {
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

impl ChannelRule {
    pub(super) fn text(&self) -> &str {
        match self {
            Self::Name(name) => name,
            Self::Pattern(pattern) => pattern.as_str(),
        }
    }

    pub(super) fn matches(&self, name: &str) -> bool {
        match self {
            Self::Name(own) => **own == *name,
            Self::Pattern(pattern) => pattern.matches(name),
        }
    }

    /// Whether it contains the segment for a user's name.
    fn has_user(&self) -> bool {
        self.text().split('/').any(|segment| segment == USER)
    }

    /// Validates a rule for everyone or for one subject.
    pub(super) fn check(self) -> Result<Self, String> {
        if self.has_user() {
            return Err(format!(
                "`{}` has {USER}, which stands for whoever has logged in, by users_follow and users_publish alone; \
                 give a segment for anything another name",
                self.text()
            ));
        }
        self.check_for_users()
    }

    /// Validates a rule for users, in which [`USER`] may be a segment.
    pub(super) fn check_for_users(self) -> Result<Self, String> {
        let Self::Name(name) = &self else { return Ok(self) };
        let is_name = |segment: &str| segment == USER || !segment.contains(['*', '{', '}']);
        if name.is_empty() {
            return Err("a rule names no channel".to_owned());
        }
        if name.split('/').all(is_name) {
            return Ok(self);
        }
        Err(format!(
            "`{name}` is taken for the name of one channel, which has no * {{ }}; \
             for a pattern say Pattern::new(\"{name}\"), or --follow-pattern and the like on the command line"
        ))
    }

    /// Inserts a user's name, which is one segment without syntax.
    pub(super) fn of_user(&self, user: &UserName) -> Self {
        if !self.has_user() {
            return self.clone();
        }
        let segments = self.text().split('/');
        let own: Vec<&str> =
            segments.map(|segment| if segment == USER { user.as_str() } else { segment }).collect();
        match self {
            Self::Name(_) => Self::Name(own.join("/").into()),
            Self::Pattern(_) => Self::Pattern(Pattern(Cow::Owned(own.join("/")))),
        }
    }
}

impl From<Pattern> for ChannelRule {
    fn from(pattern: Pattern) -> Self {
        Self::Pattern(pattern)
    }
}

impl From<&str> for ChannelRule {
    fn from(name: &str) -> Self {
        Self::Name(name.into())
    }
}

impl From<String> for ChannelRule {
    fn from(name: String) -> Self {
        Self::Name(name.into())
    }
}

impl From<&String> for ChannelRule {
    fn from(name: &String) -> Self {
        Self::Name(name.as_str().into())
    }
}

/// Whether these bytes are a pattern. The whole syntax is ASCII.
const fn is_pattern(text: &[u8]) -> bool {
    let (mut at, mut begin) = (0, 0);
    while at <= text.len() {
        if at == text.len() || text[at] == b'/' {
            if !is_segment(text, begin, at) {
                return false;
            }
            begin = at + 1;
        }
        at += 1;
    }
    !text.is_empty()
}

const fn is_segment(text: &[u8], begin: usize, end: usize) -> bool {
    let is_any = end - begin >= 2 && text[begin] == b'{' && text[end - 1] == b'}';
    let (mut at, end) = if is_any { (begin + 1, end - 1) } else { (begin, end) };
    while at < end {
        let is_star = text[at] == b'*' && (is_any || at + 1 < text.len());
        if is_star || text[at] == b'{' || text[at] == b'}' {
            return false;
        }
        at += 1;
    }
    true
}

fn split(text: &str) -> (&str, Option<&str>) {
    text.split_once('/').map_or((text, None), |(first, rest)| (first, Some(rest)))
}

impl fmt::Display for Pattern {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str(&self.0)
    }
}

impl fmt::Display for BadPattern {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            to,
            "`{}` means no channels: write a name, `*` at its end for any rest, or `{{any}}` for a whole segment",
            self.0
        )
    }
}

impl std::error::Error for BadPattern {}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{ChannelRule, Pattern};
    use crate::user_name::UserName;

    #[track_caller]
    fn check(pattern: &str, right: &[&str], wrong: &[&str]) {
        let own = Pattern::parse(pattern).unwrap();
        for name in right {
            assert!(own.matches(name), "{pattern} means {name}");
        }
        for name in wrong {
            assert!(!own.matches(name), "{pattern} does not mean {name}");
        }
    }

    #[test]
    fn matches_names_rests_and_segments() {
        check("news", &["news"], &["", "new", "newsletter", "news/", "news/today"]);
        check("news/*", &["news/", "news/today", "news/today/1"], &["news", "newsletter", ""]);
        check("news*", &["news", "newsletter", "news/today"], &["new", "old/news"]);
        check("*", &["", "news", "news/today"], &[]);
        check("chat/{room}", &["chat/1", "chat/*"], &["chat/", "chat", "chat/1/2", "chats/1"]);
        check("{user}/*", &["ann/", "ann/1/2"], &["ann", "/1"]);
        check("{a}/x/{b}", &["1/x/2"], &["1/y/2", "1/x/", "1/x/2/3"]);
    }

    #[test]
    fn rejects_invalid_patterns() {
        for wrong in ["", "a*b", "**", "*/a", "a/{b}c", "a/{b", "b}", "{a{b}}", "{*}", "{a}*"] {
            let told = Pattern::parse(wrong).unwrap_err().to_string();
            assert!(told.starts_with(&format!("`{wrong}` means no channels")), "{told}");
        }
    }

    #[test]
    fn takes_a_text_as_a_name_and_rejects_pattern_syntax() {
        for name in ["*", "inbox/*", "inbox/{x}", "a{b", "}"] {
            let told = ChannelRule::from(name).check().unwrap_err();
            assert!(told.contains("taken for the name of one channel"), "{told}");
            // Even an unchecked name matches only itself.
            assert!(
                ChannelRule::from(name).matches(name)
                    && !ChannelRule::from(name).matches("inbox/ben")
            );
        }
        assert!(ChannelRule::from("").check().is_err());
        for rule in
            [ChannelRule::from("inbox/{user}"), ChannelRule::from(Pattern::new("inbox/{user}/*"))]
        {
            let told = rule.clone().check().unwrap_err();
            assert!(told.contains("users_follow"), "{told}");
            assert!(rule.check_for_users().is_ok());
        }
    }

    #[test]
    fn inserts_user_names_as_one_segment() {
        let ann = UserName::parse("ann").unwrap();
        let own = |rule: ChannelRule| rule.of_user(&ann);
        let inbox = own("inbox/{user}".into());
        assert!(inbox.matches("inbox/ann"));
        assert!(!inbox.matches("inbox/ben") && !inbox.matches("inbox/{user}"));
        let below = own(Pattern::new("{user}/*").into());
        assert!(below.matches("ann/1") && !below.matches("ben/1"));
        assert!(own("news".into()).matches("news"));
    }

    proptest! {
        #[test]
        fn a_name_matches_only_itself(name in "[a-z/]{1,8}", other in "[a-z/]{1,8}") {
            let own = Pattern::parse(&name).unwrap();
            prop_assert_eq!(own.matches(&other), name == other);
            prop_assert!(own.matches(&name));
        }

        #[test]
        fn a_star_matches_any_rest(front in "[a-z/]{0,4}", name in "[a-z/]{0,8}") {
            let own = Pattern::parse(&format!("{front}*")).unwrap();
            prop_assert_eq!(own.matches(&name), name.starts_with(&front));
        }

        /// A user's name in a rule, inserted by a program or by `{user}`, never matches a
        /// channel of a different user.
        #[test]
        fn user_names_never_become_pattern_syntax(name in "[a-c*{}/]{1,4}", other in "[a-c*{}/]{1,4}") {
            let channel = format!("inbox/{other}");
            let put = ChannelRule::from(format!("inbox/{name}"));
            prop_assert_eq!(put.matches(&channel), name == other);
            if let Ok(user) = UserName::parse(&name) {
                let own = ChannelRule::from("inbox/{user}").of_user(&user);
                prop_assert_eq!(own.matches(&channel), name == other);
                let pattern = Pattern::parse(&format!("inbox/{user}/*")).unwrap();
                let is_below = other == name || other.starts_with(&format!("{name}/"));
                prop_assert_eq!(pattern.matches(&format!("{channel}/x")), is_below);
            }
        }
    }
}

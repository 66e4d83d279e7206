//! Rules: a pattern of paths or channels, a right, and its subjects.

use std::fmt;

use super::who::{Right, Who};
use crate::text::Text;
use crate::user_name::NameComparison;

/// A pattern of paths or of channel names, such as `/wiki/{page}`, `/admin/*` or `news/*`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct RulePattern {
    source: Text,
    segments: Box<[RuleSegment]>,
    is_channel: bool,
}

/// A segment of a pattern.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum RuleSegment {
    Literal(Box<str>),
    /// `{name}`: any one segment.
    Any,
    /// `*` or `{name..}`: the rest, which may be empty.
    Rest,
}

/// A rule for one subject.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct RightRule {
    pub(super) pattern: RulePattern,
    pub(super) right: Right,
    pub(super) who: Who,
}

/// The longest pattern, in bytes.
const MAX_PATTERN: usize = 1000;

impl RulePattern {
    /// Parses a pattern. It begins with `/` for paths and with any other character for channels.
    ///
    /// # Errors
    ///
    /// The pattern is invalid; the message names the correction.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let wrong = |reason: &str| Err(format!("the pattern {text:?} {reason}"));
        if text.is_empty() || text.len() > MAX_PATTERN {
            return Err(format!(
                "a pattern has 1 to {MAX_PATTERN} bytes: write /admin/* for paths, or news/* for channels"
            ));
        }
        let is_channel = !text.starts_with('/');
        let names = text.strip_prefix('/').unwrap_or(text);
        let names = names.strip_suffix('/').unwrap_or(names);
        if !is_channel && text.contains(['%', '?', '#']) {
            return wrong("has %, ? or #: write the path decoded, and without a query");
        }
        if text.contains(|letter: char| letter.is_control()) {
            return wrong("has a control character");
        }
        let mut segments = Vec::new();
        for (place, name) in names.split('/').enumerate() {
            let is_last = names.split('/').count() == place + 1;
            let inner = name.strip_prefix('{').and_then(|name| name.strip_suffix('}'));
            segments.push(match (name, inner) {
                ("", _) if names.is_empty() => break,
                ("", _) => return wrong("has an empty segment: write one / at a time"),
                ("." | "..", _) => return wrong("has a dot segment: write the path without it"),
                ("*", _) if is_last => RuleSegment::Rest,
                (_, Some(inner)) if inner.strip_suffix("..").is_some() && is_last => {
                    RuleSegment::Rest
                }
                (_, Some(inner)) if !inner.is_empty() && !inner.contains(['{', '}', '*', '.']) => {
                    RuleSegment::Any
                }
                _ if name.contains(['*', '{', '}']) => {
                    return wrong(
                        "has * or braces within a segment: `*` is the whole last segment, and `{name}` is a whole segment",
                    );
                }
                _ => RuleSegment::Literal(name.into()),
            });
        }
        let source = match text.strip_suffix('/') {
            Some(shorter) if !shorter.is_empty() => shorter,
            _ => text,
        };
        Ok(Self { source: source.into(), segments: segments.into(), is_channel })
    }

    pub(super) fn segments(&self) -> &[RuleSegment] {
        &self.segments
    }

    pub(super) fn as_str(&self) -> &str {
        &self.source
    }

    pub(super) const fn is_channel(&self) -> bool {
        self.is_channel
    }
}

impl RightRule {
    /// Combines the parts of a rule.
    ///
    /// # Errors
    ///
    /// A part is invalid, or the right does not fit the pattern.
    pub(super) fn new(pattern: &str, right: Right, who: Who) -> Result<Self, String> {
        let pattern = RulePattern::parse(pattern)?;
        let who = who.checked()?;
        match (pattern.is_channel, right.is_for_channels()) {
            (true, false) => Err(format!(
                "`{right}` is a right for paths, and the channels {} have follow, publish and manage; a path begins with /",
                pattern.source
            )),
            (false, true) => Err(format!(
                "`{right}` is a right for channels, and the path {} has read and write; a channel has no / at its start",
                pattern.source
            )),
            _ => Ok(Self { pattern, right, who }),
        }
    }

    /// The rule with the name of its user in the form that the program stores.
    ///
    /// # Errors
    ///
    /// The form is reserved or too long.
    pub(super) fn stored(&self, names: NameComparison) -> Result<Self, String> {
        let who = match &self.who {
            Who::User(name) => Who::user(&*names.key(name)).checked()?,
            other => other.clone(),
        };
        Ok(Self { who, ..self.clone() })
    }

    /// Parses a line of the configuration: a pattern, a right, and subjects with commas between
    /// them, as in `/wiki/* write group:editors, ann`.
    ///
    /// # Errors
    ///
    /// The line is invalid; the message names the correction.
    pub(super) fn parse_line(line: &str) -> Result<Vec<Self>, String> {
        const FORM: &str =
            "must be a pattern, a right and who has it: /wiki/* write group:editors, ann";
        let form = || FORM.to_owned();
        let (pattern, rest) = line.trim().split_once(char::is_whitespace).ok_or_else(form)?;
        let (right, subjects) = rest.trim().split_once(char::is_whitespace).ok_or_else(form)?;
        let right = Right::parse(right)?;
        let rule = |who: &str| Self::new(pattern, right, Who::parse(who)?);
        subjects.split(',').map(rule).collect()
    }
}

impl fmt::Display for RightRule {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(to, "{} {} {}", self.pattern.source, self.right, self.who)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parses_patterns_of_paths_and_channels() {
        for (text, source, count) in [
            ("/", "/", 0),
            ("/*", "/*", 1),
            ("/admin", "/admin", 1),
            ("/admin/", "/admin", 1),
            ("/a/{x}/b/*", "/a/{x}/b/*", 4),
            ("/files/{path..}", "/files/{path..}", 2),
            ("news/*", "news/*", 2),
            ("*", "*", 1),
        ] {
            let pattern = RulePattern::parse(text).unwrap();
            assert_eq!((pattern.as_str(), pattern.segments().len()), (source, count), "{text}");
            assert_eq!(pattern.is_channel(), !text.starts_with('/'));
        }
    }

    #[test]
    fn names_the_correction_of_an_invalid_rule() {
        for (line, expected) in [
            ("/a", "a pattern, a right and who has it"),
            ("/a read", "a pattern, a right and who has it"),
            ("/a see ann", "a path has read and write"),
            ("/a follow ann", "a right for channels"),
            ("news read ann", "a right for paths"),
            ("/a//b read ann", "one / at a time"),
            ("/a/../b read ann", "a dot segment"),
            ("/a*b read ann", "the whole last segment"),
            ("/*/b read ann", "the whole last segment"),
            ("/{} read ann", "a whole segment"),
            ("/a%20b read ann", "decoded"),
            ("/a read console", "reserved"),
            ("/a read group:anonymous", "reserved"),
            ("/a read group:a:b", "no name of a group"),
            ("/a read ann,", "no name of a user"),
        ] {
            let error = RightRule::parse_line(line).unwrap_err();
            assert!(error.contains(expected), "{line}: {error}");
        }
    }

    #[test]
    fn parses_the_subjects_of_a_line() {
        let rules = RightRule::parse_line("/wiki/* write group:editors, Ann Smith,users").unwrap();
        let shown: Vec<_> = rules.iter().map(ToString::to_string).collect();
        assert_eq!(
            shown,
            ["/wiki/* write group:editors", "/wiki/* write Ann Smith", "/wiki/* write users"]
        );
        let odd = Who::parse("user:group:x").unwrap();
        assert_eq!((odd.to_string().as_str(), &odd), ("user:group:x", &Who::user("group:x")));
    }
}

//! The paths of a filter: patterns as in access rules.

/// The paths of one filter.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum FilterPaths {
    All,
    Matching(Box<[FilterPattern]>),
}

/// A pattern of paths.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct FilterPattern {
    source: String,
    parts: Box<[PatternPart]>,
}

/// A segment of a pattern.
#[derive(Debug, PartialEq, Eq)]
enum PatternPart {
    Literal(Box<str>),
    /// `{name}`: any one segment.
    Any,
    /// `*`: the rest, which may be empty.
    Rest,
}

/// The most patterns of one filter.
const MAX_PATTERNS: usize = 100;
/// The longest pattern, in bytes.
const MAX_PATTERN: usize = 1000;

impl FilterPaths {
    /// Reads the patterns of a filter.
    ///
    /// # Errors
    ///
    /// A pattern is invalid; the message names the correction.
    pub(super) fn parse(patterns: &[&str]) -> Result<Self, String> {
        if patterns.is_empty() || patterns.len() > MAX_PATTERNS {
            return Err(format!(
                "the `paths` of a filter are 1 to {MAX_PATTERNS} patterns, like [\"/shop/*\"]; leave the option out for all paths"
            ));
        }
        let patterns = patterns.iter().map(|pattern| FilterPattern::parse(pattern));
        Ok(Self::Matching(patterns.collect::<Result<_, _>>()?))
    }

    /// Whether the filter sees requests for this decoded path.
    pub(super) fn match_path(&self, path: &str) -> bool {
        match self {
            Self::All => true,
            Self::Matching(patterns) => patterns.iter().any(|pattern| pattern.matches(path)),
        }
    }

    /// The patterns in words.
    pub(super) fn sources(&self) -> Vec<&str> {
        match self {
            Self::All => vec!["/*"],
            Self::Matching(patterns) => patterns.iter().map(|one| one.source.as_str()).collect(),
        }
    }
}

impl FilterPattern {
    fn parse(text: &str) -> Result<Self, String> {
        let wrong = |reason: &str| Err(format!("the pattern {text:?} {reason}"));
        if !text.starts_with('/') || text.len() > MAX_PATTERN {
            return wrong("is no path: it begins with /, as in \"/shop/*\"");
        }
        if text.contains(['%', '?', '#']) {
            return wrong("has %, ? or #: write the path decoded, and without a query");
        }
        let mut parts = Vec::new();
        let mut names = text.split('/').filter(|name| !name.is_empty()).peekable();
        while let Some(name) = names.next() {
            let inner = name.strip_prefix('{').and_then(|name| name.strip_suffix('}'));
            parts.push(match (name, inner) {
                ("*", _) if names.peek().is_none() => PatternPart::Rest,
                (_, Some(inner)) if !inner.is_empty() && !inner.contains(['{', '}', '*', '.']) => {
                    PatternPart::Any
                }
                _ if name.contains(['*', '{', '}']) => {
                    return wrong(
                        "has * or braces within a segment: `*` is the whole last segment, and `{name}` is a whole segment",
                    );
                }
                _ => PatternPart::Literal(name.into()),
            });
        }
        Ok(Self { source: text.to_owned(), parts: parts.into() })
    }

    /// Compares segments, without empty ones: a file server may read `//shop` as `/shop`.
    fn matches(&self, path: &str) -> bool {
        let mut segments = path.split('/').filter(|segment| !segment.is_empty());
        for part in &self.parts {
            match part {
                PatternPart::Rest => return true,
                PatternPart::Any if segments.next().is_some() => {}
                PatternPart::Literal(own) if segments.next() == Some(own) => {}
                PatternPart::Any | PatternPart::Literal(_) => return false,
            }
        }
        segments.next().is_none()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(pattern: &str, matching: &[&str], others: &[&str]) {
        let paths = FilterPaths::parse(&[pattern]).unwrap();
        for path in matching {
            assert!(paths.match_path(path), "{pattern} {path}");
        }
        for path in others {
            assert!(!paths.match_path(path), "{pattern} {path}");
        }
    }

    #[test]
    fn matches_whole_segments() {
        check("/admin", &["/admin", "/admin/", "//admin"], &["/", "/admin/x", "/administrator"]);
        check("/admin/*", &["/admin", "/admin/x", "/admin//x/y", "//admin/x"], &["/", "/a"]);
        check("/wiki/{page}", &["/wiki/start", "/wiki/a b/"], &["/wiki", "/wiki/a/b"]);
        check("/", &["/", "//"], &["/a"]);
        check("/*", &["/", "/a", "/a/b"], &[]);
        assert!(FilterPaths::All.match_path("/a"));
    }

    #[test]
    fn names_the_correction_of_an_invalid_pattern() {
        for (pattern, expected) in [
            ("shop", "begins with /"),
            ("/a*", "the whole last segment"),
            ("/*/a", "the whole last segment"),
            ("/**", "the whole last segment"),
            ("/{}", "a whole segment"),
            ("/a%20b", "decoded"),
            ("/a?b", "without a query"),
        ] {
            let error = FilterPaths::parse(&[pattern]).unwrap_err();
            assert!(error.contains(expected), "{pattern}: {error}");
        }
        assert!(FilterPaths::parse(&[]).unwrap_err().contains("leave the option out"));
    }
}

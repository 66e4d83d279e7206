//! Exceptions from the key `compress`, by path and host.

use std::borrow::Cow;

use super::mode::CompressionMode;
use crate::sites::{HostPattern, without_port};

/// A rule such as `/api/** on` or `example.org/** off`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct PathRule {
    /// `None`: all hosts.
    host: Option<HostPattern>,
    /// The path, or the beginning of the paths below it, without its last slash.
    path: Box<str>,
    has_descendants: bool,
    mode: CompressionMode,
}

impl PathRule {
    /// Parses a pattern and a mode.
    ///
    /// # Errors
    ///
    /// A message that names the form.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let wrong = || {
            "must be a path and on, off or auto: '/api/** on', or with a host 'example.org/** off'"
                .to_owned()
        };
        let (pattern, mode) = text.trim().rsplit_once(char::is_whitespace).ok_or_else(wrong)?;
        let (pattern, mode) =
            (pattern.trim_end(), CompressionMode::read(mode).map_err(|_| wrong())?);
        let start = pattern.find('/').ok_or_else(wrong)?;
        let (host, path) = pattern.split_at(start);
        let host = if host.is_empty() { None } else { Some(HostPattern::parse(host)?) };
        let (path, has_descendants) = match path.strip_suffix("/**") {
            Some(above) => (above, true),
            None => (path, false),
        };
        if path.contains('*') || path.contains(char::is_whitespace) {
            return Err(wrong());
        }
        Ok(Self { host, path: path.into(), has_descendants, mode })
    }

    fn matches(&self, host: Option<&str>, path: &str) -> bool {
        let is_path = match path.strip_prefix(&*self.path) {
            Some("") => true,
            Some(rest) => self.has_descendants && rest.starts_with('/'),
            None => false,
        };
        let is_host = |pattern: &HostPattern| {
            host.is_some_and(|host| pattern.fit(without_port(host)).is_some())
        };
        is_path && self.host.as_ref().is_none_or(is_host)
    }
}

/// The mode of a request at the decoded path `path`: that of the last rule that matches, or `default`.
pub(super) fn mode_at<'r>(
    rules: &[PathRule],
    default: CompressionMode,
    host: Option<&str>,
    path: impl FnOnce() -> Cow<'r, str>,
) -> CompressionMode {
    if rules.is_empty() {
        return default;
    }
    let path = path();
    let found = rules.iter().rev().find(|rule| rule.matches(host, &path));
    found.map_or(default, |rule| rule.mode)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(rules: &[&str], host: &str, path: &str, expected: CompressionMode) {
        let rules: Vec<_> = rules.iter().map(|rule| PathRule::parse(rule).unwrap()).collect();
        let found = mode_at(&rules, CompressionMode::Shared, Some(host), || path.into());
        assert_eq!(found, expected, "{rules:?} {host} {path}");
    }

    #[test]
    fn last_rule_that_matches_applies() {
        let rules = ["/api/** on", "/api/secret off", "*.example.org/** off", "/whole/** auto"];
        check(&rules, "a.test", "/", CompressionMode::Shared);
        check(&rules, "a.test", "/api", CompressionMode::All);
        check(&rules, "a.test", "/api/list/1", CompressionMode::All);
        check(&rules, "a.test", "/apis", CompressionMode::Shared);
        check(&rules, "a.test", "/api/secret", CompressionMode::Off);
        check(&rules, "a.test", "/api/secret/more", CompressionMode::All);
        check(&rules, "www.example.org:8080", "/api", CompressionMode::Off);
        check(&rules, "www.example.org", "/whole/x", CompressionMode::Shared);
        check(&["/** off"], "a", "/", CompressionMode::Off);
    }

    #[test]
    fn rejects_rules_without_path_or_mode() {
        for text in ["", "/api", "on", "api on", "/api yes", "/a*b on", "/a/*/b off", "a b/ on"] {
            let error = PathRule::parse(text).unwrap_err();
            assert!(
                error.contains("/api/** on") || error.contains("is not a host"),
                "{text}: {error}"
            );
        }
    }
}

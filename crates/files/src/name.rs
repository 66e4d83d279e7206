//! Maps request paths to file names below the root.

/// The only public name that begins with a dot (RFC 8615).
const WELL_KNOWN: &str = ".well-known";

/// Returns the name of a decoded path below the root, or `None` if the path must not be served.
///
/// The name of a directory is empty or ends with a slash. No segment is empty, so an accepted path
/// never begins with two slashes, and a redirect to it stays on the same host.
pub(crate) fn resolve(path: &str, hidden: bool) -> Option<&str> {
    let name = path.strip_prefix('/')?;
    if name.is_empty() {
        return Some(name);
    }
    let mut segments = name.strip_suffix('/').unwrap_or(name).split('/').enumerate();
    segments.all(|(depth, segment)| is_public(segment, depth, hidden)).then_some(name)
}

/// Whether a name is that of a directory, whose index is served.
pub(crate) fn is_directory(name: &str) -> bool {
    name.is_empty() || name.ends_with('/')
}

/// Whether a segment may be served. A leading dot hides it unless hidden files are served.
fn is_public(segment: &str, depth: usize, hidden: bool) -> bool {
    if matches!(segment, "." | "..") {
        return false;
    }
    if segment.starts_with('.') && !hidden {
        return depth == 0 && segment == WELL_KNOWN;
    }
    !segment.is_empty() && !segment.contains('\0')
}

#[cfg(test)]
mod tests {
    use super::resolve;

    fn check(path: &str, expected: Option<&str>) {
        assert_eq!(resolve(path, false), expected, "{path:?}");
    }

    #[test]
    fn resolves_paths_below_root() {
        check("/", Some(""));
        check("/a", Some("a"));
        check("/a/", Some("a/"));
        check("/a/b.c", Some("a/b.c"));
        check("/a b/\u{e4}...", Some("a b/\u{e4}..."));
        check("/a./b~", Some("a./b~"));
    }

    #[test]
    fn rejects_path_without_leading_slash() {
        check("", None);
        check("*", None);
        check("a", None);
        check("../a", None);
    }

    #[test]
    fn rejects_empty_segments() {
        check("//", None);
        check("//a", None);
        check("///", None);
        check("/a//b", None);
        check("/a//", None);
    }

    #[test]
    fn rejects_dot_segments() {
        for path in ["/.", "/..", "/a/.", "/a/..", "/a/../b", "/./a", "/../a", "/a/./", "/a/../"] {
            check(path, None);
        }
    }

    #[test]
    fn hides_dot_files_at_any_depth() {
        for path in ["/.git/config", "/.env", "/a/.env", "/a/.b/c", "/...", "/..a"] {
            check(path, None);
        }
    }

    #[test]
    fn serves_well_known_at_top_level_only() {
        check("/.well-known/security.txt", Some(".well-known/security.txt"));
        check("/.well-known/", Some(".well-known/"));
        check("/.well-known/.secret", None);
        check("/.well-known2/a", None);
        check("/a/.well-known/b", None);
    }

    #[test]
    fn serves_hidden_files_when_enabled_but_never_dot_segments() {
        assert_eq!(resolve("/.env", true), Some(".env"));
        assert_eq!(resolve("/a/.b/c", true), Some("a/.b/c"));
        for path in ["/.", "/..", "/a/..", "/../a", "//.a", "/a/./b"] {
            assert_eq!(resolve(path, true), None, "{path:?}");
        }
    }

    #[test]
    fn rejects_nul() {
        check("/a\0b", None);
        check("/\0", None);
    }
}

//! The interface between sessions and credentials in the `Authorization` field, such as API tokens.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use bine_http::{Head, Method, Status};
use bine_store::RowId;

use crate::base64;
use crate::text::Text;
use crate::visitor_message::VisitorMessage;

/// The prefix of the server's own tokens. Other bearer tokens, such as those of channels, belong to
/// other parts of a program. A fixed prefix lets secret scanners find tokens in published code.
pub(crate) const TOKEN_PREFIX: &str = "bine_";

/// Finds the users of credentials. One subsystem may provide it.
pub(crate) trait CredentialSource: Send + Sync {
    /// Returns the login that `secret` proves at `now`, in seconds since 1970. `None`: the secret is
    /// unknown, revoked or expired. It must not block.
    fn find(&self, secret: &str, now: u64) -> Option<CredentialLogin>;

    /// When the login with this row expires, in seconds since 1970. `None`: it has ended.
    fn lasts(&self, row: RowId) -> Option<u64>;

    /// Records that a handler runs for this login. It must not block.
    fn record_use(&self, login: &CredentialLogin, now: u64);
}

/// A login by a credential that the client sends with each request.
#[derive(Clone)]
pub(crate) struct CredentialLogin {
    pub(crate) user: Text,
    /// Its row, by which changes are reported.
    pub(crate) row: RowId,
    /// When it expires, in seconds since 1970.
    pub(crate) until: u64,
    /// The id of the session that belongs to the credential. Clients cannot choose it.
    pub(crate) session: [u8; 16],
    pub(crate) scope: Arc<CredentialScope>,
    /// When its use was last recorded, in seconds since 1970.
    pub(crate) last_used: u64,
}

/// The subset of the user's permitted requests that a credential permits.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct CredentialScope {
    /// Whether it permits only safe methods.
    pub(crate) is_read_only: bool,
    /// Paths, and prefixes that end with `/*`. An empty list permits all paths.
    pub(crate) paths: Vec<String>,
}

/// Why a request with a token of this server is refused.
pub(crate) enum CredentialRefusal {
    /// The token is not valid.
    Invalid,
    /// The token does not permit this request.
    OutOfScope(Arc<CredentialScope>),
}

/// A request has one of this server's tokens, which is not valid.
pub(crate) struct RejectedCredential;

/// Returns the token of this server in the `Authorization` field: as a bearer token (RFC 6750
/// section 2.1), or as the password of Basic authentication (RFC 7617) with the user's name.
pub(crate) fn presented<'h>(head: &Head<'h>) -> Option<PresentedCredential<'h>> {
    presented_in(head.field_text("Authorization")?)
}

/// The token in the value of an `Authorization` field.
fn presented_in(field: &str) -> Option<PresentedCredential<'_>> {
    let (scheme, rest) = field.split_once(' ')?;
    let rest = rest.trim();
    if scheme.eq_ignore_ascii_case("Bearer") {
        let secret = rest.starts_with(TOKEN_PREFIX).then_some(Cow::Borrowed(rest))?;
        return Some(PresentedCredential { user: None, secret });
    }
    if !scheme.eq_ignore_ascii_case("Basic") {
        return None;
    }
    let pair = String::from_utf8(base64::padded(rest)?).ok()?;
    let (user, secret) = pair.split_once(':')?;
    let secret = secret.starts_with(TOKEN_PREFIX).then(|| Cow::Owned(secret.to_owned()))?;
    Some(PresentedCredential { user: Some(user.to_owned()), secret })
}

/// A token that a request presents.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct PresentedCredential<'h> {
    /// The user's name in Basic authentication.
    pub(crate) user: Option<String>,
    pub(crate) secret: Cow<'h, str>,
}

impl CredentialScope {
    /// The longest list of paths.
    pub(crate) const MAX_PATHS: usize = 16;
    /// The longest path in bytes.
    pub(crate) const MAX_PATH: usize = 200;

    /// Creates a scope.
    ///
    /// # Errors
    ///
    /// There are too many paths, or a path is invalid. The message names the rule.
    pub(crate) fn new(is_read_only: bool, paths: Vec<String>) -> Result<Self, String> {
        if paths.len() > Self::MAX_PATHS {
            return Err(format!("a token has at most {} paths", Self::MAX_PATHS));
        }
        for path in &paths {
            let rest = path.strip_suffix("/*").unwrap_or(path);
            let is_wrong =
                |letter: char| letter == '*' || letter.is_whitespace() || letter.is_control();
            let is_absolute = path.starts_with('/') && path.len() <= Self::MAX_PATH;
            if !is_absolute || rest.contains(is_wrong) {
                return Err(format!(
                    "{path:?} is no path for a token: write `/api/list` for one path or `/api/*` for all paths below it, at most {} bytes",
                    Self::MAX_PATH
                ));
            }
        }
        Ok(Self { is_read_only, paths })
    }

    /// Whether it permits this method at this decoded path.
    pub(crate) fn permits(&self, method: Method, path: &str) -> bool {
        let is_below = |pattern: &String| match pattern.strip_suffix("/*") {
            Some(folder) => path.strip_prefix(folder).is_some_and(|rest| rest.starts_with('/')),
            None => pattern == path,
        };
        (method.is_safe() || !self.is_read_only)
            && (self.paths.is_empty() || self.paths.iter().any(is_below))
    }
}

/// As a person reads it: `read /api/*`.
impl fmt::Display for CredentialScope {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str(if self.is_read_only { "read" } else { "read and write" })?;
        self.paths.iter().try_for_each(|path| write!(to, " {path}"))
    }
}

/// Fuzz check: a field value never panics, a token that it presents has the prefix, and a scope
/// permits exactly the paths that it names.
#[doc(hidden)]
pub fn check_credential(field: &str, path: &str) {
    if let Some(found) = presented_in(field) {
        assert!(found.secret.starts_with(TOKEN_PREFIX));
        // The same credential in the other scheme names the same token.
        let pair = format!("{}:{}", found.user.as_deref().unwrap_or_default(), found.secret);
        let basic = format!("Basic {}", base64::written_padded(pair.as_bytes()));
        let again = presented_in(&basic).map(|again| again.secret.into_owned());
        let is_plain = !found.user.is_some_and(|user| user.contains(':'));
        assert!(!is_plain || again.as_deref() == Some(&*found.secret));
    }
    if let Ok(scope) = CredentialScope::new(false, vec![path.to_owned()]) {
        match path.strip_suffix("/*") {
            Some(folder) => assert!(scope.permits(Method::Post, &format!("{folder}/x"))),
            None => assert!(scope.permits(Method::Post, path)),
        }
        assert!(!scope.permits(Method::Post, ""));
    }
}

impl CredentialRefusal {
    /// The status of the response, the value of its `WWW-Authenticate` field (RFC 6750 section 3.1),
    /// and its message.
    pub(crate) fn answer(&self) -> (Status, &'static str, VisitorMessage) {
        match self {
            Self::Invalid => (
                Status::UNAUTHORIZED,
                "Bearer realm=\"api\", error=\"invalid_token\"",
                VisitorMessage::InvalidToken {},
            ),
            Self::OutOfScope(scope) => (
                Status::FORBIDDEN,
                "Bearer realm=\"api\", error=\"insufficient_scope\"",
                VisitorMessage::TokenScope { scope: scope.to_string() },
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use bine_http::{Event, Limits, RequestParser};

    use super::*;

    #[track_caller]
    fn check(field: &str, expected: Option<(Option<&str>, &str)>) {
        let bytes = format!("GET / HTTP/1.1\r\nHost: a\r\nAuthorization: {field}\r\n\r\n");
        let mut parser = RequestParser::new();
        let Event::Head(head) = parser.receive(bytes.as_bytes(), &Limits::default()).event else {
            panic!("{bytes:?} is a request");
        };
        let found = presented(&head);
        let found = found.as_ref().map(|found| (found.user.as_deref(), &*found.secret));
        assert_eq!(found, expected, "{field}");
    }

    #[test]
    fn finds_only_tokens_with_the_prefix_of_this_server() {
        check("Bearer bine_abc", Some((None, "bine_abc")));
        check("bearer   bine_abc", Some((None, "bine_abc")));
        check("Bearer eyJhbGciOi.x.y", None);
        check("Bearer", None);
        check("Digest bine_abc", None);
        // ann:bine_abc, :bine_abc, ann:password, no colon, and what is no Base64.
        check("Basic YW5uOmJpbmVfYWJj", Some((Some("ann"), "bine_abc")));
        check("Basic OmJpbmVfYWJj", Some((Some(""), "bine_abc")));
        check("Basic YW5uOnBhc3N3b3Jk", None);
        check("Basic YmluZV9hYmM=", None);
        check("Basic ***", None);
    }

    #[test]
    fn permits_methods_and_paths_of_the_scope_only() {
        let scope = |is_read_only, paths: &[&str]| {
            let paths = paths.iter().map(|path| (*path).to_owned()).collect();
            CredentialScope::new(is_read_only, paths).unwrap()
        };
        let all = CredentialScope::default();
        assert!(all.permits(Method::Post, "/anything"));
        let read = scope(true, &[]);
        assert!(read.permits(Method::Get, "/x") && read.permits(Method::Head, "/x"));
        assert!(!read.permits(Method::Post, "/x") && !read.permits(Method::Delete, "/x"));
        let api = scope(false, &["/api/*", "/status"]);
        for (path, is_permitted) in [
            ("/api/", true),
            ("/api/list", true),
            ("/status", true),
            ("/api", false),
            ("/apis/list", false),
            ("/status/1", false),
            ("/", false),
        ] {
            assert_eq!(api.permits(Method::Post, path), is_permitted, "{path}");
        }
        assert!(scope(true, &["/*"]).permits(Method::Get, "/any/path"));
        assert_eq!(scope(true, &["/api/*"]).to_string(), "read /api/*");
    }

    #[test]
    fn rejects_paths_that_are_no_paths() {
        for wrong in ["", "api", "/a*", "/*/b", "/a b", "/a/**"] {
            let message = CredentialScope::new(false, vec![wrong.to_owned()]).unwrap_err();
            assert!(message.contains("write `/api/list`"), "{message}");
        }
        assert!(CredentialScope::new(false, vec!["/a".to_owned(); 17]).is_err());
    }
}

//! The interface between request handling and rights: access to paths, and members of groups.

use std::borrow::Cow;
use std::sync::Arc;

use bine_http::{Method, Status};
use bine_server::Incoming;

use crate::accept::AcceptPreferences;
use crate::origin::is_path;
use crate::percent_encoding::percent_encode;
use crate::request_session::SessionProvider;
use crate::respond::Response;
use crate::user_name::NameComparison;
use crate::visitor_message::VisitorMessage;

/// Decides which clients may use which paths. One subsystem may provide it.
pub(crate) trait AccessGuard: Send + Sync {
    /// Decides about a request for the decoded path `path`. The program calls it after the filters
    /// and before it opens a file or runs a handler. Records what the decision depended on.
    fn check(
        &self,
        path: &str,
        request: &Incoming<'_>,
        sessions: Option<&Arc<dyn SessionProvider>>,
    ) -> AccessDecision;

    /// Whether a user, or a visitor without a login, may still send such a request for this path.
    fn allows(&self, user: Option<&str>, path: &str, method: Method) -> bool;

    /// Whether the user of a client, if it has logged in, may use a channel; `None`: no rule
    /// matches the channel.
    fn check_channel(&self, user: Option<&str>, usage: ChannelUse, channel: &str) -> Option<bool>;

    /// Counts the changes of rules and groups, starting with 1. A change is counted before it is
    /// acknowledged, and after the decisions follow it.
    fn version(&self) -> u64;

    /// Whether a rule lets the client use any channel in this way.
    fn may_use_some_channel(&self, user: Option<&str>, usage: ChannelUse) -> bool;

    /// Whether this user is a member of this group. Records the dependency.
    fn is_member(&self, user: &str, group: &str) -> bool;

    /// Whether a rule or a membership names this user.
    fn names_user(&self, user: &str) -> bool;

    /// Sets how the names of users are compared. The program calls it once, at the start.
    fn compare_names(&self, names: NameComparison);

    /// Names paths that remain open to everyone unless a rule names exactly this path, such as the
    /// page where users log in. The program calls it once at the start.
    fn keep_open(&self, paths: Vec<Cow<'static, str>>);

    /// The path of the page where users log in.
    fn log_in_page(&self) -> Option<&str>;

    /// Replaces the rules and groups that a subsystem declares.
    ///
    /// # Errors
    ///
    /// A rule or group is invalid; all stay as they were.
    #[cfg_attr(
        not(feature = "script"),
        allow(dead_code, reason = "only a start script declares rules")
    )]
    fn declare(&self, _declared: &DeclaredRules) -> Result<(), String> {
        Err("this program decides about paths in its own way and takes no rules".to_owned())
    }
}

/// Rules and groups that a subsystem declares, besides those of the program, of the configuration
/// and of the store.
#[cfg_attr(
    not(feature = "script"),
    allow(dead_code, reason = "only a start script declares rules")
)]
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct DeclaredRules {
    /// The name of their source in lists.
    pub(crate) source: &'static str,
    pub(crate) rules: Vec<DeclaredRule>,
    pub(crate) groups: Vec<DeclaredGroup>,
}

/// A rule in words: those of a line of the configuration.
#[cfg_attr(
    not(feature = "script"),
    allow(dead_code, reason = "only a start script declares rules")
)]
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct DeclaredRule {
    pub(crate) pattern: String,
    pub(crate) right: String,
    pub(crate) who: Vec<String>,
}

/// A group and its members.
#[cfg_attr(
    not(feature = "script"),
    allow(dead_code, reason = "only a start script declares rules")
)]
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct DeclaredGroup {
    pub(crate) name: String,
    pub(crate) members: Vec<String>,
}

impl DeclaredRules {
    /// Whether the declaration is empty.
    #[cfg(feature = "script")]
    pub(crate) const fn is_empty(&self) -> bool {
        self.rules.is_empty() && self.groups.is_empty()
    }
}

/// The decision about a request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum AccessDecision {
    Allow,
    /// The client is allowed because of its user: a shared cache must not store the response.
    AllowPrivately,
    /// The client has not logged in, and a login may help.
    RequireLogin,
    Deny,
}

/// A use of a channel.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum ChannelUse {
    /// Read its messages and wait for more.
    Follow,
    /// Publish messages.
    Publish,
    /// Create, renew, close and remove it.
    Manage,
}

impl AccessDecision {
    /// The response to a request that is not allowed. A browser that requests a page is redirected
    /// to the page where users log in, if there is one.
    pub(crate) fn refusal(
        self,
        guard: &dyn AccessGuard,
        request: &Incoming<'_>,
    ) -> Option<Response> {
        let refusal = match self {
            Self::Allow | Self::AllowPrivately => return None,
            Self::RequireLogin => match guard.log_in_page().filter(|_| reads_page(request)) {
                Some(page) => {
                    let path = request.head.target();
                    // Any other target may lead to a different site.
                    let next = if is_path(path) { path } else { "/" };
                    Response::see_other(format!("{page}?next={}", percent_encode(next)))
                }
                None => Response::told(Status::UNAUTHORIZED, VisitorMessage::LogInToSee {}),
            },
            Self::Deny => Response::told(Status::FORBIDDEN, VisitorMessage::NoRight {}),
        };
        Some(refusal.with_header("Cache-Control", "no-store"))
    }
}

/// Whether a browser requests a page by this request, not a part of one and not a program.
fn reads_page(request: &Incoming<'_>) -> bool {
    request.head.method() == Method::Get
        && request.head.field_text("accept").is_some_and(|accept| {
            AcceptPreferences::of(Some(accept)).reads_pages && accept.contains("html")
        })
}

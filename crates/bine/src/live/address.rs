//! The address of a page, by which its subscribers find each other.

use std::sync::Arc;

use bine_server::Incoming;

/// Where a page is, for all who ask for it so.
pub(super) fn address(request: &Incoming<'_>) -> Arc<str> {
    let scheme = if request.peer.is_secure() { "https" } else { "http" };
    let host = request.head.authority().unwrap_or_default();
    format!("{scheme}://{host}{}", request.head.target()).into()
}

//! The address of a page: clients that follow the same address may share a view.

use std::sync::Arc;

use bine_server::Incoming;

/// The scheme, host and target of a page.
pub(super) fn address(request: &Incoming<'_>) -> Arc<str> {
    let scheme = if request.peer.is_secure() { "https" } else { "http" };
    let host = request.head.authority().unwrap_or_default();
    format!("{scheme}://{host}{}", request.head.target()).into()
}

//! Response headers that keep content stored by clients from running as part of the application.

use bine_http::{Head, Reply};

/// Adds the headers for content that clients may have stored. `sandbox` gives a document an opaque
/// origin without scripts (CSP Level 3 section 6.3.2), `nosniff` keeps a browser from guessing the
/// media type.
pub(crate) fn put_fields(reply: &mut Reply<'_>) {
    reply.nosniff().static_lines("Content-Security-Policy: sandbox\r\n");
}

/// The field for content that [`is_active`]: a browser saves it instead of opening it (RFC 6266).
pub(crate) const ATTACHMENT: &str = "Content-Disposition: attachment\r\n";

/// Media types that no browser runs, besides images, sound and video.
const PASSIVE: [&str; 7] = [
    "application/json",
    "application/ndjson",
    "application/octet-stream",
    "application/x-ndjson",
    "text/csv",
    "text/event-stream",
    "text/plain",
];

/// Whether a browser might run content of this media type: true unless the type is known to be
/// passive.
pub(crate) fn is_active(media_type: &str) -> bool {
    let essence = media_type.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    // From a list, a browser takes the last type (Fetch section 3.6, "extract a MIME type").
    let is_list = media_type.contains(',');
    let is_media = ["image/", "audio/", "video/"].iter().any(|kind| essence.starts_with(kind));
    let is_passive = is_media || essence.ends_with("+json") || PASSIVE.contains(&&*essence);
    is_list || !is_passive || essence.ends_with("xml")
}

/// Whether a browser requests content in order to run it as a script or style sheet (Fetch
/// Metadata). A response header cannot prevent that.
pub(crate) fn is_to_run(head: &Head<'_>) -> bool {
    let destination = head.field_text("Sec-Fetch-Dest").unwrap_or_default();
    matches!(destination, "script" | "style" | "xslt")
        || destination.ends_with("worker")
        || destination.ends_with("worklet")
}

#[cfg(test)]
mod tests {
    use super::is_active;

    #[test]
    fn treats_unknown_media_types_as_active() {
        for active in [
            "text/html",
            "Text/HTML ; charset=utf-8",
            "image/svg+xml",
            "application/xhtml+xml",
            "application/xml",
            "text/xsl",
            "text/javascript",
            "application/pdf",
            "multipart/mixed",
            "text/plain, text/html",
            "image/png;a=,text/html",
            "unknown/unknown",
            "",
        ] {
            assert!(is_active(active), "{active}");
        }
        for passive in [
            "text/plain; charset=utf-8",
            "TEXT/PLAIN",
            "application/json",
            "application/problem+json",
            "image/png",
            "audio/ogg",
            "application/octet-stream",
        ] {
            assert!(!is_active(passive), "{passive}");
        }
    }
}

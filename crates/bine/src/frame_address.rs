//! The name of a frame in the address of its page.

use crate::origin::is_path;

/// The name of the query parameter.
const PARAMETER: &str = "_frame";

/// The name of the frame in an address.
pub(crate) fn named(address: &str) -> Option<&str> {
    let (_, query) = apart(address).0.split_once('?')?;
    query.split('&').find_map(|pair| pair.strip_prefix(PARAMETER)?.strip_prefix('='))
}

/// Splits an address into the part that a browser requests and the fragment.
pub(crate) fn apart(address: &str) -> (&str, &str) {
    address.split_at(address.find('#').unwrap_or(address.len()))
}

/// Sets the frame of an address, in place of any other. An address that is not a path is replaced
/// by the home page's.
pub(crate) fn with_name(address: &str, name: &str) -> String {
    let (asked, fragment) = if is_path(address) { apart(address) } else { ("/", "") };
    let (path, query) = asked.split_once('?').unwrap_or((asked, ""));
    let is_other = |pair: &&str| {
        !pair.is_empty() && !pair.strip_prefix(PARAMETER).is_some_and(|rest| rest.starts_with('='))
    };
    let mut address = format!("{path}?");
    for pair in query.split('&').filter(is_other) {
        address.push_str(pair);
        address.push('&');
    }
    address + PARAMETER + "=" + name + fragment
}

/// Adds the frame of `page`, if that has one, to an address without a frame.
pub(crate) fn with_frame_of(page: &str, address: &str) -> String {
    match named(page) {
        Some(name) if named(address).is_none() => with_name(address, name),
        _ => address.to_owned(),
    }
}

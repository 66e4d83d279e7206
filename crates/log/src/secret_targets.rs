//! The parts of request targets that no log shows.

use std::borrow::Cow;

/// Targets with a secret segment or query value, such as a link that sets a new password.
///
/// ```
/// let secrets = bine_log::SecretTargets::new(["/reset/{link}", "/sign-up?invitation"]);
/// assert_eq!(secrets.mask("/reset/x7?a=b"), "/reset/...?a=b");
/// assert_eq!(secrets.mask("/sign-up?invitation=x7"), "/sign-up?invitation=...");
/// ```
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct SecretTargets(Box<[SecretTarget]>);

#[derive(Clone, PartialEq, Eq, Debug)]
struct SecretTarget {
    /// The segments; `None` is a secret one.
    segments: Box<[Option<Box<str>>]>,
    /// The name of a secret query value.
    parameter: Option<Box<str>>,
}

/// The text in place of a secret.
pub(crate) const MASK: &str = "...";

impl SecretTargets {
    /// The targets of these patterns. A pattern is a path in which each segment in braces is
    /// secret, or a path, `?` and the name of a secret query value. It also covers longer paths.
    pub fn new<P: AsRef<str>>(patterns: impl IntoIterator<Item = P>) -> Self {
        Self(patterns.into_iter().map(|pattern| SecretTarget::parse(pattern.as_ref())).collect())
    }

    /// The target with [`...`](Self) in place of its secrets. The target is as the client sent it.
    pub fn mask<'t>(&self, target: &'t str) -> Cow<'t, str> {
        let masked = self.mask_parts(target);
        match masked.split_once('?') {
            Some((path, query))
                if !self.0.is_empty()
                    && query.split('&').any(|pair| self.leads_to_secret(pair)) =>
            {
                let pairs = query.split('&').map(|pair| match pair.split_once('=') {
                    Some((name, _)) if self.leads_to_secret(pair) => format!("{name}={MASK}"),
                    _ => pair.to_owned(),
                });
                format!("{path}?{}", pairs.collect::<Vec<_>>().join("&")).into()
            }
            _ => masked,
        }
    }

    fn mask_parts<'t>(&self, target: &'t str) -> Cow<'t, str> {
        self.0.iter().fold(Cow::Borrowed(target), |target, secret| match secret.mask(&target) {
            Some(masked) => masked.into(),
            None => target,
        })
    }

    /// Whether a query value is a target with a secret, as the page is to which a login returns.
    fn leads_to_secret(&self, pair: &str) -> bool {
        let Some((_, value)) = pair.split_once('=') else { return false };
        let target = decoded(value);
        self.mask_parts(&target) != target
    }
}

impl SecretTarget {
    fn parse(pattern: &str) -> Self {
        let (path, parameter) = pattern.split_once('?').unzip();
        let segment = |text: &str| (!text.starts_with('{')).then(|| text.into());
        let segments = path.unwrap_or(pattern).split('/').map(segment).collect();
        Self { segments, parameter: parameter.map(Into::into) }
    }

    /// The masked target; `None`: it has no secret of this kind.
    fn mask(&self, target: &str) -> Option<String> {
        let start = path_start(target);
        let end = target.find('?').unwrap_or(target.len());
        let path = target.get(start..end)?;
        // Most targets have no secret: they cost comparisons, but no allocation.
        let mut sent = path.split('/');
        let is_own = |own: &Option<Box<str>>| {
            let Some(sent) = sent.next() else { return false };
            own.as_deref().is_none_or(|own| own == sent || own == decoded(sent))
        };
        if !self.segments.iter().all(is_own) {
            return None;
        }
        let is_secret = |place: usize| matches!(self.segments.get(place), Some(None));
        let mut masked = target[..start].to_owned();
        for (place, segment) in path.split('/').enumerate() {
            masked.push_str(if place > 0 { "/" } else { "" });
            masked.push_str(if is_secret(place) { MASK } else { segment });
        }
        let Some(query) = target.get(end + 1..) else { return Some(masked) };
        for (place, pair) in query.split('&').enumerate() {
            masked.push(if place > 0 { '&' } else { '?' });
            let name = pair.split('=').next().unwrap_or(pair);
            if self.parameter.as_deref().is_some_and(|own| own == name || own == decoded(name)) {
                masked.extend([name, "=", MASK]);
            } else {
                masked.push_str(pair);
            }
        }
        Some(masked)
    }
}

/// Where the path of a target begins: in absolute form, after the authority.
fn path_start(target: &str) -> usize {
    if target.starts_with('/') {
        return 0;
    }
    let authority = target.find("://").map_or(0, |scheme| scheme + 3);
    let rest = &target[authority..];
    authority + rest.find(['/', '?']).unwrap_or(rest.len())
}

/// The text with its percent-encoded ASCII bytes decoded.
fn decoded(text: &str) -> Cow<'_, str> {
    if !text.contains('%') {
        return text.into();
    }
    let mut pieces = text.split('%');
    let mut decoded = pieces.next().unwrap_or_default().to_owned();
    for piece in pieces {
        let byte = piece.get(..2).and_then(|digits| u8::from_str_radix(digits, 16).ok());
        match byte.filter(u8::is_ascii) {
            Some(byte) => decoded.extend([char::from(byte).to_string().as_str(), &piece[2..]]),
            None => decoded.extend(["%", piece]),
        }
    }
    decoded.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn masks_secret_segments_and_query_values_only() {
        let secrets =
            SecretTargets::new(["/m/reset/{link}", "/join/{a}/x/{b}", "/sign-up?invitation"]);
        for (target, expected) in [
            ("/m/reset/secret", "/m/reset/..."),
            ("/m/reset/secret/", "/m/reset/.../"),
            ("/m/reset/secret/more?a=b", "/m/reset/.../more?a=b"),
            ("/m/r%65set/secret", "/m/r%65set/..."),
            ("http://a:80/m/reset/secret?x", "http://a:80/m/reset/...?x"),
            ("/m/reset", "/m/reset"),
            ("/m/resets/plain", "/m/resets/plain"),
            ("/join/1/x/2", "/join/.../x/..."),
            ("/join/1/y/2", "/join/1/y/2"),
            (
                "/sign-up?a=b&invitation=secret&invitation=%2f",
                "/sign-up?a=b&invitation=...&invitation=...",
            ),
            ("/sign-up?invit%61tion=secret", "/sign-up?invit%61tion=..."),
            ("/sign-up?x=invitation=plain", "/sign-up?x=invitation=plain"),
            ("/sign-up", "/sign-up"),
            ("/log-in?next=%2Fm%2Freset%2Fsecret&a=%2Fm", "/log-in?next=...&a=%2Fm"),
            ("/log-in?next=/sign-up?invitation=secret", "/log-in?next=..."),
            ("/other?invitation=plain", "/other?invitation=plain"),
            ("*", "*"),
            ("host:443", "host:443"),
            ("", ""),
            ("/m/%", "/m/%"),
        ] {
            assert_eq!(secrets.mask(target), expected, "{target}");
            assert_eq!(SecretTargets::default().mask(target), target);
        }
    }
}

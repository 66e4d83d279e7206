//! The cookies of a test's client, and which of them a request carries (RFC 6265 section 5).

use bine_http::Date;

/// The cookies of one client.
#[derive(Debug, Default)]
pub(super) struct Jar {
    cookies: Vec<StoredCookie>,
}

#[derive(Debug)]
struct StoredCookie {
    name: String,
    value: String,
    path: String,
}

impl Jar {
    /// Stores the cookie of one `Set-Cookie` field in a response to `path`, or deletes it if it has
    /// expired.
    pub(super) fn store(&mut self, set: &str, path: &str) {
        let mut parts = set.split(';').map(str::trim);
        let Some((name, value)) = parts.next().and_then(|pair| pair.split_once('=')) else {
            return;
        };
        let mut cookie = StoredCookie {
            name: name.into(),
            value: value.into(),
            path: default_path(path).into(),
        };
        let mut is_expired = false;
        let mut has_max_age = false;
        for part in parts {
            let (word, value) = part.split_once('=').unwrap_or((part, ""));
            match &*word.to_ascii_lowercase() {
                "path" if value.starts_with('/') => value.clone_into(&mut cookie.path),
                // `Max-Age` has precedence over `Expires` in either order (RFC 6265 section 5.3).
                "max-age" => {
                    (has_max_age, is_expired) = (true, value.starts_with('-') || value == "0");
                }
                // A server deletes a cookie with a date long ago. Tests ignore other dates.
                "expires" if !has_max_age => {
                    is_expired = Date::parse(value).is_some_and(|end| end < 86_400);
                }
                _ => {}
            }
        }
        self.cookies.retain(|own| (&own.name, &own.path) != (&cookie.name, &cookie.path));
        if !is_expired {
            self.cookies.push(cookie);
        }
    }

    /// Returns the value of the `StoredCookie` field for `path`, with the longest path first.
    pub(super) fn header_for(&self, path: &str) -> Option<String> {
        let mut own: Vec<&StoredCookie> =
            self.cookies.iter().filter(|own| own.is_for(path)).collect();
        own.sort_by_key(|cookie| std::cmp::Reverse(cookie.path.len()));
        let pairs: Vec<String> =
            own.iter().map(|cookie| format!("{}={}", cookie.name, cookie.value)).collect();
        (!pairs.is_empty()).then(|| pairs.join("; "))
    }
}

impl StoredCookie {
    fn is_for(&self, path: &str) -> bool {
        path.strip_prefix(&*self.path).is_some_and(|rest| {
            self.path.ends_with('/') || rest.is_empty() || rest.starts_with('/')
        })
    }
}

/// The default path of a cookie (RFC 6265 section 5.1.4).
fn default_path(path: &str) -> &str {
    match path.rfind('/') {
        None | Some(0) => "/",
        Some(end) => &path[..end],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(set: &[&str], path: &str, expected: Option<&str>) {
        let mut jar = Jar::default();
        for set in set {
            jar.store(set, "/shop/basket");
        }
        assert_eq!(jar.header_for(path).as_deref(), expected);
    }

    #[test]
    fn sends_cookies_to_matching_paths() {
        check(&["a=1"], "/shop/x", Some("a=1"));
        check(&["a=1"], "/shop", Some("a=1"));
        check(&["a=1"], "/shopping", None);
        check(&["a=1; Path=/"], "/", Some("a=1"));
        check(&["a=1; Path=/; HttpOnly", "b=x=y"], "/shop/", Some("b=x=y; a=1"));
    }

    #[test]
    fn replaces_and_deletes_cookies() {
        check(&["a=1", "a=2"], "/shop/", Some("a=2"));
        check(&["a=1", "a=; Max-Age=0"], "/shop/", None);
        check(&["a=1", "a=; Expires=Thu, 01 Jan 1970 00:00:00 GMT"], "/shop/", None);
        check(&["a=1; Max-Age=60; Expires=Thu, 01 Jan 1970 00:00:00 GMT"], "/shop/", Some("a=1"));
        check(&["nothing"], "/shop/", None);
    }
}

//! Sets of HTTP methods.

use std::fmt;

use bine_http::Method;

/// A set of methods. GET includes HEAD.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Methods(u16);

impl Methods {
    /// GET and HEAD: the default of a page.
    pub const GET: Self = Self(bit(Method::Get) | bit(Method::Head));
    /// HEAD only.
    pub const HEAD: Self = Self(bit(Method::Head));
    /// POST.
    pub const POST: Self = Self(bit(Method::Post));
    /// PUT.
    pub const PUT: Self = Self(bit(Method::Put));
    /// DELETE.
    pub const DELETE: Self = Self(bit(Method::Delete));
    /// PATCH (RFC 5789).
    pub const PATCH: Self = Self(bit(Method::Patch));
    /// QUERY: a safe method with content.
    pub const QUERY: Self = Self(bit(Method::Query));
    /// OPTIONS.
    pub const OPTIONS: Self = Self(bit(Method::Options));
    /// Every method.
    pub const ALL: Self = Self(u16::MAX);

    /// The union of two sets.
    #[must_use]
    pub const fn or(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    pub(crate) const fn has(self, method: Method) -> bool {
        self.0 & bit(method) != 0
    }

    /// The shortest list of names that describes the set.
    pub(crate) fn names(self) -> Vec<&'static str> {
        if self == Self::ALL {
            return vec!["*"];
        }
        let has_get = self.has(Method::Get);
        let own = ORDER.into_iter().chain([Method::Options]).filter(|method| self.has(*method));
        let own = own.filter(|method| !has_get || *method != Method::Head);
        own.map(Method::as_str).collect()
    }

    pub(crate) const fn overlaps(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }
}

const fn bit(method: Method) -> u16 {
    1 << method as u16
}

const ORDER: [Method; 7] = [
    Method::Get,
    Method::Head,
    Method::Post,
    Method::Put,
    Method::Delete,
    Method::Patch,
    Method::Query,
];

/// Formats the set as an Allow field does (RFC 9110 section 10.2.1). OPTIONS is always answered.
impl fmt::Display for Methods {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for method in ORDER {
            if self.has(method) {
                write!(f, "{}, ", method.as_str())?;
            }
        }
        f.write_str("OPTIONS")
    }
}

#[cfg(test)]
mod tests {
    use super::Methods;

    #[test]
    fn lists_methods_without_redundant_names() {
        assert_eq!(Methods::GET.or(Methods::POST).names(), ["GET", "POST"]);
        assert_eq!(Methods::HEAD.or(Methods::OPTIONS).names(), ["HEAD", "OPTIONS"]);
        assert_eq!(Methods::ALL.names(), ["*"]);
    }

    #[test]
    fn formats_methods_as_an_allow_field() {
        assert_eq!(Methods::GET.to_string(), "GET, HEAD, OPTIONS");
        assert_eq!(Methods::POST.or(Methods::GET).to_string(), "GET, HEAD, POST, OPTIONS");
        let all = "GET, HEAD, POST, PUT, DELETE, PATCH, QUERY, OPTIONS";
        assert_eq!(Methods::ALL.to_string(), all);
    }
}

//! Request methods.

/// A request method. The server answers any other method with 501.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Method {
    /// RFC 9110 section 9.3.1.
    Get,
    /// RFC 9110 section 9.3.2: GET without the content of the response.
    Head,
    /// RFC 9110 section 9.3.3.
    Post,
    /// RFC 9110 section 9.3.4.
    Put,
    /// RFC 9110 section 9.3.5.
    Delete,
    /// RFC 9110 section 9.3.6. The parser rejects it, so no [`Head`](crate::Head) has this method.
    Connect,
    /// RFC 9110 section 9.3.7.
    Options,
    /// RFC 9110 section 9.3.8.
    Trace,
    /// RFC 5789.
    Patch,
    /// RFC 10008: a safe request with content.
    Query,
}

impl Method {
    /// Returns the method with exactly this name. Methods are case-sensitive (RFC 9110 section
    /// 9.1).
    pub(crate) fn from_bytes(token: &[u8]) -> Option<Self> {
        Some(match token {
            b"GET" => Self::Get,
            b"HEAD" => Self::Head,
            b"POST" => Self::Post,
            b"PUT" => Self::Put,
            b"DELETE" => Self::Delete,
            b"CONNECT" => Self::Connect,
            b"OPTIONS" => Self::Options,
            b"TRACE" => Self::Trace,
            b"PATCH" => Self::Patch,
            b"QUERY" => Self::Query,
            _ => return None,
        })
    }

    /// Parses the method before the first space.
    #[inline]
    pub(crate) fn parse_prefix(line: &[u8]) -> Option<Self> {
        // Nearly every request is a GET, which costs one comparison of four bytes here.
        if line.starts_with(b"GET ") {
            return Some(Self::Get);
        }
        let longest = "OPTIONS ".len();
        let end = line.iter().take(longest).position(|&byte| byte == b' ')?;
        Self::from_bytes(&line[..end])
    }

    /// Returns the method as written in a request line.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Get => "GET",
            Self::Head => "HEAD",
            Self::Post => "POST",
            Self::Put => "PUT",
            Self::Delete => "DELETE",
            Self::Connect => "CONNECT",
            Self::Options => "OPTIONS",
            Self::Trace => "TRACE",
            Self::Patch => "PATCH",
            Self::Query => "QUERY",
        }
    }

    /// Returns whether the method is safe: the client requests no change of state (RFC 9110 section
    /// 9.2.1).
    pub const fn is_safe(self) -> bool {
        matches!(self, Self::Get | Self::Head | Self::Options | Self::Trace | Self::Query)
    }

    /// Returns whether a request with this method usually has content.
    pub const fn carries_content(self) -> bool {
        matches!(self, Self::Post | Self::Put | Self::Patch)
    }
}

#[cfg(test)]
mod tests {
    use super::Method;

    #[test]
    fn methods_are_upper_case_only() {
        let all = [
            Method::Get,
            Method::Head,
            Method::Post,
            Method::Put,
            Method::Delete,
            Method::Connect,
            Method::Options,
            Method::Trace,
            Method::Patch,
            Method::Query,
        ];
        for method in all {
            let name = method.as_str();
            assert_eq!(Method::from_bytes(name.as_bytes()), Some(method));
            assert_eq!(Method::from_bytes(name.to_ascii_lowercase().as_bytes()), None);
        }
    }

    #[test]
    fn read_only_methods_are_safe() {
        let safe = [Method::Get, Method::Head, Method::Options, Method::Trace, Method::Query];
        assert!(safe.iter().all(|method| method.is_safe()));
        let unsafe_ones =
            [Method::Post, Method::Put, Method::Delete, Method::Connect, Method::Patch];
        assert!(unsafe_ones.iter().all(|method| !method.is_safe()));
    }
}

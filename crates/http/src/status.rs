//! Status codes and their reason phrases.

/// A status code of three digits (RFC 9110 section 15).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Status(u16);

impl Status {
    /// Returns the status with this number, if it has three digits.
    pub const fn new(code: u16) -> Option<Self> {
        match code {
            100..=999 => Some(Self(code)),
            _ => None,
        }
    }

    /// Returns the number.
    pub const fn code(self) -> u16 {
        self.0
    }

    /// Returns whether a response with this status has no content, for any request (RFC 9110
    /// sections 6.4.1, 8.6). Its head has no framing field either.
    pub const fn forbids_content(self) -> bool {
        matches!(self.0, 100..=199 | 204 | 304)
    }
}

/// Defines each status once: its constant, its number and its reason phrase.
macro_rules! statuses {
    ($($name:ident = $code:literal, $reason:literal;)+) => {
        impl Status {
            $(
                #[doc = concat!(stringify!($code), " ", $reason, ".")]
                pub const $name: Self = Self($code);
            )+

            /// Returns the registered reason phrase. It is empty for an unregistered number, as RFC
            /// 9112 section 4 allows.
            pub const fn reason(self) -> &'static str {
                match self.0 {
                    $($code => $reason,)+
                    _ => "",
                }
            }
        }
    };
}

statuses! {
    CONTINUE = 100, "Continue";
    SWITCHING_PROTOCOLS = 101, "Switching Protocols";
    EARLY_HINTS = 103, "Early Hints";
    OK = 200, "OK";
    CREATED = 201, "Created";
    ACCEPTED = 202, "Accepted";
    NO_CONTENT = 204, "No Content";
    RESET_CONTENT = 205, "Reset Content";
    PARTIAL_CONTENT = 206, "Partial Content";
    MULTIPLE_CHOICES = 300, "Multiple Choices";
    MOVED_PERMANENTLY = 301, "Moved Permanently";
    FOUND = 302, "Found";
    SEE_OTHER = 303, "See Other";
    NOT_MODIFIED = 304, "Not Modified";
    TEMPORARY_REDIRECT = 307, "Temporary Redirect";
    PERMANENT_REDIRECT = 308, "Permanent Redirect";
    BAD_REQUEST = 400, "Bad Request";
    UNAUTHORIZED = 401, "Unauthorized";
    PAYMENT_REQUIRED = 402, "Payment Required";
    FORBIDDEN = 403, "Forbidden";
    NOT_FOUND = 404, "Not Found";
    METHOD_NOT_ALLOWED = 405, "Method Not Allowed";
    NOT_ACCEPTABLE = 406, "Not Acceptable";
    REQUEST_TIMEOUT = 408, "Request Timeout";
    CONFLICT = 409, "Conflict";
    GONE = 410, "Gone";
    LENGTH_REQUIRED = 411, "Length Required";
    PRECONDITION_FAILED = 412, "Precondition Failed";
    CONTENT_TOO_LARGE = 413, "Content Too Large";
    URI_TOO_LONG = 414, "URI Too Long";
    UNSUPPORTED_MEDIA_TYPE = 415, "Unsupported Media Type";
    RANGE_NOT_SATISFIABLE = 416, "Range Not Satisfiable";
    EXPECTATION_FAILED = 417, "Expectation Failed";
    MISDIRECTED_REQUEST = 421, "Misdirected Request";
    UNPROCESSABLE_CONTENT = 422, "Unprocessable Content";
    UPGRADE_REQUIRED = 426, "Upgrade Required";
    PRECONDITION_REQUIRED = 428, "Precondition Required";
    TOO_MANY_REQUESTS = 429, "Too Many Requests";
    REQUEST_HEADER_FIELDS_TOO_LARGE = 431, "Request Header Fields Too Large";
    INTERNAL_SERVER_ERROR = 500, "Internal Server Error";
    NOT_IMPLEMENTED = 501, "Not Implemented";
    BAD_GATEWAY = 502, "Bad Gateway";
    SERVICE_UNAVAILABLE = 503, "Service Unavailable";
    GATEWAY_TIMEOUT = 504, "Gateway Timeout";
    HTTP_VERSION_NOT_SUPPORTED = 505, "HTTP Version Not Supported";
    INSUFFICIENT_STORAGE = 507, "Insufficient Storage";
}

#[cfg(test)]
mod tests {
    use super::Status;

    #[test]
    fn status_has_three_digits() {
        assert_eq!(Status::new(99), None);
        assert_eq!(Status::new(1000), None);
        assert_eq!(Status::new(404), Some(Status::NOT_FOUND));
    }

    #[test]
    fn unregistered_status_has_empty_reason() {
        assert_eq!(Status::new(599).map(Status::reason), Some(""));
        assert_eq!(Status::GONE.reason(), "Gone");
    }
}

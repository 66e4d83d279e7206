//! The cases and their requests.

use std::fmt::Write as _;
use std::str::FromStr;

use anyhow::{Error, Result};

use super::files::FILES;

/// A case of `HttpArena`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ArenaCase {
    /// Adds the numbers of the query and the body, which has a length or is sent in chunks.
    Baseline,
    /// The same; every tenth request ends its connection.
    ShortLived,
    /// Lists of one to fifty items, with a price for each request.
    Json,
    /// Long lists, compressed for each request.
    JsonCompressed,
    /// Twenty files of a site, most with compressed variants on the disk.
    Static,
}

/// A list that a request asks for: items, and the multiplier of their prices.
pub(super) type Listed = (usize, u32);

const LISTS: [Listed; 7] = [(1, 3), (5, 7), (10, 2), (15, 5), (25, 4), (40, 8), (50, 6)];
const LONG_LISTS: [Listed; 3] = [(25, 4), (40, 8), (50, 6)];
/// The fields of a client that accepts compressed lists, and compressed files.
pub(super) const ACCEPTS_LIST: &str = "Accept-Encoding: gzip, br";
pub(super) const ACCEPTS_FILE: &str = "Accept-Encoding: br;q=1, gzip;q=0.8";
/// Requests of a connection of `ShortLived`.
const SHORT_LIFE: usize = 10;

impl ArenaCase {
    pub(super) const ALL: [Self; 5] =
        [Self::Baseline, Self::ShortLived, Self::Json, Self::JsonCompressed, Self::Static];

    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Baseline => "baseline",
            Self::ShortLived => "short-lived",
            Self::Json => "json",
            Self::JsonCompressed => "json-compressed",
            Self::Static => "static",
        }
    }

    pub(super) const fn title(self) -> &'static str {
        match self {
            Self::Baseline => "baseline: sums, GET and POST",
            Self::ShortLived => "short-lived: ten sums a connection",
            Self::Json => "JSON: 1 to 50 items",
            Self::JsonCompressed => "JSON, compressed: 25 to 50 items",
            Self::Static => "static: 20 files",
        }
    }

    pub(super) const fn lists(self) -> &'static [Listed] {
        match self {
            Self::Json => &LISTS,
            Self::JsonCompressed => &LONG_LISTS,
            _ => &[],
        }
    }

    /// The requests, which the load sends by turns.
    fn requests(self) -> Vec<String> {
        let get = |path: &str, field: &str| {
            let field = if field.is_empty() { String::new() } else { format!("{field}\r\n") };
            format!("GET {path} HTTP/1.1\r\nHost: localhost\r\n{field}\r\n")
        };
        match self {
            Self::Baseline => vec![get(SUM, ""), with_length(), in_chunks()],
            Self::ShortLived => {
                let ends = |number: usize| if number == 0 { "Connection: close" } else { "" };
                (0..SHORT_LIFE).map(|number| get(SUM, ends(number))).collect()
            }
            Self::Json | Self::JsonCompressed => {
                let field = if self == Self::Json { "" } else { ACCEPTS_LIST };
                self.lists().iter().map(|list| get(&list_path(*list), field)).collect()
            }
            Self::Static => {
                FILES.iter().map(|file| get(&format!("/{}", file.name), ACCEPTS_FILE)).collect()
            }
        }
    }

    /// A program for `wrk` that sends the requests by turns.
    pub(super) fn script(self) -> String {
        let requests = self.requests();
        let mut script = String::from("local requests = {\n");
        for request in &requests {
            // Rust and Lua write these texts alike.
            let _ = writeln!(script, "  {request:?},");
        }
        script.push_str(
            "}\nlocal place = 0\nrequest = function()\n  place = place % #requests + 1\n",
        );
        script.push_str("  return requests[place]\nend\n");
        script
    }
}

/// The sum of two numbers, 55; a request with the third one has 75.
pub(super) const SUM: &str = "/baseline11?a=13&b=42";
const THIRD: &str = "20";

fn with_length() -> String {
    let length = THIRD.len();
    format!(
        "POST {SUM} HTTP/1.1\r\nHost: localhost\r\nContent-Type: text/plain\r\nContent-Length: {length}\r\n\r\n{THIRD}"
    )
}

fn in_chunks() -> String {
    let length = THIRD.len();
    format!(
        "POST {SUM} HTTP/1.1\r\nHost: localhost\r\nContent-Type: text/plain\r\nTransfer-Encoding: chunked\r\n\r\n\
         {length:x}\r\n{THIRD}\r\n0\r\n\r\n"
    )
}

pub(super) fn list_path((count, multiplier): Listed) -> String {
    format!("/json/{count}?m={multiplier}")
}

impl FromStr for ArenaCase {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self> {
        let all = Self::ALL.map(Self::name).join(", ");
        let known = Self::ALL.into_iter().find(|case| case.name() == name);
        known.ok_or_else(|| Error::msg(format!("`{name}` is none of {all}")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scripts_send_each_request_by_turns() {
        let script = ArenaCase::Baseline.script();
        assert!(
            script
                .contains(r#"  "GET /baseline11?a=13&b=42 HTTP/1.1\r\nHost: localhost\r\n\r\n","#)
        );
        assert!(script.contains(r#"chunked\r\n\r\n2\r\n20\r\n0\r\n\r\n","#), "{script}");
        assert!(script.contains(r#"Content-Length: 2\r\n\r\n20","#), "{script}");
        for case in ArenaCase::ALL {
            // Lua has no escapes in braces, as Rust has for other characters.
            assert!(!case.script().contains("\\u{"), "{}", case.name());
        }
        let short = ArenaCase::ShortLived.requests();
        let closing = short.iter().filter(|request| request.contains("Connection: close"));
        assert_eq!((short.len(), closing.count()), (10, 1));
    }

    #[test]
    fn finds_each_case_by_its_name() {
        for case in ArenaCase::ALL {
            assert_eq!(case.name().parse::<ArenaCase>().unwrap(), case);
        }
        assert!("x".parse::<ArenaCase>().unwrap_err().to_string().contains("short-lived"));
    }
}

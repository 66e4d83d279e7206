//! The interface of a workload: the pages of a session in order, and their embedded files.

use std::fmt::Write;

use crate::surge::{Embedded, Visit};

/// A request of a session.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Request {
    pub(crate) method: &'static str,
    pub(crate) path: String,
    /// A form, as a browser encodes it.
    pub(crate) body: Option<String>,
}

impl Request {
    pub(crate) fn get(path: impl Into<String>) -> Self {
        Self { method: "GET", path: path.into(), body: None }
    }

    /// The bytes of the request with these cookies, as a browser on the site sends them.
    pub(super) fn text(&self, cookies: &[(String, String)]) -> String {
        let mut text = format!("{} {} HTTP/1.1\r\nHost: 127.0.0.1\r\n", self.method, self.path);
        for (place, (name, value)) in cookies.iter().enumerate() {
            let before = if place == 0 { "Cookie: " } else { "; " };
            let _ = write!(text, "{before}{name}={value}");
        }
        if !cookies.is_empty() {
            text += "\r\n";
        }
        if let Some(body) = &self.body {
            let _ = write!(
                text,
                "Sec-Fetch-Site: same-origin\r\nContent-Type: application/x-www-form-urlencoded\r\n\
                 Content-Length: {}\r\n",
                body.len()
            );
        }
        text += "\r\n";
        text += self.body.as_deref().unwrap_or_default();
        text
    }
}

/// The next page of a session.
#[derive(Debug)]
pub(crate) struct Page {
    /// Seconds from the end of the previous page.
    pub(crate) wait: f64,
    pub(crate) request: Request,
}

/// The embedded files of a page.
#[derive(Debug, Default)]
pub(crate) struct Parts {
    /// Each is requested a number of seconds after the end of the previous one.
    pub(crate) files: Vec<Embedded>,
    /// Requests all files at once, pipelined, and ignores the times.
    pub(crate) is_pipelined: bool,
}

/// One session, as its visitor intends it.
pub(crate) trait Script {
    /// The next page, after the last one and its files were received; `None` when the session is
    /// complete.
    fn next(&mut self) -> Option<Page>;

    /// The embedded files of the last page; `body` is its body if [`reads`](Self::reads) returns
    /// true.
    fn parts(&mut self, body: &[u8]) -> Parts;

    /// Whether the session needs the bodies of pages.
    fn reads(&self) -> bool;

    /// The number of pages of an undisturbed session; known in advance.
    fn length(&self) -> u64;
}

/// A session of SURGE, with all pages known in advance.
pub(crate) struct Reader {
    visits: std::collections::VecDeque<Visit>,
    now: Parts,
    length: u64,
}

impl Reader {
    pub(crate) fn new(visits: std::collections::VecDeque<Visit>) -> Self {
        Self { length: visits.len() as u64, visits, now: Parts::default() }
    }
}

impl Script for Reader {
    fn next(&mut self) -> Option<Page> {
        let Visit { off, page, embedded, is_pipelined } = self.visits.pop_front()?;
        self.now = Parts { files: embedded.into(), is_pipelined };
        Some(Page { wait: off, request: Request::get(page) })
    }

    fn parts(&mut self, _: &[u8]) -> Parts {
        std::mem::take(&mut self.now)
    }

    fn reads(&self) -> bool {
        false
    }

    fn length(&self) -> u64 {
        self.length
    }
}

//! Decides what a workload must tell of a session: its pages, one after the other, and what each embeds.

use crate::surge::{Embedded, Visit};

/// What is asked for.
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
}

/// The next page of a session.
#[derive(Debug)]
pub(crate) struct Page {
    /// Seconds from the end of the page before.
    pub(crate) wait: f64,
    pub(crate) request: Request,
}

/// What a page embeds.
#[derive(Debug, Default)]
pub(crate) struct Parts {
    /// Each is asked for so many seconds after the end of the one before.
    pub(crate) files: Vec<Embedded>,
    /// Or all at once, behind each other, and the times do not count.
    pub(crate) is_pipelined: bool,
}

/// One session, as its visitor would have it.
pub(crate) trait Script {
    /// The next page, after the last one and all it embeds were seen; none when the session is complete.
    fn next(&mut self) -> Option<Page>;

    /// What the page that was asked for last embeds; it is told its body where [`reads`](Self::reads) says so.
    fn parts(&mut self, body: &[u8]) -> Parts;

    /// Whether it must see what is in a page.
    fn reads(&self) -> bool;

    /// Pages that the session is to have if nothing stops it; known before it begins.
    fn length(&self) -> u64;
}

/// A session of SURGE: all is known before.
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

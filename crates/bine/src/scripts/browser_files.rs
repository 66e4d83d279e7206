//! The modules of an application for the browser, and the responses for them.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use bine_http::{Head, Status};
use bine_tsx::browser_hash;

use crate::respond::Response;

/// The folder of the modules, below the URL of their application. No page has a path with `_` at its
/// start.
pub(super) const FOLDER: &str = "/_js/";
pub(super) const ENDING: &str = ".js";
/// The bytes of modules that an application keeps for pages of earlier generations.
const MAX_KEPT: usize = 4 << 20;

/// A module of the browser.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct BrowserFile {
    /// A hash of the code: its name in the URL.
    pub(super) hash: String,
    code: Arc<str>,
}

/// The modules of the current generation and of earlier ones, by hash: an open page may use those that
/// it came with.
#[derive(Default)]
pub(super) struct BrowserFiles {
    /// The newest last.
    files: Mutex<VecDeque<BrowserFile>>,
}

impl BrowserFiles {
    /// Adds the modules of a new generation. The oldest earlier modules are forgotten when all are
    /// too large.
    pub(super) fn add(&self, new: &[BrowserFile]) {
        let mut files = self.files.lock().unwrap_or_else(PoisonError::into_inner);
        files.retain(|old| new.iter().all(|file| file.hash != old.hash));
        files.extend(new.iter().cloned());
        let mut size: usize = files.iter().map(|file| file.code.len()).sum();
        while files.len() > new.len() && size > MAX_KEPT {
            size -= files.pop_front().map_or(0, |oldest| oldest.code.len());
        }
    }

    fn find(&self, hash: &str) -> Option<BrowserFile> {
        let files = self.files.lock().unwrap_or_else(PoisonError::into_inner);
        files.iter().find(|file| file.hash == hash).cloned()
    }
}

/// A request for a module.
pub(super) struct ModuleRequest {
    hash: String,
    /// The status in place of the module: the client has it.
    status: Option<Status>,
}

impl ModuleRequest {
    /// `path` is below the application's URL. `None`: it is not one of a module.
    pub(super) fn of(path: &str, head: &Head<'_>) -> Option<Self> {
        let hash = path.strip_prefix(FOLDER)?.strip_suffix(ENDING)?.to_owned();
        let status = bine_files::evaluate_etag(head, &tag(&hash));
        Some(Self { hash, status })
    }

    /// The module, or 304 if the client has it; `None` if there is no such module. After a start, the
    /// page may not have been requested yet, and `compile` then adds its modules.
    pub(super) fn response(self, files: &BrowserFiles, compile: impl FnOnce()) -> Option<Response> {
        let file = files.find(&self.hash).or_else(|| {
            compile();
            files.find(&self.hash)
        })?;
        let response = match self.status {
            Some(status) => Response::status(status),
            None => {
                Response::bytes("text/javascript; charset=utf-8", file.code.as_bytes().to_vec())
            }
        };
        // The URL changes with the content, and the rule of the application may not admit everyone.
        let response =
            response.with_header("Cache-Control", "private, max-age=31536000, immutable");
        Some(response.with_header("ETag", tag(&self.hash)))
    }
}

fn tag(hash: &str) -> String {
    format!("\"{hash}\"")
}

impl BrowserFile {
    pub(super) fn new(code: String) -> Self {
        Self { hash: browser_hash(&code), code: code.into() }
    }
}

//! Responds to requests for files.

use std::fs::Metadata;
use std::os::unix::fs::MetadataExt;
use std::sync::Arc;

use bine_http::{Method, Status};
use bine_log as log;
use bine_server::{Answer, Clock, Incoming, Outgoing};

use crate::cache::{Cache, Capacity};
use crate::description::Description;
use crate::encoding::{BY_SIZE, extension};
use crate::listing::Listing;
use crate::location;
use crate::media;
use crate::open_files::OpenFiles;
use crate::resource::{Precompressed, Resource};
use crate::response::Responder;
use crate::root::{Failure, Found, Root};
use crate::rules::Rules;

/// The methods of a file.
const ALLOW: &str = "Allow: GET, HEAD, OPTIONS\r\n";

/// The capacity of one thread's cache of small files.
const CACHE_CAPACITY: Capacity = Capacity { entries: 1024, bytes: 8 << 20 };
/// The number of large files that one thread keeps open.
const MAX_OPEN_FILES: usize = 64;

/// One thread's cache of a [`Root`]: small files in memory, large files open.
///
/// Each thread looks up a path in the root at most once per second. It therefore serves a file that
/// was changed, replaced or removed in its old state for the rest of that second.
#[derive(Debug)]
pub struct Files {
    root: Arc<Root>,
    rules: Arc<Rules>,
    small: Cache<Resource>,
    large: OpenFiles,
}

impl Files {
    /// Creates an empty cache.
    pub fn new(root: Arc<Root>, rules: Arc<Rules>) -> Self {
        Self {
            root,
            rules,
            small: Cache::new(CACHE_CAPACITY),
            large: OpenFiles::new(MAX_OPEN_FILES),
        }
    }

    /// Responds to a request for `path`, which is decoded and begins with `/`. Returns `None` and
    /// writes nothing if no such file exists.
    ///
    /// GET and HEAD receive the file, OPTIONS the list of methods, and any other method status 405.
    /// A directory's path with a trailing slash means its index; without the slash it is
    /// redirected. Names that begin with a dot are hidden, except `/.well-known/`, unless the rules
    /// serve them.
    pub fn respond(
        &mut self,
        path: &str,
        request: &Incoming<'_>,
        clock: &Clock,
        out: &mut Outgoing<'_>,
    ) -> Option<Answer> {
        let (second, method) = (clock.unix(), request.exchange.method);
        let (exchange, head) = (request.exchange, Some(request.head));
        let mut responder = Responder { buffer: out.buffer, exchange, head, date: clock.date() };
        let response = match method {
            Method::Get | Method::Head => {
                self.large.advance_to(second);
                if let Some(file) = self.small.get(path)
                    && file.is_fresh(second)
                {
                    return Some(file.respond(&mut responder));
                }
                if let Some(file) = self.large.get(path) {
                    return Some(file.respond(&mut responder));
                }
                self.load(path, second, &mut responder)
            }
            _ => self.root.find(path, &self.rules).map(|_| list_methods(&mut responder)),
        };
        match response {
            Ok(answer) => Some(answer),
            Err(Failure::NotFound) => {
                self.small.remove(path);
                None
            }
            Err(Failure::System(error)) => {
                log::error(format_args!("cannot look up the file {path:?}: {error}"));
                Some(service_unavailable(&mut responder))
            }
        }
    }

    /// Responds with the current state on disk and caches it.
    fn load(
        &mut self,
        path: &str,
        second: u64,
        responder: &mut Responder<'_>,
    ) -> Result<Answer, Failure> {
        let (file, metadata, index) = match self.root.find(path, &self.rules)? {
            Found::File(file, metadata, index) => (file, metadata, index),
            Found::Directory => {
                let location = location::directory_location(
                    path,
                    responder.head.and_then(|head| head.query()),
                );
                return Ok(redirect(responder, &location));
            }
            Found::Unindexed => {
                let (root, rules) = (Arc::clone(&self.root), Arc::clone(&self.rules));
                return Ok(Answer::Work(Arc::new(Listing { root, rules, path: path.to_owned() })));
            }
        };
        let index = index.map(|position| &*self.rules.index[position]);
        let precompressed = self.precompressed(path, index, &metadata)?;
        if let Some(known) = self.small.get(path)
            && known.revalidate(&metadata, &precompressed, second)
        {
            return Ok(known.respond(responder));
        }
        let (rules, name) = (&self.rules, index.unwrap_or(path));
        let resource =
            Resource::read(file, metadata, precompressed, second, |metadata, variant| {
                Description::of(name, metadata, second, variant, &rules.fields_of(path))
            })?;
        let answer = resource.respond(responder);
        match resource.cached_bytes() {
            Some(length) => self.small.insert(path, resource, length),
            None => {
                self.small.remove(path);
                self.large.insert(path, resource);
            }
        }
        Ok(answer)
    }

    /// Opens the precompressed variants of a file. A variant that is older than the file belongs to
    /// earlier content and is ignored. Whole seconds count: `brotli` gives its result the time of the
    /// original, without the fraction.
    fn precompressed(
        &self,
        path: &str,
        index: Option<&str>,
        metadata: &Metadata,
    ) -> Result<Vec<Precompressed>, Failure> {
        let mut precompressed = Vec::new();
        if !self.rules.precompressed || media::is_compressed(index.unwrap_or(path)) {
            return Ok(precompressed);
        }
        for encoding in BY_SIZE {
            let name = [path, index.unwrap_or_default(), extension(encoding)].concat();
            match self.root.find(&name, &self.rules) {
                Ok(Found::File(file, own, _)) if own.mtime() >= metadata.mtime() => {
                    precompressed.push(Precompressed { encoding, file, metadata: own });
                }
                Ok(_) | Err(Failure::NotFound) => {}
                Err(failure) => return Err(failure),
            }
        }
        Ok(precompressed)
    }
}

/// Responds with the allowed methods, to OPTIONS or to a method that is not allowed.
fn list_methods(responder: &mut Responder<'_>) -> Answer {
    let status = match responder.exchange.method {
        Method::Options => Status::NO_CONTENT,
        _ => Status::METHOD_NOT_ALLOWED,
    };
    let mut reply = responder.start(status);
    reply.static_lines(ALLOW);
    reply.empty();
    Answer::Written { close: false }
}

fn redirect(responder: &mut Responder<'_>, location: &str) -> Answer {
    let mut reply = responder.start(Status::MOVED_PERMANENTLY);
    reply.field("Location", location).expect("a location is written in graphic ASCII alone");
    reply.empty();
    Answer::Written { close: false }
}

/// Responds with 503 rather than 404, because the file may exist.
fn service_unavailable(responder: &mut Responder<'_>) -> Answer {
    let mut reply = responder.start(Status::SERVICE_UNAVAILABLE);
    reply.static_lines("Retry-After: 1\r\n");
    reply.empty();
    Answer::Written { close: false }
}

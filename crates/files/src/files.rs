//! Decides how a request for a file is answered.

use std::fs::Metadata;
use std::sync::Arc;

use bine_http::{Method, Status};
use bine_pipeline::{Answer, Clock, Incoming, Outgoing, log};

use crate::cache::{Cache, Capacity};
use crate::description::Description;
use crate::encoding::Encoding;
use crate::listing::Listing;
use crate::location;
use crate::media;
use crate::open::OpenFiles;
use crate::resource::{Precompressed, Resource};
use crate::response::Responder;
use crate::root::{Failure, Found, Root};
use crate::rules::Rules;

/// What a file can be asked.
const ALLOW: &str = "Allow: GET, HEAD, OPTIONS\r\n";

/// What one thread keeps of small files.
const CACHE_CAPACITY: Capacity = Capacity { entries: 1024, bytes: 8 << 20 };
/// How many large files one thread keeps open.
const MAX_OPEN_FILES: usize = 64;

/// One thread's view of a [`Root`]: small files in memory, large ones open.
///
/// What a path means is looked up in the root at most once a second and thread. A file that was changed,
/// replaced or removed is therefore served as it was for the rest of that second.
#[derive(Debug)]
pub struct Files {
    root: Arc<Root>,
    rules: Arc<Rules>,
    small: Cache<Resource>,
    large: OpenFiles,
}

impl Files {
    /// A view that has seen nothing yet.
    pub fn new(root: Arc<Root>, rules: Arc<Rules>) -> Self {
        Self {
            root,
            rules,
            small: Cache::new(CACHE_CAPACITY),
            large: OpenFiles::new(MAX_OPEN_FILES),
        }
    }

    /// Answers a request for `path`, which is decoded and begins with `/`. `None`: there is no such file, and
    /// nothing was written.
    ///
    /// GET and HEAD get the file, OPTIONS is told of them, any other method is refused. A directory is its
    /// index; without the slash at its end it is redirected there. A name with a dot in front is hidden,
    /// but for `/.well-known/`, if the rules say no other.
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
                log::error(format_args!("cannot look for the file {path:?}: {error}"));
                Some(service_unavailable(&mut responder))
            }
        }
    }

    /// Answers with what lies on the disk now, and remembers it.
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

    /// The packed forms of a file that lie beside it. One that is older than the file is a form of another.
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
        for encoding in Encoding::ALL {
            let name = [path, index.unwrap_or_default(), encoding.extension()].concat();
            match self.root.find(&name, &self.rules) {
                Ok(Found::File(file, own, _)) if own.modified()? >= metadata.modified()? => {
                    precompressed.push(Precompressed { encoding, file, metadata: own });
                }
                Ok(_) | Err(Failure::NotFound) => {}
                Err(failure) => return Err(failure),
            }
        }
        Ok(precompressed)
    }
}

/// Says what a file can be asked, to whom asked that or something else.
fn list_methods(responder: &mut Responder<'_>) -> Answer {
    let status = match responder.exchange.method {
        Method::Options => Status::NO_CONTENT,
        _ => Status::METHOD_NOT_ALLOWED,
    };
    let mut reply = responder.start(status);
    reply.constant(ALLOW);
    reply.empty();
    Answer::Written { close: false }
}

fn redirect(responder: &mut Responder<'_>, location: &str) -> Answer {
    let mut reply = responder.start(Status::MOVED_PERMANENTLY);
    reply.field("Location", location).expect("a location is written in graphic ASCII alone");
    reply.empty();
    Answer::Written { close: false }
}

/// The file may well be there, so this is no 404.
fn service_unavailable(responder: &mut Responder<'_>) -> Answer {
    let mut reply = responder.start(Status::SERVICE_UNAVAILABLE);
    reply.constant("Retry-After: 1\r\n");
    reply.empty();
    Answer::Written { close: false }
}

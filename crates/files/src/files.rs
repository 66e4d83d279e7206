//! Decides how a request for a file is answered.

use std::fs::Metadata;
use std::sync::Arc;

use bine_http::{Method, Status};
use bine_log as log;
use bine_pipeline::{Answer, Clock, Incoming, Outgoing};

use crate::answer::Blank;
use crate::cache::{Bounds, Cache};
use crate::coding::Coding;
use crate::description::Description;
use crate::listing::Listing;
use crate::location;
use crate::media;
use crate::open::OpenFiles;
use crate::resource::{Resource, Sibling};
use crate::root::{Failure, Found, Root};
use crate::rules::Rules;

/// What a file can be asked.
const ALLOW: &str = "Allow: GET, HEAD, OPTIONS\r\n";

/// What one thread keeps of small files.
const KEPT: Bounds = Bounds { entries: 1024, bytes: 8 << 20 };
/// How many large files one thread keeps open.
const KEPT_OPEN: usize = 64;

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
        Self { root, rules, small: Cache::new(KEPT), large: OpenFiles::new(KEPT_OPEN) }
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
        let mut blank = Blank { buffer: out.buffer, exchange, head, date: clock.date() };
        let answered = match method {
            Method::Get | Method::Head => {
                self.large.turn(second);
                if let Some(file) = self.small.find(path)
                    && file.is_fresh(second)
                {
                    return Some(file.answer(&mut blank));
                }
                if let Some(file) = self.large.find(path) {
                    return Some(file.answer(&mut blank));
                }
                self.look(path, second, &mut blank)
            }
            _ => self.root.find(path, &self.rules).map(|_| decline(&mut blank)),
        };
        match answered {
            Ok(answer) => Some(answer),
            Err(Failure::Absent) => {
                self.small.forget(path);
                None
            }
            Err(Failure::System(error)) => {
                log::error(format_args!("cannot look for the file {path:?}: {error}"));
                Some(unavailable(&mut blank))
            }
        }
    }

    /// Answers with what lies on the disk now, and remembers it.
    fn look(&mut self, path: &str, second: u64, blank: &mut Blank<'_>) -> Result<Answer, Failure> {
        let (file, metadata, index) = match self.root.find(path, &self.rules)? {
            Found::File(file, metadata, index) => (file, metadata, index),
            Found::Directory => {
                let location =
                    location::of_directory(path, blank.head.and_then(|head| head.query()));
                return Ok(redirect(blank, &location));
            }
            Found::Unindexed => {
                let (root, rules) = (Arc::clone(&self.root), Arc::clone(&self.rules));
                return Ok(Answer::Work(Arc::new(Listing { root, rules, path: path.to_owned() })));
            }
        };
        let index = index.map(|place| &*self.rules.index[place]);
        let siblings = self.siblings(path, index, &metadata)?;
        if let Some(known) = self.small.find(path)
            && known.confirm(&metadata, &siblings, second)
        {
            return Ok(known.answer(blank));
        }
        let (rules, name) = (&self.rules, index.unwrap_or(path));
        let resource = Resource::read(file, metadata, siblings, second, |metadata, variant| {
            Description::of(name, metadata, second, variant, &rules.fields_of(path))
        })?;
        let answer = resource.answer(blank);
        match resource.in_memory() {
            Some(length) => self.small.keep(path, resource, length),
            None => {
                self.small.forget(path);
                self.large.keep(path, resource);
            }
        }
        Ok(answer)
    }

    /// The packed forms of a file that lie beside it. One that is older than the file is a form of another.
    fn siblings(
        &self,
        path: &str,
        index: Option<&str>,
        metadata: &Metadata,
    ) -> Result<Vec<Sibling>, Failure> {
        let mut siblings = Vec::new();
        if !self.rules.precompressed || media::is_packed(index.unwrap_or(path)) {
            return Ok(siblings);
        }
        for coding in Coding::ALL {
            let name = [path, index.unwrap_or_default(), coding.extension()].concat();
            match self.root.find(&name, &self.rules) {
                Ok(Found::File(file, own, _)) if own.modified()? >= metadata.modified()? => {
                    siblings.push(Sibling { coding, file, metadata: own });
                }
                Ok(_) | Err(Failure::Absent) => {}
                Err(failure) => return Err(failure),
            }
        }
        Ok(siblings)
    }
}

/// Says what a file can be asked, to whom asked that or something else.
fn decline(blank: &mut Blank<'_>) -> Answer {
    let status = match blank.exchange.method {
        Method::Options => Status::NO_CONTENT,
        _ => Status::METHOD_NOT_ALLOWED,
    };
    let mut reply = blank.begin(status);
    reply.constant(ALLOW);
    reply.empty();
    Answer::Written { close: false }
}

fn redirect(blank: &mut Blank<'_>, location: &str) -> Answer {
    let mut reply = blank.begin(Status::MOVED_PERMANENTLY);
    reply.field("Location", location).expect("a location is written in graphic ASCII alone");
    reply.empty();
    Answer::Written { close: false }
}

/// The file may well be there, so this is no 404.
fn unavailable(blank: &mut Blank<'_>) -> Answer {
    let mut reply = blank.begin(Status::SERVICE_UNAVAILABLE);
    reply.constant("Retry-After: 1\r\n");
    reply.empty();
    Answer::Written { close: false }
}

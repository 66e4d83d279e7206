//! Decides how a request for a file is answered.

use std::sync::Arc;

use bine_http::{Method, Status};
use bine_pipeline::{Answer, Clock, Incoming, Outgoing, log};

use crate::answer::Blank;
use crate::cache::{Bounds, Cache};
use crate::description::Description;
use crate::location;
use crate::open::{OpenFile, OpenFiles};
use crate::root::{Failure, Found, Root};
use crate::rules::Rules;
use crate::small::SmallFile;

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
    small: Cache<SmallFile>,
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
        let (exchange, head) = (request.exchange, request.head);
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
        let (file, mut metadata, index) = match self.root.find(path, &self.rules)? {
            Found::File(file, metadata, index) => (file, metadata, index),
            Found::Directory => {
                let location = location::of_directory(path, blank.head.query());
                return Ok(redirect(blank, &location));
            }
        };
        if let Some(known) = self.small.find(path)
            && known.confirm(&metadata, second)
        {
            return Ok(known.answer(blank));
        }
        let name = index.map_or(path, |place| &self.rules.index[place]);
        let rules = &self.rules;
        let describe =
            |metadata: &_| Description::of(name, metadata, second, rules.fields_of(path));
        if let Some(small) = SmallFile::read(&file, &mut metadata, second, describe)? {
            let answer = small.answer(blank);
            let length = small.len();
            self.small.keep(path, small, length);
            return Ok(answer);
        }
        self.small.forget(path);
        let large = OpenFile::new(file, describe(&metadata));
        let answer = large.answer(blank);
        self.large.keep(path, large);
        Ok(answer)
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

//! Decides how what every page names in its head is served, and how it is named there: under an address that changes with
//! its content, so that it may be kept for ever.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::rc::Rc;
use std::sync::Arc;

use bine_http::Head;
use bine_server::{Answer, Bench, Clock, Incoming, Outgoing};

use crate::app_state::AppState;
use crate::links::Links;
use crate::methods::Methods;
use crate::respond::{Asked, Response};
use crate::route::{Caller, Kind, LocalCaller, Place, Route, Told};

/// The style sheet of a program, or the script of its pages.
#[derive(Debug)]
pub(crate) struct Linked {
    text: &'static str,
    media_type: &'static str,
    path: &'static str,
    name: &'static str,
    /// Of the text.
    hash: String,
    /// A strong validator, quotes and all.
    tag: String,
}

impl Linked {
    /// The style sheet.
    pub(crate) fn style(text: String) -> Self {
        // It lives as long as the program, which has one.
        Self::new(text.leak(), "text/css; charset=utf-8", "style", "css")
    }

    /// The script.
    pub(crate) fn script(text: &'static str) -> Self {
        Self::new(text, "text/javascript; charset=utf-8", "live", "js")
    }

    /// By which a page's own script finds this one, at an address that does not change.
    pub(crate) fn door(&self) -> Self {
        let text = bine_browser::reexport_module(self.path).leak();
        Self { path: "/_bine/live.js", ..Self::new(text, self.media_type, "door", "js") }
    }

    fn new(text: &'static str, media_type: &'static str, name: &'static str, ending: &str) -> Self {
        let hash = hash(text);
        let path = format!("/_bine/{name}-{hash}.{ending}").leak();
        Self { text, media_type, path, name, tag: format!("\"{hash}\""), hash }
    }

    fn markup(&self) -> String {
        match self.name {
            "style" => format!("<link rel=\"stylesheet\" href=\"{}\" />", self.path),
            _ => format!("<script type=\"module\" src=\"{}\"></script>", self.path),
        }
    }

    /// The links to all of these; `None`: there are none.
    pub(crate) fn links(all: &[Self]) -> Option<Links> {
        let markup = all.iter().map(Self::markup).collect();
        let hash = match all {
            [] => return None,
            [one] => one.hash.clone(),
            several => hash(&several.iter().map(|linked| &*linked.hash).collect::<String>()),
        };
        Some(Links::new(markup, hash))
    }

    /// The route that serves it.
    pub(crate) fn route(self) -> Route {
        let (path, name) = (self.path, self.name);
        let told = Told { kind: Kind::Asset, ..Told::default() };
        Route::new(Methods::GET, path, name, Shared(Arc::new(self))).told(told)
    }

    /// The text, or that the peer has it (RFC 9110 section 13).
    fn response(&self, head: &Head<'_>) -> Response {
        let response = match bine_files::evaluate_etag(head, &self.tag) {
            Some(status) => Response::status(status),
            None => Response::bytes(self.media_type, self.text.as_bytes()),
        };
        let kept = match self.name {
            "door" => "no-cache",
            _ => "public, max-age=31536000, immutable",
        };
        response.with_field("Cache-Control", kept).with_field("ETag", self.tag.clone())
    }
}

fn hash(text: &str) -> String {
    let mut hasher = DefaultHasher::new();
    text.hash(&mut hasher);
    format!("{:016x}", hasher.finish())
}

struct Shared(Arc<Linked>);

struct Local {
    linked: Arc<Linked>,
    clock: Rc<Clock>,
    app: Arc<AppState>,
}

impl Caller for Shared {
    fn local(&self, bench: &Bench, place: &Place) -> Box<dyn LocalCaller> {
        Box::new(Local {
            linked: Arc::clone(&self.0),
            clock: Rc::clone(&bench.clock),
            app: Arc::clone(&place.app),
        })
    }
}

impl LocalCaller for Local {
    fn call(&mut self, incoming: &Incoming<'_>, out: &mut Outgoing<'_>) -> Answer {
        let response = self.linked.response(&incoming.head);
        response.answer(Asked::by(incoming), &self.clock, &self.app.look, out)
    }
}

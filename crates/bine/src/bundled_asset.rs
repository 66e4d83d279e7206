//! The program's style sheet and script, which every page links to. Their addresses contain a hash
//! of the content, so that browsers may cache them forever.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::rc::Rc;
use std::sync::Arc;

use bine_http::Head;
use bine_server::{Answer, Clock, HandlerContext, Incoming, Outgoing};

use crate::app_state::AppState;
use crate::links::Links;
use crate::methods::Methods;
use crate::respond::{RequestSummary, Response};
use crate::route::{LocalHandler, Route, RouteContext, RouteHandler, RouteInfo, RouteKind};

/// The path of the script, for modules that import it.
#[cfg(any(feature = "browser", feature = "script"))]
pub(crate) fn script_path() -> &'static str {
    static PATH: std::sync::LazyLock<&str> =
        std::sync::LazyLock::new(|| BundledAsset::script(bine_browser::SCRIPT).path);
    *PATH
}

/// The style sheet of a program, or the script of its pages.
#[derive(Debug)]
pub(crate) struct BundledAsset {
    text: &'static str,
    media_type: &'static str,
    path: &'static str,
    name: &'static str,
    /// The hash of the text.
    hash: String,
    /// A strong validator, including the quotes.
    tag: String,
}

impl BundledAsset {
    /// Creates the style sheet.
    pub(crate) fn style(text: String) -> Self {
        // The leak is bounded: a program has a single style sheet, for its whole life.
        Self::new(text.leak(), "text/css; charset=utf-8", "style", "css")
    }

    /// Creates the script.
    pub(crate) fn script(text: &'static str) -> Self {
        Self::new(text, "text/javascript; charset=utf-8", "live", "js")
    }

    /// Creates the module that shows times.
    pub(crate) fn times() -> Self {
        Self::new(bine_browser::TIMES, "text/javascript; charset=utf-8", "times", "js")
    }

    /// Creates the module that re-exports this script at a fixed address, for the program's own
    /// scripts.
    pub(crate) fn door(&self) -> Self {
        let text = bine_browser::reexport_module(self.path).leak();
        Self { path: "/_bine/live.js", ..Self::new(text, self.media_type, "door", "js") }
    }

    /// Creates a module of the browser, whose path has a hash of the text.
    #[cfg(feature = "browser")]
    pub(crate) fn module(path: &'static str, text: &'static str) -> Self {
        Self { path, ..Self::new(text, "text/javascript; charset=utf-8", "module", "js") }
    }

    /// Creates the module with the services that modules of the browser import.
    #[cfg(feature = "browser")]
    pub(crate) fn services(path: &'static str, text: &'static str) -> Self {
        Self { path, ..Self::new(text, "text/javascript; charset=utf-8", "services", "js") }
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

    /// The links to all of these, or `None` if the list is empty.
    pub(crate) fn links(all: &[Self]) -> Option<Links> {
        let markup = all.iter().map(Self::markup).collect();
        let hash = match all {
            [] => return None,
            [one] => one.hash.clone(),
            several => hash(&several.iter().map(|asset| &*asset.hash).collect::<String>()),
        };
        Some(Links::new(markup, hash))
    }

    /// The route that serves the asset.
    pub(crate) fn route(self) -> Route {
        let (path, name) = (self.path, self.name);
        let info = RouteInfo { kind: RouteKind::Asset, ..RouteInfo::default() };
        Route::new(Methods::GET, path, name, SharedBundledAsset(Arc::new(self))).info(info)
    }

    /// The text, or 304 if the client has it (RFC 9110 section 13).
    fn response(&self, head: &Head<'_>) -> Response {
        let response = match bine_files::evaluate_etag(head, &self.tag) {
            Some(status) => Response::status(status),
            None => Response::bytes(self.media_type, self.text.as_bytes()),
        };
        let kept = match self.name {
            "door" | "services" => "no-cache",
            _ => "public, max-age=31536000, immutable",
        };
        response.with_header("Cache-Control", kept).with_header("ETag", self.tag.clone())
    }
}

fn hash(text: &str) -> String {
    let mut hasher = DefaultHasher::new();
    text.hash(&mut hasher);
    format!("{:016x}", hasher.finish())
}

struct SharedBundledAsset(Arc<BundledAsset>);

struct Local {
    asset: Arc<BundledAsset>,
    clock: Rc<Clock>,
    app: Arc<AppState>,
}

impl RouteHandler for SharedBundledAsset {
    fn local(
        &self,
        handler_context: &HandlerContext,
        context: &RouteContext,
    ) -> Box<dyn LocalHandler> {
        Box::new(Local {
            asset: Arc::clone(&self.0),
            clock: Rc::clone(&handler_context.clock),
            app: Arc::clone(&context.app),
        })
    }
}

impl LocalHandler for Local {
    fn call(&mut self, incoming: &Incoming<'_>, out: &mut Outgoing<'_>) -> Answer {
        let response = self.asset.response(&incoming.head);
        response.answer(RequestSummary::by(incoming), &self.clock, &self.app.templates, out)
    }
}

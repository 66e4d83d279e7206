//! The routes of an application: for its pages and public files, for its services, and for its URL
//! without the final slash.

use std::io::ErrorKind;
use std::rc::Rc;
use std::sync::Arc;

use bine_files::{Files, Root, Rules};
use bine_http::query;
use bine_log as log;
use bine_script::Value;
use bine_server::{Answer, Clock, HandlerContext, Incoming, Outgoing};

use super::application::{Application, PageListing};
use super::browser_files::ModuleRequest;
use super::folders::PUBLIC;
use super::interned::interned;
use super::page::PageCall;
use super::service::AppServices;
use crate::app_state::AppState;
use crate::arguments::Needs;
use crate::health::is_asked_at;
use crate::methods::Methods;
use crate::respond::Response;
use crate::route::{LocalHandler, Route, RouteContext, RouteHandler, RouteInfo};
use crate::service::{Caller, dynamic_route};

/// The parameter of an application's routes.
const PATH: &str = "path";

/// The routes of an application.
pub(super) fn routes(app: &Arc<Application>) -> Vec<Route> {
    let url = app.url.as_str();
    let name = interned(&format!("script {}", app.name()));
    let below = interned(&format!("{url}/{{{PATH}..}}"));
    let services = Arc::new(AppServices { app: Arc::clone(app), handler: name });
    let pages = |path: &'static str| {
        let handler = PageHandler { app: Arc::clone(app), pages: page_route(app, path, name) };
        let route = Route::new(Methods::GET, path, name, handler);
        let rule = Some(app.listing(None).rule.access());
        route
            .info(RouteInfo { rule, ..RouteInfo::default() })
            .needing(&[|needs: &mut Needs| needs.sessions = true])
    };
    let mut routes = vec![
        pages(interned(&format!("{url}/"))),
        pages(below),
        dynamic_route(below, PATH, name, &services),
    ];
    if !url.is_empty() {
        let location = format!("{url}/");
        routes.push(Route::future(Methods::GET, interned(url), name, move |_| {
            let response = Response::permanent_redirect(location.clone());
            Ok(async move { response })
        }));
    }
    routes
}

/// The route that renders pages.
fn page_route(app: &Arc<Application>, path: &'static str, name: &'static str) -> Route {
    let app = Arc::clone(app);
    Route::future(Methods::GET, path, name, move |arguments| {
        let listing = app.listing(None);
        let head = &arguments.incoming.head;
        let path = head.path();
        let below = path.strip_prefix(app.url.as_str()).unwrap_or(&path);
        let page = listing.router.find(below);
        let mut parameters = Vec::new();
        if let Some(page) = page {
            let of_path = listing.router.parameters(page, below);
            parameters.extend(of_path.map(|(name, value)| (name.to_owned(), Value::from(value))));
        }
        add_query(head.query().unwrap_or_default(), &mut parameters);
        let call = PageCall {
            app: Arc::clone(&app),
            listing,
            page,
            module: ModuleRequest::of(below, head),
            parameters: Value::Object(parameters),
            caller: Caller::of_page(arguments.incoming, arguments.app),
            develops: arguments.app.templates.shows_causes(),
            handler: name,
        };
        Ok(call.answer())
    })
}

/// Names that an object of a script must not get from a client.
const REFUSED: [&str; 3] = ["__proto__", "constructor", "prototype"];

/// Adds the parameters of the query. A parameter of the path, and the first of several with one name,
/// takes precedence. Those that are not UTF-8 are omitted.
fn add_query(query: &str, parameters: &mut Vec<(String, Value)>) {
    for (name, value) in query::pairs(query) {
        let (Ok(name), Ok(value)) = (name.decode(), value.decode()) else { continue };
        let is_known = parameters.iter().any(|(known, _)| *known == name);
        if !is_known && !REFUSED.contains(&&*name) {
            parameters.push((name.into_owned(), Value::Text(value.into_owned())));
        }
    }
}

/// Answers requests for pages and public files of an application.
struct PageHandler {
    app: Arc<Application>,
    pages: Route,
}

struct LocalPageHandler {
    app: Arc<Application>,
    pages: Box<dyn LocalHandler>,
    /// The public files, if there is such a folder.
    files: Option<Files>,
    listing: Arc<PageListing>,
    clock: Rc<Clock>,
    program: Arc<AppState>,
}

impl RouteHandler for PageHandler {
    fn local(
        &self,
        handler_context: &HandlerContext,
        context: &RouteContext,
    ) -> Box<dyn LocalHandler> {
        let listing = self.app.listing(None);
        let folder = listing.app.folder.join(PUBLIC);
        let files = match Root::open(&folder) {
            Ok(root) => Some(Files::new(Arc::new(root), Arc::new(Rules::default()))),
            Err(error) if error.kind() == ErrorKind::NotFound => None,
            Err(error) => {
                log::error(format_args!(
                    "the files of {} are not served: {error}",
                    self.app.name()
                ));
                None
            }
        };
        Box::new(LocalPageHandler {
            app: Arc::clone(&self.app),
            pages: self.pages.handler.local(handler_context, context),
            files,
            listing,
            clock: Rc::clone(&handler_context.clock),
            program: Arc::clone(&context.app),
        })
    }
}

impl LocalHandler for LocalPageHandler {
    fn call(&mut self, incoming: &Incoming<'_>, out: &mut Outgoing<'_>) -> Answer {
        if self.program.templates.shows_causes() {
            self.app.check_files(false);
        }
        self.listing = self.app.listing(Some(&self.listing));
        let path = incoming.head.path();
        let below = path.strip_prefix(self.app.url.as_str()).unwrap_or(&path);
        if self.listing.router.find(below).is_none()
            && let Some(files) = &mut self.files
            && let Some(answer) = files.respond(below, incoming, &self.clock, out)
        {
            return answer;
        }
        self.pages.call(incoming, out)
    }

    fn accepts(&self, path: &str) -> bool {
        // An application at the root of the site has all paths, but health checks are not its own.
        !is_asked_at(path) || self.listing.router.find(path).is_some()
    }
}

//! Decides which handler a request belongs to.

use std::fmt;
use std::sync::Arc;

use bine_http::{Head, Method, Status};
use bine_pipeline::{Answer, Bench, Handler, Incoming, Outgoing, Responder, Who};

use crate::respond::Response;
use crate::route::{LocalCaller, Route};
use crate::sites::{LocalSites, Sites};

/// Everything a program serves, as the pipeline sees it.
pub(crate) struct Program {
    /// By path, each path once.
    routes: Arc<[Route]>,
    sites: Sites,
}

/// A path that two routes claim.
#[derive(Debug)]
pub(crate) struct Claimed {
    pub(crate) path: &'static str,
    pub(crate) by: [&'static str; 2],
}

impl fmt::Display for Claimed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { path, by: [one, other] } = self;
        write!(f, "{one} and {other} are both at {path}; give one of them another path")
    }
}

impl Program {
    /// `routes` as [`ordered`] gives them.
    pub(crate) const fn new(routes: Arc<[Route]>, sites: Sites) -> Self {
        Self { routes, sites }
    }
}

/// The routes by path, each path once.
pub(crate) fn ordered(mut routes: Vec<Route>) -> Result<Arc<[Route]>, Claimed> {
    routes.sort_by_key(|route| route.path);
    for pair in routes.windows(2) {
        if pair[0].path == pair[1].path {
            return Err(Claimed { path: pair[0].path, by: [pair[0].name, pair[1].name] });
        }
    }
    Ok(routes.into())
}

impl Handler for Program {
    fn local(&self, bench: Bench) -> Box<dyn Responder> {
        let routes = self.routes.iter().map(|route| LocalRoute {
            path: route.path,
            name: route.name,
            caller: route.caller.local(&bench),
        });
        Box::new(LocalProgram {
            routes: routes.collect(),
            sites: self.sites.local(),
            bench,
            last: "",
        })
    }
}

struct LocalProgram {
    routes: Box<[LocalRoute]>,
    sites: LocalSites,
    bench: Bench,
    last: &'static str,
}

struct LocalRoute {
    path: &'static str,
    name: &'static str,
    caller: Box<dyn LocalCaller>,
}

impl Responder for LocalProgram {
    fn admit(&mut self, _head: &Head<'_>) -> Who {
        Who::Anonymous
    }

    fn respond(&mut self, request: &Incoming<'_>, out: &mut Outgoing<'_>) -> Answer {
        // Decoded and freed of dot segments; a plain path costs nothing here.
        let path = request.head.path();
        let site = self.sites.find(request.head.authority());
        if site.pages
            && let Ok(place) = self.routes.binary_search_by(|route| route.path.cmp(&path))
        {
            let route = &mut self.routes[place];
            self.last = route.name;
            return route.caller.call(request, out);
        }
        self.last = "files";
        if let Some(answer) = site.respond(&path, request, &self.bench.clock, out) {
            return answer;
        }
        let response = if path == "*" && request.head.method() == Method::Options {
            Response::status(Status::NO_CONTENT).with_field("Allow", "GET, HEAD, OPTIONS")
        } else {
            Response::text("there is nothing at this address\n").with_status(Status::NOT_FOUND)
        };
        response.answer(request.exchange, &self.bench.clock, out)
    }

    fn last(&self) -> &'static str {
        self.last
    }
}

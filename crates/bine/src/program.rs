//! Decides which handler a request belongs to.

use std::sync::Arc;

use bine_files::{Files, Root};
use bine_http::{Head, Method, Status};
use bine_pipeline::{Answer, Bench, Handler, Incoming, Outgoing, Responder, Who};

use crate::respond::Response;
use crate::route::{LocalCaller, Route};

/// Everything a program serves, as the pipeline sees it.
pub(crate) struct Program {
    /// By path, each path once.
    routes: Box<[Route]>,
    root: Option<Arc<Root>>,
}

/// A path that two routes claim.
#[derive(Debug)]
pub(crate) struct Claimed {
    pub(crate) path: &'static str,
    pub(crate) by: [&'static str; 2],
}

impl Program {
    pub(crate) fn new(mut routes: Vec<Route>, root: Option<Root>) -> Result<Self, Claimed> {
        routes.sort_by_key(|route| route.path);
        for pair in routes.windows(2) {
            if pair[0].path == pair[1].path {
                return Err(Claimed { path: pair[0].path, by: [pair[0].name, pair[1].name] });
            }
        }
        Ok(Self { routes: routes.into_boxed_slice(), root: root.map(Arc::new) })
    }
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
            files: self.root.clone().map(Files::new),
            bench,
            last: "",
        })
    }
}

struct LocalProgram {
    routes: Box<[LocalRoute]>,
    files: Option<Files>,
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
        if let Ok(place) = self.routes.binary_search_by(|route| route.path.cmp(&path)) {
            let route = &mut self.routes[place];
            self.last = route.name;
            return route.caller.call(request, out);
        }
        self.last = "files";
        if let Some(files) = &mut self.files
            && let Some(answer) = files.respond(&path, request, &self.bench.clock, out)
        {
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

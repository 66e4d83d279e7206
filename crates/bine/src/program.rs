//! Request routing: hosts, redirects, filters, channels, pages, files and health checks, in this
//! order.

use std::sync::Arc;

use bine_http::{Event, Head, Limits, Method, RequestParser, SecurityHeaders, Status};
use bine_log as log;
use bine_server::{
    Answer, Bench, Clock, Handler, Incoming, Outgoing, Peer, Responder, Retained, Who,
};

use crate::acme::Acme;
use crate::app_state::{AppState, RedirectTargets};
use crate::arguments::Needs;
use crate::channels::{self, Channels, Face};
use crate::filter::{Filter, Rewritten, Seen, Verdict, rewritten};
use crate::gate::{AdmissionDecision, Gate, with_line};
use crate::health::{Health, HealthChoices, NAME as HEALTH, is_asked_at};
use crate::hosts::{self, Hosts, LocalHosts};
use crate::live::{Live, is_stream};
use crate::methods::Methods;
use crate::origin::is_foreign;
use crate::pattern::Pattern;
use crate::respond::{RequestSummary, Response, write_panic_response};
use crate::route::{LocalHandler, Route, RouteContext, RouteKind};
use crate::router::Router;
use crate::security::{self, HeaderChoices};
use crate::sessions::Keeper;
use crate::sessions::ticket::Tickets;
use crate::sites::{LocalSites, Sites, without_port};
use crate::tables::Tables;
use crate::templates::Templates;

/// All content that a program serves under one configuration: the handler that the server core
/// calls.
pub(crate) struct Program {
    pages: Arc<Pages>,
    sites: Sites,
    /// The redirect for clients without TLS, if any.
    https: Option<Redirect>,
    /// The hosts that the server answers for.
    hosts: Arc<Hosts>,
    /// Answers the authority's challenges; `None` if no authority is in use.
    proofs: Option<Arc<Acme>>,
    /// How health checks are answered.
    health: HealthChoices,
}

/// The part of a program that does not depend on the configuration.
pub(crate) struct Pages {
    resources: Box<[Resource]>,
    /// Routes over the resources' patterns.
    router: Arc<Router>,
    filters: Arc<[Box<dyn Filter>]>,
    face: Face,
    app: Arc<AppState>,
    tickets: Arc<Tickets>,
    subsystems: Subsystems,
    /// The default security headers, which the configuration may override.
    headers: security::SecurityHeaders,
}

/// The subsystems of a program. They do not depend on the configuration.
pub(crate) struct Subsystems {
    pub(crate) tables: Arc<Tables>,
    /// Present in a program with channels.
    pub(crate) channels: Option<Channels>,
    /// Present in a program whose pages use sessions.
    pub(crate) sessions: Option<Arc<Keeper>>,
    /// The open live pages.
    pub(crate) live: Arc<Live>,
    pub(crate) health: Health,
}

/// A pattern, and the routes that share it.
struct Resource {
    pattern: Arc<Pattern>,
    routes: Vec<Route>,
}

impl Program {
    pub(crate) const fn new(
        pages: Arc<Pages>,
        sites: Sites,
        https: Option<Redirect>,
        hosts: Arc<Hosts>,
        proofs: Option<Arc<Acme>>,
        health: HealthChoices,
    ) -> Self {
        Self { pages, sites, https, hosts, proofs, health }
    }
}

impl Pages {
    /// Combines the parts of a program.
    ///
    /// # Errors
    ///
    /// Returns a message that names conflicting parts and the correction.
    pub(crate) fn new(
        routes: Vec<Route>,
        filters: Vec<Box<dyn Filter>>,
        face: Face,
        mut app: AppState,
        subsystems: Subsystems,
        headers: security::SecurityHeaders,
    ) -> Result<Self, String> {
        let mut resources: Vec<Resource> = Vec::new();
        check_needs("the access function of channels", &face.gate.needs(), &app)?;
        for route in routes {
            check_needs(route.name, &route.needs, &app)?;
            match resources.iter_mut().find(|resource| resource.routes[0].path == route.path) {
                Some(resource) => resource.add(route)?,
                None => {
                    let pattern = Pattern::new(route.path)
                        .map_err(|reason| format!("{}: {reason}", route.name))?;
                    resources.push(Resource { pattern: Arc::new(pattern), routes: vec![route] });
                }
            }
        }
        let router = Router::new(resources.iter().map(|resource| &*resource.pattern));
        let router = router.map_err(|places| {
            let [one, other] = places.map(|place| &resources[place].routes[0]);
            format!(
                "{} at {} and {} at {} would answer the same paths; change one of them",
                one.name, one.path, other.name, other.path
            )
        })?;
        let router = Arc::new(router);
        let is_shown = |resource: &Resource| {
            resource.routes.iter().any(|route| route.methods.has(Method::Get))
        };
        let answers_get = resources.iter().map(is_shown).collect();
        app.redirect_targets = RedirectTargets { router: Arc::clone(&router), answers_get };
        Ok(Self {
            resources: resources.into(),
            router,
            filters: filters.into(),
            face,
            tickets: Arc::new(Tickets::new(subsystems.sessions.clone())),
            app: Arc::new(app),
            subsystems,
            headers,
        })
    }

    /// The program's tables.
    pub(crate) fn tables(&self) -> &Tables {
        &self.subsystems.tables
    }

    /// The open live pages.
    pub(crate) fn live(&self) -> &Arc<Live> {
        &self.subsystems.live
    }

    /// The program's health.
    pub(crate) fn health(&self) -> &Health {
        &self.subsystems.health
    }

    /// The number of stored sessions, in a program with sessions.
    pub(crate) fn sessions(&self) -> Option<usize> {
        self.subsystems.sessions.as_ref()?.count()
    }

    /// The metrics of the channels, in a program with channels.
    pub(crate) fn channels(&self) -> Option<channels::Figures> {
        self.subsystems.channels.as_ref().map(channels::Channels::figures)
    }

    /// Sets the security headers of pages, and returns those of every response. The first call
    /// determines the content security policy.
    pub(crate) fn secure(&self, choices: &HeaderChoices) -> SecurityHeaders {
        let headers = self.headers.chosen(choices);
        self.app.templates.policy.get_or_init(|| headers.of_pages());
        headers.of_responses()
    }

    /// Sets whether errors display their causes.
    pub(crate) fn develop(&self, word: Option<bool>) {
        self.app.templates.develop(word);
    }

    /// Whether the program has neither pages nor channels.
    pub(crate) fn are_none(&self) -> bool {
        self.resources.is_empty() && self.subsystems.channels.is_none()
    }
}

/// Checks that the program has the shared values that the function called `name` takes.
fn check_needs(name: &str, needs: &Needs, app: &AppState) -> Result<(), String> {
    match needs.requirements.iter().find(|need| !app.states.has(need.kind)) {
        None => Ok(()),
        Some(need) => Err(format!("{name} {}", need.complaint)),
    }
}

impl Resource {
    fn add(&mut self, route: Route) -> Result<(), String> {
        match self.routes.iter().find(|other| other.methods.overlaps(route.methods)) {
            Some(other) => Err(format!(
                "{} and {} are both at {}; give one of them another path or other methods",
                other.name, route.name, route.path
            )),
            None => {
                self.routes.push(route);
                Ok(())
            }
        }
    }
}

impl Handler for Program {
    fn local(&self, bench: Bench) -> Box<dyn Responder> {
        let Pages { resources, router, filters, face, app, tickets, .. } = &*self.pages;
        let is_without_sessions = app.sessions.is_none();
        let resources = resources.iter().map(|resource| {
            let routes = resource.routes.iter().map(|route| {
                let (app, pattern) = (Arc::clone(app), Arc::clone(&resource.pattern));
                let Needs { body, on_disk, .. } = route.needs;
                let context = RouteContext { app, pattern, body, on_disk };
                let handler = route.handler.local(&bench, &context);
                let from_anywhere = route.from_anywhere || is_without_sessions;
                // Health checks must work under overload above all.
                let is_gated = route.info.kind != RouteKind::Asset && !is_asked_at(route.path);
                let (methods, name) = (route.methods, route.name);
                LocalRoute { methods, name, from_anywhere, is_gated, handler }
            });
            routes.collect()
        });
        Box::new(LocalProgram {
            router: Arc::clone(router),
            resources: resources.collect(),
            filters: Arc::clone(filters),
            sites: self.sites.local(),
            https: self.https,
            hosts: self.hosts.local(),
            proofs: self.proofs.clone(),
            health: self.health,
            face: face.clone(),
            app: Arc::clone(app),
            pages: Arc::clone(&self.pages),
            gate: Gate::new(Arc::clone(&bench.admission), Arc::clone(tickets)),
            bench,
            last: "",
        })
    }
}

struct LocalProgram {
    router: Arc<Router>,
    resources: Box<[Box<[LocalRoute]>]>,
    filters: Arc<[Box<dyn Filter>]>,
    sites: LocalSites,
    https: Option<Redirect>,
    hosts: LocalHosts,
    proofs: Option<Arc<Acme>>,
    health: HealthChoices,
    face: Face,
    app: Arc<AppState>,
    pages: Arc<Pages>,
    gate: Gate,
    bench: Bench,
    last: &'static str,
}

struct LocalRoute {
    methods: Methods,
    name: &'static str,
    /// Whether the route accepts submissions from other sites.
    from_anywhere: bool,
    /// Whether the route is dynamic and therefore subject to admission control.
    is_gated: bool,
    handler: Box<dyn LocalHandler>,
}

impl Responder for LocalProgram {
    fn admit(&mut self, head: &Head<'_>, peer: Peer) -> Who {
        let Some(keeper) = &self.pages.subsystems.sessions else { return Who::Anonymous };
        keeper.recognize(head, peer, self.bench.clock.unix())
    }

    fn respond(&mut self, request: &Incoming<'_>, out: &mut Outgoing<'_>) -> Answer {
        self.gate.open();
        if let Some(proofs) = &self.proofs
            && let Some(proof) = proofs.proof(request.head.target())
        {
            self.last = "acme";
            self.answer(request, Response::text(proof), out)
        } else if !self.hosts.accept(request.head.authority(), request.peer) {
            self.last = "hosts";
            self.answer(request, hosts::misdirected(), out)
        } else if let Some(redirect) = self.https
            && let Some(location) = https_location(request, redirect)
        {
            self.last = "https-redirect";
            self.answer(request, Response::moved(location), out)
        } else if self.filters.is_empty() {
            self.route(request, out)
        } else {
            self.filter(request, 0, out)
        }
    }

    fn failed(&mut self, request: &Incoming<'_>, out: &mut Vec<u8>) {
        write_panic_response(
            RequestSummary::by(request),
            &self.bench.clock,
            &self.app.templates,
            out,
        );
    }

    fn begins(&self) -> bool {
        self.gate.begins()
    }

    fn last(&self) -> &'static str {
        self.last
    }

    fn is_unlogged(&self) -> bool {
        self.last == HEALTH && !self.health.is_logged
    }
}

/// The redirect for clients without TLS.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Redirect {
    pub(crate) port: u16,
    /// Whether clients on this machine are exempt: health checks, or a reverse proxy.
    pub(crate) spares_local: bool,
}

/// The HTTPS address for a request without TLS. Requests on a Unix socket, requests without a host,
/// and ACME challenges (RFC 8555 section 8.3) get no redirect.
fn https_location(request: &Incoming<'_>, redirect: Redirect) -> Option<String> {
    let (head, peer) = (&request.head, request.peer);
    let Redirect { port, spares_local } = redirect;
    if peer.is_secure() || peer.ip().is_none() || spares_local && peer.is_local() {
        return None;
    }
    let path = path_and_query(head.target());
    if path.starts_with("/.well-known/acme-challenge/") {
        return None;
    }
    let host = without_port(head.authority()?);
    let slash = if path.starts_with('/') { "" } else { "/" };
    Some(if port == 443 {
        format!("https://{host}{slash}{path}")
    } else {
        format!("https://{host}:{port}{slash}{path}")
    })
}

/// The path and query of a request target as they were sent. In absolute form they follow a scheme
/// and an authority (RFC 9112 section 3.2.2), and the path may be missing; `*` has neither.
fn path_and_query(target: &str) -> &str {
    if target.starts_with('/') {
        return target;
    }
    let (_, rest) = target.split_once("://").unwrap_or_default();
    rest.find(['/', '?']).map_or("", |start| &rest[start..])
}

impl LocalProgram {
    /// Runs the filters from `first` on, then the route.
    fn filter(&mut self, request: &Incoming<'_>, first: usize, out: &mut Outgoing<'_>) -> Answer {
        self.last = "a filter";
        let (filters, app) = (Arc::clone(&self.filters), Arc::clone(&self.app));
        let sessions = app.sessions.as_ref();
        for (place, filter) in filters.iter().enumerate().skip(first) {
            // The path is decoded and has no dot segments. A plain path needs no allocation.
            let path = request.head.path();
            match filter.filter(&Seen { incoming: request, path: &path, sessions }) {
                Verdict::Pass => {}
                Verdict::Rewrite(target) => return self.rewrite(request, &target, place + 1, out),
                Verdict::Answer(response) => return self.answer(request, response, out),
            }
        }
        self.route(request, out)
    }

    fn rewrite(
        &mut self,
        request: &Incoming<'_>,
        target: &str,
        next: usize,
        out: &mut Outgoing<'_>,
    ) -> Answer {
        let bytes = rewritten(&request.head, target).unwrap_or_default();
        // The original head has passed the configured limits; the program's filter is trusted with
        // the new one.
        let limits = Limits { head: u32::MAX, target: u32::MAX, ..Limits::default() };
        let Event::Head(head) = RequestParser::new().receive(&bytes, &limits).event else {
            log::error(format_args!(
                "a filter rewrote a request to {target:?}, which is not a path"
            ));
            return self.answer(request, Response::status(Status::INTERNAL_SERVER_ERROR), out);
        };
        let request = Incoming { head, ..*request };
        match self.filter(&request, next, out) {
            Answer::Work(work) => {
                Answer::Work(Arc::new(Rewritten { work, request: Retained::of(&request) }))
            }
            answer => answer,
        }
    }

    fn route(&mut self, request: &Incoming<'_>, out: &mut Outgoing<'_>) -> Answer {
        let (path, method) = (request.head.path(), request.head.method());
        let site = self.sites.find(request.head.authority());
        if site.pages
            && let Some(answer) =
                self.face.respond(&path, request, &self.app, &self.bench.clock, out)
        {
            self.last = "channels";
            return answer;
        }
        if site.pages && is_stream(&path) {
            self.last = "live";
            return self.call_if_admitted(request, out, |own, out| {
                own.pages.subsystems.live.respond(request, &own.app, &own.bench.clock, out)
            });
        }
        let found = if site.pages { self.router.find(&path) } else { None };
        if let Some(place) = found {
            let routes = &mut self.resources[place];
            let fits = |route: &LocalRoute| route.methods.has(method);
            if let Some((index, route)) =
                routes.iter_mut().enumerate().find(|(_, route)| fits(route))
            {
                self.last = route.name;
                if route.from_anywhere || method.is_safe() || !is_foreign(&request.head) {
                    if !route.is_gated {
                        return route.handler.call(request, out);
                    }
                    return self.call_if_admitted(request, out, |own, out| {
                        own.resources[place][index].handler.call(request, out)
                    });
                }
                log::debug(format_args!(
                    "{} was not run: requests from pages of other sites are rejected, unless `.posts_from_anywhere(..)` names the path",
                    route.name
                ));
                let message = "A page of another site may not send this here.";
                return self.answer(request, Response::refusal(Status::FORBIDDEN, message), out);
            }
        }
        // A path may have a page for POST and a file for GET.
        self.last = "files";
        if (found.is_none() || method.is_safe())
            && let Some(answer) = site.respond(&path, request, &self.bench.clock, out)
        {
            return answer;
        }
        let response = match found {
            Some(place) => {
                let routes = self.resources[place].iter();
                let allowed = routes.map(|route| route.methods).reduce(Methods::or);
                Response::allowing(method, allowed.unwrap_or(Methods::GET))
            }
            None if path == "*" && method == Method::Options => {
                Response::status(Status::NO_CONTENT).with_field("Allow", "GET, HEAD, OPTIONS")
            }
            None => match self.health_of(&path, request) {
                Some(response) => {
                    self.last = HEALTH;
                    response
                }
                None => Response::refusal(Status::NOT_FOUND, Templates::NOT_FOUND_MESSAGE),
            },
        };
        self.answer(request, response, out)
    }

    /// Runs a dynamic handler for admitted clients.
    #[inline]
    fn call_if_admitted(
        &mut self,
        request: &Incoming<'_>,
        out: &mut Outgoing<'_>,
        call: impl FnOnce(&mut Self, &mut Outgoing<'_>) -> Answer,
    ) -> Answer {
        let answer = match self.gate.pass(request) {
            AdmissionDecision::NoOverload => return call(self, out),
            AdmissionDecision::Admit => call(self, out),
            AdmissionDecision::AdmitWithTicket(line) => with_line(line, out, |out| call(self, out)),
            AdmissionDecision::Reject => {
                self.last = "admission";
                return self.gate.refuse(request, &self.bench.clock, out);
            }
        };
        // Worker threads report completed requests themselves, as do the threads that render live
        // updates.
        if !matches!(answer, Answer::Work(_) | Answer::Collect { .. } | Answer::WhileOpen(_)) {
            self.gate.answered();
        }
        answer
    }

    /// Health checks are the last step: ordinary requests never reach it, and a page or file at the
    /// path takes precedence.
    fn health_of(&self, path: &str, request: &Incoming<'_>) -> Option<Response> {
        let health = self.health.is_told.then_some(&self.pages.subsystems.health)?;
        health.answer(path, request, &self.pages.subsystems.tables)
    }

    fn answer(&self, request: &Incoming<'_>, response: Response, out: &mut Outgoing<'_>) -> Answer {
        let clock: &Clock = &self.bench.clock;
        response.answer(RequestSummary::by(request), clock, &self.app.templates, out)
    }
}

//! Decides which handler a request belongs to.

use std::sync::Arc;

use bine_http::{Event, Head, Limits, Method, RequestParser, SecurityHeaders, Status};
use bine_log as log;
use bine_server::{
    Answer, Bench, Clock, Handler, Incoming, Outgoing, Peer, Responder, Retained, Who,
};

use crate::acme::Acme;
use crate::app_state::{AppState, Places};
use crate::arguments::Needs;
use crate::channels::{self, Channels, Face};
use crate::filter::{Filter, Rewritten, Seen, Verdict, rewritten};
use crate::gate::{Gate, Pass, with_line};
use crate::health::{Health, HealthChoices, NAME as HEALTH, is_asked_at};
use crate::hosts::{self, Hosts, LocalHosts};
use crate::live::{Live, is_stream};
use crate::look::Look;
use crate::methods::Methods;
use crate::origin::is_foreign;
use crate::pattern::Pattern;
use crate::respond::{Asked, Response, apologize};
use crate::route::{Kind, LocalCaller, Place, Route};
use crate::router::Router;
use crate::security::{self, HeaderChoices};
use crate::sessions::Keeper;
use crate::sessions::ticket::Tickets;
use crate::sites::{LocalSites, Sites, without_port};
use crate::tables::Tables;

/// Everything a program serves under one configuration, as the server sees it.
pub(crate) struct Program {
    pages: Arc<Pages>,
    sites: Sites,
    /// Who comes without TLS is sent there.
    https: Option<Redirect>,
    /// Answered for.
    hosts: Arc<Hosts>,
    /// Proves to an authority whose hosts these are; `None`: none is asked.
    proofs: Option<Arc<Acme>>,
    /// What is asked of its health.
    health: HealthChoices,
}

/// What a program serves whatever its configuration.
pub(crate) struct Pages {
    resources: Box<[Resource]>,
    /// Over the resources' patterns.
    router: Arc<Router>,
    filters: Arc<[Box<dyn Filter>]>,
    face: Face,
    app: Arc<AppState>,
    tickets: Arc<Tickets>,
    subsystems: Subsystems,
    /// Security headers, where the configuration says nothing.
    headers: security::SecurityHeaders,
}

/// The subsystems of a program, whatever its configuration.
pub(crate) struct Subsystems {
    pub(crate) tables: Arc<Tables>,
    /// Of a program that has some.
    pub(crate) channels: Option<Channels>,
    /// Of a program whose pages look at them.
    pub(crate) sessions: Option<Arc<Keeper>>,
    /// The pages that somebody looks at.
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
    /// Joins what a program serves.
    ///
    /// # Errors
    ///
    /// What does not fit together, and how to mend it.
    pub(crate) fn new(
        routes: Vec<Route>,
        filters: Vec<Box<dyn Filter>>,
        face: Face,
        mut app: AppState,
        subsystems: Subsystems,
        headers: security::SecurityHeaders,
    ) -> Result<Self, String> {
        let mut resources: Vec<Resource> = Vec::new();
        check_needs("what is asked for access to channels", &face.gate.needs(), &app)?;
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
        let are_shown = resources.iter().map(is_shown).collect();
        app.places = Places { router: Arc::clone(&router), are_shown };
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

    /// Its pages that somebody looks at.
    pub(crate) fn live(&self) -> &Arc<Live> {
        &self.subsystems.live
    }

    /// Whether it is well.
    pub(crate) fn health(&self) -> &Health {
        &self.subsystems.health
    }

    /// Of how many sessions something is kept, if there are any.
    pub(crate) fn sessions(&self) -> Option<usize> {
        self.subsystems.sessions.as_ref()?.count()
    }

    /// What its channels tell of themselves, if it has some.
    pub(crate) fn channels(&self) -> Option<channels::Figures> {
        self.subsystems.channels.as_ref().map(channels::Channels::figures)
    }

    /// Gives pages their security headers, and says which every response has. The policy stays as it was said first.
    pub(crate) fn secure(&self, choices: &HeaderChoices) -> SecurityHeaders {
        let headers = self.headers.chosen(choices);
        self.app.look.policy.get_or_init(|| headers.of_pages());
        headers.of_responses()
    }

    /// Shows errors with their causes, or does not, as the configuration says.
    pub(crate) fn develop(&self, word: Option<bool>) {
        self.app.look.develop(word);
    }

    /// Whether there is nothing at all: no page, and no channel.
    pub(crate) fn are_none(&self) -> bool {
        self.resources.is_empty() && self.subsystems.channels.is_none()
    }
}

/// Whether the program has what the function called `name` takes.
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
                let place = Place { app, pattern, body, on_disk };
                let caller = route.caller.local(&bench, &place);
                let from_anywhere = route.from_anywhere || is_without_sessions;
                // Whoever looks after the server must see it above all when it is full.
                let is_gated = route.told.kind != Kind::Asset && !is_asked_at(route.path);
                let (methods, name) = (route.methods, route.name);
                LocalRoute { methods, name, from_anywhere, is_gated, caller }
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
    /// Pages of other sites may send something here.
    from_anywhere: bool,
    /// It is dynamic, so that those who come must be let in.
    is_gated: bool,
    caller: Box<dyn LocalCaller>,
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
            && let Some(location) = in_secret(request, redirect)
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
        apologize(Asked::by(request), &self.bench.clock, &self.app.look, out);
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

/// Where clients that come without TLS are sent.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Redirect {
    pub(crate) port: u16,
    /// Clients on this machine are not: checks of its health, or a proxy in front of it.
    pub(crate) spares_local: bool,
}

/// Where a request that came without TLS should go. Who comes through the file system, or says no host, is answered
/// here, and so is a proof that this host is ours (RFC 8555 section 8.3).
fn in_secret(request: &Incoming<'_>, redirect: Redirect) -> Option<String> {
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

/// The path and query of a request target as they were sent. In absolute form they follow a scheme and an authority
/// (RFC 9112 section 3.2.2), and the path may be missing; `*` has neither.
fn path_and_query(target: &str) -> &str {
    if target.starts_with('/') {
        return target;
    }
    let (_, rest) = target.split_once("://").unwrap_or_default();
    rest.find(['/', '?']).map_or("", |start| &rest[start..])
}

impl LocalProgram {
    /// Asks the filters from `first` on, then the route.
    fn filter(&mut self, request: &Incoming<'_>, first: usize, out: &mut Outgoing<'_>) -> Answer {
        self.last = "a filter";
        let (filters, app) = (Arc::clone(&self.filters), Arc::clone(&self.app));
        let sessions = app.sessions.as_ref();
        for (place, filter) in filters.iter().enumerate().skip(first) {
            // Decoded and freed of dot segments; a plain path costs nothing here.
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
        // The old head has passed the program's own limits; a filter may be trusted with the new one.
        let limits = Limits { head: u32::MAX, target: u32::MAX, ..Limits::default() };
        let Event::Head(head) = RequestParser::new().receive(&bytes, &limits).event else {
            log::error(format_args!("a filter rewrote a request to {target:?}, which is no path"));
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
            return self.let_in(request, out, |own, out| {
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
                        return route.caller.call(request, out);
                    }
                    return self.let_in(request, out, |own, out| {
                        own.resources[place][index].caller.call(request, out)
                    });
                }
                log::debug(format_args!(
                    "{} was not run: what a page of another site sends is refused, unless `.posts_from_anywhere(..)` names its path",
                    route.name
                ));
                let told = "A page of another site may not send this here.";
                return self.answer(request, Response::refusal(Status::FORBIDDEN, told), out);
            }
        }
        // A page for some methods may stand in front of a file for the others.
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
                Some(told) => {
                    self.last = HEALTH;
                    told
                }
                None => Response::refusal(Status::NOT_FOUND, Look::NOWHERE),
            },
        };
        self.answer(request, response, out)
    }

    /// Has something dynamic answer to those who are let in.
    #[inline]
    fn let_in(
        &mut self,
        request: &Incoming<'_>,
        out: &mut Outgoing<'_>,
        call: impl FnOnce(&mut Self, &mut Outgoing<'_>) -> Answer,
    ) -> Answer {
        let answer = match self.gate.pass(request) {
            Pass::Calm => return call(self, out),
            Pass::On => call(self, out),
            Pass::With(line) => with_line(line, out, |out| call(self, out)),
            Pass::Refused => {
                self.last = "admission";
                return self.gate.refuse(request, &self.bench.clock, out);
            }
        };
        // Workers report themselves what they have done, and so do the threads that render what a live page waits for.
        if !matches!(answer, Answer::Work(_) | Answer::Collect { .. } | Answer::WhileOpen(_)) {
            self.gate.answered();
        }
        answer
    }

    /// Asked last, so that it costs no other request anything, and a page or a file of this path goes before.
    fn health_of(&self, path: &str, request: &Incoming<'_>) -> Option<Response> {
        let health = self.health.is_told.then_some(&self.pages.subsystems.health)?;
        health.answer(path, request, &self.pages.subsystems.tables)
    }

    fn answer(&self, request: &Incoming<'_>, response: Response, out: &mut Outgoing<'_>) -> Answer {
        let clock: &Clock = &self.bench.clock;
        response.answer(Asked::by(request), clock, &self.app.look, out)
    }
}

//! Request routing: hosts, redirects, filters, channels, pages, files and health checks, in this
//! order.

use std::rc::Rc;
use std::sync::Arc;

use bine_files::FieldRule;
use bine_http::{Event, Framing, Head, Limits, Method, RequestParser, SecurityHeaders, Status};
use bine_log as log;
use bine_profile::{self as profile, Stage};
use bine_server::{
    Answer, Body, ClientAddress, Clock, Finished, Follow, Handler, HandlerContext, Identity,
    Incoming, Outgoing, Responder, Retained, ServerRefusal,
};

use crate::access_guard::AccessDecision;
use crate::app_state::{AppState, RedirectTargets};
use crate::arguments::Needs;
use crate::authority::CertificateAuthority;
use crate::filter::{Filter, FilterDecision, FilterRequest, Rewritten, rewritten};
use crate::gate::{
    AdmissionDecision, AdmissionPolicy, LateLines, LocalAdmissionPolicy, private, with_fields,
    with_late_lines, with_line,
};
use crate::health::{HealthChoices, NAME as HEALTH, is_asked_at};
use crate::hosts::{self, Hosts, LocalHosts};
use crate::languages::VisitorWords;
use crate::methods::Methods;
use crate::origin::is_foreign;
use crate::pattern::PathPattern;
use crate::read_position::{MAX_WAIT, MAX_WAITING_BODY, ReadPositions, Waited};
use crate::respond::{RequestSummary, Response, write_panic_response};
use crate::route::{LocalHandler, Route, RouteContext, RouteKind};
use crate::router::Router;
use crate::security::{self, HeaderChoices};
use crate::sites::{LocalSites, Sites, without_port};
use crate::subsystem::{Fallback, Mount, Shared};
use crate::visitor_message::VisitorMessage;

/// All content that a program serves under one configuration: the handler that the server core
/// calls.
pub(crate) struct Program {
    pages: Arc<Pages>,
    sites: Sites,
    /// The redirect for clients without TLS, if any.
    https: Option<Redirect>,
    /// The hosts that the server answers for.
    hosts: Arc<Hosts>,
    /// Answers its own challenges; `None` if no authority is in use.
    authority: Option<Arc<dyn CertificateAuthority>>,
    /// How health checks are answered.
    health: HealthChoices,
}

/// The part of a program that does not depend on the configuration.
pub(crate) struct Pages {
    resources: Box<[RouteGroup]>,
    /// Routes over the resources' patterns.
    router: Arc<Router>,
    filters: Arc<[Box<dyn Filter>]>,
    /// The handlers of subsystems.
    mounts: Box<[Mount]>,
    /// The handlers of paths without a route.
    fallbacks: Box<[Fallback]>,
    app: Arc<AppState>,
    admission: Option<Arc<dyn AdmissionPolicy>>,
    shared: Arc<Shared>,
    /// The default security headers, which the configuration may override.
    headers: security::SecurityHeaders,
    /// Whether a subsystem has content besides the routes.
    has_other_content: bool,
}

/// The parts of [`Pages`].
pub(crate) struct PageParts {
    pub(crate) routes: Vec<Route>,
    pub(crate) filters: Vec<Box<dyn Filter>>,
    pub(crate) mounts: Vec<Mount>,
    pub(crate) fallbacks: Vec<Fallback>,
    /// Functions that are not routes and take arguments as handlers do, each with its name in
    /// messages.
    pub(crate) functions: Vec<(&'static str, Needs)>,
    pub(crate) app: AppState,
    pub(crate) admission: Option<Arc<dyn AdmissionPolicy>>,
    pub(crate) shared: Arc<Shared>,
    pub(crate) headers: security::SecurityHeaders,
    pub(crate) has_other_content: bool,
}

/// A pattern, and the routes that share it.
struct RouteGroup {
    pattern: Arc<PathPattern>,
    routes: Vec<Route>,
}

impl Program {
    pub(crate) const fn new(
        pages: Arc<Pages>,
        sites: Sites,
        https: Option<Redirect>,
        hosts: Arc<Hosts>,
        authority: Option<Arc<dyn CertificateAuthority>>,
        health: HealthChoices,
    ) -> Self {
        Self { pages, sites, https, hosts, authority, health }
    }
}

impl Pages {
    /// Combines the parts of a program.
    ///
    /// # Errors
    ///
    /// Returns a message that names conflicting parts and the correction.
    pub(crate) fn new(parts: PageParts) -> Result<Self, String> {
        let PageParts { routes, filters, mounts, fallbacks, functions, mut app, .. } = parts;
        let PageParts { admission, shared, headers, has_other_content, .. } = parts;
        let mut resources: Vec<RouteGroup> = Vec::new();
        for (name, needs) in &functions {
            check_needs(name, needs, &app)?;
        }
        for route in routes {
            check_needs(route.name, &route.needs, &app)?;
            match resources.iter_mut().find(|resource| resource.routes[0].path == route.path) {
                Some(resource) => resource.add(route)?,
                None => {
                    let pattern = PathPattern::new(route.path)
                        .map_err(|reason| format!("{}: {reason}", route.name))?;
                    resources.push(RouteGroup { pattern: Arc::new(pattern), routes: vec![route] });
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
        let is_shown = |resource: &RouteGroup| {
            resource.routes.iter().any(|route| route.methods.has(Method::Get))
        };
        let answers_get = resources.iter().map(is_shown).collect();
        app.redirect_targets = RedirectTargets { router: Arc::clone(&router), answers_get };
        Ok(Self {
            resources: resources.into(),
            router,
            filters: filters.into(),
            mounts: mounts.into(),
            fallbacks: fallbacks.into(),
            app: Arc::new(app),
            admission,
            shared,
            headers,
            has_other_content,
        })
    }

    /// The state that all requests share.
    pub(crate) const fn app(&self) -> &Arc<AppState> {
        &self.app
    }

    /// The parts that the subsystems share.
    pub(crate) const fn shared(&self) -> &Arc<Shared> {
        &self.shared
    }

    /// Sets the security headers of pages, and returns those of every response. The first call
    /// determines the content security policy.
    pub(crate) fn secure(&self, choices: &HeaderChoices) -> SecurityHeaders {
        let headers = self.headers.chosen(choices);
        self.app.templates.policy.get_or_init(|| headers.of_pages());
        headers.of_responses()
    }

    /// Sets the handler that serves these pages from now on.
    pub(crate) fn use_handler(&self, handler: &Arc<dyn Handler>) {
        self.app.use_handler(handler);
    }

    /// Sets whether errors display their causes.
    pub(crate) fn develop(&self, word: Option<bool>) {
        self.app.templates.develop(word);
    }

    /// Whether the program has no content but files.
    pub(crate) fn are_none(&self) -> bool {
        self.resources.is_empty() && !self.has_other_content
    }
}

/// Checks that the program has the shared values that the function called `name` takes.
fn check_needs(name: &str, needs: &Needs, app: &AppState) -> Result<(), String> {
    match needs.requirements.iter().find(|need| !app.states.has(need.kind)) {
        None => Ok(()),
        Some(need) => Err(format!("{name} {}", need.complaint)),
    }
}

impl RouteGroup {
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
    fn local(&self, handler_context: HandlerContext) -> Box<dyn Responder> {
        let Pages { resources, router, filters, mounts, app, .. } = &*self.pages;
        let is_without_sessions = app.sessions.is_none();
        let resources = resources.iter().map(|resource| {
            let routes = resource.routes.iter().map(|route| {
                let (app, pattern) = (Arc::clone(app), Arc::clone(&resource.pattern));
                let Needs { body, on_disk, form, .. } = route.needs;
                let context = RouteContext { app, pattern, body, on_disk, takes_form: form };
                let handler = route.handler.local(&handler_context, &context);
                let from_anywhere = route.from_anywhere || is_without_sessions;
                // Health checks must work under overload above all.
                let is_gated = route.info.kind != RouteKind::Asset && !is_asked_at(route.path);
                let (methods, name) = (route.methods, route.name);
                LocalRoute { methods, name, from_anywhere, is_gated, handler }
            });
            routes.collect()
        });
        // A request that the program sends to itself is part of one that has waited.
        let positions = self.pages.shared().positions.get();
        let positions = positions.filter(|_| !handler_context.is_internal).cloned();
        Box::new(LocalProgram {
            router: Arc::clone(router),
            resources: resources.collect(),
            filters: Arc::clone(filters),
            sites: self.sites.local(),
            https: self.https,
            hosts: self.hosts.local(),
            authority: self.authority.clone(),
            health: self.health,
            mounts: mounts.iter().cloned().collect(),
            fallbacks: self.pages.fallbacks.iter().cloned().collect(),
            app: Arc::clone(app),
            pages: Arc::clone(&self.pages),
            admission: self
                .pages
                .admission
                .as_ref()
                .map(|policy| policy.local(Arc::clone(&handler_context.admission))),
            is_admitted: false,
            positions,
            handler_context,
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
    authority: Option<Arc<dyn CertificateAuthority>>,
    health: HealthChoices,
    /// Counted without atomics, since a request takes a reference.
    mounts: Rc<[Mount]>,
    fallbacks: Rc<[Fallback]>,
    app: Arc<AppState>,
    pages: Arc<Pages>,
    admission: Option<Box<dyn LocalAdmissionPolicy>>,
    /// Whether the last request reached dynamic content.
    is_admitted: bool,
    /// Lets clients read their own changes; `None` in a program on one machine, which pays a branch.
    positions: Option<Arc<ReadPositions>>,
    handler_context: HandlerContext,
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
    fn identify(&mut self, head: &Head<'_>, peer: ClientAddress) -> Identity {
        let Some(sessions) = &self.app.sessions else { return Identity::Anonymous };
        sessions.identify(head, peer, self.handler_context.clock.unix())
    }

    fn respond(&mut self, request: &Incoming<'_>, out: &mut Outgoing<'_>) -> Answer {
        self.is_admitted = false;
        // Before anything reads tables, such as rights.
        if let Some(positions) = &self.positions
            && let Some(answer) = self.wait_for_position(positions, request)
        {
            self.last = "cluster";
            return answer;
        }
        if let Some(authority) = &self.authority
            && let Some(proof) = authority.proof(request.head.target())
        {
            self.last = "acme";
            self.answer(request, Response::text(proof), out)
        } else if !self.hosts.accept(request.head.authority_bytes(), request.peer) {
            self.last = "hosts";
            let words = VisitorWords::of(self.app.templates.languages.as_ref(), Some(request));
            self.answer(request, hosts::misdirected(&words), out)
        } else if let Some(redirect) = self.https
            && let Some(location) = https_location(request, redirect)
        {
            self.last = "https-redirect";
            self.answer(request, Response::permanent_redirect(location), out)
        } else if self.filters.is_empty() {
            self.route(request, out)
        } else {
            self.filter(request, 0, out)
        }
    }

    fn failed(&mut self, request: &Incoming<'_>, out: &mut Vec<u8>) {
        write_panic_response(
            RequestSummary::by(request),
            &self.handler_context.clock,
            &self.app.templates,
            out,
        );
    }

    /// The server itself writes the English text.
    fn refuse(
        &mut self,
        request: Option<&Incoming<'_>>,
        refusal: &ServerRefusal,
        out: &mut Outgoing<'_>,
    ) {
        if self.app.templates.languages.is_none() {
            return;
        }
        let asked =
            request.map_or_else(|| RequestSummary::unknown(refusal.exchange), RequestSummary::by);
        let clock: &Clock = &self.handler_context.clock;
        let response = Response::of_server_refusal(refusal);
        response.answer(asked.closing(), clock, &self.app.templates, out);
    }

    fn begins(&self) -> bool {
        self.is_admitted
    }

    fn last(&self) -> &'static str {
        self.last
    }

    fn is_unlogged(&self) -> bool {
        self.last == HEALTH && !self.health.is_logged
    }
}

/// Whether a filter may set this field.
fn is_settable((name, value): &(String, String)) -> bool {
    match FieldRule::new("*", name, value) {
        Ok(_) => true,
        Err(reason) => {
            log::error(format_args!("a field of a filter was left out: {reason}"));
            false
        }
    }
}

/// The redirect for clients without TLS.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Redirect {
    pub(crate) port: u16,
    /// Whether clients on this machine are exempt: health checks, or a reverse proxy.
    pub(crate) spares_local: bool,
    /// Whether only proxies speak TLS. The server then redirects requests only if a proxy reports
    /// that they came without TLS: a redirect of all others would repeat for ever.
    pub(crate) needs_report: bool,
}

/// The HTTPS address for a request without TLS. Requests on a Unix socket, requests without a host,
/// and ACME challenges (RFC 8555 section 8.3) get no redirect.
fn https_location(request: &Incoming<'_>, redirect: Redirect) -> Option<String> {
    let (head, peer) = (&request.head, request.peer);
    let Redirect { port, spares_local, needs_report } = redirect;
    if needs_report && !peer.is_reported_plain() {
        return None;
    }
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
            match filter.filter(&FilterRequest { incoming: request, path: &path, sessions }) {
                FilterDecision::Continue => {}
                decision => return self.follow(decision, request, place + 1, out),
            }
        }
        self.route(request, out)
    }

    /// Follows the decision of a filter; `next` is the filter after it.
    fn follow(
        &mut self,
        decision: FilterDecision,
        request: &Incoming<'_>,
        next: usize,
        out: &mut Outgoing<'_>,
    ) -> Answer {
        match decision {
            FilterDecision::Continue => self.filter(request, next, out),
            FilterDecision::Rewrite(target) => self.rewrite(request, &target, next, out),
            FilterDecision::Respond(response) => self.answer(request, response, out),
            FilterDecision::SetHeaders(fields, then) => {
                let fields = fields.into_iter().filter(is_settable).collect();
                with_fields(fields, out, |out| self.follow(*then, request, next, out))
            }
        }
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
        if self.app.has_credentials
            && let Some(sessions) = &self.app.sessions
            && let Some(refusal) = sessions.refusal(&path, request)
        {
            self.last = "credentials";
            let (status, challenge, message) = refusal.answer();
            let response = Response::told(status, message);
            let response = response.with_header("WWW-Authenticate", challenge);
            return self.answer(request, response, out);
        }
        if let Some(guard) = self.app.guard.clone() {
            let decision = guard.check(&path, request, self.app.sessions.as_ref());
            if let Some(refusal) = decision.refusal(&*guard, request) {
                self.last = "rights";
                return self.answer(request, refusal, out);
            }
            if decision == AccessDecision::AllowPrivately {
                return private(out, |out| self.serve(&path, method, request, out));
            }
        }
        self.serve(&path, method, request, out)
    }

    /// Answers a request that rights allow.
    fn serve(
        &mut self,
        path: &str,
        method: Method,
        request: &Incoming<'_>,
        out: &mut Outgoing<'_>,
    ) -> Answer {
        let site = self.sites.find(&request.head);
        if site.pages
            && let Some(place) = self.mounts.iter().position(|mount| mount.owns(path, request))
        {
            return self.call_mount(place, path, request, out);
        }
        let found = if site.pages { self.router.find(path) } else { None };
        let found = found
            .filter(|place| self.resources[*place].iter().all(|route| route.handler.accepts(path)));
        if let Some(place) = found {
            let routes = &mut self.resources[place];
            let fits = |route: &LocalRoute| route.methods.has(method);
            if let Some((index, route)) =
                routes.iter_mut().enumerate().find(|(_, route)| fits(route))
            {
                self.last = route.name;
                if route.from_anywhere || method.is_safe() || !is_foreign(&request.head) {
                    let _stage = profile::enter_route(Stage::Handler, route.name);
                    if !route.is_gated {
                        return route.handler.call(request, out);
                    }
                    return self.call_if_admitted(request, out, |own, out| {
                        own.resources[place][index].handler.call(request, out)
                    });
                }
                log::debug(format_args!(
                    "{} was not run: requests from pages of other sites are rejected, unless `.allow_cross_origin_posts(..)` names the path",
                    route.name
                ));
                let response =
                    Response::told(Status::FORBIDDEN, VisitorMessage::AnotherSiteSends {});
                return self.answer(request, response, out);
            }
        }
        if site.pages && found.is_none() && !self.fallbacks.is_empty() {
            let accepts = |fallback: &Fallback| fallback.handler.accepts(path, request);
            if let Some(place) = self.fallbacks.iter().position(accepts) {
                return self.call_fallback(place, path, request, out);
            }
        }
        // A path may have a page for POST and a file for GET.
        self.last = "files";
        let _stage = profile::enter_route(Stage::Handler, self.last);
        if (found.is_none() || method.is_safe())
            && let Some(answer) = site.respond(path, request, &self.handler_context.clock, out)
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
                Response::status(Status::NO_CONTENT).with_header("Allow", "GET, HEAD, OPTIONS")
            }
            None => match self.health_of(path, request) {
                Some(response) => {
                    self.last = HEALTH;
                    response
                }
                None => Response::told(Status::NOT_FOUND, VisitorMessage::NothingHere {}),
            },
        };
        self.answer(request, response, out)
    }

    /// Runs the handler of a subsystem.
    fn call_mount(
        &mut self,
        place: usize,
        path: &str,
        request: &Incoming<'_>,
        out: &mut Outgoing<'_>,
    ) -> Answer {
        let mounts = Rc::clone(&self.mounts);
        let Mount { name, is_gated, handler, .. } = &mounts[place];
        self.last = name;
        let _stage = profile::enter_route(Stage::Handler, name);
        let call = |own: &mut Self, out: &mut Outgoing<'_>| {
            handler.respond(path, request, &own.app, &own.handler_context.clock, out)
        };
        if *is_gated {
            return self.call_if_admitted(request, out, call);
        }
        if self.positions.is_none() {
            return call(self, out);
        }
        self.call_on_node(request, out, call)
    }

    /// Runs the handler of a path without a route.
    fn call_fallback(
        &mut self,
        place: usize,
        path: &str,
        request: &Incoming<'_>,
        out: &mut Outgoing<'_>,
    ) -> Answer {
        let fallbacks = Rc::clone(&self.fallbacks);
        let Fallback { name, handler } = &fallbacks[place];
        self.last = name;
        let _stage = profile::enter_route(Stage::Handler, name);
        self.call_if_admitted(request, out, |own, out| {
            handler.respond(path, request, &own.app, &own.handler_context.clock, out)
        })
    }

    /// Runs a dynamic handler for admitted clients.
    #[inline]
    fn call_if_admitted(
        &mut self,
        request: &Incoming<'_>,
        out: &mut Outgoing<'_>,
        call: impl FnOnce(&mut Self, &mut Outgoing<'_>) -> Answer,
    ) -> Answer {
        if self.positions.is_none() {
            return self.admit(request, out, call);
        }
        self.call_on_node(request, out, |own, out| own.admit(request, out, call))
    }

    /// Runs a dynamic handler on one node of several: its response has a mark while the data of this node
    /// may be old, and a position after a commit.
    fn call_on_node(
        &mut self,
        request: &Incoming<'_>,
        out: &mut Outgoing<'_>,
        call: impl FnOnce(&mut Self, &mut Outgoing<'_>) -> Answer,
    ) -> Answer {
        let shared = Arc::clone(self.pages.shared());
        let positions = self.positions.as_ref();
        let lines = positions.filter(|_| !request.head.method().is_safe()).map(|positions| {
            let (positions, before) = (Arc::clone(positions), positions.current());
            let is_secure = request.peer.is_secure();
            Arc::new(move || positions.lines(before, is_secure)) as LateLines
        });
        shared.staleness.marking(out, |out| match lines {
            Some(lines) => with_late_lines(lines, out, |out| call(self, out)),
            None => call(self, out),
        })
    }

    /// Without overload, admission control costs one atomic load.
    #[inline]
    fn admit(
        &mut self,
        request: &Incoming<'_>,
        out: &mut Outgoing<'_>,
        call: impl FnOnce(&mut Self, &mut Outgoing<'_>) -> Answer,
    ) -> Answer {
        self.is_admitted = true;
        if !self.handler_context.admission.is_awake() {
            return call(self, out);
        }
        let Some(policy) = &mut self.admission else { return call(self, out) };
        let decision = {
            let _stage = profile::enter(Stage::Admission);
            policy.decide(request)
        };
        let answer = match decision {
            AdmissionDecision::Admit => call(self, out),
            AdmissionDecision::AdmitWithTicket(line) => with_line(line, out, |out| call(self, out)),
            AdmissionDecision::Reject => {
                self.is_admitted = false;
                self.last = "admission";
                let words = VisitorWords::of(self.app.templates.languages.as_ref(), Some(request));
                return policy.refuse(request, &words, &self.handler_context.clock, out);
            }
        };
        // Worker threads report completed requests themselves, as do the threads that render live
        // updates.
        if !matches!(answer, Answer::Work(_) | Answer::Collect { .. } | Answer::WhileOpen(_)) {
            self.handler_context.admission.answered();
        }
        answer
    }

    /// Health checks are the last step: ordinary requests never reach it, and a page or file at the
    /// path takes precedence.
    fn health_of(&self, path: &str, request: &Incoming<'_>) -> Option<Response> {
        let Shared { health, tables, .. } = &**self.pages.shared();
        let health = self.health.is_told.then_some(health)?;
        health.answer(path, request, tables)
    }

    /// Lets a request wait until this node has applied the position that it names. `None`: it does not
    /// have to, or cannot.
    fn wait_for_position(
        &self,
        positions: &Arc<ReadPositions>,
        request: &Incoming<'_>,
    ) -> Option<Answer> {
        let position = positions.missing(&request.head)?;
        let has_room = |length: u64| length <= MAX_WAITING_BODY;
        match (request.body, request.head.framing()) {
            // The program is called again when it has the body.
            (Body::Pending, Framing::Length(length)) if has_room(length) => {
                return Some(Answer::Collect { limit: MAX_WAITING_BODY, on_disk: false });
            }
            (Body::Pending, _) => return None,
            (Body::InMemory(bytes), _) if !has_room(bytes.len() as u64) => return None,
            (Body::InMemory(_) | Body::OnDisk(_) | Body::None, _) => {}
        }
        let place = positions.enter(request.peer.block())?;
        let (request, app) = (Box::new(Retained::of(request)), Arc::clone(&self.app));
        let clock = Rc::clone(&self.handler_context.clock);
        Some(Answer::WhileOpen(Box::pin(async move {
            if place.wait(position, MAX_WAIT).await != Waited::TimedOut {
                let follow = Some(Follow::Again(request));
                return Finished { follow, ..Finished::default() };
            }
            let busy = Response::told(Status::SERVICE_UNAVAILABLE, VisitorMessage::ServerBusy {});
            let busy = busy.with_header("Retry-After", "1");
            let (mut bytes, incoming) = (Vec::new(), request.incoming());
            let mut keep = |_: &mut Vec<u8>| {};
            let mut out = Outgoing { buffer: &mut bytes, drain: &mut keep };
            let asked = RequestSummary::by(&incoming);
            let answer = busy.answer(asked, &clock, &app.templates, &mut out);
            let close = matches!(answer, Answer::Written { close: true });
            Finished { bytes, follow: None, close }
        })))
    }

    fn answer(&self, request: &Incoming<'_>, response: Response, out: &mut Outgoing<'_>) -> Answer {
        let clock: &Clock = &self.handler_context.clock;
        response.answer(RequestSummary::by(request), clock, &self.app.templates, out)
    }
}

//! Runs handlers: async handlers on the event loop of their connection, plain functions on a worker
//! thread.

use std::any::Any;
use std::future::{Future, poll_fn};
use std::marker::PhantomData;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use bine_http::Status;
use bine_log as log;
use bine_server::{
    self as server, Answer, Clock, Done, HandlerContext, Incoming, Outgoing, ReplyFuture, Retained,
    Work,
};

use crate::app_state::AppState;
use crate::arguments::{Needs, Rejection, RequestParts};
use crate::error::Error;
use crate::methods::Methods;
use crate::pattern::PathPattern;
use crate::problem::ArgumentError;
use crate::request_session::RequestSession;
use crate::request_summary::{KeptAddress, RequestSummary};
use crate::respond::{HandlerOutput, Response, ResponseWriter, write_panic_response};
use crate::returned_form::SentForm;

/// A function with `#[page]`, which creates its route.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a page of a program",
    note = "a page is the name of a function with `#[page(\"/path\")]` above it"
)]
pub trait Endpoint {
    /// Creates the route.
    fn route(self) -> Route;
}

impl<F: FnOnce() -> Route> Endpoint for F {
    fn route(self) -> Route {
        self()
    }
}

/// A path, its methods, and its handler.
pub struct Route {
    pub(crate) methods: Methods,
    pub(crate) path: &'static str,
    pub(crate) name: &'static str,
    pub(crate) needs: Needs,
    pub(crate) info: RouteInfo,
    /// Whether the route accepts submissions from other sites, or checks their origin itself.
    pub(crate) from_anywhere: bool,
    pub(crate) handler: Arc<dyn RouteHandler>,
    /// Data that the module which created the route attaches to it.
    pub(crate) attached: Option<Arc<dyn Any + Send + Sync>>,
}

/// The description of a route for the list of routes.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct RouteInfo {
    pub(crate) kind: RouteKind,
    /// The name and type of each argument.
    pub(crate) arguments: &'static [(&'static str, &'static str)],
    /// Whether the handler has no side effects.
    pub(crate) is_safe: bool,
    /// Whether the handler runs only once, without retries after a conflict.
    pub(crate) is_once: bool,
    /// The access rule, if the service or action has its own.
    pub(crate) rule: Option<AccessRule>,
}

/// The access rule of a service or an action, as the list of routes shows it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AccessRule {
    pub(crate) name: &'static str,
    /// Whether the rule reads the session of the client.
    pub(crate) needs_session: bool,
    /// The group whose members it allows.
    pub(crate) group: Option<&'static str>,
}

/// The kind of handler at a route.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) enum RouteKind {
    #[default]
    Page,
    Service,
    Action,
    Asset,
}

/// The context of a route within its program.
#[derive(Clone)]
pub(crate) struct RouteContext {
    pub(crate) app: Arc<AppState>,
    pub(crate) pattern: Arc<PathPattern>,
    /// The longest body that the handler accepts, in bytes.
    pub(crate) body: u64,
    /// Whether longer bodies are stored on disk, for a handler that may block.
    pub(crate) on_disk: bool,
    /// Whether the handler takes a form, which is returned if the handler rejects it.
    pub(crate) takes_form: bool,
}

/// The part of a route's handler that all threads share.
pub(crate) trait RouteHandler: Send + Sync {
    /// Creates the part that belongs to one thread.
    fn local(
        &self,
        handler_context: &HandlerContext,
        context: &RouteContext,
    ) -> Box<dyn LocalHandler>;
}

/// The part of a route's handler that belongs to one thread and needs no lock.
pub(crate) trait LocalHandler {
    fn call(&mut self, incoming: &Incoming<'_>, out: &mut Outgoing<'_>) -> Answer;

    /// Whether the handler has anything at this path, which matches its pattern. Otherwise the program
    /// treats the path as one without a route.
    fn accepts(&self, _path: &str) -> bool {
        true
    }
}

impl Route {
    /// Creates a route with an async handler.
    pub fn future<C, F, K>(
        methods: Methods,
        path: &'static str,
        name: &'static str,
        call: C,
    ) -> Self
    where
        C: Fn(&mut RequestParts<'_>) -> Result<F, Rejection> + Send + Sync + 'static,
        F: Future<Output: HandlerOutput<K>> + 'static,
        K: 'static,
    {
        Self::new(methods, path, name, Async { name, call: Arc::new(call), kind: PhantomData })
    }

    /// Creates a route with a handler that may block.
    pub fn blocking<C, R, K>(
        methods: Methods,
        path: &'static str,
        name: &'static str,
        call: C,
    ) -> Self
    where
        C: Fn(&mut RequestParts<'_>) -> Result<R, Rejection> + Send + Sync + 'static,
        R: HandlerOutput<K> + 'static,
        K: 'static,
    {
        Self::new(methods, path, name, Blocking { name, call: Arc::new(call), kind: PhantomData })
    }

    pub(crate) fn new(
        methods: Methods,
        path: &'static str,
        name: &'static str,
        handler: impl RouteHandler + 'static,
    ) -> Self {
        let (needs, info) = (Needs::default(), RouteInfo::default());
        let handler = Arc::new(handler);
        let (from_anywhere, attached) = (false, None);
        Self { methods, path, name, needs, info, from_anywhere, handler, attached }
    }

    /// Replaces the description.
    pub(crate) fn info(self, info: RouteInfo) -> Self {
        Self { info, ..self }
    }

    /// Sets the names and types of the arguments.
    #[must_use]
    pub fn taking(mut self, arguments: &'static [(&'static str, &'static str)]) -> Self {
        self.info.arguments = arguments;
        self
    }

    /// Adds the requirements of the arguments.
    #[must_use]
    pub fn needing(mut self, tell: &[fn(&mut Needs)]) -> Self {
        for tell in tell {
            tell(&mut self.needs);
        }
        self
    }
}

struct Async<C, K> {
    name: &'static str,
    call: Arc<C>,
    kind: PhantomData<fn() -> K>,
}

struct LocalAsync<C, F, K> {
    name: &'static str,
    call: Arc<C>,
    /// The allocation that holds a future while it is polled. A future must not move once it has
    /// been polled; the next request reuses the box.
    place_of_future: Option<Pin<Box<Option<F>>>>,
    handler_context: HandlerContext,
    context: RouteContext,
    kind: PhantomData<fn() -> K>,
}

impl<C, F, K> RouteHandler for Async<C, K>
where
    C: Fn(&mut RequestParts<'_>) -> Result<F, Rejection> + Send + Sync + 'static,
    F: Future<Output: HandlerOutput<K>> + 'static,
    K: 'static,
{
    fn local(
        &self,
        handler_context: &HandlerContext,
        context: &RouteContext,
    ) -> Box<dyn LocalHandler> {
        Box::new(LocalAsync {
            name: self.name,
            call: Arc::clone(&self.call),
            place_of_future: None,
            handler_context: handler_context.clone(),
            context: context.clone(),
            kind: self.kind,
        })
    }
}

impl<C, F, K> LocalHandler for LocalAsync<C, F, K>
where
    C: Fn(&mut RequestParts<'_>) -> Result<F, Rejection>,
    F: Future<Output: HandlerOutput<K>> + 'static,
    K: 'static,
{
    fn call(&mut self, incoming: &Incoming<'_>, out: &mut Outgoing<'_>) -> Answer {
        let (clock, templates) = (&*self.handler_context.clock, &self.context.app.templates);
        let asked = RequestSummary::by(incoming);
        let mut arguments = self.context.arguments(incoming);
        let future = match (self.call)(&mut arguments) {
            Ok(future) => future,
            Err(Rejection::NeedsBody { limit }) => {
                let limit = limit.max(self.context.body);
                return Answer::Collect { limit, on_disk: false };
            }
            Err(rejection) => {
                let visitor_session = arguments.visitor_session;
                if let Some((form, error)) = self.context.rejected_form(incoming, &rejection) {
                    let failure = FormRejection { form, error, rejection: Some(rejection) };
                    return failure.answer(visitor_session, &self.handler_context);
                }
                let mut to = ResponseWriter::new(out, asked, clock, usize::MAX, templates);
                to.visitor_session = visitor_session;
                return to.answer(Response::of_rejection(&rejection));
            }
        };
        let visitor_session = arguments.visitor_session;
        let mut place = self.place_of_future.take().unwrap_or_else(|| Box::pin(None));
        place.set(Some(future));
        // The first poll has no waker, because most handlers finish at once. Otherwise the handler
        // becomes a task with its own waker.
        match poll_in(&mut place, &mut Context::from_waker(Waker::noop())) {
            Poll::Ready(value) => {
                place.set(None);
                self.place_of_future = Some(place);
                let value = if self.context.takes_form {
                    match value.or_error() {
                        Ok(value) => value,
                        Err(error) => {
                            return self.answer_error(error, incoming, out, visitor_session);
                        }
                    }
                } else {
                    value
                };
                let mut to = ResponseWriter::new(
                    out,
                    asked,
                    clock,
                    self.handler_context.chunk_at,
                    templates,
                );
                to.visitor_session = visitor_session;
                to.answer(value)
            }
            Poll::Pending => {
                let app = Arc::clone(&self.context.app);
                let templates = &app.templates;
                let may_ask = app.may_need_request
                    || templates.actions.is_some()
                    || templates.layout_sessions.is_some()
                    || templates.languages.is_some();
                let address = templates.layout.is_some().then(|| KeptAddress::of(&incoming.head));
                let form = self.context.sent_form(incoming);
                let asked = asked.kept(may_ask).ok_or_else(|| Retained::of(incoming));
                let later = Later {
                    form,
                    asked,
                    address,
                    visitor_session,
                    handler_context: self.handler_context.clone(),
                    app,
                    name: self.name,
                };
                Answer::Later(finish_later(place, later))
            }
        }
    }
}

impl<C, F, K> LocalAsync<C, F, K> {
    /// Answers with the form that the handler has rejected, or with the error.
    fn answer_error(
        &self,
        error: Error,
        incoming: &Incoming<'_>,
        out: &mut Outgoing<'_>,
        visitor_session: Option<Arc<dyn RequestSession>>,
    ) -> Answer {
        if let Some(form) = self.context.sent_form(incoming) {
            let failure = FormRejection { form, error, rejection: None };
            return failure.answer(visitor_session, &self.handler_context);
        }
        let (clock, templates) = (&*self.handler_context.clock, &self.context.app.templates);
        let asked = RequestSummary::by(incoming);
        let mut to = ResponseWriter::new(out, asked, clock, usize::MAX, templates);
        to.visitor_session = visitor_session;
        to.answer(Err::<Response, _>(error))
    }
}

/// The state for the response of a handler that did not finish at the first poll.
struct Later {
    /// The form of a browser without script, in case that the handler rejects it.
    form: Option<Box<SentForm>>,
    asked: Result<RequestSummary<'static>, Retained>,
    /// The address of the page, for the layout of a program that has one.
    address: Option<KeptAddress>,
    visitor_session: Option<Arc<dyn RequestSession>>,
    handler_context: HandlerContext,
    app: Arc<AppState>,
    name: &'static str,
}

fn finish_later<F: Future<Output: HandlerOutput<K>> + 'static, K: 'static>(
    mut place: Pin<Box<Option<F>>>,
    later: Later,
) -> ReplyFuture {
    Box::pin(async move {
        let Later { form, asked, address, visitor_session, handler_context, app, name } = later;
        let polled = poll_fn(|task| {
            let polled = catch_unwind(AssertUnwindSafe(|| poll_in(&mut place, task)));
            polled.map_or(Poll::Ready(None), |polled| polled.map(Some))
        });
        let value = polled.await;
        let mut bytes = Vec::new();
        let incoming;
        let asked = match &asked {
            Ok(asked) => asked.at(address.as_ref()),
            Err(request) => {
                incoming = request.incoming();
                RequestSummary::by(&incoming)
            }
        };
        let Some(value) = value else {
            log::error(format_args!("{name} panicked; its peer got a 500"));
            write_panic_response(
                asked.closing(),
                &handler_context.clock,
                &app.templates,
                &mut bytes,
            );
            return server::Finished { bytes, follow: None, close: true };
        };
        let value = match form {
            None => value,
            Some(form) => match value.or_error() {
                Ok(value) => value,
                Err(error) => {
                    let failure = FormRejection { form, error, rejection: None };
                    return failure.reply(visitor_session, &handler_context).await;
                }
            },
        };
        // The task shares its loop with many tasks, which cannot drain the buffer while it runs.
        let mut keep = |_: &mut Vec<u8>| {};
        let mut out = Outgoing { buffer: &mut bytes, drain: &mut keep };
        let mut to = ResponseWriter::new(
            &mut out,
            asked,
            &handler_context.clock,
            usize::MAX,
            &app.templates,
        );
        to.visitor_session = visitor_session;
        let Done { follow, close } = to.finish(value);
        server::Finished { bytes, follow, close }
    })
}

/// Polls the future in `place`. The caller has just stored it, or an earlier poll returned pending.
fn poll_in<F: Future>(place: &mut Pin<Box<Option<F>>>, task: &mut Context<'_>) -> Poll<F::Output> {
    match place.as_mut().as_pin_mut() {
        Some(future) => future.poll(task),
        None => Poll::Pending,
    }
}

/// A form that its handler has rejected.
struct FormRejection {
    form: Box<SentForm>,
    error: Error,
    /// The reason, if the handler did not run.
    rejection: Option<Rejection>,
}

impl FormRejection {
    fn answer(
        self,
        visitor_session: Option<Arc<dyn RequestSession>>,
        context: &HandlerContext,
    ) -> Answer {
        let context = context.clone();
        Answer::Later(Box::pin(async move { self.reply(visitor_session, &context).await }))
    }

    /// Writes the page of the form, or the page of the error.
    async fn reply(
        self,
        visitor_session: Option<Arc<dyn RequestSession>>,
        context: &HandlerContext,
    ) -> server::Finished {
        let Self { form, error, rejection } = self;
        let sender = form.sender();
        let page = form.render(&error).await;
        let incoming = sender.request().incoming();
        let mut bytes = Vec::new();
        let mut keep = |_: &mut Vec<u8>| {};
        let mut out = Outgoing { buffer: &mut bytes, drain: &mut keep };
        let asked = RequestSummary::by(&incoming);
        let templates = &sender.app().templates;
        let mut to = ResponseWriter::new(&mut out, asked, &context.clock, usize::MAX, templates);
        to.visitor_session = visitor_session;
        let finished = page.and_then(|page| page.respond(&error, &mut to));
        let Done { follow, close } = match (finished, rejection) {
            (Some(finished), _) => Done { follow: to.follow, close: finished.close },
            (None, Some(rejection)) => to.finish(Response::of_rejection(&rejection)),
            (None, None) => to.finish(Err::<Response, _>(error)),
        };
        server::Finished { bytes, follow, close }
    }
}

struct Blocking<C, K> {
    name: &'static str,
    call: Arc<C>,
    kind: PhantomData<fn() -> K>,
}

struct Plain<C, K> {
    name: &'static str,
    call: Arc<C>,
    context: RouteContext,
    /// The server sends a page longer than this in chunks.
    chunk_at: usize,
    kind: PhantomData<fn() -> K>,
}

struct LocalBlocking {
    work: Arc<dyn Work>,
    body: u64,
    on_disk: bool,
}

impl<C, R, K> RouteHandler for Blocking<C, K>
where
    C: Fn(&mut RequestParts<'_>) -> Result<R, Rejection> + Send + Sync + 'static,
    R: HandlerOutput<K> + 'static,
    K: 'static,
{
    fn local(
        &self,
        handler_context: &HandlerContext,
        context: &RouteContext,
    ) -> Box<dyn LocalHandler> {
        let (name, call, kind) = (self.name, Arc::clone(&self.call), self.kind);
        let chunk_at = handler_context.chunk_at;
        let work = Arc::new(Plain { name, call, context: context.clone(), chunk_at, kind });
        Box::new(LocalBlocking { work, body: context.body, on_disk: context.on_disk })
    }
}

impl LocalHandler for LocalBlocking {
    fn call(&mut self, incoming: &Incoming<'_>, _out: &mut Outgoing<'_>) -> Answer {
        match incoming.body {
            // The body must be collected before the worker runs. A handler without a body does not
            // wait.
            server::Body::Pending if self.body > 0 => {
                Answer::Collect { limit: self.body, on_disk: self.on_disk }
            }
            _ => Answer::Work(Arc::clone(&self.work)),
        }
    }
}

impl<C, R, K> Work for Plain<C, K>
where
    C: Fn(&mut RequestParts<'_>) -> Result<R, Rejection> + Send + Sync,
    R: HandlerOutput<K>,
{
    fn run(&self, request: &Retained, clock: &Clock, out: &mut Outgoing<'_>) -> Done {
        let incoming = request.incoming();
        let (asked, templates) = (RequestSummary::by(&incoming), &self.context.app.templates);
        let mut to = ResponseWriter::new(out, asked, clock, self.chunk_at, templates);
        let mut arguments = self.context.arguments(&incoming);
        let called = (self.call)(&mut arguments);
        to.visitor_session = arguments.visitor_session;
        let rejected = match called {
            Ok(value) if !self.context.takes_form => return to.finish(value),
            Ok(value) => match value.or_error() {
                Ok(value) => return to.finish(value),
                Err(error) => match self.context.sent_form(&incoming) {
                    Some(form) => FormRejection { form, error, rejection: None },
                    None => return to.finish(Err::<Response, _>(error)),
                },
            },
            Err(rejection) => match self.context.rejected_form(&incoming, &rejection) {
                Some((form, error)) => FormRejection { form, error, rejection: Some(rejection) },
                None => return to.finish(Response::of_rejection(&rejection)),
            },
        };
        let FormRejection { form, error, rejection } = rejected;
        let page = form.render_blocking(&error);
        let finished = page.and_then(|page| page.respond(&error, &mut to));
        match (finished, rejection) {
            (Some(finished), _) => Done { follow: to.follow, close: finished.close },
            (None, Some(rejection)) => to.finish(Response::of_rejection(&rejection)),
            (None, None) => to.finish(Err::<Response, _>(error)),
        }
    }

    fn failed(&self, request: &Incoming<'_>, clock: &Clock, out: &mut Vec<u8>) {
        write_panic_response(RequestSummary::by(request), clock, &self.context.app.templates, out);
    }

    fn name(&self) -> &'static str {
        self.name
    }
}

impl RouteContext {
    /// The form that a browser without script has sent to a handler that takes one.
    fn sent_form(&self, incoming: &Incoming<'_>) -> Option<Box<SentForm>> {
        self.takes_form.then(|| SentForm::to_page(incoming, &self.app)).flatten()
    }

    /// The form whose arguments were rejected, with the error.
    fn rejected_form(
        &self,
        incoming: &Incoming<'_>,
        rejection: &Rejection,
    ) -> Option<(Box<SentForm>, Error)> {
        let Rejection::Invalid { name, reason } = rejection else { return None };
        let form = self.sent_form(incoming)?;
        let wrong = vec![ArgumentError::new(*name, reason.clone())];
        Some((form, Error::of_arguments(Status::BAD_REQUEST, wrong)))
    }

    fn arguments<'a>(&'a self, incoming: &'a Incoming<'a>) -> RequestParts<'a> {
        // A filter may have identified the user.
        let visitor_session =
            self.app.sessions.as_ref().and_then(|own| own.seen_session_of(incoming));
        RequestParts {
            pattern: &self.pattern,
            visitor_session,
            ..RequestParts::of(&self.app, incoming)
        }
    }
}

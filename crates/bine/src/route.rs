//! Decides how a handler is called: async ones in place on their loop, plain ones on a worker.

use std::future::{Future, poll_fn};
use std::marker::PhantomData;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use bine_log as log;
use bine_server::{
    self as server, Answer, Bench, Clock, Done, Incoming, LaterReply, Outgoing, Retained, Work,
};

use crate::app_state::AppState;
use crate::arguments::{Arguments, Needs, Rejection};
use crate::methods::Methods;
use crate::pattern::Pattern;
use crate::request_session::RequestSession;
use crate::respond::{Asked, Outcome, Replying, Response, apologize};

/// What `#[page]` makes of a function: one that makes its route.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a page of a program",
    note = "a page is the name of a function with `#[page(\"/path\")]` above it"
)]
pub trait Endpoint {
    /// Its route.
    fn route(self) -> Route;
}

impl<F: FnOnce() -> Route> Endpoint for F {
    fn route(self) -> Route {
        self()
    }
}

/// A path, methods, and what answers there.
pub struct Route {
    pub(crate) methods: Methods,
    pub(crate) path: &'static str,
    pub(crate) name: &'static str,
    pub(crate) needs: Needs,
    pub(crate) told: Told,
    /// Pages of other sites may send something here, or it sees to that itself.
    pub(crate) from_anywhere: bool,
    pub(crate) caller: Arc<dyn Caller>,
}

/// What is said of a route to whoever wants to know what a program serves.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Told {
    pub(crate) kind: Kind,
    /// Names and types.
    pub(crate) arguments: &'static [(&'static str, &'static str)],
    /// It changes nothing.
    pub(crate) is_safe: bool,
    /// It is not run again after a conflict.
    pub(crate) is_once: bool,
    /// Who may call it, of a service or an action that says it.
    pub(crate) rule: Option<AccessRule>,
}

/// Who may call a service or an action, as the list of routes shows it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AccessRule {
    pub(crate) name: &'static str,
    /// It looks at the session of the client.
    pub(crate) needs_session: bool,
}

/// What answers at a route.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) enum Kind {
    #[default]
    Page,
    Service,
    Action,
    Asset,
}

/// Where a route is in its program.
#[derive(Clone)]
pub(crate) struct Place {
    pub(crate) app: Arc<AppState>,
    pub(crate) pattern: Arc<Pattern>,
    /// The most bytes of a body that the handler takes.
    pub(crate) body: u64,
    /// It takes a longer one from disk, if it may wait for that.
    pub(crate) on_disk: bool,
}

/// What all threads share of a route.
pub(crate) trait Caller: Send + Sync {
    /// What one thread keeps of it.
    fn local(&self, bench: &Bench, place: &Place) -> Box<dyn LocalCaller>;
}

/// One thread's part of a route, which needs no lock.
pub(crate) trait LocalCaller {
    fn call(&mut self, incoming: &Incoming<'_>, out: &mut Outgoing<'_>) -> Answer;
}

impl Route {
    /// A route whose handler is async.
    pub fn future<C, F, K>(
        methods: Methods,
        path: &'static str,
        name: &'static str,
        call: C,
    ) -> Self
    where
        C: Fn(&mut Arguments<'_>) -> Result<F, Rejection> + Send + Sync + 'static,
        F: Future<Output: Outcome<K>> + 'static,
        K: 'static,
    {
        Self::new(methods, path, name, Async { name, call: Arc::new(call), kind: PhantomData })
    }

    /// A route whose handler may block.
    pub fn blocking<C, R, K>(
        methods: Methods,
        path: &'static str,
        name: &'static str,
        call: C,
    ) -> Self
    where
        C: Fn(&mut Arguments<'_>) -> Result<R, Rejection> + Send + Sync + 'static,
        R: Outcome<K> + 'static,
        K: 'static,
    {
        Self::new(methods, path, name, Blocking { name, call: Arc::new(call), kind: PhantomData })
    }

    pub(crate) fn new(
        methods: Methods,
        path: &'static str,
        name: &'static str,
        caller: impl Caller + 'static,
    ) -> Self {
        let (needs, told) = (Needs::default(), Told::default());
        let caller = Arc::new(caller);
        Self { methods, path, name, needs, told, from_anywhere: false, caller }
    }

    /// The same route, of which this is told.
    pub(crate) fn told(self, told: Told) -> Self {
        Self { told, ..self }
    }

    /// The same route with the names and types of its arguments.
    #[must_use]
    pub fn taking(mut self, arguments: &'static [(&'static str, &'static str)]) -> Self {
        self.told.arguments = arguments;
        self
    }

    /// The same route with what its arguments need.
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
    /// Where a future lives while it is polled: a future must not move once it has been, and this
    /// box is used again by the next.
    place_of_future: Option<Pin<Box<Option<F>>>>,
    bench: Bench,
    place: Place,
    kind: PhantomData<fn() -> K>,
}

impl<C, F, K> Caller for Async<C, K>
where
    C: Fn(&mut Arguments<'_>) -> Result<F, Rejection> + Send + Sync + 'static,
    F: Future<Output: Outcome<K>> + 'static,
    K: 'static,
{
    fn local(&self, bench: &Bench, place: &Place) -> Box<dyn LocalCaller> {
        Box::new(LocalAsync {
            name: self.name,
            call: Arc::clone(&self.call),
            place_of_future: None,
            bench: bench.clone(),
            place: place.clone(),
            kind: self.kind,
        })
    }
}

impl<C, F, K> LocalCaller for LocalAsync<C, F, K>
where
    C: Fn(&mut Arguments<'_>) -> Result<F, Rejection>,
    F: Future<Output: Outcome<K>> + 'static,
    K: 'static,
{
    fn call(&mut self, incoming: &Incoming<'_>, out: &mut Outgoing<'_>) -> Answer {
        let (clock, look) = (&*self.bench.clock, &self.place.app.look);
        let asked = Asked::by(incoming);
        let mut arguments = self.place.arguments(incoming);
        let future = match (self.call)(&mut arguments) {
            Ok(future) => future,
            Err(Rejection::NeedsBody { limit }) => {
                let limit = limit.max(self.place.body);
                return Answer::Collect { limit, on_disk: false };
            }
            Err(rejection) => {
                let to = Replying::new(out, asked, clock, usize::MAX, look);
                return to.for_visit(arguments.visit).answer(Response::of_rejection(&rejection));
            }
        };
        let visit = arguments.visit;
        let mut place = self.place_of_future.take().unwrap_or_else(|| Box::pin(None));
        place.set(Some(future));
        // Polled once in place, with nobody to wake: most handlers are ready at once. One that is
        // not becomes a task, which polls it again with a waker of its own.
        match poll_in(&mut place, &mut Context::from_waker(Waker::noop())) {
            Poll::Ready(value) => {
                place.set(None);
                self.place_of_future = Some(place);
                let to = Replying::new(out, asked, clock, self.bench.chunk_at, look);
                to.for_visit(visit).answer(value)
            }
            Poll::Pending => {
                let app = Arc::clone(&self.place.app);
                let may_ask = app.may_ask_later || app.look.actions.is_some();
                let asked = asked.kept(may_ask).ok_or_else(|| Retained::of(incoming));
                let later = Later { asked, visit, bench: self.bench.clone(), app, name: self.name };
                Answer::Later(finish_later(place, later))
            }
        }
    }
}

/// What the reply of a handler that was not ready at once must know.
struct Later {
    asked: Result<Asked<'static>, Retained>,
    visit: Option<Arc<dyn RequestSession>>,
    bench: Bench,
    app: Arc<AppState>,
    name: &'static str,
}

fn finish_later<F: Future<Output: Outcome<K>> + 'static, K: 'static>(
    mut place: Pin<Box<Option<F>>>,
    later: Later,
) -> LaterReply {
    Box::pin(async move {
        let Later { asked, visit, bench, app, name } = later;
        let polled = poll_fn(|task| {
            let polled = catch_unwind(AssertUnwindSafe(|| poll_in(&mut place, task)));
            polled.map_or(Poll::Ready(None), |polled| polled.map(Some))
        });
        let value = polled.await;
        let mut bytes = Vec::new();
        let incoming;
        let asked = match &asked {
            Ok(asked) => *asked,
            Err(request) => {
                incoming = request.incoming();
                Asked::by(&incoming)
            }
        };
        let Some(value) = value else {
            log::error(format_args!("{name} panicked; its peer got a 500"));
            apologize(asked.closing(), &bench.clock, &app.look, &mut bytes);
            return server::Finished { bytes, follow: None, close: true };
        };
        // It is one task among many of its loop, which nobody could drain.
        let mut keep = |_: &mut Vec<u8>| {};
        let mut out = Outgoing { buffer: &mut bytes, drain: &mut keep };
        let to = Replying::new(&mut out, asked, &bench.clock, usize::MAX, &app.look);
        let Done { follow, close } = to.for_visit(visit).finish(value);
        server::Finished { bytes, follow, close }
    })
}

/// Polls the future in `place`, where its caller has just put one or left it pending.
fn poll_in<F: Future>(place: &mut Pin<Box<Option<F>>>, task: &mut Context<'_>) -> Poll<F::Output> {
    match place.as_mut().as_pin_mut() {
        Some(future) => future.poll(task),
        None => Poll::Pending,
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
    place: Place,
    /// A page longer than this leaves while it is written.
    chunk_at: usize,
    kind: PhantomData<fn() -> K>,
}

struct LocalBlocking {
    work: Arc<dyn Work>,
    body: u64,
    on_disk: bool,
}

impl<C, R, K> Caller for Blocking<C, K>
where
    C: Fn(&mut Arguments<'_>) -> Result<R, Rejection> + Send + Sync + 'static,
    R: Outcome<K> + 'static,
    K: 'static,
{
    fn local(&self, bench: &Bench, place: &Place) -> Box<dyn LocalCaller> {
        let (name, call, kind) = (self.name, Arc::clone(&self.call), self.kind);
        let chunk_at = bench.chunk_at;
        let work = Arc::new(Plain { name, call, place: place.clone(), chunk_at, kind });
        Box::new(LocalBlocking { work, body: place.body, on_disk: place.on_disk })
    }
}

impl LocalCaller for LocalBlocking {
    fn call(&mut self, incoming: &Incoming<'_>, _out: &mut Outgoing<'_>) -> Answer {
        match incoming.body {
            // It cannot be asked for once the worker runs, and a handler that takes none is not kept waiting.
            server::Body::Coming if self.body > 0 => {
                Answer::Collect { limit: self.body, on_disk: self.on_disk }
            }
            _ => Answer::Work(Arc::clone(&self.work)),
        }
    }
}

impl<C, R, K> Work for Plain<C, K>
where
    C: Fn(&mut Arguments<'_>) -> Result<R, Rejection> + Send + Sync,
    R: Outcome<K>,
{
    fn run(&self, request: &Retained, clock: &Clock, out: &mut Outgoing<'_>) -> Done {
        let incoming = request.incoming();
        let (asked, look) = (Asked::by(&incoming), &self.place.app.look);
        let to = Replying::new(out, asked, clock, self.chunk_at, look);
        let mut arguments = self.place.arguments(&incoming);
        match (self.call)(&mut arguments) {
            Ok(value) => to.for_visit(arguments.visit).finish(value),
            Err(rejection) => {
                to.for_visit(arguments.visit).finish(Response::of_rejection(&rejection))
            }
        }
    }

    fn failed(&self, request: &Incoming<'_>, clock: &Clock, out: &mut Vec<u8>) {
        apologize(Asked::by(request), clock, &self.place.app.look, out);
    }

    fn name(&self) -> &'static str {
        self.name
    }
}

impl Place {
    fn arguments<'a>(&'a self, incoming: &'a Incoming<'a>) -> Arguments<'a> {
        // A filter may have seen the user.
        let visit = self.app.sessions.as_ref().and_then(|own| own.seen_session_of(incoming));
        Arguments { pattern: &self.pattern, visit, ..Arguments::of(&self.app, incoming) }
    }
}

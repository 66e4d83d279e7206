//! Decides how a handler is called: async ones in place on their loop, plain ones on a worker.

use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use bine_http::{Exchange, Method};
use bine_pipeline::{
    self as pipeline, Answer, Bench, Clock, Done, Incoming, LaterReply, Outgoing, Retained, Work,
};

use crate::arguments::{Arguments, Rejection};
use crate::request::MOST_BODY;
use crate::respond::{Replying, Respond, Response};

/// What `#[page]` makes of a function.
pub trait Endpoint {
    /// Its route.
    fn route(self) -> Route;
}

/// A path and what answers there.
pub struct Route {
    pub(crate) path: &'static str,
    pub(crate) name: &'static str,
    pub(crate) caller: Arc<dyn Caller>,
}

/// What all threads share of a route.
pub(crate) trait Caller: Send + Sync {
    /// What one thread keeps of it.
    fn local(&self, bench: &Bench) -> Box<dyn LocalCaller>;
}

/// One thread's part of a route, which needs no lock.
pub(crate) trait LocalCaller {
    fn call(&mut self, incoming: &Incoming<'_>, out: &mut Outgoing<'_>) -> Answer;
}

impl Route {
    /// A route whose handler is async.
    pub fn future<C, F>(path: &'static str, name: &'static str, call: C) -> Self
    where
        C: Fn(&mut Arguments<'_>) -> Result<F, Rejection> + Send + Sync + 'static,
        F: Future<Output: Respond> + 'static,
    {
        Self { path, name, caller: Arc::new(Async(Arc::new(call))) }
    }

    /// A route whose handler may block.
    pub fn blocking<C, R>(path: &'static str, name: &'static str, call: C) -> Self
    where
        C: Fn(&mut Arguments<'_>) -> Result<R, Rejection> + Send + Sync + 'static,
        R: Respond,
    {
        Self { path, name, caller: Arc::new(Blocking(Arc::new(Plain { name, call }))) }
    }
}

struct Async<C>(Arc<C>);

struct LocalAsync<C, F> {
    call: Arc<C>,
    /// Where a future lives while it is polled: a future must not move once it has been, and this
    /// box is used again by the next.
    place: Option<Pin<Box<Option<F>>>>,
    bench: Bench,
}

impl<C, F> Caller for Async<C>
where
    C: Fn(&mut Arguments<'_>) -> Result<F, Rejection> + Send + Sync + 'static,
    F: Future<Output: Respond> + 'static,
{
    fn local(&self, bench: &Bench) -> Box<dyn LocalCaller> {
        Box::new(LocalAsync { call: Arc::clone(&self.0), place: None, bench: bench.clone() })
    }
}

impl<C, F> LocalCaller for LocalAsync<C, F>
where
    C: Fn(&mut Arguments<'_>) -> Result<F, Rejection>,
    F: Future<Output: Respond> + 'static,
{
    fn call(&mut self, incoming: &Incoming<'_>, out: &mut Outgoing<'_>) -> Answer {
        let clock = &*self.bench.clock;
        let taken = take_arguments(incoming, &*self.call);
        let future = match taken {
            Ok(future) => future,
            Err(refusal) => return refusal.answer(incoming.exchange, clock, out),
        };
        let mut place = self.place.take().unwrap_or_else(|| Box::pin(None));
        place.set(Some(future));
        // Polled once in place, with nobody to wake: most handlers are ready at once. One that is
        // not becomes a task, which polls it again with a waker of its own.
        match poll_in(&mut place, &mut Context::from_waker(Waker::noop())) {
            Poll::Ready(value) => {
                place.set(None);
                self.place = Some(place);
                let exchange = incoming.exchange;
                let mut to = Replying::new(out, exchange, clock, self.bench.chunk_at);
                Answer::Written { close: value.respond(&mut to).close }
            }
            Poll::Pending => {
                Answer::Later(finish_later(place, incoming.exchange, self.bench.clone()))
            }
        }
    }
}

fn finish_later<F: Future<Output: Respond> + 'static>(
    mut place: Pin<Box<Option<F>>>,
    exchange: Exchange,
    bench: Bench,
) -> LaterReply {
    Box::pin(async move {
        let value = poll_fn(|task| poll_in(&mut place, task)).await;
        let mut bytes = Vec::new();
        let close = respond_into(value, exchange, &bench.clock, &mut bytes);
        pipeline::Finished { bytes, file: None, close }
    })
}

/// Polls the future in `place`, where its caller has just put one or left it pending.
fn poll_in<F: Future>(place: &mut Pin<Box<Option<F>>>, task: &mut Context<'_>) -> Poll<F::Output> {
    match place.as_mut().as_pin_mut() {
        Some(future) => future.poll(task),
        None => Poll::Pending,
    }
}

struct Blocking<P>(Arc<P>);

struct Plain<C> {
    name: &'static str,
    call: C,
}

struct LocalBlocking(Arc<dyn Work>);

impl<C, R> Caller for Blocking<Plain<C>>
where
    C: Fn(&mut Arguments<'_>) -> Result<R, Rejection> + Send + Sync + 'static,
    R: Respond,
{
    fn local(&self, _bench: &Bench) -> Box<dyn LocalCaller> {
        Box::new(LocalBlocking(Arc::clone(&self.0) as Arc<dyn Work>))
    }
}

impl LocalCaller for LocalBlocking {
    fn call(&mut self, incoming: &Incoming<'_>, _out: &mut Outgoing<'_>) -> Answer {
        match incoming.body {
            // It cannot be asked for once the worker runs.
            pipeline::Body::Coming => Answer::Collect { limit: MOST_BODY },
            pipeline::Body::None | pipeline::Body::Here(_) => Answer::Work(Arc::clone(&self.0)),
        }
    }
}

impl<C, R> Work for Plain<C>
where
    C: Fn(&mut Arguments<'_>) -> Result<R, Rejection> + Send + Sync,
    R: Respond,
{
    fn run(&self, request: &Retained, clock: &Clock, out: &mut Vec<u8>) -> Done {
        let incoming = request.incoming();
        let close = match take_arguments(&incoming, &self.call) {
            Ok(value) => respond_into(value, incoming.exchange, clock, out),
            Err(refusal) => {
                respond_into(refusal.response(incoming.exchange), incoming.exchange, clock, out)
            }
        };
        Done { file: None, close }
    }

    fn name(&self) -> &'static str {
        self.name
    }
}

/// Why a handler was not called.
enum Refusal {
    Rejected(Rejection),
    Method,
}

fn take_arguments<T>(
    incoming: &Incoming<'_>,
    call: impl FnOnce(&mut Arguments<'_>) -> Result<T, Rejection>,
) -> Result<T, Refusal> {
    let mut arguments = Arguments { incoming, any_method: false };
    let taken = call(&mut arguments);
    let reads = matches!(incoming.head.method(), Method::Get | Method::Head);
    if !reads && !arguments.any_method {
        return Err(Refusal::Method);
    }
    taken.map_err(Refusal::Rejected)
}

impl Refusal {
    fn answer(self, exchange: Exchange, clock: &Clock, out: &mut Outgoing<'_>) -> Answer {
        match self {
            Self::Rejected(Rejection::NeedsBody { limit }) => Answer::Collect { limit },
            other => other.response(exchange).answer(exchange, clock, out),
        }
    }

    fn response(self, exchange: Exchange) -> Response {
        match self {
            Self::Rejected(rejection) => Response::of_rejection(&rejection),
            Self::Method => Response::only_read(exchange.method),
        }
    }
}

/// Writes `value` whole into `bytes`; says whether the connection must close.
fn respond_into(
    value: impl Respond,
    exchange: Exchange,
    clock: &Clock,
    bytes: &mut Vec<u8>,
) -> bool {
    let mut keep = |_: &mut Vec<u8>| {};
    let mut out = Outgoing { buffer: bytes, drain: &mut keep };
    value.respond(&mut Replying::new(&mut out, exchange, clock, usize::MAX)).close
}

//! The answers of services: JSON for programs; for browsers without script, a redirect to the
//! calling page.

use std::any::TypeId;
use std::borrow::Cow;
use std::marker::PhantomData;
use std::sync::Arc;

use bine_http::{Finished, Status};
use serde::Serialize;

use crate::error::Error;
use crate::request_session::RequestSession;
use crate::respond::{Manner, Replying, Respond, Response};
use crate::wire;

/// The result of a service, by itself or in a `Result`: a value that `serde` can serialize, a page
/// or a [`Response`]. The compiler infers `Kind`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is no answer of a service",
    note = "a service returns a value with `#[derive(Serialize)]`, `impl Page`, a `Response`, or `Result<.., bine::Error>` with one of these"
)]
pub trait Answer<Kind> {
    /// Writes the whole response.
    #[doc(hidden)]
    fn answer(self, manner: &Manner, to: &mut Replying<'_, '_>) -> Finished;
}

/// The kind of an [`Answer`] that is a value.
#[derive(Debug)]
pub enum Valued {}

/// The kind of an [`Answer`] that is a response or a page.
#[derive(Debug)]
pub enum Shown {}

impl<T: Serialize + 'static> Answer<Valued> for T {
    fn answer(self, manner: &Manner, to: &mut Replying<'_, '_>) -> Finished {
        if manner.reads_pages && !manner.is_safe {
            let page = manner.page.clone().map_or(Cow::Borrowed("/"), Cow::Owned);
            return Response::see_other(page).respond(to);
        }
        if TypeId::of::<T>() == TypeId::of::<()>() {
            return Response::status(Status::NO_CONTENT).respond(to);
        }
        match wire::to_json(&self) {
            Ok(bytes) => Response::bytes("application/json", bytes).respond(to),
            Err(fault) => to.fail(&Error::from(fault), manner),
        }
    }
}

impl<R: Respond> Answer<Shown> for R {
    fn answer(self, _manner: &Manner, to: &mut Replying<'_, '_>) -> Finished {
        self.respond(to)
    }
}

/// The outcome of a call.
pub(super) enum Outcome<R> {
    Done(R),
    Failed(Error),
    /// It panicked, with this message.
    Broken(Option<String>),
}

/// The outcome of a call, with the properties of the request that shape its response.
pub(super) struct CallReply<R, K> {
    pub(super) outcome: Outcome<R>,
    pub(super) manner: Manner,
    /// The caller's session, if the call used it.
    pub(super) visit: Option<Arc<dyn RequestSession>>,
    pub(super) kind: PhantomData<fn() -> K>,
}

impl<R: Answer<K>, K> Respond for CallReply<R, K> {
    fn respond(self, to: &mut Replying<'_, '_>) -> Finished {
        to.visit(self.visit);
        match self.outcome {
            Outcome::Done(answer) => answer.answer(&self.manner, to),
            Outcome::Failed(error) => to.fail(&error, &self.manner),
            Outcome::Broken(words) => to.break_down(words.as_slice(), &self.manner),
        }
    }
}

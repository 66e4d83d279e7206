//! Decides how a caller is answered: a program by JSON, who reads pages by the page that called.

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

/// What a service may return, by itself or in a `Result`: a value that `serde` can write, a page or a
/// [`Response`]. `Kind` keeps the ways apart for the compiler, which finds it by itself.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is no answer of a service",
    note = "a service returns a value with `#[derive(Serialize)]`, `impl Page`, a `Response`, or `Result<.., bine::Error>` with one of these"
)]
pub trait Answer<Kind> {
    /// Writes the whole reply.
    #[doc(hidden)]
    fn answer(self, manner: &Manner, to: &mut Replying<'_, '_>) -> Finished;
}

/// The kind of an [`Answer`] that is a value.
#[derive(Debug)]
pub enum Valued {}

/// The kind of an [`Answer`] that is shown.
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

/// What came of a call.
pub(super) enum Outcome<R> {
    Done(R),
    Failed(Error),
    /// It panicked, and said so.
    Broken(Option<String>),
}

/// What came of a call, with whom to tell it.
pub(super) struct Said<R, K> {
    pub(super) outcome: Outcome<R>,
    pub(super) manner: Manner,
    /// The caller's session, if it was looked at.
    pub(super) visit: Option<Arc<dyn RequestSession>>,
    pub(super) kind: PhantomData<fn() -> K>,
}

impl<R: Answer<K>, K> Respond for Said<R, K> {
    fn respond(self, to: &mut Replying<'_, '_>) -> Finished {
        to.visit(self.visit);
        match self.outcome {
            Outcome::Done(answer) => answer.answer(&self.manner, to),
            Outcome::Failed(error) => to.fail(&error, &self.manner),
            Outcome::Broken(words) => to.break_down(words.as_slice(), &self.manner),
        }
    }
}

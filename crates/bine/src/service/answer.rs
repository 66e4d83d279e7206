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
use crate::respond::{Respond, Response, ResponsePreference, ResponseWriter};
use crate::returned_form::{FormPage, SentForm};
use crate::wire::{self, Limits, Value};

/// The result of a service, by itself or in a `Result`: a value that `serde` can serialize, a page
/// or a [`Response`]. The compiler infers `Kind`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is no answer of a service",
    note = "a service returns a value with `#[derive(Serialize)]`, `impl Page`, a `Response`, or `Result<.., bine::Error>` with one of these"
)]
pub trait ServiceOutput<Kind> {
    /// Writes the whole response.
    #[doc(hidden)]
    fn answer(self, preference: &ResponsePreference, to: &mut ResponseWriter<'_, '_>) -> Finished;

    /// The answer for a caller in the program: JSON, `null` if it is absent.
    #[doc(hidden)]
    fn into_json(self) -> Result<Value, Error>;
}

/// The kind of a [`ServiceOutput`] that is a value.
#[derive(Debug)]
pub enum JsonOutput {}

/// The kind of a [`ServiceOutput`] that is a response or a page.
#[derive(Debug)]
pub enum ResponseOutput {}

impl<T: Serialize + 'static> ServiceOutput<JsonOutput> for T {
    fn answer(self, preference: &ResponsePreference, to: &mut ResponseWriter<'_, '_>) -> Finished {
        if preference.reads_pages && !preference.is_safe {
            let page = preference.page.clone().map_or(Cow::Borrowed("/"), Cow::Owned);
            return Response::see_other(page).respond(to);
        }
        if TypeId::of::<T>() == TypeId::of::<()>() {
            return Response::status(Status::NO_CONTENT).respond(to);
        }
        match wire::to_json(&self) {
            Ok(bytes) => Response::bytes("application/json", bytes).respond(to),
            Err(fault) => to.fail(&Error::from(fault), preference),
        }
    }

    fn into_json(self) -> Result<Value, Error> {
        json_of(&self)
    }
}

/// A value as a client gets it.
pub(super) fn json_of(value: &impl Serialize) -> Result<Value, Error> {
    let text = wire::to_json(value)?;
    // The program has written it, so its length is the only limit.
    let most = text.len();
    let limits = Limits { bytes: most, keys: most, values: most, ..Limits::default() };
    Ok(wire::read(&text, &limits)?)
}

/// The error for a caller in the program of a service whose answer has no JSON.
pub(super) fn for_browsers_only() -> Error {
    let told = "a service calls one whose answer is a page or a response, which only a browser can use: answer a value with `#[derive(Serialize)]`";
    Error::hidden(Status::INTERNAL_SERVER_ERROR, told.to_owned())
}

impl<R: Respond> ServiceOutput<ResponseOutput> for R {
    fn answer(self, _manner: &ResponsePreference, to: &mut ResponseWriter<'_, '_>) -> Finished {
        self.respond(to)
    }

    fn into_json(self) -> Result<Value, Error> {
        Err(for_browsers_only())
    }
}

/// The outcome of a call.
pub(super) enum CallOutcome<R> {
    Done(R),
    Failed(Error),
    /// It panicked, with this message.
    Broken(Option<String>),
}

impl<R> CallOutcome<R> {
    /// The page of the form that made the call, if the call has rejected it.
    pub(super) async fn form_page(&self, form: Option<Box<SentForm>>) -> Option<Box<FormPage>> {
        match (self, form) {
            (Self::Failed(error), Some(form)) => form.render(error).await,
            _ => None,
        }
    }
}

/// The outcome of a call, with the properties of the request that shape its response.
pub(super) struct CallReply<R, K> {
    pub(super) outcome: CallOutcome<R>,
    pub(super) preference: ResponsePreference,
    /// The page of a rejected form, for a browser without script.
    pub(super) form_page: Option<Box<FormPage>>,
    /// The caller's session, if the call used it.
    pub(super) visitor_session: Option<Arc<dyn RequestSession>>,
    pub(super) kind: PhantomData<fn() -> K>,
}

impl<R: ServiceOutput<K>, K> Respond for CallReply<R, K> {
    fn respond(self, to: &mut ResponseWriter<'_, '_>) -> Finished {
        to.override_session(self.visitor_session);
        match self.outcome {
            CallOutcome::Done(answer) => answer.answer(&self.preference, to),
            CallOutcome::Failed(error) => {
                let returned = self.form_page.and_then(|page| page.respond(&error, to));
                returned.unwrap_or_else(|| to.fail(&error, &self.preference))
            }
            CallOutcome::Broken(words) => to.break_down(words.as_slice(), &self.preference),
        }
    }
}

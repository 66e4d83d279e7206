//! Services: functions that browsers, forms and other programs call by name.

pub(crate) mod action;
mod answer;
mod call;
mod call_arguments;
mod check;
#[cfg(feature = "script")]
mod dynamic;
mod field;
#[cfg(any(feature = "browser", feature = "script"))]
pub(crate) mod import_names;
#[cfg_attr(not(feature = "script"), allow(dead_code, reason = "parts for services of scripts"))]
pub(crate) mod in_process;
mod limits;
pub(crate) mod reference;
mod replace;
mod rule;
#[cfg(any(feature = "browser", feature = "script"))]
pub(crate) mod type_declarations;
pub(crate) mod type_shape;

#[cfg(test)]
mod tests;

use std::fmt;
use std::future::{Future, poll_fn};
use std::marker::PhantomData;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::Poll;

use bine_html::{Attribute, AttributeValue, Writer};
use bine_http::{Method, Status};
use bine_log as log;

use answer::{CallOutcome, CallReply};
use call::CallContext;
use call_arguments::{ArgumentReader, ArgumentsError, ReadArguments};
use in_process::{DescribeService, NamedService, RustService};
use type_shape::ServiceShape;

use crate::accept::prefers_pages;
use crate::arguments::{MOST_BODY, Needs, Rejection, RequestParts};
use crate::error::Error;
use crate::methods::Methods;
use crate::origin;
use crate::panics;
use crate::returned_form::{SentForm, calling_page};
use crate::route::{Route, RouteInfo, RouteKind};
use crate::store::Transaction;
use crate::visitor_message::VisitorMessage;

pub use crate::problem::ArgumentError;
pub use crate::respond::ResponsePreference;
pub use action::{Action, ActionOutput};
pub use answer::{JsonOutput, ResponseOutput, ServiceOutput};
pub(crate) use call::lacking;
pub use call::{Call, Caller};
pub use call_arguments::{CallArguments, ServiceArgument, ServiceArguments};
pub use check::check_call;
#[cfg(feature = "script")]
pub(crate) use dynamic::{DynamicAnswer, DynamicCall, DynamicService, dynamic_route};
pub(crate) use in_process::check_scheduled;
pub use limits::{ArgumentLimits, write_limits};
pub use replace::{Replace, ReplaceOutput};
pub(crate) use rule::DefaultRule;
pub use rule::Rule;
pub use type_shape::{AnswerProbe, DescribedAnswer, OpaqueAnswer, TypeShape};

/// A service, which `#[service]` makes of a function: its address, its arguments `A` and its answer
/// `T`.
///
/// As the value of an attribute it is its address: `<form method="post" action={post}>`.
pub struct Service<A, T> {
    signature: &'static Signature,
    route: fn(&'static Signature) -> Route,
    types: PhantomData<fn(A) -> T>,
}

/// The name of a function with `#[service]`, as a value.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a service",
    note = "a service is the name of a function with `#[service]` above it"
)]
pub trait Callable {
    /// Its arguments, as a tuple.
    type Arguments;
    /// Its answer if it succeeds.
    type Output;

    /// The service itself.
    fn service(self) -> Service<Self::Arguments, Self::Output>;
}

impl<F: FnOnce() -> Service<A, T>, A, T> Callable for F {
    type Arguments = A;
    type Output = T;

    fn service(self) -> Service<A, T> {
        self()
    }
}

/// The declaration of a service.
#[derive(Debug)]
pub struct Signature {
    /// The path of the function, starting with its crate.
    pub name: &'static str,
    /// Its address, if not the default.
    pub path: Option<&'static str>,
    /// Names and types of the arguments.
    pub arguments: &'static [(&'static str, &'static str)],
    /// The type of the answer, and the function that finds its shape.
    pub answer: (&'static str, fn() -> TypeShape),
    /// Whether it changes no data and may be called by GET.
    pub is_safe: bool,
    /// Whether it does not run again after a conflict.
    pub is_once: bool,
    /// The access rule; `None`: the program's default.
    pub rule: Option<Rule>,
    /// Whether it takes its caller.
    pub knows_caller: bool,
    /// Whether a program of this process has it, or the log reports that it is missing.
    pub is_known: AtomicBool,
    /// The limits of the arguments.
    pub limits: ArgumentLimits,
}

impl<A, T> Service<A, T> {
    /// Creates a service; the macro writes this call.
    #[doc(hidden)]
    pub const fn new(
        signature: &'static Signature,
        route: fn(&'static Signature) -> Route,
    ) -> Self {
        Self { signature, route, types: PhantomData }
    }

    /// Its address.
    pub fn path(&self) -> String {
        self.signature.to_string()
    }

    /// The names of its arguments, in order.
    pub fn arguments(&self) -> impl Iterator<Item = &'static str> + use<A, T> {
        self.signature.arguments.iter().map(|(name, _)| *name)
    }

    /// Whether it changes no data.
    pub(crate) const fn is_safe(&self) -> bool {
        self.signature.is_safe
    }

    pub(crate) fn route(&self) -> Route {
        self.signature.is_known.store(true, Ordering::Relaxed);
        (self.route)(self.signature)
    }
}

impl<A, T> AttributeValue for Service<A, T> {
    fn write_attribute(&self, attribute: Attribute, writer: &mut Writer<'_>) {
        // The check at the start does not see functions that pages call.
        if !self.signature.is_known.load(Ordering::Relaxed) {
            self.signature.report_unknown();
        }
        format_args!("{}", self.signature).write_attribute(attribute, writer);
    }
}

impl<A, T> fmt::Debug for Service<A, T> {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.debug_tuple("Service").field(self.signature).finish()
    }
}

/// The address: the crate and the function, unless the declaration sets one.
impl fmt::Display for Signature {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.path {
            Some(path) => to.write_str(path),
            None => {
                let mut names = self.name.split("::");
                let app = names.next().unwrap_or_default();
                write!(to, "/{app}/{}", names.last().unwrap_or_default())
            }
        }
    }
}

impl Signature {
    /// Logs once that a page names the service although no program has it.
    #[cold]
    fn report_unknown(&self) {
        if !self.is_known.swap(true, Ordering::Relaxed) {
            let (name, path) = (self.name, self);
            let function = name.rsplit("::").next().unwrap_or_default();
            log::error(format_args!(
                "a page names the service {name}, which the program does not have, so {path} is not found; add `.service({function})` to the app"
            ));
        }
    }

    /// The route of a service that runs as a transaction on the program's tables.
    pub fn changing<A, R, E, K, F>(&'static self, read: ReadArguments<A>, run: F) -> Route
    where
        F: Fn(&mut Call, A) -> Result<R, E> + Send + Sync + 'static,
        A: 'static,
        R: ServiceOutput<K> + 'static,
        E: Into<Error>,
        K: 'static,
    {
        let run = Arc::new(run);
        let joined = Arc::clone(&run);
        let begin = move |caller: Caller, given: CallArguments| {
            let mut first = Some(self.take(&given, read)?);
            let store = caller.context().store().clone();
            let mut call = Call::new(store.begin(), caller);
            let run = Arc::clone(&run);
            let action = move |transaction: &mut Transaction| {
                // The arguments are read again after a conflict.
                let arguments = first.take().map_or_else(|| self.take(&given, read), Ok)?;
                let outcome = call.within(transaction, |call| run(call, arguments));
                let outcome = outcome.map_err(Into::into)?;
                if self.is_safe && transaction.has_written() {
                    return Err(self.safe_write_error());
                }
                Ok(outcome)
            };
            Ok(async move {
                if self.is_once {
                    store.change_once(action).await
                } else {
                    store.change(action).await
                }
            })
        };
        self.route(self.describe(read), begin, move |caller, given, transaction| {
            if self.is_once {
                return Err(self.misuse("runs only once, and a transaction may run again"));
            }
            let arguments = self.take(&given, read)?;
            let mut call = Call::new(caller.context().store().begin(), caller);
            let outcome = call.within(transaction, |call| joined(call, arguments));
            // The caller may write, so that no link triggers the changes of a safe service.
            outcome.map_err(Into::into)
        })
    }

    /// The error for a service that is called within a transaction and cannot join it.
    fn misuse(&self, reason: &str) -> Error {
        let told = format!(
            "a service calls {} within its transaction, but that one {reason}: call it before or after the transaction",
            self.name
        );
        Error::hidden(Status::INTERNAL_SERVER_ERROR, told)
    }

    /// A safe service may be called by GET, so any link could trigger its changes.
    fn safe_write_error(&self) -> Error {
        let told = format!(
            "the service {} is `safe` and has written to a table, so its changes were rolled back: remove `safe`, or do not write",
            self.name
        );
        Error::hidden(Status::INTERNAL_SERVER_ERROR, told)
    }

    /// The route of a service that returns its answer without waiting.
    pub fn answering<A, R, E, K, F>(&'static self, read: ReadArguments<A>, run: F) -> Route
    where
        F: Fn(Caller, A) -> Result<R, E> + Send + Sync + 'static,
        A: 'static,
        R: ServiceOutput<K> + 'static,
        E: Into<Error>,
        K: 'static,
    {
        let run = Arc::new(run);
        let joined = Arc::clone(&run);
        let begin = move |caller: Caller, given: CallArguments| {
            let (run, arguments) = (Arc::clone(&run), self.take(&given, read)?);
            Ok(async move { run(caller, arguments).map_err(Into::into) })
        };
        self.route(self.describe(read), begin, move |caller, given, _| {
            joined(caller, self.take(&given, read)?).map_err(Into::into)
        })
    }

    /// The route of a service that may await.
    pub fn awaiting<A, R, E, K, F, D>(&'static self, read: ReadArguments<A>, run: F) -> Route
    where
        F: Fn(Caller, A) -> D + Send + Sync + 'static,
        D: Future<Output = Result<R, E>> + 'static,
        A: 'static,
        R: ServiceOutput<K> + 'static,
        E: Into<Error>,
        K: 'static,
    {
        let run = Arc::new(run);
        let begin = move |caller: Caller, given: CallArguments| {
            let (run, arguments) = (Arc::clone(&run), self.take(&given, read)?);
            Ok(async move { run(caller, arguments).await.map_err(Into::into) })
        };
        self.route(self.describe(read), begin, move |_, _, _| Err(self.misuse("awaits")))
    }

    /// Finds the shape of the service.
    fn describe<A: 'static>(&'static self, read: ReadArguments<A>) -> DescribeService {
        Box::new(move || ServiceShape {
            arguments: ArgumentReader::shapes(self.arguments.len(), read),
            answer: (self.answer.1)(),
        })
    }

    /// The route of a service. `begin` starts it for a request, and `join` runs it within the
    /// transaction of another service.
    fn route<R, K, B, J, D>(&'static self, describe: DescribeService, begin: B, join: J) -> Route
    where
        B: Fn(Caller, CallArguments) -> Result<D, Error> + Send + Sync + 'static,
        J: Fn(Caller, CallArguments, &mut Transaction) -> Result<R, Error> + Send + Sync + 'static,
        D: Future<Output = Result<R, Error>> + 'static,
        R: ServiceOutput<K> + 'static,
        K: 'static,
    {
        let methods = if self.is_safe { Methods::GET.or(Methods::POST) } else { Methods::POST };
        // A program creates each service once, so the leak is bounded.
        let path = self.to_string().leak();
        let begin = Arc::new(begin);
        let own =
            RustService { signature: self, begin: Arc::clone(&begin), join, kind: PhantomData };
        let attached = Some(NamedService::attached(path, own, describe));
        let route = Route::future(methods, path, self.name, move |arguments| {
            let context = Arc::new(CallContext::new(arguments.incoming, arguments.app));
            let rule = rule::rule_for(self.rule, arguments.app);
            let admitted = admit(self.name, rule, arguments, &context)?;
            let mut parts = ReplyParts::of(self.is_safe, arguments, &context);
            let begun = admitted.and_then(|given| parts.begin(given, &*begin));
            Ok(parts.complete(self.name, begun))
        });
        let Self { arguments, is_safe, is_once, rule, .. } = *self;
        let rule = rule.map(|rule| rule.access());
        let info = RouteInfo { kind: RouteKind::Service, arguments, is_safe, is_once, rule };
        // The service checks the origin itself and responds as services do.
        let route = Route { info, from_anywhere: true, attached, ..route };
        route.needing(&[
            |needs: &mut Needs| needs.body(MOST_BODY),
            if self.knows_caller {
                |needs: &mut Needs| needs.sessions = true
            } else {
                |_: &mut Needs| ()
            },
        ])
    }

    fn take<A>(&self, given: &CallArguments, read: ReadArguments<A>) -> Result<A, Error> {
        ArgumentReader::read(given, self.arguments, read)
            .map_err(|wrong: Vec<ArgumentError>| Error::of_arguments(Status::BAD_REQUEST, wrong))
    }
}

/// Checks whether a call of the service called `name` is permitted, and reads its arguments.
fn admit(
    name: &'static str,
    rule: Rule,
    arguments: &RequestParts<'_>,
    context: &Arc<CallContext>,
) -> Result<Result<CallArguments, Error>, Rejection> {
    admit_with(rule, arguments, context, |kind| {
        Ok(CallArguments::in_content(kind, &arguments.body(name)?))
    })
}

/// Checks whether a call is permitted, and reads its arguments. `in_body` reads those in a body of a
/// media type that services accept.
fn admit_with(
    rule: Rule,
    arguments: &RequestParts<'_>,
    context: &Arc<CallContext>,
    in_body: impl FnOnce(&str) -> Result<Result<CallArguments, ArgumentsError>, Rejection>,
) -> Result<Result<CallArguments, Error>, Rejection> {
    let head = &arguments.incoming.head;
    let is_in_query = matches!(head.method(), Method::Get | Method::Head);
    if !is_in_query && origin::may_be_foreign(head) {
        return Ok(Err(Error::told(Status::FORBIDDEN, VisitorMessage::AnotherSiteCalls {})));
    }
    if let Err(refused) = rule.admit(context) {
        return Ok(Err(refused));
    }
    let kind = head.field_text("content-type").unwrap_or_default();
    let given = if is_in_query {
        CallArguments::in_query(head.query().unwrap_or_default())
    } else if CallArguments::is_readable(kind) {
        in_body(kind)?
    } else {
        Err(ArgumentsError::Unsupported)
    };
    Ok(given.map_err(ArgumentsError::into_error))
}

/// The properties of a call that shape its reply.
struct ReplyParts {
    preference: ResponsePreference,
    context: Arc<CallContext>,
    /// The form that made the call, if a browser without script has sent it.
    sent_form: Option<Box<SentForm>>,
}

impl ReplyParts {
    fn of(is_safe: bool, arguments: &RequestParts<'_>, context: &Arc<CallContext>) -> Self {
        let head = &arguments.incoming.head;
        let preference = ResponsePreference {
            reads_pages: prefers_pages(head.field_text("accept")),
            is_safe,
            page: calling_page(head, arguments.app),
        };
        Self { preference, context: Arc::clone(context), sent_form: None }
    }

    /// Begins a call that is permitted.
    fn begin<D>(
        &mut self,
        given: CallArguments,
        begin: impl FnOnce(Caller, CallArguments) -> Result<D, Error>,
    ) -> Result<D, Error> {
        let sender = Arc::clone(&self.context);
        self.sent_form = SentForm::of(sender, &self.preference, given.texts(), None);
        begin(Caller::new(Arc::clone(&self.context)), given)
    }

    /// The reply of the call with this name.
    async fn complete<R, K, D>(self, name: &'static str, begun: Result<D, Error>) -> CallReply<R, K>
    where
        D: Future<Output = Result<R, Error>>,
        R: ServiceOutput<K>,
    {
        let Self { preference, context, sent_form } = self;
        let outcome = match begun {
            Ok(work) => run_to_outcome(name, work).await,
            Err(error) => CallOutcome::Failed(error),
        };
        CallReply {
            form_page: outcome.form_page(sent_form).await,
            outcome,
            preference,
            visitor_session: context.used_session(),
            kind: PhantomData,
        }
    }
}

/// The outcome of a call, also if it panics.
async fn run_to_outcome<R>(
    name: &str,
    work: impl Future<Output = Result<R, Error>>,
) -> CallOutcome<R> {
    let mut work = pin!(work);
    let polled = poll_fn(|task| {
        let polled = catch_unwind(AssertUnwindSafe(|| work.as_mut().poll(task)));
        polled.map_or(Poll::Ready(None), |polled| polled.map(Some))
    });
    match polled.await {
        Some(Ok(value)) => CallOutcome::Done(value),
        Some(Err(error)) => CallOutcome::Failed(error),
        None => {
            log::error(format_args!("{name} panicked; its caller got a 500"));
            CallOutcome::Broken(panics::take_last_message())
        }
    }
}

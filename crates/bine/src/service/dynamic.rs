//! Services that are known only when they are called, such as those of a script: one route has all
//! services.

use std::future::Future;
use std::sync::Arc;

use bine_http::Finished;
use bine_server::Body;
use serde_json::Value;

use super::answer::{ServiceOutput, for_browsers_only};
use super::call::{CallContext, Caller};
use super::call_arguments::ArgumentsError;
use super::{CallArguments, JsonOutput, ReplyParts, ResponseOutput, Rule, admit_with};
use crate::arguments::{MAX_UPLOAD, MOST_BODY, Needs, Rejection, RequestParts};
use crate::error::Error;
use crate::methods::Methods;
use crate::respond::{Response, ResponsePreference, ResponseWriter};
use crate::route::{Route, RouteInfo, RouteKind};

/// The services at one path with a parameter.
pub(crate) trait DynamicService: Send + Sync + 'static {
    /// The permitted callers. The rule is checked before anything else is known about a service.
    fn rule(&self) -> Rule;

    /// Whether the service of this name takes files. It is asked after the rule.
    fn takes_files(&self, name: &str) -> bool;

    /// Runs a service.
    fn call(&self, call: DynamicCall) -> impl Future<Output = Result<DynamicAnswer, Error>>;
}

/// A call of a service that is found by its name.
pub(crate) struct DynamicCall {
    /// The value of the path's parameter.
    pub(crate) name: String,
    pub(crate) caller: Caller,
    pub(crate) arguments: CallArguments,
}

/// The answer of a service.
pub(crate) enum DynamicAnswer {
    Nothing,
    Json(Value),
    Redirect(String),
    /// A page, which its subsystem writes.
    Page(WritePage),
}

/// Writes a page.
pub(crate) type WritePage = Box<dyn FnOnce(&mut ResponseWriter<'_, '_>) -> Finished>;

impl DynamicAnswer {
    /// The answer for a call within the program.
    ///
    /// # Errors
    ///
    /// A redirect and a page are for browsers only.
    pub(crate) fn into_value(self) -> Result<Value, Error> {
        match self {
            Self::Nothing => Ok(Value::Null),
            Self::Json(value) => Ok(value),
            Self::Redirect(_) | Self::Page(_) => Err(for_browsers_only()),
        }
    }
}

impl ServiceOutput<DynamicAnswer> for DynamicAnswer {
    fn into_json(self) -> Result<Value, Error> {
        self.into_value()
    }

    fn answer(self, preference: &ResponsePreference, to: &mut ResponseWriter<'_, '_>) -> Finished {
        match self {
            Self::Nothing => ServiceOutput::<JsonOutput>::answer((), preference, to),
            Self::Json(value) => ServiceOutput::<JsonOutput>::answer(value, preference, to),
            Self::Redirect(location) => {
                let response = Response::see_other(location);
                ServiceOutput::<ResponseOutput>::answer(response, preference, to)
            }
            Self::Page(write) => write(to),
        }
    }
}

/// The route of services at `path`, whose parameter `parameter` is their name. `name`: the name of the
/// route in logs.
pub(crate) fn dynamic_route<S: DynamicService>(
    path: &'static str,
    parameter: &'static str,
    name: &'static str,
    service: &Arc<S>,
) -> Route {
    let rule = Some(service.rule().access());
    let own = Arc::clone(service);
    let route = Route::future(Methods::POST, path, name, move |arguments| {
        let context = Arc::new(CallContext::new(arguments.incoming, arguments.app));
        let path = arguments.incoming.head.path();
        let called = arguments.pattern.find(&path, parameter).unwrap_or_default().to_owned();
        let admitted = admit_with(own.rule(), arguments, &context, |kind| {
            if is_multipart(kind) && own.takes_files(&called) {
                return in_form_with_files(name, kind, arguments);
            }
            Ok(CallArguments::in_content(kind, &arguments.body(name)?))
        })?;
        let own = Arc::clone(&own);
        let mut parts = ReplyParts::of(false, arguments, &context);
        let begin = move |caller, arguments| {
            let call = DynamicCall { name: called, caller, arguments };
            Ok(async move { own.call(call).await })
        };
        let begun = admitted.and_then(|given| parts.begin(given, begin));
        Ok(parts.complete(name, begun))
    });
    let info = RouteInfo { kind: RouteKind::Service, rule, ..RouteInfo::default() };
    let route = Route { info, from_anywhere: true, ..route };
    route.needing(&[
        |needs: &mut Needs| needs.body(MOST_BODY),
        |needs: &mut Needs| needs.sessions = true,
    ])
}

/// Whether it is the media type of a form that may have files.
fn is_multipart(kind: &str) -> bool {
    let essence = kind.split(';').next().unwrap_or_default().trim();
    essence.eq_ignore_ascii_case("multipart/form-data")
}

/// The arguments in a form with files. It is in memory as a whole, as for an async page that takes an
/// `Upload`.
fn in_form_with_files(
    name: &'static str,
    kind: &str,
    arguments: &RequestParts<'_>,
) -> Result<Result<CallArguments, ArgumentsError>, Rejection> {
    let body = match arguments.incoming.body {
        Body::Pending => return Err(Rejection::NeedsBody { limit: MAX_UPLOAD }),
        Body::InMemory(bytes) => bytes,
        Body::None | Body::OnDisk(_) => &arguments.body(name)?,
    };
    let given = CallArguments::in_form_with_files(kind, body);
    Ok(given.unwrap_or(Err(ArgumentsError::Unsupported)))
}

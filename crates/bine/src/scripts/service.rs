//! The services of applications: checks the arguments, and runs the function in a transaction.

use std::cell::RefCell;
use std::pin::pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use bine_http::Status;
use bine_script::{Call, Fault, Value};
use bine_tsx::Shape;

use super::application::Application;
use super::arguments;
use super::call_state::CallState;
use super::faults;
use super::instance::{LocalApplication, LocalFunction, local};
use super::json::to_json;
use super::page::{Answer, ScriptContent, ScriptPage};
use super::sealed;
use super::uploads;
use crate::error::Error;
use crate::service::in_process::{InProcessAnswer, InProcessService, ServiceSource};
use crate::service::{
    ArgumentError, CallArguments, Caller, DynamicAnswer, DynamicCall, DynamicService, Rule,
};
use crate::sessions::SessionTransaction;
use crate::store::Transaction;
use crate::visitor_message::VisitorMessage;

/// All services of an application.
pub(super) struct AppServices {
    pub(super) app: Arc<Application>,
    /// The name of the route.
    pub(super) handler: &'static str,
}

impl DynamicService for AppServices {
    fn rule(&self) -> Rule {
        self.app.listing(None).rule
    }

    fn takes_files(&self, name: &str) -> bool {
        // An application that cannot be loaded reports it for the call.
        self.app.generation().is_ok_and(|generation| {
            let mut services = generation.services();
            services.any(|(_, own)| own.name == name && uploads::has_upload(&own.argument))
        })
    }

    async fn call(&self, call: DynamicCall) -> Result<DynamicAnswer, Error> {
        let _place = self.app.place(&call.caller, self.handler).await?;
        call_in(&self.app, call).await
    }
}

/// Calls a service of an application.
async fn call_in(app: &Arc<Application>, call: DynamicCall) -> Result<DynamicAnswer, Error> {
    let DynamicCall { name, caller, arguments } = call;
    let store = caller.store().clone();
    let local = local(app, &caller).await?;
    let (run, values) = Run::new(&local, &name, caller, &arguments)?;
    let result = if run.service.is_async {
        run.begin(&values).await.map_err(|fault| run.error(&fault))?
    } else {
        let session = RefCell::new(None);
        let action = |transaction: &mut Transaction| {
            // The changes of an attempt before a conflict are taken back.
            session.take();
            let result = run.within(transaction, &values);
            session.replace(run.state.take_session());
            result
        };
        let result = store.change(action).await?;
        session.take().into_iter().for_each(SessionTransaction::keep);
        run.state.wait_for_work_after_commit().await;
        result
    };
    run.answer(result)
}

/// The services of all applications, for calls within the program.
pub(super) struct ScriptServices(pub(super) Vec<Arc<Application>>);

impl ServiceSource for ScriptServices {
    fn find(&self, path: &str) -> Option<Arc<dyn InProcessService>> {
        let (url, name) = path.rsplit_once('/')?;
        let app = self.0.iter().find(|app| app.url == url)?;
        Some(Arc::new(ScriptService { app: Arc::clone(app), name: name.to_owned() }))
    }
}

/// One service of an application, which may not be loaded yet.
struct ScriptService {
    app: Arc<Application>,
    name: String,
}

impl InProcessService for ScriptService {
    fn call(&self, caller: Caller, arguments: CallArguments) -> InProcessAnswer {
        // The request that makes this call has a place already.
        let (app, name) = (Arc::clone(&self.app), self.name.clone());
        Box::pin(async move {
            app.listing(None).rule.admit_caller(&caller)?;
            let answer = call_in(&app, DynamicCall { name, caller, arguments }).await?;
            answer.into_value()
        })
    }

    fn join(
        &self,
        caller: Caller,
        arguments: CallArguments,
        transaction: &mut Transaction,
    ) -> Result<serde_json::Value, Error> {
        self.app.listing(None).rule.admit_caller(&caller)?;
        let loaded = {
            let loading = pin!(local(&self.app, &caller));
            loading.poll(&mut Context::from_waker(Waker::noop()))
        };
        let Poll::Ready(loaded) = loaded else {
            return Err(wrong(format!(
                "{} is not loaded yet, which a transaction cannot wait for: request one of its pages first, or call the service outside of a transaction",
                self.app.name()
            )));
        };
        let loaded = loaded?;
        let (run, values) = Run::new(&loaded, &self.name, caller, &arguments)?;
        if run.service.is_async {
            return Err(wrong(format!(
                "the service `{}` is async, so it cannot join a transaction: call it outside of one",
                self.name
            )));
        }
        run.state.join();
        run.answer(run.within(transaction, &values)?)?.into_value()
    }
}

fn wrong(reason: String) -> Error {
    Error::hidden(Status::INTERNAL_SERVER_ERROR, reason)
}

/// One call of a service.
struct Run<'r> {
    local: &'r LocalApplication,
    service: &'r LocalFunction,
    state: Rc<CallState>,
}

impl<'r> Run<'r> {
    /// Finds a service, and checks the arguments.
    fn new(
        local: &'r Rc<LocalApplication>,
        name: &str,
        caller: Caller,
        arguments: &CallArguments,
    ) -> Result<(Self, Vec<Value>), Error> {
        let missing = || Error::told(Status::NOT_FOUND, VisitorMessage::NothingHere {});
        let service = local.services.get(name).ok_or_else(missing)?;
        let state = CallState::new(caller, false, Rc::<LocalApplication>::clone(local));
        let path = format!("{}/{name}", local.generation.app.url());
        let values = read(arguments, &service.shape, &state, &path)
            .map_err(|wrong| Error::of_arguments(Status::BAD_REQUEST, wrong))?;
        Ok((Self { local, service, state }, values))
    }

    /// Runs the function in a transaction. It may run again after a conflict.
    fn within(&self, transaction: &mut Transaction, values: &[Value]) -> Result<Value, Error> {
        let finished = self.state.within(transaction, || self.begin(values).finished());
        match finished {
            // An error that the script returns rolls the transaction back, as one that it throws.
            Some(Ok(result)) => match Answer::of(&result) {
                Some(Answer::Error(error)) => Err(error),
                _ => Ok(result),
            },
            Some(Err(fault)) => Err(self.error(&fault)),
            None => Err(wrong("the service returns a promise, but its function is not `async`: write `service(async (ctx, ..) => ..)`, and change tables in `await change(() => ..)`".to_owned())),
        }
    }

    fn begin(&self, values: &[Value]) -> Call {
        let Self { local, service, state } = self;
        let context = Rc::<CallState>::clone(state);
        local.instance.call_within(&service.function, values, context)
    }

    /// The answer for the result of the function.
    fn answer(&self, result: Value) -> Result<DynamicAnswer, Error> {
        match Answer::of(&result) {
            Some(Answer::Redirect(location)) => return Ok(DynamicAnswer::Redirect(location)),
            Some(Answer::Error(error)) => return Err(error),
            None => {}
        }
        match result {
            Value::Undefined => Ok(DynamicAnswer::Nothing),
            Value::Html(markup) => Ok(self.page(ScriptContent::Markup(markup))),
            Value::Tree(tree) => Ok(self.page(ScriptContent::Tree(tree))),
            value => to_json(value).map(DynamicAnswer::Json).map_err(wrong),
        }
    }

    fn page(&self, content: ScriptContent) -> DynamicAnswer {
        let page = ScriptPage::new(self.local, &self.state, content);
        DynamicAnswer::Page(Box::new(|to| page.answer(to)))
    }

    fn error(&self, fault: &Fault) -> Error {
        faults::of_call(&self.local.generation, &self.state, fault)
    }
}

/// The values for the function of a service: its argument, and whether that has files. `path`: that of
/// the service.
fn read(
    given: &CallArguments,
    shape: &Shape,
    state: &CallState,
    path: &str,
) -> Result<Vec<Value>, Vec<ArgumentError>> {
    let values = arguments::read(given, shape, |name, text| {
        let caller = state.caller().ok()?;
        sealed::open(caller, path, name, text)
    });
    if !uploads::has_upload(shape) && given.files().is_empty() {
        return Ok(vec![values?]);
    }
    match (values, uploads::read(given, shape, state.uploads())) {
        (Ok(Value::Object(mut entries)), Ok(files)) => {
            let has_files = Value::Bool(!files.is_empty());
            entries.extend(files);
            Ok(vec![Value::Object(entries), has_files])
        }
        (values, files) => {
            let mut wrong = values.err().unwrap_or_default();
            let of_files = files.err().unwrap_or_default();
            // A file in place of a text makes one mistake.
            wrong.retain(|own| !of_files.iter().any(|other| other.name == own.name));
            wrong.extend(of_files);
            Err(wrong)
        }
    }
}

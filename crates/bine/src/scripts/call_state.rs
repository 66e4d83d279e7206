//! The call that a script runs for: the state that its functions read and change.

use std::cell::{Cell, OnceCell, RefCell};
use std::collections::VecDeque;
use std::rc::Rc;
use std::sync::Arc;

use bine_http::Status;
use bine_script::{Fault, Function, HostCall, HostError, ScriptError, Value};
use serde_json::{Map, Value as Json};
use tokio::sync::oneshot;

use super::field_errors;
use super::json::from_json;
use super::table_failure::{self, TableFailure};
use super::upload_set::UploadSet;
use crate::accept::AcceptPreferences;
use crate::channels::Cursor;
use crate::error::Error;
use crate::languages::VisitorWords;
use crate::live::{self, Presence, RegionReads};
use crate::request_session::RequestSession;
use crate::service::Caller;
use crate::sessions::{Frame, RequestedFrame, Session, SessionTransaction};
use crate::signal_core::SignalCore;
use crate::store::{self, Recorder, Snapshot, Store, Transaction};
use crate::trace;
use crate::visitor_message::VisitorMessage;

/// The state of one call of a script: of a page or of a service.
pub(super) struct CallState {
    /// The client; `None`: no request causes the call.
    caller: Option<Caller>,
    /// Whether it is the call of a page, not of a service.
    is_page: bool,
    /// The tables, with the recorder of the live page that runs the call, if one does.
    store: Store,
    /// The transaction of the call, while it has one.
    transaction: RefCell<Option<Transaction>>,
    /// The tables as a page sees them, from its first read to its end, or until it calls a service.
    snapshot: RefCell<Option<Snapshot>>,
    /// The reads up to the end of each live region so far; `None` in an ordinary request.
    regions: RefCell<Vec<Option<RegionReads>>>,
    /// The title that the page has set.
    title: RefCell<Option<String>>,
    /// Whether the page wants to be compressed.
    compression: Cell<Option<bool>>,
    runner: Option<Rc<dyn FunctionRunner>>,
    /// The files of its form.
    uploads: UploadSet,
    /// The last reasons of the exceptions that functions of tables have thrown.
    failures: RefCell<VecDeque<TableFailure>>,
    /// Up to where a page reads channels; `None` before it has read one.
    pub(super) channel_position: Cell<Option<Cursor>>,
    /// The changes of the session in the transaction of the call.
    session: RefCell<Option<SessionTransaction>>,
    /// The tasks that run after the commits of the call. Each sender is dropped once it has run, or
    /// once its transaction has failed.
    work_after_commit: RefCell<Vec<oneshot::Receiver<()>>>,
    /// Whether the transaction belongs to another service, which has called this one.
    is_joined: Cell<bool>,
    /// The present clients of the page, once it has asked for them.
    presence: OnceCell<Presence>,
    /// The frame of the page, or of the page that calls the service, once the call has asked for it.
    frame: OnceCell<Frame>,
    /// The last failures of called services: the cause that the script receives, and the status.
    failed_services: RefCell<VecDeque<(String, Status)>>,
}

/// The failures of a call that are kept: of exceptions that the script has caught, it may throw one
/// again later.
const MAX_FAILURES: usize = 16;
/// The longest cause of a failed service that a script receives, in bytes. The engine keeps more.
const MAX_CAUSE_LENGTH: usize = 2048;

/// Calls functions of the script for a call that runs.
pub(super) trait FunctionRunner {
    /// Calls a function without arguments. `None`: it waits for a promise.
    fn run(&self, function: &Function, state: &Rc<CallState>) -> Option<Result<Value, Fault>>;
}

/// Why a change of tables has failed.
enum ChangeError {
    Store(store::Error),
    Script(HostError),
}

impl From<store::Error> for ChangeError {
    fn from(error: store::Error) -> Self {
        Self::Store(error)
    }
}

impl CallState {
    /// A call for the request of a client, without a transaction. `is_page`: it renders a page, and is
    /// no service.
    pub(super) fn new(caller: Caller, is_page: bool, runner: Rc<dyn FunctionRunner>) -> Rc<Self> {
        let store = caller.store();
        // A live page may read the tables on any thread.
        let store = match Recorder::current() {
            Some(recorder) => store.with_recorder(&recorder),
            None => store.clone(),
        };
        Self::create(Some(caller), is_page, store, Some(runner))
    }

    /// A call without a request.
    pub(super) fn without_request(
        store: Store,
        is_page: bool,
        runner: Option<Rc<dyn FunctionRunner>>,
    ) -> Rc<Self> {
        Self::create(None, is_page, store, runner)
    }

    fn create(
        caller: Option<Caller>,
        is_page: bool,
        store: Store,
        runner: Option<Rc<dyn FunctionRunner>>,
    ) -> Rc<Self> {
        Rc::new(Self {
            caller,
            is_page,
            store,
            transaction: RefCell::default(),
            snapshot: RefCell::default(),
            regions: RefCell::default(),
            title: RefCell::default(),
            compression: Cell::default(),
            runner,
            uploads: UploadSet::default(),
            failures: RefCell::default(),
            channel_position: Cell::default(),
            session: RefCell::default(),
            work_after_commit: RefCell::default(),
            is_joined: Cell::default(),
            presence: OnceCell::new(),
            frame: OnceCell::new(),
            failed_services: RefCell::default(),
        })
    }

    /// The call for which a function of the host runs.
    ///
    /// # Errors
    ///
    /// The script loads its modules, so that no call runs.
    pub(super) fn of(call: &HostCall<'_, '_>) -> Result<Rc<Self>, HostError> {
        let state = call.context().and_then(|context| context.downcast::<Self>().ok());
        state.ok_or_else(|| {
            HostError::Other(
                "this is for pages and services: no request runs while the module loads".to_owned(),
            )
        })
    }

    /// Reads the tables as the call sees them: those of its transaction, those of the first read of a
    /// page, or the last commit.
    pub(super) fn read<T>(&self, run: impl FnOnce(&Snapshot) -> T) -> T {
        if let Some(transaction) = &*self.transaction.borrow() {
            return run(transaction);
        }
        if !self.is_page {
            return run(&self.store.read());
        }
        run(self.snapshot.borrow_mut().get_or_insert_with(|| self.store.read()))
    }

    /// Changes tables in the transaction of the call.
    ///
    /// # Errors
    ///
    /// The call has no transaction.
    pub(super) fn change<T>(
        &self,
        run: impl FnOnce(&mut Transaction) -> T,
    ) -> Result<T, HostError> {
        match &mut *self.transaction.borrow_mut() {
            Some(transaction) => Ok(run(transaction)),
            None => Err(HostError::Other(
                "only a service changes tables; in an async function, write `await change(() => ..)`"
                    .to_owned(),
            )),
        }
    }

    /// Fails a function of tables. Returns the value by which the words throw a `TableError`, and keeps
    /// the failure, for the response if the script does not catch the exception.
    pub(super) fn fail(&self, failure: TableFailure) -> Value {
        let thrown = failure.for_script();
        let mut failures = self.failures.borrow_mut();
        if failures.len() == MAX_FAILURES {
            failures.pop_front();
        }
        failures.push_back(failure);
        thrown
    }

    /// The reason of an exception that the script has not caught, if a function of tables has
    /// thrown it. It converts into the [`Error`](crate::Error) that Rust code returns for it.
    ///
    /// The engine passes exceptions as text. The message names all that the response depends on, so
    /// failures with equal messages have equal responses.
    pub(super) fn failure_of(&self, exception: &ScriptError) -> Option<TableFailure> {
        if exception.name != table_failure::EXCEPTION {
            return None;
        }
        let failures = self.failures.borrow();
        failures.iter().rev().find(|failure| failure.message() == exception.message).cloned()
    }

    /// Runs a function of the script in its own transaction, and again after a conflict. Returns
    /// once the change is durable, with the failure if it has failed.
    pub(super) async fn change_by(self: Rc<Self>, function: Function) -> Result<Value, HostError> {
        if self.is_page {
            return Err(HostError::Other(
                "a page only reads: change tables in a service".to_owned(),
            ));
        }
        let session = RefCell::new(None);
        let action = |transaction: &mut Transaction| {
            // The changes of an attempt before a conflict are taken back.
            session.take();
            let runner = self.runner.as_ref();
            let run = || runner.and_then(|runner| runner.run(&function, &self));
            let result = self.within(transaction, run);
            session.replace(self.take_session());
            result
                .map_or_else(
                    || {
                        Err(HostError::Type(
                            "the function of `change` must not be async: await before it"
                                .to_owned(),
                        ))
                    },
                    |result| result.map_err(thrown),
                )
                .map_err(ChangeError::Script)
        };
        match self.store.change(action).await {
            Err(ChangeError::Store(error)) => Ok(self.fail(TableFailure::Store(error))),
            Err(ChangeError::Script(error)) => Err(error),
            Ok(result) => {
                session.take().into_iter().for_each(SessionTransaction::keep);
                self.wait_for_work_after_commit().await;
                Ok(result)
            }
        }
    }

    /// Changes the session in the transaction of the call.
    ///
    /// # Errors
    ///
    /// The call has no transaction, or that of another service.
    pub(super) fn change_session<T>(
        &self,
        run: impl FnOnce(&Session, &mut Transaction, &mut SessionTransaction) -> T,
    ) -> Result<T, HostError> {
        if self.is_joined.get() {
            return Err(HostError::Other(
                "another service has called this one in its transaction, so it cannot change the session: change it in the service that the visitor calls".to_owned(),
            ));
        }
        let session = self.caller()?.session();
        let mut changes = self.session.borrow_mut();
        let changes = changes.get_or_insert_with(|| session.begin_transaction());
        self.change(|transaction| run(&session, transaction, changes))
    }

    /// The changes of the session in a transaction that has ended. They are taken back unless they are
    /// kept after the commit.
    pub(super) fn take_session(&self) -> Option<SessionTransaction> {
        self.session.take()
    }

    /// Notes work that runs after the commit of the transaction. Drop the returned value once it has
    /// run.
    pub(super) fn begin_work_after_commit(&self) -> oneshot::Sender<()> {
        let (running, finished) = oneshot::channel();
        self.work_after_commit.borrow_mut().push(finished);
        running
    }

    /// Waits until the work after the commits of the call has run, so that the receiver of the
    /// reply finds its results.
    pub(super) async fn wait_for_work_after_commit(&self) {
        let all = self.work_after_commit.take();
        for finished in all {
            // An error means that the sender has been dropped.
            let _ = finished.await;
        }
    }

    /// The present clients of the page.
    ///
    /// # Errors
    ///
    /// It is the call of a service.
    pub(super) fn presence(&self) -> Result<&Presence, HostError> {
        let caller = self.caller()?;
        if !self.is_page {
            return Err(HostError::Other(
                "a page has present visitors, and a service has none: read `presence` in a page"
                    .to_owned(),
            ));
        }
        Ok(self.presence.get_or_init(|| caller.presence()))
    }

    /// The frame of the page, or of the page that calls the service. The error is for the visitor;
    /// `Ok(Err(..))`: the address of the page in a new frame.
    pub(super) fn frame(&self) -> Result<Result<&Frame, String>, Error> {
        if let Some(frame) = self.frame.get() {
            return Ok(Ok(frame));
        }
        let caller = self.caller().map_err(|error| Error::from(std::io::Error::other(error)))?;
        let found = if self.is_page {
            match caller.page_frame() {
                RequestedFrame::Found(frame) => frame,
                RequestedFrame::Redirect(location) => return Ok(Err(location)),
                RequestedFrame::NeedsCookies => {
                    let message = VisitorMessage::CookiesNeeded {};
                    return Err(Error::told(Status::BAD_REQUEST, message));
                }
            }
        } else {
            caller.frame()?
        };
        Ok(Ok(self.frame.get_or_init(|| found)))
    }

    /// Notes that the transaction belongs to another service.
    pub(super) fn join(&self) {
        self.is_joined.set(true);
    }

    /// Runs `part` in a transaction, which the functions of tables use meanwhile.
    pub(super) fn within<T>(&self, transaction: &mut Transaction, part: impl FnOnce() -> T) -> T {
        // A transaction that has not begun to read costs a reference to the tables.
        let spare = self.store.begin();
        let outer = self.transaction.replace(Some(std::mem::replace(transaction, spare)));
        let _within = CallTransaction { state: self, transaction, outer };
        part()
    }

    /// The files of its form.
    pub(super) const fn uploads(&self) -> &UploadSet {
        &self.uploads
    }

    /// Whether it is the call of a page.
    pub(super) const fn is_page(&self) -> bool {
        self.is_page
    }

    /// Whether the call has a transaction.
    pub(super) fn is_changing(&self) -> bool {
        self.transaction.borrow().is_some()
    }

    /// Calls a service of the program within the transaction of the call.
    pub(super) fn join_service(
        &self,
        path: &str,
        arguments: Map<String, Json>,
    ) -> Result<Value, HostError> {
        let caller = self.caller()?;
        let answer =
            self.change(|transaction| caller.join_service(path, arguments, transaction))?;
        Ok(self.outcome(answer))
    }

    /// Calls a service of the program outside of a transaction.
    pub(super) async fn call_service(
        &self,
        path: &str,
        arguments: Map<String, Json>,
    ) -> Result<Value, HostError> {
        let answer = self.caller()?.call_service_json(path, arguments).await;
        // The page sees what the service has changed.
        self.snapshot.take();
        Ok(self.outcome(answer))
    }

    /// Ends a wait for the commits of other nodes: a page reads the tables again.
    pub(super) fn end_wait(&self, waited: Result<(), Error>) -> Value {
        self.snapshot.take();
        self.outcome(waited.map(|()| Json::Null))
    }

    /// The [`outcome`] of a service. Keeps the status of a failure, for the response if the script does
    /// not catch the exception.
    fn outcome(&self, answer: Result<Json, Error>) -> Value {
        if let Err(error) = &answer
            && error.code().code() >= 500
        {
            let mut failed = self.failed_services.borrow_mut();
            if failed.len() == MAX_FAILURES {
                failed.pop_front();
            }
            failed.push_back((cause_of(error), error.code()));
        }
        outcome(answer)
    }

    /// The status of an exception that the script has not caught, if a called service has failed with
    /// it: a limit that the service has exceeded is one of its caller, too.
    pub(super) fn status_of(&self, exception: &ScriptError) -> Option<Status> {
        let failed = self.failed_services.borrow();
        let found = failed.iter().rev().find(|(cause, _)| *cause == exception.message);
        found.map(|(_, status)| *status)
    }

    /// The client that causes the call.
    ///
    /// # Errors
    ///
    /// No request causes it.
    pub(super) fn caller(&self) -> Result<&Caller, HostError> {
        let missing = || HostError::Other("no request of a visitor causes this call".to_owned());
        self.caller.as_ref().ok_or_else(missing)
    }

    /// The logged-in user.
    pub(super) fn user(&self) -> Result<Option<String>, HostError> {
        Ok(self.caller()?.user().map(|user| user.to_string()))
    }

    /// The generated name of the visitor.
    pub(super) fn visitor_name(&self) -> Result<String, HostError> {
        Ok(self.caller()?.session().name().to_string())
    }

    /// The first header field of this name, if it is UTF-8.
    pub(super) fn header(&self, name: &str) -> Result<Option<String>, HostError> {
        Ok(self.caller()?.header(name).map(str::to_owned))
    }

    /// The path and query of the page, or of the page that calls the service.
    pub(super) fn path(&self) -> Option<String> {
        let caller = self.caller.as_ref()?;
        if self.is_page { Some(caller.target().to_owned()) } else { caller.page() }
    }

    /// The title that the page has set.
    pub(super) fn title(&self) -> Option<String> {
        self.title.borrow().clone()
    }

    /// Sets the title of the page.
    ///
    /// # Errors
    ///
    /// The call is that of a service.
    pub(super) fn set_title(&self, title: String) -> Result<(), HostError> {
        if !self.is_page {
            return Err(HostError::Other("a service has no title: set it in a page".to_owned()));
        }
        self.use_title(title);
        Ok(())
    }

    /// Replaces the title by one of the server.
    pub(super) fn use_title(&self, title: String) {
        self.title.replace(Some(title));
    }

    /// Whether the page wants to be compressed.
    pub(super) fn compression(&self) -> Option<bool> {
        self.compression.get()
    }

    /// Sets whether the page wants to be compressed.
    pub(super) fn set_compression(&self, is_compressed: bool) {
        self.compression.set(Some(is_compressed));
    }

    /// Whether the client gets errors as pages. Other clients get text or JSON, as from a page in
    /// Rust.
    pub(super) fn reads_error_pages(&self) -> bool {
        let accept = self.caller.as_ref().and_then(|caller| caller.header("accept"));
        let accepted = AcceptPreferences::of(accept);
        accepted.reads_pages && !accepted.prefers_json
    }

    /// The words for the visitor.
    pub(super) fn words(&self) -> VisitorWords {
        let Some(caller) = &self.caller else { return VisitorWords::ENGLISH };
        let languages = caller.app().templates.languages.as_ref();
        VisitorWords::accepting(languages, || caller.header("accept-language"))
    }

    /// The session, if the call has used it.
    pub(super) fn used_session(&self) -> Option<Arc<dyn RequestSession>> {
        self.caller.as_ref()?.used_session()
    }

    /// Ends a live region: notes what was read so far, and returns the region's number.
    pub(super) fn end_region(&self) -> u32 {
        let mut regions = self.regions.borrow_mut();
        regions.push(live::reads_so_far());
        u32::try_from(regions.len() - 1).unwrap_or(u32::MAX)
    }

    pub(super) fn take_regions(&self) -> Vec<Option<RegionReads>> {
        self.regions.take()
    }

    /// Notes that the render depends on a signal.
    pub(super) fn record_signal(signal: &Arc<SignalCore>) {
        if let Some(trace) = trace::current() {
            trace.record_signal(signal);
        }
    }
}

/// The outcome of a service for the words of scripts: its answer as `{ value }`, the status and the
/// message of its error, or the cause of a failure, which is for the log.
pub(super) fn outcome(answer: Result<Json, Error>) -> Value {
    let named = |name: &str, value| (name.to_owned(), value);
    match answer {
        Ok(answer) => Value::Object(vec![named("value", from_json(answer))]),
        Err(error) if error.code().code() >= 500 => {
            Value::Object(vec![named("$failure", Value::Text(cause_of(&error)))])
        }
        Err(error) => {
            let message = error.message().unwrap_or_default().to_owned();
            let mut answer = vec![
                named("$status", Value::Number(error.code().code().into())),
                named("message", Value::Text(message)),
            ];
            if !error.arguments().is_empty() {
                let errors = error.arguments().iter().map(field_errors::written);
                answer.push(named("errors", Value::Array(errors.collect())));
            }
            Value::Object(answer)
        }
    }
}

/// The cause of a failure, for the log and for scripts.
fn cause_of(error: &Error) -> String {
    let mut cause = error.chain().collect::<Vec<_>>().join(": ");
    cause.truncate(cause.floor_char_boundary(MAX_CAUSE_LENGTH));
    cause
}

/// The value that a function has thrown, to be thrown again.
fn thrown(fault: Fault) -> HostError {
    match fault {
        Fault::Exception(error) => HostError::Script(error),
        other => HostError::Other(other.to_string()),
    }
}

/// A transaction that is lent to a call; it goes back at the end, also after a panic.
struct CallTransaction<'w> {
    state: &'w CallState,
    transaction: &'w mut Transaction,
    outer: Option<Transaction>,
}

impl Drop for CallTransaction<'_> {
    fn drop(&mut self) {
        if let Some(lent) = self.state.transaction.replace(self.outer.take()) {
            *self.transaction = lent;
        }
    }
}

//! Decides what a service can ask of whoever calls it, and of its program.

use std::any::type_name;
use std::fmt;
use std::ops::{Deref, DerefMut};
use std::sync::{Arc, OnceLock};

use bine_http::Status;
use bine_server::{Body, Incoming, Peer, Retained};

use crate::app_state::AppState;
use crate::arguments::State;
use crate::error::Error;
use crate::origin;
use crate::request_session::RequestSession;
use crate::store::{Store, Transaction};
use crate::tables::Tables;
use crate::trace::{self, RenderTrace, RequestDependency};

/// A call of a service that changes tables: the first argument of one that is no `async fn`, as `call: &mut Call`.
///
/// It reads and writes all tables as the [`Transaction`] that it is: what the service does is kept wholly when it
/// returns, or not at all if it returns an error. Whoever calls is answered when it is kept. If another has changed what
/// the service looked at, it is run again, up to three times; what must happen once belongs into
/// [`after_commit`](Transaction::after_commit). It runs on the connection's own loop and must not block.
///
/// ```
/// use bine::prelude::*;
///
/// #[derive(Table)]
/// struct Note {
///     id: Id<Note>,
///     author: Text,
///     text: Text,
/// }
///
/// #[service]
/// fn write(call: &mut Call, text: Text) -> Result<(), Error> {
///     let author = call.session().name();
///     call.insert(Note { id: Id::new(), author, text })?;
///     Ok(())
/// }
///
/// #[page("/")]
/// async fn notes() -> impl Page {
///     html!(<form method="post" action={write}><input name="text" aria-label="A note"></form>)
/// }
///
/// let app = App::new().table::<Note>().page(notes).service(write);
/// # drop(app);
/// ```
pub struct Call {
    transaction: Transaction,
    caller: Caller,
}

/// Whoever calls a service, and what the program has for it: the first argument of a service that is no transaction, as
/// `caller: Caller`. An `async fn` changes tables by [`store`](Self::store), and may await anything.
pub struct Caller(Arc<Asked>);

/// A request to a service, which its reply asks for what was looked at.
pub(super) struct Asked {
    request: Retained,
    app: Arc<AppState>,
    visit: OnceLock<Arc<dyn RequestSession>>,
    /// Path and query of the page that called, as its action says it.
    pub(super) page: OnceLock<String>,
    /// The trace of the render that makes this call, if there is one.
    trace: Option<Arc<dyn RenderTrace>>,
}

impl Call {
    /// The client that makes the call.
    pub(crate) const fn caller(&self) -> &Caller {
        &self.caller
    }

    pub(super) const fn new(transaction: Transaction, caller: Caller) -> Self {
        Self { transaction, caller }
    }

    /// Runs with this transaction in the place of its own.
    pub(super) fn within<T>(
        &mut self,
        transaction: &mut Transaction,
        run: impl FnOnce(&mut Self) -> T,
    ) -> T {
        std::mem::swap(&mut self.transaction, transaction);
        let outcome = run(self);
        std::mem::swap(&mut self.transaction, transaction);
        outcome
    }

    /// The first field of the request called `name`, if it is UTF-8.
    pub fn field(&self, name: &str) -> Option<&str> {
        self.caller.field(name)
    }

    /// Where the request came from.
    pub fn peer(&self) -> Peer {
        self.caller.peer()
    }

    /// A value that the whole program shares.
    ///
    /// # Errors
    ///
    /// It has none of this type: [`App::state`](crate::App::state) gives it one.
    pub fn state<T: Send + Sync + 'static>(&self) -> Result<State<T>, Error> {
        self.caller.state()
    }
}

impl Deref for Call {
    type Target = Transaction;

    fn deref(&self) -> &Transaction {
        &self.transaction
    }
}

impl DerefMut for Call {
    fn deref_mut(&mut self) -> &mut Transaction {
        &mut self.transaction
    }
}

impl Caller {
    pub(super) const fn new(asked: Arc<Asked>) -> Self {
        Self(asked)
    }

    /// The values that all requests of the program share.
    pub(crate) fn app(&self) -> &AppState {
        &self.0.app
    }

    /// The session of the request, which is looked at from here on.
    pub(crate) fn request_session(&self) -> &Arc<dyn RequestSession> {
        self.0.visit()
    }

    /// Path and query of the page that called, as its action or its `Referer` names it.
    pub(crate) fn page(&self) -> Option<String> {
        if let Some(page) = self.0.page.get() {
            return Some(page.clone());
        }
        let request = self.0.request.incoming();
        let page = origin::page_before(&request.head).and_then(origin::target_of);
        self.0.look(|| format!("{page:?}").into_bytes());
        page.map(str::to_owned)
    }

    /// The first field of the request called `name`, if it is UTF-8.
    pub fn field(&self, name: &str) -> Option<&str> {
        let field = self.0.request.incoming().head.field_text(name);
        self.0.look(|| format!("{name}:{field:?}").into_bytes());
        field
    }

    /// Where the request came from.
    pub fn peer(&self) -> Peer {
        let peer = self.0.request.incoming().peer;
        self.0.look(|| format!("{peer:?}").into_bytes());
        peer
    }

    /// The program's tables.
    pub fn store(&self) -> &Store {
        self.0.store()
    }

    /// A value that the whole program shares.
    ///
    /// # Errors
    ///
    /// It has none of this type: [`App::state`](crate::App::state) gives it one.
    pub fn state<T: Send + Sync + 'static>(&self) -> Result<State<T>, Error> {
        let found = self.app().states.find_shared().map(State);
        found.ok_or_else(|| lacking(&format!("state `{}`", type_name::<T>()), "state"))
    }
}

/// A mistake in the program, which its log tells.
pub(crate) fn lacking(what: &str, method: &str) -> Error {
    let told = format!(
        "a service asks for the {what}, and the program has none; add `.{method}(..)` to the app"
    );
    Error::hidden(Status::INTERNAL_SERVER_ERROR, told)
}

impl Asked {
    pub(super) fn new(incoming: &Incoming<'_>, app: &Arc<AppState>) -> Self {
        // What it calls with has been read.
        let request = Retained::of(&Incoming { body: Body::None, ..*incoming });
        let (visit, page, trace) = (OnceLock::new(), OnceLock::new(), trace::current());
        Self { request, app: Arc::clone(app), visit, page, trace }
    }

    /// Notes that something of the request was seen, in whatever thread: the page that it makes is for its like alone.
    fn look(&self, seen: impl FnOnce() -> Vec<u8>) {
        RequestDependency::Filtered.note_for(self.trace.as_deref(), seen);
    }

    pub(super) fn store(&self) -> &Store {
        let tables = self.app.states.find::<Tables>();
        tables
            .and_then(Tables::opened)
            .expect("who knows its caller has sessions, and they are in tables")
    }

    /// Its look at its session, if it took one.
    pub(super) fn visited(&self) -> Option<Arc<dyn RequestSession>> {
        self.visit.get().cloned()
    }

    pub(super) fn visit(&self) -> &Arc<dyn RequestSession> {
        self.visit.get_or_init(|| {
            let sessions = self.app.sessions.as_ref();
            let visit = sessions.and_then(|own| own.session_of(&self.request.incoming()));
            visit.expect(
                "who knows its caller has sessions, which are open before the first request",
            )
        })
    }
}

impl fmt::Debug for Call {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { transaction, caller } = self;
        to.debug_struct("Call").field("caller", caller).field("transaction", transaction).finish()
    }
}

impl fmt::Debug for Caller {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        let request = self.0.request.incoming();
        to.debug_struct("Caller").field("target", &request.head.target()).finish_non_exhaustive()
    }
}

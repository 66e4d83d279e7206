//! The arguments through which a service reads its request, its caller and the program's state.

use std::any::type_name;
use std::fmt;
use std::net::Ipv4Addr;
use std::ops::{Deref, DerefMut};
use std::sync::{Arc, OnceLock};

use bine_http::{Event, Limits, RequestParser, Status};
use bine_server::{Body, ClientAddress, Identity, Incoming, Retained};

use crate::app_state::AppState;
use crate::arguments::State;
use crate::error::Error;
use crate::origin;
use crate::positions::Positions;
use crate::request_session::RequestSession;
use crate::response_notes::note_field;
use crate::returned_form::FormRequest;
use crate::store::{Store, Transaction};
use crate::tables::Tables;
use crate::trace::{self, RenderTrace, RequestDependency};

/// A call of a service that changes tables: the first argument of a service that is no `async fn`,
/// as `call: &mut Call`.
///
/// It dereferences to its [`Transaction`], which reads and writes all tables. The transaction
/// commits when the service returns, and rolls back if it returns an error. The client receives the
/// response after the commit. After a conflict with a concurrent transaction the service runs
/// again, up to three times; effects that must happen once belong in
/// [`after_commit`](Transaction::after_commit). A service runs on the connection's event loop and
/// must not block.
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
///     call.insert(Note { id: Id::unassigned(), author, text })?;
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

/// The caller of a service, and the program's state: the first argument of a service that is no
/// transaction, as `caller: Caller`. An `async fn` changes tables through [`store`](Self::store),
/// and may await.
pub struct Caller {
    context: Arc<CallContext>,
    /// How many services have called each other so far.
    depth: u8,
}

/// The request of a call, shared with its response.
pub(super) struct CallContext {
    request: Retained,
    app: Arc<AppState>,
    visitor_session: OnceLock<Arc<dyn RequestSession>>,
    /// Path and query of the calling page, which an action's address contains.
    pub(super) page: OnceLock<String>,
    /// The trace of the render that makes this call, if any.
    trace: Option<Arc<dyn RenderTrace>>,
    /// Whether the program itself makes the call.
    is_program: bool,
}

impl Call {
    /// The client that makes the call.
    pub(crate) const fn caller(&self) -> &Caller {
        &self.caller
    }

    pub(super) const fn new(transaction: Transaction, caller: Caller) -> Self {
        Self { transaction, caller }
    }

    /// Replaces the transaction during `run`.
    pub(super) fn within<T>(
        &mut self,
        transaction: &mut Transaction,
        run: impl FnOnce(&mut Self) -> T,
    ) -> T {
        let lent = LentTransaction::new(self, transaction);
        run(lent.call)
    }

    /// The transaction and the caller.
    pub(super) const fn parts(&mut self) -> (&mut Transaction, &Caller) {
        (&mut self.transaction, &self.caller)
    }

    /// The first header field called `name`, if it is UTF-8.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.caller.header(name)
    }

    /// The network address of the client.
    pub fn client_address(&self) -> ClientAddress {
        self.caller.client_address()
    }

    /// A value that the whole program shares.
    ///
    /// # Errors
    ///
    /// The program has no value of this type: add one with [`App::state`](crate::App::state).
    pub fn state<T: Send + Sync + 'static>(&self) -> Result<State<T>, Error> {
        self.caller.state()
    }
}

/// A transaction that is lent to a call; it goes back at the end, also after a panic.
struct LentTransaction<'l> {
    call: &'l mut Call,
    transaction: &'l mut Transaction,
}

impl<'l> LentTransaction<'l> {
    const fn new(call: &'l mut Call, transaction: &'l mut Transaction) -> Self {
        std::mem::swap(&mut call.transaction, transaction);
        Self { call, transaction }
    }
}

impl Drop for LentTransaction<'_> {
    fn drop(&mut self) {
        std::mem::swap(&mut self.call.transaction, self.transaction);
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
    pub(super) const fn new(context: Arc<CallContext>) -> Self {
        Self { context, depth: 0 }
    }

    /// The caller of a service that this caller's service calls; `None`: beyond this depth.
    pub(super) fn deeper(&self, most: u8) -> Option<Self> {
        let context = Arc::clone(&self.context);
        (self.depth < most).then(|| Self { context, depth: self.depth + 1 })
    }

    pub(super) const fn context(&self) -> &Arc<CallContext> {
        &self.context
    }

    /// The program itself, as the caller of its own services. It has no session, user or header field,
    /// and no rule of access applies to it.
    pub(crate) fn of_program(app: &Arc<AppState>) -> Self {
        let bytes = b"POST / HTTP/1.1\r\nHost: localhost\r\n\r\n";
        let Event::Head(head) = RequestParser::new().receive(bytes, &Limits::default()).event
        else {
            unreachable!("the bytes are a whole request");
        };
        let peer = ClientAddress::tcp((Ipv4Addr::LOCALHOST, 0).into());
        let (body, identity, exchange) = (Body::None, &Identity::Anonymous, head.exchange());
        let (arrival, has_begun) = (0, false);
        let incoming = Incoming { head, body, peer, identity, arrival, has_begun, exchange };
        let context = CallContext { is_program: true, ..CallContext::new(&incoming, app) };
        Self::new(Arc::new(context))
    }

    /// The client that requests a page, for a program that treats pages as it does services.
    #[cfg(feature = "script")]
    pub(crate) fn of_page(incoming: &Incoming<'_>, app: &Arc<AppState>) -> Self {
        Self::new(Arc::new(CallContext::new(incoming, app)))
    }

    /// Path and query of the request.
    #[cfg(feature = "script")]
    pub(crate) fn target(&self) -> &str {
        self.context.request.incoming().head.target()
    }

    /// The request, of which nothing is recorded: for what no response depends on.
    #[cfg(feature = "script")]
    pub(crate) fn unrecorded_request(&self) -> Incoming<'_> {
        self.context.request.incoming()
    }

    /// The session, if the call used it.
    #[cfg(feature = "script")]
    pub(crate) fn used_session(&self) -> Option<Arc<dyn RequestSession>> {
        self.context.used_session()
    }

    /// The values that all requests of the program share.
    pub(crate) fn app(&self) -> &AppState {
        &self.context.app
    }

    /// The session of the request. The response is private from then on.
    pub(crate) fn request_session(&self) -> &Arc<dyn RequestSession> {
        self.context.visitor_session()
    }

    /// Path and query of the calling page, from the action's address or the `Referer` field.
    pub(crate) fn page(&self) -> Option<String> {
        if let Some(page) = self.context.page.get() {
            return Some(page.clone());
        }
        let request = self.context.request.incoming();
        let page = origin::page_before(&request.head).and_then(origin::target_of);
        self.context.record(|| format!("{page:?}").into_bytes());
        page.map(str::to_owned)
    }

    /// The first header field called `name`, if it is UTF-8.
    pub fn header(&self, name: &str) -> Option<&str> {
        let field = self.context.request.incoming().head.field_text(name);
        self.context.record(|| format!("{name}:{field:?}").into_bytes());
        note_field(name);
        field
    }

    /// The host that the request is for, with its port: the one that the server has checked.
    pub(crate) fn authority(&self) -> Option<&str> {
        let authority = self.context.request.incoming().head.authority();
        self.context.record(|| format!("host:{authority:?}").into_bytes());
        authority
    }

    /// The network address of the client.
    pub fn client_address(&self) -> ClientAddress {
        let peer = self.context.request.incoming().peer;
        self.context.record(|| format!("{peer:?}").into_bytes());
        peer
    }

    /// The program's tables.
    pub fn store(&self) -> &Store {
        self.context.store()
    }

    /// What this node has applied, and a wait for the commits of other nodes.
    pub fn positions(&self) -> Positions {
        Positions::of(&self.context.app).expect("a program with callers has tables, see `store`")
    }

    /// A value that the whole program shares.
    ///
    /// # Errors
    ///
    /// The program has no value of this type: add one with [`App::state`](crate::App::state).
    pub fn state<T: Send + Sync + 'static>(&self) -> Result<State<T>, Error> {
        let found = self.app().states.find_shared().map(State);
        found.ok_or_else(|| lacking(&format!("state `{}`", type_name::<T>()), "state"))
    }
}

/// An error in the program, which is logged; the client receives status 500.
pub(crate) fn lacking(what: &str, method: &str) -> Error {
    let told = format!(
        "a service asks for the {what}, and the program has none; add `.{method}(..)` to the app"
    );
    Error::hidden(Status::INTERNAL_SERVER_ERROR, told)
}

impl CallContext {
    pub(super) fn new(incoming: &Incoming<'_>, app: &Arc<AppState>) -> Self {
        // The body was read already.
        let request = Retained::of(&Incoming { body: Body::None, ..*incoming });
        let (visitor_session, page, trace) = (OnceLock::new(), OnceLock::new(), trace::current());
        let (app, is_program) = (Arc::clone(app), false);
        Self { request, app, visitor_session, page, trace, is_program }
    }

    /// Whether the program itself makes the call, to which no rule of access applies.
    pub(super) const fn is_program(&self) -> bool {
        self.is_program
    }

    /// Records that a live page depends on a part of the request, on whatever thread the service
    /// runs.
    fn record(&self, seen: impl FnOnce() -> Vec<u8>) {
        RequestDependency::Filtered.note_for(self.trace.as_deref(), seen);
    }

    pub(super) fn store(&self) -> &Store {
        let tables = self.app.states.find::<Tables>();
        tables
            .and_then(Tables::opened)
            .expect("who knows its caller has sessions, and they are in tables")
    }

    /// The session, if the call used it.
    pub(super) fn used_session(&self) -> Option<Arc<dyn RequestSession>> {
        self.visitor_session.get().cloned()
    }

    pub(super) fn visitor_session(&self) -> &Arc<dyn RequestSession> {
        self.visitor_session.get_or_init(|| {
            let sessions = self.app.sessions.as_ref();
            let visitor_session = sessions.and_then(|own| own.session_of(&self.request.incoming()));
            visitor_session.expect(
                "who knows its caller has sessions, which are open before the first request",
            )
        })
    }
}

impl FormRequest for CallContext {
    fn request(&self) -> &Retained {
        &self.request
    }

    fn app(&self) -> &AppState {
        &self.app
    }

    fn open_seal(&self, purpose: &str, sealed: &str) -> Option<Vec<u8>> {
        self.visitor_session().open_seal(purpose, sealed)
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
        let request = self.context.request.incoming();
        to.debug_struct("Caller").field("target", &request.head.target()).finish_non_exhaustive()
    }
}

//! The context of a page while it is rendered. Actions need it after the handler has returned: they
//! are sealed for a session and contain the address of their page.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;

use bine_http::Method;
use bine_server::Incoming;

use crate::origin;
use crate::request_session::{RequestSession, SessionProvider};

/// A page that is being rendered, and the session that requested it.
pub(crate) struct RenderContext {
    visitor_session: Arc<dyn RequestSession>,
    /// Whether the page contains something for this session alone.
    is_personal: Cell<bool>,
    /// The path and query of the page.
    page: Box<str>,
}

thread_local! {
    /// The page that this thread renders.
    static CURRENT: RefCell<Option<Rc<RenderContext>>> = const { RefCell::new(None) };
}

/// The most bytes of a page's address within that of an action.
const MAX_ADDRESS: usize = 1536;

impl RenderContext {
    /// Creates the context for a request whose handler may have used its session. `None` if the
    /// session store is not open.
    pub(crate) fn of(
        request: &Incoming<'_>,
        visitor_session: Option<&Arc<dyn RequestSession>>,
        sessions: &Arc<dyn SessionProvider>,
    ) -> Option<Rc<Self>> {
        let visitor_session = visitor_session.cloned().or_else(|| sessions.session_of(request))?;
        let page = address(request).into();
        Some(Rc::new(Self { visitor_session, is_personal: Cell::new(false), page }))
    }

    /// Runs `write` with this as the page that the thread renders.
    pub(crate) fn during<T>(self: &Rc<Self>, write: impl FnOnce() -> T) -> T {
        let _previous = PreviousContext(CURRENT.replace(Some(Rc::clone(self))));
        write()
    }

    /// The page that this thread renders, if it may have actions.
    pub(crate) fn current() -> Option<Rc<Self>> {
        CURRENT.with_borrow(Clone::clone)
    }

    /// Encrypts `content` so that only this client's session can open it, and only for this
    /// purpose.
    pub(crate) fn seal(&self, purpose: &str, content: &[u8]) -> String {
        self.is_personal.set(true);
        self.visitor_session.seal(purpose, content)
    }

    /// The path and query of the page.
    pub(crate) fn page(&self) -> &str {
        &self.page
    }

    /// The session, if the page contains something for it alone. The response's head depends on it.
    pub(crate) fn visitor(&self) -> Option<Arc<dyn RequestSession>> {
        self.is_personal.get().then(|| Arc::clone(&self.visitor_session))
    }

    /// Prepares for sending the head before the page is complete: the rest may contain something
    /// for this session alone.
    pub(crate) fn expect_anything(&self) {
        self.is_personal.set(true);
        self.visitor_session.begin();
    }
}

/// The path and query of the page that will display the response.
fn address<'r>(request: &Incoming<'r>) -> &'r str {
    let head = &request.head;
    let target = match head.method() {
        Method::Get | Method::Head => head.target(),
        // The response to a form replaces the page that contained the form.
        _ => origin::page_before(head).and_then(origin::target_of).unwrap_or("/"),
    };
    let is_path = |target: &str| target.starts_with('/') && !target.starts_with("//");
    let path = target.split('?').next().unwrap_or_default();
    let fitting = [target, path].into_iter().find(|own| is_path(own) && own.len() <= MAX_ADDRESS);
    fitting.unwrap_or("/")
}

/// Restores the page that the thread rendered before, also after a panic.
struct PreviousContext(Option<Rc<RenderContext>>);

impl Drop for PreviousContext {
    fn drop(&mut self) {
        CURRENT.set(self.0.take());
    }
}

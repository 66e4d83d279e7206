//! Decides what a page that is being written can know of whoever asked for it, though its handler has ended: enough for
//! actions, which are sealed for a session and name the page they stand in.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;

use bine_http::Method;
use bine_server::Incoming;

use crate::origin;
use crate::request_session::{RequestSession, SessionProvider};

/// A page that is being written, and for whom.
pub(crate) struct Writing {
    visit: Arc<dyn RequestSession>,
    /// Something of it is for this session alone.
    is_personal: Cell<bool>,
    /// Path and query of the page.
    page: Box<str>,
}

thread_local! {
    /// The page that this thread writes.
    static CURRENT: RefCell<Option<Rc<Writing>>> = const { RefCell::new(None) };
}

/// Bytes of a page's address that have room in that of an action.
const LONGEST: usize = 1536;

impl Writing {
    /// The answer to a request, whose handler may have looked at its session. `None`: sessions are not open.
    pub(crate) fn of(
        request: &Incoming<'_>,
        visit: Option<&Arc<dyn RequestSession>>,
        sessions: &Arc<dyn SessionProvider>,
    ) -> Option<Rc<Self>> {
        let visit = visit.cloned().or_else(|| sessions.session_of(request))?;
        let page = address(request).into();
        Some(Rc::new(Self { visit, is_personal: Cell::new(false), page }))
    }

    /// Runs with this as the page that the thread writes.
    pub(crate) fn during<T>(self: &Rc<Self>, write: impl FnOnce() -> T) -> T {
        let _outer = Outer(CURRENT.replace(Some(Rc::clone(self))));
        write()
    }

    /// The page that this thread writes, if it writes one that may have actions.
    pub(crate) fn current() -> Option<Rc<Self>> {
        CURRENT.with_borrow(Clone::clone)
    }

    /// Seals what can be opened by the visitor for whom this is written, and for this purpose.
    pub(crate) fn seal(&self, purpose: &str, content: &[u8]) -> String {
        self.is_personal.set(true);
        self.visit.seal(purpose, content)
    }

    /// Path and query of the page.
    pub(crate) fn page(&self) -> &str {
        &self.page
    }

    /// The visitor, if anything of the page is for their session alone: the head says so.
    pub(crate) fn visitor(&self) -> Option<Arc<dyn RequestSession>> {
        self.is_personal.get().then(|| Arc::clone(&self.visit))
    }

    /// The head is to leave before the page is whole, so what is not written yet may be for this session too.
    pub(crate) fn expect_anything(&self) {
        self.is_personal.set(true);
        self.visit.begin();
    }
}

/// Path and query of the page that a visitor will see this on.
fn address<'r>(request: &Incoming<'r>) -> &'r str {
    let head = &request.head;
    let target = match head.method() {
        Method::Get | Method::Head => head.target(),
        // What answers a form stands in the place of the page that the form was in.
        _ => origin::page_before(head).and_then(origin::target_of).unwrap_or("/"),
    };
    let is_path = |target: &str| target.starts_with('/') && !target.starts_with("//");
    let path = target.split('?').next().unwrap_or_default();
    let fitting = [target, path].into_iter().find(|own| is_path(own) && own.len() <= LONGEST);
    fitting.unwrap_or("/")
}

/// The page that the thread wrote before, also after a panic.
struct Outer(Option<Rc<Writing>>);

impl Drop for Outer {
    fn drop(&mut self) {
        CURRENT.set(self.0.take());
    }
}

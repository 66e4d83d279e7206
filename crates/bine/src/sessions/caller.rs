//! The session, the user and the frame of the client that calls a service.

use std::sync::Arc;

use bine_http::Status;

#[cfg(feature = "script")]
use super::RequestedFrame;
use super::visitor_session::VisitorSession;
use super::{Frame, Session, User};
use crate::error::Error;
use crate::service::{Call, Caller};
use crate::visitor_message::VisitorMessage;

impl Call {
    /// The session of the client. The call begins one if necessary.
    pub fn session(&self) -> Session {
        self.caller().session()
    }

    /// The logged-in user.
    pub fn user(&self) -> Option<User> {
        self.caller().user()
    }

    /// The frame of the calling page.
    ///
    /// # Errors
    ///
    /// The calling page has no frame: it takes no [`Frame`] (400).
    pub fn frame(&self) -> Result<Frame, Error> {
        self.caller().frame()
    }
}

impl Caller {
    /// The session of the client. The call begins one if necessary.
    pub fn session(&self) -> Session {
        Session::of(self.visitor_session())
    }

    /// The session of the client, if there is one. The call never begins one.
    #[cfg(feature = "script")]
    pub(crate) fn existing_session(&self) -> Option<Session> {
        Session::existing(self.visitor_session())
    }

    /// The logged-in user.
    pub fn user(&self) -> Option<User> {
        self.visitor_session().look_at_user().map(User)
    }

    /// The frame of the calling page.
    ///
    /// # Errors
    ///
    /// The calling page has no frame: it takes no [`Frame`] (400).
    pub fn frame(&self) -> Result<Frame, Error> {
        let frame = self.page().and_then(|page| Frame::at(&self.visitor_session(), &page));
        frame.ok_or_else(|| Error::told(Status::BAD_REQUEST, VisitorMessage::NoFrame {}))
    }

    /// The frame of the page that is requested, or what the client must do to have one.
    #[cfg(feature = "script")]
    pub(crate) fn page_frame(&self) -> RequestedFrame {
        let visitor_session = self.visitor_session();
        let head = self.unrecorded_request().head;
        Frame::of_page(&visitor_session, head.target(), head.method())
    }

    fn visitor_session(&self) -> Arc<VisitorSession> {
        let session = Arc::clone(self.request_session());
        VisitorSession::of_session(session)
            .expect("the sessions of a program are those of this module")
    }
}

//! The session, the user and the frame of the client that calls a service.

use std::sync::Arc;

use bine_http::Status;

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

    fn visitor_session(&self) -> Arc<VisitorSession> {
        let session = Arc::clone(self.request_session());
        VisitorSession::of_session(session)
            .expect("the sessions of a program are those of this module")
    }
}

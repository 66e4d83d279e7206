//! The session, the user and the frame of the client that calls a service.

use std::sync::Arc;

use super::visit::Visit;
use super::{Frame, Session, User};
use crate::error::Error;
use crate::service::{Call, Caller};

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
        Session::of(self.visit())
    }

    /// The logged-in user.
    pub fn user(&self) -> Option<User> {
        self.visit().look_at_user().map(User)
    }

    /// The frame of the calling page.
    ///
    /// # Errors
    ///
    /// The calling page has no frame: it takes no [`Frame`] (400).
    pub fn frame(&self) -> Result<Frame, Error> {
        let frame = self.page().and_then(|page| Frame::at(&self.visit(), &page));
        frame.ok_or_else(|| {
            Error::bad_request(
                "The page that called has no frame, or one that has ended. Load it again.",
            )
        })
    }

    fn visit(&self) -> Arc<Visit> {
        let session = Arc::clone(self.request_session());
        Visit::of_session(session).expect("the sessions of a program are those of this module")
    }
}

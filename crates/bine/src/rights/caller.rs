//! The rights of the caller of a service.

use super::Rights;
use super::engine::RightsEngine;
use crate::error::Error;
use crate::service::{Call, Caller, lacking};

impl Call {
    /// The rights of the caller and of all users.
    ///
    /// ```
    /// use bine::prelude::*;
    /// use bine::Right;
    ///
    /// #[service("/boards/rename")]
    /// fn rename(call: &mut Call, board: u32, title: Text) -> Result<(), Error> {
    ///     if !call.rights()?.may(Right::Write, &format!("/boards/{board}")) {
    ///         return Err(Error::forbidden("only the team of a board may rename it"));
    ///     }
    ///     // ..
    /// #   drop(title);
    ///     Ok(())
    /// }
    /// # let app = App::new().service(rename);
    /// # drop(app);
    /// ```
    ///
    /// # Errors
    ///
    /// The program has no rights: add [`App::rights`](crate::App::rights).
    pub fn rights(&self) -> Result<Rights, Error> {
        self.caller().rights()
    }
}

impl Caller {
    /// The rights of the caller and of all users.
    ///
    /// # Errors
    ///
    /// The program has no rights: add [`App::rights`](crate::App::rights).
    pub fn rights(&self) -> Result<Rights, Error> {
        let engine = self.app().states.find_shared::<RightsEngine>();
        let engine = engine.ok_or_else(|| lacking("rights", "rights"))?;
        Ok(Rights::new(engine, self.store().clone(), self.user().map(|user| user.0)))
    }
}

//! Gives handlers and services access to the channels of their program.

use super::Channels;
use crate::arguments::{FromRequest, Needs, Rejection, RequestParts};
use crate::error::Error;
use crate::service::{Call, Caller, lacking};

/// The channels of a program that [has some](crate::App::channels).
impl FromRequest for Channels {
    fn from_request(request: &mut RequestParts<'_>, name: &'static str) -> Result<Self, Rejection> {
        let channels = request.app.states.find::<Self>().cloned();
        channels
            .ok_or_else(|| Rejection::invalid(name, "are the channels of a program that has none"))
    }

    fn needs(needs: &mut Needs) {
        needs.require::<Self>(
            "takes `Channels`, and the program has none; add `.channels(..)` to the app",
        );
    }
}

impl Call {
    /// Returns the program's channels. A retried service call publishes again, and a failed one has
    /// published all the same: publish in `call.after_commit(move || ..)` to publish exactly once,
    /// after the commit.
    ///
    /// # Errors
    ///
    /// The program has no channels; add them with [`App::channels`](crate::App::channels).
    pub fn channels(&self) -> Result<Channels, Error> {
        self.caller().channels()
    }
}

impl Caller {
    /// Returns the program's channels.
    ///
    /// # Errors
    ///
    /// The program has no channels; add them with [`App::channels`](crate::App::channels).
    pub fn channels(&self) -> Result<Channels, Error> {
        let channels = self.app().states.find::<Channels>().cloned();
        channels.ok_or_else(|| lacking("channels", "channels"))
    }
}

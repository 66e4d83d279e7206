//! How handlers and services get the channels of their program.

use super::Channels;
use crate::arguments::{Argument, Arguments, Needs, Rejection};
use crate::error::Error;
use crate::service::{Call, Caller, lacking};

/// The channels of a program that [has some](crate::App::channels).
impl Argument for Channels {
    fn take(request: &mut Arguments<'_>, name: &'static str) -> Result<Self, Rejection> {
        let channels = request.app.states.find::<Self>().cloned();
        channels.ok_or_else(|| Rejection::bad(name, "are the channels of a program that has none"))
    }

    fn needs(needs: &mut Needs) {
        needs.require::<Self>(
            "takes `Channels`, and the program has none; add `.channels(..)` to the app",
        );
    }
}

impl Call {
    /// The program's channels. What is published while the service runs is published again when it is run again, and
    /// though it may fail: `call.after_commit(move || ..)` does it once, when what the service did is kept.
    ///
    /// # Errors
    ///
    /// It has none: [`App::channels`](crate::App::channels) gives it some.
    pub fn channels(&self) -> Result<Channels, Error> {
        self.caller().channels()
    }
}

impl Caller {
    /// The program's channels.
    ///
    /// # Errors
    ///
    /// It has none: [`App::channels`](crate::App::channels) gives it some.
    pub fn channels(&self) -> Result<Channels, Error> {
        let channels = self.app().states.find::<Channels>().cloned();
        channels.ok_or_else(|| lacking("channels", "channels"))
    }
}

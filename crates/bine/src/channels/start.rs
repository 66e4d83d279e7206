//! The start of a program's channels: with what the journal has kept, and with those that the program wants.

use bine_log as log;

use super::{Channels, Error as ChannelError, Refused, Settings, status_of};
use crate::error::{Error, ErrorMapping, MappedError};
use crate::store::{self, Store};
use crate::tables::{go_on, map_store_error};

/// The channels of a program, which are kept beside its tables.
pub(crate) struct Kept {
    pub(crate) channels: Channels,
    pub(crate) are_some: bool,
    /// Those that it has from its first start on.
    pub(crate) wanted: Vec<(&'static str, Settings)>,
    /// Once these are there.
    pub(crate) at_channels: Vec<AtChannels>,
}

/// What a program does with its channels before the first request.
pub(crate) type AtChannels = Box<dyn FnOnce(&Channels) -> Result<(), Error>>;

impl Kept {
    /// The channels begin with what the store has given back, and with those that the program wants.
    pub(crate) fn begin(self, store: &Store) -> Result<(), String> {
        if !self.are_some {
            return Ok(());
        }
        self.channels.begin(store)?;
        for (name, settings) in &self.wanted {
            match self.channels.create(name, settings.clone()).wait() {
                Ok(_) => {}
                Err(ChannelError::NotKept(store::Error::Full)) => {
                    let created = self.channels.create_owed(name, settings.clone());
                    created.map_err(|error| format!("channel `{name}`: {error}"))?;
                }
                Err(ChannelError::Refused(refused @ Refused::Conflict(_))) => {
                    log::warn(format_args!("{refused}"));
                }
                Err(error) => return Err(format!("channel `{name}`: {error}")),
            }
        }
        for run in self.at_channels {
            go_on("the channels are there", run(&self.channels))?;
        }
        Ok(())
    }
}

inventory::submit! {
    ErrorMapping(|error| {
        if let Some(super::Interruption::Refused(refused)) = error.downcast_ref() {
            return Some(MappedError::new(status_of(refused), Some(refused.to_string())));
        }
        match error.downcast_ref()? {
            ChannelError::NotKept(unchanged) => Some(map_store_error(unchanged)),
            ChannelError::Refused(refused) => {
                Some(MappedError::new(status_of(refused), Some(refused.to_string())))
            }
        }
    })
}

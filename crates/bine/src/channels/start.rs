//! Starts a program's channels: restores the journaled ones and creates the configured ones.

use bine_log as log;

use super::{Channels, Error as ChannelError, Refused, Settings, status_of};
use crate::error::{Error, ErrorMapping, MappedError};
use crate::store::{self, Store};
use crate::tables::{map_store_error, skip_if_disk_full};

/// The channels of a program with the steps of its start.
pub(crate) struct ConfiguredChannels {
    pub(crate) channels: Channels,
    pub(crate) are_some: bool,
    /// Channels that the program declares, which the first start creates.
    pub(crate) wanted: Vec<(&'static str, Settings)>,
    /// Functions to run when the channels have started.
    pub(crate) at_channels: Vec<AtChannels>,
}

/// A function that the program runs with its channels before the first request.
pub(crate) type AtChannels = Box<dyn FnOnce(&Channels) -> Result<(), Error>>;

impl ConfiguredChannels {
    /// Starts the channels and creates the declared ones.
    pub(crate) fn begin(self, store: &Store) -> Result<(), String> {
        if !self.are_some {
            return Ok(());
        }
        self.channels.begin(store)?;
        for (name, settings) in &self.wanted {
            match self.channels.create(name, settings.clone()).wait() {
                Ok(_) => {}
                Err(ChannelError::NotKept(store::Error::Full)) => {
                    let created = self.channels.create_deferred(name, settings.clone());
                    created.map_err(|error| format!("channel `{name}`: {error}"))?;
                }
                Err(ChannelError::Refused(refused @ Refused::Conflict(_))) => {
                    log::warn(format_args!("{refused}"));
                }
                Err(error) => return Err(format!("channel `{name}`: {error}")),
            }
        }
        for run in self.at_channels {
            skip_if_disk_full("the channels are there", run(&self.channels))?;
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

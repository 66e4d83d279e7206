//! The channels as a subsystem of a program: its methods of [`App`], and its start.

use std::sync::Arc;
use std::time::Duration;

use bine_log as log;

use super::access::{Access, ChannelScopes};
use super::choices::ChannelChoices;
use super::endpoint::{ChannelsEndpoint, PATH};
use super::{Channels, Engine, Error as ChannelError, Refused, Settings, status_of};
use crate::app::App;
use crate::configuration::Configuration;
use crate::error::{Error, ErrorMapping, MappedError};
use crate::listing::Listed;
use crate::methods::Methods;
use crate::prometheus::PrometheusText;
use crate::shared_state::SharedState;
use crate::store::{self, Options, RowId, Store};
use crate::subsystem::{Definition, Mount, Outline, Registration, Running, Subsystem};
use crate::tables::{map_store_error, skip_if_disk_full};

/// The channels of a program that has not started.
struct ChannelSubsystem {
    channels: Channels,
    /// The access rules; `None`: the program has no channels.
    access: Option<Access>,
    /// Channels that the program declares, which the first start creates.
    wanted: Vec<(&'static str, Settings)>,
    /// Functions to run when the channels have started.
    on_channels_open: Vec<OnChannelsOpen>,
}

/// A function that the program runs with its channels before the first request.
type OnChannelsOpen = Box<dyn FnOnce(&Channels) -> Result<(), Error>>;

/// The engine of a program's channels, for other subsystems.
pub(crate) struct ChannelEngine(pub(crate) Arc<Engine>);

inventory::submit! {
    Registration {
        rank: 20,
        create: || {
            Box::new(ChannelSubsystem {
                channels: Channels::new(),
                access: None,
                wanted: Vec::new(),
                on_channels_open: Vec::new(),
            })
        },
    }
}

impl App {
    /// Enables channels, which handlers take as [`Channels`], and sets the access rules for
    /// `/channels` over HTTP. Their data is in the store, with the tables.
    pub fn channels(mut self, access: Access) -> Self {
        self.subsystems.get_mut::<ChannelSubsystem>().access = Some(access);
        self
    }

    /// Creates a channel of this name at the first start. An existing channel keeps its settings;
    /// if they differ, the log has a warning.
    pub fn channel(mut self, name: &'static str, settings: Settings) -> Self {
        let own: &mut ChannelSubsystem = self.subsystems.get_mut();
        own.access.get_or_insert_default();
        own.wanted.push((name, settings));
        self
    }

    /// Tracks presence in a channel: a client is present while it follows the channel at
    /// `/channels`, and for `linger` longer, so that the gap between two polls does not count as
    /// leaving. [`Channels::present`] returns the list. The server publishes each change in the
    /// channel `NAME/presence` (`join`, `leave`, and `begin` after a start, when the list is
    /// empty). Clients cannot publish there over HTTP.
    pub fn presence(self, name: &'static str, linger: Duration) -> Self {
        self.on_channels_open(move |channels| Ok(channels.count(name, linger)?))
    }

    /// Runs once when the channels are open, before the first request: the place for threads that
    /// follow or publish. An error aborts the start. To change the program's tables at the start,
    /// use [`on_store_open`](Self::on_store_open).
    pub fn on_channels_open(
        mut self,
        run: impl FnOnce(&Channels) -> Result<(), Error> + 'static,
    ) -> Self {
        let own: &mut ChannelSubsystem = self.subsystems.get_mut();
        own.access.get_or_insert_default();
        own.on_channels_open.push(Box::new(run));
        self
    }
}

impl Subsystem for ChannelSubsystem {
    fn needs_store(&self, _outline: &Outline<'_>) -> bool {
        self.access.is_some()
    }

    fn has_content(&self) -> bool {
        self.access.is_some()
    }

    fn configure(&mut self, configuration: &Configuration) {
        let choices: ChannelChoices = configuration.choice();
        if self.access.is_some() || choices.are_some() {
            let access = self.access.take().unwrap_or_default();
            self.access = Some(choices.added_to(access, configuration.settings.guards.memory));
        }
    }

    fn list(&self, _outline: &Outline<'_>, listed: &mut Vec<Listed>) {
        let Some(access) = &self.access else { return };
        let methods = Methods::GET.or(Methods::POST).or(Methods::QUERY);
        listed.push(Listed::new(methods, PATH, "channels", "").rule(access.told()));
        let methods = Methods::GET.or(Methods::POST).or(Methods::PUT).or(Methods::DELETE);
        listed.extend(self.wanted.iter().map(|(name, _)| {
            let path = format!("{PATH}/{name}");
            Listed::new(methods, &path, "channel", name).rule(access.told_of(name))
        }));
    }

    fn define(&mut self, definition: &mut Definition) -> Result<(), String> {
        definition.states.add(ChannelEngine(Arc::clone(self.channels.engine())));
        if let Some(nodes) = &definition.nodes {
            self.channels.engine().set_nodes(Arc::clone(nodes));
        }
        if let Some(state) = definition.states.find::<SharedState>() {
            self.channels.share_presence(state);
        }
        let scopes = definition.states.find::<ChannelScopes>().cloned().unwrap_or_default();
        // Only pages of Rust hold responses.
        definition.may_need_request |= self.access.is_some();
        if !scopes.0.is_empty() {
            self.access.get_or_insert_default();
        }
        let Some(access) = self.access.clone() else { return Ok(()) };
        definition.states.add(self.channels.clone());
        let gate = self.channels.gate(access, definition.guard.clone())?;
        let gate = Arc::new(gate.with_scopes(scopes));
        definition.functions.push(("the access function of channels", gate.needs()));
        if gate.is_open() {
            definition.mounts.push(Mount {
                name: "channels",
                path: PATH,
                has_descendants: true,
                is_gated: false,
                handler: Arc::new(ChannelsEndpoint { channels: self.channels.clone(), gate }),
            });
        }
        definition.running.push(Arc::new(RunningChannels(self.channels.clone())));
        Ok(())
    }

    fn declare(&self, options: Options) -> Options {
        options.extension(self.channels.store_extension())
    }

    /// Starts the channels and creates the declared ones.
    fn restore(&mut self, store: &Store) -> Result<(), String> {
        if self.access.is_none() {
            return Ok(());
        }
        self.channels.begin(store)?;
        for (name, settings) in &self.wanted {
            match self.channels.create(name, settings.clone()).wait() {
                Ok(_) => {}
                Err(ChannelError::Storage(store::Error::Full)) => {
                    let created = self.channels.create_deferred(name, settings.clone());
                    created.map_err(|error| format!("channel `{name}`: {error}"))?;
                }
                Err(ChannelError::Refused(refused @ Refused::Conflict(_))) => {
                    log::warn(format_args!("{refused}"));
                }
                Err(error) => return Err(format!("channel `{name}`: {error}")),
            }
        }
        for run in self.on_channels_open.drain(..) {
            skip_if_disk_full("the channels are there", run(&self.channels))?;
        }
        Ok(())
    }
}

/// The hooks of channels while the program runs.
struct RunningChannels(Channels);

impl Running for RunningChannels {
    fn end_logins(&self, rows: Option<&[RowId]>) {
        self.0.end_logins(rows);
    }

    fn change_rights(&self) {
        self.0.end_lost_rights();
    }

    fn write_metrics(&self, text: &mut PrometheusText) {
        let metrics = self.0.figures();
        text.gauge("bine_channels", "Channels.").is(metrics.channels);
        text.gauge("bine_channels_retained_bytes", "Bytes of retained messages.").is(metrics.bytes);
        text.counter("bine_channels_messages_total", "Published messages.").is(metrics.messages);
        text.gauge("bine_channels_holds", "Waiting polls, streams and WebSockets.")
            .is(metrics.holds);
    }

    fn unfinished_work(&self) -> Option<String> {
        let is_writing = self.0.engine().is_writing_long_records();
        is_writing.then(|| "channels (long messages are being written)".to_owned())
    }

    fn stop(&self) {
        self.0.end();
    }
}

inventory::submit! {
    ErrorMapping(|error| {
        if let Some(super::Interruption::Refused(refused)) = error.downcast_ref() {
            return Some(MappedError::new(status_of(refused), Some(refused.to_string())));
        }
        match error.downcast_ref()? {
            ChannelError::Storage(unchanged) => Some(map_store_error(unchanged)),
            ChannelError::Refused(refused) => {
                Some(MappedError::new(status_of(refused), Some(refused.to_string())))
            }
        }
    })
}

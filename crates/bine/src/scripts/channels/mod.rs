//! The channels of scripts: declaration, publishing and reading.
//!
//! The words that a script imports are JavaScript ([`WORDS`]) over the functions of
//! [`ScriptChannels::host_module`]. The channels are those of the program
//! ([`Channels`](crate::channels::Channels)): a channel `news` of the application `board` is
//! `board/news` for clients, Rust and the command line.

mod declaration;
mod place;
mod queue;
mod reading;
mod work;

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;

use bine_log as log;
use bine_script::{HostCall, HostError, HostModule, Value};

use self::declaration::ScriptChannel;
pub(super) use self::place::{ChannelPlace, segment_of};
pub(super) use self::queue::ChannelQueue;
use super::call_state::{CallState, outcome};
use super::tables::to_count;
use crate::channels::{ChannelAction, Channels, Error as ChannelError, Refused, ScopeRules};
use crate::error::Error;
use crate::store;

/// The module `bine:internal/channels`: the words for channels, which the module `bine` exports.
pub(super) const WORDS: &str = include_str!("../words/channels.js");

/// The name of the host's module, which [`WORDS`] imports.
const HOST_MODULE: &str = "bine:internal/channels-host";
/// The most declarations of one application.
const MAX_DECLARED: usize = 1000;

/// The channels that the script of one instance declares.
pub(super) struct ScriptChannels {
    place: ChannelPlace,
    /// What has to create channels first.
    queue: Arc<ChannelQueue>,
    declared: RefCell<Vec<Rc<ScriptChannel>>>,
    /// Whether all modules are loaded, so that no channel may be added.
    is_complete: Cell<bool>,
}

impl ScriptChannels {
    /// The channels of an application. All its instances share the queue.
    pub(super) fn new(place: ChannelPlace, queue: Arc<ChannelQueue>) -> Rc<Self> {
        let (declared, is_complete) = Default::default();
        Rc::new(Self { place, queue, declared, is_complete })
    }

    /// The functions of the host on which [`WORDS`] is built.
    pub(super) fn host_module(self: &Rc<Self>) -> HostModule {
        let module = HostModule::new(HOST_MODULE);
        let module = self.function(module, "declare", Self::declare);
        let module = self.function(module, "nameOf", Self::name_of);
        let module = self.function(module, "newest", reading::newest);
        let module = self.function(module, "describe", reading::describe);
        let module = self.function(module, "url", reading::url);
        let module = self.function(module, "later", work::later);
        let own = Rc::clone(self);
        module.async_function("now", move |call| work::now(&own, call))
    }

    /// Ends the declaration.
    pub(super) fn complete(&self) {
        self.is_complete.set(true);
    }

    /// Creates the channels that are no patterns, and returns the rules.
    ///
    /// # Errors
    ///
    /// A channel cannot be created; the text names it.
    pub(super) async fn create(
        &self,
        channels: Result<Channels, Error>,
    ) -> Result<ScopeRules, String> {
        let (mut rules, declared) = (ScopeRules::default(), self.declared.borrow().clone());
        if declared.is_empty() {
            return Ok(rules);
        }
        let channels = channels.map_err(|error| error.chain().collect::<Vec<_>>().join(": "))?;
        for channel in &declared {
            let uses = [
                (ChannelAction::Follow, channel.follow),
                (ChannelAction::Publish, channel.publish),
            ];
            for (action, audience) in uses {
                if let Some(audience) = audience {
                    rules.permit(action, audience, channel.rule())?;
                }
            }
            if !channel.is_pattern() {
                create(&channels, channel).await?;
            }
        }
        Ok(rules)
    }

    /// Adds a function of the host.
    fn function(
        self: &Rc<Self>,
        module: HostModule,
        name: &str,
        function: fn(&Self, &HostCall<'_, '_>) -> Result<Value, HostError>,
    ) -> HostModule {
        let own = Rc::clone(self);
        module.function(name, move |call| function(&own, call))
    }

    /// `declare(name, settings)`: adds a channel or a pattern of channels.
    fn declare(&self, call: &HostCall<'_, '_>) -> Result<Value, HostError> {
        if self.is_complete.get() || CallState::of(call).is_ok() {
            return Err(HostError::Other(
                "a channel is declared while the application loads: move `channel(..)` to the top of a module, and use a pattern such as `channel(\"rooms/{room}\")` for names that are known later"
                    .to_owned(),
            ));
        }
        if let Some(reason) = &self.place.conflict {
            return Err(HostError::Other(reason.to_string()));
        }
        let (name, settings) = (call.value(0)?, call.value(1)?);
        let channel = declaration::read(&self.place, &name, &settings).map_err(HostError::Type)?;
        let mut declared = self.declared.borrow_mut();
        if declared.iter().any(|other| other.name == channel.name) {
            return Err(HostError::Other(format!(
                "the channel `{}` is declared twice: export it from one module, and import it in the others",
                channel.name
            )));
        }
        if let Some(other) = declared.iter().find(|other| other.overlaps(&channel)) {
            return Err(HostError::Other(format!(
                "the channels `{}` and `{}` have names in common, so the rules of one would hold for the other: give one another first segment",
                other.name, channel.name
            )));
        }
        if declared.len() >= MAX_DECLARED {
            return Err(HostError::Range(format!(
                "an application declares at most {MAX_DECLARED} channels: use a pattern such as `channel(\"rooms/{{room}}\")`"
            )));
        }
        let is_pattern = channel.is_pattern();
        declared.push(Rc::new(channel));
        Ok(Value::Object(vec![
            ("slot".to_owned(), Value::Number((declared.len() - 1) as f64)),
            ("isPattern".to_owned(), Value::Bool(is_pattern)),
        ]))
    }

    /// `nameOf(slot, values)`: the name of a channel for clients.
    fn name_of(&self, call: &HostCall<'_, '_>) -> Result<Value, HostError> {
        let named = self.named(&call.value(0)?, &call.value(1)?)?;
        Ok(outcome(named.map(|(name, _)| name.into())))
    }

    /// The channel of a slot with these values in the place of its segments, and its declaration.
    /// The inner error is for the visitor: a value that no name can have.
    fn named(
        &self,
        slot: &Value,
        values: &Value,
    ) -> Result<Result<(String, Rc<ScriptChannel>), Error>, HostError> {
        let declared = self.declared.borrow();
        let slot = match slot {
            Value::Number(slot) => to_count(*slot),
            _ => None,
        };
        let missing = || HostError::Type("this is no channel of the application".to_owned());
        let channel = slot.and_then(|slot| declared.get(slot)).ok_or_else(missing)?;
        let name = channel.name_with(values)?;
        Ok(name.map(|name| (name, Rc::clone(channel))))
    }
}

/// Creates a declared channel. One that exists keeps its settings, as with
/// [`App::channel`](crate::App::channel).
async fn create(channels: &Channels, channel: &ScriptChannel) -> Result<(), String> {
    let name = channel.full_name();
    match channels.create(name, channel.settings.clone()).await {
        Ok(_) => Ok(()),
        Err(ChannelError::Refused(Refused::Conflict(_))) => {
            log::warn(format_args!(
                "the channel `{name}` exists with other settings, which it keeps: for new ones, remove it by `bine channel delete {name}`, with its messages"
            ));
            Ok(())
        }
        Err(ChannelError::Storage(store::Error::Full)) => {
            let created = channels.create_deferred(name, channel.settings.clone());
            created.map_err(|error| format!("the channel `{name}`: {error}"))
        }
        Err(error) => Err(format!("the channel `{name}`: {error}")),
    }
}

/// The channels of the program that runs a call.
fn channels_of(state: &CallState) -> Result<Channels, HostError> {
    let channels = state.caller()?.channels();
    channels.map_err(|error| HostError::Other(error.chain().collect::<Vec<_>>().join(": ")))
}

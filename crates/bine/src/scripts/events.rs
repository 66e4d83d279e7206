//! The events of scripts, and the visitors of open pages.
//!
//! The events are those of the program ([`Events`]): an event `bell` of the application `board` is
//! `board/bell` for clients and for Rust.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use bine_log as log;
use bine_script::{HostCall, HostError, HostModule, Value};
use serde_json::Value as Json;

use super::app_settings::AppAccess;
use super::call_state::{CallState, outcome};
use super::tables::to_count;
use crate::live::Events;

/// The module `bine:internal/events`: the words for events, which the module `bine` exports.
pub(super) const WORDS: &str = include_str!("words/events.js");

/// The name of the host's module, which [`WORDS`] imports.
const HOST_MODULE: &str = "bine:internal/events-host";
/// The most events of one application.
const MAX_EVENTS: usize = 100;
/// The longest name, in bytes.
const MAX_NAME: usize = 64;
/// The most names of one read.
const MAX_PRESENT: f64 = 1000.0;

/// The events that the script of one instance declares.
pub(super) struct ScriptEvents {
    /// The first segment of the names, which no other application has.
    segment: String,
    /// The permitted users of the application.
    access: AppAccess,
    events: Events,
    declared: RefCell<Vec<DeclaredEvent>>,
    /// Whether all modules are loaded, so that no event may be added.
    is_complete: Cell<bool>,
}

/// An event of a script.
struct DeclaredEvent {
    /// The name for clients.
    name: String,
    is_for_users: bool,
}

impl ScriptEvents {
    /// The events of an application, among those of the program.
    pub(super) fn new(segment: String, access: AppAccess, events: Events) -> Rc<Self> {
        let (declared, is_complete) = (RefCell::default(), Cell::default());
        Rc::new(Self { segment, access, events, declared, is_complete })
    }

    /// The functions of the host on which [`WORDS`] is built.
    pub(super) fn host_module(self: &Rc<Self>) -> HostModule {
        let module = HostModule::new(HOST_MODULE);
        let module = self.function(module, "declare", Self::declare);
        let module = self.function(module, "send", Self::send);
        let module = self.function(module, "listeners", |own, call| {
            CallState::of(call)?;
            let count = own.with_event(call, |event| own.events.listeners(&event.name))?;
            Ok(Value::Number(count as f64))
        });
        module
            .function("people", |call| {
                Ok(Value::Number(CallState::of(call)?.presence()?.people() as f64))
            })
            .function("tabs", |call| {
                Ok(Value::Number(CallState::of(call)?.presence()?.tabs() as f64))
            })
            .function("names", |call| {
                let (state, most) = (CallState::of(call)?, call.number(0)?);
                if most.fract() != 0.0 || !(1.0..=MAX_PRESENT).contains(&most) {
                    return Err(HostError::Range(format!(
                        "presence.names(n) reads from 1 to {MAX_PRESENT} names, not {most}"
                    )));
                }
                #[expect(clippy::cast_sign_loss, reason = "the number is at least 1")]
                let names = state.presence()?.names(most as usize);
                Ok(Value::Array(names.iter().map(|name| Value::Text(name.to_string())).collect()))
            })
    }

    /// Ends the declaration: clients may listen from now on.
    pub(super) fn declare_all(&self) {
        self.is_complete.set(true);
        for event in self.declared.borrow().iter() {
            self.events.declare(&event.name, event.is_for_users);
        }
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

    /// `declare(name, options)`: adds an event.
    fn declare(&self, call: &HostCall<'_, '_>) -> Result<Value, HostError> {
        if self.is_complete.get() || CallState::of(call).is_ok() {
            return Err(HostError::Other(
                "an event is declared while the application loads: move `event(..)` to the top of a module"
                    .to_owned(),
            ));
        }
        let own = call.text(0)?;
        let is_letter = |letter: u8| letter.is_ascii_alphanumeric() || b"_-".contains(&letter);
        if !(1..=MAX_NAME).contains(&own.len()) || !own.bytes().all(is_letter) {
            return Err(HostError::Type(format!(
                "the name of an event has 1 to {MAX_NAME} letters, digits, `_` and `-`, such as event(\"bell\")"
            )));
        }
        if let AppAccess::Group(group) = &self.access {
            return Err(HostError::Other(format!(
                "the application is for the group `{group}` (`access` in app.toml), which an event cannot check: use a channel, and give the group a right to it"
            )));
        }
        let is_for_users = is_for_users(&call.value(1)?)? || self.access == AppAccess::Users;
        let (name, mut declared) = (format!("{}/{own}", self.segment), self.declared.borrow_mut());
        if declared.iter().any(|other| other.name == name) {
            return Err(HostError::Other(format!(
                "the event `{own}` is declared twice: export it from one module, and import it in the others"
            )));
        }
        if declared.len() >= MAX_EVENTS {
            return Err(HostError::Range(format!(
                "an application has at most {MAX_EVENTS} events: put what differs into their data"
            )));
        }
        declared.push(DeclaredEvent { name: name.clone(), is_for_users });
        Ok(Value::Object(vec![
            ("slot".to_owned(), Value::Number((declared.len() - 1) as f64)),
            ("name".to_owned(), Value::Text(name)),
        ]))
    }

    /// `send(slot, isForOne, data)`: sends an event, in a transaction after its commit.
    fn send(&self, call: &HostCall<'_, '_>) -> Result<Value, HostError> {
        let state = CallState::of(call)?;
        if state.is_page() {
            return Err(HostError::Other("a page only reads: send events in a service".to_owned()));
        }
        let (is_for_one, text) = (call.value(1)? == Value::Bool(true), call.text(2)?);
        let data: Json = serde_json::from_str(&text)
            .map_err(|_| HostError::Range("the data of the event is nested too deep".to_owned()))?;
        let (name, events) =
            self.with_event(call, |event| (event.name.clone(), self.events.clone()))?;
        let send = move || {
            if is_for_one {
                events.notify_one(&name, data).map(Json::from)
            } else {
                events.broadcast(&name, data).map(|()| Json::Null)
            }
        };
        if !state.is_changing() {
            return Ok(outcome(send()));
        }
        let later = move || {
            if let Err(error) = send() {
                let reasons = error.chain().collect::<Vec<_>>().join(": ");
                log::error(format_args!("an event was not sent after a commit: {reasons}"));
            }
        };
        state.change(|transaction| transaction.after_commit(later))?;
        Ok(outcome(Ok(Json::Null)))
    }

    /// Reads the event whose slot is the first argument.
    fn with_event<T>(
        &self,
        call: &HostCall<'_, '_>,
        read: impl FnOnce(&DeclaredEvent) -> T,
    ) -> Result<T, HostError> {
        let slot = call.number(0)?;
        let declared = self.declared.borrow();
        let found = to_count(slot).and_then(|slot| declared.get(slot));
        let missing = || HostError::Type("this is no event of the application".to_owned());
        found.map(read).ok_or_else(missing)
    }
}

/// Reads the options of an event.
fn is_for_users(options: &Value) -> Result<bool, HostError> {
    let entries = match options {
        Value::Null | Value::Undefined => return Ok(false),
        Value::Object(entries) => &entries[..],
        _ => &[],
    };
    match entries {
        [(key, Value::Text(listeners))] if key == "listen" && listeners == "users" => Ok(true),
        [(key, Value::Text(listeners))] if key == "listen" && listeners == "anyone" => Ok(false),
        _ => Err(HostError::Type(
            "the option of an event says who may listen: event(\"bell\", { listen: \"users\" }), or \"anyone\""
                .to_owned(),
        )),
    }
}

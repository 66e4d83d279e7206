//! The session of the visitor for scripts: its values, its login, and the other sessions of the user.
//! In a transaction, a change is a part of it.

use bine_script::{HostCall, HostError, HostModule, Value};
use serde_json::Value as Json;

use super::call_state::{CallState, outcome};
use super::tables::time_text;
use crate::error::Error;
use crate::sessions::{Session, SessionInfo, SessionTransaction};
use crate::store::{RowId, Transaction};

/// The module `bine:internal/session`: the words for sessions, which `ctx.session` has.
pub(super) const WORDS: &str = include_str!("words/session.js");

/// The name of the host's module, which [`WORDS`] imports.
const HOST_MODULE: &str = "bine:internal/session-host";

/// A longer text is rejected before it is parsed. The session itself checks its exact limit.
const MAX_TEXT: usize = 64 << 10;

/// A change of the session.
enum SessionTask {
    Set { name: String, value: Json },
    Remove(String),
    LogIn { user: String, is_brief: bool },
    LogOut,
    Revoke(RowId),
    RevokeOthers,
    RevokeUser(String),
}

/// The functions of the host on which [`WORDS`] is built.
pub(super) fn host_module() -> HostModule {
    HostModule::new(HOST_MODULE)
        .function("get", get)
        .function("all", all)
        .function("change", |call| {
            let (state, task) = (CallState::of(call)?, SessionTask::of(call)?);
            let Some(task) = task else { return Ok(outcome(Ok(false.into()))) };
            let changed = state.change_session(|session, transaction, within| {
                task.run_within(session, transaction, within)
            })?;
            Ok(outcome(changed))
        })
        .async_function("now", |call| {
            let (state, task) = (CallState::of(call)?, SessionTask::of(call)?);
            if state.is_page() {
                return Err(HostError::Other(
                    "a page only reads: change the session in a service".to_owned(),
                ));
            }
            let session = state.caller()?.session();
            Ok(async move {
                Ok(outcome(match task {
                    Some(task) => task.run(session).await,
                    None => Ok(false.into()),
                }))
            })
        })
}

/// `get(name)`: the JSON of a value, or `null`. It begins no session.
fn get(call: &HostCall<'_, '_>) -> Result<Value, HostError> {
    let (state, name) = (CallState::of(call)?, call.text(0)?);
    let Some(session) = state.caller()?.existing_session() else { return Ok(Value::Null) };
    // A transaction sees its own changes, and conflicts with other transactions.
    let value = if state.is_changing() {
        state.read(|tables| session.value_in(tables, &name))
    } else {
        session.get::<Json>(&name)
    };
    Ok(value.map_or(Value::Null, |value| Value::Text(value.to_string())))
}

/// `all()`: the sessions of the user, the oldest first.
fn all(call: &HostCall<'_, '_>) -> Result<Value, HostError> {
    let state = CallState::of(call)?;
    let sessions = state.caller()?.existing_session().map(|session| session.all());
    let shown = |info: SessionInfo| {
        let fields = [
            ("id", Value::Text(info.id.to_string())),
            ("created", Value::Text(time_text(info.created))),
            ("lastUsed", Value::Text(time_text(info.last_used))),
            ("isCurrent", Value::Bool(info.is_current)),
        ];
        Value::Object(fields.map(|(name, value)| (name.to_owned(), value)).into())
    };
    Ok(Value::Array(sessions.into_iter().flatten().map(shown).collect()))
}

impl SessionTask {
    /// Reads a task: its kind and its arguments. `None`: it names a session that does not exist.
    fn of(call: &HostCall<'_, '_>) -> Result<Option<Self>, HostError> {
        Ok(Some(match call.text(0)?.as_str() {
            "set" => {
                let (name, text) = (call.text(1)?, call.text(2)?);
                if text.len() > MAX_TEXT {
                    return Err(HostError::Range(format!(
                        "a session holds at most 4096 bytes as JSON, and the value has {}: keep it in a table",
                        text.len()
                    )));
                }
                let value = serde_json::from_str(&text).map_err(|_| {
                    HostError::Range("the value is nested too deep for a session".to_owned())
                })?;
                Self::Set { name, value }
            }
            "remove" => Self::Remove(call.text(1)?),
            "logIn" => Self::LogIn { user: call.text(1)?, is_brief: is_brief(&call.value(2)?)? },
            "logOut" => Self::LogOut,
            "revoke" => match call.text(1)?.parse() {
                Ok(id) => Self::Revoke(id),
                Err(_) => return Ok(None),
            },
            "revokeOthers" => Self::RevokeOthers,
            "revokeUser" => Self::RevokeUser(call.text(1)?),
            _ => return Err(HostError::Type("there is no such change of a session".to_owned())),
        }))
    }

    async fn run(self, session: Session) -> Result<Json, Error> {
        match self {
            Self::Set { name, value } => session.set(name, value).await.map(nothing),
            Self::Remove(name) => session.remove(name).await.map(nothing),
            Self::LogIn { user, is_brief: false } => session.log_in(user).await.map(nothing),
            Self::LogIn { user, is_brief: true } => session.log_in_briefly(user).await.map(nothing),
            Self::LogOut => session.log_out().await.map(nothing),
            Self::Revoke(id) => session.revoke(id).await.map(Json::from),
            Self::RevokeOthers => session.revoke_others().await.map(Json::from),
            Self::RevokeUser(user) => session.revoke_user(user).await.map(Json::from),
        }
    }

    fn run_within(
        self,
        session: &Session,
        transaction: &mut Transaction,
        within: &mut SessionTransaction,
    ) -> Result<Json, Error> {
        match self {
            Self::Set { name, value } => {
                session.set(name, value).run_within(transaction, within).map(nothing)
            }
            Self::Remove(name) => session.remove(name).run_within(transaction, within).map(nothing),
            Self::LogIn { user, is_brief: false } => {
                session.log_in(user).run_within(transaction, within).map(nothing)
            }
            Self::LogIn { user, is_brief: true } => {
                session.log_in_briefly(user).run_within(transaction, within).map(nothing)
            }
            Self::LogOut => session.log_out().run_within(transaction, within).map(nothing),
            Self::Revoke(id) => session.revoke(id).run_within(transaction, within).map(Json::from),
            Self::RevokeOthers => {
                session.revoke_others().run_within(transaction, within).map(Json::from)
            }
            Self::RevokeUser(user) => {
                session.revoke_user(user).run_within(transaction, within).map(Json::from)
            }
        }
    }
}

fn nothing((): ()) -> Json {
    Json::Null
}

/// Reads the options of a login.
fn is_brief(options: &Value) -> Result<bool, HostError> {
    let wrong = || {
        HostError::Type(
            "a login has the option `brief`: session.logIn(user, { brief: true })".to_owned(),
        )
    };
    let Value::Object(entries) = options else { return Err(wrong()) };
    match &entries[..] {
        [] => Ok(false),
        [(name, Value::Bool(is_brief))] if name == "brief" => Ok(*is_brief),
        _ => Err(wrong()),
    }
}

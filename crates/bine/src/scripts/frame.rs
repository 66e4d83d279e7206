//! The frame of a page for scripts: values of one browser tab, as [`Frame`](crate::Frame) has them.

use bine_script::{HostCall, HostError, HostModule, Value};
use serde_json::Value as Json;

use super::call_state::{CallState, outcome};
use crate::sessions::Frame;

/// The module `bine:internal/frame`: the words for `ctx.frame`.
pub(super) const WORDS: &str = include_str!("words/frame.js");

/// The name of the host's module, which [`WORDS`] imports.
const HOST_MODULE: &str = "bine:internal/frame-host";

/// A longer text is rejected before it is parsed. The frame itself checks its exact limit.
const MAX_TEXT: usize = 64 << 10;

/// The functions of the host on which [`WORDS`] is built.
pub(super) fn host_module() -> HostModule {
    HostModule::new(HOST_MODULE)
        .function("find", |call| {
            let state = CallState::of(call)?;
            Ok(outcome(match state.frame() {
                Ok(Ok(_)) => Ok(Json::Null),
                Ok(Err(location)) => Ok(location.into()),
                Err(error) => Err(error),
            }))
        })
        .function("get", get)
        .function("to", |call| {
            let (state, address) = (CallState::of(call)?, call.text(0)?);
            Ok(Value::Text(known(&state)?.to(&address)))
        })
        .function("change", |call| {
            let (state, name, value) = (CallState::of(call)?, call.text(0)?, value(call)?);
            let frame = known(&state)?;
            let changed = state.change(|transaction| frame.set_in(transaction, &name, &value))?;
            Ok(outcome(changed.map(|()| Json::Null)))
        })
        .async_function("now", |call| {
            let (state, name, value) = (CallState::of(call)?, call.text(0)?, value(call)?);
            if state.is_page() {
                return Err(HostError::Other(
                    "a page only reads: change the values of the tab in a service".to_owned(),
                ));
            }
            let frame = known(&state)?.clone();
            Ok(async move { Ok(outcome(frame.set(name, value).await.map(|()| Json::Null))) })
        })
}

/// `get(name)`: the JSON of a value, or `null`.
fn get(call: &HostCall<'_, '_>) -> Result<Value, HostError> {
    let (state, name) = (CallState::of(call)?, call.text(0)?);
    let frame = known(&state)?;
    // A transaction sees its own changes, and conflicts with other transactions.
    let value = if state.is_changing() {
        state.read(|tables| frame.value_in(tables, &name))
    } else {
        frame.get::<Json>(&name)
    };
    Ok(value.map_or(Value::Null, |value| Value::Text(value.to_string())))
}

/// The frame, which the words have found before.
fn known(state: &CallState) -> Result<&Frame, HostError> {
    match state.frame() {
        Ok(Ok(frame)) => Ok(frame),
        _ => Err(HostError::Other(
            "read `ctx.frame` in this call, and use it in no other".to_owned(),
        )),
    }
}

fn value(call: &HostCall<'_, '_>) -> Result<Json, HostError> {
    let text = call.text(1)?;
    if text.len() > MAX_TEXT {
        return Err(HostError::Range(format!(
            "a frame holds at most 4096 bytes as JSON, and the value has {}: keep it in a table",
            text.len()
        )));
    }
    serde_json::from_str(&text)
        .map_err(|_| HostError::Range("the value is nested too deep for a frame".to_owned()))
}

//! Sealed values for scripts: a page encrypts an argument of a service for the session of its visitor.

use bine_script::{HostCall, HostError, HostModule, Value};

use super::call_state::CallState;
use crate::service::Caller;

/// The module `bine:internal/sealed`: the word `sealed`.
pub(super) const WORDS: &str = include_str!("words/sealed.js");

/// The name of the host's module, which [`WORDS`] imports.
const HOST_MODULE: &str = "bine:internal/sealed-host";

/// The longest value, in bytes of JSON. It becomes a part of the page for each element.
const MAX_VALUE: usize = 4096;

/// The functions of the host on which [`WORDS`] is built.
pub(super) fn host_module() -> HostModule {
    HostModule::new(HOST_MODULE).function("seal", seal)
}

/// `seal(path, name, json)`: a value for the argument of a service, which the session of the visitor
/// alone can send.
fn seal(call: &HostCall<'_, '_>) -> Result<Value, HostError> {
    let (state, path, name, json) =
        (CallState::of(call)?, call.text(0)?, call.text(1)?, call.text(2)?);
    if json.len() > MAX_VALUE {
        return Err(HostError::Range(format!(
            "a sealed value has at most {MAX_VALUE} bytes as JSON, and `{name}` has {}: seal an id",
            json.len()
        )));
    }
    let session = state.caller()?.request_session();
    Ok(Value::Text(session.seal(&purpose(&path, &name), json.as_bytes())))
}

/// Decrypts an argument of a service that its session has sealed.
pub(super) fn open(caller: &Caller, path: &str, name: &str, text: &str) -> Option<Vec<u8>> {
    caller.request_session().open_seal(&purpose(path, name), text)
}

/// The purpose of a sealed value. A path has no space.
fn purpose(path: &str, name: &str) -> String {
    format!("argument {path} {name}")
}

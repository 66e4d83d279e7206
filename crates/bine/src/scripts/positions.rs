//! `position` and `waitForPosition`: the positions of the program for scripts.

use std::time::Duration;

use bine_script::{HostCall, HostError, HostModule, Value};

use super::call_state::CallState;
use crate::position::{InvalidPosition, Position};

/// The module `bine:internal/positions`.
pub(super) const WORDS: &str = include_str!("words/positions.js");

/// The functions of [`WORDS`].
///
/// | name | arguments | result |
/// |---|---|---|
/// | `current` | | the text of a position |
/// | `wait` | text of a position, milliseconds | a promise of `{ value }` or a failure |
pub(super) fn host_module() -> HostModule {
    HostModule::new("bine:internal/positions-host")
        .function("current", |call| {
            Ok(Value::Text(CallState::of(call)?.caller()?.positions().current().to_string()))
        })
        .async_function("wait", |call| {
            let (state, position, within) = (CallState::of(call)?, position(call)?, within(call)?);
            if state.is_changing() {
                return Err(HostError::Other(
                    "a transaction reads the tables of its begin and cannot wait: make the service async, wait, and change tables in `await change(() => ..)`".to_owned(),
                ));
            }
            let positions = state.caller()?.positions();
            Ok(async move {
                let waited = positions.wait_for(position, within).await;
                Ok(state.end_wait(waited.map_err(Into::into)))
            })
        })
}

fn position(call: &HostCall<'_, '_>) -> Result<Position, HostError> {
    let invalid = |error: InvalidPosition| {
        HostError::Type(format!("the argument of `waitForPosition` {error}"))
    };
    call.text(0)?.parse().map_err(invalid)
}

fn within(call: &HostCall<'_, '_>) -> Result<Duration, HostError> {
    Duration::try_from_secs_f64(call.number(1)? / 1000.0).map_err(|_| {
        HostError::Range("`timeout` is a number of milliseconds that is not negative".to_owned())
    })
}

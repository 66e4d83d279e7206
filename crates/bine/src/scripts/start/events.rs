//! The events that a scheduler's script receives: requests that arrive, start and end.

use std::time::{Duration, Instant};

use bine_script::Value;
use bine_server::Incoming;

/// A request as a scheduler sees it.
#[derive(Clone, Debug)]
pub(super) struct RequestFacts {
    method: &'static str,
    path: String,
    /// The name of the page or service, as in the access log.
    handler: &'static str,
    /// The network address of the client.
    address: Option<String>,
    pub(super) arrived: Instant,
}

impl RequestFacts {
    pub(super) fn of(request: &Incoming<'_>, handler: &'static str) -> Self {
        Self {
            method: request.head.method().as_str(),
            path: request.head.path().into_owned(),
            handler,
            address: request.peer.ip().map(|address| address.to_string()),
            arrived: Instant::now(),
        }
    }

    #[cfg(test)]
    pub(super) fn at(path: &str) -> Self {
        let (path, arrived) = (path.to_owned(), Instant::now());
        Self { method: "GET", path, handler: "test", address: None, arrived }
    }
}

/// Something that has happened since the last turn of the script.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum SchedulerEvent {
    /// A request has arrived: the policy may reject it.
    Arrived(u64),
    /// The server has started a request without the policy.
    Started(u64),
    /// A request has ended, or its client waits no longer.
    Ended(u64),
    /// All that the script knows is out of date.
    Reset,
    /// A request waits that an earlier instance has admitted.
    Known(u64),
}

impl SchedulerEvent {
    /// The event for the words. `None`: the request is unknown by now.
    pub(super) fn value<'f>(
        self,
        facts: impl FnOnce(u64) -> Option<&'f RequestFacts>,
        now: Instant,
    ) -> Option<Value> {
        let numbers = |kind: f64, id: u64| vec![Value::Number(kind), Value::Number(id as f64)];
        let mut event = match self {
            Self::Arrived(id) => numbers(0.0, id),
            Self::Started(id) => numbers(1.0, id),
            Self::Ended(id) => numbers(2.0, id),
            Self::Reset => numbers(3.0, 0),
            Self::Known(id) => numbers(4.0, id),
        };
        if let Self::Arrived(id) | Self::Known(id) = self {
            let RequestFacts { method, path, handler, address, arrived } = facts(id)?;
            let age: Duration = now.saturating_duration_since(*arrived);
            event.extend([
                Value::from(*method),
                Value::from(path.as_str()),
                Value::from(*handler),
                address.as_deref().map_or(Value::Null, Value::from),
                Value::Number(age.as_secs_f64() * 1000.0),
            ]);
        }
        Some(Value::Array(event))
    }
}

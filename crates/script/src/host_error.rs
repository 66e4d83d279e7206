//! Errors that the host throws into a script.

use std::fmt;
use std::future::Future;
use std::pin::Pin;

use rquickjs::{Ctx, Exception};

use crate::error::ScriptError;
use crate::quickjs::Thrown;
use crate::value::Value;

/// The future of an asynchronous host function.
pub(crate) type HostFuture = Pin<Box<dyn Future<Output = Result<Value, HostError>>>>;

/// An error that a host function throws into the script.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HostError {
    /// A `TypeError`: an argument does not fit.
    Type(String),
    /// A `TypeError`: the value is a promise, which must be awaited before it can pass.
    Promise(String),
    /// A `RangeError`: a value or a number of things is beyond a limit.
    Range(String),
    /// An `Error`.
    Other(String),
    /// The exception of a script function that the host function has called. It is thrown again,
    /// unless the host function handles it.
    Script(Box<ScriptError>),
}

pub(crate) fn throw_type(ctx: &Ctx<'_>, message: &str) -> Thrown {
    Exception::throw_type(ctx, message);
    Thrown
}

impl fmt::Display for HostError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Type(message)
            | Self::Promise(message)
            | Self::Range(message)
            | Self::Other(message) => out.write_str(message),
            Self::Script(error) => error.fmt(out),
        }
    }
}

impl std::error::Error for HostError {}

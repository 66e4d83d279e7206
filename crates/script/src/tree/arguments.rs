//! The arguments of the functions of trees, and why a function fails.

use rquickjs::{Ctx, Function, Value};

use super::Trees;
use super::object::TreeObject;
use crate::host_error::{HostError, throw_type};
use crate::quickjs::{self, Arguments, Kind, Thrown};
use crate::template::Refused;

/// A function of trees.
pub(crate) type Native = for<'js> fn(&Trees, &Arguments<'_, 'js>) -> Result<Value<'js>, Failure>;

/// Why a function of trees fails.
pub(crate) enum Failure {
    /// A `TypeError` with this message.
    Misuse(String),
    /// An exception is pending.
    Thrown,
}

impl Failure {
    pub(super) const fn misuse(message: String) -> Self {
        Self::Misuse(message)
    }

    /// The error of the crate `html`, in its words.
    pub(super) fn of(error: impl std::error::Error) -> Self {
        Self::Misuse(error.to_string())
    }

    /// Throws the failure.
    pub(crate) fn throw(self, ctx: &Ctx<'_>) -> Thrown {
        match self {
            Self::Misuse(message) => throw_type(ctx, &message),
            Self::Thrown => Thrown,
        }
    }
}

impl From<Refused> for Failure {
    fn from(refused: Refused) -> Self {
        if refused.0.is_empty() { Self::Thrown } else { Self::Misuse(refused.0) }
    }
}

impl From<HostError> for Failure {
    fn from(error: HostError) -> Self {
        Self::Misuse(error.to_string())
    }
}

impl From<Thrown> for Failure {
    fn from(_: Thrown) -> Self {
        Self::Thrown
    }
}

/// The tree whose method the script calls.
pub(super) fn tree_argument<'v>(
    trees: &Trees,
    value: &'v Value<'_>,
) -> Result<&'v TreeObject, Failure> {
    trees.classes().tree.read(value).ok_or_else(|| {
        Failure::misuse("this is a method of trees: `tree(<p>..</p>)` makes one".to_owned())
    })
}

/// An argument that must be text; `usage` is the error message.
pub(super) fn text_argument(
    value: &Value<'_>,
    usage: impl FnOnce() -> String,
) -> Result<String, Failure> {
    quickjs::with_text(value, str::to_owned).ok_or_else(|| Failure::misuse(usage()))
}

/// An argument that must be a function; `usage` is the error message.
pub(super) fn function_argument<'js>(
    value: &Value<'js>,
    usage: impl FnOnce() -> String,
) -> Result<Function<'js>, Failure> {
    let function = match quickjs::kind(value) {
        Kind::Function => value.clone().into_function(),
        _ => None,
    };
    function.ok_or_else(|| Failure::misuse(usage()))
}

/// Text as a value of the engine.
pub(super) fn new_text<'js>(ctx: &Ctx<'js>, text: &str) -> Result<Value<'js>, Failure> {
    let text = rquickjs::String::from_str(ctx.clone(), text).map_err(|_| Failure::Thrown)?;
    Ok(text.into_value())
}

//! The shapes of the types that services take and return, for descriptions of a service in a
//! different language.
//!
//! A type shows its shape by the calls that its `Deserialize` makes: [`tracer`] is a deserializer that
//! records them. So a shape follows the attributes of serde, and needs no other trait.

#[cfg(any(feature = "browser", feature = "script"))]
mod tracer;

use std::marker::PhantomData;
#[cfg(any(feature = "browser", feature = "script"))]
use std::panic::{AssertUnwindSafe, catch_unwind};

use serde::Deserialize;
use serde::de::DeserializeOwned;

#[cfg(any(feature = "browser", feature = "script"))]
use crate::panics;

/// The JSON form of a value of a type.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub enum TypeShape {
    /// It depends on the value, or the type does not show it.
    #[default]
    Unknown,
    /// `null`.
    Nothing,
    /// `true` or `false`.
    Boolean,
    /// A number that JSON has as a number always.
    Number,
    /// A whole number that is a text if it is too large for a number of JavaScript.
    LargeInteger,
    /// A text.
    Text,
    /// A value, or `null`.
    Optional(Box<TypeShape>),
    /// Any number of values of one shape.
    List(Box<TypeShape>),
    /// These values in this order.
    Tuple(Vec<TypeShape>),
    /// An object with any keys.
    Map(Box<TypeShape>),
    /// An object with these keys.
    Record(Vec<RecordField>),
    /// One of several.
    Choice(Vec<ChoiceVariant>),
}

/// A field of a [`TypeShape::Record`].
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RecordField {
    /// The key.
    pub name: &'static str,
    /// Whether it may be absent.
    pub may_be_absent: bool,
    /// The shape of the value.
    pub shape: TypeShape,
}

/// A variant of a [`TypeShape::Choice`].
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ChoiceVariant {
    /// The word of the variant.
    pub word: &'static str,
    /// The content, which makes the value an object with the word as its key; `None`: the value is the
    /// word.
    pub content: Option<TypeShape>,
}

/// The shape of an argument.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct ArgumentShape {
    /// Whether a call may omit it.
    pub(crate) may_be_absent: bool,
    pub(crate) shape: TypeShape,
}

/// The shapes of a service.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct ServiceShape {
    /// The arguments in their order.
    pub(crate) arguments: Vec<ArgumentShape>,
    pub(crate) answer: TypeShape,
}

impl ArgumentShape {
    /// The shape of an argument of this type.
    pub(super) fn of<T: DeserializeOwned>() -> Self {
        #[cfg(any(feature = "browser", feature = "script"))]
        let may_be_absent =
            unless_it_panics(|| T::deserialize(super::field::Missing).is_ok()).unwrap_or_default();
        #[cfg(not(any(feature = "browser", feature = "script")))]
        let may_be_absent = false;
        Self { may_be_absent, shape: shape_of::<T>() }
    }
}

/// The shape of a type.
#[cfg_attr(
    not(any(feature = "browser", feature = "script")),
    expect(
        clippy::extra_unused_type_parameters,
        reason = "only scripts and editors ask for shapes"
    )
)]
pub(super) fn shape_of<T: Deserialize<'static>>() -> TypeShape {
    #[cfg(any(feature = "browser", feature = "script"))]
    return unless_it_panics(tracer::trace::<T>).unwrap_or_default();
    // No part of the program asks for it.
    #[cfg(not(any(feature = "browser", feature = "script")))]
    TypeShape::Unknown
}

/// The result of code that calls the `Deserialize` of a program's type with unusual values.
#[cfg(any(feature = "browser", feature = "script"))]
fn unless_it_panics<R>(run: impl FnOnce() -> R) -> Option<R> {
    let result = catch_unwind(AssertUnwindSafe(run)).ok();
    if result.is_none() {
        // The log has the message, and a later panic has its own.
        drop(panics::take_last_message());
    }
    result
}

/// The answer of a service, whose shape is known if serde can read it.
///
/// The macro calls `describe` of a reference to it. The compiler prefers [`DescribedAnswer`], which needs
/// no further reference, and takes [`OpaqueAnswer`] for a type that serde cannot read.
#[derive(Debug)]
pub struct AnswerProbe<T>(PhantomData<fn() -> T>);

impl<T> AnswerProbe<T> {
    /// A probe of the type.
    #[expect(clippy::new_without_default, reason = "only the macro makes one")]
    pub const fn new() -> Self {
        Self(PhantomData)
    }
}

/// The shape of an answer that serde can read.
pub trait DescribedAnswer {
    /// The shape.
    fn describe(&self) -> TypeShape;
}

impl<T: Deserialize<'static>> DescribedAnswer for AnswerProbe<T> {
    fn describe(&self) -> TypeShape {
        shape_of::<T>()
    }
}

/// The shape of any other answer.
pub trait OpaqueAnswer {
    /// [`TypeShape::Unknown`].
    fn describe(&self) -> TypeShape;
}

impl<T> OpaqueAnswer for &AnswerProbe<T> {
    fn describe(&self) -> TypeShape {
        TypeShape::Unknown
    }
}

//! The engine's C interface: the only module with `unsafe` code.

mod allocator;
mod callback;
mod markup;
mod raw;

pub(crate) use allocator::{LimitedAllocator, Memory};
pub(crate) use callback::{Arguments, Callback, Callbacks, stack_of};
pub(crate) use markup::MarkupClass;
pub(crate) use raw::{
    Kind, Property, Thrown, append, bytes_of, class_id, define, element, fill_bytes, identity,
    kind, length, new_bytes, properties, property, with_text,
};

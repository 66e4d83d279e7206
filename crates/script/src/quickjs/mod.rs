//! The engine's C interface: the only module with `unsafe` code.

mod allocator;
mod callback;
mod markup;
mod object;
mod raw;
mod record;

pub(crate) use allocator::{LimitedAllocator, Memory};
pub(crate) use callback::{Arguments, Callback, Callbacks, stack_of};
pub(crate) use markup::MarkupClass;
pub(crate) use object::ObjectClass;
pub(crate) use raw::{
    Kind, Property, Thrown, bytes_of, class_id, define, element, fill_bytes, identity, is_object,
    kind, length, new_array, new_bytes, properties, property, with_text,
};
pub(crate) use record::{RecordLayout, RecordWriter};

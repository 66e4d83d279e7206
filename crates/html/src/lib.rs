//! Decides what a page is: a value that writes itself once, and that cannot forget to escape.
//!
//! A [`Page`] is a closure over what it shows. Writing it puts markup into a [`Writer`]; whatever comes from
//! outside goes through [`Render`] in text and [`AttributeValue`] in attributes, and both escape. Where a browser
//! follows a value, [`AddressValue`] refuses what would run; where it runs one, [`CodeValue`] takes nothing from
//! outside at all. The one way around them is spelled [`raw`].
#![no_std]
#![deny(unsafe_code)]

extern crate alloc;

mod address;
mod attribute;
#[allow(
    unsafe_code,
    reason = "large pages spend their time on appending; the rest of the room is safe"
)]
mod buffer;
mod decimal;
mod escape;
mod hole;
mod page;
mod raw;
mod render;
mod writer;

pub use attribute::{AddressValue, Attribute, AttributeValue, CodeValue};
#[doc(hidden)]
pub use hole::{FillPage, FillText, RawText};
pub use page::{Markup, Page, page};
pub use raw::{Raw, raw};
pub use render::Render;
pub use writer::Writer;

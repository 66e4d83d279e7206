//! Decides what a page is: a value that writes itself once, and that cannot forget to escape.
//!
//! A [`Page`] is a closure over what it shows, and as [`Html`] it says what it contains. Writing it puts markup into a [`Writer`]; whatever comes from
//! outside goes through [`Render`] in text and [`AttributeValue`] in attributes, and both escape. Where a browser
//! follows a value, [`AddressValue`] refuses what would run; where it runs one, [`CodeValue`] takes nothing from
//! outside at all. The one way around them is spelled [`raw`].
//!
//! A [`Tree`] is a page that can also be looked into, changed and written in other ways: see [`tree`].
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
mod class;
mod content;
mod decimal;
mod escape;
mod frozen;
mod hole;
mod page;
mod raw;
mod region;
mod render;
mod show;
pub mod tree;
mod writer;
mod xml;

pub use attribute::{AddressValue, Attribute, AttributeValue, CodeValue};
pub use class::Class;
#[doc(hidden)]
pub use content::{Anywhere, Document, Model, Outermost, Piece, Stands, Whole};
pub use content::{Flow, Html, Parts, Phrasing};
pub use frozen::Frozen;
#[doc(hidden)]
pub use hole::{FillPage, FillValue, RawText};
pub use page::{Markup, Page, page};
pub use raw::{Raw, raw};
pub use region::{MADE_FOR, Region, RegionHash, RegionKey};
pub use render::Render;
pub use show::Show;
pub use tree::Tree;
pub use writer::Writer;

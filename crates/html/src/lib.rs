//! HTML pages as values that escape by default.
//!
//! A [`Page`] is a closure that writes markup into a [`Writer`], once. Its type implements [`Html`]
//! for the kinds of content that it contains. Values from outside the program pass through
//! [`Render`] in text and [`AttributeValue`] in attributes, and both escape. In attributes that
//! hold a URL, [`UrlValue`] replaces URLs that would run code. In attributes that hold code,
//! [`CodeValue`] accepts only trusted text. [`raw`] is the single way around these checks.
//!
//! A [`Tree`] is a page that a program can also search, change and serialize in other formats: see
//! [`tree`].
//!
//! ```
//! use bine_html::tree::{Element, Tree};
//!
//! let mut image = Element::new("img")?;
//! image.set_attribute("alt", "a hop & a vine")?;
//! assert_eq!(Tree::from(image).to_string(), "<img alt=\"a hop &amp; a vine\" />");
//! # Ok::<(), bine_html::tree::TreeError>(())
//! ```
#![no_std]
#![deny(unsafe_code)]

extern crate alloc;

mod attribute;
#[allow(
    unsafe_code,
    reason = "large pages spend their time on appending; the rest of the crate is safe"
)]
mod buffer;
mod class;
mod content;
mod decimal;
mod escape;
mod frozen;
mod hole;
mod one_of;
mod page;
mod raw;
mod region;
mod render;
mod show;
pub mod tree;
mod url_filter;
mod writer;
mod xml;

pub use attribute::{Attribute, AttributeValue, CodeValue, UrlValue};
pub use class::Class;
#[doc(hidden)]
pub use content::{ContentKind, Document, FitsIn, Fragment, RootContent, ScriptSupporting, Whole};
pub use content::{Flow, Html, Parts, Phrasing};
pub use frozen::Frozen;
#[doc(hidden)]
pub use hole::{FillPage, FillValue, RawText};
#[doc(hidden)]
pub use one_of::OneOf;
pub use page::{Markup, Page, page};
pub use raw::{Raw, raw};
pub use region::{Region, RegionHash, RegionKey, VERSION_MARK, VIEWER_MARK};
pub use render::Render;
pub use show::Show;
pub use tree::Tree;
pub use writer::Writer;

//! The names that HTML, SVG, MathML, ARIA and CSS define, and where each is allowed.
//!
//! One table contains the standards. `cargo xtask vocabulary` generates it, and the repository
//! includes it, so that a build needs no network and a change of the standards appears as a diff.
//! Lookups by name use binary search: [`element`], [`role`], [`property`] and similar functions.
//! Names are compared byte by byte as the standards write them. Words in attributes and properties
//! are compared without case. [`nearest`] finds a suggestion for an unknown name.
//!
//! ```
//! use bine_vocabulary as vocabulary;
//!
//! let li = vocabulary::element("li").expect("a standard element");
//! let p = vocabulary::element("p").expect("a standard element");
//! assert!(!p.content.allows(li, li.categories));
//! assert_eq!(li.parents.to_string(), "`menu`, `ol`, `template`, `ul`");
//!
//! let a = vocabulary::element("a").expect("a standard element");
//! assert!(a.attribute("herf").is_none());
//! assert_eq!(vocabulary::nearest("herf", a.attribute_names()), Some("href"));
//! ```
#![no_std]
#![forbid(unsafe_code)]

#[cfg(test)]
extern crate std;

mod aria;
mod attribute;
mod categories;
mod condition;
mod content;
mod context;
mod css;
mod date_time;
mod element;
mod foreign;
mod lookup;
mod nearest;
mod rule;
// The generator writes one line per item, however long, so that a change of the standards is
// readable as a diff.
#[rustfmt::skip]
mod table;
mod value;
mod words;

pub use aria::Role;
pub use attribute::{Attribute, Kind, input_value_kind};
pub use categories::Categories;
pub use condition::{Given, Sometimes, Value};
pub use content::{Content, Excluded};
pub use context::{Context, drops_line_feed, is_raw_text, is_void};
pub use css::{AtRule, Property};
pub use element::{Element, is_custom};
pub use foreign::{Foreign, MATHML, SVG};
pub use lookup::{
    at_rule, at_rules, colors, element, elements, event_handlers, functions, global_attributes,
    global_rules, is_css_wide_keyword, properties, property, pseudo_classes, pseudo_elements, role,
    roles, state, states,
};
pub use nearest::nearest;
pub use rule::Rule;
pub use words::Words;

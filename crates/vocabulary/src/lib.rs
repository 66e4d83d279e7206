//! Decides what names markup and style sheets may use, and where.
//!
//! One table holds what the standards say of HTML, SVG, MathML, ARIA and CSS; it is made by `cargo xtask vocabulary`
//! and committed, so that a build needs no network and a change of the standards is read as a diff. Over it lie
//! look-ups by name, each a search by halves: [`element`], [`role`], [`property`] and the others. Names are
//! compared byte by byte, as they are written in the standards; words of an attribute or a property ignore case.
//! What is not found is told with [`nearest`].
//!
//! ```
//! use bine_vocabulary as vocabulary;
//!
//! let li = vocabulary::element("li").expect("a name of the standard");
//! let p = vocabulary::element("p").expect("a name of the standard");
//! assert!(!p.content.admits(li, li.categories));
//! assert_eq!(li.parents.to_string(), "`menu`, `ol`, `template`, `ul`");
//!
//! let a = vocabulary::element("a").expect("a name of the standard");
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
mod content;
mod context;
mod css;
mod element;
mod foreign;
mod moment;
mod nearest;
mod rule;
// One line for each thing, however long, so that a change of the standards is read as a diff.
#[rustfmt::skip]
mod table;
mod words;

pub use aria::{Role, role, roles, state, states};
pub use attribute::{Attribute, Kind, event_handlers, global_attributes, input_value};
pub use categories::Categories;
pub use content::{Content, Excluded};
pub use context::{Context, drops_line_feed, is_raw_text, is_void};
pub use css::{
    AtRule, Property, at_rule, at_rules, colors, functions, is_wide, properties, property,
    pseudo_classes, pseudo_elements,
};
pub use element::{Element, Given, Sometimes, Value, element, elements, is_custom};
pub use foreign::{Foreign, MATHML, SVG};
pub use nearest::nearest;
pub use rule::{Rule, global_rules};
pub use words::Words;

//! Markup as a tree, and its check against the standards: the names of elements, attributes and
//! CSS, the values of attributes, and the nesting of elements.
//!
//! `html!` of Rust and the markup of TSX have different parsers and different code in their holes,
//! but one tree and one check, so that both languages report an error in the same words. An origin
//! is a number that the parser chooses, such as a byte offset; a [`Fault`] returns it.
//!
//! ```
//! use bine_markup::{Dialect, Element, Node, check};
//!
//! let origin = 7;
//! let (name, attributes, children) = ("buton".to_owned(), Vec::new(), Vec::new());
//! let has_more_attributes = false;
//! let element = Element { name, origin, has_more_attributes, attributes, children };
//! let markup: Node<()> = Node::Element(element);
//! let mut faults = Vec::new();
//! check(&[markup], Dialect::RUST, &mut faults);
//! assert_eq!(faults[0].origin, 7);
//! assert!(faults[0].message.starts_with("HTML has no element `<buton>`; did you mean `<button>`?"));
//! ```
#![forbid(unsafe_code)]

mod check;
pub mod css;
mod fault;
mod place;
mod tree;

pub use check::{Dialect, check};
pub use fault::Fault;
pub use place::{ContentKind, Hole, Place, foreign_root};
pub use tree::{Attribute, Branch, Element, Node, Value, has_bindings};

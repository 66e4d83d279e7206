//! Decides which names SVG and MathML have; where each may stand is not said.

use crate::{attribute, table};

/// A language that has its own elements within HTML. Its names are told apart by case.
#[derive(Clone, Copy, Debug)]
pub struct Foreign {
    /// The element that opens it: `svg`, `math`.
    pub root: &'static str,
    /// Its elements, in the order of their bytes.
    pub elements: &'static [&'static str],
    /// Its attributes, of whatever element, in the order of their bytes; `on..`, `aria-..` and `data-..` besides.
    pub attributes: &'static [&'static str],
}

/// What SVG 2 has, with the elements of filters, masks and animation.
pub static SVG: Foreign =
    Foreign { root: "svg", elements: &table::SVG_ELEMENTS, attributes: &table::SVG_ATTRIBUTES };

/// What MathML Core has.
pub static MATHML: Foreign = Foreign {
    root: "math",
    elements: &table::MATHML_ELEMENTS,
    attributes: &table::MATHML_ATTRIBUTES,
};

impl Foreign {
    /// Whether it has an element of this name.
    pub fn has_element(&self, name: &str) -> bool {
        self.elements.binary_search(&name).is_ok()
    }

    /// Whether an element of it may have an attribute of this name.
    pub fn has_attribute(&self, name: &str) -> bool {
        self.attributes.binary_search(&name).is_ok()
            || attribute::global(name).is_some_and(|global| {
                ["data-", "on", "aria-"].iter().any(|prefix| global.name.starts_with(prefix))
            })
    }
}

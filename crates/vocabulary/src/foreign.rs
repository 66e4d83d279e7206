//! SVG and MathML names. The module does not describe where each is allowed.

use crate::{lookup, table};

/// A language with its own elements inside HTML (foreign elements). Its names are case-sensitive.
#[derive(Clone, Copy, Debug)]
pub struct Foreign {
    /// Its root element: `svg`, `math`.
    pub root: &'static str,
    /// Its elements, sorted by bytes.
    pub elements: &'static [&'static str],
    /// The attributes of all elements, sorted by bytes, without `on..`, `aria-..` and `data-..`.
    pub attributes: &'static [&'static str],
}

/// SVG 2, with the elements of filters, masks and animation.
pub static SVG: Foreign =
    Foreign { root: "svg", elements: &table::SVG_ELEMENTS, attributes: &table::SVG_ATTRIBUTES };

/// MathML Core.
pub static MATHML: Foreign = Foreign {
    root: "math",
    elements: &table::MATHML_ELEMENTS,
    attributes: &table::MATHML_ATTRIBUTES,
};

impl Foreign {
    /// Returns whether it has an element with this name.
    pub fn has_element(&self, name: &str) -> bool {
        self.elements.binary_search(&name).is_ok()
    }

    /// Returns whether an attribute with this name exists on any element.
    pub fn has_attribute(&self, name: &str) -> bool {
        self.attributes.binary_search(&name).is_ok()
            || lookup::global(name).is_some_and(|global| {
                ["data-", "on", "aria-"].iter().any(|prefix| global.name.starts_with(prefix))
            })
    }
}

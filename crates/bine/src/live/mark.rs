//! Decides how it is known that a program has something that lives, wherever in it and its libraries that stands.

/// What a macro leaves for the linker where it writes something that a browser's script is for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Has {
    /// A region of a page.
    Region,
}

inventory::collect!(Has);

impl Has {
    /// Whether any was linked.
    pub(crate) fn any() -> bool {
        inventory::iter::<Self>.into_iter().next().is_some()
    }
}

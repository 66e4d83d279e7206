//! A page of one of two types, for functions with several `html!`.

use crate::frozen::Frozen;
use crate::page::Page;
use crate::tree::Builder;
use crate::writer::Writer;

/// A page of one of two types. `#[layout]` makes the values of a function variants of it.
#[derive(Debug)]
pub enum OneOf<A, B> {
    /// A value of the first type.
    First(A),
    /// A value of the second type, which may be another `OneOf`.
    Other(B),
}

impl<A: Page, B: Page> Page for OneOf<A, B> {
    fn write(self, writer: &mut Writer<'_>) {
        match self {
            Self::First(page) => page.write(writer),
            Self::Other(page) => page.write(writer),
        }
    }

    fn is_document() -> bool {
        A::is_document() && B::is_document()
    }

    fn is_this_document(&self) -> bool {
        match self {
            Self::First(page) => page.is_this_document(),
            Self::Other(page) => page.is_this_document(),
        }
    }

    fn is_whole(&self) -> bool {
        match self {
            Self::First(page) => page.is_whole(),
            Self::Other(page) => page.is_whole(),
        }
    }

    fn frozen(&self) -> Option<&Frozen> {
        match self {
            Self::First(page) => page.frozen(),
            Self::Other(page) => page.frozen(),
        }
    }

    fn graft(self, builder: &mut Builder) {
        match self {
            Self::First(page) => page.graft(builder),
            Self::Other(page) => page.graft(builder),
        }
    }
}

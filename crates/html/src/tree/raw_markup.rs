//! Decides which markup a tree takes as it is.

use alloc::borrow::Cow;

use crate::Raw;
use crate::raw::disarmed;

/// Markup in a tree, which is written as it is.
///
/// A program makes it of [`raw`](crate::raw) text, whose `data-on` handlers have no effect. Only markup in the program's
/// source has handlers.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RawMarkup(Cow<'static, str>);

impl RawMarkup {
    /// Markup of which nothing comes from outside the source but what was [written](crate::Render) by `raw`.
    pub(super) const fn of_source(markup: Cow<'static, str>) -> Self {
        Self(markup)
    }

    /// The markup as it will be written.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl<T: Into<Cow<'static, str>>> From<Raw<T>> for RawMarkup {
    fn from(markup: Raw<T>) -> Self {
        let markup = markup.0.into();
        match disarmed(&markup) {
            Cow::Borrowed(_) => Self(markup),
            Cow::Owned(disarmed) => Self(disarmed.into()),
        }
    }
}

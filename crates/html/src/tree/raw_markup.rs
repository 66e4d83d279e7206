//! [`RawMarkup`]: markup that a tree contains unchanged.

use alloc::borrow::Cow;

use crate::Raw;
use crate::raw::disarmed;

/// Markup in a tree, written unchanged.
///
/// A program creates it from [`raw`](crate::raw) text, whose `data-on` handlers are disabled. Only
/// markup in the program's source has handlers.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RawMarkup(Cow<'static, str>);

impl RawMarkup {
    /// Markup of the program's source, or output whose third-party markup was
    /// [written](crate::Render) through `raw`.
    pub(super) const fn of_source(markup: Cow<'static, str>) -> Self {
        Self(markup)
    }

    /// Markup that another writer of the program has written. The caller vouches that each value in it
    /// was escaped for its context, and that its quotes and elements are complete.
    pub fn trusted(markup: impl Into<Cow<'static, str>>) -> Self {
        Self(markup.into())
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

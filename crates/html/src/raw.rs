//! Decides how text enters a page unescaped: only under a name that a reader can search for.

use crate::Writer;
use crate::render::Render;

/// Text that is already markup, or that belongs inside `<script>` or `<style>`. It is written as it is.
///
/// In an attribute it is an address that is not looked at, or code; there it is escaped, as its quotes demand.
#[derive(Clone, Copy, Debug)]
pub struct Raw<T>(pub T);

/// Marks text as markup, to be written as it is. Whoever calls this answers for every byte of it.
pub fn raw<T: AsRef<str>>(text: T) -> Raw<T> {
    Raw(text)
}

impl<T: AsRef<str>> Render for Raw<T> {
    #[inline]
    fn render(&self, writer: &mut Writer<'_>) {
        writer.unescaped(self.0.as_ref());
    }
}

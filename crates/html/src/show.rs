//! [`Show`]: how a program's own type becomes markup.

use alloc::boxed::Box;
use alloc::rc::Rc;
use alloc::sync::Arc;

use crate::content::{ContentKind, Flow, Html};

/// Defines the markup of a type. A hole `{message}` then writes that markup and borrows the value.
///
/// `Show` alone is for a type that becomes flow content, `Show<Phrasing>` for content of a line of
/// text and `Show<Parts>` for items of a list. A type that is only text implements
/// [`Render`](crate::Render) instead. Implement only one of them per place: if two apply, the
/// compiler reports `type annotations needed`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` does not implement `Show<{Content}>`",
    note = "`impl Show<{Content}> for {Self} {{ fn show(&self) -> impl Html<{Content}> {{ html!(..) }} }}`"
)]
pub trait Show<Content: ContentKind = Flow> {
    /// The value as markup.
    fn show(&self) -> impl Html<Content>;
}

macro_rules! show_by_reference {
    ($($pointer:ty)*) => {$(
        impl<T: Show<Content> + ?Sized, Content: ContentKind> Show<Content> for $pointer {
            fn show(&self) -> impl Html<Content> {
                (**self).show()
            }
        }
    )*};
}

show_by_reference!(&T Box<T> Rc<T> Arc<T>);

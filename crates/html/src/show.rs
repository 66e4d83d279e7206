//! Decides how a type of the program's own becomes markup wherever it is named.

use alloc::boxed::Box;
use alloc::rc::Rc;
use alloc::sync::Arc;

use crate::content::{Flow, Html, Model};

/// Says how a type is shown: `{message}` in a hole then shows it, and only borrows it.
///
/// `Show` alone is for a type that becomes flow content, `Show<Phrasing>` and `Show<Parts>` for one that stands in a line
/// of text or in a list. A type that is text and no more has [`Render`](crate::Render) instead. Where two of these would do,
/// the compiler asks which is meant (`type annotations needed`): a type has one of them for each place.
#[diagnostic::on_unimplemented(
    message = "`{Self}` does not say how it is shown as `Html<{Content}>`",
    note = "`impl Show<{Content}> for {Self} {{ fn show(&self) -> impl Html<{Content}> {{ html!(..) }} }}`"
)]
pub trait Show<Content: Model = Flow> {
    /// The value as markup.
    fn show(&self) -> impl Html<Content>;
}

macro_rules! show_by_reference {
    ($($pointer:ty)*) => {$(
        impl<T: Show<Content> + ?Sized, Content: Model> Show<Content> for $pointer {
            fn show(&self) -> impl Html<Content> {
                (**self).show()
            }
        }
    )*};
}

show_by_reference!(&T Box<T> Rc<T> Arc<T>);

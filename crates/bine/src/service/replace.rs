//! Decides how an action or a service takes whoever called it to another page.

use bine_http::{Finished, Status};

use super::answer::Answer;
use crate::error::Error;
use crate::frame_address::with_frame_of;
use crate::origin::is_path;
use crate::respond::{Manner, Replying, Respond, Response};

/// Another page in the place of the one that called: `Replace::with("/forum/hops")`, as the answer of an action or a
/// service.
///
/// With script the document becomes that page without a reload, and the address with it; without, it is a redirect (303).
/// Back comes back, and a reload stays. The [frame](crate::Frame) of the page before is that of the next.
///
/// ```
/// use bine::prelude::*;
///
/// fn to_forum(forum: &str) -> impl Html<Flow> {
///     html! {
///         <form method="post" action={action!([forum: Text = forum.into()] |_call| {
///             Replace::with(format!("/forum/{forum}"))
///         })}>
///             <button>{forum}</button>
///         </form>
///     }
/// }
/// # let _ = to_forum("hops");
/// ```
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Replace(String);

/// The kind of an [`Answer`] that is another page's address.
#[derive(Debug)]
pub enum Replaced {}

impl Replace {
    /// The page at this path of the program, perhaps with a query. An address that leads anywhere else is a mistake (500),
    /// since whoever calls may have written it: [`Response::see_other`] leads wherever the program wants.
    pub fn with(address: impl Into<String>) -> Self {
        Self(address.into())
    }
}

impl Answer<Replaced> for Replace {
    fn answer(self, manner: &Manner, to: &mut Replying<'_, '_>) -> Finished {
        if !is_path(&self.0) {
            let told = format!(
                "`Replace::with({:?})` leads elsewhere: a path begins with one `/`; for another site answer `Response::see_other(..)`",
                self.0
            );
            return to.fail(&Error::hidden(Status::INTERNAL_SERVER_ERROR, told), manner);
        }
        let page = manner.page.as_deref().unwrap_or_default();
        Response::see_other(with_frame_of(page, &self.0)).respond(to)
    }
}

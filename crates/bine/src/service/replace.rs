//! The `Replace` answer: navigates the caller to a new page.

use bine_http::{Finished, Status};

use super::answer::{ServiceOutput, for_browsers_only};
use crate::error::Error;
use crate::frame_address::with_frame_of;
use crate::origin::is_path;
use crate::respond::{Respond, Response, ResponsePreference, ResponseWriter};
use crate::wire::Value;

/// Navigates to another page in place of the calling one: `Replace::with("/forum/hops")`, as the
/// answer of an action or a service.
///
/// With script, the document changes to that page without a reload, and so does the address;
/// without script, it is a redirect (303). Back and reload work as usual. The next page has the
/// same [frame](crate::Frame) as the previous one.
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

/// The kind of a [`ServiceOutput`] that is a page's address.
#[derive(Debug)]
pub enum ReplaceOutput {}

impl Replace {
    /// The page at this path of the program, with or without a query. Any other address is an error
    /// (500), since the caller may have supplied it: [`Response::see_other`] redirects to any
    /// address.
    pub fn with(address: impl Into<String>) -> Self {
        Self(address.into())
    }
}

impl ServiceOutput<ReplaceOutput> for Replace {
    fn answer(self, preference: &ResponsePreference, to: &mut ResponseWriter<'_, '_>) -> Finished {
        if !is_path(&self.0) {
            let told = format!(
                "`Replace::with({:?})` leads elsewhere: a path begins with one `/`; for another site answer `Response::see_other(..)`",
                self.0
            );
            return to.fail(&Error::hidden(Status::INTERNAL_SERVER_ERROR, told), preference);
        }
        let page = preference.page.as_deref().unwrap_or_default();
        Response::see_other(with_frame_of(page, &self.0)).respond(to)
    }

    fn into_json(self) -> Result<Value, Error> {
        Err(for_browsers_only())
    }
}

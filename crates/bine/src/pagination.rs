//! Pages of rows on web pages: which one a request asks for, and links to the others.

use bine_html::{Flow, Html};
use bine_store::{Cursor, RowPage, Turn};

use crate::arguments::{FromRequest, FromText, Query, Rejection, RequestParts};
use crate::percent_encoding::percent_encode;
use crate::visitor_message::{MessageText, VisitorMessage};

/// Links from one [page of rows](RowPage) to the previous and the next one.
///
/// ```
/// use bine::prelude::*;
/// use bine::store::{PageLinks, Turn};
///
/// #[derive(Table)]
/// struct Note {
///     id: Id<Note>,
///     text: Text,
/// }
///
/// #[page("/notes")]
/// async fn notes(store: Store, turn: Turn) -> Result<impl Page, Error> {
///     let page = store.read().select::<Note>().rev().page(&turn, 20)?;
///     let links = PageLinks::new(&page).nav("Newer", "Older");
///     Ok(html!(<ul>{for note in page.rows { <li>{note.text}</li> }}</ul> {links}))
/// }
/// # let _ = App::new().table::<Note>().page(notes);
/// ```
///
/// The links consist of a query alone, so they lead to the path of the page that shows them.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PageLinks {
    /// The address of the previous page, such as `?before=..`.
    pub previous: Option<String>,
    /// The address of the next page, such as `?after=..`.
    pub next: Option<String>,
}

impl PageLinks {
    /// The links to the pages before and after `page`, with the arguments of a [`Turn`].
    pub fn new<T>(page: &RowPage<T>) -> Self {
        let address = |name: &str, cursor: &Option<Cursor>| {
            cursor.as_ref().map(|cursor| format!("?{name}={cursor}"))
        };
        Self { previous: address("before", &page.previous), next: address("after", &page.next) }
    }

    /// Adds another argument of the page to both links.
    #[must_use]
    pub fn keep(mut self, name: &str, value: &str) -> Self {
        let argument = format!("&{}={}", percent_encode(name), percent_encode(value));
        for address in [&mut self.previous, &mut self.next].into_iter().flatten() {
            address.push_str(&argument);
        }
        self
    }

    /// Renders the links as `<a href="?after=..">` in a `<nav>`, with these labels; a page that does
    /// not exist has no link.
    pub fn nav(self, previous: &str, next: &str) -> impl Html<Flow> + use<> {
        let Self { previous: before, next: after } = self;
        let (previous, next) = (previous.to_owned(), next.to_owned());
        crate::html! {
            <nav class="pages">
                {if let Some(address) = before { <a rel="prev" href={address}>{previous}</a>" " }}
                {if let Some(address) = after { <a rel="next" href={address}>{next}</a> }}
            </nav>
        }
    }
}

impl FromText for Cursor {
    fn from_text(text: &str) -> Result<Self, MessageText> {
        text.parse().map_err(|_| VisitorMessage::Cursor {}.into())
    }
}

/// The arguments `after` and `before` of the query, both optional.
impl FromRequest for Turn {
    fn from_request(request: &mut RequestParts<'_>, _: &'static str) -> Result<Self, Rejection> {
        let Query(after) = Query::from_request(request, "after")?;
        let Query(before) = Query::from_request(request, "before")?;
        Ok(Self::new(after, before))
    }
}

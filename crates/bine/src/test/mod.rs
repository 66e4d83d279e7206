//! In-process tests of a program without a browser: a server, clients with cookies, and tabs.
//!
//! ```
//! use bine::prelude::*;
//! use bine::test::Site;
//!
//! #[derive(Table)]
//! struct Note {
//!     id: Id<Note>,
//!     text: Text,
//! }
//!
//! #[page("/")]
//! async fn notes(store: Store) -> impl Page {
//!     let notes = store.read().newest::<Note>(20);
//!     html! {
//!         <form method="post" action="/">
//!             <input name="text" aria-label="A note" required> <button>Keep</button>
//!         </form>
//!         <ul>{for note in notes { <li>{note.text}</li> }}</ul>
//!     }
//! }
//!
//! #[page(POST "/")]
//! async fn keep(store: Store, text: Form<Text>) -> Result<Response, Error> {
//!     store.insert(Note { id: Id::unassigned(), text: text.0 }).await?;
//!     Ok(Response::see_other("/"))
//! }
//!
//! fn app() -> App {
//!     App::new().table::<Note>().page(notes).page(keep)
//! }
//!
//! let site = Site::new(app());
//! let mut tab = site.visit("/");
//! tab.submit("form", [("text", "buy hops")]);
//! tab.expect("li", "buy hops");
//! ```
//!
//! The feature `test` enables this module; put it into the dev-dependencies of a program. A failed
//! check panics with a message that has the expectation, the elements that are close to it, and the
//! text of the page. The guide has a chapter on tests.

mod address;
mod client;
mod cookies;
mod document;
mod exchange;
mod failure;
mod form;
mod page;
mod regions;
mod site;
mod stream;
mod tab;
mod values;

pub use crate::accounts::keep_hash_priority;
pub use client::{Client, RequestBuilder};
pub use exchange::Reply;
pub use failure::Expectation;
pub use site::Site;
pub use tab::Tab;

pub use bine_http::Method;

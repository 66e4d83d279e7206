//! Decides how a program is tested without a browser: in the test's own process, by visiting it as people do.
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
//!     store.insert(Note { id: Id::new(), text: text.0 }).await?;
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
//! It is there with the feature `test`, which belongs into a program's dev-dependencies. What goes wrong is a panic
//! that says what was looked for, what is there, and how the page reads. The guide has a chapter on it.

mod address;
mod cookies;
mod document;
mod exchange;
mod form;
mod page;
mod regions;
mod site;
mod stream;
mod tab;
mod told;
mod values;
mod visitor;

pub use exchange::Reply;
pub use site::Site;
pub use tab::Tab;
pub use told::Wanted;
pub use visitor::{Fetch, Visitor};

pub use bine_http::Method;

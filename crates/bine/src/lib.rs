//! Bine: one small, very fast server for live web applications. This is the front door: everything
//! that a program needs to say what it serves.
//!
//! ```no_run
//! use bine::prelude::*;
//!
//! #[page("/hello")]
//! async fn hello(name: Query<Text>) -> impl Page {
//!     html!(<h1>Hello {name}</h1>)
//! }
//!
//! fn main() -> Exit {
//!     App::new().page(hello).run()
//! }
//! ```

#[cfg(feature = "acme")]
mod acme;
#[cfg(not(feature = "acme"))]
#[path = "acme/absent.rs"]
mod acme;
mod app;
mod arguments;
mod asset;
mod configuration;
mod control;
mod error;
mod exit;
mod filter;
mod look;
mod methods;
mod panics;
mod pattern;
pub mod prelude;
mod program;
mod reload;
mod request;
mod respond;
mod route;
mod router;
mod secrecy;
mod sites;
pub mod step;
pub mod store;
mod stream;
mod text;

pub use app::App;
pub use arguments::{
    Argument, Arguments, Cookie, Form, FromText, Header, Json, Needs, Path, Query, Rejection,
    State, Upload,
};
pub use bine_html::{
    AddressValue, Attribute, AttributeValue, CodeValue, Flow, Html, Page, Parts, Phrasing, Raw,
    Render, Show, Writer, raw,
};
pub use bine_http::{Date, Method, Status};
pub use bine_macros::page;
pub use bine_pipeline::{Gone, blocking, overdue_calls, timeout};
pub use control::tell;
pub use error::Error;
pub use exit::Exit;
pub use filter::{Filter, Seen, Verdict};
pub use look::{Content, ErrorFunction, Failure, LayoutFunction};
pub use request::{Body, Request};
pub use respond::{Dress, Dressed, Fallible, Outcome, Respond, Response, Sure};
pub use stream::Sender;
pub use text::Text;

/// What the pipeline offers to programs that bring their own scheduler or look at a peer.
pub use bine_pipeline::{Peer, Who, scheduler};

/// Makes a page of markup that looks like the HTML it becomes.
///
/// ```
/// use bine::{Page, html};
///
/// fn greeting(name: &str) -> impl Page {
///     html! {
///         <p class="greeting">
///             Hello {name}{if name.is_empty() { nobody }}!
///         </p>
///     }
/// }
/// # let mut out = Vec::new();
/// # greeting("a<b").write(&mut bine::Writer::new(&mut out));
/// # assert_eq!(out, br#"<p class="greeting">Hello a&lt;b!</p>"#);
/// ```
///
/// Elements, attributes and text stand as in HTML; text that Rust cannot read as words, like
/// `"it's"`, stands in quotes. `{expression}` shows a value, escaped. `{for p in e { .. }}`,
/// `{if c { .. } else { .. }}` and `{match e { p => { .. } }}` hold markup in their braces. What a
/// page shows moves into it; what must be awaited is bound to a name before.
///
/// In `href`, `src` and their like an address that a browser would run (`javascript:`, `data:`) is replaced by
/// `about:invalid#refused`. Event handlers, `style`, `srcdoc` and the insides of `<script>` and `<style>` take only
/// [`raw`] text.
#[macro_export]
macro_rules! html {
    ($($markup:tt)*) => { $crate::__macros::__html!([$crate] $($markup)*) };
}

#[doc(hidden)]
pub use bine_macros as __macros;

/// What macros write; no program names it.
#[doc(hidden)]
pub mod __private {
    pub use bine_html as html;

    pub use crate::arguments::{Argument, Arguments, check_form};
    pub use crate::methods::Methods;
    pub use crate::route::Route;
}

/// The guide's examples are compiled, and run where they can be, with the documentation tests.
#[cfg(doctest)]
mod guide {
    #[doc = include_str!("../../../docs/guide/start.md")]
    struct Start;
    #[doc = include_str!("../../../docs/guide/pages.md")]
    struct Pages;
    #[doc = include_str!("../../../docs/guide/markup.md")]
    struct Markup;
}

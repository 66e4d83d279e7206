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
mod acme_choices;
mod app;
mod app_state;
mod arguments;
mod asset;
mod base64;
mod blocking;
pub mod channels;
mod choose;
mod configuration;
mod control;
mod error;
mod exit;
mod filter;
mod findings;
mod frame_address;
mod from_text;
mod gate;
mod health;
mod hosts;
mod inert;
mod linked;
mod links;
mod listing;
pub mod live;
mod look;
mod methods;
mod metrics;
mod nearest;
mod origin;
mod panics;
mod pattern;
pub mod prelude;
mod problem;
mod program;
mod region_key;
mod rejection;
mod reload;
pub mod remote;
mod repeated;
mod request;
mod request_session;
mod respond;
mod route;
mod router;
mod secrecy;
mod security;
mod self_signed;
mod service;
mod sessions;
mod signal;
mod signal_core;
mod sites;
pub mod step;
pub mod store;
mod stream;
mod style;
mod tables;
mod taste;
#[cfg(feature = "test")]
pub mod test;
mod text;
mod trace;
mod user_name;
mod websocket;
mod wire;
mod writing;

pub use app::App;
pub use arguments::{
    Argument, Arguments, Cookie, Form, FromText, Header, Json, Needs, Path, Query, Rejection,
    State, Upload,
};
pub use bine_html::{
    Attribute, AttributeValue, Class, CodeValue, Flow, Frozen, Html, Page, Parts, Phrasing, Raw,
    Render, Show, Tree, UrlValue, Writer, raw, tree,
};
pub use bine_http::{Date, Method, Status};
pub use bine_macros::{page, service};
pub use bine_server::{Gone, overdue_calls, timeout};
pub use blocking::blocking;
pub use choose::{Label, Marked, Words, choose};
pub use control::{ask_running, tell};
pub use error::Error;
pub use exit::Exit;
pub use filter::{Filter, Seen, Verdict};
pub use live::{Events, Here};
pub use look::{Content, ErrorFunction, Failure, LayoutFunction};
pub use remote::{Remote, remote};
pub use request::{Body, Request};
pub use respond::{Dress, Dressed, Fallible, Outcome, Respond, Response, Sure};
pub use security::{Frames, SecurityHeaders};
pub use service::{
    Action, Answer, Call, Callable, Caller, Done, Replace, Replaced, Rule, Service, Shown, Taken,
    Valued,
};
pub use sessions::{Frame, Keeping, Open, Saving, Session, Sessions, User};
pub use signal::Signal;
pub use stream::Sender;
pub use text::Text;
pub use user_name::{BadUserName, UserName};
pub use websocket::{CloseCode, Message, Say, Upgrade, WebSocket};
pub use wire::Bytes;

/// What the server offers to programs that bring their own scheduler or look at a peer.
pub use bine_server::{Peer, scheduler};

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
/// What it makes is a [`Page`], and unless it is a whole one also [`Html`] of what stands outermost in it, which says
/// where it may stand.
///
/// In `href`, `src` and their like an address that a browser would run (`javascript:`, `data:`) is replaced by
/// `about:invalid#refused`. Event handlers, `style`, `srcdoc` and the insides of `<script>` and `<style>` take only
/// [`raw`] text.
#[macro_export]
macro_rules! html {
    ($($markup:tt)*) => { $crate::__macros::__html!([$crate] $($markup)*) };
}

/// Adds to the program's style sheet, checked while compiling.
///
/// ```
/// use bine::{Page, css, html};
///
/// css! {
///     mod style;
///
///     .card { padding: 1rem; border-radius: 4px; }
///     .card:hover { background: whitesmoke; }
///     .big { font-size: 1.5 em; }
/// }
///
/// fn card(title: &str, is_big: bool) -> impl Page {
///     html!(<h2 class={[Some(style::card), is_big.then_some(style::big)]}>{title}</h2>)
/// }
/// ```
///
/// With `mod name;` at its head (or `pub mod name;`) the classes are its own: they get names that no other sheet has,
/// and are constants of the module. Without, all names are global. `:global(.name)` is a class of somebody else's.
///
/// All sheets of a program are one, which is served under an address of its own and named in the head of each page.
/// What Rust cannot read as words stands in a string: `css!("a { color: #12e }")`, or any statement of a sheet.
#[macro_export]
macro_rules! css {
    ($($sheet:tt)*) => { $crate::__macros::__css! { [$crate] $($sheet)* } };
}

/// Adds a file to the program's style sheet, checked while compiling: `css_file!("style.css");`.
///
/// Its path is relative to that of the source file, as with `include_str!`. Its names are global, unless a module
/// stands before it: `css_file!(mod style; "card.css");`. See [`css!`].
#[macro_export]
macro_rules! css_file {
    ($($file:tt)*) => { $crate::__macros::__css_file! { [$crate] $($file)* } };
}

/// Makes an action of a page: what a form or a button does, written where that stands.
///
/// ```
/// use bine::prelude::*;
///
/// #[derive(Table)]
/// struct Message {
///     id: Id<Message>,
///     body: Text,
/// }
///
/// #[page("/")]
/// async fn board(store: Store) -> impl Page {
///     html! {
///         {for message in store.read().newest::<Message>(50) {
///             <form method="post" action={action!([id: Id<Message> = message.id] |call| call.remove(id))}>
///                 {message.body} <button>Remove</button>
///             </form>
///         }}
///         <form method="post" action={action!(|call, body: Text| call.insert(Message { id: Id::new(), body }))}>
///             <input name="body" aria-label="Message"> <button>Post</button>
///         </form>
///     }
/// }
/// # let _ = App::new().table::<Message>().page(board);
/// ```
///
/// It is a [service](macro@crate::service) without a name: a function whose first argument is the [`Call`](crate::Call),
/// a transaction of the program's tables. What it needs of the page stands in brackets before it, each with its type:
/// `[id: Id<Message>]` is the variable of that name, `[id: Id<Message> = message.id]` any value. Those are sealed in its
/// address, up to 4096 bytes of JSON, for the session of whoever gets the page: nobody else can read, change or use
/// them. What the form sends are its other arguments, each with its type. It sees nothing else of the page.
///
/// It returns what a service does. A form without script comes back to the page that it stands in.
///
/// An action is found again by what it says, in its module: after a restart, and in a program that was changed elsewhere.
/// `action!(name = "remove", [..] |..| ..)` is found by that name whatever it says. `who = "user"`, `who = "anyone"` or
/// `who = NAME`, beside the name, says for whom it is of those who have got its page, as it does of a
/// [`service`](macro@crate::service).
#[macro_export]
macro_rules! action {
    ($($action:tt)*) => { $crate::__macros::__action!([$crate] $($action)*) };
}

/// Makes a [`Tree`](crate::Tree) of the same markup as [`html!`](crate::html!): a page that can be looked into,
/// changed, kept and written in several ways.
///
/// ```
/// use bine::{Tree, tree};
///
/// fn menu(name: &str) -> Tree {
///     tree!(<nav><a href="/" class="home">Home</a> <a href={format_args!("/users/{name}")}>{name}</a></nav>)
/// }
///
/// let menu = menu("a & b");
/// assert_eq!(menu.text(), "Home a & b");
/// assert_eq!(
///     menu.to_string(),
///     r#"<nav><a href="/" class="home">Home</a> <a href="/users/a &amp; b">a &amp; b</a></nav>"#
/// );
/// ```
///
/// It is built at once, and what is constant in it only the first time. What stands in a hole is borrowed, but for
/// pages: a tree takes its place with all its nodes, any other page is written there as markup.
#[macro_export]
macro_rules! tree {
    ($($markup:tt)*) => { $crate::__macros::__tree!([$crate] $($markup)*) };
}

#[doc(hidden)]
pub use bine_macros as __macros;

/// What macros write; no program names it.
#[doc(hidden)]
pub mod __private {
    pub use std::sync::LazyLock as Once;

    pub use bine_html as html;
    pub use inventory::submit;

    pub use crate::arguments::{Argument, Arguments, check_form};
    pub use crate::channels::{check_grant, check_query, check_token};
    pub use crate::live::{Has, seen};
    pub use crate::methods::Methods;
    pub use crate::remote::{check_answer, check_events};
    pub use crate::route::Route;
    pub use crate::service::action::{Captured, Declaration, Linked, Perhaps, Surely, captured};
    pub use crate::service::check_call;
    pub use crate::service::{Given, Manner, Service, Signature, Wrong};
    pub use crate::sessions::{check_sealed, check_session, check_ticket};
    pub use crate::style::Sheet;
    pub use crate::wire::check_wire;
    pub use crate::{Action, Call, Error, Response, Rule};
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
    #[doc = include_str!("../../../docs/guide/style.md")]
    struct Style;
    #[doc = include_str!("../../../docs/guide/trees.md")]
    struct Trees;
    #[doc = include_str!("../../../docs/guide/actions.md")]
    struct Actions;
    #[doc = include_str!("../../../docs/guide/channels.md")]
    struct Channels;
    #[doc = include_str!("../../../docs/guide/tables.md")]
    struct Tables;
    #[doc = include_str!("../../../docs/guide/schedulers.md")]
    struct Schedulers;
    #[doc = include_str!("../../../docs/guide/sessions.md")]
    struct Sessions;
    #[doc = include_str!("../../../docs/guide/services.md")]
    struct Services;
    #[doc = include_str!("../../../docs/guide/live.md")]
    struct Live;
    #[doc = include_str!("../../../docs/guide/remote.md")]
    struct Remote;
    #[cfg(feature = "test")]
    #[doc = include_str!("../../../docs/guide/testing.md")]
    struct Testing;
}

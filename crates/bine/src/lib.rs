//! Bine: one small, very fast server for live web applications. This crate is the API of the
//! server: a program declares its pages, services, tables and channels on an [`App`], and the
//! server runs it.
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

mod accept;
mod access_guard;
mod accounts;
#[cfg(feature = "acme")]
mod acme;
mod acme_choices;
mod admission;
mod api_tokens;
mod app;
mod app_state;
mod arguments;
mod asset;
mod asset_folder;
mod audit;
mod authority;
mod base64;
mod blocking;
#[cfg(feature = "browser")]
mod browser_files;
#[cfg(any(feature = "browser", feature = "script"))]
mod browser_services;
mod bundled_asset;
mod button_list;
pub mod channels;
mod client_places;
#[cfg(feature = "cluster")]
mod cluster;
mod cluster_choices;
#[cfg(feature = "compress")]
mod compression;
mod configuration;
mod control;
mod credentials;
mod data_browser;
#[cfg(feature = "cluster")]
mod data_move;
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
mod languages;
mod linked_feature;
mod links;
mod listing;
pub mod live;
mod log_limiter;
mod methods;
mod metrics;
pub mod middleware;
mod nearest;
mod node_directory;
mod origin;
mod page_request;
mod pagination;
mod panics;
mod pattern;
mod percent_encoding;
mod position;
mod positions;
pub mod prelude;
mod problem;
mod profile;
mod program;
mod program_version;
mod prometheus;
pub mod proxy;
mod random_token;
mod read_position;
mod region_key;
mod rejection;
mod reload;
pub mod remote;
mod render_context;
mod request;
mod request_session;
mod request_summary;
mod respond;
mod response_notes;
mod response_stage;
mod returned_form;
mod rights;
mod route;
mod router;
mod schedule;
#[cfg(feature = "script")]
mod scripts;
mod security;
mod self_signed;
mod service;
mod sessions;
mod shared_state;
mod shown_time;
mod signal;
mod signal_core;
mod sites;
#[cfg(feature = "tracing")]
mod stage_trace;
mod staleness;
pub mod store;
mod stream;
mod style;
mod subsystem;
mod tables;
mod templates;
#[cfg(feature = "test")]
pub mod test;
mod text;
mod tls_state;
mod trace;
mod user_name;
mod visitor_message;
mod websocket;
mod wire;

pub use accounts::{Account, Accounts, HashingCost, Mail, MailKind, SignUp};
pub use api_tokens::{ApiToken, ApiTokens, CreatedApiToken, NewApiToken};
pub use app::App;
pub use arguments::{
    Cookie, Form, FromRequest, FromText, Header, Json, Needs, Path, Query, Rejection, RequestParts,
    State, Upload,
};
pub use asset_folder::AssetFolder;
pub use bine_html::{
    Attribute, AttributeValue, Class, CodeValue, Flow, Frozen, Html, Page, Parts, Phrasing, Raw,
    Render, Show, Tree, UrlValue, Writer, raw, tree,
};
pub use bine_http::{Date, Method, Status};
pub use bine_macros::{layout, page, service};
pub use bine_profile::Allocator as ProfiledAllocator;
pub use bine_server::{Disconnected, overdue_calls, timeout};
pub use blocking::blocking;
#[cfg(feature = "browser")]
pub use browser_files::{BrowserData, BrowserFunction, BrowserHandler};
pub use button_list::{Label, MarkupLabel, TextLabel, button_list};
pub use control::{query_running_server, run_control_command, running_process};
#[cfg(feature = "cluster")]
pub use data_move::{
    ClusterLocation, MoveProgress, MoveStep, MoveSummary, move_into_cluster, move_out_of_cluster,
};
pub use error::Error;
pub use exit::Exit;
pub use filter::{Filter, FilterDecision, FilterRequest};
pub use live::{Events, Presence};
pub use metrics::{ServerHandle, ServerStats};
pub use position::{InvalidPosition, Position};
pub use positions::{PositionError, Positions};
pub use random_token::random_token;
pub use remote::{Remote, remote};
pub use request::{Body, Request};
pub use respond::{
    HandlerOutput, PageExt, PageResponse, PlainOutput, Respond, Response, ResultOutput,
};
pub use rights::{AccessRules, Right, Rights, Who};
pub use security::{Frames, SecurityHeaders};
pub use service::{
    Action, ActionOutput, Call, Callable, Caller, JsonOutput, Replace, ReplaceOutput,
    ResponseOutput, Rule, Service, ServiceArgument, ServiceArguments, ServiceOutput,
};
pub use sessions::{Frame, FrameChange, Session, SessionChange, SessionInfo, Sessions, User};
pub use signal::Signal;
pub use stream::Sender;
pub use templates::{
    ContentLayout, ErrorFunction, ErrorInfo, LayoutFunction, LayoutUser, PageContent,
};
pub use text::Text;
pub use user_name::{BadUserName, UserName};
pub use visitor_message::{AccountMessage, ApiTokenMessage, MessageText, VisitorMessage};
pub use websocket::{CloseCode, IntoMessage, Message, Upgrade, WebSocket};
pub use wire::Bytes;

/// Re-exports from the server core for programs that bring their own scheduler or inspect the
/// client's address.
pub use bine_server::{ClientAddress, scheduler};

/// The allocator of programs with the feature `profile`: that of the system, whose allocations the key
/// `profile-allocations` records. A program with an allocator of its own leaves the feature out and
/// wraps its allocator by [`ProfiledAllocator`].
#[cfg(feature = "profile")]
#[global_allocator]
static ALLOCATOR: ProfiledAllocator = ProfiledAllocator::system();

/// Renders a page from markup that looks like the HTML it produces.
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
/// Write elements, attributes and text as in HTML. Quote text that Rust cannot tokenize, such as
/// `"it's"`. `{expression}` displays a value, escaped. `{for p in e { .. }}`, `{if c { .. } else {
/// .. }}` and `{match e { p => { .. } }}` contain markup in their braces. `{let p = e;}` declares a
/// variable for the following siblings. The values that a page displays move into it; `await` them
/// before the macro and bind them to variables.
///
/// The macro returns a [`Page`]. Unless the markup is a whole document, the result also implements
/// [`Html`] for the kind of its outermost elements, which decides where the compiler accepts it.
///
/// In `href`, `src` and similar attributes, an address that a browser would execute (`javascript:`,
/// `data:`) becomes `about:invalid#refused`. Event handlers, `style`, `srcdoc` and the content of
/// `<script>` and `<style>` accept only [`raw`] text.
#[macro_export]
macro_rules! html {
    ($($markup:tt)*) => { $crate::__macros::__html!([$crate] $($markup)*) };
}

/// Adds rules to the program's style sheet and checks them at compile time.
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
/// With `mod name;` at the start (or `pub mod name;`), class names are local: the macro makes each
/// class unique in the program and exports it as a constant of the module. `:global(.name)` refers
/// to a class of a different sheet. Without a module all names are global.
///
/// The server joins all sheets of a program into one, serves it at its own address and links it in
/// the head of each page. Put CSS that Rust cannot tokenize into a string: `css!("a { color:
/// #12e }")`. A single statement may be a string too.
#[macro_export]
macro_rules! css {
    ($($sheet:tt)*) => { $crate::__macros::__css! { [$crate] $($sheet)* } };
}

/// Adds a file to the program's style sheet and checks it at compile time:
/// `css_file!("style.css");`.
///
/// The path is relative to the source file, as with `include_str!`. Class names are global, unless
/// a module precedes the path: `css_file!(mod style; "card.css");`. See [`css!`].
#[macro_export]
macro_rules! css_file {
    ($($file:tt)*) => { $crate::__macros::__css_file! { [$crate] $($file)* } };
}

/// Compiles a file of TypeScript for the browser at build time, and makes its exported functions
/// constants of a module: `browser_file!(mod cart = "cart.browser.ts");`.
///
/// The path is relative to the source file, as with `include_str!`. Each constant is a
/// [`BrowserFunction`](crate::BrowserFunction), for the attributes `data-on` and `data-with`:
///
/// ```ts
/// // cart.browser.ts
/// import { put } from "bine:services";
///
/// export const add = async (event: MouseEvent, item: { id: number }) => {
///   await put({ item: item.id, count: 1 });
/// };
/// ```
///
/// ```text
/// browser_file!(mod cart = "cart.browser.ts");
///
/// html!(<button type="button" data-on={cart::add.on("click")} data-with={cart::add.data(&item)}>Add</button>)
/// ```
///
/// The file may import other files whose names end with `.browser.ts`, the services of the program from
/// `"bine:services"`, and the words of the script of pages from `"bine:browser"`. Mistakes in the files are errors of the
/// build; a service that the program does not have is an error of its start. The feature `browser` of
/// `bine` enables the macro.
#[cfg(feature = "browser")]
#[macro_export]
macro_rules! browser_file {
    ($($file:tt)*) => { $crate::__macros::__browser_file! { [$crate] $($file)* } };
}

/// Compiles a file of TypeScript for the browser. Enable the feature `browser` of `bine` to use it.
#[cfg(not(feature = "browser"))]
#[macro_export]
macro_rules! browser_file {
    ($($file:tt)*) => {
        ::core::compile_error! {
            "`browser_file!` needs the feature `browser`: `bine = { .., features = [\"browser\"] }`"
        }
    };
}

/// The files below a folder, compiled into the program, for
/// [`AssetFolder::bundled`](crate::AssetFolder::bundled): `bundled_files!("static")`.
///
/// The path is relative to the source file, as with `include_bytes!`. Hidden files and links are
/// omitted. The compiler notices a changed file; after a file was added, change the source file.
#[macro_export]
macro_rules! bundled_files {
    ($($folder:tt)*) => { $crate::__macros::__bundled_files! { $($folder)* } };
}

/// Defines an action of a page: the code that a form or a button runs, written in its place in the
/// markup.
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
///         <form method="post" action={action!(|call, body: Text| call.insert(Message { id: Id::unassigned(), body }))}>
///             <input name="body" aria-label="Message"> <button>Post</button>
///         </form>
///     }
/// }
/// # let _ = App::new().table::<Message>().page(board);
/// ```
///
/// An action is a [service](macro@crate::service) without a name: a function whose first argument
/// is the [`Call`](crate::Call), a transaction over the program's tables. The captures in brackets
/// carry values of the page, each with its type: `[id: Id<Message>]` captures the variable of that
/// name, `[id: Id<Message> = message.id]` the value of an expression. The server seals captures
/// into the action's address (at most 4096 bytes of JSON), bound to the session that received the
/// page: no other client can read, change or use them. The other arguments are the fields that the
/// form sends, each with its type. The action has no access to other variables of the page.
///
/// An action returns the same types as a service. A form without script returns to its page
/// afterwards.
///
/// The server identifies an action by its source text and its module, so that pages remain usable
/// after a restart and after changes elsewhere in the program. `action!(name = "remove", [..] |..|
/// ..)` identifies it by that name instead, whatever its source text. `who = "user"`, `who =
/// "anyone"` or `who = NAME`, next to the name, decides which clients that received the page may
/// run it, as for a [`service`](macro@crate::service).
#[macro_export]
macro_rules! action {
    ($($action:tt)*) => { $crate::__macros::__action!([$crate] $($action)*) };
}

/// Builds a [`Tree`](crate::Tree) from the same markup as [`html!`](crate::html!): a page that the
/// program can search, change, keep and write in several formats.
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
/// The macro builds the tree at once; it builds the constant parts only the first time. It borrows
/// the values in holes, except pages: a tree is inserted with all its nodes, any other page is
/// inserted as markup.
#[macro_export]
macro_rules! tree {
    ($($markup:tt)*) => { $crate::__macros::__tree!([$crate] $($markup)*) };
}

#[doc(hidden)]
pub use bine_macros as __macros;

/// Items that the macros' output uses. Programs do not name them.
#[doc(hidden)]
pub mod __private {
    pub use std::sync::LazyLock as Once;
    pub use std::sync::atomic::AtomicBool;

    pub use bine_html as html;
    pub use inventory::submit;

    pub use crate::accounts::check_link;
    pub use crate::admission::check_ticket;
    pub use crate::arguments::{FromRequest, RequestParts, check_form};
    pub use crate::asset_folder::NamedAsset;
    #[cfg(feature = "browser")]
    pub use crate::browser_files::{BrowserModule, ImportedService};
    pub use crate::channels::{check_grant, check_query, check_token};
    pub use crate::credentials::check_credential;
    pub use crate::linked_feature::LinkedFeature;
    pub use crate::live::seen;
    pub use crate::methods::Methods;
    pub use crate::remote::{check_answer, check_events};
    pub use crate::route::Route;
    #[cfg(feature = "script")]
    pub use crate::scripts::check_script_calls;
    pub use crate::service::action::{
        Captured, Declaration, Linked, PlainActionOutput, ResultActionOutput, captured,
    };
    pub use crate::service::check_call;
    pub use crate::service::reference::{LocalVariable, NoService, ServiceProbe, ServiceReference};
    pub use crate::service::{
        AnswerProbe, ArgumentError, ArgumentLimits, CallArguments, DescribedAnswer, OpaqueAnswer,
        ResponsePreference, Service, ServiceArgument, Signature, TypeShape, write_limits,
    };
    pub use crate::sessions::{check_sealed, check_session};
    pub use crate::shown_time::{TimeForm, shown_time};
    pub use crate::store::Column;
    pub use crate::style::Sheet;
    pub use crate::tables::{LinkedTable, NoTable, TableProbe, TableReference};
    pub use crate::wire::check_wire;
    pub use crate::{Action, Call, Error, Response, Rule};
}

/// Compiles the guide's examples with the documentation tests, and runs those that can run.
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
    #[doc = include_str!("../../../docs/guide/api-tokens.md")]
    struct ApiTokens;
    #[cfg(feature = "test")]
    #[doc = include_str!("../../../docs/guide/accounts.md")]
    struct Accounts;
    #[cfg(feature = "test")]
    #[doc = include_str!("../../../docs/guide/rights.md")]
    struct Rights;
    #[doc = include_str!("../../../docs/guide/services.md")]
    struct Services;
    #[doc = include_str!("../../../docs/guide/live.md")]
    struct Live;
    #[doc = include_str!("../../../docs/guide/remote.md")]
    struct Remote;
    #[doc = include_str!("../../../docs/guide/proxy.md")]
    struct Proxy;
    #[cfg(feature = "test")]
    #[doc = include_str!("../../../docs/guide/data-browser.md")]
    struct DataBrowser;
    #[cfg(feature = "test")]
    #[doc = include_str!("../../../docs/guide/testing.md")]
    struct Testing;
}

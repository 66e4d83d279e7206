//! The demo that `bine` serves without a command: a description of the server, and things to try.

mod address;
mod board;
mod forums;
mod gallery;
mod guide;
mod highlight;
mod home;
mod markdown;
mod numbers;
mod search;
mod sources;

use bine::channels::Access;
use bine::{
    App, Body, Method, Page, PageContent, PageExt, Query, Request, Respond, Response, Text,
    css_file, html, page, raw,
};

use gallery::Gallery;
use highlight::highlight;
use numbers::LiveNumbers;

css_file!("../../demo/style.css");

/// Creates the demo.
///
/// # Errors
///
/// The gallery's folder cannot be created.
pub(crate) fn app() -> std::io::Result<App> {
    let gallery = Gallery::open()?;
    let fill = gallery.filler();
    let app = App::new()
        .layout(layout)
        .page(home::home)
        .page(home::numbers)
        .page(hello)
        .page(echo)
        .page(forums::forums)
        .page(board::board)
        .service(board::post)
        .page(gallery::gallery)
        .page(guide::contents)
        .page(guide::chapter)
        .page(search::search)
        .page(guide::sources)
        .page(guide::source)
        .asset("/hop.svg", "image/svg+xml", include_bytes!("../../demo/hop.svg"))
        .asset(
            "/numbers.js",
            "text/javascript; charset=utf-8",
            include_bytes!("../../demo/numbers.js"),
        )
        .asset("/robots.txt", "text/plain; charset=utf-8", b"User-agent: *\nDisallow:\n")
        .files(gallery.folder());
    Ok(app
        .table::<board::Message>()
        .channels(Access::anyone_follows())
        .channel("board", forums::channel_settings())
        .in_memory()
        .state(gallery)
        .state(LiveNumbers::default())
        .on_start(fill))
}

/// Greets the visitor like `examples/hello.rs`; without a name it shows a form for one.
#[page("/hello")]
async fn hello(name: Query<Option<Text>>) -> impl Respond {
    let name = name.0.filter(|name| !name.is_empty());
    html! {
        {match name {
            Some(name) => { <h1>Hello {name}</h1> }
            None => { <h1>Hello, whoever you are</h1> }
        }}
        <p class="lead">"A page is a function. This one takes one argument from the address."</p>
        <form class="row" action="/hello">
            <label>"Your name" <input name="name" autocomplete="given-name" autofocus></label>
            <button type="submit">"Greet me"</button>
        </form>
        <pre tabindex="0"><code>{raw(highlight(EXAMPLE, "rust"))}</code></pre>
    }
    .with_title("Hello")
}

/// The page shows the source of an example that its reader can run.
const EXAMPLE: &str = include_str!("../../../../examples/hello.rs");

/// Returns the request's body as text. A GET request gets a hint how to send a body.
#[page(GET | POST "/echo")]
async fn echo(request: Request, body: Body) -> impl Respond {
    if matches!(request.method(), Method::Get | Method::Head) {
        let host = request.header("Host").unwrap_or("localhost");
        return Response::text(format!("curl --data-binary @FILE http://{host}/echo\n"));
    }
    // A browser must not interpret the body as HTML.
    Response::bytes("text/plain; charset=utf-8", body.0)
        .with_header("X-Content-Type-Options", "nosniff")
}

/// The layout of every page. A page with the meta value `layout` is a window: it has no menu.
fn layout(content: PageContent<'_>) -> impl Page {
    let is_window = content.meta().any(|(name, _)| name == "layout");
    html! {
        <!DOCTYPE html>
        <html lang="en" class={is_window.then_some("in-window")}>
            <head>
                <meta charset="utf-8">
                <meta name="viewport" content="width=device-width, initial-scale=1">
                <title>{content.title()}</title>
                <link rel="icon" href="/hop.svg">
            </head>
            <body>
                {if !is_window {
                    <header class="top">
                        <div>
                            <a class="brand" href="/"><img src="/hop.svg" alt="" width="24" height="32">"Bine"</a>
                            <nav aria-label="Main">
                                <a href="/guide">"Guide"</a>
                                <a href="/source">"Examples"</a>
                                <a href="/board">"Board"</a>
                                <a href="/gallery">"Gallery"</a>
                            </nav>
                        </div>
                    </header>
                }}
                <main>
                    {if is_window {
                        <a class="out" href="/" target="_top"><img src="/hop.svg" alt="The demo" width="15" height="20"></a>
                    }}
                    {content}
                </main>
                {if !is_window {
                    <footer class="foot">
                        <div>
                            <span>"Bine " {env!("CARGO_PKG_VERSION")}</span>
                            <span>"A bine is the climbing stem on which hops grow."</span>
                        </div>
                    </footer>
                }}
            </body>
        </html>
    }
}

/// Formats seconds since 1970 as day and time in UTC.
fn format_time(second: u64) -> String {
    let date = bine::Date::at(second);
    // The date is `Sat, 21 Nov 2026 03:04:05 GMT`.
    format!("{} {} UTC", &date.as_str()[5..11], &date.as_str()[17..22])
}

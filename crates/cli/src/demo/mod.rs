//! The demo that `bine` serves without a command: a description of the server, and things to try.

mod board;
mod gallery;
mod guide;

use bine::channels::Access;
use bine::{
    App, Body, Method, Page, PageContent, PageExt, Query, Request, Respond, Response, Text, css,
    css_file, html, page,
};

use gallery::Gallery;

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
        .page(home)
        .page(hello)
        .page(echo)
        .page(board::board)
        .page(board::forum)
        .page(board::post)
        .page(gallery::gallery)
        .page(guide::guide)
        .page(guide::chapter)
        .asset("/hop.svg", "image/svg+xml", include_bytes!("../../demo/hop.svg"))
        .asset("/robots.txt", "text/plain; charset=utf-8", b"User-agent: *\nDisallow:\n")
        .files(gallery.folder());
    Ok(app
        .table::<board::Message>()
        .channels(Access::anyone_follows())
        .channel("board", board::channel_settings())
        .in_memory()
        .state(gallery)
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
        <pre><code>{EXAMPLE}</code></pre>
    }
    .with_title("Hello")
}

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

css! {
    mod style;

    .facts {
        display: grid;
        grid-template-columns: max-content minmax(0, 1fr);
        gap: 0.35rem 1.5rem;
        margin: 1rem 0;
        dt { color: var(--soft); }
        dd { margin: 0; overflow-wrap: anywhere; }
    }
}

#[page("/")]
async fn home(request: Request) -> impl Respond {
    let arrival = format_time(request.arrival());
    let peer = request.client_address().to_string();
    let agent = request.header("User-Agent").unwrap_or("a browser that does not say").to_owned();
    html! {
        <section class="hero">
            <div>
                <p class="live">"It runs"</p>
                <h1>"Bine is running"</h1>
                <p class="lead">
                    "One small, very fast server for live web applications. Pages are written by the server's own
                    process, and a page is as cheap as a file."
                </p>
                <p class="buttons">
                    <a class="button" href="/guide">"Read the guide"</a>
                    <a class="button quiet" href="/hello?name=you">"Say hello"</a>
                </p>
            </div>
            <pre><code>{EXAMPLE}</code></pre>
        </section>
        <ul class="cards">
            {for (address, title, words) in CARDS {
                <li><a class="card" href={address}><h2>{title}</h2><p>{words}</p></a></li>
            }}
        </ul>
        <h2>"This page"</h2>
        <p>"It was written while it was sent. These facts were not known before you asked:"</p>
        <dl class={style::facts}>
            <dt>"You asked at"</dt><dd>{arrival}</dd>
            <dt>"from"</dt><dd>{peer}</dd>
            <dt>"with"</dt><dd>{agent}</dd>
        </dl>
        <h2>"Your own"</h2>
        <p>"Put a folder on the web, or write a program of your own:"</p>
        <pre><code>{COMMANDS}</code></pre>
    }
    .with_title("Bine")
}

const CARDS: [(&str, &str, &str); 4] = [
    ("/hello?name=you", "Hello", "The smallest page: an argument from the address, escaped."),
    ("/board", "The board", "Two forums with forms. It works without script."),
    ("/gallery", "The gallery", "Files from a kilobyte to a hundred megabytes."),
    ("/guide", "The guide", "Pages, files, configuration, logs: how to do what."),
];

/// The page shows the source of an example that its reader can run.
const EXAMPLE: &str = include_str!("../../../../examples/hello.rs");

const COMMANDS: &str = "\
bine serve DIR            # the files below DIR
bine config               # every setting, and where it came from
bine --help               # all options
";

/// The layout of every page.
fn layout(content: PageContent<'_>) -> impl Page {
    html! {
        <!DOCTYPE html>
        <html lang="en">
            <head>
                <meta charset="utf-8">
                <meta name="viewport" content="width=device-width, initial-scale=1">
                <title>{content.title()}</title>
                <link rel="icon" href="/hop.svg">
            </head>
            <body>
                <header class="top">
                    <div>
                        <a class="brand" href="/"><img src="/hop.svg" alt="" width="24" height="32">"Bine"</a>
                        <nav aria-label="Main">
                            <a href="/board">"Board"</a>
                            <a href="/gallery">"Gallery"</a>
                            <a href="/guide">"Guide"</a>
                        </nav>
                    </div>
                </header>
                <main>{content}</main>
                <footer class="foot">
                    <div>
                        <span>"Bine " {env!("CARGO_PKG_VERSION")}</span>
                        <span>"A bine is the climbing stem on which hops grow."</span>
                    </div>
                </footer>
            </body>
        </html>
    }
}

/// Formats seconds since 1970 as date and time in UTC.
fn format_time(second: u64) -> String {
    let date = bine::Date::at(second);
    // Drops the day of the week and the seconds from `Sat, 21 Nov 2026 03:04:05 GMT`.
    format!("{} UTC", &date.as_str()[5..22])
}

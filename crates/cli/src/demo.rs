//! Decides what `bine` shows when it is started alone: a page, a few files, and where to go on.

use bine::{App, Body, Method, Page, Query, Request, Respond, Response, Text, html, page};

/// The bundled demo.
pub(crate) fn app() -> App {
    App::new()
        .page(home)
        .page(hello)
        .page(echo)
        .asset("/style.css", "text/css; charset=utf-8", include_bytes!("../demo/style.css"))
        .asset("/hop.svg", "image/svg+xml", include_bytes!("../demo/hop.svg"))
        .asset("/robots.txt", "text/plain; charset=utf-8", b"User-agent: *\nDisallow:\n")
}

/// The same greeting as in `examples/hello.rs`; without a name there is a form to give one.
#[page("/hello")]
async fn hello(name: Query<Option<Text>>) -> impl Page {
    let name = name.0.filter(|name| !name.is_empty());
    let title = "Hello";
    layout(
        title,
        html! {
            {match name {
                Some(name) => { <h1>Hello {name}</h1> }
                None => { <h1>Hello, whoever you are</h1> }
            }}
            <form action="/hello">
                <label>"Your name " <input name="name" autofocus></label>
                <button>Greet me</button>
            </form>
            <p><a href="/">Back</a></p>
        },
    )
}

/// Gives a body back as text. Whoever only looks is told how to send one.
#[page(GET | POST "/echo")]
async fn echo(request: Request, body: Body) -> impl Respond {
    if matches!(request.method(), Method::Get | Method::Head) {
        let host = request.field("Host").unwrap_or("localhost");
        return Response::text(format!("curl --data-binary @FILE http://{host}/echo\n"));
    }
    // A browser must not look for markup in it.
    Response::bytes("text/plain; charset=utf-8", body.0)
        .with_field("X-Content-Type-Options", "nosniff")
}

#[page("/")]
async fn home() -> impl Page {
    layout(
        "Bine",
        html! {
            <h1>Bine is running</h1>
            <p>
                "This page was written by the server's own process while it answered you. "
                <a href="/hello?name=you">So was this one</a>", which greets whom you name."
            </p>
            <h2>Your own</h2>
            <p>Serve a folder: <code>bine serve DIR</code></p>
            <p>Or write a page in Rust:</p>
            <pre><code>{EXAMPLE}</code></pre>
            <p>"All options: "<code>"bine --help"</code></p>
        },
    )
}

/// What the demo shows is what its reader can run.
const EXAMPLE: &str = include_str!("../../../examples/hello.rs");

fn layout(title: &'static str, body: impl Page) -> impl Page {
    html! {
        <!DOCTYPE html>
        <html lang="en">
            <head>
                <meta charset="utf-8">
                <meta name="viewport" content="width=device-width">
                <title>{title}</title>
                <link rel="icon" href="/hop.svg">
                <link rel="stylesheet" href="/style.css">
            </head>
            <body>
                <img src="/hop.svg" alt="A hop cone" width="72" height="96">
                {body}
            </body>
        </html>
    }
}

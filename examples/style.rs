//! A style sheet that the compiler checks, with scoped class names.
//!
//! Run `cargo run --release --example style`, then open <http://127.0.0.1:8080/?open=on>. A
//! misspelled property or class is a compiler error with a suggestion.

use bine::{App, Page, Query, css, html, page};

css! {
    body {
        max-width: 40rem;
        margin: 3rem auto;
        font: 1.1rem/1.6 system-ui, sans-serif;
    }
}

css! {
    mod style;

    .card {
        padding: 1rem 1.5 em;
        border: 1px solid seagreen;
        border-radius: 8px;

        & h2 { margin: 0; color: seagreen; }
        &:hover { background: honeydew; }
        @media (prefers-color-scheme: dark) { background: #1a211a; }
    }
    .is-open { border-width: 3px; }
}

#[page("/")]
async fn cards(open: Query<Option<bool>>) -> impl Page {
    let is_open = open.unwrap_or_default();
    html! {
        {for name in ["Cascade", "Saaz"] {
            <section class={[Some(style::card), is_open.then_some(style::is_open)]}>
                <h2>{name}</h2>
                <p>"A hop."</p>
            </section>
        }}
    }
}

fn main() -> bine::Exit {
    App::new().page(cards).run()
}

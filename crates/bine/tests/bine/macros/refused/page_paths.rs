//! Rejected: paths that no request can have.

use bine::{Page, html, page};

#[page("hello")]
async fn no_slash() -> impl Page {
    html!()
}

#[page("/hello?name=a")]
async fn a_query() -> impl Page {
    html!()
}

#[page("/hello#top")]
async fn a_fragment() -> impl Page {
    html!()
}

#[page("/hello you")]
async fn a_space() -> impl Page {
    html!()
}

#[page]
async fn none() -> impl Page {
    html!()
}

#[page(hello)]
async fn no_text() -> impl Page {
    html!()
}

#[page("/hello", cached)]
async fn too_much() -> impl Page {
    html!()
}

fn main() {}

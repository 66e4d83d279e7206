//! Rejected: a class that no page uses.
#![deny(dead_code)]

use bine::{Page, css, html};

css! {
    mod style;
    .card { top: 0 }
    .card .title { top: 0 }
    .loop:hover { top: 0 }
}

fn page() -> impl Page {
    html!(<p class={style::card}>"text"</p>)
}

fn main() {
    drop(page());
}

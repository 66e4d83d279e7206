//! Rejected: a class that the style sheet does not define.

use bine::{Page, css, html};

css! {
    mod style;
    .card { top: 0 }
    .card-title { top: 0 }
}

fn page() -> impl Page {
    html!(<p class={style::crad}>"text" <b class={style::card_title}>"title"</b></p>)
}

fn main() {
    drop(page());
}

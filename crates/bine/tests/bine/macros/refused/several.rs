//! Rejected: several mistakes, which are all reported.

use bine::{Page, html};

fn several(name: &str) -> impl Page {
    html! {
        <div class="a" class="b">
            <p>{}</p>
            <br>text</br>
            <ul><li>{name}</ul>
            <a href=x>link</a>
        </span>
    }
}

fn main() {}

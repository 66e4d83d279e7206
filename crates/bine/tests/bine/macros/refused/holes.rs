//! Rejected: placeholders without a value or with more than one.

use bine::{Page, html};

fn empty() -> impl Page {
    html!(<p>{}</p>)
}

fn empty_value() -> impl Page {
    html!(<p class={}>one</p>)
}

async fn awaited() -> impl Page {
    html!(<p>{load().await}</p>)
}

async fn awaited_in_a_loop() -> impl Page {
    html!({for letter in load().await.chars() { <i>{letter}</i> }})
}

fn asked(text: &str) -> impl Page {
    html!(<p>{text.parse::<u8>()?}</p>)
}

async fn load() -> String {
    String::new()
}

fn main() {}

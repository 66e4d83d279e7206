//! Rejected: a malformed date.

use bine::{Page, html};

fn page() -> impl Page {
    html!(<p><time datetime="21.11.2026">"today"</time><input type="date" max="2026-02-30"></p>)
}

fn main() {
    drop(page());
}

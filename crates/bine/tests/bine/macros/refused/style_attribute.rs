//! Rejected: mistakes in a `style` attribute.

use bine::{Page, html};

fn page() -> impl Page {
    html! {
        <p style="colr: red; width: 12xp">"text"</p>
        <p style="color red">"text"</p>
        <p style=".card { top: 0 }">"text"</p>
        <svg viewBox="0 0 1 1"><path style="fill: rde" /></svg>
    }
}

fn main() {
    drop(page());
}

//! Rejected: subtitles without a language.

use bine::{Page, html};

fn page() -> impl Page {
    html!(<video src="/a.webm"><track src="/a.vtt"></video>)
}

fn main() {
    drop(page());
}

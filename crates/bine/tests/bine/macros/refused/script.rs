//! Rejected: text that a browser would execute.

use bine::{Page, html};

fn a_hole(name: String) -> impl Page {
    html! {
        <script>{name}</script>
        <style>{"a"}</style>
    }
}

fn an_end() -> impl Page {
    html!(<script>"let a = '</script>';"</script>)
}

fn main() {}

//! Rejected: comments without an end, and comments in a script.

use bine::{Page, html};

fn no_end() -> impl Page {
    html!(<p>text</p> <!-- comment -- >)
}

fn hidden_end() -> impl Page {
    html! {
        <p>text</p>
        <!-- see https://example.com -->
    }
}

fn in_a_script() -> impl Page {
    html!(<script><!-- comment --></script>)
}

fn main() {}

//! Misuse: children of an element that has none.

use bine::{Page, html};

fn closed() -> impl Page {
    html!(<p>one<br>two</br></p>)
}

fn with_children() -> impl Page {
    html!(<img src="a">the picture</img>)
}

fn main() {}

//! Rejected: children of a void element.

use bine::{Page, html};

fn closed() -> impl Page {
    html!(<p>one<br>two</br></p>)
}

fn with_children() -> impl Page {
    html!(<img src="a">the picture</img>)
}

fn main() {}

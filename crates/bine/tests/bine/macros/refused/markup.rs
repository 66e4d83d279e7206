//! Rejected: invalid markup.

use bine::{Page, html};

fn less() -> impl Page {
    html!(<p>1 < 2</p>)
}

fn fragment() -> impl Page {
    html!(<><p>one</p></>)
}

fn declaration() -> impl Page {
    html!(<p><!ELEMENT br></p>)
}

fn late_doctype() -> impl Page {
    html!(<html></html><!DOCTYPE html>)
}

fn main() {}

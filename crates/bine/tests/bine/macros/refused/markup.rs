//! Rejected: invalid markup.

use bine::{Page, html};

fn less() -> impl Page {
    html!(<p>1 < 2</p>)
}

fn fragment() -> impl Page {
    html!(<><p>one</p></>)
}

fn comment() -> impl Page {
    html!(<p><!-- one --></p>)
}

fn late_doctype() -> impl Page {
    html!(<html></html><!DOCTYPE html>)
}

fn main() {}

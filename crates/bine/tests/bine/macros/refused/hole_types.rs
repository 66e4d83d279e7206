//! Rejected: values of types that cannot be displayed.

use bine::{Page, html};

struct Row;

fn in_text(row: Row) -> impl Page {
    html!(<p>{row}</p>)
}

fn in_an_attribute(row: Row) -> impl Page {
    html!(<p title={row}>one</p>)
}

fn a_condition_is_no_text(flag: bool) -> impl Page {
    html!(<p>{flag}</p>)
}

fn markup_is_no_attribute(page: impl Page) -> impl Page {
    html!(<p title={page}>one</p>)
}

fn a_loop_over_nothing() -> impl Page {
    html!({for row in 3 { <p>{row}</p> }})
}

fn nobody_knows_it() -> impl Page {
    html!(<p>{nobody}</p>)
}

fn main() {}

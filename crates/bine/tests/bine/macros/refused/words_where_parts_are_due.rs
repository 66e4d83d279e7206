//! Rejected: components with phrasing content in a list.

use bine::{Flow, Html, Page, Phrasing, html};

fn name() -> impl Html<Phrasing> {
    html!(<b>one</b>)
}

fn in_a_list() -> impl Page {
    html!(<ol>{name()}</ol>)
}

fn in_a_table(rows: Vec<Box<dyn Html<Flow>>>) -> impl Page {
    html!(<table>{rows}</table>)
}

fn in_a_head() -> impl Page {
    html!(<html lang="en"><head>{name()}</head></html>)
}

fn main() {}

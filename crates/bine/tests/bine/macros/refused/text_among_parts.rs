//! Rejected: text where only certain elements are allowed.

use bine::{Page, html};

fn in_a_list(name: &str) -> impl Page {
    html!(<ul>{name}</ul>)
}

fn in_a_table(counts: &[u32]) -> impl Page {
    html!(<table><tr>{for count in counts { {count} }}</tr></table>)
}

fn in_a_list_of_terms(name: String) -> impl Page {
    html!(<dl>{name}</dl>)
}

fn in_a_frame(name: String) -> impl Page {
    html!(<iframe src="/one">{name}</iframe>)
}

fn main() {}

//! Rejected: an `<area>` with an address but no text alternative, and the reverse.

use bine::{Page, html};

fn in_a_map(target: &str) -> impl Page {
    html! {
        <map name="garden">
            <area shape="default" href={target}>
            <area coords="0,0,1,1" alt="The hedge">
            <area coords="0,0,1,1">
            <area coords="0,0,1,1" href="/hops" alt="Hops">
        </map>
    }
}

fn main() {}

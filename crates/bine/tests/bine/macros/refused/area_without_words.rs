//! Misuse: a place of a picture that leads somewhere and does not say where, and one that says so and leads nowhere.

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

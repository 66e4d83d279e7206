//! Rejected: the mistakes of pages in trees.

use std::cell::RefCell;

use bine::{Flow, Html, Tree, html, tree};

struct Opaque;

fn component() -> impl Html<Flow> {
    html!(<p>text</p>)
}

fn holes(name: &str, code: &str, opaque: Opaque) -> Tree {
    tree! {
        <p>{component()}</p>
        <ul>{name}</ul>
        <p onclick={code}>{opaque}</p>
        <script>{name}</script>
        <p title={RefCell::new(1)}>t</p>
    }
}

fn names() -> Tree {
    tree!(<p clas="a"><li>t</li></p>)
}

fn main() {}

//! Rejected: incomplete bindings, those that leave the page, and variables out of scope.

use bine::{Page, Tree, html, tree};

fn no_value() -> impl Page {
    html!({let total;} <p>{total}</p>)
}

fn no_semicolon(price: u32) -> impl Page {
    html!({let total = price * 2} <p>{total}</p>)
}

fn more_than_bindings(price: u32) -> impl Page {
    html!({let total = price * 2; total})
}

fn own_else(name: Option<&str>) -> impl Page {
    html!(<p>{let Some(name) = name else { return };}{name}</p>)
}

fn jump(names: Vec<Option<String>>) -> Tree {
    tree!({for name in names { {let name = match name { Some(name) => name, None => continue };}{name} }})
}

fn refutable(name: Option<&str>) -> impl Page {
    html!({let Some(name) = name;}{name})
}

fn after_the_element(price: u32) -> impl Page {
    html!(<p>{let total = price * 2;}{total}</p><p>{total}</p>)
}

fn after_the_loop(prices: &[u32]) -> Tree {
    tree!({for price in prices { {let total = price * 2;}{total} }}{total})
}

fn between_attributes() -> impl Page {
    html!(<p {let class = "a";} class={class}>text</p>)
}

fn main() {}

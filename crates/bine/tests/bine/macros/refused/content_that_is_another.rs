//! Rejected: components whose result differs from the declared content category.

use bine::{Flow, Html, Page, Parts, Phrasing, html};

fn a_division() -> impl Html<Phrasing> {
    html!(<div>one</div>)
}

fn an_item() -> impl Html<Flow> {
    html!(<li>one</li>)
}

fn a_word() -> impl Html<Parts> {
    html!(<b>one</b>)
}

fn a_document() -> impl Html<Flow> {
    html!(<!DOCTYPE html><html lang="en"></html>)
}

fn a_hole(name: &str) -> impl Html<Phrasing> {
    html!({name})
}

fn section(content: impl Html<Flow>) -> impl Page {
    html!(<section>{content}</section>)
}

fn an_argument() -> impl Page {
    section("text")
}

fn a_box() -> Box<dyn Html<Phrasing>> {
    Box::new(html!(<p>one</p>))
}

fn main() {}

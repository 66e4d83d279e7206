//! Components that take other parts of a page.

use bine::{Flow, Html, Page, Parts, html, raw};

pub(super) fn page() -> impl Page {
    let rows = vec![("a<b", 1), ("c", 2)];
    frame(
        "Two & more",
        rows.into_iter().map(|(name, count)| row(name, count)).collect::<Vec<_>>(),
        Some(html!(<i>"foot"</i>)),
    )
}

fn frame(title: &str, body: impl Html<Parts>, foot: Option<impl Html<Flow>>) -> impl Html<Flow> {
    html! {
        <section>
            <h2>{title}</h2>
            <table>{body}</table>
            {foot}
            {Some(html!(<hr>))}
            {raw("<!-- by hand -->")}
        </section>
    }
}

fn row(name: &str, count: usize) -> impl Html<Parts> {
    html!(<tr><td>{name}</td><td>{count}</td></tr>)
}

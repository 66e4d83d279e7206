//! Functions that make parts of pages of parts of pages.

use bine::{Page, html, raw};

pub(super) fn page() -> impl Page {
    let rows = vec![("a<b", 1), ("c", 2)];
    frame(
        "Two & more",
        html!({
            for (name, count) in rows {
                { row(name, count) }
            }
        }),
        Some(html!(<i>"foot"</i>)),
    )
}

fn frame(title: &str, body: impl Page, foot: Option<impl Page>) -> impl Page {
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

fn row(name: &str, count: usize) -> impl Page {
    html!(<tr><td>{name}</td><td>{count}</td></tr>)
}

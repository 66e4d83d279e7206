//! A table with all its parts.

use bine::{Page, html};

pub(super) fn page() -> impl Page {
    let rows = [("Saaz", 3.5), ("Tettnang", 4.25)];
    html! {
        <table>
            <caption>Hops & their acids</caption>
            <colgroup><col span="2"></colgroup>
            <thead><tr><th scope="col">Name</th><th scope="col">"Percent"</th></tr></thead>
            <tbody>{for (name, acid) in rows { <tr><th scope="row">{name}</th><td>{acid}</td></tr> }}</tbody>
            <tfoot><tr><td colspan="2">{rows.len()} rows</td></tr></tfoot>
        </table>
    }
}

//! Rejected: an unknown value of `scope`.

use bine::{Page, html};

fn page() -> impl Page {
    html!(<table><tbody><tr><th scope="colum">"h"</th></tr></tbody></table>)
}

fn main() {
    drop(page());
}

//! Spaces that belong to the page, and spaces that only lay out the source.

use bine::{Page, html};

pub(super) fn page() -> impl Page {
    let (a, b) = ("A", "B");
    html! {
        <p>one   two
            three</p>
        <p> inside </p>
        <p>
            at the edges of lines
        </p>
        <p>{a} {b}</p>
        <p>{a}{b}, {a}; ({b}) [{a}]: {b}.</p>
        <p>{a}
            {b}</p>
        <p><b>one</b> <i>two</i>
            <u>three</u></p>
        <p>{a}'s and <b>{b}</b>'s rock 'n roll of the 1990's</p>
        <pre>"  as\n  it is "</pre>
        <p>1 + 1 = 2; 50% of "\"quotes\"", "it's" fine - well & good!</p>
    }
}

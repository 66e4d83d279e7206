//! Classes of a style sheet that stands beside the page.

use bine::{Page, css, html};

css! {
    mod look;

    .card { padding: 1rem; }
    .big { font-weight: bold; }
    .gone { display: none; }
}

pub(super) fn page() -> impl Page {
    let (is_big, is_gone) = (true, false);
    html! {
        <p class={look::card}>one</p>
        <p class={[Some(look::card), is_big.then_some(look::big), is_gone.then_some(look::gone)]}>two</p>
        <p class={is_gone.then_some(look::gone)} style="margin: 0">three</p>
    }
}

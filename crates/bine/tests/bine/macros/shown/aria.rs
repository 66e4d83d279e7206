//! ARIA roles and states.

use bine::{Page, html};

pub(super) fn page() -> impl Page {
    let (is_open, count) = (false, 2);
    html! {
        <nav aria-label="Chapters"><a href="/" aria-current="page">Start</a></nav>
        <div role="tablist"><button role="tab" aria-selected="true" aria-controls="one">One</button></div>
        <div role="tabpanel" id="one" hidden={!is_open}>"First"</div>
        <p role="status" aria-live="polite">{count} new</p>
        <progress max="10" value={count}>{count} of "10"</progress>
    }
}

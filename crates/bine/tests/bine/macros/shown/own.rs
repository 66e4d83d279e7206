//! Names of the page's own, each so that a reader sees it.

use bine::{Page, html};

pub(super) fn page() -> impl Page {
    let place = "Hallertau";
    html! {
        <my-map data-place={place} data-zoom="3"><p slot="title">{place}</p></my-map>
        <button "hx-get"="/rows" "@click"="open = true" data-on-load={place}>More</button>
        <template id="row"><tr><td></td></tr></template>
    }
}

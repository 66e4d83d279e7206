//! Custom elements and attributes, quoted where the name would otherwise be checked.

use bine::{Page, html};

pub(super) fn page() -> impl Page {
    let place = "Hallertau";
    html! {
        <my-map data-place={place} data-zoom="3"><p slot="title">{place}</p></my-map>
        <button "hx-get"="/rows" "@click"="open = true" data-on-load={place}>More</button>
        <template id="row"><tr><td></td></tr></template>
    }
}

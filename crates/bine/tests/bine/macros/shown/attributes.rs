//! Attributes with each type of value.

use bine::{Page, html};

pub(super) fn page() -> impl Page {
    let link = String::from("/search?a=1&b=\"2\"");
    let none: Option<&str> = None;
    html! {
        <a href={&link} title={link.len()} rel="next">"link"</a>
        <input type="checkbox" checked disabled={false} required={true} value={Some('<')} name={none}>
        <my-part data-row-id={7_u8} aria-label="it's" xml:lang="en" "@click"="go()"/>
        <button style="" hidden={Some(true)} inert={Some(false)} tabindex={-1}>"press"</button>
        <label for="x" class={format_args!("{}-{}", "a", 1.5)}>"label"</label>
    }
}

//! Elements that open and close without a script.

use bine::{Page, html};

pub(super) fn page() -> impl Page {
    let (is_open, parts) = (true, ["stem", "leaf"]);
    html! {
        <details open={is_open}><summary>"More & more"</summary><ul>{for part in parts { <li>{part}</li> }}</ul></details>
        <button popovertarget="menu" type="button">Menu</button>
        <div id="menu" popover="auto"><a href="/">Start</a></div>
        <dialog><form method="dialog"><button value="yes">Yes</button></form></dialog>
        <search><form action="/search"><input type="search" name="q"></form></search>
    }
}

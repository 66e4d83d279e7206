//! Rejected: malformed attributes.

use bine::{Page, html};

fn twice() -> impl Page {
    html!(<p class="a" id="b" class="c">one</p>)
}

fn bare_value() -> impl Page {
    html!(<p class=a>one</p>)
}

fn number() -> impl Page {
    html!(<td colspan=2>one</td>)
}

fn impossible_name() -> impl Page {
    html!(<p "a b"="c">one</p>)
}

fn unfinished() -> impl Page {
    html!(<p class="a")
}

fn main() {}

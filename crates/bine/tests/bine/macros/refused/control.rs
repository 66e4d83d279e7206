//! Rejected: incomplete loops and conditions.

use bine::{Page, html};

fn no_iterator(list: &[u8]) -> impl Page {
    html!({for item { <p>{item}</p> }})
}

fn no_body(flag: bool) -> impl Page {
    html!({if flag})
}

fn no_condition() -> impl Page {
    html!({if { yes }})
}

fn no_arm_body(count: u8) -> impl Page {
    html!({match count { 0 => none, _ => { some } }})
}

fn missing_arm(count: Option<u8>) -> impl Page {
    html!({match count { Some(count) => { {count} } }})
}

fn main() {}

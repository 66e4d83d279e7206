//! `if`, `else if`, `let` chains and `match`, nested.

use bine::{Flow, Html, Page, html};

pub(super) fn page() -> impl Page {
    html! {
        {for count in 0..5_u8 {
            {let_else(count)}
            <p>
                {if count == 0 { none } else if count == 1 { one } else { {count}" items" }}
                {if count > 3 { <b>"!"</b> }}
            </p>
            {match (count, count.checked_sub(2)) {
                (0, _) => { <i>"zero"</i> }
                (_, Some(0)) => { "two" },
                (n @ (3 | 4), Some(rest)) if rest > 1 => { {n}" is "{rest}" more" }
                _ => {}
            }}
        }}
    }
}

fn let_else(count: u8) -> impl Html<Flow> {
    let half = count.is_multiple_of(2).then_some(count / 2);
    html!({if let Some(half) = half && half > 0 { <u>{half}</u> } else { <s/> }})
}

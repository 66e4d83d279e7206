//! Loops over borrowed, owned and empty collections, nested and with patterns.

use std::collections::BTreeMap;

use bine::{Page, html};

pub(super) fn page() -> impl Page {
    let groups = BTreeMap::from([("b", vec![]), ("a", vec!["x&y", "z"])]);
    html! {
        <dl>
            {for (name, items) in &groups {
                <dt>{name}" ("{items.len()}")"</dt>
                {for (index, item) in items.iter().enumerate() { <dd id={index}>{item}</dd> }}
            }}
        </dl>
        {for _ in 0..3 { <br> }}
        {for letter in "abc".chars().rev() { {letter} }}
        {for nobody in Vec::<String>::new() { {nobody} }}
    }
}

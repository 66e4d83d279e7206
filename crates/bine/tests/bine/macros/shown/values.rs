//! Values of all types that a placeholder takes.

use std::borrow::Cow;
use std::rc::Rc;
use std::sync::Arc;

use bine::{Page, Query, Text, html, raw};

pub(super) fn page() -> impl Page {
    let text = String::from("twice");
    let nothing: Option<u8> = None;
    html! {
        <p>{text} {&text} {text.as_str()} {Text::from("<text>")} {Cow::Borrowed("cow")} {Box::new("box")}</p>
        <p>{'<'} {0} {-1} {u64::MAX} {i128::MIN} {1.5} {f64::INFINITY}</p>
        <p>{Some("some")} {nothing} {Some(Some('x'))} {Query(7)}</p>
        <p>{format_args!("{:>5}|{:?}", 1, "<")} {raw("<b>raw</b>")}</p>
        <p>{3 + 4} {if text.len() > 3 { long }} {{ let length = text.len(); length * 2 }}</p>
        <p>{Rc::<str>::from("<rc>")} {Arc::new(String::from("arc"))} {html!(<i>"page"</i>)} {vec![html!(<br>)]}</p>
        <p>{"a hole may hold a string with } and {"}</p>
    }
}

//! Decides how one of several is chosen on a page, and what happens then.

use bine_html::{Flow, Html, Phrasing};

use crate::service::Action;

/// A list of buttons, one for each of `items`: `show` says what is on it, `then` makes the [action](crate::action!) that it
/// is for.
///
/// ```
/// use bine::prelude::*;
///
/// fn forums(names: Vec<Text>) -> impl Html<Flow> {
///     choose(names, |name| html!({name}), |name| {
///         action!([name: Text] |_call| Replace::with(format!("/forum/{name}")))
///     })
/// }
/// # let _ = forums(vec!["hops".into()]);
/// ```
///
/// Each is a form of its own, in an item of a `<ul class="choices">`: it works by keyboard and without script, and a reader
/// of screens says how many there are.
pub fn choose<I, P>(
    items: I,
    show: impl Fn(I::Item) -> P,
    then: impl Fn(&I::Item) -> Action,
) -> impl Html<Flow>
where
    I: IntoIterator,
    P: Html<Phrasing>,
{
    crate::html! {
        <ul class="choices">
            {for item in items {
                <li><form method="post" action={then(&item)}><button>{show(item)}</button></form></li>
            }}
        </ul>
    }
}

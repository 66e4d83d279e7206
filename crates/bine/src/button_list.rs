//! A list of buttons, each with an action.

use bine_html::{Flow, Html, Page, Phrasing, Render, Writer};

use crate::service::Action;

/// Renders one button for each of `items`: `show` returns its label, `then` the
/// [action](crate::action!) that it runs.
///
/// ```
/// use bine::prelude::*;
///
/// fn forums(names: Vec<Text>) -> impl Html<Flow> {
///     button_list(names, |name| name, |name| {
///         action!([name: Text] |_call| Replace::with(format!("/forum/{name}")))
///     })
/// }
/// # let _ = forums(vec!["hops".into()]);
/// ```
///
/// Each button is a form in an item of a `<ul class="choices">`. The list works with the keyboard
/// and without script, and screen readers announce the number of choices.
pub fn button_list<I, L, K>(
    items: I,
    show: impl Fn(I::Item) -> L,
    then: impl Fn(&I::Item) -> Action,
) -> impl Html<Flow>
where
    I: IntoIterator,
    L: Label<K>,
{
    crate::html! {
        <ul class="choices">
            {for item in items {
                <li><form method="post" action={then(&item)}><button>{of(show(item))}</button></form></li>
            }}
        </ul>
    }
}

/// The label of a button: text, or markup as `html!(<b>{name}</b>)`. `Kind` only separates the two
/// implementations for the compiler, which infers it.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot stand on a button",
    note = "a button shows text, by itself and not in `html!`, or markup of phrasing content: `html!(<b>{{name}}</b>)`"
)]
pub trait Label<Kind> {
    #[doc(hidden)]
    fn write_label(self, writer: &mut Writer<'_>);
}

/// The kind of a [`Label`] that is text.
#[derive(Debug)]
pub enum TextLabel {}

/// The kind of a [`Label`] that is markup.
#[derive(Debug)]
pub enum MarkupLabel {}

impl<T: Render> Label<TextLabel> for T {
    fn write_label(self, writer: &mut Writer<'_>) {
        self.render(writer);
    }
}

impl<P: Html<Phrasing>> Label<MarkupLabel> for P {
    fn write_label(self, writer: &mut Writer<'_>) {
        Page::write(self, writer);
    }
}

fn of<K>(label: impl Label<K>) -> impl Html<Phrasing> {
    bine_html::page::<Phrasing, _>(move |writer: &mut Writer<'_>| label.write_label(writer))
}

//! The parts of the pages of accounts: fields with their messages, and the frame around them.

use super::denial::Denial;
use super::visit::Visit;
use crate::html;
use crate::respond::{PageExt, Response};
use crate::text::Text;
use crate::visitor_message::AccountMessage;
use crate::{Flow, Html};

/// An input of a form.
#[derive(Clone)]
pub(super) struct FormInput {
    /// The name, and the id of the input.
    pub(super) name: &'static str,
    pub(super) label: AccountMessage,
    /// The type of the input.
    pub(super) kind: &'static str,
    pub(super) autocomplete: &'static str,
    pub(super) hint: Option<AccountMessage>,
    pub(super) value: String,
    pub(super) is_required: bool,
    /// Distinguishes inputs of the same name on one page.
    pub(super) form: &'static str,
}

impl FormInput {
    /// A required input.
    pub(super) const fn new(name: &'static str, label: AccountMessage, kind: &'static str) -> Self {
        Self {
            name,
            label,
            kind,
            autocomplete: "off",
            hint: None,
            value: String::new(),
            is_required: true,
            form: "",
        }
    }

    pub(super) fn autocomplete(self, autocomplete: &'static str) -> Self {
        Self { autocomplete, ..self }
    }

    pub(super) fn hint(self, hint: AccountMessage) -> Self {
        Self { hint: Some(hint), ..self }
    }

    pub(super) fn value(self, value: impl Into<String>) -> Self {
        Self { value: value.into(), ..self }
    }

    pub(super) fn optional(self) -> Self {
        Self { is_required: false, ..self }
    }

    /// Puts the input into one of several forms of a page.
    pub(super) fn of_form(self, form: &'static str) -> Self {
        Self { form, ..self }
    }

    /// Renders the input with its label, its hint and what is wrong with it.
    pub(super) fn show(self, visit: &Visit, denial: Option<&Denial>) -> impl Html<Flow> + use<> {
        let Self { name, label, kind, autocomplete, hint, value, is_required, form } = self;
        let label = visit.say(label);
        let reason = match denial {
            Some(Denial::Invalid(fields)) => fields.iter().find(|(field, _)| *field == name),
            _ => None,
        };
        let reason = reason.map(|(_, reason)| visit.sentence(&label, reason));
        let id = if form.is_empty() { name.to_owned() } else { format!("{form}-{name}") };
        let (hint_id, wrong_id) = (format!("{id}-hint"), format!("{id}-wrong"));
        let described = [(hint.is_some(), &hint_id), (reason.is_some(), &wrong_id)];
        let described: Vec<&str> =
            described.into_iter().filter(|(is_shown, _)| *is_shown).map(|(_, id)| &**id).collect();
        let described = (!described.is_empty()).then(|| described.join(" "));
        let invalid = reason.is_some().then_some("true");
        // A password is never sent back.
        let value = Some(value).filter(|value| !value.is_empty() && kind != "password");
        let (hint, label_for) = (hint.map(|hint| visit.say(hint)), id.clone());
        html! {
            <div class="field">
                <label for={label_for}>{label}</label>
                <input id={id} name={name} type={kind} autocomplete={autocomplete} value={value}
                    required={is_required} aria-describedby={described} aria-invalid={invalid}>
                {if let Some(hint) = hint { <p class="hint" id={hint_id}>{hint}</p> }}
                {if let Some(reason) = reason { <p class="wrong" id={wrong_id}>{reason}</p> }}
            </div>
        }
    }
}

/// The hidden name of the account, by which password managers find the password of a form.
pub(super) fn user_name(name: &Text) -> impl Html<Flow> + use<> {
    let name = name.clone();
    html!(<input type="text" name="username" autocomplete="username" value={name} hidden>)
}

/// The text of a page above its form.
pub(super) enum Notice {
    None,
    /// Something was done.
    Done(AccountMessage),
}

/// Renders a page of accounts. Its URL may contain a secret, which must not reach another site, and
/// no cache stores it.
pub(super) fn page(
    visit: &Visit,
    title: AccountMessage,
    notice: &Notice,
    denial: Option<&Denial>,
    content: impl Html<Flow> + Send + 'static,
) -> Response {
    let style = visit.directory.settings.path(STYLE);
    let title = visit.say(title);
    let done = match notice {
        Notice::Done(done) => Some(visit.say(done.clone())),
        Notice::None => None,
    };
    let alert = denial.map(|denial| visit.text(&denial.message()));
    let heading = title.clone();
    let page = html! {
        <section class="account">
            <link rel="stylesheet" href={style}>
            <h1>{heading}</h1>
            {if let Some(done) = done { <p class="done" role="status">{done}</p> }}
            {if let Some(alert) = alert { <p class="alert" role="alert">{alert}</p> }}
            {content}
        </section>
    };
    let response = page
        .with_title(title)
        .with_header("Cache-Control", "no-store")
        .with_header("Referrer-Policy", "no-referrer");
    let response = match denial {
        Some(denial) => response.with_status(denial.status()),
        None => response,
    };
    match denial.and_then(Denial::retry_after) {
        Some(seconds) => response.with_header("Retry-After", seconds.to_string()).into(),
        None => response.into(),
    }
}

/// The path of the style sheet of these pages.
pub(super) const STYLE: &str = "/accounts/style.css";

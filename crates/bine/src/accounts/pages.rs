//! The pages where visitors sign up and log in, and set a forgotten password.

use super::denial::Denial;
use super::form::{FormInput, Notice, page, user_name};
use super::settings::SignUp;
use super::sign_up::SignUpFields;
use super::visit::Visit;
use crate::arguments::{Form, Path, Query};
use crate::origin::is_path;
use crate::percent_encoding::percent_encode;
use crate::respond::Response;
use crate::route::{Endpoint as _, Route};
use crate::text::Text;
use crate::visitor_message::AccountMessage;
use crate::{html, page as endpoint};

/// The routes of these pages.
pub(super) fn routes() -> Vec<Route> {
    vec![
        sign_up_page.route(),
        sign_up.route(),
        log_in_page.route(),
        log_in.route(),
        log_out_page.route(),
        log_out.route(),
        forgot_page.route(),
        forgot.route(),
        reset_page.route(),
        reset.route(),
        confirm_page.route(),
        confirm.route(),
    ]
}

/// An optional field of a form or a query, as text.
type Optional = Option<Text>;

fn text(field: Optional) -> String {
    field.map(String::from).unwrap_or_default()
}

#[endpoint("/sign-up", crate = crate)]
async fn sign_up_page(visit: Visit, invitation: Query<Optional>) -> Response {
    let fields = SignUpFields { invitation: text(invitation.0), ..SignUpFields::default() };
    show_sign_up(&visit, &fields, None)
}

#[endpoint(POST "/sign-up", crate = crate)]
async fn sign_up(
    visit: Visit,
    name: Form<Optional>,
    email: Form<Optional>,
    password: Form<Optional>,
    invitation: Form<Optional>,
) -> Response {
    let fields = SignUpFields {
        name: text(name.0),
        email: text(email.0),
        password: text(password.0),
        invitation: text(invitation.0),
    };
    match visit.sign_up(&fields).await {
        Ok(row) => {
            let response = Response::see_other(visit.directory.settings.path("/account"));
            with_device(&visit, row.id.row(), response)
        }
        Err(denial) => show_sign_up(&visit, &fields, Some(&denial)),
    }
}

fn show_sign_up(visit: &Visit, fields: &SignUpFields, denial: Option<&Denial>) -> Response {
    let say = visit.words();
    let settings = &visit.directory.settings;
    let is_closed = settings.sign_up == SignUp::Closed
        || settings.sign_up == SignUp::ByInvitation && fields.invitation.is_empty();
    let refused = match settings.sign_up {
        SignUp::Closed => Denial::Forbidden(AccountMessage::Closed {}),
        _ => Denial::Forbidden(AccountMessage::NeedsInvitation {}),
    };
    let denial = denial.or(is_closed.then_some(&refused));
    let name = FormInput::new("name", AccountMessage::Name {}, "text")
        .autocomplete("username")
        .hint(AccountMessage::NameHint {})
        .value(&fields.name);
    let email = FormInput::new("email", AccountMessage::Email {}, "email")
        .autocomplete("email")
        .value(&fields.email);
    let email = if settings.requires_email {
        email
    } else {
        email.optional().hint(AccountMessage::EmailHint {})
    };
    let minimum = settings.minimum;
    let password = FormInput::new("password", AccountMessage::Password {}, "password")
        .autocomplete("new-password")
        .hint(AccountMessage::PasswordHint { least: minimum });
    let (action, log_in) = (settings.path("/sign-up"), settings.path("/log-in"));
    let (name, email, password) =
        (name.show(visit, denial), email.show(visit, denial), password.show(visit, denial));
    let invitation = Some(fields.invitation.clone()).filter(|text| !text.is_empty());
    let content = html! {
        {if !is_closed {
            <form method="post" action={action}>
                {name}
                {email}
                {password}
                {if let Some(invitation) = invitation { <input type="hidden" name="invitation" value={invitation}> }}
                <button>{say(AccountMessage::SignUp {})}</button>
            </form>
        }}
        <p class="links">{say(AccountMessage::HaveAccount {})}" "<a href={log_in}>{say(AccountMessage::LogIn {})}</a></p>
    };
    page(visit, AccountMessage::SignUp {}, &Notice::None, denial, content)
}

#[endpoint("/log-in", crate = crate)]
async fn log_in_page(visit: Visit, next: Query<Optional>, done: Query<Optional>) -> Response {
    let notice = match done.0.as_deref() {
        Some("reset") => Notice::Done(AccountMessage::PasswordReset {}),
        Some("removed") => Notice::Done(AccountMessage::Removed {}),
        _ => Notice::None,
    };
    show_log_in(&visit, &notice, "", &text(next.0), None)
}

#[endpoint(POST "/log-in", crate = crate)]
async fn log_in(
    visit: Visit,
    name: Form<Optional>,
    password: Form<Optional>,
    remember: Form<Optional>,
    next: Form<Optional>,
) -> Response {
    let (name, password, next) = (text(name.0), text(password.0), text(next.0));
    match visit.log_in(&name, &password, remember.0.is_some()).await {
        Ok(row) => {
            let next =
                if is_path(&next) { next } else { visit.directory.settings.path("/account") };
            with_device(&visit, row.id.row(), Response::see_other(next))
        }
        Err(denial) => show_log_in(&visit, &Notice::None, &name, &next, Some(&denial)),
    }
}

fn show_log_in(
    visit: &Visit,
    notice: &Notice,
    name: &str,
    next: &str,
    denial: Option<&Denial>,
) -> Response {
    let say = visit.words();
    let settings = &visit.directory.settings;
    let name = FormInput::new("name", AccountMessage::NameOrEmail {}, "text")
        .autocomplete("username")
        .value(name);
    let password = FormInput::new("password", AccountMessage::Password {}, "password")
        .autocomplete("current-password");
    let (name, password) = (name.show(visit, denial), password.show(visit, denial));
    let (action, forgot) = (settings.path("/log-in"), settings.path("/forgot-password"));
    let sign_up = (settings.sign_up == SignUp::Open).then(|| settings.path("/sign-up"));
    let next = Some(next.to_owned()).filter(|next| is_path(next));
    let content = html! {
        <form method="post" action={action}>
            {name}
            {password}
            <p class="check"><input type="checkbox" id="remember" name="remember" value="on"><label for="remember">{say(AccountMessage::Remember {})}</label></p>
            {if let Some(next) = next { <input type="hidden" name="next" value={next}> }}
            <button>{say(AccountMessage::LogIn {})}</button>
        </form>
        <p class="links"><a href={forgot}>{say(AccountMessage::ForgotPassword {})}</a>
            {if let Some(sign_up) = sign_up { " " <a href={sign_up}>{say(AccountMessage::SignUp {})}</a> }}</p>
    };
    page(visit, AccountMessage::LogIn {}, notice, denial, content)
}

#[endpoint("/log-out", crate = crate)]
async fn log_out_page(visit: Visit) -> Response {
    let say = visit.words();
    let action = visit.directory.settings.path("/log-out");
    let content = html!(<form method="post" action={action}><button>{say(AccountMessage::LogOut {})}</button></form>);
    page(&visit, AccountMessage::LogOut {}, &Notice::None, None, content)
}

#[endpoint(POST "/log-out", crate = crate)]
async fn log_out(visit: Visit) -> Response {
    let say = visit.words();
    match visit.session.log_out().await {
        Ok(()) => Response::see_other(visit.directory.settings.path("/log-in")),
        Err(error) => {
            let denial = Denial::from(error);
            page(
                &visit,
                AccountMessage::LogOut {},
                &Notice::None,
                Some(&denial),
                html!(<p>{say(AccountMessage::StillLoggedIn {})}</p>),
            )
        }
    }
}

#[endpoint("/forgot-password", crate = crate)]
async fn forgot_page(visit: Visit) -> Response {
    show_forgot(&visit, &Notice::None, None)
}

#[endpoint(POST "/forgot-password", crate = crate)]
async fn forgot(visit: Visit, email: Form<Optional>) -> Response {
    let sent = Notice::Done(AccountMessage::LinkSent {});
    match visit.forgot_password(&text(email.0)) {
        Ok(()) => show_forgot(&visit, &sent, None),
        Err(denial) => show_forgot(&visit, &Notice::None, Some(&denial)),
    }
}

fn show_forgot(visit: &Visit, notice: &Notice, denial: Option<&Denial>) -> Response {
    let say = visit.words();
    let settings = &visit.directory.settings;
    let email = FormInput::new("email", AccountMessage::Email {}, "email")
        .autocomplete("email")
        .hint(AccountMessage::ForgottenHint {});
    let (email, action) = (email.show(visit, denial), settings.path("/forgot-password"));
    let log_in = settings.path("/log-in");
    let content = html! {
        <form method="post" action={action}>{email}<button>{say(AccountMessage::SendLink {})}</button></form>
        <p class="links"><a href={log_in}>{say(AccountMessage::LogIn {})}</a></p>
    };
    page(visit, AccountMessage::ForgottenTitle {}, notice, denial, content)
}

#[endpoint("/reset-password/{link}", crate = crate)]
async fn reset_page(visit: Visit, link: Path<Text>) -> Response {
    let denial = visit.reset(&link).err();
    show_reset(&visit, &link, denial.as_ref())
}

#[endpoint(POST "/reset-password/{link}", crate = crate)]
async fn reset(visit: Visit, link: Path<Text>, new_password: Form<Optional>) -> Response {
    match visit.reset_password(&link, &text(new_password.0)).await {
        Ok(row) => {
            let next = visit.directory.settings.path("/log-in?done=reset");
            with_device(&visit, row.id.row(), Response::see_other(next))
        }
        Err(denial) => show_reset(&visit, &link, Some(&denial)),
    }
}

fn show_reset(visit: &Visit, link: &str, denial: Option<&Denial>) -> Response {
    let say = visit.words();
    let settings = &visit.directory.settings;
    let is_dead = matches!(denial, Some(Denial::DeadLink));
    let password = FormInput::new("new_password", AccountMessage::NewPassword {}, "password")
        .autocomplete("new-password")
        .hint(AccountMessage::ResetHint { least: settings.minimum });
    let password = password.show(visit, denial);
    let name = visit.reset(link).ok().map(|row| user_name(&row.name));
    let action = settings.path(&format!("/reset-password/{}", percent_encode(link)));
    let forgot = settings.path("/forgot-password");
    let content = html! {
        {if is_dead {
            <p><a href={forgot}>{say(AccountMessage::AskForLink {})}</a></p>
        } else {
            <form method="post" action={action}>{name}{password}<button>{say(AccountMessage::SetPassword {})}</button></form>
        }}
    };
    page(visit, AccountMessage::NewPassword {}, &Notice::None, denial, content)
}

#[endpoint("/confirm-email/{link}", crate = crate)]
async fn confirm_page(visit: Visit, link: Path<Text>) -> Response {
    let say = visit.words();
    let action =
        visit.directory.settings.path(&format!("/confirm-email/{}", percent_encode(&link)));
    match visit.confirmation(&link) {
        Ok((_, email)) => {
            // Programs that check mails open links: only the button confirms.
            let content = html! {
                <form method="post" action={action}>
                    <p>{say(AccountMessage::ConfirmQuestion { email: email.to_string() })}</p>
                    <button>{say(AccountMessage::Confirm {})}</button>
                </form>
            };
            page(&visit, AccountMessage::ConfirmTitle {}, &Notice::None, None, content)
        }
        Err(denial) => dead_confirmation(&visit, &denial),
    }
}

#[endpoint(POST "/confirm-email/{link}", crate = crate)]
async fn confirm(visit: Visit, link: Path<Text>) -> Response {
    let say = visit.words();
    match visit.confirm_email(&link).await {
        Ok(_) => {
            let account = visit.directory.settings.path("/account");
            let content = html!(<p><a href={account}>{say(AccountMessage::Yours {})}</a></p>);
            let notice = Notice::Done(AccountMessage::EmailConfirmed {});
            page(&visit, AccountMessage::ConfirmTitle {}, &notice, None, content)
        }
        Err(denial) => dead_confirmation(&visit, &denial),
    }
}

fn dead_confirmation(visit: &Visit, denial: &Denial) -> Response {
    let say = visit.words();
    let account = visit.directory.settings.path("/account");
    let content = html!(<p><a href={account}>{say(AccountMessage::Yours {})}</a></p>);
    page(visit, AccountMessage::ConfirmTitle {}, &Notice::None, Some(denial), content)
}

/// Adds the cookie that makes this device known to the account.
pub(super) fn with_device(
    visit: &Visit,
    account: crate::store::RowId,
    response: Response,
) -> Response {
    match visit.device_field(account) {
        Some(field) => response.with_header("Set-Cookie", field),
        None => response,
    }
}

//! The services of accounts, for clients that send and read JSON. They run the same code as the
//! pages.

use serde_json::{Map, Value, json};

use super::account_row::AccountRow;
use super::denial::Denial;
use super::pages::with_device;
use super::sign_up::SignUpFields;
use super::visit::Visit;
use crate::error::Error;
use crate::respond::Response;
use crate::route::Route;
use crate::service;
use crate::service::{Callable as _, Caller};
use crate::sessions::SessionInfo;
use crate::store::RowId;
use crate::text::Text;

/// The routes of the services.
pub(super) fn routes() -> Vec<Route> {
    vec![
        sign_up.service().route(),
        log_in.service().route(),
        log_out.service().route(),
        show.service().route(),
        change_password.service().route(),
        change_email.service().route(),
        set_preferences.service().route(),
        sessions.service().route(),
        end_session.service().route(),
        end_other_sessions.service().route(),
        forgot_password.service().route(),
        reset_password.service().route(),
        confirm_email.service().route(),
        remove.service().route(),
    ]
}

/// An account as a service returns it.
fn view(row: &AccountRow) -> Value {
    json!({
        "name": row.name,
        "email": row.email,
        "pending_email": row.pending_email,
        "created": row.created,
        "preferences": row.preferences(),
    })
}

/// A session as a service returns it.
fn view_session(session: &SessionInfo) -> Value {
    json!({
        "id": session.id,
        "created": session.created,
        "last_used": session.last_used,
        "is_current": session.is_current,
    })
}

fn respond(value: &Value) -> Response {
    let bytes = value.to_string().into_bytes();
    Response::bytes("application/json", bytes).with_header("Cache-Control", "no-store")
}

fn answer(outcome: Result<(), Denial>) -> Result<Response, Error> {
    match outcome {
        Ok(()) => Ok(Response::status(bine_http::Status::NO_CONTENT)),
        Err(denial) => denial.into_response(),
    }
}

#[service("/accounts/sign-up", who = "anyone", crate = crate)]
async fn sign_up(
    caller: Caller,
    name: Text,
    email: Option<Text>,
    password: Text,
    invitation: Option<Text>,
) -> Result<Response, Error> {
    let visit = Visit::of_caller(&caller)?;
    let optional = |text: Option<Text>| text.map(String::from).unwrap_or_default();
    let fields = SignUpFields {
        name: name.into(),
        email: optional(email),
        password: password.into(),
        invitation: optional(invitation),
    };
    match visit.sign_up(&fields).await {
        Ok(row) => Ok(with_device(&visit, row.id.row(), respond(&view(&row)))),
        Err(denial) => denial.into_response(),
    }
}

#[service("/accounts/log-in", who = "anyone", crate = crate)]
async fn log_in(
    caller: Caller,
    name: Text,
    password: Text,
    remember: Option<bool>,
) -> Result<Response, Error> {
    let visit = Visit::of_caller(&caller)?;
    match visit.log_in(&name, &password, remember.unwrap_or(false)).await {
        Ok(row) => Ok(with_device(&visit, row.id.row(), respond(&view(&row)))),
        Err(denial) => denial.into_response(),
    }
}

#[service("/accounts/log-out", who = "anyone", crate = crate)]
async fn log_out(caller: Caller) -> Result<Response, Error> {
    let logged_out = Visit::of_caller(&caller)?.session.log_out().await;
    answer(logged_out.map_err(Denial::from))
}

#[service("/accounts/me", safe, who = "user", crate = crate)]
async fn show(caller: Caller) -> Result<Response, Error> {
    match Visit::of_caller(&caller)?.account() {
        Ok(row) => Ok(respond(&view(&row))),
        Err(denial) => denial.into_response(),
    }
}

#[service("/accounts/change-password", who = "user", crate = crate)]
async fn change_password(
    caller: Caller,
    current_password: Text,
    new_password: Text,
) -> Result<Response, Error> {
    let visit = Visit::of_caller(&caller)?;
    answer(visit.change_password(&current_password, &new_password).await)
}

#[service("/accounts/change-email", who = "user", crate = crate)]
async fn change_email(
    caller: Caller,
    current_password: Text,
    email: Text,
) -> Result<Response, Error> {
    let visit = Visit::of_caller(&caller)?;
    answer(visit.change_email(&current_password, &email).await)
}

#[service("/accounts/set-preferences", who = "user", crate = crate)]
async fn set_preferences(
    caller: Caller,
    preferences: Map<String, Value>,
) -> Result<Response, Error> {
    let visit = Visit::of_caller(&caller)?;
    let stored = visit.set_preferences(move |all| all.clone_from(&preferences));
    answer(stored.await)
}

#[service("/accounts/sessions", safe, who = "user", crate = crate)]
async fn sessions(caller: Caller) -> Result<Response, Error> {
    let all = Visit::of_caller(&caller)?.session.all();
    Ok(respond(&all.iter().map(view_session).collect()))
}

#[service("/accounts/end-session", who = "user", crate = crate)]
async fn end_session(
    caller: Caller,
    current_password: Text,
    session: RowId,
) -> Result<Response, Error> {
    let visit = Visit::of_caller(&caller)?;
    answer(visit.end_session(&current_password, Some(session)).await)
}

#[service("/accounts/end-other-sessions", who = "user", crate = crate)]
async fn end_other_sessions(caller: Caller, current_password: Text) -> Result<Response, Error> {
    let visit = Visit::of_caller(&caller)?;
    answer(visit.end_session(&current_password, None).await)
}

#[service("/accounts/forgot-password", who = "anyone", crate = crate)]
async fn forgot_password(caller: Caller, email: Text) -> Result<Response, Error> {
    answer(Visit::of_caller(&caller)?.forgot_password(&email))
}

#[service("/accounts/reset-password", who = "anyone", crate = crate)]
async fn reset_password(caller: Caller, link: Text, new_password: Text) -> Result<Response, Error> {
    let visit = Visit::of_caller(&caller)?;
    match visit.reset_password(&link, &new_password).await {
        Ok(row) => Ok(with_device(&visit, row.id.row(), answer(Ok(()))?)),
        Err(denial) => denial.into_response(),
    }
}

#[service("/accounts/confirm-email", who = "anyone", crate = crate)]
async fn confirm_email(caller: Caller, link: Text) -> Result<Response, Error> {
    let visit = Visit::of_caller(&caller)?;
    answer(visit.confirm_email(&link).await.map(drop))
}

#[service("/accounts/remove", who = "user", crate = crate)]
async fn remove(caller: Caller, current_password: Text) -> Result<Response, Error> {
    let visit = Visit::of_caller(&caller)?;
    answer(visit.remove_account(&current_password).await)
}

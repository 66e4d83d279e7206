//! The page where users change their account.

use super::account_row::AccountRow;
use super::denial::Denial;
use super::form::{FormInput, Notice, page, user_name};
use super::pages::with_device;
use super::visit::Visit;
use crate::arguments::{Form, FromRequest, Needs, Query, Rejection, RequestParts, form_fields};
use crate::respond::Response;
use crate::route::{Endpoint as _, Route};
use crate::sessions::SessionInfo;
use crate::store::{RowId, Time};
use crate::text::Text;
use crate::visitor_message::{AccountMessage, VisitorMessage};
use crate::{html, page as endpoint};

/// The routes of this page and its forms.
pub(super) fn routes() -> Vec<Route> {
    vec![
        account_page.route(),
        change_password.route(),
        change_email.route(),
        set_preferences.route(),
        end_sessions.route(),
        remove.route(),
    ]
}

type Optional = Option<Text>;

/// The switches that are on in a form.
struct Switches(Vec<String>);

impl FromRequest for Switches {
    fn from_request(request: &mut RequestParts<'_>, name: &'static str) -> Result<Self, Rejection> {
        let kind = request.incoming.head.field_text("content-type").unwrap_or_default();
        let fields = form_fields(kind, &request.body(name)?);
        let fields = fields.map_err(|reason| Rejection::invalid(name, reason))?;
        let switches = fields.into_iter().filter(|(field, _)| field == "switch");
        Ok(Self(switches.map(|(_, value)| value).collect()))
    }

    fn needs(needs: &mut Needs) {
        needs.body(MAX_FORM);
    }
}

/// The most bytes of a form with switches.
const MAX_FORM: u64 = 64 << 10;

fn text(field: Optional) -> String {
    field.map(String::from).unwrap_or_default()
}

#[endpoint("/account", crate = crate)]
async fn account_page(visit: Visit, done: Query<Optional>) -> Response {
    let notice = match done.0.as_deref() {
        Some("password") => Notice::Done(AccountMessage::PasswordChanged {}),
        Some("email") => Notice::Done(AccountMessage::EmailSent {}),
        Some("preferences") => Notice::Done(AccountMessage::PreferencesStored {}),
        Some("sessions") => Notice::Done(AccountMessage::SessionEnded {}),
        _ => Notice::None,
    };
    show(&visit, &notice, "", None)
}

#[endpoint(POST "/account/password", crate = crate)]
async fn change_password(
    visit: Visit,
    current_password: Form<Optional>,
    new_password: Form<Optional>,
) -> Response {
    let (current, new) = (text(current_password.0), text(new_password.0));
    let changed = visit.change_password(&current, &new).await;
    answer(&visit, "password", changed)
}

#[endpoint(POST "/account/email", crate = crate)]
async fn change_email(
    visit: Visit,
    current_password: Form<Optional>,
    email: Form<Optional>,
) -> Response {
    let changed = visit.change_email(&text(current_password.0), &text(email.0)).await;
    answer(&visit, "email", changed)
}

#[endpoint(POST "/account/preferences", crate = crate)]
async fn set_preferences(visit: Visit, switches: Switches) -> Response {
    let Switches(on) = switches;
    let names: Vec<Text> =
        visit.directory.settings.switches.iter().map(|(name, _)| name.clone()).collect();
    let stored = visit.set_preferences(move |preferences| {
        for name in &names {
            let is_on = on.iter().any(|one| *one == **name);
            preferences.insert(name.to_string(), is_on.into());
        }
    });
    answer(&visit, "preferences", stored.await)
}

#[endpoint(POST "/account/sessions", crate = crate)]
async fn end_sessions(
    visit: Visit,
    current_password: Form<Optional>,
    session: Form<Optional>,
) -> Response {
    let which = text(session.0);
    let session = match &*which {
        "others" => Ok(None),
        number => number
            .parse()
            .map(Some)
            .map_err(|_| Denial::of_field("session", VisitorMessage::Missing {})),
    };
    let ended = match session {
        Ok(session) => visit.end_session(&text(current_password.0), session).await,
        Err(denial) => Err(denial),
    };
    answer(&visit, "sessions", ended)
}

#[endpoint(POST "/account/remove", crate = crate)]
async fn remove(visit: Visit, current_password: Form<Optional>) -> Response {
    match visit.remove_account(&text(current_password.0)).await {
        Ok(()) => Response::see_other(visit.directory.settings.path("/log-in?done=removed")),
        Err(denial) => show(&visit, &Notice::None, "remove", Some(&denial)),
    }
}

/// The answer to a form: back to the page, or the page with what is wrong.
fn answer(visit: &Visit, form: &'static str, outcome: Result<(), Denial>) -> Response {
    match outcome {
        Ok(()) => {
            let next = Response::see_other(
                visit.directory.settings.path(&format!("/account?done={form}")),
            );
            match visit.account() {
                Ok(row) if form == "password" => with_device(visit, row.id.row(), next),
                _ => next,
            }
        }
        Err(denial) => show(visit, &Notice::None, form, Some(&denial)),
    }
}

/// Renders the page. It is long because it has six forms. `form` names the one that `denial` is about.
fn show(visit: &Visit, notice: &Notice, form: &str, denial: Option<&Denial>) -> Response {
    let say = visit.words();
    let settings = &visit.directory.settings;
    let Ok(row) = visit.account() else {
        let next = settings.path("/account");
        return Response::see_other(settings.path("/log-in?next=") + &next);
    };
    let of = |name: &str| denial.filter(|_| form == name);
    let AccountRow { name, email, pending_email, is_declared, .. } = &row;
    let current = |form| {
        FormInput::new("current_password", AccountMessage::CurrentPassword {}, "password")
            .autocomplete("current-password")
            .of_form(form)
            .show(visit, of(form))
    };
    let new_password = FormInput::new("new_password", AccountMessage::NewPassword {}, "password")
        .autocomplete("new-password")
        .hint(AccountMessage::NewPasswordHint { least: settings.minimum })
        .show(visit, of("password"));
    let new_email = FormInput::new("email", AccountMessage::Email {}, "email")
        .autocomplete("email")
        .value(pending_email.as_ref().or(email.as_ref()).map_or("", |email| email))
        .optional()
        .show(visit, of("email"));
    let email_state = match (email, pending_email) {
        (_, Some(pending)) => {
            Some(visit.say(AccountMessage::EmailPending { email: pending.to_string() }))
        }
        (Some(email), None) => {
            Some(visit.say(AccountMessage::EmailIsConfirmed { email: email.to_string() }))
        }
        (None, None) => None,
    };
    let preferences = row.preferences();
    let switches: Vec<(String, String, bool)> = settings
        .switches
        .iter()
        .map(|(name, label)| {
            let is_on = preferences.get(&**name).and_then(serde_json::Value::as_bool);
            (name.to_string(), label.to_string(), is_on.unwrap_or(false))
        })
        .collect();
    let sessions: Vec<(RowId, String)> =
        visit.session.all().into_iter().map(|one| (one.id, visit.say(describe(&one)))).collect();
    let paths = ["password", "email", "preferences", "sessions", "remove"]
        .map(|page| settings.path(&format!("/account/{page}")));
    let [password_path, email_path, preferences_path, sessions_path, remove_path] = paths;
    let (log_out, name, is_own) = (settings.path("/log-out"), name.clone(), !is_declared);
    let has_switches = !switches.is_empty();
    let (of_password, of_email, of_sessions, of_removal) =
        (current("password"), current("email"), current("sessions"), current("remove"));
    let [for_password, for_email, for_sessions, for_removal] = [(); 4].map(|()| user_name(&name));
    let content = html! {
        <p>{say(AccountMessage::LoggedInAs {})}" "<b>{name}</b>"."</p>
        <form method="post" action={log_out}><button class="quiet">{say(AccountMessage::LogOut {})}</button></form>
        {if is_own {
            <h2 id="password">{say(AccountMessage::Password {})}</h2>
            <form method="post" action={password_path} aria-labelledby="password">
                {for_password}{of_password}{new_password}<button>{say(AccountMessage::ChangePassword {})}</button>
            </form>
            <h2 id="email-address">{say(AccountMessage::Email {})}</h2>
            <form method="post" action={email_path} aria-labelledby="email-address">
                {if let Some(state) = email_state { <p class="hint">{state}</p> }}
                {for_email}{new_email}{of_email}<button>{say(AccountMessage::ChangeEmail {})}</button>
            </form>
        }}
        {if has_switches {
            <h2 id="preferences">{say(AccountMessage::Preferences {})}</h2>
            <form method="post" action={preferences_path} aria-labelledby="preferences">
                {for (name, label, is_on) in switches {
                    {let id = format!("preference-{name}");}
                    {let label_for = id.clone();}
                    <p class="check"><input type="checkbox" id={id} name="switch" value={name} checked={is_on}><label for={label_for}>{label}</label></p>
                }}
                <button>{say(AccountMessage::StorePreferences {})}</button>
            </form>
        }}
        <h2 id="sessions">{say(AccountMessage::Sessions {})}</h2>
        <form method="post" action={sessions_path} aria-labelledby="sessions">
            <ul class="sessions">
                {for (id, label) in sessions {
                    <li>{label}" "<button class="quiet" name="session" value={id.to_string()}>{say(AccountMessage::EndSession {})}</button></li>
                }}
            </ul>
            {for_sessions}{of_sessions}
            <button class="quiet" name="session" value="others">{say(AccountMessage::EndOthers {})}</button>
        </form>
        {if is_own {
            <h2 id="removal">{say(AccountMessage::RemovalTitle {})}</h2>
            <form method="post" action={remove_path} aria-labelledby="removal">
                {for_removal}{of_removal}<button class="danger">{say(AccountMessage::Remove {})}</button>
            </form>
        }}
    };
    page(visit, AccountMessage::Yours {}, notice, denial, content)
}

/// A session in words.
fn describe(session: &SessionInfo) -> AccountMessage {
    let time = |time: Time| time.to_string().chars().take(16).collect::<String>().replace('T', " ");
    let (created, last_used) = (time(session.created), time(session.last_used));
    if session.is_current {
        AccountMessage::ThisSession { created, last_used }
    } else {
        AccountMessage::OtherSession { created, last_used }
    }
}

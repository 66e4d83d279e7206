//! Tests of accounts in a running program.

use std::sync::{Arc, Mutex};

use serde_json::{Value, json};

use super::directory::AccountDirectory;
use super::sign_up::invitation;
use super::{Accounts, HashingCost, Mail, MailKind, SignUp};
use crate::arguments::State;
use crate::error::Error;
use crate::sessions::User;
use crate::store::{Time, Transaction};
use crate::test::{Client, Method, Reply, Site, Tab};
use crate::{Account, App, Page, html, page};

const PASSWORD: &str = "hop vines in May";

/// Cheap hashes: tests of the default cost are those of its figures.
fn accounts() -> Accounts {
    Accounts::new().hashing_cost(HashingCost::new(8, 1)).switch("news", "Send me news")
}

#[page("/who", crate = crate)]
async fn who(user: Option<User>) -> impl Page {
    let name = user.map_or_else(|| "nobody".to_owned(), |user| user.to_string());
    html!(<p id="who">{name}</p>)
}

#[page("/mine", crate = crate)]
async fn mine(account: Account) -> impl Page {
    let news =
        account.preference::<bool>("news").map_or("unset", |on| if on { "on" } else { "off" });
    let (name, email) = (account.name().clone(), account.email().cloned());
    html!(<p id="mine">{name}" "{email}" "{news}</p>)
}

fn site(accounts: Accounts) -> Site {
    Site::new(App::new().accounts(accounts).page(who).page(mine).development(true))
}

/// A site that keeps its mails.
fn mailing_site() -> (Site, Arc<Mutex<Vec<Mail>>>) {
    let mails = Arc::new(Mutex::new(Vec::new()));
    let kept = Arc::clone(&mails);
    let send = move |mail: Mail| {
        kept.lock().unwrap().push(mail);
        async { Ok::<(), Error>(()) }
    };
    (site(accounts().mail(send)), mails)
}

/// Waits for the mail of this kind to this address, and removes it.
fn mail(mails: &Mutex<Vec<Mail>>, kind: MailKind, to: &str) -> Mail {
    loop {
        let mut all = mails.lock().unwrap();
        if let Some(place) = all.iter().position(|mail| mail.kind == kind && &*mail.to == to) {
            return all.remove(place);
        }
        drop(all);
        std::thread::yield_now();
    }
}

fn path(mail: &Mail) -> String {
    let link = mail.link.as_deref().expect("the mail has a link");
    let (_, rest) = link.split_once("://").expect("it is an address");
    rest[rest.find('/').expect("it has a path")..].to_owned()
}

#[track_caller]
fn sign_up(site: &Site, name: &str, email: &str) -> Tab {
    let mut tab = site.visit("/sign-up");
    tab.submit("form", [("name", name), ("email", email), ("password", PASSWORD)]);
    tab.expect("h1", "Your account");
    tab
}

fn log_in(client: &Client, name: &str, password: &str) -> Reply {
    client.post_json("/accounts/log-in", &json!({ "name": name, "password": password }))
}

fn user(client: &Client) -> String {
    client.visit("/who").text("#who")
}

#[test]
fn visitor_signs_up_logs_out_and_logs_in() {
    let site = site(accounts());
    let mut tab = sign_up(&site, "Ann", "");
    tab.expect("b", "Ann");
    tab.visit("/who");
    tab.expect("#who", "Ann");
    tab.visit("/log-out");
    tab.submit("form", [("", ""); 0]);
    tab.expect("h1", "Log in");
    tab.visit("/who");
    tab.expect("#who", "nobody");
    tab.visit("/log-in?next=/who");
    tab.submit("form", [("name", "ANN"), ("password", PASSWORD)]);
    tab.expect("#who", "Ann");
}

#[test]
fn pages_of_accounts_are_private_and_leak_no_address() {
    let site = site(accounts());
    for path in [
        "/sign-up",
        "/sign-up?invitation=x",
        "/log-in",
        "/forgot-password",
        "/reset-password/x",
        "/confirm-email/x",
    ] {
        let reply = site.get(path);
        assert_eq!(reply.header("cache-control"), Some("no-store"), "{path}");
        assert_eq!(reply.header("referrer-policy"), Some("no-referrer"), "{path}");
    }
    assert!(site.get("/accounts/style.css").text().contains(".account"));
}

#[test]
fn answers_unknown_name_and_wrong_password_alike() {
    let site = site(accounts());
    sign_up(&site, "Ann", "ann@example.org");
    let wrong = log_in(&site.client(), "Ann", "no hop vines in May");
    for name in ["Bob", "ann@example.org", "bob@example.org", "", &"n".repeat(5000)] {
        let unknown = log_in(&site.client(), name, PASSWORD);
        assert_eq!((unknown.status(), unknown.text()), (wrong.status(), wrong.text()), "{name}");
    }
    assert_eq!(wrong.status(), 403);
}

#[test]
fn rejects_taken_names_and_weak_passwords_with_reasons() {
    let site = site(accounts());
    sign_up(&site, "Ann", "");
    let mut tab = site.visit("/sign-up");
    tab.submit("form", [("name", "ANN"), ("password", "password1")]);
    tab.expect("#name-wrong", "Name is taken already.");
    tab.expect("#password-wrong", "attackers try first");
    tab.expect("[role=alert]", "Please correct the marked fields.");
    let fields = json!({ "name": "a/b", "email": "no address", "password": "x" });
    let reply = site.post_json("/accounts/sign-up", &fields);
    assert_eq!(reply.status(), 422);
    for field in ["name", "email", "password"] {
        assert!(reply.text().contains(&format!("\"{field}\"")), "{}", reply.text());
    }
}

#[test]
fn sixth_wrong_password_in_a_row_must_wait() {
    let site = site(accounts());
    let mut owner = sign_up(&site, "Ann", "");
    let attacker = site.client();
    // Unknown names are throttled alike, so that the delay reveals no names.
    for name in ["Ann", "Bob"] {
        for _ in 0..5 {
            assert_eq!(log_in(&attacker, name, "wrong password").status(), 403);
        }
        // The first delay is a second, which a busy machine may use up; each one that follows is
        // twice as long.
        let mut tries = (0..20).map(|_| log_in(&attacker, name, "wrong password"));
        let late = tries.find(|reply| reply.status() == 429).unwrap();
        let seconds: u64 = late.header("retry-after").unwrap().parse().unwrap();
        assert!((1..=900).contains(&seconds), "{seconds}");
    }
    // The device of the owner is known, so the same address and account cause no delay.
    owner.visit("/log-out");
    owner.submit("form", [("", ""); 0]);
    owner.visit("/log-in?next=/who");
    owner.submit("form", [("name", "Ann"), ("password", PASSWORD)]);
    owner.expect("#who", "Ann");
}

#[test]
fn reset_link_works_once_and_ends_all_sessions() {
    let (site, mails) = mailing_site();
    let mut old = sign_up(&site, "Ann", "ann@example.org");
    confirm(&site, &mails, "ann@example.org");
    let mut tab = site.visit("/forgot-password");
    tab.submit("form", [("email", "ANN@example.org")]);
    tab.expect("[role=status]", "If an account has this address");
    let first = path(&mail(&mails, MailKind::ResetPassword, "ann@example.org"));
    let mut tab = site.visit(&first);
    tab.submit("form", [("new_password", "short")]);
    tab.expect("#new_password-wrong", "at least 8 characters");
    tab.submit("form", [("new_password", "another good phrase")]);
    tab.expect("[role=status]", "Your new password is set.");
    mail(&mails, MailKind::PasswordChanged, "ann@example.org");
    old.visit("/who");
    old.expect("#who", "nobody");
    site.visit(&first).expect("[role=alert]", "This link has expired or was used.");
    let client = site.client();
    assert_eq!(log_in(&client, "Ann", PASSWORD).status(), 403);
    assert_eq!(log_in(&client, "ann@example.org", "another good phrase").status(), 200);
    assert_eq!(user(&client), "Ann");
}

fn confirm(site: &Site, mails: &Mutex<Vec<Mail>>, to: &str) {
    let mut tab = site.visit(&path(&mail(mails, MailKind::ConfirmEmail, to)));
    tab.submit("form", [("", ""); 0]);
    tab.expect("[role=status]", "Your e-mail address is confirmed.");
}

#[test]
fn nobody_learns_which_addresses_exist() {
    let (site, mails) = mailing_site();
    sign_up(&site, "Ann", "ann@example.org");
    confirm(&site, &mails, "ann@example.org");
    let ask = |email: &str| {
        let reply = site.post_json("/accounts/forgot-password", &json!({ "email": email }));
        (reply.status(), reply.text().to_owned())
    };
    assert_eq!(ask("ann@example.org"), ask("bob@example.org"));
    mail(&mails, MailKind::ResetPassword, "ann@example.org");
    // A sign-up with a foreign address succeeds, and its owner gets a mail.
    sign_up(&site, "Bob", "Ann@example.org");
    mail(&mails, MailKind::EmailInUse, "ann@example.org");
    assert!(mails.lock().unwrap().is_empty());
}

#[test]
fn user_changes_password_email_and_preferences() {
    let (site, mails) = mailing_site();
    let mut tab = sign_up(&site, "Ann", "");
    let other = site.client();
    assert_eq!(log_in(&other, "Ann", PASSWORD).status(), 200);
    let password = "form[action='/account/password']";
    tab.submit(password, [("current_password", "wrong one"), ("new_password", "a newer phrase")]);
    tab.expect("[role=alert]", "The current password is wrong.");
    tab.submit(password, [("current_password", PASSWORD), ("new_password", "a newer phrase")]);
    tab.expect("[role=status]", "Other sessions have ended.");
    assert_eq!((user(&other), tab.text("b")), ("nobody".to_owned(), "Ann".to_owned()));
    let email = "form[action='/account/email']";
    tab.submit(email, [("current_password", "a newer phrase"), ("email", "ann@example.org")]);
    tab.expect("form", "ann@example.org waits for its link");
    tab.visit("/mine");
    tab.expect("#mine", "Ann unset");
    confirm(&site, &mails, "ann@example.org");
    tab.visit("/account");
    tab.submit("form[action='/account/preferences']", [("switch", "news")]);
    tab.visit("/mine");
    tab.expect("#mine", "Ann ann@example.org on");
}

#[test]
fn user_lists_and_ends_sessions() {
    let site = site(accounts());
    let mut tab = sign_up(&site, "Ann", "");
    let other = site.client();
    assert_eq!(log_in(&other, "Ann", PASSWORD).status(), 200);
    let sessions: Vec<Value> = other.get("/accounts/sessions").json();
    assert_eq!(sessions.len(), 2);
    let own = sessions.iter().find(|one| one["is_current"] == true).expect("its own session");
    let end = json!({ "session": own["id"], "current_password": "wrong" });
    assert_eq!(other.post_json("/accounts/end-session", &end).status(), 403);
    tab.reload();
    tab.expect_count("ul.sessions li", 2);
    let end = json!({ "current_password": PASSWORD });
    assert_eq!(other.post_json("/accounts/end-other-sessions", &end).status(), 204);
    assert_eq!(user(&other), "Ann");
    tab.visit("/who");
    tab.expect("#who", "nobody");
}

#[test]
fn session_ends_with_the_browser_unless_remembered() {
    let site = site(accounts());
    sign_up(&site, "Ann", "");
    let cookie = |remember: bool| {
        let fields = json!({ "name": "Ann", "password": PASSWORD, "remember": remember });
        let reply = site.post_json("/accounts/log-in", &fields);
        let mut set = reply.headers().filter(|(name, _)| name.eq_ignore_ascii_case("set-cookie"));
        set.find(|(_, value)| value.starts_with("session=")).expect("a session").1.to_owned()
    };
    assert!(!cookie(false).contains("Max-Age"), "{}", cookie(false));
    assert!(cookie(true).contains("Max-Age=1209600"), "{}", cookie(true));
}

#[test]
fn user_removes_the_account_with_its_rows() {
    let removed = Arc::new(Mutex::new(Vec::new()));
    let names = Arc::clone(&removed);
    let hook = move |_: &mut Transaction, name: &str| {
        names.lock().unwrap().push(name.to_owned());
        Ok(())
    };
    let site = site(accounts().on_account_removed(hook));
    let mut tab = sign_up(&site, "Ann", "");
    let removal = "form[action='/account/remove']";
    tab.submit(removal, [("current_password", "wrong one")]);
    tab.expect("[role=alert]", "The current password is wrong.");
    tab.submit(removal, [("current_password", PASSWORD)]);
    tab.expect("[role=status]", "Your account was removed.");
    assert_eq!(*removed.lock().unwrap(), ["Ann"]);
    assert_eq!(log_in(&site.client(), "Ann", PASSWORD).status(), 403);
    sign_up(&site, "ann", "");
}

#[page("/invite", crate = crate)]
async fn invite(directory: State<AccountDirectory>) -> Result<crate::Response, Error> {
    let keys = directory.keys().expect("the sessions are open");
    Ok(crate::Response::text(invitation(keys, Time::now().unix())))
}

#[test]
fn invitation_permits_one_sign_up() {
    let accounts = accounts().sign_up(SignUp::ByInvitation);
    let site = Site::new(App::new().accounts(accounts).page(invite).page(who));
    let reply =
        site.post_json("/accounts/sign-up", &json!({ "name": "Bob", "password": PASSWORD }));
    assert_eq!(reply.status(), 403);
    site.visit("/sign-up").expect("[role=alert]", "you need an invitation");
    site.visit("/sign-up").expect_none("form", "");
    let text = site.get("/invite").text().to_owned();
    let mut tab = site.visit(&format!("/sign-up?invitation={text}"));
    tab.submit("form", [("name", "Ann"), ("password", PASSWORD)]);
    tab.expect("h1", "Your account");
    let mut tab = site.visit(&format!("/sign-up?invitation={text}"));
    tab.submit("form", [("name", "Bob"), ("password", PASSWORD)]);
    tab.expect("[role=alert]", "This link has expired or was used.");
}

#[test]
fn own_page_replaces_a_page_of_accounts() {
    #[page("/log-in", crate = crate)]
    async fn own() -> impl Page {
        html! {
            <h1>Welcome back</h1>
            <form method="post" action="/log-in"><input name="name"><input name="password" type="password"><button>Go</button></form>
        }
    }
    let site = Site::new(App::new().accounts(accounts()).page(own).page(who));
    sign_up(&site, "Ann", "");
    let mut tab = site.visit("/log-in");
    tab.expect("h1", "Welcome back");
    tab.submit("form", [("name", "Ann"), ("password", PASSWORD)]);
    tab.expect("h1", "Your account");
}

#[test]
fn prefix_moves_all_paths() {
    let site = site(accounts().prefix("/members/"));
    assert_eq!(site.get("/log-in").status(), 404);
    let mut tab = site.visit("/members/sign-up");
    tab.submit("form", [("name", "Ann"), ("password", PASSWORD)]);
    tab.expect("h1", "Your account");
    assert_eq!(site.get("/members/accounts/style.css").status(), 200);
}

#[test]
fn rejects_forms_of_other_sites() {
    let site = site(accounts());
    let request = site.request(Method::Post, "/log-in").header("Sec-Fetch-Site", "cross-site");
    let request = request.header("Content-Type", "application/x-www-form-urlencoded");
    assert_eq!(request.body("name=Ann&password=x").send().status(), 403);
}

#[test]
fn redirects_after_a_log_in_within_the_site_only() {
    let site = site(accounts());
    sign_up(&site, "Ann", "");
    for (next, expected) in [
        ("/who", "/who"),
        ("//evil.example", "/account"),
        ("https://evil.example", "/account"),
        ("/\\evil.example", "/account"),
    ] {
        let body = format!("name=Ann&password={}&next={next}", PASSWORD.replace(' ', "+"));
        let request = site.request(Method::Post, "/log-in");
        let request = request.header("Content-Type", "application/x-www-form-urlencoded");
        let reply = request.header("Accept", "text/html").body(body).send();
        assert_eq!(reply.header("location"), Some(expected), "{next}: {}", reply.text());
    }
}

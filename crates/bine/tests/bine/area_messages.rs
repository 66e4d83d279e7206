//! The texts of the pages of accounts and of API tokens, in the program's own words.

use std::collections::BTreeSet;
use std::sync::Mutex;
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use bine::prelude::*;
use bine::test::{Client, Method, Reply, Site};
use bine::{Accounts, HashingCost, Mail, SignUp, VisitorMessage};

use crate::messages::words;

const PASSWORD: &str = "hop vines in May";
/// Longer than a test may run.
const LONG: Duration = Duration::from_secs(20);

fn accounts() -> Accounts {
    let accounts = Accounts::new().hashing_cost(HashingCost::new(8, 1));
    accounts.switch("news", "Send me news").address("http://brewery.example")
}

fn site(accounts: Accounts) -> Site {
    let app = App::new().in_memory().development(false).accounts(accounts).api_tokens();
    Site::new(app.messages(&["en", "de"], words))
}

/// A site, and the mails that it sends.
fn mailing_site() -> (Site, Receiver<Mail>) {
    let (sender, mails) = channel();
    let sender = Mutex::new(sender);
    let send = move |mail: Mail| {
        let sent = sender.lock().unwrap().send(mail);
        async move { sent.map_err(std::io::Error::other) }
    };
    (site(accounts().mail(send)), mails)
}

/// The path of the link in the next mail.
fn link(mails: &Receiver<Mail>) -> String {
    let link = mails.recv_timeout(LONG).unwrap().link.unwrap();
    link.strip_prefix("http://brewery.example").unwrap().to_owned()
}

/// A German visitor, who notes the keys of the messages.
struct Reader {
    client: Client,
    origin: String,
    seen: BTreeSet<String>,
}

impl Reader {
    fn of(site: &Site) -> Self {
        let origin = format!("http://{}", site.address());
        Self { client: site.client(), origin, seen: BTreeSet::new() }
    }

    fn get(&mut self, path: &str) -> Reply {
        self.send(Method::Get, path, "", "")
    }

    fn post(&mut self, path: &str, form: &str) -> Reply {
        self.send(Method::Post, path, "", form)
    }

    fn send(&mut self, method: Method, path: &str, token: &str, form: &str) -> Reply {
        let request = self.client.request(method, path).header("Accept-Language", "de-CH");
        let request = request.header("Accept", "text/html").header("Origin", &*self.origin);
        let request = match token {
            "" => request,
            token => request.header("Authorization", format!("Bearer {token}")),
        };
        let kind = if form.starts_with('{') { "json" } else { "x-www-form-urlencoded" };
        let request = request.header("Content-Type", format!("application/{kind}"));
        let reply = request.body(form).send();
        let found = reply.text().split("[de:").skip(1);
        self.seen.extend(found.filter_map(|rest| Some(rest.split_once(']')?.0.to_owned())));
        assert!(!reply.text().contains("[en:"), "{path} {form}\n{}", reply.text());
        reply
    }
}

/// Checks that these readers have seen all messages of an area except some.
#[track_caller]
fn check(area: &str, readers: Vec<Reader>, not_caused: &[&str]) {
    let seen: BTreeSet<String> = readers.into_iter().flat_map(|reader| reader.seen).collect();
    let all = VisitorMessage::examples();
    let keys = all.iter().map(VisitorMessage::key).filter(|key| key.starts_with(area));
    let missed: Vec<_> = keys.filter(|key| !seen.contains(*key)).collect();
    assert_eq!(missed, not_caused, "cause the message in this test");
}

#[test]
fn every_message_of_accounts_reaches_the_program() {
    // This test is long because it causes each message once.
    let (site, mails) = mailing_site();
    let mut ann = Reader::of(&site);
    ann.get("/sign-up");
    let long = "n".repeat(65);
    for name in ["a%2Fb", &long, "a%40b", "a%C2%ADb", "users"] {
        let form = format!("name={name}&email=nowhere&password=x");
        assert_eq!(ann.post("/sign-up", &form).status(), 422);
    }
    for password in ["p".repeat(257), "password1".to_owned(), "annabella1".to_owned()] {
        let form = format!("name=annabella&password={password}");
        assert_eq!(ann.post("/sign-up", &form).status(), 422);
    }
    let sign_up = |reader: &mut Reader, name: &str| {
        let form = format!("name={name}&email=ann@example.org&password={PASSWORD}");
        let reply = reader.post("/sign-up", &form.replace(' ', "+"));
        assert_eq!(reply.status(), 303, "{}", reply.text());
    };
    sign_up(&mut ann, "Ann");
    let confirmation = link(&mails);
    let mut ben = Reader::of(&site);
    sign_up(&mut ben, "Ben");
    let confirmation_of_ben = link(&mails);
    ann.get("/account");
    ann.get(&confirmation);
    assert_eq!(ann.post(&confirmation, "").status(), 200);
    assert_eq!(ben.post(&confirmation_of_ben, "").status(), 403);
    ann.get("/account");
    for done in ["password", "email", "preferences", "sessions"] {
        ann.get(&format!("/account?done={done}"));
    }
    assert_eq!(ann.post("/account/password", "current_password=x").status(), 403);
    let preferences = format!("{{\"preferences\": {{\"a\": \"{}\"}}}}", "x".repeat(5000));
    assert_eq!(ann.post("/accounts/set-preferences", &preferences).status(), 422);
    let mut again = Reader::of(&site);
    let log_in = format!("name=Ann&password={PASSWORD}").replace(' ', "+");
    assert_eq!(again.post("/log-in", &log_in).status(), 303);
    again.get("/account");
    again.get("/log-out");
    let mut stranger = Reader::of(&site);
    stranger.get("/log-in?done=reset");
    stranger.get("/log-in?done=removed");
    for _ in 0..9 {
        stranger.post("/log-in", "name=Nobody&password=x");
    }
    stranger.get("/forgot-password");
    assert_eq!(stranger.post("/forgot-password", "email=ann@example.org").status(), 200);
    let reset = loop {
        // Others are about the address that two accounts gave.
        let mail = mails.recv_timeout(LONG).unwrap();
        if mail.kind == bine::MailKind::ResetPassword {
            break mail.link.unwrap().replace("http://brewery.example", "");
        }
    };
    stranger.get(&reset);
    assert_eq!(stranger.get("/reset-password/x").status(), 410);
    let page = ann.post("/account/tokens", "label=a&days=1");
    let start = page.text().find("bine_").unwrap();
    let token = page.text()[start..start + 37].to_owned();
    assert_eq!(stranger.send(Method::Post, "/log-in", &token, &log_in).status(), 403);

    let closed = self::site(accounts().sign_up(SignUp::Closed));
    let mut at_closed = Reader::of(&closed);
    at_closed.get("/sign-up");
    assert_eq!(at_closed.post("/forgot-password", "email=ann@example.org").status(), 403);
    let invited = self::site(accounts().sign_up(SignUp::ByInvitation));
    let mut at_invited = Reader::of(&invited);
    at_invited.get("/sign-up");
    // A blocked or a declared account, a busy server, faults of the store, and races.
    let not_caused = [
        "account_still_logged_in",
        "account_blocked",
        "account_busy",
        "account_needs_user",
        "account_failed",
        "account_declared",
    ];
    check("account_", vec![ann, ben, again, stranger, at_closed, at_invited], &not_caused);
}

#[test]
fn every_message_of_api_tokens_reaches_the_program() {
    let site = site(accounts());
    let mut ann = Reader::of(&site);
    let sign_up = format!("name=Ann&password={PASSWORD}").replace(' ', "+");
    assert_eq!(ann.post("/sign-up", &sign_up).status(), 303);
    ann.get("/account/tokens");
    for wrong in ["label=", "label=a&days=0", "label=a&paths=api"] {
        assert_eq!(ann.post("/account/tokens", wrong).status(), 422);
    }
    let page = ann.post("/account/tokens", "label=a");
    let start = page.text().find("bine_").unwrap();
    let token = page.text()[start..start + 37].to_owned();
    ann.get("/account/tokens");
    assert_eq!(ann.send(Method::Post, "/account/tokens", &token, "label=b").status(), 403);
    assert_eq!(ann.post("/account/tokens/revoke", "id=x").status(), 404);
    for _ in 1..50 {
        assert_eq!(ann.post("/account/tokens", "label=a").status(), 200);
    }
    assert_eq!(ann.post("/account/tokens", "label=a").status(), 409);
    check("api_token_", vec![ann], &[]);
}

//! Access rules of services: a program's default and the rules of single services.

use bine::prelude::*;
use bine::{Rule, Status};

use crate::actions::{Browser, actions};
use crate::app::{options, program};
use crate::harness::{Peer, Program, Reply};

#[derive(Clone, Table)]
struct Member {
    id: Id<Member>,
    #[table(unique)]
    name: Text,
}

const MEMBERS: Rule = Rule::new("members", |caller| {
    let Some(user) = caller.user() else { return Ok(false) };
    if &*user == "mallory" {
        return Err(Error::status(Status::GONE, "there is no such user any more"));
    }
    Ok(caller.store().read().find(Member::BY_NAME, &*user).next().is_some())
});

#[service]
fn usual(word: Text) -> Text {
    word
}

#[service(safe, who = "anyone")]
fn open() -> u32 {
    1
}

#[service(who = "user")]
fn known() -> u32 {
    2
}

#[service(who = MEMBERS)]
fn owned() -> u32 {
    3
}

#[service(who = "anyone")]
async fn log_in(caller: Caller, user: Text) -> Result<(), Error> {
    caller.session().log_in(&user).await?;
    Ok(())
}

/// The same services as actions; two have names.
#[page("/forms")]
async fn forms(_session: Session) -> impl Page {
    html! {
        <form method="post" action={action!(name = "usual", |_call, word: Text| word)}></form>
        <form method="post" action={action!(who = "anyone", |_call| 1_u32)}></form>
        <form method="post" action={action!(who = "user", |_call| 2_u32)}></form>
        <form method="post" action={action!(name = "owned", who = MEMBERS, |_call| 3_u32)}></form>
    }
}

fn app() -> App {
    let app = App::new().in_memory().page(forms).service(usual).service(open).service(known);
    app.service(owned).service(log_in).table::<Member>().on_store_open(|store| {
        store.insert(Member { id: Id::unassigned(), name: "anna".into() }).wait()?;
        Ok(())
    })
}

#[test]
fn serve_member_program() -> Exit {
    let Some(options) = options() else { return Exit::success() };
    app().default_service_rule(MEMBERS).run_with("Usage: rules", options.lines())
}

#[test]
fn serve_open_program() -> Exit {
    let Some(options) = options() else { return Exit::success() };
    app().run_with("Usage: rules", options.lines())
}

/// A program in which only the rule needs sessions.
#[test]
fn serve_user_program() -> Exit {
    let Some(options) = options() else { return Exit::success() };
    let app = App::new().in_memory().service(usual).default_service_rule(Rule::USERS);
    app.run_with("Usage: rules", options.lines())
}

fn call(peer: &mut Peer, path: &str, fields: &str, content: &str) -> Reply {
    let fields = format!("Origin: http://a\r\nContent-Type: application/json\r\n{fields}");
    peer.request("POST", &format!("/bine/{path}"), &fields, content)
}

/// Logs in a user. Returns the cookie.
fn log_in_as(program: &Program, user: &str) -> String {
    let content = format!("{{\"user\": \"{user}\"}}");
    let reply = call(&mut program.connect(), "log_in", "", &content);
    reply.header("Set-Cookie").unwrap().split(';').next().unwrap().to_owned()
}

/// Calls all actions from a page of this user, if any, and returns the replies.
fn call_actions(program: &Program, user: Option<&str>) -> [Reply; 4] {
    let mut visitor = Browser::new(program);
    if let Some(user) = user {
        visitor.cookie = log_in_as(program, user);
    }
    let forms: [String; 4] = actions(&visitor.get("/forms")).try_into().unwrap();
    let contents = ["{\"word\": \"a\"}", "", "", ""];
    let mut contents = contents.into_iter();
    forms.map(|action| visitor.call(&action, contents.next().unwrap()))
}

/// Returns the statuses of all services for this user, if any. Actions must have the same ones.
fn statuses(program: &Program, user: Option<&str>) -> [u16; 4] {
    let mut peer = program.connect();
    let fields = user.map(|user| format!("Cookie: {}\r\n", log_in_as(program, user)));
    let fields = fields.unwrap_or_default();
    let statuses = call_actions(program, user).map(|reply| reply.status());
    let word = "{\"word\": \"a\"}";
    let calls = [("usual", word), ("open", ""), ("known", ""), ("owned", "")];
    let of_services = calls.map(|(path, content)| call(&mut peer, path, &fields, content).status());
    assert_eq!(statuses, of_services, "statuses of actions and services differ");
    of_services
}

#[test]
fn service_without_rule_has_default_of_program() {
    let program = Program::start(&mut program("rules::serve_member_program", &[]));
    assert_eq!(statuses(&program, None), [401, 200, 401, 401]);
    assert_eq!(statuses(&program, Some("ben")), [403, 200, 200, 403]);
    assert_eq!(statuses(&program, Some("anna")), [200, 200, 200, 200]);
    assert_eq!(statuses(&program, Some("mallory")), [410, 200, 200, 410]);
    let reply = call(&mut program.connect(), "usual", "", "");
    let [of_action, ..] = call_actions(&program, None);
    assert_eq!(of_action.text(), reply.text());
    assert!(reply.text().contains("This is for members. Log in first."), "{}", reply.text());
}

/// An action is bound to the session of its page. A logout replaces the session.
#[test]
fn action_from_before_logout_reports_rule_not_old_page() {
    let program = Program::start(&mut program("rules::serve_member_program", &[]));
    let mut visitor = Browser::new(&program);
    visitor.cookie = log_in_as(&program, "anna");
    let [usual, open, ..] = &actions(&visitor.get("/forms"))[..] else { panic!("four forms") };
    visitor.cookie.clear();
    let refused = visitor.submit(usual, "word=a");
    assert_eq!(refused.status(), 401);
    assert!(refused.text().contains("This is for members. Log in first."), "{}", refused.text());
    let outdated = visitor.submit(open, "");
    assert_eq!((outdated.status(), outdated.text().contains("load it again")), (403, true));
}

#[test]
fn permits_anyone_without_default_rule() {
    let program = Program::start(&mut program("rules::serve_open_program", &[]));
    assert_eq!(statuses(&program, None), [200, 200, 401, 401]);
}

#[test]
fn rule_alone_enables_sessions() {
    let program = Program::start(&mut program("rules::serve_user_program", &[]));
    assert_eq!(call(&mut program.connect(), "usual", "", "{\"word\": \"a\"}").status(), 401);
}

#[test]
fn rejects_caller_before_reading_body() {
    let program = Program::start(&mut program("rules::serve_member_program", &[]));
    let mut peer = program.connect();
    peer.send("POST /bine/usual HTTP/1.1\r\nHost: a\r\nOrigin: http://a\r\nContent-Length: 9\r\nContent-Type: application/json\r\n\r\n");
    assert_eq!(peer.reply().status(), 401);
}

#[test]
fn lists_rule_of_each_service() {
    let told = |test| {
        let output = Program::run(&mut program(test, &["--routes"])).output;
        ["usual", "open", "known", "owned"].map(|name| {
            let mut lines = output.lines().filter(|line| line.contains(&format!("/bine/{name} ")));
            let line = lines.next().unwrap().trim_end_matches("safe").trim_end().to_owned();
            line.rsplit(' ').next().unwrap().to_owned()
        })
    };
    let members = told("rules::serve_member_program");
    assert_eq!(members, ["members", "anyone", "users", "members"]);
    let anyone = told("rules::serve_open_program");
    assert_eq!(anyone, ["anyone", "anyone", "users", "members"]);
    let of_actions = |test| {
        let output = Program::run(&mut program(test, &["--routes"])).output;
        ["usual", "owned", "{name}"].map(|name| {
            let path = format!("/_bine/action/{name}/{{sealed}} ");
            let line = output.lines().find(|line| line.contains(&path)).unwrap();
            line.rsplit(' ').next().unwrap().to_owned()
        })
    };
    let members = of_actions("rules::serve_member_program");
    assert_eq!(members, ["members", "members", "anyone"]);
    let anyone = of_actions("rules::serve_open_program");
    assert_eq!(anyone, ["anyone", "members", "anyone"]);
}

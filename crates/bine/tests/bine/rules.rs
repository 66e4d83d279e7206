//! Claims about who may call which services of a program that says it once for all of them.

use bine::prelude::*;
use bine::{Rule, Status};

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

fn app() -> App {
    let app = App::new().forgetful().service(usual).service(open).service(known);
    app.service(owned).service(log_in).table::<Member>().at_open(|store| {
        store.insert(Member { id: Id::new(), name: "anna".into() }).wait()?;
        Ok(())
    })
}

#[test]
fn the_program_for_members_serves() -> Exit {
    let Some(options) = options() else { return Exit::fine() };
    app().services_for(MEMBERS).run_with("Usage: rules", options.lines())
}

#[test]
fn the_program_for_anyone_serves() -> Exit {
    let Some(options) = options() else { return Exit::fine() };
    app().run_with("Usage: rules", options.lines())
}

/// It has no page and no service that looks at sessions, but for the rule.
#[test]
fn the_program_for_users_serves() -> Exit {
    let Some(options) = options() else { return Exit::fine() };
    let app = App::new().forgetful().service(usual).services_for(Rule::USERS);
    app.run_with("Usage: rules", options.lines())
}

fn call(peer: &mut Peer, path: &str, fields: &str, content: &str) -> Reply {
    let length = content.len();
    peer.send(format!(
        "POST /bine/{path} HTTP/1.1\r\nHost: a\r\nOrigin: http://a\r\nContent-Length: {length}\r\nContent-Type: application/json\r\n{fields}\r\n{content}"
    ));
    peer.reply()
}

/// The statuses of all services for whoever has logged in with this name, if with any.
fn statuses(program: &Program, user: Option<&str>) -> [u16; 4] {
    let mut peer = program.connect();
    let mut fields = String::new();
    if let Some(user) = user {
        let reply = call(&mut peer, "log_in", "", &format!("{{\"user\": \"{user}\"}}"));
        let cookie = reply.field("Set-Cookie").unwrap().split(';').next().unwrap().to_owned();
        fields = format!("Cookie: {cookie}\r\n");
    }
    let word = "{\"word\": \"a\"}";
    let calls = [("usual", word), ("open", ""), ("known", ""), ("owned", "")];
    calls.map(|(path, content)| call(&mut peer, path, &fields, content).status())
}

#[test]
fn a_service_that_says_nothing_is_for_whom_its_program_says() {
    let program = Program::start(&mut program("rules::the_program_for_members_serves", &[]));
    assert_eq!(statuses(&program, None), [401, 200, 401, 401]);
    assert_eq!(statuses(&program, Some("ben")), [403, 200, 200, 403]);
    assert_eq!(statuses(&program, Some("anna")), [200, 200, 200, 200]);
    assert_eq!(statuses(&program, Some("mallory")), [410, 200, 200, 410]);
    let reply = call(&mut program.connect(), "usual", "", "");
    assert!(reply.text().contains("This is for members. Log in first."), "{}", reply.text());
}

#[test]
fn a_program_that_says_nothing_lets_anyone_call() {
    let program = Program::start(&mut program("rules::the_program_for_anyone_serves", &[]));
    assert_eq!(statuses(&program, None), [200, 200, 401, 401]);
}

#[test]
fn a_rule_alone_has_a_program_know_sessions() {
    let program = Program::start(&mut program("rules::the_program_for_users_serves", &[]));
    assert_eq!(call(&mut program.connect(), "usual", "", "{\"word\": \"a\"}").status(), 401);
}

#[test]
fn whoever_may_not_call_is_told_so_before_anything_is_read() {
    let program = Program::start(&mut program("rules::the_program_for_members_serves", &[]));
    let mut peer = program.connect();
    peer.send("POST /bine/usual HTTP/1.1\r\nHost: a\r\nOrigin: http://a\r\nContent-Length: 9\r\nContent-Type: application/json\r\n\r\n");
    assert_eq!(peer.reply().status(), 401);
}

#[test]
fn it_is_told_which_rule_holds_for_each_service() {
    let told = |test| {
        let output = Program::run(&mut program(test, &["--routes"])).output;
        ["usual", "open", "known", "owned"].map(|name| {
            let mut lines = output.lines().filter(|line| line.contains(&format!("/bine/{name} ")));
            let line = lines.next().unwrap().trim_end_matches("safe").trim_end().to_owned();
            line.rsplit(' ').next().unwrap().to_owned()
        })
    };
    let members = told("rules::the_program_for_members_serves");
    assert_eq!(members, ["members", "anyone", "users", "members"]);
    let anyone = told("rules::the_program_for_anyone_serves");
    assert_eq!(anyone, ["anyone", "anyone", "users", "members"]);
}

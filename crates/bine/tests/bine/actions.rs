//! Claims about actions over sockets: they do what they did when the page was made, for whom it was made, and for nobody
//! else.

use std::process::Command;

use bine::prelude::*;

use crate::app::{options, program};
use crate::harness::{Folder, Peer, Program, Reply};

#[derive(Clone, Table)]
struct Leaf {
    id: Id<Leaf>,
    #[table(length = 1..=2000)]
    text: Text,
}

/// Each leaf with what removes it, and a form for new ones.
#[page("/leaves")]
async fn leaves(store: Store) -> impl Page {
    let leaves: Vec<Leaf> = store.read().newest(50);
    html! {
        <Live>
            <ul>
                {for Leaf { id, text } in leaves {
                    <li>
                        {text.as_str()}
                        <form method="post" action={action!([id: Id<Leaf>] |call| { call.remove(id)?; Ok(()) })}>
                            <button>Remove</button>
                        </form>
                    </li>
                }}
            </ul>
        </Live>
        <form method="post" action={action!(|call, text: Text| call.insert(Leaf { id: Id::new(), text }))}>
            <input name="text" aria-label="Leaf">
        </form>
    }
}

/// All that can be captured, and is told again.
#[page("/captured")]
async fn captured(user: Option<User>) -> impl Page {
    drop(user);
    let (number, texts) = (i64::MIN, vec![Text::from("a&b\n"), Text::from("")]);
    html! {
        <form method="post" action={action!(name = "tell",
            [number: i64, texts: Vec<Text>, none: Option<u8> = None, flag: bool = number < 0]
            |_call, more: Vec<u8>| {
                let texts = texts.join("|");
                Ok(html!(<p>{number} {texts} {none} {flag.to_string()} {more.len()}</p>))
            }
        )}>
            <button>Tell</button>
        </form>
    }
}

/// More than has room in an address.
#[page("/large/{length}")]
async fn large(length: Path<usize>) -> impl Page {
    let text = "x".repeat(*length);
    html!(<form method="post" action={action!([text: String] |_call| text.len())}></form>)
}

/// Nothing of it is for anybody alone.
#[page("/plain")]
async fn plain() -> impl Page {
    html!(<p>Plain</p>)
}

/// It leaves in pieces, and the action comes late.
#[page("/long")]
fn long() -> impl Page {
    html! {
        {for _ in 0..30_000 { <p>long</p> }}
        <form method="post" action={action!(name = "late", |_call| 7_u8)}></form>
    }
}

#[page("/late")]
async fn late() -> impl Page {
    bine::blocking(|| ()).await;
    html!(<form method="post" action={action!(name = "later", |_call| 8_u8)}></form>)
}

#[page("/failing")]
async fn failing() -> impl Page {
    html! {
        <form method="post" action={action!(name = "refuse", |_call| {
            let refused: Result<(), Error> = Err(Error::forbidden("not today"));
            refused?;
            Ok(())
        })}></form>
    }
}

#[page("/frozen")]
async fn frozen() -> Frozen {
    html!(<form method="post" action={action!(name = "frozen", |_call| ())}></form>).freeze()
}

#[page(POST "/login/{user}")]
async fn log_in(session: Session, user: Path<Text>) -> Result<Response, Error> {
    session.log_in(user).await?;
    Ok(Response::see_other("/leaves"))
}

#[test]
fn the_program_with_actions_serves() -> Exit {
    let Some(options) = options() else { return Exit::fine() };
    App::new()
        .table::<Leaf>()
        .forgetful()
        .page(leaves)
        .page(captured)
        .page(large)
        .page(plain)
        .page(long)
        .page(late)
        .page(failing)
        .page(frozen)
        .page(log_in)
        .run_with("Usage: actions", options.lines())
}

fn command(options: &[&str]) -> Command {
    program("actions::the_program_with_actions_serves", options)
}

fn serve() -> Program {
    Program::start(&mut command(&[]))
}

/// Somebody with a browser, who keeps its cookie.
pub(crate) struct Visitor {
    pub(crate) peer: Peer,
    pub(crate) cookie: String,
}

impl Visitor {
    pub(crate) fn new(program: &Program) -> Self {
        Self { peer: program.connect(), cookie: String::new() }
    }

    pub(crate) fn ask(&mut self, method: &str, target: &str, more: &str, body: &str) -> Reply {
        let cookie = match &*self.cookie {
            "" => String::new(),
            cookie => format!("Cookie: {cookie}\r\n"),
        };
        let length = body.len();
        self.peer.send(format!(
            "{method} {target} HTTP/1.1\r\nHost: a\r\nSec-Fetch-Site: same-origin\r\n{cookie}{more}Content-Length: {length}\r\n\r\n{body}"
        ));
        let reply = self.peer.reply();
        if let Some(set) = reply.field("Set-Cookie") {
            set.split(';').next().unwrap().clone_into(&mut self.cookie);
        }
        reply
    }

    pub(crate) fn get(&mut self, target: &str) -> Reply {
        self.ask("GET", target, "Accept: text/html\r\n", "")
    }

    /// As a browser without script sends a form.
    pub(crate) fn submit(&mut self, action: &str, body: &str) -> Reply {
        let more = "Accept: text/html\r\nContent-Type: application/x-www-form-urlencoded\r\n";
        self.ask("POST", action, more, body)
    }

    /// As the script sends it.
    pub(crate) fn call(&mut self, action: &str, body: &str) -> Reply {
        let more =
            "Accept: application/json, text/html;q=0.5\r\nContent-Type: application/json\r\n";
        self.ask("POST", action, more, body)
    }
}

/// The addresses of the forms of a page, in their order.
pub(crate) fn actions(page: &Reply) -> Vec<String> {
    let text = page.text();
    let forms = text.split("action=\"").skip(1);
    forms.map(|rest| rest.split('"').next().unwrap().to_owned()).collect()
}

#[test]
fn a_form_without_script_does_it_and_comes_back_to_its_page() {
    let program = serve();
    let mut visitor = Visitor::new(&program);
    let page = visitor.get("/leaves?order=new");
    assert!(page.head.contains("Vary: Cookie\r\n"), "{}", page.head);
    assert_eq!(page.field("Cache-Control"), Some("private, no-cache"));
    assert!(visitor.cookie.starts_with("session="), "{}", page.head);
    let [write] = &actions(&page)[..] else { panic!("{}", page.text()) };
    let done = visitor.submit(write, "text=oak");
    assert_eq!((done.status(), done.field("Location")), (303, Some("/leaves?order=new")));
    let page = visitor.get("/leaves");
    assert!(page.text().contains("oak"));
    let [remove, _] = &actions(&page)[..] else { panic!("{}", page.text()) };
    assert_eq!(visitor.submit(remove, "").field("Location"), Some("/leaves"));
    assert!(!visitor.get("/leaves").text().contains("oak"));
    // What is gone already may be removed again.
    assert_eq!(visitor.submit(remove, "").status(), 303);
}

#[test]
fn with_script_it_answers_as_a_service_does() {
    let program = serve();
    let mut visitor = Visitor::new(&program);
    let write = actions(&visitor.get("/leaves")).pop().unwrap();
    let done = visitor.call(&write, r#"{"text":"oak"}"#);
    assert_eq!((done.status(), done.field("Content-Type")), (200, Some("application/json")));
    let [remove, _] = &actions(&visitor.get("/leaves"))[..] else { panic!("two forms") };
    assert_eq!(visitor.call(remove, "").status(), 204);
    let wrong = visitor.call(&write, r#"{"txet":"oak"}"#);
    assert_eq!(wrong.field("Content-Type"), Some("application/problem+json"));
    assert!(wrong.text().contains("did you mean `text`?"), "{}", wrong.text());
    let long = visitor.call(&write, r#"{"text":""}"#);
    assert_eq!(long.status(), 422);
    assert!(long.text().contains(r#""name":"text""#), "{}", long.text());
    let refuse = actions(&visitor.get("/failing")).pop().unwrap();
    let refused = visitor.call(&refuse, "");
    assert!(refused.status() == 403 && refused.text().contains("not today"));
}

#[test]
fn values_of_all_sorts_come_back_as_they_were() {
    let program = serve();
    let mut visitor = Visitor::new(&program);
    let tell = actions(&visitor.get("/captured")).pop().unwrap();
    assert!(tell.starts_with("/_bine/action/tell/"), "{tell}");
    let told = visitor.submit(&tell, "more=1&more=2");
    let expected = "<p>-9223372036854775808 a&amp;b\n|  true 2</p>";
    assert!(told.text().contains(expected), "{}", told.text());
}

#[test]
fn a_page_is_the_same_each_time_for_one_visitor_and_another_for_the_next() {
    let program = serve();
    let (mut one, mut other) = (Visitor::new(&program), Visitor::new(&program));
    let first = one.get("/leaves");
    let (again, others) = (one.get("/leaves"), other.get("/leaves"));
    assert_eq!(first.text(), again.text());
    assert_eq!(again.field("Set-Cookie"), None);
    assert_ne!(first.text(), others.text());
    // What has no action is as it always was.
    let plain = Visitor::new(&program).get("/plain");
    let is_for_all = !plain.head.contains("Cookie") && plain.field("Cache-Control").is_none();
    assert!(is_for_all, "{}", plain.head);
}

#[test]
fn what_was_not_given_out_to_this_visitor_for_this_action_is_refused() {
    let program = serve();
    let mut visitor = Visitor::new(&program);
    let write = actions(&visitor.get("/leaves")).pop().unwrap();
    let tell = actions(&visitor.get("/captured")).pop().unwrap();
    let (place, sealed) = write.rsplit_once('/').unwrap();
    let (_, others) = tell.rsplit_once('/').unwrap();
    let (before, last) = sealed.split_at(sealed.len() - 1);
    let changed = if last == "A" { "B" } else { "A" };
    let half = &sealed[..sealed.len() / 2];
    for wrong in [others, half, "x", &format!("{before}{changed}"), &format!("{sealed}A")] {
        let reply = visitor.submit(&format!("{place}/{wrong}"), "text=oak");
        assert_eq!(reply.status(), 403, "{wrong}");
        assert!(reply.text().contains("load it again"), "{}", reply.text());
    }
    // Nobody, somebody else, and the same after a login.
    let mut other = Visitor::new(&program);
    let nobodys = other.submit(&write, "text=oak");
    assert_eq!((nobodys.status(), nobodys.field("Set-Cookie")), (403, None));
    other.get("/leaves");
    assert_eq!(other.submit(&write, "text=oak").status(), 403);
    visitor.submit("/login/ann", "");
    assert_eq!(visitor.submit(&write, "text=oak").status(), 403);
    assert!(!visitor.get("/leaves").text().contains("oak"));
}

#[test]
fn a_page_of_another_site_calls_no_action() {
    let program = serve();
    let mut visitor = Visitor::new(&program);
    let write = actions(&visitor.get("/leaves")).pop().unwrap();
    let cookie = &visitor.cookie;
    for said in ["Sec-Fetch-Site: cross-site", "Origin: null", "X-Says: nothing"] {
        let mut peer = program.connect();
        peer.send(format!(
            "POST {write} HTTP/1.1\r\nHost: a\r\nCookie: {cookie}\r\n{said}\r\nContent-Length: 0\r\n\r\n"
        ));
        assert_eq!(peer.reply().status(), 403, "{said}");
    }
}

#[test]
fn it_outlasts_a_restart_and_what_the_program_has_no_more_is_gone() {
    let folder = Folder::new();
    let data = folder.path().to_str().unwrap();
    let start = || Program::start(&mut command(&["--data", data]));
    let program = start();
    let mut visitor = Visitor::new(&program);
    let page = visitor.get("/leaves");
    let write = actions(&page).pop().unwrap();
    drop(program);
    let program = start();
    visitor.peer = program.connect();
    assert_eq!(visitor.submit(&write, "text=oak").status(), 303);
    let after = visitor.get("/leaves");
    assert!(after.text().contains("oak"));
    assert_eq!(actions(&after).pop().unwrap(), write);
    let gone = visitor.submit("/_bine/action/of-old/AAAA", "");
    assert_eq!(gone.status(), 410);
    assert!(gone.text().contains("older than the program"), "{}", gone.text());
}

#[test]
fn it_is_sealed_wherever_the_page_is_written() {
    let program = serve();
    let mut visitor = Visitor::new(&program);
    for (page, answer) in [("/long", "7"), ("/late", "8")] {
        visitor.cookie.clear();
        let action = actions(&visitor.get(page)).pop().unwrap();
        assert_eq!(visitor.call(&action, "").text(), answer, "{page}");
    }
}

#[test]
fn what_cannot_be_sealed_leads_nowhere_and_the_log_says_why() {
    let program = serve();
    let mut visitor = Visitor::new(&program);
    assert!(actions(&visitor.get("/large/4000"))[0].starts_with("/_bine/action/"));
    assert_eq!(actions(&visitor.get("/large/4090")), ["about:invalid#action"]);
    assert_eq!(actions(&visitor.get("/frozen")), ["about:invalid#action"]);
    let errors = program.stop().errors;
    assert!(errors.contains("capture an id, and read the row in the action"), "{errors}");
}

#[test]
fn what_a_live_region_shows_of_it_is_for_its_own_visitor() {
    let program = serve();
    let mut visitors = [Visitor::new(&program), Visitor::new(&program)];
    let mut write = String::new();
    let mut streams = visitors.each_mut().map(|visitor| {
        let page = visitor.get("/leaves");
        write = actions(&page).pop().unwrap();
        let hash = &page.text().split_once("<!--/live 0 ").unwrap().1[..22];
        let (mut peer, cookie) = (program.connect(), &visitor.cookie);
        peer.send(format!(
            "GET /_bine/live?page=/leaves&have=0.{hash} HTTP/1.1\r\nHost: a\r\nAccept: text/event-stream\r\nCookie: {cookie}\r\n\r\n"
        ));
        assert!(peer.await_text("\r\n\r\n").starts_with("HTTP/1.1 200"));
        peer
    });
    let [one, other] = &mut visitors;
    assert_eq!(other.submit(&write, "text=oak").status(), 303);
    let removes = streams.each_mut().map(|stream| {
        let patch = stream.await_text("</ul>");
        assert!(patch.contains("event: patch") && patch.contains("oak"), "{patch}");
        let (_, action) = patch.split_once("action=\"").unwrap();
        action.split('"').next().unwrap().to_owned()
    });
    assert_ne!(removes[0], removes[1]);
    assert_eq!(one.submit(&removes[1], "").status(), 403);
    assert_eq!(one.submit(&removes[0], "").status(), 303);
    assert!(!other.get("/leaves").text().contains("oak"));
}

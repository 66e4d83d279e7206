//! Server actions: a form repeats the action captured when its page was rendered, and only for that
//! page's visitor.

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

/// Lists leaves with a form to remove each, and a form to add one.
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
        <form method="post" action={action!(|call, text: Text| call.insert(Leaf { id: Id::unassigned(), text }))}>
            <input name="text" aria-label="Leaf">
        </form>
    }
}

/// Captures a value of each supported type and prints it.
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

/// Captures more than an address can hold.
#[page("/large/{length}")]
async fn large(length: Path<usize>) -> impl Page {
    let text = "x".repeat(*length);
    html!(<form method="post" action={action!([text: String] |_call| text.len())}></form>)
}

/// A page without anything specific to a visitor.
#[page("/plain")]
async fn plain() -> impl Page {
    html!(<p>Plain</p>)
}

/// A page sent in pieces, with its action near the end.
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
fn serve_action_program() -> Exit {
    let Some(options) = options() else { return Exit::success() };
    App::new()
        .table::<Leaf>()
        .in_memory()
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
    program("actions::serve_action_program", options)
}

fn serve() -> Program {
    Program::start(&mut command(&[]))
}

/// A browser that stores its session cookie.
pub(crate) struct Browser {
    pub(crate) peer: Peer,
    pub(crate) cookie: String,
}

impl Browser {
    pub(crate) fn new(program: &Program) -> Self {
        Self { peer: program.connect(), cookie: String::new() }
    }

    pub(crate) fn ask(&mut self, method: &str, target: &str, more: &str, body: &str) -> Reply {
        let cookie = match &*self.cookie {
            "" => String::new(),
            cookie => format!("Cookie: {cookie}\r\n"),
        };
        let fields = format!("Sec-Fetch-Site: same-origin\r\n{cookie}{more}");
        let reply = self.peer.request(method, target, &fields, body);
        if let Some(set) = reply.header("Set-Cookie") {
            set.split(';').next().unwrap().clone_into(&mut self.cookie);
        }
        reply
    }

    pub(crate) fn get(&mut self, target: &str) -> Reply {
        self.ask("GET", target, "Accept: text/html\r\n", "")
    }

    /// Submits a form as a browser without scripts does.
    pub(crate) fn submit(&mut self, action: &str, body: &str) -> Reply {
        let more = "Accept: text/html\r\nContent-Type: application/x-www-form-urlencoded\r\n";
        self.ask("POST", action, more, body)
    }

    /// Submits a form as the script does.
    pub(crate) fn call(&mut self, action: &str, body: &str) -> Reply {
        let more =
            "Accept: application/json, text/html;q=0.5\r\nContent-Type: application/json\r\n";
        self.ask("POST", action, more, body)
    }
}

/// Returns the addresses of a page's forms, in order.
pub(crate) fn actions(page: &Reply) -> Vec<String> {
    let text = page.text();
    let forms = text.split("action=\"").skip(1);
    forms.map(|rest| rest.split('"').next().unwrap().to_owned()).collect()
}

#[test]
fn runs_action_without_script_and_returns_to_page() {
    let program = serve();
    let mut visitor = Browser::new(&program);
    let page = visitor.get("/leaves?order=new");
    assert!(page.head.contains("Vary: Cookie\r\n"), "{}", page.head);
    assert_eq!(page.header("Cache-Control"), Some("private, no-cache"));
    assert!(visitor.cookie.starts_with("session="), "{}", page.head);
    let [write] = &actions(&page)[..] else { panic!("{}", page.text()) };
    let done = visitor.submit(write, "text=oak");
    assert_eq!((done.status(), done.header("Location")), (303, Some("/leaves?order=new")));
    let page = visitor.get("/leaves");
    assert!(page.text().contains("oak"));
    let [remove, _] = &actions(&page)[..] else { panic!("{}", page.text()) };
    assert_eq!(visitor.submit(remove, "").header("Location"), Some("/leaves"));
    assert!(!visitor.get("/leaves").text().contains("oak"));
    // Removing a missing row succeeds again.
    assert_eq!(visitor.submit(remove, "").status(), 303);
}

#[test]
fn answers_script_as_a_service_does() {
    let program = serve();
    let mut visitor = Browser::new(&program);
    let write = actions(&visitor.get("/leaves")).pop().unwrap();
    let done = visitor.call(&write, r#"{"text":"oak"}"#);
    assert_eq!((done.status(), done.header("Content-Type")), (200, Some("application/json")));
    let [remove, _] = &actions(&visitor.get("/leaves"))[..] else { panic!("two forms") };
    assert_eq!(visitor.call(remove, "").status(), 204);
    let wrong = visitor.call(&write, r#"{"txet":"oak"}"#);
    assert_eq!(wrong.header("Content-Type"), Some("application/problem+json"));
    assert!(wrong.text().contains("did you mean `text`?"), "{}", wrong.text());
    let long = visitor.call(&write, r#"{"text":""}"#);
    assert_eq!(long.status(), 422);
    assert!(long.text().contains(r#""name":"text""#), "{}", long.text());
    let refuse = actions(&visitor.get("/failing")).pop().unwrap();
    let refused = visitor.call(&refuse, "");
    assert!(refused.status() == 403 && refused.text().contains("not today"));
}

#[test]
fn restores_captured_values_of_all_types() {
    let program = serve();
    let mut visitor = Browser::new(&program);
    let tell = actions(&visitor.get("/captured")).pop().unwrap();
    assert!(tell.starts_with("/_bine/action/tell/"), "{tell}");
    let told = visitor.submit(&tell, "more=1&more=2");
    let expected = "<p>-9223372036854775808 a&amp;b\n|  true 2</p>";
    assert!(told.text().contains(expected), "{}", told.text());
}

#[test]
fn renders_same_action_per_visitor_and_differs_between_visitors() {
    let program = serve();
    let (mut one, mut other) = (Browser::new(&program), Browser::new(&program));
    let first = one.get("/leaves");
    let (again, others) = (one.get("/leaves"), other.get("/leaves"));
    assert_eq!(first.text(), again.text());
    assert_eq!(again.header("Set-Cookie"), None);
    assert_ne!(first.text(), others.text());
    // A page without actions has no cookie and no cache restrictions.
    let plain = Browser::new(&program).get("/plain");
    let is_for_all = !plain.head.contains("Cookie") && plain.header("Cache-Control").is_none();
    assert!(is_for_all, "{}", plain.head);
}

#[test]
fn rejects_action_not_issued_to_visitor() {
    let program = serve();
    let mut visitor = Browser::new(&program);
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
    // A client without cookie, a second visitor, and the same visitor after a login.
    let mut other = Browser::new(&program);
    let nobodys = other.submit(&write, "text=oak");
    assert_eq!((nobodys.status(), nobodys.header("Set-Cookie")), (403, None));
    other.get("/leaves");
    assert_eq!(other.submit(&write, "text=oak").status(), 403);
    visitor.submit("/login/ann", "");
    assert_eq!(visitor.submit(&write, "text=oak").status(), 403);
    assert!(!visitor.get("/leaves").text().contains("oak"));
}

#[test]
fn rejects_action_from_other_site() {
    let program = serve();
    let mut visitor = Browser::new(&program);
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
fn action_survives_restart_and_removed_action_is_gone() {
    let folder = Folder::new();
    let data = folder.path().to_str().unwrap();
    let start = || Program::start(&mut command(&["--data", data]));
    let program = start();
    let mut visitor = Browser::new(&program);
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
fn seals_actions_in_streamed_and_delayed_pages() {
    let program = serve();
    let mut visitor = Browser::new(&program);
    for (page, answer) in [("/long", "7"), ("/late", "8")] {
        visitor.cookie.clear();
        let action = actions(&visitor.get(page)).pop().unwrap();
        assert_eq!(visitor.call(&action, "").text(), answer, "{page}");
    }
}

#[test]
fn replaces_unsealable_action_and_logs_reason() {
    let program = serve();
    let mut visitor = Browser::new(&program);
    assert!(actions(&visitor.get("/large/4000"))[0].starts_with("/_bine/action/"));
    assert_eq!(actions(&visitor.get("/large/4090")), ["about:invalid#action"]);
    assert_eq!(actions(&visitor.get("/frozen")), ["about:invalid#action"]);
    let errors = program.stop().errors;
    assert!(errors.contains("capture an id, and read the row in the action"), "{errors}");
}

#[test]
fn seals_actions_of_live_region_per_visitor() {
    let program = serve();
    let mut visitors = [Browser::new(&program), Browser::new(&program)];
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

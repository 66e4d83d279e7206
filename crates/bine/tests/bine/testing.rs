//! Decides that `bine::test` visits a program as people do, and says well what it does not find.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Instant;

use bine::live::Listening;
use bine::prelude::*;
use bine::test::{Method, Site};
use serde_json::{Value, json};

use crate::app::{options, program};
use crate::harness::{PATIENCE, Program};

// Examples that carry tests, which run here with the others.
#[allow(dead_code, reason = "its `main` is for people")]
#[path = "../../../../examples/actions.rs"]
mod actions;
#[allow(dead_code, reason = "its `main` is for people")]
#[path = "../../../../examples/notes.rs"]
mod notes;
#[allow(dead_code, reason = "its `main` is for people")]
#[path = "../../../../examples/session.rs"]
mod session;

#[derive(Table)]
struct Order {
    id: Id<Order>,
    said: Text,
}

#[page("/order")]
async fn form(store: Store) -> impl Page {
    let orders = store.read().newest::<Order>(20);
    html! {
        <h1>Orders</h1>
        <form id="order" method="post" action="/order">
            <input type="hidden" name="kind" value="hops & malt">
            <label>Name <input name="name" required maxlength="10"></label>
            <label>Note <textarea name="note">{"as \"always\""}</textarea></label>
            <label>Fast <input type="checkbox" name="fast" checked></label>
            <label>Small <input type="radio" name="size" value="small" checked></label>
            <label>Large <input type="radio" name="size" value="large"></label>
            <label>
                Color
                <select name="color"><option>green</option> <option value="gold">golden</option></select>
            </label>
            <button name="how" value="order">Order</button>
            <button name="how" value="ask" formnovalidate>Only ask</button>
        </form>
        <input name="code" form="order" aria-label="Code" value="7">
        <ul>{for order in orders { <li>{order.said}</li> }}</ul>
        <a href="?page=2"><b>Older</b></a> <a href="https://example.org/">Away</a>
    }
}

#[page(POST "/order")]
async fn order(store: Store, request: Request, body: bine::Body) -> Result<Response, Error> {
    let kind = request.field("Content-Type").unwrap_or_default().to_owned();
    let said = format!("{kind} {}", String::from_utf8_lossy(&body.0));
    store.insert(Order { id: Id::new(), said: said.into() }).await?;
    Ok(Response::see_other("/order"))
}

#[page("/count")]
async fn count(store: Store) -> Json<Value> {
    Json(json!({ "orders": store.read().newest::<Order>(20).len() }))
}

#[page(POST "/json")]
async fn twice(given: Json<Value>, request: Request) -> Json<Value> {
    let accept = request.field("Accept").unwrap_or_default().to_owned();
    Json(json!([given.0, given.0, accept]))
}

#[page("/upload")]
async fn choice() -> impl Page {
    html! {
        <form method="post" action="/upload" enctype="multipart/form-data">
            <input name="title" aria-label="Title"> <input type="file" name="picture" aria-label="Picture">
            <button>Send</button>
        </form>
    }
}

#[page(POST "/upload")]
fn uploaded(title: Form<Text>, picture: Upload) -> Result<impl Page, Error> {
    let (name, kind) = (picture.file_name().to_owned(), picture.media_type().to_owned());
    let length = picture.content()?.len();
    Ok(html!(<p>{title}": "{name} {kind} {length}</p>))
}

#[page("/circle")]
async fn circle() -> Response {
    Response::see_other("/circle")
}

fn shop() -> App {
    App::new()
        .table::<Order>()
        .page(form)
        .page(order)
        .page(count)
        .page(twice)
        .page(circle)
        .page(choice)
        .page(uploaded)
}

#[derive(Table)]
struct Post {
    id: Id<Post>,
    body: Text,
}

#[page("/board")]
async fn board(store: Store, session: Session) -> impl Page {
    html! {
        <h1>Hello {session.name()}</h1>
        <form method="post" action="/board"><input name="body" aria-label="Post"> <button>Post</button></form>
        <form method="post" action="/shout"><input name="body" aria-label="Loud"> <button>Shout</button></form>
        <ul><Live>{for post in store.read().newest::<Post>(20) { <li>{post.body}</li> }}</Live></ul>
    }
}

#[page(POST "/board")]
async fn post(store: Store, body: Form<Text>, events: Events) -> Result<Response, Error> {
    events.broadcast("posted", &*body)?;
    store.insert(Post { id: Id::new(), body: body.0 }).await?;
    Ok(Response::see_other("/board"))
}

/// A job for one of those who listen; whether there is one.
#[page(POST "/job/{number}")]
async fn job(events: Events, number: Path<u32>) -> Result<Json<bool>, Error> {
    Ok(Json(events.signal("job", *number)?))
}

#[page(POST "/clear")]
async fn clear(store: Store) -> Result<Response, Error> {
    let all = store.read().newest::<Post>(20);
    store
        .change(|change| {
            for post in &all {
                change.remove(post.id)?;
            }
            Ok::<_, bine::store::Error>(())
        })
        .await?;
    Ok(Response::see_other("/board"))
}

/// What it stands for is shown to those who have logged in.
#[page("/users")]
async fn users(user: User, store: Store) -> impl Page {
    html! {
        <form method="post" action="/logout"><button>Log out</button></form>
        <p>Hello {user}<Live>, there are {store.read().count::<Post>()} posts</Live>.</p>
    }
}

#[page(POST "/login")]
async fn log_in(session: Session, user: Form<Text>) -> Result<Response, Error> {
    session.log_in(user).await?;
    Ok(Response::see_other("/users"))
}

#[page(POST "/logout")]
async fn log_out(session: Session) -> Result<Response, Error> {
    session.log_out().await?;
    Ok(Response::see_other("/users"))
}

fn boards() -> App {
    let app = App::new().table::<Post>().event("posted").event("job").page(board).page(post);
    app.page(job).page(clear).page(users).page(log_in).page(log_out).page(scripted).service(shout)
}

/// A page as it is with the script, which sends its forms.
#[page("/scripted")]
async fn scripted(store: Store) -> impl Page {
    html! {
        <script type="module" src="/_bine/live-0.js"></script>
        <form id="wrong" method="post" action="/shout"><input name="wrong" aria-label="Post"></form>
        <form id="shout" method="post" action="/shout"><input name="body" aria-label="Post"></form>
        <ul><Live>{for post in store.read().newest::<Post>(20) { <li>{post.body}</li> }}</Live></ul>
    }
}

#[service("/shout")]
fn shout(call: &mut Call, body: Text) -> Result<(), Error> {
    if body.is_empty() {
        return Err(Error::wrong("body", "must not be empty"));
    }
    call.insert(Post { id: Id::new(), body: body.to_uppercase().as_str().into() })?;
    Ok(())
}

/// What a test is told that fails.
#[track_caller]
fn told(fails: impl FnOnce()) -> String {
    let panic = catch_unwind(AssertUnwindSafe(fails)).expect_err("it is fine with that");
    *panic.downcast::<String>().expect("it says something")
}

#[test]
fn a_form_is_sent_as_a_browser_sends_it() {
    let site = Site::new(shop());
    let mut tab = site.visit("/order");
    let none: [(&str, &str); 0] = [];
    let check = |tab: &mut bine::test::Tab, expected: &str| {
        assert_eq!((tab.url(), tab.status()), ("/order", 200));
        assert_eq!(
            tab.text("li"),
            format!("application/x-www-form-urlencoded kind=hops+%26+malt&{expected}")
        );
    };
    tab.submit("form", [("name", "Ann & Bo")]);
    check(
        &mut tab,
        "name=Ann+%26+Bo&note=as+%22always%22&fast=on&size=small&color=green&how=order&code=7",
    );
    tab.submit(
        "#order",
        [
            ("name", "a"),
            ("note", ""),
            ("fast", ""),
            ("size", "large"),
            ("color", "gold"),
            ("code", "8"),
        ],
    );
    check(&mut tab, "name=a&note=&size=large&color=gold&how=order&code=8");
    let rest = "name=&note=as+%22always%22&fast=on&size=small&color=green&how=ask&code=7";
    tab.click("button[value=ask]");
    check(&mut tab, rest);
    tab.expect_count("li", 3);
    assert!(
        told(|| tab.submit("form", none))
            .starts_with("a browser would not send this form: `name` is required and empty\n")
    );
}

#[test]
fn what_a_form_does_not_take_is_refused_with_what_it_takes() {
    let site = Site::new(shop());
    let mut tab = site.visit("/order");
    for (name, value, expected) in [
        (
            "nme",
            "a",
            "the form has no field `nme`; did you mean `name`? (its fields: kind, name, note, fast, size, color, how, code)",
        ),
        (
            "size",
            "larg",
            "the field `size` does not take \"larg\": it takes \"small\", \"large\"; did you mean \"large\"?",
        ),
        (
            "color",
            "golden",
            "the field `color` does not take \"golden\": it takes \"green\", \"gold\"; did you mean \"gold\"?",
        ),
        (
            "kind",
            "beer",
            "the field `kind` does not take \"beer\": it is filled already, or no visitor can fill it (hidden, disabled or read-only)",
        ),
        (
            "name",
            "far too long",
            "a browser would not send this form: `name` takes at most 10 characters, not 12",
        ),
    ] {
        let told = told(|| tab.submit("form", [(name, value)]));
        assert_eq!(told.lines().next(), Some(expected));
        assert!(
            told.contains("\n\nthe page is /order (status 200), and reads:\n    Orders\n"),
            "{told}"
        );
    }
}

#[test]
fn links_lead_on_and_back() {
    let site = Site::new(shop());
    let mut tab = site.visit("/order");
    tab.click("a > b");
    assert_eq!(tab.url(), "/order?page=2");
    tab.back();
    assert_eq!(tab.url(), "/order");
    assert!(told(|| tab.back()).starts_with("no page was shown before this one\n"));
    let away = told(|| tab.click("a[href^=https]"));
    assert!(
        away.starts_with("the link leads away from the site, to https://example.org/\n"),
        "{away}"
    );
    assert!(told(|| tab.click("a")).starts_with("there are 2 `a`; say which"));
    assert!(
        told(|| tab.click("h1")).starts_with("`h1` is no link, and no button that sends a form\n")
    );
    assert_eq!(told(|| tab.visit("/circle")), "sent on 20 times, at last to /circle");
    tab.visit("/lost");
    assert_eq!((tab.url(), tab.status()), ("/lost", 404));
}

#[test]
fn what_is_expected_and_missing_is_told_with_what_is_near() {
    let site = Site::new(shop());
    let mut tab = site.visit("/order");
    let missing = told(|| tab.expect("h2", "Orders"));
    assert!(
        missing.starts_with("there is no `h2`\n\nnothing on the page is `h2`; it has a, b, "),
        "{missing}"
    );
    let unlike = told(|| tab.expect("h1", "Notes"));
    assert!(
        unlike.starts_with(
            "no `h1` says \"Notes\"\n\nthere is one `h1`:\n    <h1> Orders\n\nthe page is /order"
        ),
        "{unlike}"
    );
    assert!(
        told(|| tab.expect_none("h1", "Ord"))
            .starts_with("there is a `h1` that says \"Ord\"\n\n    <h1> Orders\n")
    );
    assert!(told(|| tab.expect_count("h1", 2)).starts_with("there are 1 `h1`, not 2\n"));
    assert!(
        told(|| _ = tab.count("h1 >")).starts_with("the selector \"h1 >\" is wrong at character 5")
    );
    tab.expect("h1", |text: &str| text.len() == 6);
    tab.expect_none("li", "");
}

#[test]
fn plain_requests_have_all_of_the_answer() {
    let site = Site::new(shop());
    let reply = site.get("/count");
    assert_eq!((reply.status(), reply.field("content-type")), (200, Some("application/json")));
    assert_eq!(reply.json::<Value>(), json!({ "orders": 0 }));
    let reply = site.post_json("/json", &json!({ "a": [1] }));
    assert_eq!(reply.json::<Value>(), json!([{ "a": [1] }, { "a": [1] }, "application/json"]));
    let order = site.fetch(Method::Post, "/order").field("Content-Type", "text/plain").body("hi");
    let reply = order.send();
    assert_eq!((reply.status(), reply.field("Location")), (303, Some("/order")));
    assert_eq!(site.fetch(Method::Head, "/count").send().bytes(), b"");
    site.visit("/order").expect("li", "text/plain hi");
}

#[test]
fn each_site_begins_with_nothing_and_many_run_at_once() {
    let sites: Vec<Site> = (0..20).map(|_| Site::new(shop())).collect();
    for (number, site) in sites.iter().enumerate() {
        let mut tab = site.visit("/order");
        tab.expect_none("li", "");
        tab.submit("form", [("name", format!("Ann {number}"))]);
        tab.expect_count("li", 1);
        tab.expect("li", format!("&name=Ann+{number}&"));
    }
}

#[test]
fn a_site_leaves_no_thread_behind() {
    let test = "testing::a_site_leaves_no_thread_behind";
    if options().is_none() {
        // Alone in a process, or the threads of other tests would be counted.
        let ended = Program::run(&mut program(test, &[]));
        assert_eq!(ended.code, Some(0), "{}", ended.errors);
        return;
    }
    // Names, for whoever must find out which.
    let threads = || -> Vec<String> {
        let tasks = std::fs::read_dir("/proc/self/task").unwrap().flatten();
        let mut names: Vec<String> = tasks
            .filter_map(|task| std::fs::read_to_string(task.path().join("comm")).ok())
            .collect();
        names.sort();
        names
    };
    let visit =
        || Site::new(boards()).visit("/board").submit("form[action='/board']", [("body", "hi")]);
    visit();
    let before = threads();
    (0..10).for_each(|_| visit());
    // Some are only told to end.
    let deadline = Instant::now() + PATIENCE;
    while threads().len() > before.len() && Instant::now() < deadline {
        std::thread::yield_now();
    }
    let after = threads();
    assert!(after.len() <= before.len(), "{before:?} became {after:?}");
}

#[test]
fn a_site_that_was_never_asked_ends_too() {
    let site = Site::new(shop());
    let address = site.address();
    drop(site);
    assert!(std::net::TcpStream::connect(address).is_err());
}

#[test]
fn a_program_that_cannot_start_says_why() {
    let told = told(|| drop(Site::new(App::new().page(count))));
    assert!(told.starts_with("the program cannot start: "), "{told}");
    assert!(told.contains("takes the `Store`, and the program has no tables"), "{told}");
}

#[test]
fn tabs_see_what_others_post() {
    let site = Site::new(boards());
    let (mut ann, mut bo) = (site.visit("/board"), site.visit("/board"));
    assert_ne!(ann.text("h1"), bo.text("h1"));
    ann.submit("form[action='/board']", [("body", "hi")]);
    bo.expect("li", "hi");
    bo.submit("form[action='/board']", [("body", "good day")]);
    ann.expect("li", "good day");
    assert_eq!(ann.texts("li"), ["good day", "hi"]);
    site.fetch(Method::Post, "/clear").send();
    ann.expect_none("li", "");
    bo.expect_count("li", 0);
}

/// Whoever is told when a server has ended does not go on for nobody.
#[test]
fn a_thread_tells_and_is_told_who_listens_until_the_server_has_ended() {
    let (give, given) = std::sync::mpsc::channel();
    let app = App::new().event("bell").page(nothing).at_events(move |events| {
        let monitor = events.monitor("bell")?;
        give.send((events.clone(), monitor)).map_err(|_| Error::not_found("the test has ended"))
    });
    let site = Site::new(app);
    let (events, mut monitor) = given.recv().unwrap();
    let mut tab = site.visit("/nothing");
    tab.listen("bell");
    assert_eq!(monitor.wait(PATIENCE), Some(Listening::Joined { listeners: 1 }));
    events.broadcast("bell", 7).unwrap();
    assert_eq!(tab.expect_event("bell"), 7);
    drop(tab);
    assert_eq!(monitor.wait(PATIENCE), Some(Listening::Left { listeners: 0 }));
    drop(site);
    assert_eq!(monitor.wait(PATIENCE), None);
    assert!(events.broadcast("bell", 8).is_err());
}

#[page("/nothing")]
async fn nothing() -> impl Page {
    html!(<p>"Nothing."</p>)
}

#[test]
fn a_tab_hears_the_events_that_it_listens_to() {
    let site = Site::new(boards());
    let (mut ann, mut bo) = (site.visit("/board"), site.visit("/board"));
    bo.listen("posted");
    ann.submit("form[action='/board']", [("body", "hi")]);
    assert_eq!(bo.expect_event("posted"), "hi");
    bo.expect("li", "hi");
    let told = told(|| bo.listen("poste"));
    assert!(told.contains("the event `poste` cannot be heard\n"), "{told}");
}

#[test]
fn a_signal_goes_to_one_of_those_who_listen_and_the_next_to_another() {
    let site = Site::new(boards());
    let job =
        |number: u32| site.fetch(Method::Post, &format!("/job/{number}")).send().json::<bool>();
    assert!(!job(1), "nobody listens");
    let (mut ann, mut bo) = (site.visit("/board"), site.visit("/board"));
    ann.listen("job");
    bo.listen("job");
    for jobs in [[2, 3], [4, 5]] {
        assert!(jobs.map(job).iter().all(|is_heard| *is_heard));
        let heard = [ann.expect_event("job"), bo.expect_event("job")];
        assert!(heard == jobs.map(Value::from) || heard == [jobs[1], jobs[0]].map(Value::from));
    }
}

#[test]
fn who_is_logged_out_elsewhere_sees_it() {
    let site = Site::new(boards());
    let ann = site.visitor();
    ann.fetch(Method::Post, "/login")
        .field("Content-Type", "application/x-www-form-urlencoded")
        .body("user=ann")
        .send();
    let (mut tab, mut other) = (ann.visit("/users"), ann.visit("/users"));
    site.visit("/board").submit("form[action='/board']", [("body", "hi")]);
    tab.expect("p", "Hello ann, there are 1 posts.");
    other.click("button");
    for tab in [&mut tab, &mut other] {
        tab.expect_none("p", "ann");
        assert_eq!(tab.status(), 401);
    }
}

#[test]
fn a_form_is_sent_by_the_script_where_there_is_one() {
    let site = Site::new(boards());
    let mut tab = site.visit("/scripted");
    tab.submit("#shout", [("body", "hi")]);
    assert_eq!(tab.url(), "/scripted");
    tab.expect("li", "HI");
    tab.submit("#shout", [("body", "")]);
    tab.expect("#shout [role=alert]", |text: &str| text == "must not be empty");
    tab.submit("#wrong", [("wrong", "x")]);
    tab.expect("#wrong [role=alert]", "body: ");
    tab.expect_none("#shout [role=alert]", "");
}

#[test]
fn a_service_is_called_and_answers_forms_too() {
    let site = Site::new(boards());
    assert_eq!(site.post_json("/shout", &json!({ "body": "a" })).status(), 204);
    let refused = site.post_json("/shout", &json!({ "bdy": "a" }));
    assert_eq!(
        (refused.status(), refused.field("Content-Type")),
        (400, Some("application/problem+json"))
    );
    let foreign = site
        .fetch(Method::Post, "/shout")
        .field("Origin", "https://other.example")
        .json(&json!({ "body": "a" }));
    assert_eq!(foreign.send().status(), 403);
    let mut tab = site.visit("/board");
    tab.submit("form[action='/shout']", [("body", "b")]);
    tab.expect("li", "B");
    assert_eq!(tab.texts("li"), ["B", "A"]);
    assert_eq!(tab.url(), "/board");
}

#[test]
fn a_file_that_was_chosen_is_sent() {
    let site = Site::new(shop());
    let mut tab = site.visit("/upload");
    tab.choose("input[type=file]", "hop \"1\".png", "image/png", b"\x89PNG\r\n--".as_slice());
    tab.submit("form", [("title", "A hop")]);
    tab.expect("p", "A hop: hop \"1\".png image/png 8");
    tab.visit("/upload");
    tab.submit("form", [("title", "No hop")]);
    tab.expect("p", "`picture` is missing from the form");
    tab.visit("/upload");
    let told = told(|| tab.choose("input[name=title]", "a", "text/plain", ""));
    assert!(
        told.starts_with("`input[name=title]` takes no file\n\n    <input name=\"title\""),
        "{told}"
    );
}

#[test]
fn a_page_whose_site_has_ended_says_that_it_is_no_longer_followed() {
    let site = Site::new(boards());
    let mut tab = site.visit("/board");
    drop(site);
    let told = told(|| tab.expect("li", "hi"));
    assert!(told.starts_with("there is no `li`\n"), "{told}");
    assert!(told.contains("(status 200, and no longer followed: its stream: "), "{told}");
    // It may be given to another thread.
    std::thread::scope(|scope| scope.spawn(move || drop(tab)).join().unwrap());
}

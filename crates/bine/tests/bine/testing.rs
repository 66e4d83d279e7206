//! `bine::test`: tabs behave as a browser does, and failures are reported clearly.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use bine::live::ListenerChange;
use bine::prelude::*;
use bine::test::{Method, Site};
use serde_json::{Value, json};

use crate::app::{options, program};
use crate::harness::{PATIENCE, Program};

// Examples with tests of their own, which run here too.
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
    let kind = request.header("Content-Type").unwrap_or_default().to_owned();
    let said = format!("{kind} {}", String::from_utf8_lossy(&body.0));
    store.insert(Order { id: Id::unassigned(), said: said.into() }).await?;
    Ok(Response::see_other("/order"))
}

#[page("/count")]
async fn count(store: Store) -> Json<Value> {
    Json(json!({ "orders": store.read().newest::<Order>(20).len() }))
}

#[page(POST "/json")]
async fn twice(given: Json<Value>, request: Request) -> Json<Value> {
    let accept = request.header("Accept").unwrap_or_default().to_owned();
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

#[page("/fields")]
async fn fields() -> impl Page {
    html! {
        <form id="lines" method="post" action="/order"><textarea name="a" aria-label="A">"1\n2"</textarea><button>Send</button></form>
        <form id="parts" method="post" action="/order" enctype="multipart/form-data">
            <textarea name="a" aria-label="A">"1\n2"</textarea><button>Send</button>
        </form>
        <form id="off" method="post" action="/order">
            <fieldset disabled>
                <legend>Not now <input name="legend" aria-label="L" value="1"></legend>
                <input name="off" aria-label="Off" value="2">
            </fieldset>
            <button name="by" value="it">Send</button>
        </form>
        <form id="button" method="post" action="/order"><button disabled>Send</button> <button>Other</button></form>
        <form id="kinds" method="post" action="/order">
            <input type="number" name="count" aria-label="Count" min="2" step="2">
            <input type="email" name="mail" aria-label="Mail"> <button>Send</button>
        </form>
    }
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
        .page(fields)
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
    store.insert(Post { id: Id::unassigned(), body: body.0 }).await?;
    Ok(Response::see_other("/board"))
}

/// Displays forms and links for each post.
#[page("/desk")]
async fn desk(store: Store) -> impl Page {
    html! {
        <ul><Live>{for post in store.read().newest::<Post>(20) {
            <li>
                <a href="/board"><b>{&post.body}</b></a>
                <form method="post" action="/board">
                    <input name="body" aria-label="Reply"> <input type="file" name="file" aria-label="File">
                    <button>Reply</button>
                </form>
            </li>
        }}</Live></ul>
    }
}

/// Sends a job to one listener. Returns whether there was one.
#[page(POST "/job/{number}")]
async fn job(events: Events, number: Path<u32>) -> Result<Json<bool>, Error> {
    Ok(Json(events.notify_one("job", *number)?))
}

#[page(POST "/clear")]
async fn clear(store: Store, events: Events) -> Result<Response, Error> {
    events.broadcast("cleared", "all")?;
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

/// Is a response, and redirects when there are three posts.
#[page("/few")]
async fn few(store: Store) -> Result<Response, Error> {
    let posts = store.read().newest::<Post>(3);
    if posts.len() == 3 {
        return Err(Error::see_other("/board"));
    }
    Ok(Response::page(html!(<ul><Live>{for post in posts { <li>{post.body}</li> }}</Live></ul>)))
}

/// Its region differs in each response.
#[page("/changing")]
async fn changing() -> impl Page {
    static MADE: AtomicUsize = AtomicUsize::new(0);
    html!(<div><Live><p>{MADE.fetch_add(1, Ordering::Relaxed)}</p></Live></div>)
}

/// Has more regions in each response.
#[page("/restless")]
async fn restless() -> impl Page {
    static MADE: AtomicUsize = AtomicUsize::new(1);
    let regions = MADE.fetch_add(1, Ordering::Relaxed);
    html!(<div>{for region in 0..regions { <Live><p>{region}</p></Live> }}</div>)
}

#[page("/endless")]
async fn endless() -> Response {
    Response::stream("text/plain", async move |mut out| {
        loop {
            out.send("la ").await?;
        }
    })
}

/// Displays data for logged-in users.
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
    let app = App::new().table::<Post>().event("posted").event("cleared").event("job");
    let app = app.page(board).page(post).page(clear).page(job).page(desk).page(few);
    let app = app.page(changing).page(restless).page(endless);
    app.page(users).page(log_in).page(log_out).page(scripted).service(shout)
}

/// A page with the script, which submits its forms.
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
        return Err(Error::invalid_argument("body", "must not be empty"));
    }
    call.insert(Post { id: Id::unassigned(), body: body.to_uppercase().as_str().into() })?;
    Ok(())
}

/// Runs a check that must fail. Returns the message.
#[track_caller]
fn failure_of(fails: impl FnOnce()) -> String {
    let panic = catch_unwind(AssertUnwindSafe(fails)).expect_err("the check did not fail");
    *panic.downcast::<String>().expect("the panic has no message")
}

#[test]
fn submits_forms_as_a_browser_does() {
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
        failure_of(|| tab.submit("form", none))
            .starts_with("a browser would not send this form: `name` is required and empty\n")
    );
}

#[test]
fn rejects_invalid_input_and_lists_valid_choices() {
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
        let message = failure_of(|| tab.submit("form", [(name, value)]));
        assert_eq!(message.lines().next(), Some(expected));
        assert!(
            message.contains("\n\nthe page is /order (status 200), and reads:\n    Orders\n"),
            "{message}"
        );
    }
}

#[test]
fn normalizes_lines_and_skips_disabled_fields() {
    let site = Site::new(shop());
    let mut tab = site.visit("/fields");
    let none: [(&str, &str); 0] = [];
    let body = |tab: &mut bine::test::Tab| {
        let said = tab.tree().find("li").unwrap().expect("the form was not submitted").text();
        tab.visit("/fields");
        said
    };
    tab.submit("#lines", none);
    assert_eq!(body(&mut tab), "application/x-www-form-urlencoded a=1%0D%0A2");
    tab.submit("#lines", [("a", "1\r2\r\n3")]);
    assert_eq!(body(&mut tab), "application/x-www-form-urlencoded a=1%0D%0A2%0D%0A3");
    tab.submit("#off", none);
    assert_eq!(body(&mut tab), "application/x-www-form-urlencoded legend=1&by=it");
    tab.submit("#kinds", [("count", "4"), ("mail", "a@b.example")]);
    assert_eq!(body(&mut tab), "application/x-www-form-urlencoded count=4&mail=a%40b.example");
    tab.submit("#parts", none);
    assert!(body(&mut tab).contains("name=\"a\""), "the form is not multipart");
    for (form, filled, expected) in [
        ("#button", &[][..], "its first button is disabled"),
        ("#kinds", &[("count", "3")], "`count` takes steps of 2 from 2, not \"3\""),
        ("#kinds", &[("mail", "ann")], "`mail` takes an address of mail"),
    ] {
        let message = failure_of(|| tab.submit(form, filled.iter().copied()));
        assert!(
            message.starts_with(&format!("a browser would not send this form: {expected}")),
            "{message}"
        );
    }
}

#[test]
fn follows_links_and_goes_back() {
    let site = Site::new(shop());
    let mut tab = site.visit("/order");
    tab.click("a > b");
    assert_eq!(tab.url(), "/order?page=2");
    tab.back();
    assert_eq!(tab.url(), "/order");
    assert!(failure_of(|| tab.back()).starts_with("no page was shown before this one\n"));
    let away = failure_of(|| tab.click("a[href^=https]"));
    assert!(
        away.starts_with("the link leads away from the site, to https://example.org/\n"),
        "{away}"
    );
    assert!(failure_of(|| tab.click("a")).starts_with("there are 2 `a`; say which"));
    assert!(
        failure_of(|| tab.click("h1"))
            .starts_with("`h1` is no link, and no button that sends a form\n")
    );
    assert_eq!(failure_of(|| tab.visit("/circle")), "sent on 20 times, at last to /circle");
    tab.visit("/lost");
    assert_eq!((tab.url(), tab.status()), ("/lost", 404));
}

#[test]
fn reports_missing_elements_with_similar_ones() {
    let site = Site::new(shop());
    let mut tab = site.visit("/order");
    let missing = failure_of(|| tab.expect("h2", "Orders"));
    assert!(
        missing.starts_with("there is no `h2`\n\nnothing on the page is `h2`; it has a, b, "),
        "{missing}"
    );
    let unlike = failure_of(|| tab.expect("h1", "Notes"));
    assert!(
        unlike.starts_with(
            "no `h1` says \"Notes\"\n\nthere is one `h1`:\n    <h1> Orders\n\nthe page is /order"
        ),
        "{unlike}"
    );
    assert!(
        failure_of(|| tab.expect_none("h1", "Ord"))
            .starts_with("there is a `h1` that says \"Ord\"\n\n    <h1> Orders\n")
    );
    assert!(failure_of(|| tab.expect_count("h1", 2)).starts_with("there are 1 `h1`, not 2\n"));
    assert!(
        failure_of(|| _ = tab.count("h1 >"))
            .starts_with("the selector \"h1 >\" is wrong at character 5")
    );
    tab.expect("h1", |text: &str| text.len() == 6);
    tab.expect_none("li", "");
}

#[test]
fn plain_requests_return_the_whole_response() {
    let site = Site::new(shop());
    let reply = site.get("/count");
    assert_eq!((reply.status(), reply.header("content-type")), (200, Some("application/json")));
    assert_eq!(reply.json::<Value>(), json!({ "orders": 0 }));
    let reply = site.post_json("/json", &json!({ "a": [1] }));
    assert_eq!(reply.json::<Value>(), json!([{ "a": [1] }, { "a": [1] }, "application/json"]));
    let order =
        site.request(Method::Post, "/order").header("Content-Type", "text/plain").body("hi");
    let reply = order.send();
    assert_eq!((reply.status(), reply.header("Location")), (303, Some("/order")));
    assert_eq!(site.request(Method::Head, "/count").send().bytes(), b"");
    site.visit("/order").expect("li", "text/plain hi");
}

#[test]
fn many_sites_run_at_once_with_separate_data() {
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
fn site_leaves_no_threads() {
    let test = "testing::site_leaves_no_threads";
    if options().is_none() {
        // Run alone in a process, because threads of other tests would count.
        let ended = Program::run(&mut program(test, &[]));
        assert_eq!(ended.code, Some(0), "{}", ended.errors);
        return;
    }
    // Names help to find the thread that remains.
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
    // Some threads end asynchronously.
    let deadline = Instant::now() + PATIENCE;
    while threads().len() > before.len() && Instant::now() < deadline {
        std::thread::yield_now();
    }
    let after = threads();
    assert!(after.len() <= before.len(), "{before:?} became {after:?}");
}

#[test]
fn stops_site_without_requests() {
    let site = Site::new(shop());
    let address = site.address();
    drop(site);
    assert!(std::net::TcpStream::connect(address).is_err());
}

#[test]
fn reports_why_program_cannot_start() {
    let message = failure_of(|| drop(Site::new(App::new().page(order))));
    assert!(message.starts_with("the program cannot start: "), "{message}");
    assert!(message.contains("takes the `Store`, and the program has no tables"), "{message}");
}

#[test]
fn tabs_show_changes_by_others() {
    let site = Site::new(boards());
    let (mut ann, mut bo) = (site.visit("/board"), site.visit("/board"));
    assert_ne!(ann.text("h1"), bo.text("h1"));
    ann.submit("form[action='/board']", [("body", "hi")]);
    bo.expect("li", "hi");
    bo.submit("form[action='/board']", [("body", "good day")]);
    ann.expect("li", "good day");
    assert_eq!(ann.texts("li"), ["good day", "hi"]);
    site.request(Method::Post, "/clear").send();
    ann.expect_none("li", "");
    bo.expect_count("li", 0);
}

/// Symptom: a test had to call `expect` before `click` when a live region was about to display the
/// link. Cause: only expectations waited. Fix: each method that needs an element waits for it.
#[test]
fn actions_wait_for_their_element() {
    let site = Site::new(boards());
    let mut ann = site.visit("/board");
    let mut say = |said: &str| ann.submit("form[action='/board']", [("body", said)]);
    let clear = || _ = site.request(Method::Post, "/clear").send();
    // An action on a page without the element, just after another tab has added it.
    let mut late = |act: fn(&mut bine::test::Tab)| {
        clear();
        let mut tab = site.visit("/desk");
        assert!(tab.tree().find("li").unwrap().is_none());
        say("hi");
        act(&mut tab);
        tab
    };
    assert_eq!(late(|tab| tab.click("li:first-child b")).url(), "/board");
    assert_eq!(late(|tab| tab.submit("li:last-child form", [("body", "ho")])).url(), "/board");
    late(|tab| assert_eq!(tab.text("li b"), "hi"));
    late(|tab| tab.choose("li [type=file]", "a.txt", "text/plain", "a"));
    // A selector with several matches waits until there is one.
    let mut tab = site.visit("/desk");
    say("ho");
    tab.expect_count("li", 2);
    clear();
    say("one");
    tab.click("li b");
    assert_eq!(tab.url(), "/board");
}

#[test]
fn live_page_may_be_a_response_and_redirects_when_its_data_changes() {
    let site = Site::new(boards());
    let (mut ann, mut bo) = (site.visit("/few"), site.visit("/board"));
    assert_eq!((ann.status(), ann.count("li")), (200, 0));
    for (body, count) in [("one", 1), ("two", 2)] {
        bo.submit("form[action='/board']", [("body", body)]);
        ann.expect_count("li", count);
    }
    bo.submit("form[action='/board']", [("body", "three")]);
    ann.expect("h1", "Hello");
    assert_eq!(ann.url(), "/board");
}

#[test]
fn actions_report_missing_element_of_live_page() {
    let site = Site::new(boards());
    site.visit("/board").submit("form[action='/board']", [("body", "hi")]);
    let mut tab = site.visit("/desk");
    drop(site);
    for message in [
        failure_of(|| tab.click("li:nth-child(2) a")),
        failure_of(|| tab.submit("li:nth-child(2) form", [("body", "")])),
        failure_of(|| tab.choose("li:nth-child(2) [type=file]", "a", "text/plain", "")),
        failure_of(|| _ = tab.text("li:nth-child(2)")),
    ] {
        assert!(message.starts_with("there is no `li:nth-child(2)"), "{message}");
        assert!(message.contains("\n\nthere is one `li"), "{message}");
        assert!(message.contains("and no longer followed: its stream: "), "{message}");
    }
    let message = failure_of(|| tab.click("li:hover"));
    assert!(message.contains("is not supported at character 3: `:hover`"), "{message}");
}

/// A monitor ends with the server, so its thread can end too.
#[test]
fn monitor_reports_listeners_until_server_stops() {
    let (give, given) = std::sync::mpsc::channel();
    let app = App::new().event("bell").page(nothing).on_events_open(move |events| {
        let monitor = events.monitor("bell")?;
        give.send((events.clone(), monitor)).map_err(|_| Error::not_found("the test has ended"))
    });
    let site = Site::new(app);
    let (events, mut monitor) = given.recv().unwrap();
    let mut tab = site.visit("/nothing");
    tab.listen("bell");
    assert_eq!(monitor.wait(PATIENCE), Some(ListenerChange::Joined { listeners: 1 }));
    events.broadcast("bell", 7).unwrap();
    assert_eq!(tab.expect_event("bell"), 7);
    drop(tab);
    assert_eq!(monitor.wait(PATIENCE), Some(ListenerChange::Left { listeners: 0 }));
    drop(site);
    assert_eq!(monitor.wait(PATIENCE), None);
    assert!(events.broadcast("bell", 8).is_err());
}

#[page("/nothing")]
async fn nothing() -> impl Page {
    html!(<p>"Nothing."</p>)
}

#[test]
fn tab_receives_events_it_listens_to() {
    let site = Site::new(boards());
    let (mut ann, mut bo) = (site.visit("/board"), site.visit("/board"));
    bo.listen("posted");
    ann.submit("form[action='/board']", [("body", "hi")]);
    assert_eq!(bo.expect_event("posted"), "hi");
    bo.expect("li", "hi");
    let message = failure_of(|| bo.listen("poste"));
    assert!(message.contains("the event `poste` cannot be heard\n"), "{message}");
}

#[test]
fn signals_reach_listeners_in_turn() {
    let site = Site::new(boards());
    let job =
        |number: u32| site.request(Method::Post, &format!("/job/{number}")).send().json::<bool>();
    assert!(!job(1), "no listener yet");
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
fn expect_none_waits_until_all_changes_are_shown() {
    let site = Site::new(boards());
    let (mut ann, mut bo) = (site.visit("/board"), site.visit("/board"));
    for round in 0..20 {
        let said = format!("secret {round}");
        ann.submit("form[action='/board']", [("body", &said)]);
        bo.expect_none("li", "nobody said it");
        // The check has waited for the latest change; `tree` does not wait.
        let newest = bo.tree().find("li").unwrap().map(bine::tree::Element::text);
        assert_eq!(newest, Some(said));
    }
    ann.submit("form[action='/board']", [("body", "found out")]);
    let absent = failure_of(|| bo.expect_none("li", "found out"));
    assert!(absent.starts_with("there is a `li` that says \"found out\""), "{absent}");
    drop(site);
    let message = failure_of(|| bo.expect_none("li", "another"));
    // The tab may notice either first.
    let reasons = ["the tab no longer follows its page: its stream", "no answer to GET /board"];
    assert!(reasons.iter().any(|reason| message.starts_with(reason)), "{message}");
}

#[test]
fn checks_page_whose_region_always_differs() {
    let site = Site::new(boards());
    let mut tab = site.visit("/changing");
    tab.expect_none("p", "never");
    tab.expect_count("p", 1);
}

#[test]
fn reports_page_that_reloads_endlessly() {
    let site = Site::new(boards());
    let mut tab = site.visit("/restless");
    let message = failure_of(|| tab.expect("p", "never"));
    assert!(
        message.contains("no longer followed: it is to be asked for again and again"),
        "{message}"
    );
}

#[test]
fn listening_to_second_event_keeps_the_first() {
    let site = Site::new(boards());
    let (mut ann, mut bo) = (site.visit("/board"), site.visit("/board"));
    bo.listen("posted");
    ann.submit("form[action='/board']", [("body", "one")]);
    bo.expect("li", "one");
    bo.listen("cleared");
    bo.listen("posted");
    site.request(Method::Post, "/clear").send();
    ann.submit("form[action='/board']", [("body", "two")]);
    assert_eq!(bo.expect_event("cleared"), "all");
    assert_eq!(bo.expect_event("posted"), "one");
    let message = failure_of(|| bo.listen("lost"));
    assert!(message.contains("the event `lost` cannot be heard"), "{message}");
    assert_eq!(bo.expect_event("posted"), "two");
    bo.expect_count("li", 1);
}

#[test]
fn reads_part_of_endless_response() {
    let site = Site::new(boards());
    let reply =
        site.request(Method::Get, "/_bine/live?on=posted").header("Accept", "text/event-stream");
    assert_eq!(reply.max_body_size(0).send().header("Content-Type"), Some("text/event-stream"));
    assert_eq!(site.request(Method::Get, "/endless").max_body_size(7).send().text(), "la la l");
}

#[test]
fn logout_in_one_tab_ends_the_other() {
    let site = Site::new(boards());
    let ann = site.client();
    ann.request(Method::Post, "/login")
        .header("Content-Type", "application/x-www-form-urlencoded")
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
fn script_submits_forms_on_pages_that_have_it() {
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
fn calls_services_and_submits_forms_to_them() {
    let site = Site::new(boards());
    assert_eq!(site.post_json("/shout", &json!({ "body": "a" })).status(), 204);
    let refused = site.post_json("/shout", &json!({ "bdy": "a" }));
    assert_eq!(
        (refused.status(), refused.header("Content-Type")),
        (400, Some("application/problem+json"))
    );
    let foreign = site
        .request(Method::Post, "/shout")
        .header("Origin", "https://other.example")
        .json(&json!({ "body": "a" }));
    assert_eq!(foreign.send().status(), 403);
    let mut tab = site.visit("/board");
    tab.submit("form[action='/shout']", [("body", "b")]);
    tab.expect("li", "B");
    assert_eq!(tab.texts("li"), ["B", "A"]);
    assert_eq!(tab.url(), "/board");
}

#[test]
fn uploads_chosen_file() {
    let site = Site::new(shop());
    let mut tab = site.visit("/upload");
    tab.choose("input[type=file]", "hop \"1\".png", "image/png", b"\x89PNG\r\n--".as_slice());
    tab.submit("form", [("title", "A hop")]);
    tab.expect("p", "A hop: hop \"1\".png image/png 8");
    tab.visit("/upload");
    tab.submit("form", [("title", "No hop")]);
    // The form comes back: the message is beside the file, and the text is kept.
    tab.expect("p[role=alert]", "is missing from the form");
    tab.expect("input[name=title][value='No hop']", "");
    tab.visit("/upload");
    let message = failure_of(|| tab.choose("input[name=title]", "a", "text/plain", ""));
    assert!(
        message.starts_with("`input[name=title]` takes no file\n\n    <input name=\"title\""),
        "{message}"
    );
}

#[test]
fn reports_that_page_of_stopped_site_is_not_followed() {
    let site = Site::new(boards());
    let mut tab = site.visit("/board");
    drop(site);
    let message = failure_of(|| tab.expect("li", "hi"));
    assert!(message.starts_with("there is no `li`\n"), "{message}");
    assert!(message.contains("(status 200, and no longer followed: its stream: "), "{message}");
    // Tabs are `Send`.
    std::thread::scope(|scope| scope.spawn(move || drop(tab)).join().unwrap());
}

//! The audience of a region: data that a page reads of one visitor is never sent to another,
//! wherever the page reads it, and a visitor who loses access receives nothing more.

use bine::prelude::*;
use bine::{Body, Filter, FilterDecision, FilterRequest, Sessions};

use super::viewer::{Event, Viewer};
use crate::app::{options, program};
use crate::harness::{Folder, KINDS, Program, Reply};

#[derive(Clone, Table)]
struct Tick {
    id: Id<Tick>,
    text: Text,
}

/// The program under test. Ordinary test runs skip it.
#[test]
fn serve_visitor_program() -> Exit {
    let Some(options) = options() else { return Exit::success() };
    App::new()
        .table::<Tick>()
        .sessions(Sessions::new())
        .filter(Tenants)
        .page(tick)
        .page(log_in)
        .page(log_out)
        .page(keep)
        .page(revoke_others)
        .page(by_session)
        .page(by_session_perhaps)
        .page(by_session_behind)
        .page(by_session_by_worker)
        .page(by_session_later)
        .page(by_user)
        .page(by_user_perhaps)
        .page(by_cookie)
        .page(by_field)
        .page(by_request)
        .page(by_user_of_request)
        .page(by_user_of_request_late)
        .page(by_filter)
        .page(by_user_of_filter)
        .service(by_service)
        .service(by_service_and_user)
        .service(by_service_and_peer)
        .service(by_call)
        .page(for_users)
        .page(for_friends)
        .page(for_all)
        .page(who_is_here)
        .page(how_many_are_here)
        .run_with("Usage: scopes", options.lines())
}

#[page(POST "/tick/{text}")]
async fn tick(store: Store, text: Path<Text>) -> Result<Response, Error> {
    store.insert(Tick { id: Id::unassigned(), text: text.0 }).await?;
    Ok(Response::text("ticked"))
}

#[page(POST "/login/{user}")]
async fn log_in(session: Session, user: Path<Text>) -> Result<Response, Error> {
    session.log_in(user).await?;
    Ok(Response::text("in"))
}

#[page(POST "/logout")]
async fn log_out(session: Session) -> Result<Response, Error> {
    session.log_out().await?;
    Ok(Response::text("out"))
}

#[page(POST "/keep/{word}")]
async fn keep(session: Session, word: Path<Text>, _body: Body) -> Result<Response, Error> {
    session.set("word", word.as_str()).await?;
    Ok(Response::text("kept"))
}

#[page(POST "/revoke-others")]
async fn revoke_others(session: Session) -> Result<Response, Error> {
    Ok(Response::text(session.revoke_others().await?.to_string()))
}

fn last(store: &Store) -> Text {
    store.read().newest::<Tick>(1).pop().map(|tick| tick.text).unwrap_or_default()
}

/// Displays the secret before and inside the region.
fn shown(secret: Option<Text>, store: Store) -> impl Page {
    let secret = secret.unwrap_or_default();
    html! {
        <p>{&secret}</p>
        <Live><p>{last(&store)} for {&secret}</p></Live>
    }
}

fn word(session: &Session) -> Option<Text> {
    session.get("word")
}

#[page("/session")]
async fn by_session(session: Session, store: Store) -> impl Page {
    shown(word(&session), store)
}

#[page("/session/perhaps")]
async fn by_session_perhaps(session: Option<Session>, store: Store) -> impl Page {
    shown(session.as_ref().and_then(word), store)
}

/// Reads the session after the first region is written.
#[page("/session/behind")]
async fn by_session_behind(session: Session, store: Store) -> impl Page {
    html! {
        <Live><p>{last(&store)}</p></Live>
        <p>{word(&session)}</p>
        <Live><p>{last(&store)} for whom?</p></Live>
    }
}

#[page("/session/worker")]
fn by_session_by_worker(session: Session, store: Store) -> impl Page {
    shown(word(&session), store)
}

#[page("/session/later")]
async fn by_session_later(session: Session, store: Store) -> impl Page {
    tokio::task::yield_now().await;
    let word = word(&session);
    tokio::task::yield_now().await;
    shown(word, store)
}

#[page("/user")]
async fn by_user(user: User, store: Store) -> impl Page {
    shown(Some(user.0), store)
}

#[page("/user/perhaps")]
async fn by_user_perhaps(user: Option<User>, store: Store) -> impl Page {
    shown(user.map(|user| user.0), store)
}

#[page("/cookie")]
async fn by_cookie(taste: Cookie<Option<Text>>, store: Store) -> impl Page {
    shown(taste.0, store)
}

#[page("/field")]
async fn by_field(x_taste: Header<Option<Text>>, store: Store) -> impl Page {
    shown(x_taste.0, store)
}

#[page("/request")]
async fn by_request(request: Request, store: Store) -> impl Page {
    shown(request.header("x-taste").map(Text::from), store)
}

#[page("/request/user")]
async fn by_user_of_request(request: Request, store: Store) -> impl Page {
    shown(request.user().map(Text::from), store)
}

/// Reads the user while it is written.
#[page("/request/user/late")]
async fn by_user_of_request_late(request: Request, store: Store) -> impl Page {
    tokio::task::yield_now().await;
    html! {
        <Live><p>{last(&store)}</p></Live>
        <p>{request.user()}</p>
        <Live><p>{last(&store)} for {request.user()}</p></Live>
    }
}

#[page("/filter/of/{user}")]
async fn by_user_of_filter(user: Path<Text>, store: Store) -> impl Page {
    shown(Some(user.0), store)
}

#[page("/filter/{taste}")]
async fn by_filter(taste: Path<Text>, store: Store) -> impl Page {
    shown(Some(taste.0), store)
}

#[service("/service", safe)]
async fn by_service(caller: Caller) -> impl Page {
    shown(caller.header("x-taste").map(Text::from), caller.store().clone())
}

#[service("/service/peer", safe)]
async fn by_service_and_peer(caller: Caller) -> impl Page {
    let word = caller.session().get::<Text>("word");
    shown(word.filter(|_| caller.client_address().ip().is_some()), caller.store().clone())
}

#[service("/service/user", safe)]
async fn by_service_and_user(caller: Caller) -> impl Page {
    shown(caller.user().map(|user| user.0), caller.store().clone())
}

#[service("/service/call", safe)]
fn by_call(call: &mut Call) -> impl Page + use<> {
    let secret: Text = call.header("x-taste").unwrap_or_default().into();
    let last = call.newest::<Tick>(1).pop().map(|tick| tick.text).unwrap_or_default();
    html!(<p>{&secret}</p> <Live><p>{last} for {&secret}</p></Live>)
}

/// Rewrites one path to a page of the request's visitor.
struct Tenants;

impl Filter for Tenants {
    fn filter(&self, request: &FilterRequest<'_>) -> FilterDecision {
        match request.path() {
            "/filter" => match request.header("x-taste") {
                Some(taste) => FilterDecision::Rewrite(format!("/filter/{taste}")),
                None => FilterDecision::Respond(Response::error(Status::FORBIDDEN, "nobody's")),
            },
            "/filter/user" => FilterDecision::Rewrite(format!(
                "/filter/of/{}",
                request.user().unwrap_or("nobody")
            )),
            _ => FilterDecision::Continue,
        }
    }
}

/// Distinguishes only users from strangers.
#[page("/for-users")]
async fn for_users(_user: User, store: Store) -> impl Page {
    html!(<Live><p>{last(&store)}</p></Live>)
}

/// Checks access itself.
#[page("/for-friends")]
async fn for_friends(session: Session, store: Store) -> Result<impl Page, Error> {
    match session.user().as_deref() {
        Some("ann" | "ben") => Ok(html!(<Live><p>{last(&store)}</p></Live>)),
        _ => Err(Error::forbidden("for friends")),
    }
}

/// Equal for all visitors.
#[page("/for-all")]
async fn for_all(session: Session, store: Store) -> impl Page {
    drop(session);
    html!(<Live><p>{last(&store)}</p></Live>)
}

/// Equal for all visitors, with the names of all present users.
#[page("/who")]
async fn who_is_here(presence: Presence) -> impl Page {
    html!(<Live><p>here: {presence.names(9).join(", ")}</p></Live>)
}

/// Equal for all visitors, with the numbers of people and of tabs.
#[page("/how-many")]
async fn how_many_are_here(presence: Presence) -> impl Page {
    html!(<Live><p>{presence.people()} people, {presence.tabs()} tabs</p></Live>)
}

fn start(scheduler: &str) -> Program {
    let options = ["--data", "memory", "--scheduler", scheduler, "--workers", "16"];
    Program::start(&mut program("live::scopes::serve_visitor_program", &options))
}

/// A visitor, represented by header fields.
struct Visitor<'p> {
    program: &'p Program,
    cookie: String,
    taste: &'static str,
}

impl<'p> Visitor<'p> {
    fn new(program: &'p Program, taste: &'static str) -> Self {
        Self { program, cookie: String::new(), taste }
    }

    /// A visitor with a login.
    fn logged_in(program: &'p Program, user: &'static str) -> Self {
        let mut visitor = Self::new(program, user);
        visitor.post(&format!("/login/{user}"));
        visitor
    }

    fn fields(&self) -> String {
        let Self { cookie, taste, .. } = self;
        format!("Cookie: {cookie}taste={taste}\r\nX-Taste: {taste}\r\n")
    }

    fn post(&mut self, target: &str) -> Reply {
        let reply = self.program.connect().request("POST", target, &self.fields(), "");
        assert_eq!(reply.status(), 200, "{target}: {reply:?}");
        if let Some(told) = reply.header("Set-Cookie") {
            let (pair, _) = told.split_once(';').unwrap();
            self.cookie = if pair.ends_with('=') { String::new() } else { format!("{pair}; ") };
        }
        reply
    }

    fn look_at(&self, target: &str) -> Viewer {
        Viewer::known(self.program, target, &self.fields())
    }

    /// Returns the status of a request to follow a page.
    fn asks(&self, target: &str) -> u16 {
        Viewer::with(self.program, target, &self.fields(), false).follow()
    }
}

fn tick_with(program: &Program, text: &str) {
    Visitor::new(program, "nobody").post(&format!("/tick/{text}"));
}

#[test]
fn sends_data_of_one_visitor_to_no_other() {
    const TASTES: [&str; 3] = ["almond", "bergamot", "cardamom"];
    let targets = [
        "/session",
        "/session/perhaps",
        "/session/behind",
        "/session/worker",
        "/session/later",
        "/user",
        "/user/perhaps",
        "/cookie",
        "/field",
        "/request",
        "/request/user",
        "/request/user/late",
        "/filter",
        "/filter/user",
        "/service",
        "/service/user",
        "/service/peer",
        "/service/call",
    ];
    for scheduler in KINDS {
        println!("on {scheduler}:");
        let program = start(scheduler);
        let visitors = TASTES.map(|taste| {
            let mut visitor = Visitor::logged_in(&program, taste);
            visitor.post(&format!("/keep/{taste}"));
            visitor
        });
        for target in targets {
            let mut viewers = visitors.each_ref().map(|visitor| visitor.look_at(target));
            for round in 0..4 {
                let text = format!("{}-{round}.", target.trim_start_matches('/').replace('/', "-"));
                tick_with(&program, &text);
                for viewer in &mut viewers {
                    viewer.await_shown(&text);
                    if round == 1 {
                        // Reconnects last.
                        assert_eq!(viewer.follow(), 200);
                    }
                }
            }
            for (viewer, own) in viewers.iter().zip(TASTES) {
                let others = TASTES.into_iter().filter(|other| *other != own);
                for other in others {
                    assert!(!viewer.received.contains(other), "{target}: {own} got {other}'s");
                }
                assert_eq!(viewer.regions, viewer.fresh(), "{target}");
            }
        }
    }
}

#[test]
fn sends_strangers_nothing_of_a_users_page() {
    for scheduler in KINDS {
        println!("on {scheduler}:");
        let program = start(scheduler);
        let (ann, stranger) = (Visitor::logged_in(&program, "ann"), Visitor::new(&program, "salt"));
        let mut viewer = ann.look_at("/user/perhaps");
        let mut other = stranger.look_at("/user/perhaps");
        for round in ["one.", "two.", "three."] {
            tick_with(&program, round);
            viewer.await_shown(&format!("{round} for ann"));
            other.await_shown(&format!("{round} for <"));
        }
        assert!(!other.received.contains("ann"), "{}", other.received);
        assert_eq!([stranger.asks("/user"), stranger.asks("/for-friends")], [401, 403]);
        assert_eq!([ann.asks("/user"), ann.asks("/for-friends")], [200, 200]);
    }
}

#[test]
fn sessions_of_one_user_share_regions_for_the_user() {
    let program = start("hybrid");
    let (first, second) =
        (Visitor::logged_in(&program, "ann"), Visitor::logged_in(&program, "ann"));
    assert_ne!(first.cookie, second.cookie);
    let mut viewers = [first.look_at("/for-users"), second.look_at("/for-users")];
    tick_with(&program, "one");
    for viewer in &mut viewers {
        assert_eq!(viewer.await_shown("one"), [Event::Patch(0)]);
    }
}

#[test]
fn logout_or_revocation_ends_the_users_streams() {
    for scheduler in KINDS {
        println!("on {scheduler}:");
        let program = start(scheduler);
        let cases = [
            ("/user", 401),
            ("/for-users", 401),
            ("/for-friends", 403),
            ("/request/user", 200),
            ("/filter/user", 200),
            ("/service/user", 200),
        ];
        for (target, then) in cases {
            for other_is_first in [false, true] {
                let (mut one, other) =
                    (Visitor::logged_in(&program, "ann"), Visitor::logged_in(&program, "ann"));
                // Updates render with the request of the earliest viewer.
                let mut viewers = if other_is_first {
                    let other = other.look_at(target);
                    [one.look_at(target), other]
                } else {
                    [one.look_at(target), other.look_at(target)]
                };
                assert_eq!(one.post("/revoke-others").text().trim(), "1");
                viewers[1].await_reload();
                assert_eq!(viewers[1].reload_data, "hide", "{scheduler} {target}");
                assert_eq!(other.asks(target), then, "{scheduler} {target}");
                let secret = format!("secret-{other_is_first}.");
                tick_with(&program, &secret);
                viewers[0].await_shown(&secret);
                assert!(!viewers[1].received.contains(&secret));
                assert_eq!(one.post("/logout").status(), 200);
                viewers[0].await_reload();
                assert_eq!(other.asks(target), then, "{scheduler} {target}");
            }
        }
    }
}

/// Symptom: a page that polled showed a user's data for seconds after the logout. Cause: the poll
/// ended with a 401, and the browser asked again and again before it loaded the page. Fix: the
/// poll ends with the event that hides the page.
#[test]
fn logout_ends_the_users_polls_with_a_reload() {
    for scheduler in KINDS {
        println!("on {scheduler}:");
        let program = start(scheduler);
        for target in ["/user", "/for-friends", "/user/perhaps"] {
            let mut ann = Visitor::logged_in(&program, "ann");
            let mut viewer = Viewer::with(&program, target, &ann.fields(), true);
            viewer.load();
            assert_eq!(viewer.follow(), 200);
            // The second poll has been accepted when the first has delivered a change.
            tick_with(&program, "one.");
            viewer.await_shown("one.");
            ann.post("/logout");
            assert_eq!(viewer.next(), Event::Reload, "{target}");
            assert_eq!(viewer.reload_data, "hide", "{target}");
        }
    }
}

/// Symptom: a client that was disconnected during the revocation of its session received regions
/// for strangers into a page that still showed the user's data. Cause: a page did not record its
/// audience; later, pages that get the user from the whole request or a filter did not.
#[test]
fn reconnect_after_revocation_requests_reload() {
    const TARGETS: [&str; 9] = [
        "/user",
        "/user/perhaps",
        "/session",
        "/for-users",
        "/for-friends",
        "/request/user",
        "/request/user/late",
        "/filter/user",
        "/service/user",
    ];
    for scheduler in KINDS {
        println!("on {scheduler}:");
        let program = start(scheduler);
        for (target, is_poll) in
            TARGETS.into_iter().flat_map(|target| [(target, false), (target, true)])
        {
            let (mut one, mut other) =
                (Visitor::logged_in(&program, "ann"), Visitor::logged_in(&program, "ann"));
            other.post("/keep/secret");
            let mut viewer = Viewer::with(&program, target, &other.fields(), is_poll);
            viewer.load();
            // After a short disconnection the viewer continues.
            tick_with(&program, "away.");
            assert_eq!(viewer.follow(), 200);
            assert_eq!(viewer.next(), Event::Patch(0), "{target}");
            viewer.leave();
            one.post("/revoke-others");
            tick_with(&program, "gone.");
            assert_eq!(viewer.follow(), 200, "{target}");
            assert_eq!(viewer.next(), Event::Reload, "{target}");
            assert_eq!(viewer.reload_data, "hide", "{target}");
            assert!(!viewer.received.contains("gone."), "{target}");
            if !is_poll {
                assert_eq!(viewer.next(), Event::Over(200), "{target}");
            }
        }
    }
}

/// The audience of a page is bound to the session, not to the memory of the server.
#[test]
fn revocation_before_restart_requests_reload_only_for_revoked() {
    let folder = Folder::new();
    let start = || {
        let options = ["--data", folder.path().to_str().unwrap()];
        Program::start(&mut program("live::scopes::serve_visitor_program", &options))
    };
    let program = start();
    let (mut one, other) =
        (Visitor::logged_in(&program, "ann"), Visitor::logged_in(&program, "ann"));
    let targets = ["/user/perhaps", "/request/user", "/filter/user"];
    let mut viewers = targets.map(|target| [one.look_at(target), other.look_at(target)]);
    viewers.iter_mut().flatten().for_each(Viewer::leave);
    one.post("/revoke-others");
    program.kill();
    let program = start();
    tick_with(&program, "after.");
    for [own, others] in &mut viewers {
        assert_eq!([own.follow_at(&program), others.follow_at(&program)], [200; 2]);
        assert_eq!([own.next(), others.next()], [Event::Patch(0), Event::Reload]);
        assert!(!others.received.contains("after."));
    }
}

#[test]
fn page_for_all_continues_after_revocation() {
    let program = start("hybrid");
    let (mut one, other) =
        (Visitor::logged_in(&program, "ann"), Visitor::logged_in(&program, "ann"));
    let mut viewer = other.look_at("/for-all");
    viewer.leave();
    one.post("/revoke-others");
    tick_with(&program, "new.");
    assert_eq!(viewer.follow(), 200);
    assert_eq!(viewer.await_shown("new."), [Event::Patch(0)]);
}

/// Symptom: a user who had logged out was still listed as present while their page was open. Cause:
/// a page that is equal for all visitors is also for strangers, so its stream was not bound to the
/// login.
#[test]
fn logged_out_user_is_no_longer_present() {
    for scheduler in KINDS {
        println!("on {scheduler}:");
        let program = start(scheduler);
        let (mut ann, stranger) =
            (Visitor::logged_in(&program, "ann"), Visitor::new(&program, "salt"));
        for _ in 0..2 {
            let mut other = stranger.look_at("/who");
            let mut own = ann.look_at("/who");
            other.await_shown("<p>here: ann</p>");
            ann.post("/logout");
            other.await_shown("<p>here: </p>");
            own.await_reload();
            ann = Visitor::logged_in(&program, "ann");
        }
    }
}

#[test]
fn counts_people_and_tabs_of_a_page_apart() {
    let program = start(KINDS[0]);
    let ann = Visitor::logged_in(&program, "ann");
    let ann_elsewhere = Visitor::logged_in(&program, "ann");
    let mut guest = Visitor::new(&program, "salt");
    guest.post("/keep/almond");
    let stranger = Visitor::new(&program, "salt");
    let mut observer = ann.look_at("/how-many");
    observer.await_shown("<p>1 people, 1 tabs</p>");
    let anns = [&ann, &ann_elsewhere].map(|visitor| visitor.look_at("/how-many"));
    observer.await_shown("<p>1 people, 3 tabs</p>");
    let guests = [&guest, &guest].map(|visitor| visitor.look_at("/how-many"));
    observer.await_shown("<p>2 people, 5 tabs</p>");
    let strangers = [&stranger, &stranger].map(|visitor| visitor.look_at("/how-many"));
    observer.await_shown("<p>4 people, 7 tabs</p>");
    drop(anns);
    observer.await_shown("<p>4 people, 5 tabs</p>");
    drop((guests, strangers));
    observer.await_shown("<p>1 people, 1 tabs</p>");
}

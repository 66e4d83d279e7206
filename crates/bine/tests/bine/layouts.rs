//! Layouts: they read the address of the page, the user, and values of the page's own.

use std::sync::LazyLock;
use std::sync::atomic::{AtomicUsize, Ordering};

use bine::Signal;
use bine::prelude::*;
use bine::test::{Client, Method, Reply, Site, Tab};

/// Where a page is in the site.
struct Breadcrumbs(Vec<&'static str>);

/// The width of a page.
struct Width(u32);

fn navigation(content: PageContent<'_>) -> impl Page {
    let crumbs = content.get::<Breadcrumbs>().map_or(&[][..], |crumbs| &crumbs.0);
    let path = content.path();
    let current = move |own: &str| (path == own).then_some("page");
    html! {
        <nav>
            <a href="/" aria-current={current("/")}>Home</a>
            <a href="/boats/a%20b" aria-current={current("/boats/a b")}>Boats</a>
        </nav>
        <ol>{for crumb in crumbs { <li>{*crumb}</li> }}</ol>
        <small>{content.query()} {content.get::<Width>().map(|width| width.0)}</small>
        <main>{content}</main>
    }
}

fn greeting(content: PageContent<'_>, user: Option<User>) -> impl Page {
    html! {
        <header>{match user { Some(user) => { Hello {user} } None => { Hello visitor } }}</header>
        <p class="path">{content.path()}</p>
        <main>{content}</main>
    }
}

/// What the regions of the layouts display.
static NEWS: LazyLock<Signal<u32>> = LazyLock::new(|| Signal::new(0));
/// How often each of these layouts was rendered.
static PLAIN_RENDERS: AtomicUsize = AtomicUsize::new(0);
static USER_RENDERS: AtomicUsize = AtomicUsize::new(0);

fn live_navigation(content: PageContent<'_>) -> impl Page {
    PLAIN_RENDERS.fetch_add(1, Ordering::Relaxed);
    html! {
        <Live><header>{NEWS.get()} at {content.path()}</header></Live>
        <main>{content}</main>
    }
}

fn live_greeting(content: PageContent<'_>, user: Option<User>) -> impl Page {
    USER_RENDERS.fetch_add(1, Ordering::Relaxed);
    let name = user.map_or_else(|| "visitor".into(), |user| user.0);
    html! {
        <Live><header>{NEWS.get()} for {&name}</header></Live>
        <main>{content}</main>
    }
}

#[page("/")]
async fn home() -> impl Page {
    html!(<h1>Home</h1>)
}

#[page("/boats/{name}")]
async fn boat(name: Path<Text>) -> impl Respond {
    let first = html!(<h1>{name.0}</h1>).with(Breadcrumbs(vec!["never shown"]));
    first.with(Width(7)).with(Breadcrumbs(vec!["Home", "Boats"]))
}

#[page("/response")]
fn response() -> Response {
    html!(<h1>Response</h1>).with(Breadcrumbs(vec!["Response"])).into()
}

#[page("/later/{name}")]
async fn later(name: Path<Text>) -> impl Respond {
    tokio::task::yield_now().await;
    html!(<h1>{name.0}</h1>).with(Width(8))
}

#[page("/whole")]
async fn whole() -> impl Respond {
    html!(<h1>Whole</h1>).without_layout()
}

#[page("/panicking")]
async fn panicking() -> impl Page {
    let names: Vec<&str> = Vec::new();
    html!(<h1>{names[7]}</h1>)
}

#[page(POST "/login/{user}")]
async fn log_in(session: Session, user: Path<Text>) -> Result<Response, Error> {
    session.log_in(user).await?;
    Ok(Response::text("in"))
}

fn app() -> App {
    App::new().page(home).page(boat).page(response).page(later).page(whole).page(panicking)
}

fn site_with_users() -> Site {
    Site::new(app().page(log_in).layout(greeting))
}

fn logged_in(site: &Site, user: &str) -> Client {
    let client = site.client();
    client.request(Method::Post, &format!("/login/{user}")).send();
    client
}

/// What shared caches and browsers are told.
fn caching(reply: &Reply) -> (Option<&str>, Vec<&str>) {
    let vary = reply.headers().filter(|(name, _)| name.eq_ignore_ascii_case("vary"));
    let vary = vary.map(|(_, value)| value).filter(|value| *value != "Accept").collect();
    (reply.header("Cache-Control"), vary)
}

#[test]
fn layout_marks_the_path_of_the_page() {
    let site = Site::new(app().layout(navigation));
    let current = |path: &str| site.visit(path).texts("[aria-current=page]");
    assert_eq!(current("/"), ["Home"]);
    assert_eq!(current("/boats/a%20b?x=1"), ["Boats"]);
    assert_eq!(current("/response"), [""; 0]);
    assert_eq!(site.visit("/boats/a%20b?x=%31").text("small"), "x=%31 7");
}

/// A layout with several values: an early return, and the arms of a `match`.
#[layout]
fn by_address(content: PageContent<'_>) -> impl Page {
    if content.path() == "/" {
        return html!(<header>Start</header> <main>{content}</main>);
    }
    match content.query() {
        Some(query) => html!(<header>{query}</header> <main>{content}</main>),
        None => {
            let path = content.path();
            html!(<header>{path}</header> <main>{content}</main>)
        }
    }
}

/// Each value is a whole document, so that pages may be XHTML.
#[layout]
fn documents(content: PageContent<'_>, user: Option<User>) -> impl Page {
    if let Some(user) = user {
        html! {
            <!DOCTYPE html>
            <html lang="en"><head><title>{user.0}</title></head><body>{content}</body></html>
        }
    } else {
        html! {
            <!DOCTYPE html>
            <html lang="en"><head><title>Visitor</title></head><body>{content}</body></html>
        }
    }
}

#[test]
fn layout_has_several_values() {
    let site = Site::new(app().layout(by_address));
    let header = |path: &str| site.visit(path).text("header");
    assert_eq!(["/", "/boats/ark?a=b", "/boats/ark"].map(header), ["Start", "a=b", "/boats/ark"]);
    assert_eq!(site.visit("/boats/ark").text("main h1"), "ark");
    let site = Site::new(app().page(log_in).layout(documents));
    assert_eq!(site.visit("/").text("title"), "Visitor");
    let ann = logged_in(&site, "ann");
    assert_eq!(ann.visit("/").text("title"), "ann");
    let page = ann.request(Method::Get, "/").header("Accept", "application/xhtml+xml").send();
    assert_eq!(page.header("Content-Type"), Some("application/xhtml+xml; charset=utf-8"));
}

#[test]
fn pages_hand_typed_values_to_the_layout() {
    let site = Site::new(app().layout(navigation));
    let crumbs = |path: &str| site.visit(path).texts("ol li");
    assert_eq!(crumbs("/boats/ark"), ["Home", "Boats"]);
    assert_eq!(crumbs("/response"), ["Response"]);
    assert_eq!(crumbs("/"), [""; 0]);
}

#[test]
fn layout_of_a_waiting_handler_has_the_address() {
    let site = Site::new(app().layout(navigation));
    let mut tab = site.visit("/later/ark?a=b");
    assert_eq!((tab.text("small"), tab.text("h1")), ("a=b 8".to_owned(), "ark".to_owned()));

    let site = site_with_users();
    let mut tab = logged_in(&site, "ann").visit("/later/ark");
    assert_eq!((tab.text("header"), tab.text(".path")), ("Hello ann".into(), "/later/ark".into()));
}

#[test]
fn layout_takes_the_user_on_every_page() {
    let site = site_with_users();
    let ann = logged_in(&site, "ann");
    for path in ["/", "/nowhere", "/panicking"] {
        assert_eq!(ann.visit(path).text("header"), "Hello ann", "{path}");
        assert_eq!(site.visit(path).text("header"), "Hello visitor", "{path}");
        assert_eq!(ann.visit(path).text(".path"), path);
    }
}

#[test]
fn responses_belong_to_the_user_of_the_layout() {
    let site = site_with_users();
    for (client, control) in
        [(site.client(), "private, no-cache"), (logged_in(&site, "ann"), "no-store")]
    {
        let own = (Some(control), vec!["Cookie"]);
        for path in ["/", "/nowhere", "/panicking", "/later/ark"] {
            let page = client.request(Method::Get, path).header("Accept", "text/html").send();
            assert_eq!(caching(&page), own, "{path}");
        }
        // Nothing here reads the user.
        assert_eq!(caching(&client.get("/whole")), (None, vec![]));
        let text = client.request(Method::Get, "/nowhere").header("Accept", "text/plain").send();
        assert_eq!(caching(&text), (None, vec![]));
    }
    let without_user = Site::new(app().page(log_in).layout(navigation));
    let ann = logged_in(&without_user, "ann");
    assert_eq!(caching(&ann.get("/")), (None, vec![]));
    assert_eq!(caching(&ann.get("/nowhere")), (None, vec![]));
}

/// Shows a change to all tabs, then another one. Returns how often the layout was rendered for the
/// second one.
fn renders_of_a_change(renders: &AtomicUsize, tabs: &mut [(Tab, &str)]) -> usize {
    let mut show = |news: u32| {
        NEWS.set(news);
        for (tab, expected) in &mut *tabs {
            tab.expect("header", format!("{news} {expected}"));
        }
    };
    show(1);
    let before = renders.load(Ordering::Relaxed);
    show(2);
    renders.load(Ordering::Relaxed) - before
}

#[test]
fn live_layouts_share_renders_where_their_reads_are_equal() {
    let site = Site::new(app().page(log_in).layout(live_greeting));
    let users = [("ann", "for ann"), ("ann", "for ann"), ("bob", "for bob")];
    let users = users.map(|(user, expected)| (logged_in(&site, user).visit("/"), expected));
    let visitors = [(site.visit("/"), "for visitor"), (site.visit("/"), "for visitor")];
    let mut tabs: Vec<_> = users.into_iter().chain(visitors).collect();
    assert_eq!(renders_of_a_change(&USER_RENDERS, &mut tabs), 3);
    drop((tabs, site));

    // A layout that does not take the user is the same for all of them.
    let site = Site::new(app().page(log_in).layout(live_navigation));
    let tabs =
        [site.visit("/"), logged_in(&site, "ann").visit("/"), logged_in(&site, "bob").visit("/")];
    let mut tabs = tabs.map(|tab| (tab, "at /"));
    assert_eq!(renders_of_a_change(&PLAIN_RENDERS, &mut tabs), 1);
}

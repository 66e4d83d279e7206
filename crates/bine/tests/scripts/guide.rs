//! The programs in TSX of the guide, through the whole server: those about channels, sessions and
//! events, and those of the chapters that show both languages.

use std::fs;
use std::thread;

use bine::prelude::*;
use bine::test::{Client, Method, Site};
use bine::{ApiTokens, App, NewApiToken};
use serde_json::{Value, json};

use crate::folder::Folder;
use crate::scheduler::{Program, succeeds};

const GUIDE: &str = include_str!("../../../../docs/guide/scripts-channels.md");

/// A site for each example that is a whole module.
fn examples() -> Vec<(Folder, Site)> {
    let examples = GUIDE.split("```tsx\n").skip(1);
    let examples = examples.filter_map(|rest| rest.split_once("```"));
    let site = |(example, _): (&str, &str)| {
        let folder = Folder::with(&[("index.tsx", example)]);
        let site = folder.site();
        (folder, site)
    };
    examples.map(site).collect()
}

#[test]
fn runs_the_examples_of_the_chapter() {
    let examples = examples();
    let [(_, rooms), (_, prices), (_, sessions), (_, tabs), (_, events)] = &examples[..] else {
        panic!("{}", examples.len())
    };

    let said = rooms.post_json("/say", &json!({ "room": "hall", "body": "hello" }));
    assert_eq!(said.status(), 204, "{}", said.text());
    rooms.visit("/?room=hall").expect("li", "hello");
    assert_eq!(rooms.post_json("/say", &json!({ "room": "a/b", "body": "x" })).status(), 422);
    let written = rooms.post_json("/write", &json!({ "user": "ann", "body": "hello" }));
    assert_eq!(written.status(), 204, "{}", written.text());

    let set = || prices.post_json("/set", &json!({ "item": "hops", "price": 3 })).json::<Value>();
    assert_eq!((set(), set()), (json!(false), json!(true)));

    let client = sessions.client();
    assert_eq!(client.post_json("/choose", &json!({ "theme": "dark" })).status(), 204);
    let mut tab = client.visit("/");
    tab.expect("p", "Nobody: dark");
    let enter = |key: &str| client.post_json("/enter", &json!({ "user": "ann", "key": key }));
    assert_eq!(enter("malt").status(), 403);
    assert_eq!(enter("hops").status(), 204);
    client.visit("/").expect("p", "ann: dark");

    let mut tab = tabs.visit("/");
    tab.expect("h1", "hops");
    tab.click("button");
    tab.expect("h1", "malt");

    let mut tab = events.visit("/");
    tab.listen("site/bell");
    tab.expect("p", "1 hear the bell. Here:");
    assert_eq!(events.post_json("/ring", &json!({})).status(), 204);
    assert_eq!(tab.expect_event("site/bell"), json!({ "at": "the door" }));
}

/// The files in TSX of a chapter that shows both languages, as one site.
struct Chapter(Folder);

impl Chapter {
    /// Writes each block with the name of a file, such as `tsx index.tsx`.
    fn named(name: &str) -> Self {
        let (folder, names) = Folder::of_chapter(name);
        // The modules are loaded with the application.
        let modules = names.iter().filter_map(|name| name.strip_suffix(".ts"));
        let modules = modules.filter(|name| *name != "start");
        let imports: Vec<_> = modules.map(|name| format!("import \"./{name}.ts\";\n")).collect();
        let imports = imports.concat();
        let index = "import { page } from \"bine\";\nexport default page(() => <p>Loaded</p>);\n";
        assert!(!names.iter().any(|name| name == "index.tsx"), "{name} has the page of the test");
        folder.write("index.tsx", &format!("{imports}{index}"));
        Self(folder)
    }

    /// The text of a file with another text in place of one.
    fn changed(&self, file: &str, old: &str, new: &str) -> String {
        let text = fs::read_to_string(self.0.path().join(file)).unwrap();
        assert!(text.contains(old), "{file} has no `{old}`");
        text.replace(old, new)
    }

    /// The site with a page that logs in.
    fn app(&self) -> App {
        self.0.app().page(enter)
    }

    fn site(&self) -> Site {
        Site::new(self.app())
    }
}

#[page(POST "/enter/{user}")]
async fn enter(session: Session, user: Path<Text>) -> Result<Response, Error> {
    session.log_in(user).await?;
    Ok(Response::text("in"))
}

/// A client who has logged in.
fn user(site: &Site, name: &str) -> Client {
    let client = site.client();
    let reply = client.request(Method::Post, &format!("/enter/{name}")).send();
    assert_eq!(reply.status(), 200, "{}", reply.text());
    client
}

#[test]
fn runs_the_programs_about_channels() {
    let chapter = Chapter::named("channels.md");
    let site = chapter.site();
    let mut tab = site.visit("/news");
    tab.submit("form", [("text", "It climbs.")]);
    tab.expect("li", "It climbs.");
    let status = |client: &Client, channel: &str| {
        client.get(&format!("/channels?c=site/{channel}&after=earliest&wait=0")).status()
    };
    let (ann, nobody) = (user(&site, "ann"), site.client());
    let news = nobody.get("/channels?c=site/news&after=earliest");
    assert_eq!(news.json::<Value>()[0]["data"], "It climbs.");
    let publish = |channel: &str| {
        let message = json!({ "channels": format!("site/{channel}"), "data": "hello" });
        nobody.post_json("/channels", &message).status()
    };
    // Ann has a message; the other channels do not exist yet, which clients that may read learn.
    assert_eq!(site.post_json("/write", &json!({ "user": "ann", "body": "hi" })).status(), 204);
    assert_eq!(ann.get("/channels?c=site/inbox/ann&after=earliest").status(), 200);
    assert_eq!([status(&ann, "inbox/ben"), status(&nobody, "inbox/ann")], [403, 401]);
    assert_eq!([status(&nobody, "board"), status(&nobody, "reports/1/a")], [204, 404]);
    assert_eq!([publish("board"), publish("news"), publish("wall/ann")], [403, 403, 404]);
    let ben = user(&site, "ben");
    assert_eq!([status(&ann, "club"), status(&ben, "club")], [204, 403]);
}

#[test]
fn runs_the_programs_about_trees() {
    let chapter = Chapter::named("trees.md");
    let site = chapter.site();
    for (path, expected) in [
        (
            "/menu?name=a+%26+b",
            "<nav><a href=\"/\" class=\"home\">Home</a><a href=\"/users/a &amp; b\">a &amp; b</a></nav>",
        ),
        ("/outline", "<ul><li>One and only</li></ul>"),
        (
            "/banner",
            "<nav><b>Home</b></nav><main><p class=\"banner\">&lt;3</p><a href=\"https://a.example/\" \
             rel=\"noopener\">a</a></main>",
        ),
        (
            "/field?label=a%3Cb",
            "<form><label>a&lt;b<input name=\"hop\" required=\"\" /></label></form>",
        ),
        ("/home", "<main>Hello</main> <footer><a href=\"/terms\">Terms</a></footer>"),
        (
            "/chapter",
            "<nav><ol><li><a href=\"#one\">One</a></li></ol></nav> <article><h2 id=\"one\">One</h2>",
        ),
        ("/chapter?as=text", "One\n\nFirst,\nthen\n\n- this\n</pre>"),
        ("/print", "<p>See <a href=\"/a&amp;b\">there</a> (/a&amp;b).</p>"),
        ("/stars", "<p>Rated <span role=\"img\" aria-label=\"3 stars\">***</span></p>"),
    ] {
        let reply = site.get(path);
        assert!(reply.text().contains(expected), "{path}: {}", reply.text());
    }
}

#[test]
fn runs_the_scheduler() {
    let chapter = Chapter::named("schedulers.md");
    // With one place, and room for two requests, the order is known.
    let script = chapter.changed("start.ts", "places: 4", "places: 1");
    let turns = ["second", "first"].map(str::to_owned).to_vec();
    succeeds((turns, vec![200, 200, 200, 503]), || {
        let mut program = Program::with_script(&script.replace("1000", "2"));
        program.hold();
        program.send(Method::Get, "/say/first", None);
        program.send(Method::Get, "/talk/?word=second", None);
        program.send(Method::Get, "/say/third", None);
        program.finish()
    });
}

/// Changes rights for a service in TSX.
#[service]
fn join(call: &mut Call, group: Text) -> Result<(), Error> {
    let (rights, user) = (call.rights()?, call.user().expect("a user calls"));
    rights.add_to_group_in(call, &user, &group)?;
    Ok(())
}

#[test]
fn runs_the_programs_about_rights() {
    let chapter = Chapter::named("rights.md");
    chapter.0.write(
        "join.tsx",
        "import { page, service } from \"bine\";\nimport { join } from \"bine:services\";\n\
         export const become = service((ctx, { group }: { group: string }) => join({ group }));\n\
         export default page(() => <p>Join</p>);\n",
    );
    let site = Site::new(chapter.app().service(join));
    let (ann, ben, nobody) = (user(&site, "ann"), user(&site, "ben"), site.client());
    let save = |client: &Client| client.post_json("/save", &json!({ "name": "start" }));
    assert_eq!([save(&nobody).status(), save(&ann).status()], [401, 403]);
    assert_eq!(save(&ben).json::<Value>(), "ben changed start");
    nobody.visit("/wiki/start").expect("h1", "start");
    assert_eq!(nobody.request(Method::Post, "/wiki/start").send().status(), 401);
    let admin = |client: &Client| client.get("/admin/users").status();
    assert_eq!([admin(&nobody), admin(&ben), admin(&ann)], [401, 403, 404]);
    assert_eq!(ann.post_json("/become", &json!({ "group": "editors" })).status(), 200);
    assert_eq!(save(&ann).json::<Value>(), "ann changed start");
}

/// A service of the cellar, at `/scripts/heat`.
#[service]
fn heat(caller: Caller, degrees: f64, until: Time) -> Result<f64, Error> {
    assert!(until.unix() > 1_000_000_000, "{until:?}");
    match caller.header("authorization") {
        Some("Bearer brewing") => Ok(degrees),
        _ => Err(Error::status(Status::UNAUTHORIZED, "the token is missing")),
    }
}

#[service]
fn read(caller: Caller) -> Result<(), Error> {
    caller.events().broadcast("temperature", 20.5)
}

#[test]
fn runs_the_programs_about_other_servers() {
    let cellar = Site::new(App::new().event("temperature").service(heat).service(read));
    let chapter = Chapter::named("remote.md");
    let address = format!("http://{}", cellar.address());
    let services = format!("{address}/scripts");
    for (file, old, new) in [
        ("warmer.tsx", "https://cellar.home:8443/cellar", &services),
        ("readings.ts", "https://cellar.home:8443", &address),
    ] {
        chapter.0.write(file, &chapter.changed(file, old, new));
    }
    let site = chapter.site();
    assert_eq!(site.post_json("/warm", &json!({})).json::<Value>(), 21.5);
    let listener = Client::at(site.address());
    let temperature = thread::spawn(move || {
        let reply = listener.post_json("/temperature", &json!({}));
        assert_eq!(reply.status(), 200, "{}", reply.text());
        reply.json::<Value>()
    });
    while !temperature.is_finished() {
        assert_eq!(cellar.post_json("/scripts/read", &json!({})).status(), 204);
    }
    assert_eq!(temperature.join().unwrap(), 20.5);
}

#[test]
fn runs_the_programs_instead_of_actions() {
    let chapter = Chapter::named("actions.md");
    let forum = "import { page } from \"bine\";\nexport default page((ctx, { name }) => <h1>{name}</h1>);\n";
    chapter.0.write("forum/[name].tsx", forum);
    chapter.0.write(
        "leave.tsx",
        "import { page, redirect, service } from \"bine\";\n\
         export const leave = service((ctx, { keeps }: { keeps: boolean }) =>\n  \
         redirect(keeps ? ctx.frame.to(\"/tab\") : \"/tab\"));\n\
         export default page((ctx) => (\n  \
         <form action={leave} data-frame={ctx.frame.to(\"/\")}>\n    \
         <button name=\"keeps\" value=\"false\">Go</button> <button name=\"keeps\" value=\"true\">Keep</button>\n  \
         </form>\n));\n",
    );
    let site = chapter.site();
    let mut tab = site.visit("/board");
    tab.submit("form", [("body", "hops")]);
    tab.expect("form", "hops Remove");
    tab.click("button[name=id]");
    tab.expect_none("form", "hops");

    let mut tab = site.visit("/choose");
    tab.click("button[value=malt]");
    tab.expect("h1", "malt");
    assert_eq!(tab.url(), "/forum/malt");
    tab.back();
    assert_eq!(tab.url(), "/choose");
    let reply = site.post_json("/choose", &json!({ "forum": "//a.example" }));
    assert_eq!((reply.status(), reply.header("location")), (303, Some("/")));

    let client = site.client();
    let (mut one, mut other) = (client.visit("/tab"), client.visit("/tab"));
    one.click("button[value=malt]");
    one.expect("h1", "malt");
    other.expect("h1", "hops");
    one.click("a");
    let frame = |url: &str| url.split_once("_frame=").map(|(_, frame)| frame.to_owned());
    assert!(one.url().starts_with("/help?") && frame(one.url()) != frame(other.url()));
    for keeps in ["true", "false"] {
        let mut tab = client.visit("/leave");
        let own = frame(tab.url());
        tab.click(&format!("button[value={keeps}]"));
        tab.expect("h1", "hops");
        assert_eq!(frame(tab.url()) == own, keeps == "true", "{keeps}");
    }
}

#[test]
fn runs_the_programs_about_headers() {
    let chapter = Chapter::named("headers.md");
    let error = "export default ({ title }: any) => <h1>{title}</h1>;\n";
    let tree =
        "import { page, tree } from \"bine\";\nexport default page(() => tree(<p>Tree</p>));\n";
    chapter.0.write("_error.tsx", error);
    chapter.0.write("tree.tsx", tree);
    let site = chapter.site();
    let fields = |path: &str| {
        let reply = site.request(Method::Get, path).header("Accept", "text/html").send();
        ["Content-Security-Policy", "X-Frame-Options", "X-Content-Type-Options"]
            .map(|name| reply.header(name).unwrap_or("none").to_owned())
    };
    let policy = "default-src 'self'; img-src 'self' data:; style-src-attr 'unsafe-inline'; \
                  object-src 'none'; base-uri 'none'; form-action 'self'";
    for path in ["/", "/tree", "/none"] {
        assert_eq!(fields(path), [policy, "SAMEORIGIN", "nosniff"], "{path}");
    }
    let policy = "default-src 'self'; frame-ancestors https://www.example.org";
    assert_eq!(fields("/embedded")[0], policy);
    assert_eq!(fields("/account/none")[1], "DENY");
}

#[test]
fn runs_the_programs_about_style_sheets() {
    let chapter = Chapter::named("style.md");
    let site = chapter.site();
    for (path, expected) in [
        ("/card", "<section class=\"card\" style=\"--gap: 4px\"><h2>Hops</h2></section>"),
        ("/card?open=yes", "<section class=\"card is-open\" style=\"--gap: 4px\">"),
        ("/card", "<link rel=\"stylesheet\" href=\"/card.css\""),
        ("/card.css", ".is-open { border-width: 3px; }"),
    ] {
        let reply = site.get(path);
        assert!(reply.text().contains(expected), "{path}: {}", reply.text());
    }
    let wrong = "import { page } from \"bine\";\nexport default page(() => <p style=\"colr: red\">a</p>);\n";
    let folder = Folder::with(&[("index.tsx", wrong)]);
    let text = folder.site().get("/").text().to_owned();
    assert!(text.contains("CSS has no property `colr`; did you mean `color`?"), "{text}");
}

#[test]
fn runs_the_programs_about_files() {
    let chapter = Chapter::named("files.md");
    let site = chapter.site();
    site.visit("/chart").expect("h1", "Chart");
    let page = site.get("/chart").text().to_owned();
    assert!(page.contains("src=\"/chart.js?v=2\""), "{page}");
    let cached = site.get("/chart.js?v=2");
    assert_eq!(cached.header("Cache-Control"), Some("public, max-age=31536000, immutable"));
    assert!(cached.text().contains("textContent"));
    let plain = site.get("/chart.js");
    assert_eq!(plain.header("Cache-Control"), None);
    let tag = plain.header("ETag").unwrap();
    let again = site.request(Method::Get, "/chart.js").header("If-None-Match", tag).send();
    assert_eq!(again.status(), 304);
    let part = site.request(Method::Get, "/chart.js").header("Range", "bytes=0-7").send();
    assert_eq!((part.status(), part.text()), (206, "document"));
}

/// The list was in no live region, so that a browser with script did not show a new note.
#[test]
fn runs_the_program_about_tables() {
    let chapter = Chapter::named("tables.md");
    let site = chapter.site();
    let mut tab = site.visit("/notes");
    tab.submit("form", [("body", "buy hops")]);
    tab.expect("li", "buy hops");
}

#[test]
fn runs_the_program_that_is_tested() {
    let chapter = Chapter::named("testing.md");
    let site = chapter.site();
    let mut tab = site.visit("/notes");
    tab.submit("form", [("body", "buy hops")]);
    tab.expect("li", "buy hops");
}

#[test]
fn uses_the_settings_of_an_application() {
    let chapter = Chapter::named("configuration.md");
    let site = chapter.site();
    assert_eq!(site.get("/").status(), 401);
    let page = user(&site, "ann").visit("/");
    assert_eq!(page.title(), "The board");
}

#[test]
fn rejects_requests_by_a_rule_of_the_site() {
    let chapter = Chapter::named("overload.md");
    let script = chapter.changed("start.ts", "places: 8", "places: 1");
    // The program of the test has no page below /reports; one request may wait.
    let script = script.replace("/reports", "/say/report").replace("< 50", "< 1");
    let turns = ["report-1", "page-1"].map(str::to_owned).to_vec();
    succeeds((turns, vec![200, 200, 200, 503]), || {
        let mut program = Program::with_script(&script);
        program.hold();
        for word in ["report-1", "page-1", "report-2"] {
            program.send(Method::Get, &format!("/say/{word}"), None);
        }
        program.finish()
    });
}

#[page(POST "/make")]
async fn make(tokens: ApiTokens) -> Result<Response, Error> {
    let created = tokens.create(NewApiToken::new("export").paths(["/balance", "/bank"])).await?;
    Ok(Response::text(created.secret))
}

#[test]
fn runs_the_program_about_api_tokens() {
    let chapter = Chapter::named("api-tokens.md");
    let site = Site::new(chapter.app().api_tokens().page(make));
    let token = user(&site, "ann").request(Method::Post, "/make").send().text().to_owned();
    let call = |token: &str, path: &str| {
        let request = site.request(Method::Post, path).header("Authorization", token);
        let reply = request.json(&json!({})).send();
        (reply.status(), reply.text().to_owned())
    };
    let bearer = format!("Bearer {token}");
    assert_eq!(call(&bearer, "/balance"), (200, "\"the balance of ann\"".to_owned()));
    assert_eq!(call(&format!("{bearer}x"), "/balance").0, 401);
    assert_eq!(site.post_json("/balance", &json!({})).status(), 401);
    let page = site.request(Method::Get, "/bank").header("Authorization", &*bearer).send();
    assert!(page.text().contains("The bank of ann"), "{}", page.text());
}

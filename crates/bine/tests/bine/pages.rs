//! Pages: arguments from all parts of a request, errors, layouts, filters and steps.

use std::io::Read;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bine::middleware::{
    Answer, Handler, HandlerContext, Head, Identity, Incoming, Outgoing, Responder,
};
use bine::store::Id;
use bine::{
    App, Cookie, Error, ErrorInfo, Exit, Filter, FilterDecision, FilterRequest, Form, Header, Json,
    Page, PageContent, PageExt, Path, Query, Request, Respond, Response, State, Status, Text,
    Upload, html, page,
};

use crate::app::{on_each_of, options, program};
use crate::harness::{Peer, Program, SCHEDULERS};

/// The test that is the program.
const PROGRAM: &str = "pages::serve_page_program";

/// The program under test. Ordinary test runs skip it.
#[test]
fn serve_page_program() -> Exit {
    let Some(options) = options() else { return Exit::success() };
    // `cargo test` builds for development. This option selects the behavior of a release.
    let app = App::new().development(options.contains("--workers\n7")).state(Counter::default());
    app.layout(layout)
        .error_page(sorry)
        .filter(Gate)
        .filter(Short)
        .middleware(|own| Arc::new(Marking(own)))
        .page(forum)
        .page(forum_post)
        .page(forum_delete)
        .page(note)
        .page(year)
        .page(search)
        .page(done)
        .page(file_below)
        .page(fields)
        .page(form)
        .page(plain_form)
        .page(upload)
        .page(upload_long)
        .page(rows)
        .page(broken_rows)
        .page(own_source_read)
        .page(double)
        .page(failing)
        .page(failing_plain)
        .page(panicking)
        .page(panicking_plain)
        .page(panicking_later)
        .page(counted)
        .page(whole)
        .page(own_source)
        .page(own_source_later)
        .run_with("Usage: pages", options.lines())
}

fn start(options: &[&str]) -> Program {
    Program::start(&mut program(PROGRAM, options))
}

#[derive(Default)]
struct Counter(AtomicU64);

struct Note;

fn layout(content: PageContent<'_>) -> impl Page {
    let described: Vec<(String, String)> =
        content.meta().map(|(name, content)| (name.to_owned(), content.to_owned())).collect();
    html! {
        <title>{content.title()}</title>
        {for (name, content) in described { <meta name={name} content={content}> }}
        <main>{content}</main>
    }
}

fn sorry<'a>(failure: &'a ErrorInfo<'a>) -> impl Page + 'a {
    html! {
        <h1>{failure.status.code()}</h1>
        <p>{failure.message}</p>
        {for cause in failure.causes { <i>{cause}</i> }}
    }
}

/// Denies access to one path.
struct Gate;

impl Filter for Gate {
    fn filter(&self, request: &FilterRequest<'_>) -> FilterDecision {
        match request.path() {
            "/closed" => FilterDecision::Respond(Response::error(Status::FORBIDDEN, "Closed.")),
            _ => FilterDecision::Continue,
        }
    }
}

/// Rewrites short paths to pages.
struct Short;

impl Filter for Short {
    fn filter(&self, request: &FilterRequest<'_>) -> FilterDecision {
        match request.path() {
            "/f" => FilterDecision::Rewrite("/forum/a%20b?page=3".to_owned()),
            "/form-of-old" => FilterDecision::Rewrite("/form/plain".to_owned()),
            "/wrong" => FilterDecision::Rewrite("no path".to_owned()),
            _ => FilterDecision::Continue,
        }
    }
}

/// A step that answers one path and passes other requests on.
struct Marking(Arc<dyn Handler>);

struct LocalMarking {
    own: Box<dyn Responder>,
    handler_context: HandlerContext,
}

impl Handler for Marking {
    fn local(&self, handler_context: HandlerContext) -> Box<dyn Responder> {
        Box::new(LocalMarking { own: self.0.local(handler_context.clone()), handler_context })
    }
}

impl Responder for LocalMarking {
    fn identify(&mut self, head: &Head<'_>, peer: bine::ClientAddress) -> Identity {
        self.own.identify(head, peer)
    }

    fn respond(&mut self, request: &Incoming<'_>, out: &mut Outgoing<'_>) -> Answer {
        if request.head.path() != "/stepped" {
            return self.own.respond(request, out);
        }
        let date = self.handler_context.clock.date();
        bine::middleware::Reply::begin(out.buffer, request.exchange, Status::OK, &date)
            .whole(b"stepped");
        Answer::Written { close: false }
    }

    fn failed(&mut self, request: &Incoming<'_>, out: &mut Vec<u8>) {
        self.own.failed(request, out);
    }

    fn last(&self) -> &'static str {
        self.own.last()
    }
}

#[page("/forum/{id}")]
async fn forum(id: Path<Text>, page: Query<Option<u32>>) -> impl Respond {
    html!({id} on page {page.0.unwrap_or(1)}).with_title("Forum").with_meta("robots", "noindex")
}

#[page(POST | PUT "/forum/{id}")]
fn forum_post(id: Path<u32>, request: Request) -> Response {
    Response::text(format!("{} {} to {}", request.method().as_str(), request.path(), *id))
}

#[page(DELETE "/forum/{id}")]
async fn forum_delete(id: Path<u32>) -> Result<Response, Error> {
    if *id == 0 { Err(Error::forbidden("Not this one.")) } else { Ok(Response::see_other("/")) }
}

#[page("/note/{id}")]
async fn note(id: Path<Id<Note>>) -> impl Page {
    html!(<a href={format_args!("/note/{id}")} id={id}>{id}</a>)
}

#[page("/year/{year}")]
async fn year(year: Path<u16>) -> Result<impl Page, Error> {
    match year.0 {
        0 => Err(Error::unauthorized("log in first")),
        2100.. => Err(Error::see_other("/year/2099")),
        year => Ok(html!({ year })),
    }
}

#[page("/search")]
async fn search(word: Query<Option<String>>) -> Response {
    match word.0 {
        None => Response::see_other("/"),
        Some(word) => {
            Response::from(html!(<b>{word}</b>).with_title("Search")).with_header("X-Own", "yes")
        }
    }
}

#[page(POST "/done")]
async fn done(done: Form<bool>) -> Response {
    Response::text(done.to_string())
}

#[page("/below/{path..}")]
async fn file_below(path: Path<Text>) -> Response {
    Response::text(path.to_string())
}

#[page("/fields")]
async fn fields(
    user_agent: Header<Text>,
    x_depth: Header<Option<u8>>,
    theme: Cookie<Option<Text>>,
) -> Response {
    Response::text(format!("{user_agent} {:?} {:?}", x_depth.0, theme.0))
}

#[page(POST "/form")]
async fn form(author: Form<Text>, age: Form<Option<u8>>) -> Response {
    Response::text(format!("{author} {:?}", age.0))
}

#[page(POST "/form/plain")]
fn plain_form(author: Form<Text>) -> Response {
    Response::text(format!("plain {author}"))
}

#[page(POST "/upload")]
async fn upload(title: Form<Text>, file: Option<Upload>) -> Response {
    let told =
        file.map(|file| format!("{} {} {}", file.file_name(), file.media_type(), file.length()));
    Response::text(format!("{title}: {told:?}"))
}

#[page(POST "/upload/long")]
fn upload_long(before: Form<Text>, file: Upload, behind: Form<Text>) -> Result<Response, Error> {
    let mut read = Vec::new();
    file.reader().read_to_end(&mut read)?;
    let same = read == *file.content()?;
    let sum: u64 = read.iter().map(|&byte| u64::from(byte)).sum();
    Ok(Response::text(format!("{before} {} {sum} {same} {behind}", file.length())))
}

#[page("/rows")]
async fn rows(count: Query<u32>) -> Response {
    let count = count.0;
    Response::stream("text/html; charset=utf-8", async move |mut out| {
        out.send("<ul>").await?;
        for number in 0..count {
            out.page(html!(<li>{number}</li>)).await?;
        }
        out.send("</ul>").await?;
        Ok(())
    })
}

#[page("/rows/broken")]
fn broken_rows() -> Response {
    Response::stream("text/plain", async |mut out| {
        out.send("a").await?;
        Err(Error::not_found("no more of them"))
    })
}

#[page("/read")]
fn own_source_read() -> Result<Response, Error> {
    let file = std::fs::File::open(concat!(env!("CARGO_MANIFEST_DIR"), "/src/lib.rs"))?;
    Ok(Response::reader("text/plain", file).with_header("X-Read", "yes"))
}

#[page(POST "/double")]
async fn double(numbers: Json<Vec<i64>>) -> Json<Vec<i64>> {
    Json(numbers.iter().map(|number| number * 2).collect())
}

#[page("/failing")]
async fn failing(number: Query<Text>) -> Result<impl Page, Error> {
    let number: u8 = number.parse()?;
    if number == 0 {
        return Err(Error::not_found("No such number."));
    }
    Ok(html!({ number }))
}

#[page("/failing/plain")]
fn failing_plain(number: Query<Text>) -> Result<impl Page, std::num::ParseIntError> {
    let number: u8 = number.parse()?;
    Ok(html!({ number }))
}

#[page("/panic")]
async fn panicking() -> Response {
    panic!("on purpose")
}

#[page("/panic/plain")]
fn panicking_plain() -> Response {
    panic!("on purpose")
}

#[page("/panic/later")]
async fn panicking_later() -> Response {
    bine::blocking(|| ()).await;
    panic!("on purpose")
}

#[page("/counted")]
fn counted(counter: State<Counter>) -> impl Page {
    let count = counter.0.fetch_add(1, Ordering::Relaxed) + 1;
    html!({ count })
}

#[page("/whole")]
async fn whole() -> impl Respond {
    html!(<p>alone</p>).without_layout()
}

#[page("/source")]
fn own_source() -> Result<Response, Error> {
    own_file()
}

#[page("/source/later")]
async fn own_source_later() -> Result<Response, Error> {
    bine::blocking(own_file).await
}

fn own_file() -> Result<Response, Error> {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/src/lib.rs");
    Ok(Response::file(path)?.with_header("X-Own", "yes"))
}

/// Sends a body. The caller reads the reply.
fn post<'p>(peer: &'p mut Peer, target: &str, kind: &str, body: &str) -> &'p mut Peer {
    peer.send_request("POST", target, &format!("Content-Type: {kind}\r\n"), body);
    peer
}

const URLENCODED: &str = "application/x-www-form-urlencoded";

#[test]
fn parses_typed_path_parameters() {
    on_each_of(PROGRAM, &SCHEDULERS, |peer| {
        assert!(peer.get("/forum/a%20b").text().ends_with("<main>a b on page 1</main>"));
        assert!(peer.get("/forum/x?page=2").text().ends_with("<main>x on page 2</main>"));
        assert_eq!(peer.get("/below/a/b.c").text(), "a/b.c");
        assert_eq!(peer.get("/below/").status(), 404);
        let reply = post(peer, "/forum/many", "text/plain", "").reply();
        let told = "`id` must be a whole number that is not negative, not `many`\n";
        assert_eq!((reply.status(), reply.text()), (404, told));
    });
}

#[test]
fn answers_404_for_a_path_without_a_valid_id() {
    on_each_of(PROGRAM, &SCHEDULERS, |peer| {
        let id = "0193f9a0-4c5e-7b3a-9c1d-5e6f70819203";
        let link = format!("<a href=\"/note/{id}\" id=\"{id}\">{id}</a>");
        assert!(peer.get(&format!("/note/{id}")).text().ends_with(&format!("<main>{link}</main>")));
        let reply = peer.get("/note/7");
        assert_eq!((reply.status(), reply.text()), (404, "`id` must be an id, not `7`\n"));
    });
}

#[test]
fn redirects_by_an_error() {
    on_each_of(PROGRAM, &SCHEDULERS, |peer| {
        for accept in ["text/html", "application/json", "*/*"] {
            peer.send(format!("GET /year/2500 HTTP/1.1\r\nHost: a\r\nAccept: {accept}\r\n\r\n"));
            let reply = peer.reply();
            assert_eq!((reply.status(), reply.header("Location")), (303, Some("/year/2099")));
            assert_eq!(reply.text(), "");
        }
        assert!(peer.get("/year/2000").text().ends_with("<main>2000</main>"));
    });
}

#[test]
fn answers_with_a_page_or_a_redirect() {
    on_each_of(PROGRAM, &SCHEDULERS, |peer| {
        let found = peer.get("/search?word=hop");
        let expected = "<title>Search</title><main><b>hop</b></main>";
        assert_eq!((found.status(), found.text()), (200, expected));
        assert_eq!((found.header("X-Own"), found.header("Location")), (Some("yes"), None));
        for target in ["/search", "/search?word="] {
            let reply = peer.get(target);
            assert_eq!((reply.status(), reply.header("Location")), (303, Some("/")));
        }
    });
}

#[test]
fn each_401_has_a_challenge() {
    on_each_of(PROGRAM, &SCHEDULERS, |peer| {
        let reply = peer.get("/year/0");
        assert_eq!((reply.status(), reply.text()), (401, "log in first\n"));
        assert_eq!(reply.header("WWW-Authenticate"), Some("Cookie realm=\"session\""));
    });
}

#[test]
fn reads_unchecked_box_as_false() {
    on_each_of(PROGRAM, &SCHEDULERS, |peer| {
        for (body, expected) in [("", "false"), ("done=on", "true"), ("done=false", "false")] {
            assert_eq!(post(peer, "/done", URLENCODED, body).reply().text(), expected);
        }
    });
}

#[test]
fn pages_of_one_path_share_its_methods() {
    on_each_of(PROGRAM, &SCHEDULERS, |peer| {
        assert_eq!(post(peer, "/forum/7", "text/plain", "").reply().text(), "POST /forum/7 to 7");
        peer.send("PATCH /forum/7 HTTP/1.1\r\nHost: a\r\n\r\n");
        let reply = peer.reply();
        let allowed = Some("GET, HEAD, POST, PUT, DELETE, OPTIONS");
        assert_eq!((reply.status(), reply.header("Allow")), (405, allowed));
        peer.send("OPTIONS /forum/7 HTTP/1.1\r\nHost: a\r\n\r\n");
        let reply = peer.reply();
        assert_eq!((reply.status(), reply.header("Allow")), (204, allowed));
    });
}

#[test]
fn passes_header_fields_and_cookies_as_arguments() {
    on_each_of(PROGRAM, &SCHEDULERS, |peer| {
        peer.send(
            "GET /fields HTTP/1.1\r\nHost: a\r\nUser-Agent: me\r\nX-Depth: 3\r\nCookie: a=b; theme=\"dark\"\r\n\r\n",
        );
        assert_eq!(peer.reply().text(), "me Some(3) Some(\"dark\")");
        peer.send("GET /fields HTTP/1.1\r\nHost: a\r\nUser-Agent: me\r\nX-Depth: deep\r\n\r\n");
        let reply = peer.reply();
        let told = "`x_depth` must be a whole number from 0 to 255, not `deep`\n";
        assert_eq!((reply.status(), reply.text()), (400, told));
        assert_eq!(peer.get("/fields").text(), "`user_agent` is missing from the fields\n");
    });
}

#[test]
fn accepts_both_form_encodings() {
    on_each_of(PROGRAM, &SCHEDULERS, |peer| {
        assert_eq!(
            post(peer, "/form", URLENCODED, "author=A%26+B&age=7").reply().text(),
            "A& B Some(7)"
        );
        let parts =
            "--xyz\r\nContent-Disposition: form-data; name=\"author\"\r\n\r\nA\r\nB\r\n--xyz--\r\n";
        let kind = "multipart/form-data; boundary=xyz";
        assert_eq!(post(peer, "/form", kind, parts).reply().text(), "A\r\nB None");
        assert_eq!(post(peer, "/form/plain", URLENCODED, "author=x").reply().text(), "plain x");
        for (kind, body, told) in [
            (URLENCODED, "age=7", "`author` is missing from the form\n"),
            (URLENCODED, "author=a&age=x", "`age` must be a whole number from 0 to 255, not `x`\n"),
            ("text/plain", "author=a", "`author` is missing: the body is not a form\n"),
            (
                kind,
                "nothing",
                "`author` is not to be found: the form has no boundary in its body\n",
            ),
        ] {
            let reply = post(peer, "/form", kind, body).reply();
            assert_eq!((reply.status(), reply.text()), (400, told));
        }
    });
}

#[test]
fn uploads_file_too_long_for_memory_with_its_form_fields() {
    let field =
        |name| format!("--x\r\nContent-Disposition: form-data; name={name}\r\n\r\n{name}!\r\n");
    let head = "--x\r\nContent-Disposition: form-data; name=file; filename=f\r\n\r\n";
    // Sizes in memory, across the scanning windows on disk, and above the limit of an async page.
    for length in [10, 64 * 1024, 300_000, 20_000_000] {
        on_each_of(PROGRAM, &SCHEDULERS, |peer| {
            let content = "a\r\n-".repeat(length / 4);
            let body =
                [&field("before"), head, &content, "\r\n", &field("behind"), "--x--"].concat();
            let kind = "multipart/form-data; boundary=x";
            let sum = content.bytes().map(u64::from).sum::<u64>();
            let told = format!("before! {} {sum} true behind!", content.len());
            assert_eq!(post(peer, "/upload/long", kind, &body).reply().text(), told);
        });
    }
}

#[test]
fn revalidates_file_response_and_sends_ranges() {
    let source = include_str!("../../src/lib.rs");
    on_each_of(PROGRAM, &SCHEDULERS, |peer| {
        for path in ["/source", "/source/later"] {
            let whole = peer.get(path);
            assert_eq!((whole.status(), whole.text()), (200, source));
            assert_eq!(whole.header("X-Own"), Some("yes"));
            let tag = whole.header("ETag").expect("a tag").to_owned();
            peer.send(format!("GET {path} HTTP/1.1\r\nHost: a\r\nIf-None-Match: {tag}\r\n\r\n"));
            assert_eq!(peer.reply_to_head().status(), 304, "{path}");
            peer.send(format!("GET {path} HTTP/1.1\r\nHost: a\r\nRange: bytes=4-9\r\n\r\n"));
            let part = peer.reply();
            assert_eq!((part.status(), part.text()), (206, &source[4..10]), "{path}");
            peer.send(format!("HEAD {path} HTTP/1.1\r\nHost: a\r\n\r\n"));
            let head = peer.reply_to_head();
            assert_eq!(head.header("Content-Length"), Some(&*source.len().to_string()), "{path}");
        }
    });
}

#[test]
fn streams_page_while_it_is_rendered() {
    on_each_of(PROGRAM, &SCHEDULERS, |peer| {
        let rows: Vec<_> = (0..50_000).map(|number| format!("<li>{number}</li>")).collect();
        let reply = peer.get("/rows?count=50000");
        assert_eq!(reply.text(), format!("<ul>{}</ul>", rows.concat()));
        assert_eq!(reply.header("Content-Type"), Some("text/html; charset=utf-8"));
        assert_eq!(peer.get("/rows?count=many").status(), 400);
    });
}

#[test]
fn streams_content_of_a_reader() {
    on_each_of(PROGRAM, &SCHEDULERS, |peer| {
        let reply = peer.get("/read");
        assert_eq!(reply.text(), include_str!("../../src/lib.rs"));
        assert_eq!(reply.header("X-Read"), Some("yes"));
    });
}

#[test]
fn truncates_failing_stream_and_logs_reason() {
    for scheduler in SCHEDULERS {
        let program = start(&["--scheduler", scheduler]);
        let mut peer = program.connect();
        peer.send("GET /rows/broken HTTP/1.1\r\nHost: a\r\n\r\n");
        assert!(peer.rest().ends_with(b"1\r\na\r\n"), "{scheduler}");
        let errors = program.stop().errors;
        assert!(errors.contains("no more of them"), "{errors}");
    }
}

#[test]
fn shows_error_page_on_panic_and_its_message_in_development() {
    for scheduler in SCHEDULERS {
        // `serve_page_program` switches development on for seven workers; the option overrides it.
        for (workers, word, is_told) in
            [("7", "auto", true), ("6", "auto", false), ("7", "off", false), ("6", "on", true)]
        {
            let options = ["--scheduler", scheduler, "--workers", workers, "--development", word];
            let program = start(&options);
            for path in ["/panic", "/panic/plain", "/panic/later"] {
                let mut peer = program.connect();
                let accept = "Accept: text/html\r\n";
                peer.send(format!("GET {path} HTTP/1.1\r\nHost: a\r\n{accept}\r\n"));
                let reply = peer.reply();
                assert_eq!(
                    (reply.status(), reply.header("Connection")),
                    (500, Some("close")),
                    "{path}"
                );
                assert!(reply.text().contains("<h1>500</h1>"), "{}", reply.text());
                assert_eq!(reply.text().contains("on purpose"), is_told, "{}", reply.text());
                peer.expect_closed();
            }
        }
    }
}

#[test]
fn uploads_a_file() {
    on_each_of(PROGRAM, &SCHEDULERS, |peer| {
        let parts = |file: &str| {
            format!(
                "--b\r\nContent-Disposition: form-data; name=\"title\"\r\n\r\nT\r\n--b\r\n\
                 Content-Disposition: form-data; name=\"file\"; {file}\r\n--b--\r\n"
            )
        };
        let kind = "multipart/form-data; boundary=b";
        let file = parts("filename=\"../x y.txt\"\r\nContent-Type: text/plain\r\n\r\nabc\r\n\r\n");
        assert_eq!(
            post(peer, "/upload", kind, &file).reply().text(),
            "T: Some(\"x y.txt text/plain 7\")"
        );
        let none = parts("filename=\"\"\r\nContent-Type: application/octet-stream\r\n\r\n");
        assert_eq!(post(peer, "/upload", kind, &none).reply().text(), "T: None");
    });
}

#[test]
fn accepts_and_returns_json() {
    on_each_of(PROGRAM, &SCHEDULERS, |peer| {
        let reply = post(peer, "/double", "application/json", "[1, 2]").reply();
        assert_eq!(reply.header("Content-Type"), Some("application/json"));
        assert_eq!(reply.text(), "[2,4]");
        for (kind, body, told) in [
            ("text/plain", "[1]", "must be sent as `Content-Type: application/json`"),
            ("application/json", "[1, \"a\"]", "at line 1 column 7"),
            ("application/json", "[[1]]", "invalid type: sequence"),
            ("application/json", "[1", "EOF"),
        ] {
            let reply = post(peer, "/double", kind, body).reply();
            assert_eq!(reply.status(), 400);
            assert!(reply.text().contains(told), "{}", reply.text());
        }
    });
}

#[test]
fn shows_error_to_user_and_logs_its_causes() {
    for scheduler in SCHEDULERS {
        let program = start(&["--scheduler", scheduler]);
        let mut peer = program.connect();
        let reply = peer.get("/failing?number=0");
        assert_eq!((reply.status(), reply.text()), (404, "No such number.\n"));
        let mut numbers = Vec::new();
        for target in ["/failing?number=x", "/failing/plain?number=x"] {
            let reply = peer.get(target);
            let told = "Something went wrong here. It has been noted. Its number in the log is ";
            let number = reply.text().strip_prefix(told).and_then(|rest| rest.strip_suffix(".\n"));
            assert_eq!(reply.status(), 500, "{target}");
            numbers.push(number.unwrap_or_else(|| panic!("{}", reply.text())).to_owned());
        }
        assert!(peer.get("/failing?number=7").text().ends_with("<main>7</main>"));
        let output = program.stop().errors;
        for number in numbers {
            let line = format!("answered 500 ({number}): invalid digit found in string");
            assert_eq!(output.matches(&line).count(), 1, "{line}: {output}");
        }
        assert!(!output.contains("No such number"), "{output}");
    }
}

#[test]
fn shows_causes_of_error_in_development() {
    let program = start(&["--workers", "7"]);
    let reply = program.connect().get("/failing?number=x");
    assert!(reply.text().ends_with("\n  invalid digit found in string\n"), "{}", reply.text());
}

#[test]
fn renders_error_as_page_for_browsers() {
    on_each_of(PROGRAM, &SCHEDULERS, |peer| {
        peer.send("GET /nowhere HTTP/1.1\r\nHost: a\r\nAccept: text/html,*/*;q=0.8\r\n\r\n");
        let reply = peer.reply();
        assert_eq!((reply.status(), reply.header("Vary")), (404, Some("Accept")));
        assert_eq!(reply.header("Content-Type"), Some("text/html; charset=utf-8"));
        let expected = "<title>Not Found</title><main><h1>404</h1><p>There is nothing at this address.</p></main>";
        assert_eq!(reply.text(), expected);
    });
}

#[test]
fn wraps_pages_in_layout_unless_disabled() {
    on_each_of(PROGRAM, &SCHEDULERS, |peer| {
        let expected = "<title>Forum</title><meta name=\"robots\" content=\"noindex\" /><main>x on page 1</main>";
        assert_eq!(peer.get("/forum/x").text(), expected);
        assert_eq!(peer.get("/whole").text(), "<p>alone</p>");
    });
}

#[test]
fn filters_answer_rewrite_or_pass() {
    on_each_of(PROGRAM, &SCHEDULERS, |peer| {
        let reply = peer.get("/closed");
        assert_eq!((reply.status(), reply.text()), (403, "Closed.\n"));
        assert!(peer.get("/f").text().ends_with("<main>a b on page 3</main>"));
        // To a worker, with a body.
        assert_eq!(post(peer, "/form-of-old", URLENCODED, "author=x").reply().text(), "plain x");
        assert_eq!(peer.get("/wrong").status(), 500);
    });
}

#[test]
fn program_replaces_a_step() {
    on_each_of(PROGRAM, &SCHEDULERS, |peer| {
        assert_eq!(peer.get("/stepped").text(), "stepped");
        assert_eq!(peer.get("/whole").text(), "<p>alone</p>");
    });
}

#[test]
fn shares_state_between_threads() {
    on_each_of(PROGRAM, &SCHEDULERS, |peer| {
        for expected in 1..=5 {
            let text = peer.get("/counted").text().to_owned();
            assert!(text.ends_with(&format!("<main>{expected}</main>")), "{text}");
        }
    });
}

#[test]
fn serves_file_from_any_path() {
    on_each_of(PROGRAM, &SCHEDULERS, |peer| {
        let source = include_str!("../../src/lib.rs");
        let reply = peer.get("/source");
        assert_eq!((reply.status(), reply.text()), (200, source));
        peer.send("HEAD /source HTTP/1.1\r\nHost: a\r\n\r\n");
        let reply = peer.reply_to_head();
        assert_eq!(reply.header("Content-Length"), Some(&*source.len().to_string()));
        assert_eq!(peer.get("/whole").status(), 200);
    });
}

#[test]
fn missing_state_prevents_start() {
    if let Some(options) = options() {
        println!("{:?}", App::new().page(counted).run_with("Usage: app", options.lines()));
        return;
    }
    let test = "pages::missing_state_prevents_start";
    let output = Program::run(&mut program(test, &[])).output;
    assert!(output.contains("pages::counted takes `State<"), "{output}");
    assert!(output.contains("add `.state(..)`"), "{output}");
}

/// Two `html!` have two types, and a function returns one.
#[page("/several/{kind}")]
async fn several(kind: Path<Text>) -> Result<impl Page, Error> {
    let Some(first) = kind.chars().next() else { return Err(Error::not_found("nothing")) };
    if first == 'a' {
        return Ok(html!(<p>{kind}</p>));
    }
    if first == 'b' {
        Ok(html!(<h1>{first}</h1>))
    } else {
        match first {
            'c' => Ok(html!(<h2>c</h2>).with_title("C")),
            _ => Err(Error::not_found("no such letter")),
        }
    }
}

#[page("/several")]
fn several_plain(is_long: Query<bool>) -> impl Page {
    match *is_long {
        true => html!(<h1>long</h1> <p>text</p>),
        false => html!(<p>short</p>),
    }
}

#[test]
fn function_of_a_page_may_return_several_pages() {
    let site = bine::test::Site::new(App::new().page(several).page(several_plain));
    for (path, status, text) in [
        ("/several/a1", 200, "<p>a1</p>"),
        ("/several/b", 200, "<h1>b</h1>"),
        ("/several/c", 200, "<h2>c</h2>"),
        ("/several/d", 404, "no such letter\n"),
        ("/several?is_long=true", 200, "<h1>long</h1> <p>text</p>"),
        ("/several?is_long=false", 200, "<p>short</p>"),
    ] {
        let reply = site.get(path);
        assert_eq!((reply.status(), reply.text()), (status, text), "{path}");
    }
}

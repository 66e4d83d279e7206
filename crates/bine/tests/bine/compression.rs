//! Compressed responses over sockets: each kind of response restored and compared with the one for a
//! client that accepts no coding, and the responses that must stay as they are.

use std::io::Read as _;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use bine::prelude::*;
use bine::{Cookie, Flow, Html, Page, PageExt, Respond, Sessions};

use crate::app::{options, program};
use crate::harness::{Folder, KINDS, PATIENCE, Peer, Program, Reply};
use crate::metrics::{await_figure, metrics_address};

const CODINGS: [&str; 3] = ["zstd", "br", "gzip"];

fn list(rows: usize) -> impl Html<Flow> {
    html!(<ul>{for row in 0..rows { <li>Row number {row} of a list</li> }}</ul>)
}

#[page("/page")]
async fn page() -> impl Page {
    list(60)
}

/// Longer than what the server sends at once.
#[page("/long")]
async fn long() -> impl Page {
    list(8000)
}

#[page("/long_from_a_worker")]
fn long_from_a_worker() -> impl Page {
    list(8000)
}

/// Longer than what the server collects.
#[page("/huge")]
fn huge() -> impl Page {
    list(60_000)
}

/// The same on an event loop.
#[page("/endless")]
async fn endless() -> impl Page {
    list(60_000)
}

#[page("/later")]
async fn later() -> Response {
    let text = bine::blocking(|| "a line of text\n".repeat(100)).await;
    Response::text(text)
}

#[page("/later/long")]
async fn later_long() -> Response {
    let text = bine::blocking(|| "a line of text\n".repeat(20_000)).await;
    Response::text(text)
}

#[page("/tagged")]
async fn tagged() -> Response {
    Response::text("a line of text\n".repeat(100)).with_header("ETag", "\"one\"")
}

#[page("/failing")]
async fn failing() -> Result<Response, Error> {
    Err(Error::forbidden("not you ".repeat(200)))
}

#[page("/stream")]
async fn stream() -> Response {
    Response::stream("text/plain", async |mut out| {
        for number in 0..3000 {
            out.send(format!("line {number}\n")).await?;
        }
        out.send("a long line ".repeat(10_000)).await?;
        Ok(())
    })
}

const WHOLE: [&str; 8] = [
    "/page",
    "/long",
    "/long_from_a_worker",
    "/later",
    "/later/long",
    "/tagged",
    "/failing",
    "/stream",
];

/// The events that the stream of events has been asked for.
static RINGS: AtomicUsize = AtomicUsize::new(0);

#[page("/ring")]
async fn ring() -> Response {
    RINGS.fetch_add(1, Ordering::SeqCst);
    Response::text("done")
}

/// Sends an event for each ring, the first one at once.
#[page("/events")]
async fn events() -> Response {
    Response::stream("text/event-stream", async |mut out| {
        for number in 0..3 {
            while RINGS.load(Ordering::SeqCst) < number {
                bine::blocking(std::thread::yield_now).await;
            }
            out.send(format!("data: event {number}\n\n")).await?;
        }
        Ok(())
    })
}

#[page("/short")]
async fn short() -> Response {
    Response::text("a".repeat(1023))
}

#[page("/picture")]
async fn picture() -> Response {
    Response::bytes("image/png", vec![0; 4000])
}

#[page("/fixed")]
async fn fixed() -> Response {
    Response::text("a".repeat(4000)).with_header("Cache-Control", "no-transform")
}

#[page("/encoded")]
async fn encoded() -> Response {
    Response::text("a".repeat(4000)).with_header("Content-Encoding", "x-own")
}

#[page("/session")]
async fn session(session: Session) -> impl Page {
    let name = session.name();
    html!(<h1>{name}</h1>{list(60)})
}

#[page("/session_from_a_worker")]
fn session_from_a_worker(session: Session) -> impl Page {
    let name = session.name();
    html!(<h1>{name}</h1>{list(8000)})
}

#[page("/cookie")]
async fn cookie(theme: Cookie<Option<Text>>) -> impl Page {
    let theme = theme.0.unwrap_or_default();
    html!(<h1>{theme}</h1>{list(60)})
}

#[page("/whole")]
async fn whole(request: Request) -> Response {
    Response::text(format!("{:?}", request.header("cookie")).repeat(400))
}

/// A session, but no secret: the program says so.
#[page("/wanted")]
async fn wanted(session: Session) -> impl Respond {
    let name = if session.user().is_some() { "a user" } else { "a visitor" };
    html!(<h1>{name}</h1>{list(60)}).with_compression(true)
}

#[page("/unwanted")]
async fn unwanted() -> Response {
    Response::text("a".repeat(4000)).with_compression(false)
}

const LEFT: [&str; 4] = ["/short", "/picture", "/fixed", "/unwanted"];

/// A program whose responses are the same for all clients. Ordinary test runs skip it.
#[test]
fn serve_shared_pages() -> Exit {
    let Some(options) = options() else { return Exit::success() };
    App::new()
        .page(page)
        .page(long)
        .page(long_from_a_worker)
        .page(huge)
        .page(endless)
        .page(later)
        .page(later_long)
        .page(tagged)
        .page(failing)
        .page(stream)
        .page(ring)
        .page(events)
        .page(short)
        .page(picture)
        .page(fixed)
        .page(encoded)
        .page(unwanted)
        .run_with("Usage: shared", options.lines())
}

/// A program whose responses depend on the client. Ordinary test runs skip it.
#[test]
fn serve_personal_pages() -> Exit {
    let Some(options) = options() else { return Exit::success() };
    App::new()
        .sessions(Sessions::new())
        .page(page)
        .page(session)
        .page(session_from_a_worker)
        .page(cookie)
        .page(whole)
        .page(wanted)
        .page(unwanted)
        .run_with("Usage: personal", options.lines())
}

fn start(options: &[&str]) -> Program {
    let options = [&["--data", "memory"], options].concat();
    Program::start(&mut program("compression::serve_shared_pages", &options))
}

fn start_personal(options: &[&str]) -> Program {
    let options = [&["--data", "memory"], options].concat();
    Program::start(&mut program("compression::serve_personal_pages", &options))
}

fn get(peer: &mut Peer, path: &str, fields: &str) -> Reply {
    peer.request("GET", path, fields, "")
}

fn accepting(codings: &str) -> String {
    format!("Accept-Encoding: {codings}\r\n")
}

fn restored(coding: &str, bytes: &[u8]) -> Vec<u8> {
    let mut content = Vec::new();
    match coding {
        "zstd" => content = zstd::decode_all(bytes).unwrap(),
        "br" => brotli::BrotliDecompress(&mut &*bytes, &mut content).unwrap(),
        "gzip" => {
            flate2::read::GzDecoder::new(bytes).read_to_end(&mut content).unwrap();
        }
        other => panic!("unknown coding {other}"),
    }
    content
}

/// The values of a field, which may occur several times.
fn values<'r>(reply: &'r Reply, name: &str) -> Vec<&'r str> {
    let lines = reply.head.lines().filter_map(|line| line.split_once(": "));
    lines.filter(|(own, _)| own.eq_ignore_ascii_case(name)).map(|(_, value)| value).collect()
}

#[track_caller]
fn check_encoded(reply: &Reply, coding: &str, plain: &[u8]) {
    assert_eq!(reply.header("Content-Encoding"), Some(coding), "{}", reply.head);
    assert!(values(reply, "Vary").contains(&"Accept-Encoding"), "{}", reply.head);
    assert_eq!(reply.header("Accept-Ranges"), None, "{}", reply.head);
    assert!(reply.body.len() < plain.len(), "{}", reply.head);
    assert!(restored(coding, &reply.body) == plain, "{coding} of another content");
}

#[track_caller]
fn check_left(reply: &Reply) {
    assert_eq!(reply.header("Content-Encoding"), None, "{}", reply.head);
    assert!(!values(reply, "Vary").contains(&"Accept-Encoding"), "{}", reply.head);
}

#[test]
fn restores_each_kind_of_response_by_each_coding() {
    for scheduler in KINDS {
        let program = start(&["--scheduler", scheduler]);
        let mut peer = program.connect();
        for path in WHOLE {
            let plain = get(&mut peer, path, "");
            check_left(&plain);
            for coding in CODINGS {
                let reply = get(&mut peer, path, &accepting(coding));
                assert_eq!(reply.status(), plain.status());
                check_encoded(&reply, coding, &plain.body);
            }
        }
    }
}

#[test]
fn follows_the_preferences_of_the_client_and_of_the_server() {
    let program = start(&[]);
    let mut peer = program.connect();
    for (accepted, expected) in [
        ("gzip, deflate, br, zstd", Some("zstd")),
        ("gzip, br", Some("br")),
        ("gzip, br;q=0.9", Some("gzip")),
        ("*", Some("zstd")),
        ("identity", None),
        ("gzip;q=0", None),
    ] {
        let reply = get(&mut peer, "/page", &accepting(accepted));
        assert_eq!(reply.header("Content-Encoding"), expected, "{accepted}");
        assert!(values(&reply, "Vary").contains(&"Accept-Encoding"), "{}", reply.head);
    }
    let program = start(&["--compress-encodings", "gzip", "--compress-encodings", "br"]);
    let reply = get(&mut program.connect(), "/page", &accepting("br, gzip, zstd"));
    assert_eq!(reply.header("Content-Encoding"), Some("gzip"));
}

#[test]
fn leaves_what_gains_nothing_or_must_not_change() {
    let program = start(&["--compress", "on"]);
    let mut peer = program.connect();
    for path in LEFT {
        let plain = get(&mut peer, path, "");
        let reply = get(&mut peer, path, &accepting("gzip"));
        check_left(&reply);
        assert_eq!(reply.body, plain.body);
    }
    let reply = get(&mut peer, "/encoded", &accepting("gzip"));
    assert_eq!(reply.header("Content-Encoding"), Some("x-own"));
    // It is sent while it is rendered.
    let reply = get(&mut peer, "/huge", &accepting("gzip"));
    check_left(&reply);
    assert!(reply.text().contains("Row number 59999 of"));
}

/// A long page that is sent while it is rendered leaves the buffer, with the replies before it. The stage
/// must not look for it there.
#[test]
fn keeps_the_order_of_replies_to_a_pipeline() {
    for scheduler in KINDS {
        let program = start(&["--scheduler", scheduler]);
        let mut peer = program.connect();
        let fields = accepting("gzip");
        let request = |path: &str| format!("GET {path} HTTP/1.1\r\nHost: a\r\n{fields}\r\n");
        peer.send(["/page", "/endless", "/long", "/short"].map(request).concat());
        assert_eq!(peer.reply().header("Content-Encoding"), Some("gzip"));
        let long = peer.reply();
        check_left(&long);
        assert!(long.text().contains("Row number 59999 of"));
        assert_eq!(peer.reply().header("Content-Encoding"), Some("gzip"));
        assert_eq!(peer.reply().body.len(), 1023);
    }
}

#[test]
fn leaves_content_that_depends_on_the_client() {
    for scheduler in KINDS {
        let program = start_personal(&["--scheduler", scheduler]);
        let mut peer = program.connect();
        let secret = format!("Cookie: theme=dark\r\n{}", accepting("gzip"));
        for path in ["/session", "/session_from_a_worker", "/cookie", "/whole"] {
            check_left(&get(&mut peer, path, &secret));
        }
        let plain = get(&mut peer, "/wanted", "Cookie: theme=dark\r\n");
        check_encoded(&get(&mut peer, "/wanted", &secret), "gzip", &plain.body);
        // Without a cookie there is nothing to guess.
        let reply = get(&mut peer, "/cookie", &accepting("gzip"));
        assert_eq!(reply.header("Content-Encoding"), Some("gzip"), "{}", reply.head);
    }
}

#[test]
fn compresses_all_content_where_the_operator_says_so() {
    let program = start_personal(&["--compress", "on"]);
    let mut peer = program.connect();
    let secret = format!("Cookie: theme=dark\r\n{}", accepting("gzip"));
    for path in ["/session", "/session_from_a_worker", "/cookie", "/whole"] {
        let reply = get(&mut peer, path, &secret);
        assert_eq!(reply.header("Content-Encoding"), Some("gzip"), "{}", reply.head);
    }
    check_left(&get(&mut peer, "/unwanted", &secret));
}

#[test]
fn rules_for_paths_and_hosts_replace_the_mode() {
    let options = [
        "--compress-path",
        "/wanted off",
        "--compress-path",
        "/whole/** off",
        "--compress-path",
        "/session on",
    ];
    let program = start_personal(
        &[&options[..], &["--compress-path", "other.test/** off", "--hosts", "any"]].concat(),
    );
    let mut peer = program.connect();
    let coding = |peer: &mut Peer, path: &str| {
        let reply = get(peer, path, &accepting("br"));
        reply.header("Content-Encoding").map(str::to_owned)
    };
    assert_eq!(coding(&mut peer, "/session").as_deref(), Some("br"));
    assert_eq!(coding(&mut peer, "/whole"), None);
    assert_eq!(coding(&mut peer, "/wanted"), None);
    assert_eq!(coding(&mut peer, "/page").as_deref(), Some("br"));
    peer.send("GET /page HTTP/1.1\r\nHost: other.test\r\nAccept-Encoding: br\r\n\r\n");
    check_left(&peer.reply());
    let program = start_personal(&["--compress", "off"]);
    check_left(&get(&mut program.connect(), "/page", &accepting("br")));
    check_left(&get(&mut program.connect(), "/wanted", &accepting("br")));
}

#[test]
fn sends_each_event_before_the_stream_ends() {
    for coding in CODINGS {
        let program = start(&[]);
        let mut peer = program.connect();
        peer.send(format!("GET /events HTTP/1.1\r\nHost: a\r\nAccept-Encoding: {coding}\r\n\r\n"));
        let head = peer.await_text("\r\n\r\n");
        assert!(head.contains(&format!("Content-Encoding: {coding}\r\n")), "{head}");
        let mut received = Vec::new();
        for number in 0..3 {
            let expected = format!("data: event {number}\n\n");
            while !so_far(coding, &received).ends_with(expected.as_bytes()) {
                let chunk = peer.chunk();
                assert!(!chunk.is_empty(), "{coding} ends before event {number}");
                received.extend(chunk);
            }
            get(&mut program.connect(), "/ring", "");
        }
    }
}

/// The content that a client can restore from the beginning of a response.
fn so_far(coding: &str, bytes: &[u8]) -> Vec<u8> {
    let mut reader: Box<dyn std::io::Read + '_> = match coding {
        "zstd" => Box::new(zstd::Decoder::new(bytes).unwrap()),
        "br" => Box::new(brotli::Decompressor::new(bytes, 64)),
        _ => Box::new(flate2::read::GzDecoder::new(bytes)),
    };
    let (mut content, mut piece) = (Vec::new(), [0; 64]);
    while let Ok(count @ 1..) = reader.read(&mut piece) {
        content.extend_from_slice(&piece[..count]);
    }
    content
}

#[test]
fn sends_streams_as_they_are_beyond_the_bound() {
    let mut program = start(&["--compress-streams", "0", "--metrics", "127.0.0.1:0"]);
    let metrics = metrics_address(&mut program);
    let reply = get(&mut program.connect(), "/stream", &accepting("gzip"));
    assert_eq!(reply.header("Content-Encoding"), None, "{}", reply.head);
    assert!(values(&reply, "Vary").contains(&"Accept-Encoding"), "{}", reply.head);
    assert!(reply.text().starts_with("line 0\nline 1\n"));
    await_figure(metrics, "bine_compression_refused_streams_total", 1);
    await_figure(metrics, "bine_compression_streams", 0);
}

#[test]
fn counts_content_and_logs_what_it_has_sent() {
    let folder = Folder::new();
    let log = folder.join("access.log");
    let options = ["--metrics", "127.0.0.1:0", "--access-log", log.to_str().unwrap()];
    let mut program = start(&[&options[..], &["--access-log-format", "%U %b"]].concat());
    let metrics = metrics_address(&mut program);
    let plain = get(&mut program.connect(), "/page", "").body.len();
    let page = get(&mut program.connect(), "/page", &accepting("gzip")).body.len();
    let (before, after) = (plain as u64, page as u64);
    let series = |name: &str| format!("bine_compression_{name}_bytes_total{{encoding=\"gzip\"}}");
    await_figure(metrics, &series("content"), before);
    await_figure(metrics, &series("sent"), after);
    program.stop();
    let lines = std::fs::read_to_string(log).unwrap();
    assert!(lines.lines().any(|line| line == format!("/page {page}")), "{lines}");
    assert!(lines.lines().any(|line| line == format!("/page {plain}")), "{lines}");
}

#[test]
fn answers_head_as_get() {
    let program = start(&[]);
    let mut peer = program.connect();
    for path in ["/page", "/tagged", "/fixed", "/short", "/picture", "/stream"] {
        let reply = get(&mut peer, path, &accepting("gzip"));
        let head = peer.request("HEAD", path, &accepting("gzip"), "");
        let lines = |reply: &Reply| {
            let lines = reply.head.lines().filter(|line| !line.starts_with("Date: "));
            // The length of compressed content is known only once it is compressed.
            let lines = lines.filter(|line| {
                reply.header("Content-Encoding").is_none() || !line.starts_with("Content-Length: ")
            });
            let lines = lines.filter(|line| !line.starts_with("Set-Cookie: "));
            lines.map(str::to_owned).collect::<Vec<_>>()
        };
        assert_eq!(lines(&head), lines(&reply), "{path}");
    }
}

#[test]
fn tags_of_compressed_content_are_weak_and_still_answer_conditions() {
    let program = start(&[]);
    let mut peer = program.connect();
    let reply = get(&mut peer, "/tagged", &accepting("gzip"));
    assert_eq!(reply.header("ETag"), Some("W/\"one\""));
    assert_eq!(get(&mut peer, "/tagged", "").header("ETag"), Some("\"one\""));
}

/// Asks until the file is in the cache.
fn await_compressed(peer: &mut Peer, path: &str, coding: &str) -> Reply {
    let began = Instant::now();
    loop {
        let reply = get(peer, path, &accepting(coding));
        if reply.header("Content-Encoding").is_some() {
            return reply;
        }
        assert!(values(&reply, "Vary").contains(&"Accept-Encoding"), "{}", reply.head);
        assert!(began.elapsed() < PATIENCE, "{path} is never compressed");
    }
}

/// Writes a file whose tag is strong at once: it is older than two seconds.
fn write_old(folder: &Folder, name: &str, content: &[u8]) {
    let path = folder.write(name, content);
    let began = Instant::now();
    let changed = || {
        let metadata = std::fs::metadata(&path).unwrap();
        std::os::unix::fs::MetadataExt::ctime(&metadata)
    };
    let now = || {
        let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
        since.as_secs().cast_signed()
    };
    while now() <= changed() + 2 {
        assert!(began.elapsed() < PATIENCE, "the clock stands still");
        std::thread::yield_now();
    }
}

#[test]
fn compresses_files_once_and_prefers_their_precompressed_siblings() {
    let folder = Folder::new();
    let rules: Vec<String> =
        (0..4000).map(|number| format!(".c{number} {{ margin: 0 }}")).collect();
    let style = rules.join("\n");
    folder.write("small.css", &style.as_bytes()[..5000]);
    folder.write("sibling.css", style.as_bytes());
    folder.write("sibling.css.gz", b"made before");
    folder.write("picture.png", &vec![0; 50_000]);
    write_old(&folder, "large.css", style.as_bytes());
    let mut program =
        start(&["--root", folder.path().to_str().unwrap(), "--metrics", "127.0.0.1:0"]);
    let metrics = metrics_address(&mut program);
    let mut peer = program.connect();
    for coding in CODINGS {
        let reply = await_compressed(&mut peer, "/large.css", coding);
        check_encoded(&reply, coding, style.as_bytes());
        let small = get(&mut peer, "/small.css", &accepting(coding));
        check_encoded(&small, coding, &style.as_bytes()[..5000]);
    }
    await_figure(metrics, "bine_compression_cached_responses_total", 3);
    let again = get(&mut peer, "/small.css", &accepting("gzip"));
    check_encoded(&again, "gzip", &style.as_bytes()[..5000]);
    await_figure(metrics, "bine_compression_cached_responses_total", 4);
    let sibling = get(&mut peer, "/sibling.css", &accepting("gzip"));
    assert_eq!(
        (sibling.header("Content-Encoding"), &*sibling.body),
        (Some("gzip"), &b"made before"[..])
    );
    check_left(&get(&mut peer, "/picture.png", &accepting("gzip")));

    // Conditions and parts.
    let reply = get(&mut peer, "/large.css", &accepting("gzip"));
    let tag = reply.header("ETag").unwrap().to_owned();
    let strong = tag.strip_prefix("W/").unwrap();
    let fields = format!("{}If-None-Match: {tag}\r\n", accepting("gzip"));
    let unchanged = get(&mut peer, "/large.css", &fields);
    assert_eq!((unchanged.status(), unchanged.header("ETag")), (304, Some(&*tag)));
    let fields = format!("If-None-Match: {strong}\r\n");
    let unchanged = get(&mut peer, "/large.css", &fields);
    assert_eq!((unchanged.status(), unchanged.header("ETag")), (304, Some(strong)));
    let fields = format!("{}Range: bytes=0-9\r\n", accepting("gzip"));
    let part = get(&mut peer, "/large.css", &fields);
    assert_eq!((part.status(), &*part.body), (206, &style.as_bytes()[..10]));
    assert_eq!((part.header("Content-Encoding"), part.header("ETag")), (None, Some(strong)));
    let fields = format!("{fields}If-Range: {tag}\r\n");
    let whole = get(&mut peer, "/large.css", &fields);
    assert_eq!(whole.status(), 200);
    check_encoded(&whole, "gzip", style.as_bytes());
    let head = peer.request("HEAD", "/large.css", &accepting("gzip"), "");
    assert_eq!(
        (head.header("Content-Encoding"), head.header("Content-Length")),
        (Some("gzip"), None)
    );

    // A changed file is compressed again.
    write_old(&folder, "large.css", &style.as_bytes()[..40_000]);
    let reply = await_compressed(&mut peer, "/large.css", "gzip");
    check_encoded(&reply, "gzip", &style.as_bytes()[..40_000]);
}

/// Where the applications in TSX of the program are.
#[cfg(feature = "script")]
const SCRIPTS: &str = "BINE_TEST_SCRIPTS";

/// A program with applications in TSX. Ordinary test runs skip it.
#[cfg(feature = "script")]
#[test]
fn serve_compressed_scripts() -> Exit {
    let Some(options) = options() else { return Exit::success() };
    let folder = std::env::var_os(SCRIPTS).unwrap();
    App::new()
        .sessions(Sessions::new())
        .scripts(std::path::PathBuf::from(folder))
        .run_with("Usage: scripts", options.lines())
}

#[cfg(feature = "script")]
#[test]
fn pages_in_tsx_follow_the_same_rules() {
    let folder = Folder::new();
    let page = |exports: &str, content: &str| {
        format!(
            "import {{ page }} from \"bine\";\n{exports}\nexport default page((ctx) => (\n  \
             <main><h1>{{{content}}}</h1><p>{{\"a line of text \".repeat(200)}}</p></main>\n));\n"
        )
    };
    let user = "ctx.user?.name ?? \"stranger\"";
    let cookie = "ctx.header(\"cookie\") ?? \"none\"";
    for (file, exports, content) in [
        ("index.tsx", "", "ctx.path"),
        ("user.tsx", "", user),
        ("cookie.tsx", "", cookie),
        ("wanted.tsx", "export const compress = true;", user),
        ("unwanted.tsx", "export const compress = false;", "ctx.path"),
        ("all/index.tsx", "", user),
        ("all/unwanted.tsx", "export const compress = false;", "ctx.path"),
        ("wrong.tsx", "export const compress = \"on\";", "ctx.path"),
    ] {
        folder.write(file, page(exports, content).as_bytes());
    }
    folder.write("all/app.toml", b"compress = true\n");
    let options = ["--data", "memory"];
    let mut command = program("compression::serve_compressed_scripts", &options);
    let program = Program::start(command.env(SCRIPTS, folder.path()));
    let mut peer = program.connect();
    let fields = format!("Cookie: a=b\r\n{}", accepting("br"));
    for (path, is_encoded) in [
        ("/", true),
        ("/user", false),
        ("/cookie", false),
        ("/wanted", true),
        ("/unwanted", false),
        ("/all/", true),
        ("/all/unwanted", false),
    ] {
        let plain = get(&mut peer, path, "Cookie: a=b\r\n");
        let reply = get(&mut peer, path, &fields);
        assert_eq!((plain.status(), reply.status()), (200, 200), "{path}: {}", plain.text());
        if is_encoded {
            check_encoded(&reply, "br", &plain.body);
        } else {
            check_left(&reply);
        }
    }
    assert_eq!(get(&mut peer, "/wrong", "").status(), 500);
}

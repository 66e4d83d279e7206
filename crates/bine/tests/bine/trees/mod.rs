//! Pages that a program stores: trees and frozen pages.

mod writers;

use std::sync::LazyLock;

use bine::{
    App, Error, Exit, Frozen, Page, PageContent, PageExt, Path, Respond, State, Status, Text, Tree,
    html, page, tree,
};

use bine::tree::Element;
use roxmltree::{Document, ParsingOptions};

use crate::app::{numbered, on_each_of, options, program};
use crate::harness::{KINDS, Program};

/// The test that is the program.
const PROGRAM: &str = "trees::serve_tree_program";

/// The program under test. Ordinary test runs skip it.
#[test]
fn serve_tree_program() -> Exit {
    let Some(options) = options() else { return Exit::success() };
    // `cargo test` builds for development.
    App::new()
        .development(options.contains("--workers\n7"))
        .state(menu("state"))
        .page(kept)
        .page(changed)
        .page(frozen)
        .page(frozen_worker)
        .page(frozen_long)
        .page(frozen_lost)
        .page(around)
        .page(misplaced)
        .run_with("Usage: trees", options.lines())
}

/// A program with a layout and a style sheet. Ordinary test runs skip it.
#[test]
fn serve_styled_tree_program() -> Exit {
    let Some(options) = options() else { return Exit::success() };
    App::new()
        .style("p { color: green }")
        .layout(layout)
        .page(whole)
        .page(frozen)
        .page(kept_whole)
        .page(drawn)
        .run_with("Usage: trees", options.lines())
}

fn layout(content: PageContent<'_>) -> impl Page {
    html! {
        <!DOCTYPE html>
        <html lang="en"><head><title>{content.title()}</title></head><body>{content}</body></html>
    }
}

#[page("/whole")]
async fn whole() -> impl Page {
    html!(<!DOCTYPE html><html lang="en"><head><title>t</title></head><body><p>p</p></body></html>)
        .freeze()
}

#[page("/kept/whole")]
async fn kept_whole() -> impl Page {
    tree!(<!DOCTYPE html><html lang="en"><head><title>t</title></head><body><p>p</p></body></html>)
}

#[page("/drawn")]
async fn drawn() -> impl Page {
    let drawing = tree!(<svg viewBox="0 0 1 1"><path d="M0 0" /></svg><p title="\t">"a\0b"<br></p>);
    html!(<section>{drawing}</section>)
}

fn menu(name: &str) -> Tree {
    tree!(<nav><a href="/" class="home">Home</a> <b>{name}</b></nav>)
}

static FROZEN: LazyLock<Frozen> = LazyLock::new(|| html!(<h1>Frozen</h1> {menu("<")}).freeze());

static LONG: LazyLock<Frozen> = LazyLock::new(|| html!({ numbered(1_000_000) }).freeze());

#[page("/kept")]
async fn kept(menu: State<Tree>) -> impl Page {
    Tree::clone(&menu)
}

#[page("/changed/{name}")]
async fn changed(name: Path<Text>, menu: State<Tree>) -> Result<impl Page, Error> {
    let mut menu = Tree::clone(&menu);
    menu.replace("b", tree!(<i>{name}</i>))?;
    Ok(html!(<main>{menu}</main>))
}

#[page("/frozen")]
async fn frozen() -> impl Page {
    FROZEN.clone()
}

#[page("/frozen/worker")]
fn frozen_worker() -> Box<dyn Page> {
    Box::new(FROZEN.clone())
}

#[page("/frozen/long")]
async fn frozen_long() -> impl Page {
    LONG.clone()
}

#[page("/frozen/lost")]
async fn frozen_lost() -> impl Respond {
    FROZEN.clone().with_status(Status::NOT_FOUND).with_header("X-Why", "lost")
}

/// A list with an invalid child, which the compiler cannot detect.
#[page("/misplaced")]
async fn misplaced() -> impl Page {
    let mut list = tree!(<ul><li>one</li></ul>);
    let added = list.change("ul", |list| {
        list.push(Element::new("p")?);
        Ok(())
    });
    added.map(|_| html!(<main>{list}</main>)).expect("a name of HTML")
}

const LINE_OF_MISPLACED: u32 = line!() - 6;

#[page("/around")]
async fn around() -> impl Page {
    html!(<main>{&*FROZEN}</main>)
}

const WRITTEN: &str =
    "<h1>Frozen</h1> <nav><a href=\"/\" class=\"home\">Home</a> <b>&lt;</b></nav>";

#[test]
fn stores_tree_and_changes_its_clone() {
    on_each_of(PROGRAM, &KINDS, |peer| {
        let kept = "<nav><a href=\"/\" class=\"home\">Home</a> <b>state</b></nav>";
        assert_eq!(peer.get("/kept").text(), kept);
        let changed = kept.replace("<b>state</b>", "<i>&lt;x</i>");
        assert_eq!(peer.get("/changed/%3Cx").text(), format!("<main>{changed}</main>"));
        assert_eq!(peer.get("/kept").text(), kept);
    });
}

#[test]
fn frozen_page_has_a_tag_and_is_revalidated() {
    on_each_of(PROGRAM, &KINDS, |peer| {
        for path in ["/frozen", "/frozen/worker"] {
            let reply = peer.get(path);
            assert_eq!((reply.status(), reply.text()), (200, WRITTEN));
            assert_eq!(reply.header("Content-Type"), Some("text/html; charset=utf-8"));
            let tag = reply.header("ETag").expect("a tag").to_owned();
            assert!(!tag.starts_with("W/"));
            peer.send(format!(
                "GET {path} HTTP/1.1\r\nHost: a\r\nIf-None-Match: \"x\", {tag}\r\n\r\n"
            ));
            let reply = peer.reply();
            assert_eq!((reply.status(), reply.header("ETag")), (304, Some(&*tag)));
            assert_eq!(reply.header("Content-Length"), None);
            peer.send(format!("GET {path} HTTP/1.1\r\nHost: a\r\nIf-None-Match: \"x\"\r\n\r\n"));
            assert_eq!(peer.reply().text(), WRITTEN);
            peer.send(format!("GET {path} HTTP/1.1\r\nHost: a\r\nIf-Match: \"x\"\r\n\r\n"));
            assert_eq!(peer.reply().status(), 412);
            peer.send(format!("HEAD {path} HTTP/1.1\r\nHost: a\r\n\r\n"));
            let reply = peer.reply_to_head();
            assert_eq!(reply.header("Content-Length"), Some(&*WRITTEN.len().to_string()));
        }
        assert_eq!(peer.get("/around").text(), format!("<main>{WRITTEN}</main>"));
    });
}

#[test]
fn reports_invalid_tree_once_with_location_in_development() {
    let told = |workers: &str| {
        let test = PROGRAM;
        let program = Program::start(&mut program(test, &["--workers", workers]));
        for _ in 0..3 {
            let reply = program.connect().get("/misplaced");
            assert_eq!(reply.text(), "<main><ul><li>one</li><p></p></ul></main>");
        }
        program.stop().errors
    };
    let place = format!("{}:{LINE_OF_MISPLACED}: `<p>` is not allowed in `<ul>`", file!());
    assert_eq!(told("7").matches(&place).count(), 1);
    assert_eq!(told("6").matches("may not stand").count(), 0);
}

#[test]
fn sends_frozen_page_with_other_status_each_time() {
    on_each_of(PROGRAM, &KINDS, |peer| {
        peer.send("GET /frozen/lost HTTP/1.1\r\nHost: a\r\nIf-None-Match: *\r\n\r\n");
        let reply = peer.reply();
        assert_eq!((reply.status(), reply.text()), (404, WRITTEN));
        assert_eq!(reply.header("X-Why"), Some("lost"));
    });
}

#[test]
fn sends_long_frozen_page_with_its_length() {
    on_each_of(PROGRAM, &KINDS, |peer| {
        let reply = peer.get("/frozen/long");
        assert_eq!(reply.header("Content-Length"), Some("1000000"));
        assert!(reply.text() == numbered(1_000_000));
        peer.send("HEAD /frozen/long HTTP/1.1\r\nHost: a\r\n\r\n");
        assert_eq!(peer.reply_to_head().header("Content-Length"), Some("1000000"));
        assert_eq!(peer.get("/frozen").text(), WRITTEN);
    });
}

#[test]
fn stored_and_frozen_documents_have_style_sheet_but_no_layout() {
    let test = "trees::serve_styled_tree_program";
    let program = Program::start(&mut program(test, &[]));
    let peer = &mut program.connect();
    for path in ["/whole", "/kept/whole"] {
        let reply = peer.get(path);
        let (before, behind) = reply.text().split_once("<link rel=\"stylesheet\"").expect("a link");
        assert_eq!(before, "<!DOCTYPE html><html lang=\"en\"><head><title>t</title>");
        assert!(behind.ends_with(".css\" /></head><body><p>p</p></body></html>"), "{behind}");
    }
    let tag = peer.get("/whole").header("ETag").expect("a tag").to_owned();
    peer.send(format!("GET /whole HTTP/1.1\r\nHost: a\r\nIf-None-Match: {tag}\r\n\r\n"));
    assert_eq!(peer.reply().status(), 304);
    // A part is rendered within the layout each time.
    let reply = peer.get("/frozen");
    assert!(reply.text().ends_with(&format!("<body>{WRITTEN}</body></html>")), "{}", reply.text());
    assert_eq!(reply.header("ETag"), None);
}

#[test]
fn renders_tree_as_xhtml_with_its_page() {
    let test = "trees::serve_styled_tree_program";
    let program = Program::start(&mut program(test, &[]));
    let peer = &mut program.connect();
    assert!(peer.get("/drawn").text().contains("<section><svg viewBox=\"0 0 1 1\"><path d"));
    peer.send("GET /drawn HTTP/1.1\r\nHost: a\r\nAccept: application/xhtml+xml\r\n\r\n");
    let reply = peer.reply();
    let options = ParsingOptions { allow_dtd: true, ..ParsingOptions::default() };
    let document = Document::parse_with_options(reply.text(), options).unwrap();
    let named =
        |name: &str| document.descendants().find(|node| node.tag_name().name() == name).unwrap();
    assert_eq!(named("path").tag_name().namespace(), Some("http://www.w3.org/2000/svg"));
    assert_eq!(named("p").tag_name().namespace(), Some("http://www.w3.org/1999/xhtml"));
    assert_eq!(
        (named("p").attribute("title"), named("p").text()),
        (Some("\t"), Some("a\u{fffd}b"))
    );
    // A tree may be the whole page.
    peer.send("GET /kept/whole HTTP/1.1\r\nHost: a\r\nAccept: application/xhtml+xml\r\n\r\n");
    let reply = peer.reply();
    assert_eq!(reply.header("Content-Type"), Some("application/xhtml+xml; charset=utf-8"));
    assert_eq!(reply.header("Vary"), Some("Accept"));
    assert!(reply.text().contains("<html xmlns=\"http://www.w3.org/1999/xhtml\" lang=\"en\">"));
}

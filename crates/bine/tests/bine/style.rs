//! The program's style sheet: which pages link it, and how it is served.

use std::sync::LazyLock;

use bine::{App, Exit, Frozen, Page, PageExt, Respond, html, page, tree};

use crate::app::{on_each_of, options};
use crate::harness::KINDS;

const SHEET: &str = "p { color: seagreen }";

/// The test that is the program.
const PROGRAM: &str = "style::serve_style_program";

/// The program under test. Ordinary test runs skip it.
#[test]
fn serve_style_program() -> Exit {
    let Some(options) = options() else { return Exit::success() };
    App::new()
        .style(SHEET)
        .page(piece)
        .page(bare)
        .page(document)
        .page(boxed)
        .page(grown)
        .page(frozen)
        .page(frozen_piece)
        .run_with("Usage: style", options.lines())
}

#[page("/piece")]
async fn piece() -> impl Respond {
    html!(<p>text</p>).with_title("Piece").with_meta("author", "Ada")
}

#[page("/bare")]
async fn bare() -> impl Respond {
    html!(<p>text</p>).without_layout()
}

fn whole() -> impl Page {
    html!(<!DOCTYPE html><html lang="en"><head><title>Whole</title></head><body><p>text</p></body></html>)
}

#[page("/document")]
async fn document() -> impl Page {
    whole()
}

#[page("/boxed")]
fn boxed() -> Box<dyn Page> {
    Box::new(whole())
}

#[page("/tree")]
async fn grown() -> impl Page {
    tree!(<!DOCTYPE html><html lang="en"><head><title>Whole</title></head><body><p>text</p></body></html>)
}

static FROZEN: LazyLock<Frozen> = LazyLock::new(|| whole().freeze());

#[page("/frozen")]
async fn frozen() -> impl Page {
    FROZEN.clone()
}

static PIECE: LazyLock<Frozen> = LazyLock::new(|| html!(<p>text</p>).freeze());

#[page("/frozen/piece")]
async fn frozen_piece() -> impl Page {
    PIECE.clone()
}

/// Returns the only link of a page, which must end its head.
fn link(page: &str) -> &str {
    let (_, link) = page.split_once("<link rel=\"stylesheet\" href=\"").expect(page);
    let (link, behind) = link.split_once("\" />").unwrap();
    assert!(behind.starts_with("</head>") && !behind.contains("<link"), "{page}");
    link
}

#[test]
fn pages_with_a_head_link_the_style_sheet_once() {
    on_each_of(PROGRAM, &KINDS, |peer| {
        let document = peer.get("/document").text().to_owned();
        let sheet = link(&document).to_owned();
        assert!(
            document
                .starts_with("<!DOCTYPE html><html lang=\"en\"><head><title>Whole</title><link")
        );
        for target in ["/boxed", "/tree", "/frozen"] {
            assert_eq!(peer.get(target).text(), document, "{target}");
        }
        for target in ["/piece", "/frozen/piece"] {
            let page = peer.get(target).text().to_owned();
            assert_eq!(link(&page), sheet, "{target}");
            assert!(page.ends_with("</head><body><p>text</p></body></html>"), "{page}");
        }
        let piece = peer.get("/piece").text().to_owned();
        assert!(piece.contains("<title>Piece</title><meta name=\"author\" content=\"Ada\" />"));
        assert_eq!(peer.get("/bare").text(), "<p>text</p>");
        assert_eq!(peer.get(&sheet).text(), SHEET);
    });
}

#[test]
fn style_sheet_is_cached_until_it_changes() {
    on_each_of(PROGRAM, &KINDS, |peer| {
        let sheet = link(peer.get("/document").text()).to_owned();
        let reply = peer.get(&sheet);
        assert_eq!(reply.header("Content-Type"), Some("text/css; charset=utf-8"));
        let kept = Some("public, max-age=31536000, immutable");
        assert_eq!(reply.header("Cache-Control"), kept);
        let tag = reply.header("ETag").unwrap().to_owned();
        assert_eq!(sheet, format!("/_bine/style-{}.css", tag.trim_matches('"')));
        let asked = |field: &str| format!("GET {sheet} HTTP/1.1\r\nHost: a\r\n{field}\r\n\r\n");
        for field in [tag.clone(), format!("\"other\", W/{tag}"), "*".to_owned()] {
            peer.send(asked(&format!("If-None-Match: {field}")));
            let reply = peer.reply();
            assert_eq!((reply.status(), reply.header("ETag")), (304, Some(&*tag)), "{field}");
            assert_eq!(reply.header("Cache-Control"), kept);
        }
        peer.send(asked("If-None-Match: \"other\""));
        assert_eq!(peer.reply().status(), 200);
    });
}

/// The frozen page does not depend on the style sheet, but the response does.
#[test]
fn tag_of_frozen_page_depends_on_style_sheet() {
    on_each_of(PROGRAM, &KINDS, |peer| {
        let reply = peer.get("/frozen");
        let (tag, sheet) =
            (reply.header("ETag").unwrap().to_owned(), link(reply.text()).to_owned());
        let hash = sheet.trim_start_matches("/_bine/style-").trim_end_matches(".css");
        assert_eq!(tag, format!("{}-{hash}\"", FROZEN.tag().trim_end_matches('"')));
        for (known, status) in [(tag.as_str(), 304), (FROZEN.tag(), 200)] {
            peer.send(format!("GET /frozen HTTP/1.1\r\nHost: a\r\nIf-None-Match: {known}\r\n\r\n"));
            assert_eq!(peer.reply().status(), status, "{known}");
        }
    });
}

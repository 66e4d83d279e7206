//! Negotiation between HTML and XHTML, checked with an XML parser.

use bine::prelude::*;
use roxmltree::{Document, ParsingOptions};

use crate::app::{options, program};
use crate::harness::{Peer, Program, Reply};

const XHTML: &str = "application/xhtml+xml; charset=utf-8";
const HTML: &str = "text/html; charset=utf-8";

/// The program under test. Ordinary test runs skip it.
#[test]
fn serve_xhtml_program() -> Exit {
    let Some(options) = options() else { return Exit::success() };
    App::new()
        .development(false)
        .layout(layout)
        .page(said)
        .page(late)
        .page(long)
        .page(alone)
        .page(fragment)
        .page(headless)
        .run_with("Usage: xhtml", options.lines())
}

fn layout(content: PageContent<'_>) -> impl Page {
    html! {
        <!DOCTYPE html>
        <html lang="en">
            <head><title>{content.title()}</title><meta charset="utf-8"></head>
            <body><main>{content}</main><script>"if (1 < 2 && 3 > 2) { document.title += '!'; }"</script></body>
        </html>
    }
}

#[page("/said")]
async fn said(what: Query<Text>) -> impl Respond {
    html!(<p title={what} hidden "@click"="go">{what}<br>"& so on"</p>).with_title("Said")
}

#[page("/late")]
async fn late() -> impl Page {
    bine::blocking(|| ()).await;
    html!(<p>late</p>)
}

#[page("/long")]
async fn long() -> impl Page {
    html!({for number in 0..50_000 { <p>{number}"\0"</p> }})
}

#[page("/alone")]
async fn alone() -> impl Respond {
    html!(<!DOCTYPE html><html lang="en"><head><title>Alone</title></head><body></body></html>)
        .without_layout()
}

#[page("/fragment")]
async fn fragment() -> impl Respond {
    html!(<p>a<br>b</p>).without_layout()
}

/// A complete page in HTML, but not a document in XML.
#[page("/headless")]
async fn headless() -> impl Page {
    html!(<title>Headless</title><p>a</p>)
}

fn serve() -> Program {
    Program::start(&mut program("xhtml::serve_xhtml_program", &[]))
}

fn ask(peer: &mut Peer, target: &str, accept: &str) -> Reply {
    peer.send(format!("GET {target} HTTP/1.1\r\nHost: a\r\nAccept: {accept}\r\n\r\n"));
    peer.reply()
}

/// Parses the page as XML or panics with the parser's error.
fn parsed(reply: &Reply) -> Document<'_> {
    let options = ParsingOptions { allow_dtd: true, ..ParsingOptions::default() };
    let document = Document::parse_with_options(reply.text(), options);
    document.unwrap_or_else(|error| panic!("{error}: {}", reply.text()))
}

#[test]
fn serves_same_page_as_xml_to_clients_that_prefer_xhtml() {
    let program = serve();
    let mut peer = program.connect();
    let target = "/said?what=%3Cb%3E%0D%0A%00%01%26%22%09%EF%BF%BF";
    let said = ask(&mut peer, target, "application/xhtml+xml, text/html;q=0.9");
    assert_eq!((said.header("Content-Type"), said.header("Vary")), (Some(XHTML), Some("Accept")));
    let document = parsed(&said);
    let root = document.root_element();
    assert!(root.has_tag_name(("http://www.w3.org/1999/xhtml", "html")), "{}", said.text());
    assert_eq!(root.attribute("lang"), Some("en"));
    let find = |name| document.descendants().find(|node| node.has_tag_name(name)).unwrap();
    // Characters that XML cannot represent are replaced; all others are kept.
    let what = "<b>\r\n\u{fffd}\u{fffd}&\"\t\u{fffd}";
    assert_eq!(find("p").attribute("title"), Some(what));
    assert_eq!(find("p").text(), Some(what));
    assert_eq!(find("p").attributes().len(), 2);
    assert_eq!(find("title").text(), Some("Said"));
    let script = "if (1 < 2 && 3 > 2) { document.title += '!'; }";
    assert_eq!(find("script").text(), Some(script));

    let html = ask(&mut peer, target, "text/html,application/xhtml+xml;q=0.9,*/*;q=0.8");
    assert_eq!((html.header("Content-Type"), html.header("Vary")), (Some(HTML), Some("Accept")));
    assert!(html.text().starts_with("<!DOCTYPE html><html lang=\"en\"><head>"), "{}", html.text());
    assert!(html.text().contains(script), "{}", html.text());
    assert!(html.text().contains(" @click=\"go\""), "{}", html.text());
}

#[test]
fn serves_html_to_other_clients() {
    let program = serve();
    let mut peer = program.connect();
    assert_eq!(peer.get("/alone").header("Content-Type"), Some(HTML));
    for accept in ["*/*", "text/html", "application/xhtml+xml, text/html", "image/png"] {
        let reply = ask(&mut peer, "/alone", accept);
        assert_eq!(reply.header("Content-Type"), Some(HTML), "{accept}");
        assert_eq!(reply.header("Vary"), Some("Accept"));
    }
}

#[test]
fn serves_only_complete_documents_as_xhtml() {
    let program = serve();
    let mut peer = program.connect();
    let fragment = ask(&mut peer, "/fragment", "application/xhtml+xml");
    assert_eq!((fragment.header("Content-Type"), fragment.header("Vary")), (Some(HTML), None));
    assert_eq!(fragment.text(), "<p>a<br />b</p>");
    let headless = ask(&mut peer, "/headless", "application/xhtml+xml");
    assert_eq!((headless.header("Content-Type"), headless.header("Vary")), (Some(HTML), None));
    assert_eq!(headless.text(), "<title>Headless</title><p>a</p>");
    let alone = ask(&mut peer, "/alone", "application/xhtml+xml");
    assert_eq!(alone.header("Content-Type"), Some(XHTML));
    parsed(&alone);
}

#[test]
fn serves_late_long_and_error_pages_as_xhtml() {
    let program = serve();
    let mut peer = program.connect();
    let late = ask(&mut peer, "/late", "application/xhtml+xml");
    assert_eq!(late.header("Content-Type"), Some(XHTML));
    parsed(&late);
    let long = ask(&mut peer, "/long", "application/xhtml+xml");
    assert_eq!(long.header("Transfer-Encoding"), Some("chunked"));
    let numbers: Vec<_> = parsed(&long)
        .descendants()
        .filter(|node| node.has_tag_name("p"))
        .map(|node| node.text().unwrap().to_owned())
        .collect();
    assert_eq!(numbers, (0..50_000).map(|number| format!("{number}\u{fffd}")).collect::<Vec<_>>());
    let missing = ask(&mut peer, "/missing", "application/xhtml+xml");
    assert_eq!((missing.status(), missing.header("Content-Type")), (404, Some(XHTML)));
    parsed(&missing);
}

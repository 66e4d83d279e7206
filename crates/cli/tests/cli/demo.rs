//! Tests of the demo that `bine` serves without a command.

use crate::{nodes, start};

#[test]
fn serves_demo_page_and_its_links() {
    let program = start(&[]);
    let mut peer = program.connect();
    let home = peer.get("/");
    assert_eq!(home.header("Content-Type"), Some("text/html; charset=utf-8"));
    let home = home.text().to_owned();
    assert!(home.starts_with("<!DOCTYPE html><html lang=\"en\"><head>"), "{home}");
    assert!(home.contains("<h1>Bine is running</h1>"), "{home}");
    assert!(home.contains("#[page(&quot;/hello&quot;)]"), "the example is shown: {home}");
    assert!(home.ends_with("</body></html>"), "{home}");
    for link in home.split("href=\"").chain(home.split("src=\"")).skip(1) {
        let target = link.split('"').next().unwrap();
        if target.starts_with('/') {
            assert_eq!(peer.get(target).status(), 200, "{target}");
        }
    }
}

/// Compares all pages that are reachable by links; forms are not submitted.
#[test]
fn serves_same_nodes_as_html_and_xml() {
    let program = start(&[]);
    let mut peer = program.connect();
    let mut pages = vec!["/".to_owned()];
    let mut place = 0;
    while let Some(target) = pages.get(place).cloned() {
        place += 1;
        let mut ask = |accept: &str| {
            peer.send(format!("GET {target} HTTP/1.1\r\nHost: a\r\nAccept: {accept}\r\n\r\n"));
            peer.reply()
        };
        let xml = ask("application/xhtml+xml");
        assert_eq!(
            xml.header("Content-Type"),
            Some("application/xhtml+xml; charset=utf-8"),
            "{target}"
        );
        let html = ask("text/html");
        let (as_xml, as_html) = (nodes::of_xml(xml.text()), nodes::of_html(html.text()));
        let difference = as_xml.iter().zip(&as_html).find(|(xml, html)| xml != html);
        assert_eq!((difference, as_xml.len()), (None, as_html.len()), "{target}");
        for link in as_xml.iter().filter_map(|node| node.strip_prefix("@href=")) {
            let link = link.split('#').next().unwrap_or_default().to_owned();
            // Files have an extension.
            if link.starts_with('/') && !link.contains('.') && !pages.contains(&link) {
                pages.push(link);
            }
        }
    }
    assert!(pages.iter().any(|page| page == "/guide/markup"), "{pages:?}");
}

#[test]
fn greets_visitors_by_name() {
    let program = start(&[]);
    let mut peer = program.connect();
    for (target, heading) in [
        ("/hello?name=TLUG", "<h1>Hello TLUG</h1>"),
        ("/hello?name=%3Cb%3E", "<h1>Hello &lt;b&gt;</h1>"),
        ("/hello", "<h1>Hello, whoever you are</h1>"),
        ("/hello?name=", "<h1>Hello, whoever you are</h1>"),
    ] {
        let reply = peer.get(target);
        assert!(reply.text().contains(heading), "{target}: {}", reply.text());
    }
}

#[test]
fn serves_files_of_demo() {
    let program = start(&[]);
    let mut peer = program.connect();
    for (target, media_type, content) in [
        ("/hop.svg", "image/svg+xml", include_str!("../../demo/hop.svg")),
        ("/robots.txt", "text/plain; charset=utf-8", "User-agent: *\nDisallow:\n"),
    ] {
        let reply = peer.get(target);
        assert_eq!((reply.status(), reply.header("Content-Type")), (200, Some(media_type)));
        assert_eq!(reply.text(), content);
    }
}

#[test]
fn serves_one_cacheable_style_sheet() {
    let program = start(&[]);
    let mut peer = program.connect();
    let home = peer.get("/").text().to_owned();
    let (_, address) = home.split_once("<link rel=\"stylesheet\" href=\"").unwrap();
    let (address, behind) = address.split_once('"').unwrap();
    assert!(behind.starts_with(" /></head>") && !behind.contains("stylesheet"), "{home}");
    let reply = peer.get(address);
    assert_eq!(reply.header("Content-Type"), Some("text/css; charset=utf-8"));
    assert_eq!(reply.header("Cache-Control"), Some("public, max-age=31536000, immutable"));
    // The demo's file precedes the styles of a single page.
    let text = reply.text();
    assert!(text.starts_with(":root{color-scheme:light dark;"), "{text}");
    let (_, own) = text.rsplit_once("}.facts_").unwrap();
    let (name, rules) = own.split_once('{').unwrap();
    assert!(rules.starts_with("display:grid;"), "{rules}");
    assert!(home.contains(&format!("<dl class=\"facts_{name}\">")), "{home}");
}

#[test]
fn echoes_body_and_explains_how_to_send_one() {
    let program = start(&[]);
    let mut peer = program.connect();
    peer.send("POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 8\r\n\r\n<p>a\nb\x00c");
    let reply = peer.reply();
    assert_eq!(reply.header("Content-Type"), Some("text/plain; charset=utf-8"));
    assert_eq!((reply.status(), reply.text()), (200, "<p>a\nb\x00c"));
    let reply = peer.get("/echo");
    assert_eq!(reply.status(), 200);
    assert!(reply.text().starts_with("curl --data-binary "), "{}", reply.text());
}

#[test]
fn notifies_followers_of_board() {
    let program = start(&[]);
    let mut events = program.connect();
    let accept = "Accept: text/event-stream";
    events.send(format!("GET /channels?c=board HTTP/1.1\r\nHost: a\r\n{accept}\r\n\r\n"));
    events.await_text("id: ");
    let mut peer = program.connect();
    let form = "author=Ann&body=It+climbs.";
    let kind = "Content-Type: application/x-www-form-urlencoded";
    let length = form.len();
    peer.send(format!(
        "POST /board/garden HTTP/1.1\r\nHost: a\r\n{kind}\r\nContent-Length: {length}\r\n\r\n{form}"
    ));
    assert_eq!(peer.reply().status(), 303);
    events.await_text("data: Ann in garden: It climbs.\n\n");
    // Only the program publishes.
    peer.send("POST /channels HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n");
    assert_eq!(peer.reply().status(), 403);
}

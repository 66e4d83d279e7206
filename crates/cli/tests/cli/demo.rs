//! Tests of the demo that `bine` serves without a command.

use std::collections::BTreeMap;
use std::path::Path;

use crate::harness::Peer;
use crate::{nodes, start};

/// The repository in links to files that the demo does not have.
const REPOSITORY: &str = concat!(env!("CARGO_PKG_REPOSITORY"), "/blob/main/");

/// Follows every link from the front page on: each target answers, each fragment is an id of its
/// page, and each file that the repository is said to have exists.
#[test]
fn links_only_to_what_exists() {
    let program = start(&[]);
    let mut peer = program.connect();
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    // Each target without its fragment, with the ids of its page.
    let mut ids: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let mut links = vec![("the visitor".to_owned(), "/".to_owned())];
    let mut fragments = Vec::new();
    while let Some((from, link)) = links.pop() {
        if let Some(file) = link.strip_prefix(REPOSITORY) {
            let file = file.split('#').next().unwrap_or_default();
            assert!(root.join(file).exists(), "{from} links to {link}");
            continue;
        }
        if link.contains("://") {
            continue;
        }
        let (target, fragment) = link.split_once('#').unwrap_or((&link, ""));
        let target = if target.is_empty() { from.clone() } else { target.to_owned() };
        assert!(target.starts_with('/'), "{from} links to {link}");
        if !fragment.is_empty() {
            fragments.push((from.clone(), target.clone(), fragment.to_owned()));
        }
        if ids.contains_key(&target) {
            continue;
        }
        // A file of the gallery has up to 100 MB.
        let head = peer.request("HEAD", &target, "", "");
        assert_eq!(head.status(), 200, "{from} links to {link}");
        let is_page = head.header("Content-Type") == Some("text/html; charset=utf-8");
        let page = if is_page { nodes::of_html(peer.get(&target).text()) } else { Vec::new() };
        let of_page = page.iter().filter_map(|node| node.strip_prefix("@id="));
        ids.insert(target.clone(), of_page.map(str::to_owned).collect());
        for node in &page {
            if let Some(link) = node.strip_prefix("@href=").or(node.strip_prefix("@src=")) {
                links.push((target.clone(), link.to_owned()));
            }
        }
    }
    for (from, target, fragment) in fragments {
        assert!(ids[&target].contains(&fragment), "{from} links to {target}#{fragment}");
    }
    for (page, ids) in &ids {
        let mut unique = ids.clone();
        unique.sort();
        unique.dedup();
        assert_eq!(unique.len(), ids.len(), "{page} has an id twice: {ids:?}");
    }
    for page in ["/board/garden", "/gallery", "/source/examples/hello.rs"] {
        assert!(ids.contains_key(page), "{page}");
    }
    for entry in root.join("docs/guide").read_dir().unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        let key = name.strip_suffix(".md").unwrap();
        let page = if key == "README" { "/guide".to_owned() } else { format!("/guide/{key}") };
        assert!(ids.contains_key(&page), "{page}");
    }
}

#[test]
fn shows_one_board_in_two_frames_beside_its_source() {
    let program = start(&[]);
    let reply = program.connect().get("/");
    // The frames are of the same origin.
    assert_eq!(reply.header("X-Frame-Options"), Some("SAMEORIGIN"));
    let policy = reply.header("Content-Security-Policy").unwrap();
    assert!(policy.starts_with("default-src 'self'; "), "{policy}");
    let home = reply.text();
    assert!(home.starts_with("<!DOCTYPE html><html lang=\"en\"><head>"), "{home}");
    assert!(home.ends_with("</body></html>"), "{home}");
    assert_eq!(home.matches("<iframe src=\"/board/garden\" ").count(), 2, "{home}");
    let (_, source) = home.split_once("<code>").unwrap();
    let source = source.split_once("</code>").unwrap().0;
    assert_eq!(text_of(source), include_str!("../../src/demo/board.rs"));
}

/// Returns the text of HTML that has elements and escaped characters.
fn text_of(html: &str) -> String {
    let parts = html.split('<').map(|part| part.split_once('>').map_or(part, |(_, text)| text));
    let text: String = parts.collect();
    let text = text.replace("&lt;", "<").replace("&gt;", ">").replace("&quot;", "\"");
    text.replace("&amp;", "&")
}

#[test]
fn shows_numbers_of_this_server() {
    let program = start(&[]);
    let mut peers: Vec<Peer> = (0..3).map(|_| program.connect()).collect();
    // The server has accepted a connection when it has answered a request.
    for peer in &mut peers {
        assert_eq!(peer.get("/robots.txt").status(), 200);
    }
    let home = peers[0].get("/");
    let home = home.text();
    let shown = |label: &str| {
        let (_, rest) = home.split_once(&format!("<dt>{label}</dt><dd>")).expect(label);
        rest.split_once("</dd>").unwrap().0.to_owned()
    };
    assert_eq!(shown("Open connections"), "3");
    // The request for this page is the fourth.
    assert_eq!(shown("Requests per second"), "0.0<small>4 in all</small>");
    let memory = shown("Memory");
    let memory = memory.strip_suffix("<small>MB resident</small>").unwrap();
    assert!(memory.parse::<f64>().unwrap() > 0.5, "{memory}");
    let time = shown("Time to write the front page");
    time.strip_suffix("<small>\u{b5}s</small>").unwrap().parse::<u32>().unwrap();
}

#[test]
fn shows_commands_with_the_address_of_the_visitor() {
    let program = start(&[]);
    let mut peer = program.connect();
    let mut ask = |target: &str, host: &str| {
        peer.send(format!("GET {target} HTTP/1.1\r\nHost: {host}\r\n\r\n"));
        peer.reply().text().to_owned()
    };
    let chapter = ask("/guide/metrics", "localhost:4711");
    assert!(chapter.contains("curl --fail http://localhost:4711/"), "{chapter}");
    assert!(chapter.contains("bine serve site --listen 127.0.0.1:4711"), "{chapter}");
    assert!(!chapter.contains(":8080"), "{chapter}");
    assert!(ask("/board", "[::1]:4711").contains("http://[::1]:4711/channels?c=board"));
}

#[test]
fn searches_the_guide() {
    let program = start(&[]);
    let mut peer = program.connect();
    let page = peer.get("/guide/search?q=captures").text().to_owned();
    let (_, first) = page.split_once("<ol class=\"results\"><li><a href=\"").unwrap();
    assert!(first.starts_with("/guide/actions#captures\">"), "{first}");
    let page = peer.get("/guide/search?q=%3Cb%3E+nosuchword").text().to_owned();
    assert!(page.contains("No section has &lt;b&gt; nosuchword."), "{page}");
    assert!(page.contains("<ol class=\"results\"></ol>"), "{page}");
    // A query is cut to a hundred characters.
    let long = "e".repeat(4000);
    let page = peer.get(&format!("/guide/search?q={long}")).text().to_owned();
    assert!(!page.contains(&"e".repeat(101)) && page.contains(&"e".repeat(100)), "{page}");
    for target in ["/guide/search", "/guide/search?q=", "/guide/search?q=+"] {
        assert!(peer.get(target).text().contains("<ol class=\"results\"></ol>"), "{target}");
    }
}

/// Compares all pages that are reachable by links, and a search. Of pages with numbers of
/// the moment, it compares all but texts and one value.
#[test]
fn serves_same_nodes_as_html_and_xml() {
    let program = start(&[]);
    let mut peer = program.connect();
    let mut pages = vec!["/".to_owned(), "/guide/search?q=table".to_owned()];
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
        let (mut as_xml, mut as_html) = (nodes::of_xml(xml.text()), nodes::of_html(html.text()));
        if target == "/" || target == "/numbers" {
            for node in as_xml.iter_mut().chain(&mut as_html) {
                if node.starts_with("text ") || node.starts_with("@points=") {
                    node.truncate(5);
                }
            }
        }
        let difference = as_xml.iter().zip(&as_html).find(|(xml, html)| xml != html);
        assert_eq!((difference, as_xml.len()), (None, as_html.len()), "{target}");
        for link in as_xml.iter().filter_map(|node| node.strip_prefix("@href=")) {
            let link = link.split('#').next().unwrap_or_default().to_owned();
            // Files have an extension, and so do pages about files.
            let is_page = !link.contains('.') || link.starts_with("/source/");
            if link.starts_with('/') && is_page && !pages.contains(&link) {
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
    assert!(!behind.contains("rel=\"stylesheet\""), "{home}");
    let reply = peer.get(address);
    assert_eq!(reply.header("Content-Type"), Some("text/css; charset=utf-8"));
    assert_eq!(reply.header("Cache-Control"), Some("public, max-age=31536000, immutable"));
    // The demo's file precedes the styles of a single page.
    let text = reply.text();
    assert!(text.starts_with(":root{color-scheme:light dark;"), "{text}");
    let (_, own) = text.split_once("}.numbers_").unwrap();
    let (name, rules) = own.split_once('{').unwrap();
    assert!(rules.starts_with("display:flex;"), "{rules}");
    assert!(home.contains(&format!("<dl class=\"numbers_{name}\">")), "{home}");
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
    assert_eq!(post(&mut peer, "garden", "It+climbs."), 303);
    events.await_text(" in garden: It climbs.\n\n");
    // Only the program publishes.
    peer.send("POST /channels HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n");
    assert_eq!(peer.reply().status(), 403);
}

#[test]
fn keeps_the_newest_messages_of_a_forum() {
    let program = start(&[]);
    let mut peer = program.connect();
    for number in 0..=100 {
        assert_eq!(post(&mut peer, "garden", &format!("No.{number}.")), 303);
    }
    assert_eq!(post(&mut peer, "kitchen", "Elsewhere."), 303);
    let page = peer.get("/board/garden").text().to_owned();
    assert_eq!(page.matches("<li id=").count(), 100, "{page}");
    assert!(page.contains("<p>No.100.</p>") && page.contains("<p>No.1.</p>"), "{page}");
    assert!(!page.contains("<p>No.0.</p>") && !page.contains("Elsewhere"), "{page}");
}

#[test]
fn rejects_messages_that_no_forum_takes() {
    let program = start(&[]);
    let mut peer = program.connect();
    assert_eq!(post(&mut peer, "attic", "a"), 404);
    assert_eq!(post(&mut peer, "garden", ""), 422);
    assert_eq!(post(&mut peer, "garden", &"a".repeat(501)), 422);
    assert_eq!(peer.get("/board/attic").status(), 404);
}

/// Posts a message as a browser without script does, and returns the status.
fn post(peer: &mut Peer, forum: &str, body: &str) -> u16 {
    let kind = "Content-Type: application/x-www-form-urlencoded\r\nAccept: text/html\r\n";
    let from = "Referer: http://a/board/garden\r\n";
    let form = format!("forum={forum}&body={body}");
    peer.request("POST", "/board/post", &format!("{kind}{from}"), &form).status()
}

//! The security headers of proxied responses, with a switch for each rule and origin.

use crate::harness::{Folder, Program};
use crate::proxy::{ScriptedOrigin, start};

/// An origin that sends its name as content, and headers of its own.
fn origin(name: &'static str) -> ScriptedOrigin {
    ScriptedOrigin::new(move |received| {
        received.send(format!(
            "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nX-Frame-Options: ALLOW-{name}\r\nStrict-Transport-Security: max-age=7\r\n\r\n{name}"
        ));
        true
    })
}

/// The security headers of as many responses as there are origins, sorted by the names of the origins.
fn headers(program: &Program) -> Vec<String> {
    let mut peer = program.connect();
    let mut seen: Vec<_> = (0..2)
        .map(|_| {
            let reply = peer.get("/");
            let field = |name| reply.header(name).unwrap_or("-").to_owned();
            let [nosniff, frames] = ["X-Content-Type-Options", "X-Frame-Options"].map(field);
            format!("{} {nosniff} {frames}", reply.text())
        })
        .collect();
    seen.sort_unstable();
    seen
}

#[test]
fn switches_security_headers_for_each_origin() {
    let (a, b) = (origin("a"), origin("b"));
    let (own_a, own_b) = ("a - ALLOW-a", "b - ALLOW-b");
    let (ours_a, ours_b) = ("a nosniff SAMEORIGIN", "b nosniff SAMEORIGIN");
    let folder = Folder::new();
    for (rule, first, second, expected) in [
        ("", "", "", [ours_a, ours_b]),
        ("", "", ", security = false", [ours_a, own_b]),
        ("security = false", "", ", security = true", [own_a, ours_b]),
        ("security = false", ", weight = 1", "", [own_a, own_b]),
    ] {
        let text = format!(
            "[[proxy]]\nto = [{{ url = \"http://{}\"{first} }}, {{ url = \"http://{}\"{second} }}]\n{rule}\n",
            a.address, b.address
        );
        let file = folder.write("bine.toml", text.as_bytes());
        let program = start(&["--config", file.to_str().unwrap()]);
        assert_eq!(headers(&program), expected, "{text}");
    }
    let rule = format!("to=http://{},http://{};security=off", a.address, b.address);
    assert_eq!(headers(&start(&["--proxy", &rule])), [ours_a, own_b]);
}

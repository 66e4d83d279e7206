//! Tests of the fields of trusted proxies.

use bine_http::{Event, Limits, RequestParser};

use super::*;

fn trusting(proxies: &[&str], fields: ProxyFields) -> TrustedProxies {
    let mut trusted = TrustedProxies { fields, ..TrustedProxies::default() };
    for proxy in proxies {
        trusted.add(proxy).unwrap();
    }
    trusted
}

/// Returns the client, its scheme and the host of a request from `peer` with these fields.
fn resolved(trusted: &TrustedProxies, peer: &str, fields: &str) -> String {
    let peer = match peer {
        "unix" => ClientAddress::UNIX,
        ip => ClientAddress::tcp(SocketAddr::new(ip.parse().unwrap(), 9)),
    };
    let peer = peer.with_trust(trusted.contain(peer));
    let request = format!("GET / HTTP/1.1\r\nHost: inner\r\n{fields}\r\n");
    let mut parser = RequestParser::new();
    let Event::Head(head) = parser.receive(request.as_bytes(), &Limits::default()).event else {
        panic!("{request}")
    };
    let (head, client) = trusted.resolve(head, peer);
    // The quotas of a request are those of the address that it shows.
    assert_eq!(client.block(), client.with_trust(false).block(), "{request}");
    let scheme = if client.is_secure() { "https" } else { "http" };
    format!("{client} {} {scheme}://{}", client.port(), head.authority().unwrap())
}

#[test]
fn believes_the_fields_of_proxies_only() {
    let trusted = trusting(&["10.0.0.0/8", "unix"], ProxyFields::XForwarded);
    let fields = "X-Forwarded-For: 192.0.2.7\r\nX-Forwarded-Proto: https\r\n\
                  X-Forwarded-Host: example.org\r\nForwarded: for=192.0.2.8\r\n";
    for proxy in ["10.1.2.3", "::ffff:10.1.2.3", "unix"] {
        assert_eq!(resolved(&trusted, proxy, fields), "192.0.2.7 0 https://example.org");
    }
    for client in ["11.1.2.3", "127.0.0.1"] {
        assert_eq!(resolved(&trusted, client, fields), format!("{client} 9 http://inner"));
    }
}

/// The connection belongs to one client, who may have sent the fields of its requests.
#[test]
fn names_the_client_of_a_connection_by_its_header() {
    let trusted = trusting(&["10.0.0.0/8", "unix"], ProxyFields::XForwarded);
    let sender = ClientAddress::tcp("10.0.0.1:9".parse().unwrap()).with_trust(true);
    let sender = sender.with_preface(true);
    let named = |sender: ClientAddress, client: Option<&str>, is_secure: Option<bool>| {
        let client = client.map(|client| client.parse().unwrap());
        let client = trusted.client_of(sender, &ProxyHeader { client, is_secure });
        assert!(!client.awaits_preface());
        let reported = if client.is_reported_plain() { ", reported" } else { "" };
        let kind = if client.is_proxy() { ", a proxy" } else { "" };
        let scheme = if client.is_secure() { "https" } else { "http" };
        format!("{scheme} {client} {}{reported}{kind}", client.port())
    };
    assert_eq!(named(sender, Some("192.0.2.7:50"), None), "http 192.0.2.7 50");
    assert_eq!(named(sender, Some("192.0.2.7:50"), Some(true)), "https 192.0.2.7 50");
    assert_eq!(named(sender, Some("192.0.2.7:50"), Some(false)), "http 192.0.2.7 50, reported");
    assert_eq!(named(sender, Some("10.9.9.9:50"), None), "http 10.9.9.9 50, a proxy");
    for client in [None, Some("127.0.0.1:50"), Some("[::1]:50"), Some("0.0.0.0:50")] {
        assert_eq!(named(sender, client, None), "http 10.0.0.1 9");
    }
    assert_eq!(named(ClientAddress::UNIX.with_trust(true), None, None), "http unix 0");
    // The proxy has forwarded the bytes of TLS.
    for is_secure in [None, Some(false), Some(true)] {
        let named = named(sender.secured(), Some("192.0.2.7:50"), is_secure);
        assert_eq!(named, "https 192.0.2.7 50");
    }
}

#[test]
fn takes_the_last_address_that_is_no_proxy() {
    let trusted = trusting(&["10.0.0.0/8", "2001:db8::/32"], ProxyFields::XForwarded);
    let check = |list: &str, expected: &str| {
        let client = resolved(&trusted, "10.0.0.1", &format!("X-Forwarded-For: {list}\r\n"));
        assert_eq!(client, format!("{expected} http://inner"), "{list}");
    };
    check("198.51.100.9, 192.0.2.7", "192.0.2.7 0");
    check("198.51.100.9, 192.0.2.7, 10.0.0.2,2001:db8::5", "192.0.2.7 0");
    check("192.0.2.7:4711", "192.0.2.7 4711");
    check("[2001:db9::1]:4711", "2001:db9::1 4711");
    check("[2001:db9::1]", "2001:db9::1 0");
    check("10.0.0.3, 10.0.0.2", "10.0.0.3 0");
    // An element that is no address ends the list.
    check("192.0.2.7, unknown", "10.0.0.1 9");
    check("192.0.2.7, unknown, 10.0.0.2", "10.0.0.2 0");
    check("", "10.0.0.1 9");
    check("192.0.2.7,", "10.0.0.1 9");
    // No client can pretend to be on this machine.
    check("127.0.0.1", "10.0.0.1 9");
    check("::ffff:127.0.0.1", "10.0.0.1 9");
    check("192.0.2.7, ::1, 10.0.0.2", "10.0.0.2 0");
}

#[test]
fn joins_fields_of_one_name() {
    let trusted = trusting(&["10.0.0.0/8"], ProxyFields::XForwarded);
    let fields = "X-Forwarded-For: 198.51.100.9\r\nx-forwarded-for: 192.0.2.7, 10.0.0.2\r\n";
    assert_eq!(resolved(&trusted, "10.0.0.1", fields), "192.0.2.7 0 http://inner");
    let many = "X-Forwarded-For: 10.0.0.2\r\n".repeat(MAX_HOPS);
    let fields = format!("X-Forwarded-For: 192.0.2.7\r\n{many}");
    assert_eq!(resolved(&trusted, "10.0.0.1", &fields), "10.0.0.2 0 http://inner");
}

#[test]
fn takes_scheme_and_host_of_the_proxy_that_names_the_client() {
    let trusted = trusting(&["10.0.0.0/8"], ProxyFields::XForwarded);
    let check = |fields: &str, expected: &str| {
        assert_eq!(resolved(&trusted, "10.0.0.1", fields), expected, "{fields}");
    };
    let two = "X-Forwarded-For: 198.51.100.9, 192.0.2.7, 10.0.0.2\r\n";
    check(&format!("{two}X-Forwarded-Proto: http, https, http\r\n"), "192.0.2.7 0 https://inner");
    check(&format!("{two}X-Forwarded-Proto: https\r\n"), "192.0.2.7 0 https://inner");
    let one = "X-Forwarded-For: 198.51.100.9, 192.0.2.7\r\n";
    check(&format!("{one}X-Forwarded-Proto: https, http\r\n"), "192.0.2.7 0 http://inner");
    check(
        &format!("{one}X-Forwarded-Host: evil, example.org:8443\r\n"),
        "192.0.2.7 0 http://example.org:8443",
    );
    check(&format!("{one}X-Forwarded-Host: a b\r\n"), "192.0.2.7 0 http://inner");
    check("X-Forwarded-Proto: HTTPS\r\n", "10.0.0.1 9 https://inner");
    check("X-Forwarded-Proto: gopher\r\n", "10.0.0.1 9 http://inner");
}

#[test]
fn reads_the_standard_field_instead_if_told_so() {
    let trusted = trusting(&["10.0.0.0/8"], ProxyFields::Forwarded);
    let check = |field: &str, expected: &str| {
        let fields = format!("Forwarded: {field}\r\nX-Forwarded-For: 198.51.100.9\r\n");
        assert_eq!(resolved(&trusted, "10.0.0.1", &fields), expected, "{field}");
    };
    check("for=192.0.2.7;proto=https;host=example.org", "192.0.2.7 0 https://example.org");
    check("For=\"[2001:db8::1]:80\" ; by=10.0.0.9", "2001:db8::1 80 http://inner");
    check(
        "for=198.51.100.9, for=192.0.2.7;proto=https, for=10.0.0.2;proto=http",
        "192.0.2.7 0 https://inner",
    );
    check("for=192.0.2.7, for=_hidden;proto=https", "10.0.0.1 9 https://inner");
    check("for=192.0.2.7, for=unknown", "10.0.0.1 9 http://inner");
    check("for=\"192.0.2.7, for=192.0.2.8", "10.0.0.1 9 http://inner");
    check("for=192.0.2.8;x=\"a,b;c\"", "192.0.2.8 0 http://inner");
    check("for=127.0.0.1", "10.0.0.1 9 http://inner");
    check("192.0.2.7", "10.0.0.1 9 http://inner");
}

#[test]
fn reports_what_is_no_proxy_with_the_fix() {
    let mut trusted = TrustedProxies::default();
    let mut problem =
        |text: &str| trusted.add(text).map_or_else(|bad| bad.to_string(), |()| "fine".into());
    for good in
        ["10.0.0.0/8", "192.0.2.1", "2001:db8::/32", "::1", "127.0.0.0/8", "unix", "10.0.0.1/32"]
    {
        assert_eq!(problem(good), "fine", "{good}");
    }
    assert_eq!(
        problem("nginx"),
        "`nginx` is no proxy: write an IP address, a network like 10.0.0.0/8, or unix"
    );
    assert_eq!(problem("10.1.0.0/8"), "`10.1.0.0/8` is inside a network: write `10.0.0.0/8`");
    assert_eq!(problem("10.0.0.0/33"), "`10.0.0.0/33` needs a prefix of 1 to 32 bits");
    assert_eq!(problem("10.0.0.0/"), "`10.0.0.0/` needs a prefix of 1 to 32 bits");
    assert_eq!(problem("0.0.0.0/0"), "`0.0.0.0/0` would trust every client");
    assert_eq!(problem("::/129"), "`::/129` needs a prefix of 1 to 128 bits");
    assert_eq!(
        "via".parse::<ProxyFields>().unwrap_err().to_string(),
        "`via` is unknown: write x-forwarded or forwarded"
    );
}

proptest::proptest! {
    #[test]
    fn never_takes_a_local_client_or_an_invalid_host_from_a_field(
        names in proptest::collection::vec(
            proptest::sample::select(vec![
                "X-Forwarded-For", "X-Forwarded-Proto", "X-Forwarded-Host", "Forwarded",
            ]),
            1..6,
        ),
        parts in proptest::collection::vec(
            proptest::sample::select(vec![
                "127.0.0.1", "::1", "[::ffff:127.0.0.1]:1", "10.0.0.2", "192.0.2.7", "https", ",",
                ";", "=", "\"", "\\", "for", "proto", "host", " ", "a:b", "example.org", "\u{e9}",
            ]),
            0..24,
        ),
        is_standard: bool,
    ) {
        let fields = if is_standard { ProxyFields::Forwarded } else { ProxyFields::XForwarded };
        let trusted = trusting(&["10.0.0.0/8"], fields);
        let text = parts.concat();
        let lines: Vec<_> = names.iter().map(|name| format!("{name}: {text}\r\n")).collect();
        let found = resolved(&trusted, "10.0.0.1", &lines.concat());
        proptest::prop_assert!(!found.starts_with("127.") && !found.starts_with("::1 "), "{}", found);
        let (_, host) = found.split_once("://").unwrap();
        proptest::prop_assert!(!host.is_empty() && !host.contains([' ', ',', '"']), "{}", found);
    }
}

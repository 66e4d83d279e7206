//! The line of one response in the access log.
//!
//! Each part of the format is written directly into the lines of the thread, without allocation and
//! without the formatting machinery of `write!`.

use std::io::Write as _;
use std::net::{IpAddr, SocketAddr};

use bine_http::{Head, Version};

use crate::escape::{Delimiters, Escaping, QUOTE, push_number};
use crate::format::{Directive, Format, Part};
use crate::secret_targets::{MASK, SecretTargets};
use crate::stamp::Stamp;

/// One request and its response, as a line of the access log describes them.
#[derive(Clone, Copy, Default)]
pub struct Entry<'a> {
    /// The client's address, or `None` for a client on a Unix socket.
    pub client: Option<SocketAddr>,
    /// The user's name, if the client is logged in.
    pub user: Option<&'a str>,
    /// The request's head, or `None` if the request could not be parsed or its head is no longer in
    /// memory.
    pub request: Option<&'a Head<'a>>,
    /// The status of the response.
    pub status: u16,
    /// The size of the content on the wire, in bytes.
    pub bytes: u64,
    /// The status line and the fields of the response, if the format
    /// [contains a field](Format::wants_reply_head).
    pub reply_head: &'a [u8],
    /// The time from request to response, if the format
    /// [contains a duration](Format::wants_duration).
    pub microseconds: Option<u64>,
}

impl Entry<'_> {
    /// Appends the line for a request that arrived at `stamp`.
    pub fn write(&self, lines: &mut Vec<u8>, format: &Format, stamp: &Stamp) {
        for part in &format.parts {
            match part {
                Part::Text(text) => lines.extend_from_slice(text.as_bytes()),
                Part::Value { directive, delimiters } => {
                    let (escaping, delimiters) = (format.escaping, *delimiters);
                    let mut value = ValueWriter { lines, escaping, delimiters };
                    self.write_value(directive, (stamp, &format.secrets), &mut value);
                }
            }
        }
        lines.push(b'\n');
    }

    fn write_value(
        &self,
        directive: &Directive,
        (stamp, secrets): (&Stamp, &SecretTargets),
        value: &mut ValueWriter<'_>,
    ) {
        let request = self.request;
        match directive {
            Directive::Client => value.address(self.client.map(|client| client.ip())),
            Directive::ClientPort => {
                let port = self.client.map_or(0, |client| client.port());
                value.number(Some(u64::from(port)));
            }
            Directive::Ident => value.absent(),
            Directive::User => match self.user {
                None => value.absent(),
                Some(name) => value.text(name.as_bytes()),
            },
            Directive::Time => value.raw(stamp.classic()),
            Directive::IsoTime => value.raw(stamp.iso()),
            Directive::RequestLine => match request {
                None => value.absent(),
                Some(head) => {
                    value.raw(head.method().as_str().as_bytes());
                    value.raw(b" ");
                    let target = secrets.mask(head.target());
                    let (path, query) = target.split_once('?').unzip();
                    value.text(path.unwrap_or(&target).as_bytes());
                    if let Some(query) = query {
                        value.raw(b"?");
                        value.query(query);
                    }
                    value.raw(b" ");
                    value.raw(version(head));
                }
            },
            Directive::Method => {
                value.optional(request.map(|head| head.method().as_str().as_bytes()));
            }
            Directive::Path => {
                let path = request.map(|head| secrets.mask(path(head)));
                value.optional(path.as_deref().map(str::as_bytes));
            }
            Directive::Query => {
                let Some((head, query)) = request.and_then(|head| Some((head, head.query()?)))
                else {
                    return;
                };
                value.raw(b"?");
                match secrets.mask(head.target()).split_once('?') {
                    Some((_, masked)) => value.query(masked),
                    None => value.query(query),
                }
            }
            Directive::Version => value.optional(request.map(version)),
            Directive::Host => value.optional(request.and_then(host).map(str::as_bytes)),
            Directive::Status => value.number(Some(u64::from(self.status))),
            Directive::SizeOrDash if self.bytes == 0 => value.absent(),
            Directive::SizeOrDash | Directive::Size => value.number(Some(self.bytes)),
            Directive::Duration(unit) => value.number(self.microseconds.map(|took| took / unit)),
            Directive::RequestField(name) => {
                value.optional(request.and_then(|head| head.field(name)));
            }
            Directive::ResponseField(name) => value.optional(response_field(self.reply_head, name)),
        }
    }
}

/// Writes one value at the end of `lines`.
struct ValueWriter<'a> {
    lines: &'a mut Vec<u8>,
    escaping: Escaping,
    delimiters: Delimiters,
}

impl ValueWriter<'_> {
    /// Appends text of the server, without escaping.
    fn raw(&mut self, text: &[u8]) {
        self.lines.extend_from_slice(text);
    }

    /// Appends text of the client, with escaping.
    fn text(&mut self, text: &[u8]) {
        self.escaping.push(self.lines, text, self.delimiters);
    }

    /// Appends a query with its access tokens replaced by `...`.
    ///
    /// A client that cannot send header fields puts its token into the query (RFC 6750 section
    /// 2.3). A reader of the log must not be able to use the token.
    fn query(&mut self, query: &str) {
        if !query.contains(TOKEN_PARAMETER) {
            return self.text(query.as_bytes());
        }
        for (number, pair) in query.split('&').enumerate() {
            if number > 0 {
                self.raw(b"&");
            }
            let is_secret = pair.starts_with(TOKEN_PARAMETER);
            self.text(if is_secret { TOKEN_PARAMETER } else { pair }.as_bytes());
            self.raw(if is_secret { MASK.as_bytes() } else { b"" });
        }
    }

    /// Appends text of the client, or `-` if it is absent.
    fn optional(&mut self, text: Option<&[u8]>) {
        match text {
            // A log reader that splits a line at spaces would not see an empty value.
            Some([]) | None => self.absent(),
            Some(text) => self.text(text),
        }
    }

    fn number(&mut self, number: Option<u64>) {
        match number {
            Some(number) => push_number(self.lines, number),
            None if self.escaping == Escaping::Json && self.delimiters != QUOTE => {
                self.raw(b"null");
            }
            None => self.absent(),
        }
    }

    fn absent(&mut self) {
        self.raw(b"-");
    }

    fn address(&mut self, ip: Option<IpAddr>) {
        match ip {
            None => self.raw(b"unix"),
            Some(IpAddr::V4(ip)) => {
                let [first, rest @ ..] = ip.octets();
                push_number(self.lines, u64::from(first));
                for octet in rest {
                    self.raw(b".");
                    push_number(self.lines, u64::from(octet));
                }
            }
            Some(IpAddr::V6(ip)) => {
                // Writing into a Vec cannot fail. The formatter omits zeros as RFC 5952 requires,
                // which justifies its cost.
                let _ = write!(self.lines, "{ip}");
            }
        }
    }
}

/// The query parameter that contains an access token, with its equals sign.
const TOKEN_PARAMETER: &str = "access_token=";

fn version(head: &Head<'_>) -> &'static [u8] {
    match head.version() {
        _ if head.is_http2() => b"HTTP/2.0",
        Version::Http10 => b"HTTP/1.0",
        Version::Http11 => b"HTTP/1.1",
    }
}

/// The path as the client sent it.
fn path<'h>(head: &Head<'h>) -> &'h str {
    let sent = || head.target().split('?').next().unwrap_or_default();
    head.plain_path().unwrap_or_else(sent)
}

/// The requested host without its port. An IPv6 address has no brackets, like the address of a
/// client: `[::1]:80` becomes `::1`.
fn host<'h>(head: &Head<'h>) -> Option<&'h str> {
    let authority = head.authority()?;
    if let Some((ip, _)) = authority.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        return Some(ip);
    }
    authority.split(':').next()
}

/// Returns the value of the first field called `name`.
fn response_field<'h>(head: &'h [u8], name: &str) -> Option<&'h [u8]> {
    let mut lines = head.split(|byte| *byte == b'\n').skip(1);
    lines.find_map(|line| {
        let (field, value) = line.split_at_checked(name.len())?;
        let value = value.strip_prefix(b":")?;
        field.eq_ignore_ascii_case(name.as_bytes()).then(|| value.trim_ascii())
    })
}

#[cfg(test)]
mod tests {
    use bine_http::{Event, Limits, RequestParser};
    use proptest::prelude::*;

    use super::*;

    const RESPONSE: &[u8] =
        b"HTTP/1.1 200 OK\r\nServer: bine\r\nContent-Type: text/html\r\nx-empty:\r\n\r\n";

    /// Returns the line of `request` and [`RESPONSE`] in `format`.
    #[track_caller]
    fn line(format: &str, request: &[u8], user: Option<&str>) -> String {
        line_of(&Format::parse(format).unwrap(), request, user)
    }

    #[track_caller]
    fn line_of(format: &Format, request: &[u8], user: Option<&str>) -> String {
        let event = RequestParser::new().receive(request, &Limits::default()).event;
        let Event::Head(head) = event else { panic!("no head: {event:?}") };
        let entry = Entry {
            client: "192.0.2.7:4711".parse().ok(),
            user,
            request: Some(&head),
            status: 200,
            bytes: 3,
            reply_head: RESPONSE,
            microseconds: Some(2_345_678),
        };
        let mut lines = Vec::new();
        let stamp = Stamp::at(1_795_208_400);
        entry.write(&mut lines, format, &stamp);
        String::from_utf8(lines).unwrap()
    }

    #[track_caller]
    fn check(format: &str, expected: &str) {
        let request = b"GET /a%20b?c=d HTTP/1.1\r\nHost: Example.org:8080\r\nReferer: \r\n\
            User-Agent: a \"b\"\r\n\r\n";
        assert_eq!(line(format, request, None), format!("{expected}\n"), "{format}");
    }

    #[test]
    fn redacts_access_token_in_query() {
        let request = b"GET /a?c=d&access_token=secret&access_token=&x=access_token HTTP/1.1\r\nHost: a\r\n\r\n";
        let query = line("%q", request, None);
        assert_eq!(query, "?c=d&access_token=...&access_token=...&x=access_token\n");
        for format in ["common", "combined", "json"] {
            let line = line(format, request, None);
            assert!(line.contains("?c=d&access_token=...&") && !line.contains("secret"), "{line}");
        }
    }

    #[test]
    fn masks_secret_targets_in_each_format() {
        let request =
            b"GET /reset/s3cret?key=s3cret&a=b&access_token=s3cret HTTP/1.1\r\nHost: a\r\n\r\n";
        for format in ["common", "combined", "json", "%U%q"] {
            let secrets = SecretTargets::new(["/reset/{link}", "/reset?key"]);
            let format = Format::parse(format).unwrap().with_secrets(secrets);
            let line = line_of(&format, request, None);
            assert!(line.contains("/reset/...?key=...&a=b&access_token=..."), "{line}");
            assert!(!line.contains("s3cret"), "{line}");
        }
    }

    #[test]
    fn writes_named_formats_as_log_readers_expect() {
        let common =
            r#"192.0.2.7 - - [20/Nov/2026:21:00:00 +0000] "GET /a%20b?c=d HTTP/1.1" 200 3"#;
        check("common", common);
        check("combined", &format!(r#"{common} "-" "a \"b\"""#));
        let json = concat!(
            r#"{"time":"2026-11-20T21:00:00Z","peer":"192.0.2.7","user":"-","host":"Example.org","#,
            r#""method":"GET","target":"/a%20b?c=d","version":"HTTP/1.1","status":200,"bytes":3,"#,
            r#""microseconds":2345678,"referer":"-","agent":"a \"b\""}"#
        );
        check("json", json);
    }

    #[test]
    fn writes_the_value_of_each_directive() {
        check("%h %a %{remote}p %l %u", "192.0.2.7 192.0.2.7 4711 - -");
        check("%m|%U|%q|%H|%v", "GET|/a%20b|?c=d|HTTP/1.1|Example.org");
        check("%s %>s %<s %b %B", "200 200 200 3 3");
        check("%D %{us}T %{ms}T %T %{s}T", "2345678 2345678 2345 2 2");
        check("%t %{iso}t", "[20/Nov/2026:21:00:00 +0000] 2026-11-20T21:00:00Z");
        check("%{host}i %{nothing}i", "Example.org:8080 -");
        check("%{server}o %{CONTENT-TYPE}o %{x-empty}o %{content}o", "bine text/html - -");
        check("%%%s", "%200");
    }

    /// Returns the line of a connection without a parsed request, response or time.
    fn bare_line(format: &str) -> String {
        let (client, user, request) = (None, None, None);
        let entry = Entry {
            client,
            user,
            request,
            status: 400,
            bytes: 0,
            reply_head: b"",
            microseconds: None,
        };
        let mut lines = Vec::new();
        entry.write(&mut lines, &Format::parse(format).unwrap(), &Stamp::at(0));
        String::from_utf8(lines).unwrap()
    }

    #[test]
    fn writes_absent_values() {
        assert_eq!(bare_line("%h|%{remote}p|%r|%b|%B|%D|%v|%q"), "unix|0|-|-|0|-|-|\n");
        // A JSON number that is absent is `null`, unless the format quotes it.
        let json = r#"{"a":%D,"b":"%D","c":"%U","d":%B}"#;
        assert_eq!(bare_line(json), "{\"a\":null,\"b\":\"-\",\"c\":\"-\",\"d\":0}\n");
    }

    #[test]
    fn writes_host_without_port_and_brackets() {
        for (sent, expected) in [("a:80", "a"), ("[::1]:80", "::1"), ("[::1]", "::1"), ("a", "a")] {
            let request = format!("GET / HTTP/1.1\r\nHost: {sent}\r\n\r\n");
            assert_eq!(line("%v", request.as_bytes(), None), format!("{expected}\n"));
        }
    }

    #[test]
    fn writes_absolute_target_and_ipv6_client() {
        let request = b"GET http://a/b%2e?c HTTP/1.1\r\nHost: a\r\n\r\n";
        assert_eq!(line("%v %r", request, None), "a GET http://a/b%2e?c HTTP/1.1\n");
        let mut lines = Vec::new();
        let escaping = Escaping::Classic;
        let mut value = ValueWriter { lines: &mut lines, escaping, delimiters: QUOTE };
        value.address("2001:db8::1".parse().ok());
        assert_eq!(lines, b"2001:db8::1");
    }

    /// Splits a line at spaces outside quotes and brackets, as log readers do, and decodes the
    /// escapes.
    fn read_classic(line: &str) -> Vec<Vec<u8>> {
        let mut fields = vec![Vec::new()];
        let mut bytes = line.bytes();
        let mut until = None;
        while let Some(byte) = bytes.next() {
            let field = fields.last_mut().unwrap();
            match (byte, until) {
                (b'\\', _) => match bytes.next().unwrap() {
                    b'x' => {
                        let mut digit = || (bytes.next().unwrap() as char).to_digit(16).unwrap();
                        field.push((digit() * 16 + digit()) as u8);
                    }
                    other => field.push(other),
                },
                (b'"', None) => until = Some(b'"'),
                (b'[', None) => until = Some(b']'),
                (b' ', None) => fields.push(Vec::new()),
                (byte, Some(end)) if byte == end => until = None,
                (byte, _) => field.push(byte),
            }
        }
        fields
    }

    /// Returns the strings and the bare words of a flat JSON object in order: names and values
    /// alternate.
    fn read_json(line: &str) -> Vec<String> {
        let mut inner = line.strip_prefix('{').unwrap().strip_suffix('}').unwrap().chars();
        let mut words = Vec::new();
        while let Some(letter) = inner.next() {
            let mut units = Vec::new();
            if letter == '"' {
                loop {
                    match inner.next().unwrap() {
                        '"' => break,
                        '\\' => match inner.next().unwrap() {
                            'u' => {
                                let digits: String = inner.by_ref().take(4).collect();
                                units.push(u16::from_str_radix(&digits, 16).unwrap());
                            }
                            other => units.push(other as u16),
                        },
                        other => {
                            assert!((' '..='~').contains(&other));
                            units.push(other as u16);
                        }
                    }
                }
            } else {
                let rest = inner.as_str();
                let end = rest.find([',', ':']).unwrap_or(rest.len());
                units.push(letter as u16);
                units.extend(rest[..end].encode_utf16());
                inner = rest[end..].chars();
            }
            words.push(String::from_utf16(&units).unwrap());
            assert!(matches!(inner.next(), Some(',' | ':') | None));
        }
        words
    }

    /// Any value that a field of a request can have (RFC 9110 section 5.5), except the empty one.
    fn field() -> impl Strategy<Value = Vec<u8>> {
        let byte = prop_oneof![
            Just(b'"'),
            Just(b'\\'),
            Just(b' '),
            Just(b']'),
            Just(b'|'),
            b' '..=b'~',
            0x80_u8..
        ];
        prop::collection::vec(byte, 1..60).prop_filter("the parser trims white space", |value| {
            value.trim_ascii().len() == value.len() && value != b"-"
        })
    }

    proptest! {
        #[test]
        fn round_trips_any_bytes_through_one_line(
            referer in field(),
            agent in field(),
            query in "[!-~&&[^#\"<>\\\\^`{|}%]]{0,40}",
            name in "\\PC{1,20}|[\u{0}-\u{20}\u{7f}-\u{9f}\u{2028}\"\\\\]{1,20}",
        ) {
            let mut request = format!("GET /?{query} HTTP/1.1\r\nHost: a\r\nReferer: ").into_bytes();
            request.extend_from_slice(&referer);
            request.extend_from_slice(b"\r\nUser-Agent: ");
            request.extend_from_slice(&agent);
            request.extend_from_slice(b"\r\n\r\n");
            let user = Some(name.as_str());

            let text = line("combined", &request, user);
            let text = text.strip_suffix('\n').unwrap();
            prop_assert!(text.bytes().all(|byte| (b' '..=b'~').contains(&byte)));
            let read = read_classic(text);
            let request_line = format!("GET /?{query} HTTP/1.1");
            let expected: [&[u8]; 9] = [
                b"192.0.2.7", b"-", name.as_bytes(), b"20/Nov/2026:21:00:00 +0000",
                request_line.as_bytes(), b"200", b"3", &referer, &agent,
            ];
            prop_assert_eq!(read, expected);

            let text = line("json", &request, user);
            let read = read_json(text.strip_suffix('\n').unwrap());
            let values: Vec<&str> = read.iter().skip(1).step_by(2).map(String::as_str).collect();
            let (referer, agent) = (String::from_utf8_lossy(&referer), String::from_utf8_lossy(&agent));
            let target = format!("/?{query}");
            let expected = [
                "2026-11-20T21:00:00Z", "192.0.2.7", &name, "a", "GET", &target, "HTTP/1.1",
                "200", "3", "2345678", &referer, &agent,
            ];
            prop_assert_eq!(values, expected);

            // A custom format without quotes, with `|` as the separator.
            let text = line("%u|%{Referer}i|%{User-Agent}i", &request, user);
            let text = text.strip_suffix('\n').unwrap();
            prop_assert_eq!(text.split('|').count(), 3);
            let mut fields = text.split('|').map(|field| read_classic(field).concat());
            prop_assert_eq!(fields.next_back().unwrap(), line_agent(&request));
        }
    }

    fn line_agent(request: &[u8]) -> &[u8] {
        let name = b"User-Agent: ";
        let at = request.windows(name.len()).rposition(|window| window == name).unwrap();
        request[at + name.len()..].trim_ascii_end()
    }
}

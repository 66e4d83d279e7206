//! Encodes message bodies in each view. Response heads are written elsewhere.

use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;

use crate::cursor::Cursor;
use crate::json::put_string;
use crate::message::{BodyFormat, Message};

/// The boundary between the parts of [`View::Multipart`]. The code that ends the response writes
/// the closing `--bine-part--`.
pub const BOUNDARY: &str = "bine-part";

/// A format in which a client receives messages. Every view has the same order, and either includes
/// each message's cursor or leaves it to the response head.
///
/// A body appears unchanged where the format can carry bytes; otherwise as its text or JSON value;
/// otherwise in base64, with a mark that no text can imitate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum View {
    /// A JSON array of objects with all fields, for the response to a poll or for one WebSocket
    /// frame. `data` holds a JSON value or a text, `base64` any other body.
    Json,
    /// A JSON array of the bodies: a Durable Streams resource of JSON.
    Values,
    /// The concatenated bodies.
    Raw,
    /// Server-sent events with `id`. The event name of a binary body is `<event>;base64`, which no
    /// published event name can equal.
    Sse,
    /// One server-sent event `data` with the bodies: a Durable Streams resource of text or JSON.
    /// Invalid UTF-8 is replaced, since the format cannot carry it.
    SseData,
    /// One server-sent event `data` with the bodies in base64: a Durable Streams resource of any
    /// other type.
    SseBase64,
    /// The objects of [`View::Json`], one per line.
    Ndjson,
    /// Parts of `multipart/mixed`, separated by [`BOUNDARY`], each with `Cursor` and the message's
    /// headers.
    Multipart,
}

impl View {
    /// The number of views.
    pub(crate) const COUNT: usize = 8;

    /// Appends messages in this view.
    pub fn encode(self, epoch: u32, messages: &[Arc<Message>], to: &mut Vec<u8>) {
        match self {
            Self::Json => put_array(messages, to, |message, to| put_object(epoch, message, to)),
            Self::Values => put_array(messages, to, |message, to| match text_of(message) {
                Some(body) if message.format == BodyFormat::Json => put_value(body, to),
                Some(body) => put_string(to, body),
                None => {
                    to.extend_from_slice(b"{\"base64\":\"");
                    put_base64(&message.body, to);
                    to.extend_from_slice(b"\"}");
                }
            }),
            Self::Raw => messages.iter().for_each(|message| to.extend_from_slice(&message.body)),
            Self::Sse => messages.iter().for_each(|message| put_event(epoch, message, to)),
            Self::SseData => put_data_event(messages, false, to),
            Self::SseBase64 => put_data_event(messages, true, to),
            Self::Ndjson => {
                for message in messages {
                    put_object(epoch, message, to);
                    to.push(b'\n');
                }
            }
            Self::Multipart => messages.iter().for_each(|message| put_part(epoch, message, to)),
        }
    }
}

/// Returns the body as text if its format allows.
fn text_of(message: &Message) -> Option<&str> {
    match message.format {
        BodyFormat::Binary => None,
        BodyFormat::Text | BodyFormat::Json => core::str::from_utf8(&message.body).ok(),
    }
}

fn put_array(messages: &[Arc<Message>], to: &mut Vec<u8>, put: impl Fn(&Message, &mut Vec<u8>)) {
    to.push(b'[');
    for (at, message) in messages.iter().enumerate() {
        if at > 0 {
            to.push(b',');
        }
        put(message, to);
    }
    to.push(b']');
}

fn put_object(epoch: u32, message: &Message, to: &mut Vec<u8>) {
    to.extend_from_slice(b"{\"cursor\":\"");
    to.extend_from_slice(&Cursor { epoch, sequence: message.sequence }.text());
    to.extend_from_slice(b"\",\"time\":");
    put_decimal(message.time, to);
    to.extend_from_slice(b",\"channels\":[");
    for (at, channel) in message.channels.iter().enumerate() {
        if at > 0 {
            to.push(b',');
        }
        put_string(to, channel);
    }
    to.extend_from_slice(b"],\"type\":");
    put_string(to, &message.content_type);
    for (name, word) in [(&b",\"event\":"[..], &message.event), (b",\"id\":", &message.id)] {
        if let Some(word) = word {
            to.extend_from_slice(name);
            put_string(to, word);
        }
    }
    if !message.headers.is_empty() {
        to.extend_from_slice(b",\"headers\":[");
        for (at, (name, value)) in message.headers.iter().enumerate() {
            to.extend_from_slice(if at > 0 { b",[" } else { b"[" });
            put_string(to, name);
            to.push(b',');
            put_string(to, value);
            to.push(b']');
        }
        to.push(b']');
    }
    match text_of(message) {
        Some(body) => {
            to.extend_from_slice(b",\"data\":");
            if message.format == BodyFormat::Json {
                put_value(body, to);
            } else {
                put_string(to, body);
            }
        }
        None => {
            to.extend_from_slice(b",\"base64\":\"");
            put_base64(&message.body, to);
            to.push(b'"');
        }
    }
    to.push(b'}');
}

/// Appends a JSON value on one line. Line ends inside a valid value are only whitespace.
fn put_value(value: &str, to: &mut Vec<u8>) {
    to.extend(value.bytes().map(|byte| if matches!(byte, b'\n' | b'\r') { b' ' } else { byte }));
}

fn put_event(epoch: u32, message: &Message, to: &mut Vec<u8>) {
    to.extend_from_slice(b"id: ");
    to.extend_from_slice(&Cursor { epoch, sequence: message.sequence }.text());
    to.push(b'\n');
    let text = text_of(message);
    if text.is_none() || message.event.is_some() {
        to.extend_from_slice(b"event: ");
        to.extend_from_slice(message.event.as_deref().unwrap_or("message").as_bytes());
        to.extend_from_slice(if text.is_none() { b";base64\n" } else { b"\n" });
    }
    match text {
        Some(text) => put_lines(text.as_bytes(), b"data: ", to),
        None => {
            to.extend_from_slice(b"data: ");
            put_base64(&message.body, to);
            to.push(b'\n');
        }
    }
    to.push(b'\n');
}

fn put_data_event(messages: &[Arc<Message>], is_base64: bool, to: &mut Vec<u8>) {
    if messages.is_empty() {
        return;
    }
    to.extend_from_slice(b"event: data\n");
    let mut bodies = Vec::new();
    if is_base64 {
        View::Raw.encode(0, messages, &mut bodies);
        to.extend_from_slice(b"data:");
        put_base64(&bodies, to);
        to.push(b'\n');
    } else if messages.iter().all(|message| message.format == BodyFormat::Json) {
        View::Values.encode(0, messages, &mut bodies);
        put_lines(&bodies, b"data:", to);
    } else {
        View::Raw.encode(0, messages, &mut bodies);
        put_lines(String::from_utf8_lossy(&bodies).as_bytes(), b"data:", to);
    }
    to.push(b'\n');
}

/// Appends one `data` field per line. Each of the format's three line ends (CR LF, LF, CR) would
/// end a field, so each becomes a line end of the data, which the client joins with LF. The client
/// drops one space after the colon; `field` may omit that space where the line does not begin with
/// one.
fn put_lines(mut text: &[u8], field: &[u8], to: &mut Vec<u8>) {
    loop {
        let end = text.iter().position(|byte| matches!(byte, b'\n' | b'\r'));
        to.extend_from_slice(field);
        if text.starts_with(b" ") && field.ends_with(b":") {
            to.push(b' ');
        }
        to.extend_from_slice(&text[..end.unwrap_or(text.len())]);
        to.push(b'\n');
        let Some(end) = end else { return };
        let is_pair = text[end..].starts_with(b"\r\n");
        text = &text[end + 1 + usize::from(is_pair)..];
    }
}

/// Appends one part. The part states its length, and a body that contains the boundary is sent in
/// base64, so a client that splits by either is safe.
fn put_part(epoch: u32, message: &Message, to: &mut Vec<u8>) {
    to.extend_from_slice(b"--bine-part\r\nContent-Type: ");
    to.extend_from_slice(message.content_type.as_bytes());
    to.extend_from_slice(b"\r\nCursor: ");
    to.extend_from_slice(&Cursor { epoch, sequence: message.sequence }.text());
    for (name, word) in [(&b"\r\nEvent: "[..], &message.event), (b"\r\nMessage-Id: ", &message.id)]
    {
        if let Some(word) = word {
            to.extend_from_slice(name);
            to.extend_from_slice(word.as_bytes());
        }
    }
    for (name, value) in &message.headers {
        to.extend_from_slice(b"\r\n");
        to.extend_from_slice(name.as_bytes());
        to.extend_from_slice(b": ");
        to.extend_from_slice(value.as_bytes());
    }
    let boundary = b"--bine-part";
    let has_boundary = message.body.windows(boundary.len()).any(|window| window == boundary);
    let mut encoded = Vec::new();
    if has_boundary {
        to.extend_from_slice(b"\r\nContent-Transfer-Encoding: base64");
        put_base64(&message.body, &mut encoded);
    }
    let body = if has_boundary { &encoded } else { &message.body[..] };
    to.extend_from_slice(b"\r\nContent-Length: ");
    put_decimal(body.len() as u64, to);
    to.extend_from_slice(b"\r\n\r\n");
    to.extend_from_slice(body);
    to.extend_from_slice(b"\r\n");
}

fn put_decimal(number: u64, to: &mut Vec<u8>) {
    let start = to.len();
    let mut rest = number;
    loop {
        to.push(b'0' + (rest % 10) as u8);
        rest /= 10;
        if rest == 0 {
            break;
        }
    }
    to[start..].reverse();
}

/// Appends bytes in base64, with padding (RFC 4648 section 4).
fn put_base64(bytes: &[u8], to: &mut Vec<u8>) {
    const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    for group in bytes.chunks(3) {
        let byte = |at: usize| u32::from(group.get(at).copied().unwrap_or(0));
        let bits = byte(0) << 16 | byte(1) << 8 | byte(2);
        for at in 0..4 {
            let digit = ALPHABET[(bits >> (18 - 6 * at) & 63) as usize];
            to.push(if at > group.len() { b'=' } else { digit });
        }
    }
}

#[cfg(test)]
mod tests {
    use alloc::boxed::Box;
    use alloc::vec;

    use proptest::prelude::*;

    use super::*;
    use crate::cursor::Sequence;
    use crate::json::is_value;

    fn message(content_type: &str, body: &[u8]) -> Arc<Message> {
        Arc::new(Message {
            sequence: Sequence::new(1, 0),
            time: 1_000,
            channels: Arc::from(["a".into()]),
            content_type: content_type.into(),
            event: None,
            id: None,
            headers: Box::default(),
            body: body.into(),
            format: BodyFormat::of(content_type, body),
            publisher: None,
        })
    }

    fn encoded(view: View, messages: &[Arc<Message>]) -> String {
        let mut bytes = Vec::new();
        view.encode(0xbee, messages, &mut bytes);
        String::from_utf8(bytes).unwrap()
    }

    fn check(view: View, content_type: &str, body: &[u8], expected: &str) {
        assert_eq!(encoded(view, &[message(content_type, body)]), expected, "{view:?}");
    }

    const OBJECT: &str =
        "{\"cursor\":\"00000bee_0000000000000400\",\"time\":1000,\"channels\":[\"a\"],\"type\":";

    #[test]
    fn writes_all_message_fields_in_json_object() {
        let expected = [OBJECT, "\"application/json\",\"data\":{\"b\":  1}}"].concat();
        check(View::Ndjson, "application/json", b"{\"b\":\n 1}", &[&expected, "\n"].concat());
        let expected = [OBJECT, "\"text/plain\",\"data\":\"\\\"c\\\"\\n\"}"].concat();
        check(View::Json, "text/plain", b"\"c\"\n", &["[", &expected, "]"].concat());
        let expected = [OBJECT, "\"image/png\",\"base64\":\"/w==\"}"].concat();
        check(View::Json, "image/png", b"\xff", &["[", &expected, "]"].concat());
        let mut full = Arc::unwrap_or_clone(message("text/plain", b""));
        (full.event, full.id) = (Some("e".into()), Some("i".into()));
        full.headers = Box::from([("h".into(), "v".into()), ("h".into(), "w".into())]);
        let expected = [
            OBJECT,
            "\"text/plain\",\"event\":\"e\",\"id\":\"i\",\"headers\":[[\"h\",\"v\"],[\"h\",\"w\"]],\"data\":\"\"}\n",
        ];
        assert_eq!(encoded(View::Ndjson, &[Arc::new(full)]), expected.concat());
        let mut shared = Arc::unwrap_or_clone(message("text/plain", b""));
        shared.channels = Arc::from(["a".into(), "b".into(), "c".into()]);
        let shared = encoded(View::Ndjson, &[Arc::new(shared)]);
        assert!(shared.contains(",\"channels\":[\"a\",\"b\",\"c\"],"), "{shared}");
    }

    #[test]
    fn writes_bodies_as_array_or_concatenated() {
        let both = [message("application/json", b"1"), message("application/json", b"[2]")];
        assert_eq!(encoded(View::Values, &both), "[1,[2]]");
        assert_eq!(encoded(View::Raw, &both), "1[2]");
        assert_eq!(encoded(View::Values, &[]), "[]");
        check(View::Values, "image/png", b"\xff", "[{\"base64\":\"/w==\"}]");
    }

    #[test]
    fn keeps_each_body_inside_its_sse_event() {
        let id = "id: 00000bee_0000000000000400\n";
        for (body, expected) in [
            ("", "data: \n\n"),
            ("b", "data: b\n\n"),
            (" b\n", "data:  b\ndata: \n\n"),
            ("b\r\nc\rd\n\ne", "data: b\ndata: c\ndata: d\ndata: \ndata: e\n\n"),
            ("b\n\nevent: c\ndata: d", "data: b\ndata: \ndata: event: c\ndata: data: d\n\n"),
        ] {
            check(View::Sse, "text/plain", body.as_bytes(), &[id, expected].concat());
        }
        let expected = [id, "event: message;base64\ndata: AP8B\n\n"].concat();
        check(View::Sse, "image/png", b"\x00\xff\x01", &expected);
        let mut named = Arc::unwrap_or_clone(message("text/plain", b"b"));
        named.event = Some("e".into());
        assert_eq!(encoded(View::Sse, &[Arc::new(named)]), [id, "event: e\ndata: b\n\n"].concat());
    }

    #[test]
    fn joins_durable_stream_bodies_into_one_event() {
        let json = [message("application/json", b"{\"b\":\n1}"), message("application/json", b"2")];
        assert_eq!(encoded(View::SseData, &json), "event: data\ndata:[{\"b\": 1},2]\n\n");
        let text = [message("text/plain", b"a\n"), message("text/plain", b" b")];
        assert_eq!(encoded(View::SseData, &text), "event: data\ndata:a\ndata:  b\n\n");
        let bytes = [message("image/png", b"a"), message("image/png", b"b")];
        assert_eq!(encoded(View::SseBase64, &bytes), "event: data\ndata:YWI=\n\n");
        let cut = [message("text/plain", b"\xc3"), message("text/plain", b"\xa9\xff")];
        assert_eq!(encoded(View::SseData, &cut), "event: data\ndata:\u{e9}\u{fffd}\n\n");
        assert_eq!(encoded(View::SseData, &[]), "");
    }

    #[test]
    fn encodes_body_with_boundary_as_base64() {
        let head =
            "--bine-part\r\nContent-Type: text/plain\r\nCursor: 00000bee_0000000000000400\r\n";
        let expected = [head, "Content-Length: 1\r\n\r\nb\r\n"].concat();
        check(View::Multipart, "text/plain", b"b", &expected);
        let expected = [
            head,
            "Content-Transfer-Encoding: base64\r\nContent-Length: 16\r\n\r\nLS1iaW5lLXBhcnQ=\r\n",
        ];
        check(View::Multipart, "text/plain", b"--bine-part", &expected.concat());
    }

    /// Counts the events that a client finds. It ends a line at each of the three line ends and an
    /// event at an empty line.
    fn events_in(text: &str) -> usize {
        let lines = text.replace("\r\n", "\n").replace('\r', "\n");
        lines.split('\n').filter(|line| line.is_empty()).count() - 1
    }

    proptest! {
        #[test]
        fn encodes_any_body_as_one_event_one_line_and_one_value(
            body in prop_oneof![
                "[a\r\n:\u{2028}\"{}]{0,12}".prop_map(String::into_bytes),
                prop::collection::vec(any::<u8>(), 0..12),
            ],
            index in 0_usize..3,
        ) {
            let content_type = ["text/plain", "application/json", "image/png"][index];
            let messages = vec![message(content_type, &body)];
            prop_assert_eq!(events_in(&encoded(View::Sse, &messages)), 1);
            prop_assert_eq!(events_in(&encoded(View::SseData, &messages)), 1);
            prop_assert_eq!(events_in(&encoded(View::SseBase64, &messages)), 1);
            let line = encoded(View::Ndjson, &messages);
            prop_assert_eq!(line.matches('\n').count(), 1);
            prop_assert!(is_value(line.as_bytes()));
            prop_assert!(is_value(encoded(View::Json, &messages).as_bytes()));
            prop_assert!(is_value(encoded(View::Values, &messages).as_bytes()));
        }
    }
}

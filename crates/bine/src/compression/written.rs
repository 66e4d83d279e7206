//! Responses that are complete in a buffer: takes the content out of its framing, and replaces it.

use std::borrow::Cow;

use bine_compression::{HeadChange, ReplyHead};

/// The content of a complete reply whose head is `head`, without framing. `None`: it is not complete.
pub(super) fn content_of<'b>(head: &ReplyHead<'_>, reply: &'b [u8]) -> Option<Cow<'b, [u8]>> {
    let framed = reply.get(head.length()..)?;
    if head.is_chunked() {
        return unchunked(framed).map(Cow::Owned);
    }
    match head.content_length() {
        Some(length) if length != framed.len() as u64 => None,
        // Without a length, the end of the connection ends the content.
        Some(_) | None => Some(Cow::Borrowed(framed)),
    }
}

/// Joins the chunks that the server itself has written. `None`: there is something else.
fn unchunked(mut rest: &[u8]) -> Option<Vec<u8>> {
    let mut content = Vec::with_capacity(rest.len());
    loop {
        let end = rest.iter().position(|&byte| byte == b'\r')?;
        let size = usize::from_str_radix(str::from_utf8(&rest[..end]).ok()?, 16).ok()?;
        rest = rest.get(end..)?.strip_prefix(b"\r\n")?;
        if size == 0 {
            return (rest == b"\r\n").then_some(content);
        }
        content.extend_from_slice(rest.get(..size)?);
        rest = rest.get(size..)?.strip_prefix(b"\r\n")?;
    }
}

/// Replaces the reply at `mark` by one with a changed head and this content.
pub(super) fn replace(bytes: &mut Vec<u8>, mark: usize, head: &[u8], content: &[u8]) {
    bytes.truncate(mark);
    bytes.reserve(head.len() + content.len());
    bytes.extend_from_slice(head);
    bytes.extend_from_slice(content);
}

/// Changes the head of the reply at `mark`, whose content stays.
pub(super) fn change_head(bytes: &mut Vec<u8>, mark: usize, change: HeadChange) {
    let Some(head) = bytes.get(mark..).and_then(ReplyHead::parse) else { return };
    let (length, changed) = (head.length(), head.changed(change));
    bytes.splice(mark..mark + length, changed);
}

#[cfg(test)]
mod tests {
    use bine_http::BodyFraming;
    use proptest::prelude::*;

    use super::*;

    fn content(reply: &str) -> Option<String> {
        let head = ReplyHead::parse(reply.as_bytes()).unwrap();
        content_of(&head, reply.as_bytes()).map(|bytes| String::from_utf8(bytes.to_vec()).unwrap())
    }

    #[test]
    fn takes_content_out_of_its_framing() {
        let reply = |lines: &str| format!("HTTP/1.1 200 OK\r\n{lines}");
        let whole = Some("abc".to_owned());
        assert_eq!(content(&reply("Content-Length:        3\r\n\r\nabc")), whole);
        assert_eq!(content(&reply("Connection: close\r\n\r\nabc")), whole);
        let chunked = "Transfer-Encoding: chunked\r\n\r\n00000002\r\nab\r\n1\r\nc\r\n0\r\n\r\n";
        assert_eq!(content(&reply(chunked)), whole);
        for incomplete in [
            "Content-Length: 4\r\n\r\nabc",
            "Content-Length: 2\r\n\r\nabc",
            "Transfer-Encoding: chunked\r\n\r\n2\r\nab\r\n",
            "Transfer-Encoding: chunked\r\n\r\n9\r\nab\r\n0\r\n\r\n",
            "Transfer-Encoding: chunked\r\n\r\n0\r\n\r\nHTTP",
            "Transfer-Encoding: chunked\r\n\r\nx\r\n",
        ] {
            assert_eq!(content(&reply(incomplete)), None, "{incomplete}");
        }
    }

    #[test]
    fn keeps_earlier_replies() {
        let mut bytes = b"earlier\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nabc".to_vec();
        change_head(&mut bytes, 11, HeadChange::Vary);
        let expected = "earlier\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 3\r\nVary: Accept-Encoding\r\n\r\nabc";
        assert_eq!(String::from_utf8(bytes.clone()).unwrap(), expected);
        replace(&mut bytes, 11, b"head ", b"content");
        assert_eq!(bytes, b"earlier\r\n\r\nhead content");
    }

    proptest! {
        #[test]
        fn joins_chunks(pieces in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..40), 0..6)) {
            let mut framed = Vec::new();
            for piece in &pieces {
                BodyFraming::Chunked.append(&mut framed, piece);
            }
            BodyFraming::Chunked.end(&mut framed);
            prop_assert_eq!(unchunked(&framed), Some(pieces.concat()));
        }

        #[test]
        fn accepts_any_bytes(bytes in prop::collection::vec(any::<u8>(), 0..60)) {
            if let Some(content) = unchunked(&bytes) {
                prop_assert!(content.len() < bytes.len());
            }
        }
    }
}

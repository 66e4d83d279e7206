//! Parses server-sent events (HTML 9.2.6), in whatever pieces the bytes arrive.

/// A parser of events. Append bytes with [`add`](Self::add), then call [`next`](Self::next) until
/// it returns `None`.
#[derive(Debug, Default)]
pub(super) struct EventParser {
    text: Vec<u8>,
    /// Number of parsed bytes.
    parsed_bytes: usize,
    /// Bytes before this position contain no unparsed line end. This avoids a repeated search when
    /// small pieces arrive.
    searched: usize,
    /// The type of the event that is being parsed.
    kind: String,
    data: Option<String>,
}

/// One event.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct ReceivedEvent {
    /// The event's type; `message` by default.
    pub(super) kind: String,
    pub(super) data: String,
}

impl EventParser {
    pub(super) fn add(&mut self, bytes: &[u8]) {
        self.text.drain(..self.parsed_bytes);
        self.searched -= self.parsed_bytes;
        self.parsed_bytes = 0;
        self.text.extend_from_slice(bytes);
    }

    /// Bytes that are buffered for incomplete events.
    pub(super) fn len(&self) -> usize {
        self.text.len() - self.parsed_bytes
            + self.data.as_ref().map_or(0, String::len)
            + self.kind.len()
    }

    pub(super) fn next(&mut self) -> Option<ReceivedEvent> {
        loop {
            // A lone carriage return also ends a line by the standard, but no server in use sends
            // it.
            let Some(end) = self.text[self.searched..].iter().position(|byte| *byte == b'\n')
            else {
                self.searched = self.text.len();
                return None;
            };
            let end = self.searched + end;
            let line = String::from_utf8_lossy(&self.text[self.parsed_bytes..end]).into_owned();
            (self.parsed_bytes, self.searched) = (end + 1, end + 1);
            let line = line.strip_suffix('\r').unwrap_or(&line);
            let (name, value) = line.split_once(':').unwrap_or((line, ""));
            let value = value.strip_prefix(' ').unwrap_or(value);
            match name {
                "event" => value.clone_into(&mut self.kind),
                "data" => match &mut self.data {
                    Some(data) => {
                        data.push('\n');
                        data.push_str(value);
                    }
                    None => self.data = Some(value.to_owned()),
                },
                "" if line.is_empty() => {
                    let kind = std::mem::take(&mut self.kind);
                    if let Some(data) = self.data.take() {
                        let kind = if kind.is_empty() { "message".to_owned() } else { kind };
                        return Some(ReceivedEvent { kind, data });
                    }
                }
                // A comment, an id, or an unknown field.
                _ => {}
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: &[(&str, &str)]) {
        for piece in [1, 3, 1000] {
            let (mut events, mut found) = (EventParser::default(), Vec::new());
            for piece in text.as_bytes().chunks(piece) {
                events.add(piece);
                while let Some(ReceivedEvent { kind, data }) = events.next() {
                    found.push((kind, data));
                }
            }
            let found: Vec<_> = found.iter().map(|(kind, data)| (&**kind, &**data)).collect();
            assert_eq!(found, expected, "{text:?} in pieces of {piece}");
        }
    }

    #[test]
    fn parses_events_line_by_line() {
        check("data: a\n\n", &[("message", "a")]);
        check(
            ": hello\n\nid: 7\nevent: bell\r\ndata:{\ndata\ndata:  }\r\n\r\n",
            &[("bell", "{\n\n }")],
        );
        check("event: a\n\ndata: b\n\ndata: c", &[("message", "b")]);
        check("data: \u{1f33f}\nretry: 5\n\n", &[("message", "\u{1f33f}")]);
    }
}

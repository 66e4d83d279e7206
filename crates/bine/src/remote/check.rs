//! Checks for fuzzing: properties that hold for any bytes of a remote server.

use super::answer::{Head, RemoteResponse};
use super::events::{EventParser, ReceivedEvent};

/// Asserts for any bytes of a response that they are rejected with a message, or parse to the same
/// head and body in whatever pieces they arrive.
pub fn check_answer(piece: u8, bytes: &[u8]) {
    let whole = answer_in_pieces(bytes.len(), bytes);
    assert_eq!(answer_in_pieces(piece.into(), bytes).ok(), whole.clone().ok());
    match whole {
        Ok((head, body)) => {
            assert!((200..=999).contains(&head.status), "{}", head.status);
            assert!(body.len() < bytes.len());
        }
        Err(words) => assert!(!words.is_empty()),
    }
}

/// Parses a response from these bytes, followed by the end of the connection.
fn answer_in_pieces(piece: usize, bytes: &[u8]) -> Result<(Head, Vec<u8>), &'static str> {
    let (mut answer, mut head, mut body) = (RemoteResponse::default(), None, Vec::new());
    for piece in bytes.chunks(piece.max(1)) {
        answer.incoming().extend_from_slice(piece);
        if head.is_none() {
            head = answer.head()?;
        }
        if head.is_some() && answer.body(false, &mut body)? {
            break;
        }
    }
    let head = head.ok_or("it broke off")?;
    answer.body(true, &mut body)?;
    Ok((head, body))
}

/// Asserts for any bytes of an event stream that they parse to the same events in whatever pieces
/// they arrive, with no more data than was sent.
pub fn check_events(piece: u8, bytes: &[u8]) {
    let whole = events_in_pieces(bytes.len(), bytes);
    assert_eq!(events_in_pieces(piece.into(), bytes), whole);
    // Each invalid UTF-8 byte becomes a replacement character of three bytes.
    let length: usize = whole.iter().map(|event| event.data.len()).sum();
    assert!(length <= 3 * bytes.len());
    assert!(whole.iter().all(|event| !event.kind.is_empty() && !event.kind.contains('\n')));
    let lines = bytes.split(|byte| *byte == b'\n').count();
    assert!(2 * whole.len() < lines, "an event has a line, and one behind it");
}

fn events_in_pieces(piece: usize, bytes: &[u8]) -> Vec<ReceivedEvent> {
    let (mut events, mut found) = (EventParser::default(), Vec::new());
    for piece in bytes.chunks(piece.max(1)) {
        events.add(piece);
        found.extend(std::iter::from_fn(|| events.next()));
        assert!(events.len() <= 3 * bytes.len());
    }
    found
}

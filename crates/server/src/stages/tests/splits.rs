//! Checks that the output does not depend on how the input is split or on the room for output, on
//! transports of both kinds.

use proptest::collection::vec;
use proptest::prelude::{ProptestConfig, Strategy, any, prop_assert, proptest};
use proptest::sample::select;

use super::fake::{ScriptStep, sends};
use super::play::{Placement, get, play, post};

/// A stream of pipelined requests with different kinds of answers.
pub(super) fn streams() -> impl Strategy<Value = Vec<u8>> {
    let chunked = "POST /echo/9 HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n";
    let requests = vec![
        get("/a"),
        get("/bcd"),
        get("/long/3000"),
        get("/page/2500"),
        get("/file/7000"),
        get("/work"),
        post("/echo/100", 10) + "0123456789",
        post("/a", 5) + "01234",
        post("/echo/3", 4) + "abcd",
        format!("{chunked}3\r\nabc\r\n0\r\n\r\n"),
        format!("{chunked}6\r\nabcdef\r\n6\r\nabcdef\r\n0\r\n\r\n"),
        format!("{chunked}nonsense\r\n"),
        "\r\n".to_owned() + &get("/blank"),
        get("/panic"),
        get("/close"),
        "GET /x HTTP/1.0\r\nConnection: keep-alive\r\n\r\n".to_owned(),
        "nonsense\r\n\r\n".to_owned(),
    ];
    // Requests that end a connection are rarer, or few streams would be long.
    let kept = select(requests[..10].to_vec());
    (vec(kept, 0..8), vec(select(requests), 0..3))
        .prop_map(|(first, last)| (first.concat() + &last.concat()).into_bytes())
}

/// Splits `stream` into pieces of these lengths, with room of these sizes after each.
fn script(stream: &[u8], pieces: &[usize], rooms: &[usize]) -> Vec<ScriptStep> {
    let mut rest = stream;
    let mut rooms = rooms.iter();
    let mut script = vec![ScriptStep::Room(0)];
    for length in pieces {
        let (piece, after) = rest.split_at(rest.len().min(*length));
        script.push(sends(piece));
        script.extend(rooms.next().map(|room| ScriptStep::Room(*room)));
        rest = after;
    }
    script.push(sends(rest));
    script.extend(rooms.map(|room| ScriptStep::Room(*room)));
    script.push(ScriptStep::Room(usize::MAX));
    script
}

fn sent(script: &[ScriptStep]) -> [Vec<u8>; 3] {
    [
        play::<false>(script, Placement::SameThread).transcript.bytes,
        play::<true>(script, Placement::SameThread).transcript.bytes,
        play::<false>(&[script, &vec![ScriptStep::Finish; 20]].concat(), Placement::Spawn)
            .transcript
            .bytes,
    ]
}

pub(super) fn shorten_lines(bytes: &[u8]) -> String {
    // Lines are shortened, because runs of one letter and the bytes of a file are long.
    let text = String::from_utf8_lossy(bytes).into_owned();
    text.lines().map(|line| line.chars().take(60).collect::<String>() + "\n").collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn output_does_not_depend_on_splits_of_input_or_output(
        stream in streams(),
        pieces in vec(0usize..60, 0..20),
        rooms in vec(0usize..400, 0..20),
        whole in any::<bool>(),
    ) {
        let [expected, ..] = sent(&[sends(&stream)]);
        let pieces = if whole { &[][..] } else { &pieces };
        for bytes in sent(&script(&stream, pieces, &rooms)) {
            prop_assert!(bytes == expected, "{}\ninstead of\n{}", shorten_lines(&bytes), shorten_lines(&expected));
        }
    }
}

#[test]
fn accepts_a_pipelined_stream_split_at_any_byte() {
    let stream = get("/a") + &post("/echo/9", 3) + "abc" + &get("/b") + "\r\n" + &get("/c");
    let [expected, ..] = sent(&[sends(&stream)]);
    for place in 0..=stream.len() {
        for bytes in sent(&[sends(&stream[..place]), sends(&stream[place..])]) {
            assert_eq!(bytes, expected, "cut at {place}");
        }
    }
}

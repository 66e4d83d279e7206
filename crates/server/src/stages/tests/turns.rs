//! Checks how much one connection may do before other connections run, and which replies are sent
//! together.

use super::fake::{ScriptStep, sends};
use super::play::{Placement, check, check_loop, check_with_workers, get, play, post};

#[test]
fn sends_replies_of_a_pipelined_batch_at_once() {
    check(&[sends(get("/a") + &get("/b") + &get("/c"))], "200 a + 200 b + 200 c; 75s: closed");
}

#[test]
fn yields_after_sixteen_requests() {
    let batch = "200 a + ".repeat(15) + "200 a";
    let rest = "200 a + ".repeat(7) + "200 a";
    check(
        &[sends(get("/a").repeat(40))],
        &format!("{batch}; turn; {batch}; turn; {rest}; 75s: closed"),
    );
    // Without further requests it takes no turn.
    check(&[sends(get("/a").repeat(16))], &format!("{batch}; 75s: closed"));
}

#[test]
fn sends_a_large_batch_before_its_end() {
    let script = [sends(get("/long/30000").repeat(4))];
    let three = "200 <30000> + 200 <30000> + 200 <30000>";
    check(&script, &format!("{three}; 200 <30000>; 75s: closed"));
}

#[test]
fn waits_for_the_rest_of_a_split_request() {
    check(
        &[sends(get("/a") + "GET /b HT"), sends("TP/1.1\r\nHost: a\r\n\r\n")],
        "200 a; 200 b; 75s: closed",
    );
}

#[test]
fn answers_pipelined_requests_in_order_across_threads() {
    let script =
        [sends(get("/a") + &get("/later") + &get("/b")), sends(get("/c")), ScriptStep::Finish];
    check(&script, "200 a; 200 later + 200 b; 200 c; 75s: closed");
    let script =
        [sends(get("/a") + &get("/work") + &get("/b")), sends(get("/c")), ScriptStep::Finish];
    check_with_workers(&script, "200 a; queued; 200 work + 200 b; 200 c; 75s: closed");
    check(&script[..2], "200 a; 200 work + 200 b; 200 c; 75s: closed");
}

#[test]
fn sends_blocked_replies_while_a_later_one_is_written() {
    let script = [
        ScriptStep::Room(150),
        sends(get("/long/500") + &get("/later")),
        ScriptStep::Room(200),
        ScriptStep::Room(1000),
        ScriptStep::Finish,
    ];
    check_loop(&script, "<150>; <200>; 200 <500>; 200 later; 75s: closed");
}

#[test]
fn parses_no_requests_while_replies_are_blocked() {
    let script =
        [ScriptStep::Room(50), sends(get("/long/500")), sends(get("/b")), ScriptStep::Room(5000)];
    check_loop(&script, "<50>; 200 <500>; 200 b; 75s: closed");
}

#[test]
fn sends_a_file_in_slices_with_turns_between() {
    check_loop(
        &[sends(get("/file") + &get("/a"))],
        "<81>; file<1048495>; turn; file<1048576>; turn; 200 <2500000>; 200 a; 75s: closed",
    );
    let transcript = play::<false>(&[sends(get("/file"))], Placement::SameThread).transcript;
    let content = &transcript.bytes[81..];
    assert!(content.iter().enumerate().all(|(place, byte)| *byte == (place % 251) as u8));
}

/// Symptom: a fast reader of a long page kept its loop until the whole page was sent. Cause: only
/// files were sent in slices. Fix: pages are too.
#[test]
fn sends_a_long_page_in_slices() {
    let script =
        [ScriptStep::Room(1000), sends(get("/long/3000000")), ScriptStep::Room(usize::MAX)];
    check_loop(&script, "<1000>; <1048576>; turn; <1048576>; turn; 200 <3000000>; 75s: closed");
}

#[test]
fn resumes_a_file_at_the_byte_where_it_was_blocked() {
    let script = [
        ScriptStep::Room(1000),
        sends(get("/file/300000")),
        ScriptStep::Room(100_000),
        ScriptStep::Room(1_000_000),
    ];
    check_loop(&script, "<80>; file<920>; file<100000>; 200 <300000>; 75s: closed");
}

/// Symptom: a client whose socket was never empty kept its loop without limit. Cause: a turn was
/// limited by requests, but not by bytes of a body. Fix: a turn receives at most 1 MiB.
#[test]
fn receives_a_continuous_body_in_limited_turns() {
    let length = 5 << 20;
    let script = [sends(post("/echo/9999999", length)), sends("x".repeat(length))];
    check(&script, "turn; turn; turn; turn; 200 <5242880>; turn; 75s: closed");
}

#[test]
fn sends_only_the_head_for_head_and_serves_the_next_request() {
    let script = [sends("HEAD /long/5 HTTP/1.1\r\nHost: a\r\n\r\n")];
    for bytes in [
        play::<false>(&script, Placement::SameThread).transcript.bytes,
        play::<true>(&script, Placement::SameThread).transcript.bytes,
    ] {
        let text = String::from_utf8(bytes).unwrap();
        assert!(text.contains("Content-Length: 5\r\n") && text.ends_with("\r\n\r\n"), "{text}");
    }
    let head = |path: &str| format!("HEAD {path} HTTP/1.1\r\nHost: a\r\n\r\n");
    for path in ["/long/50", "/page/5000", "/file"] {
        let script = [sends(head(path) + &get("/b"))];
        let text =
            String::from_utf8(play::<false>(&script, Placement::SameThread).transcript.bytes)
                .unwrap();
        let replies: Vec<&str> = text.split("HTTP/1.1 200 OK").collect();
        assert_eq!(replies.len(), 3, "{text}");
        assert!(replies[1].ends_with("\r\n\r\n") && replies[2].ends_with("\r\n\r\nb"), "{text}");
    }
}

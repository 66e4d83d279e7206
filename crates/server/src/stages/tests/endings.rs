//! Checks how a connection ends: after a fault of the client, of a handler or of the program, or on
//! request.

use super::fake::{ScriptStep, pause, sends};
use super::play::{Placement, check, check_loop, check_with_workers, get, play, post};

#[test]
fn answers_a_fault_with_its_status_and_ignores_later_input() {
    for (request, status) in [
        ("nonsense\r\n\r\n", 400),
        ("GET / HTTP/2.0\r\nHost: a\r\n\r\n", 505),
        ("BREW / HTTP/1.1\r\nHost: a\r\n\r\n", 501),
        ("GET / HTTP/1.1\r\nHost: a\r\nExpect: tea\r\n\r\n", 417),
        ("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: gzip, chunked\r\n\r\n", 501),
        ("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 99999999999\r\n\r\n", 413),
        ("POST / HTTP/1.0\r\n\r\n", 411),
    ] {
        let expected = format!("200 a + {status} close; finish; 2s: closed");
        check(&[sends(get("/a") + request + &get("/b")), sends(get("/c"))], &expected);
    }
    let long = format!("GET /{} HTTP/1.1\r\nHost: a\r\n\r\n", "x".repeat(9000));
    check(&[sends(long)], "414 close; finish; 2s: closed");
    let wide = format!("GET / HTTP/1.1\r\nHost: a\r\nA: {}\r\n\r\n", "x".repeat(17_000));
    check(&[sends(wide)], "431 close; finish; 2s: closed");
}

#[test]
fn answers_a_fault_in_a_body_instead_of_the_handler() {
    let request = "POST /echo/99 HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n";
    let broken = format!("{request}3\r\nabc\r\nnonsense\r\n");
    check(&[sends(broken + &get("/b"))], "400 close; finish; 2s: closed");
}

#[test]
fn drops_limited_input_after_an_early_close() {
    let piece = "x".repeat(60_000);
    let mut script = vec![sends(post("/echo/9", 9_000_000))];
    script.extend((0..4).flat_map(|_| [sends(&piece), pause(100)]));
    script.push(sends(get("/a")));
    check(&script, "413 close; finish; 2s: closed");
    // With the fifth piece, the input exceeds 256 KiB.
    script.extend([sends(&piece), pause(100)]);
    check(&script, "413 close; finish; 0.4s: closed");
}

#[test]
fn stops_lingering_when_the_client_closes() {
    check(&[sends("nonsense\r\n\r\n"), ScriptStep::Last(vec![])], "400 close; finish; closed");
    check(&[sends("nonsense\r\n\r\n"), ScriptStep::Leave], "400 close; finish; closed");
}

/// Symptom: the connection lingered for its full time after the client had closed. Cause: the last
/// bytes and the end of the stream arrived with one event; the bytes were received, but no further
/// receive found the end.
#[test]
fn detects_the_end_of_stream_after_the_last_bytes() {
    check(&[ScriptStep::Last(get("/a").into_bytes())], "200 a; closed");
    check(&[ScriptStep::Last(b"GET /a HT".to_vec())], "closed");
    check(
        &[sends("nonsense\r\n\r\n"), ScriptStep::Last(b"more".to_vec())],
        "400 close; finish; closed",
    );
}

#[test]
fn closes_after_the_reply_on_request() {
    let close = "GET /a HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n";
    check(&[sends(close)], "200 a close; closed");
    check(&[sends(close.to_owned() + &get("/b"))], "200 a close; finish; 2s: closed");
    check(&[sends("GET /a HTTP/1.0\r\n\r\n")], "200 a close; closed");
    check(&[sends(get("/close") + &get("/b"))], "200 bye close; finish; 2s: closed");
}

#[test]
fn answers_a_panic_with_500_and_keeps_earlier_replies() {
    check(&[sends(get("/panic"))], "500 close; closed");
    check(
        &[sends(get("/a") + &get("/panic") + &get("/b"))],
        "200 a + 500 close; finish; 2s: closed",
    );
    check(&[sends(get("/a") + &get("/work-panic"))], "200 a; 500 close; closed");
    check_with_workers(
        &[sends(get("/a") + &get("/work-panic")), ScriptStep::Finish],
        "200 a; queued; 500 close; closed",
    );
    check_loop(
        &[sends(get("/a") + &get("/later-panic")), ScriptStep::Finish],
        "200 a; 500 close; closed",
    );
}

#[test]
fn lingers_after_a_panic_before_the_whole_body_was_received() {
    check(&[sends(post("/panic", 10) + "12345")], "500 close; finish; 2s: closed");
}

#[test]
fn cuts_the_connection_after_a_panic_in_a_partly_sent_page() {
    for transcript in [
        play::<false>(&[sends(get("/page-panic/2500"))], Placement::SameThread).transcript,
        play::<true>(&[sends(get("/page-panic/2500"))], Placement::SameThread).transcript,
    ] {
        let text = String::from_utf8_lossy(&transcript.bytes).into_owned();
        assert_eq!(text.matches("HTTP/1.1").count(), 1, "no second head: {text}");
        assert!(!text.contains("\r\n0\r\n\r\n"), "the page must not look whole");
        assert!(transcript.text().ends_with("; closed"), "{}", transcript.text());
    }
}

#[test]
fn answers_a_panic_in_an_unsent_page_with_500() {
    check(&[sends(get("/page-panic/900"))], "500 close; closed");
}

#[test]
fn cuts_a_page_that_exceeds_the_limit_of_unsent_bytes() {
    check_loop(&[ScriptStep::Room(10), sends(get("/page/90000"))], "<10>; closed");
    let script = [ScriptStep::Room(10), sends(get("/page/40000")), ScriptStep::Room(90_000)];
    check_loop(&script, "<10>; 200 chunks <40000>; 75s: closed");
}

#[test]
fn sends_a_page_while_it_is_written() {
    check_loop(
        &[sends(get("/a") + &get("/page/2500") + &get("/b"))],
        "200 a + <1096>; <1012>; 200 chunks <2500> + 200 b; 75s: closed",
    );
}

#[test]
fn announces_the_close_in_each_reply_while_stopping() {
    check_loop(
        &[sends(get("/a")), ScriptStep::Stop, sends(get("/b") + &get("/c"))],
        "200 a; 200 b close; finish; 2s: closed",
    );
}

/// Symptom: after a stop, a connection stayed open for the whole idle timeout, and the drain waited
/// for it. Cause: the head of a reply to a request that began before the stop announces that the
/// connection is kept.
#[test]
fn closes_soon_after_a_reply_begun_before_the_stop() {
    check_loop(
        &[sends(get("/later")), ScriptStep::Stop, ScriptStep::Finish],
        "200 later; 0.5s: closed",
    );
    check_with_workers(
        &[sends(get("/work")), ScriptStep::Stop, ScriptStep::Finish, sends(get("/a"))],
        "queued; 200 work; 200 a close; closed",
    );
}

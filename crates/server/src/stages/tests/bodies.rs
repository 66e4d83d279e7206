//! Checks that content is collected, rejected, or read and dropped.

use super::fake::{ScriptStep, sends};
use super::play::{check, check_loop, get, post};

const EXPECTS: &str =
    "POST /echo/100 HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 3\r\n\r\n";

fn chunked(path: &str, chunks: &[&str]) -> String {
    let mut text = format!("POST {path} HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n");
    for chunk in chunks {
        text += &format!("{:x}\r\n{chunk}\r\n", chunk.len());
    }
    text + "0\r\n\r\n"
}

#[test]
fn calls_a_handler_again_that_had_to_wait() {
    let next = || sends(get("/b"));
    check(&[sends(get("/again")), ScriptStep::Finish, next()], "200 again; 200 b; 75s: closed");
    check(
        &[sends(post("/again", 3)), sends("abc"), ScriptStep::Finish, next()],
        "200 abc; 200 b; 75s: closed",
    );
}

#[test]
fn collects_a_body_then_parses_the_next_request() {
    check(&[sends(post("/echo/9", 3) + "abc" + &get("/a"))], "200 abc + 200 a; 75s: closed");
    check(&[sends(post("/echo/9", 3)), sends("a"), sends("bc")], "200 abc; 75s: closed");
    check(&[sends(chunked("/echo/9", &["ab", "c"]) + &get("/a"))], "200 abc + 200 a; 75s: closed");
    check(&[sends(post("/echo/9", 0) + &get("/a"))], "200 nothing + 200 a; 75s: closed");
    check(&[sends(chunked("/echo/9", &[]))], "200 ; 75s: closed");
}

#[test]
fn sends_earlier_replies_before_it_waits_for_a_body() {
    check(&[sends(get("/a") + &post("/echo/9", 3)), sends("abc")], "200 a; 200 abc; 75s: closed");
}

#[test]
fn sends_100_to_a_client_that_waits_with_its_body() {
    check(&[sends(EXPECTS), sends("abc")], "100; 200 abc; 75s: closed");
    check(&[sends(get("/a") + EXPECTS), sends("abc")], "200 a + 100; 200 abc; 75s: closed");
}

#[test]
fn sends_no_100_to_a_client_that_has_begun_to_send() {
    check(&[sends(EXPECTS.to_owned() + "a"), sends("bc")], "200 abc; 75s: closed");
    check(&[sends(EXPECTS.to_owned() + "abc")], "200 abc; 75s: closed");
}

#[test]
fn sends_no_100_for_an_unwanted_body() {
    let script = [sends(EXPECTS.replace("/echo/100", "/a"))];
    check(&script, "200 a close; finish; 2s: closed");
}

#[test]
fn rejects_a_long_body_before_reading_it() {
    check(&[sends(post("/echo/9", 10))], "413 close; finish; 2s: closed");
    let expects = EXPECTS.replace("Content-Length: 3", "Content-Length: 101");
    check(&[sends(expects)], "413 close; finish; 2s: closed");
    check(&[sends(post("/echo/9", 9) + "123456789")], "200 123456789; 75s: closed");
}

#[test]
fn rejects_chunks_beyond_the_limit_as_they_arrive() {
    check(
        &[sends(chunked("/echo/5", &["abc", "def"]) + &get("/a"))],
        "413 close; finish; 2s: closed",
    );
}

#[test]
fn drops_a_short_unwanted_body_and_keeps_the_connection() {
    check(&[sends(post("/a", 3) + "abc" + &get("/b"))], "200 a + 200 b; 75s: closed");
    check(&[sends(post("/a", 3)), sends("abc"), sends(get("/b"))], "200 a; 200 b; 75s: closed");
    let most = "x".repeat(64 * 1024);
    check(&[sends(post("/a", most.len()) + &most + &get("/b"))], "200 a; 200 b; 75s: closed");
}

#[test]
fn closes_the_connection_after_a_long_unwanted_body() {
    check(&[sends(post("/a", 64 * 1024 + 1)), sends(get("/b"))], "200 a close; finish; 2s: closed");
}

#[test]
fn accepts_a_body_before_work_or_an_async_reply() {
    check_loop(
        &[sends(post("/later", 3)), ScriptStep::Finish, sends("abc"), sends(get("/b"))],
        "200 later; 200 b; 75s: closed",
    );
    check(&[sends(post("/work", 3) + "abc" + &get("/b"))], "200 work + 200 b; 75s: closed");
}

#[test]
fn fails_a_handler_that_asks_for_its_body_twice() {
    check(&[sends(post("/twice", 3) + "abc")], "500 close; closed");
}

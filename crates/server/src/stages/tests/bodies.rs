//! Checks that content is collected, rejected, or read and dropped.

use super::fake::{Step, says};
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
fn a_body_is_collected_and_the_next_request_follows_it() {
    check(&[says(post("/echo/9", 3) + "abc" + &get("/a"))], "200 abc + 200 a; 75s: closed");
    check(&[says(post("/echo/9", 3)), says("a"), says("bc")], "200 abc; 75s: closed");
    check(&[says(chunked("/echo/9", &["ab", "c"]) + &get("/a"))], "200 abc + 200 a; 75s: closed");
    check(&[says(post("/echo/9", 0) + &get("/a"))], "200 nothing + 200 a; 75s: closed");
    check(&[says(chunked("/echo/9", &[]))], "200 ; 75s: closed");
}

#[test]
fn earlier_replies_leave_before_a_body_is_waited_for() {
    check(&[says(get("/a") + &post("/echo/9", 3)), says("abc")], "200 a; 200 abc; 75s: closed");
}

#[test]
fn a_peer_that_holds_its_body_back_is_told_to_send_it() {
    check(&[says(EXPECTS), says("abc")], "100; 200 abc; 75s: closed");
    check(&[says(get("/a") + EXPECTS), says("abc")], "200 a + 100; 200 abc; 75s: closed");
}

#[test]
fn a_peer_that_has_begun_to_send_is_not_told_to_send() {
    check(&[says(EXPECTS.to_owned() + "a"), says("bc")], "200 abc; 75s: closed");
    check(&[says(EXPECTS.to_owned() + "abc")], "200 abc; 75s: closed");
}

#[test]
fn a_body_that_nobody_asked_for_and_that_is_held_back_is_never_asked_for() {
    let script = [says(EXPECTS.replace("/echo/100", "/a"))];
    check(&script, "200 a close; finish; 2s: closed");
}

#[test]
fn a_body_longer_than_its_handler_takes_is_refused_before_it_is_read() {
    check(&[says(post("/echo/9", 10))], "413 close; finish; 2s: closed");
    let expects = EXPECTS.replace("Content-Length: 3", "Content-Length: 101");
    check(&[says(expects)], "413 close; finish; 2s: closed");
    check(&[says(post("/echo/9", 9) + "123456789")], "200 123456789; 75s: closed");
}

#[test]
fn chunks_beyond_what_a_handler_takes_are_refused_when_they_come() {
    check(
        &[says(chunked("/echo/5", &["abc", "def"]) + &get("/a"))],
        "413 close; finish; 2s: closed",
    );
}

#[test]
fn a_short_body_that_nobody_asked_for_is_dropped_and_the_connection_kept() {
    check(&[says(post("/a", 3) + "abc" + &get("/b"))], "200 a + 200 b; 75s: closed");
    check(&[says(post("/a", 3)), says("abc"), says(get("/b"))], "200 a; 200 b; 75s: closed");
    let most = "x".repeat(64 * 1024);
    check(&[says(post("/a", most.len()) + &most + &get("/b"))], "200 a; 200 b; 75s: closed");
}

#[test]
fn a_long_body_that_nobody_asked_for_closes_the_connection() {
    check(&[says(post("/a", 64 * 1024 + 1)), says(get("/b"))], "200 a close; finish; 2s: closed");
}

#[test]
fn a_body_may_be_followed_by_work_or_by_a_reply_that_comes_later() {
    check_loop(
        &[says(post("/later", 3)), Step::Finish, says("abc"), says(get("/b"))],
        "200 later; 200 b; 75s: closed",
    );
    check(&[says(post("/work", 3) + "abc" + &get("/b"))], "200 work + 200 b; 75s: closed");
}

#[test]
fn a_handler_that_asks_twice_for_its_body_fails() {
    check(&[says(post("/twice", 3) + "abc")], "500 close; closed");
}

//! Checks the time limit of each step of a connection, and how the connection ends after it.

use std::time::Duration;

use super::fake::{Step, Told, pauses, says};
use super::play::{Place, check, check_with_workers, get, play, post, seconds};

fn told_by_both(script: &[Step]) -> [Told; 2] {
    [play::<false>(script, Place::Here).told, play::<true>(script, Place::Here).told]
}

/// `pieces` one by one, with a pause after each.
fn dripping(pieces: &[&str], milliseconds: u64) -> Vec<Step> {
    pieces.iter().flat_map(|piece| [says(piece), pauses(milliseconds)]).collect()
}

#[test]
fn a_peer_that_never_speaks_is_closed_without_a_word() {
    check(&[], "10s: closed");
}

#[test]
fn a_head_that_trickles_in_gets_no_more_time_than_one_that_does_not() {
    let head = get("/a");
    let pieces: Vec<&str> = (0..head.len()).map(|place| &head[place..=place]).collect();
    check(&dripping(&pieces, 900), "10s: 408 close; finish; 12s: closed");
    check(&[says(&head[..9])], "10s: 408 close; finish; 12s: closed");
    check(&dripping(&pieces, 300), "8.1s: 200 a; 83.1s: closed");
}

#[test]
fn every_head_has_its_own_time() {
    let half = get("/b");
    let script = [says(get("/a")), seconds(70), says(&half[..5]), seconds(9), says(&half[5..])];
    check(&script, "200 a; 79s: 200 b; 154s: closed");
    // The second head began at the first reply, not at the first head.
    let script =
        [says(&half[..5]), seconds(8), says(&(half[5..].to_owned() + &half[..5])), seconds(8)];
    check(&script, "8s: 200 b; 18s: 408 close; finish; 20s: closed");
}

#[test]
fn an_idle_connection_is_closed_without_a_word() {
    // A client that keeps a pool of idle connections would take a 408 for the reply to its next
    // request.
    check(&[says(get("/a"))], "200 a; 75s: closed");
}

#[test]
fn a_body_may_pause_but_not_for_long() {
    check(
        &[says(post("/echo/9000", 20) + "0123456789"), seconds(9), says("0123456789")],
        "9s: 200 01234567890123456789; 84s: closed",
    );
    check(
        &[says(post("/echo/9000", 20) + "0123456789"), seconds(10)],
        "10s: 408 close; finish; 12s: closed",
    );
}

#[test]
fn a_body_below_the_rate_ends_although_each_pause_is_short() {
    // 512 bytes per second are half the minimum rate, so 10 s are extended to less than 20 s.
    let piece = "x".repeat(512);
    let mut script = vec![says(post("/echo/90000", 51_200))];
    script.extend(dripping(&vec![piece.as_str(); 100], 1000));
    check(&script, "19s: 408 close; finish; 21s: closed");
}

#[test]
fn a_body_above_the_rate_goes_on_as_long_as_it_must() {
    let piece = "x".repeat(1100);
    let mut script = vec![says(post("/echo/90000", 55_000))];
    script.extend(dripping(&vec![piece.as_str(); 50], 1000));
    check(&script, "49s: 200 <55000>; 124s: closed");
}

/// Symptom: a client that sent single bytes at twice the minimum rate got a 408. Cause: at 1024
/// bytes per second a byte added 0 ms, because the division rounded down. Fix: it rounds up.
#[test]
fn a_body_in_single_bytes_above_the_rate_goes_on() {
    let mut script = vec![says(post("/echo/90000", 22_002))];
    script.extend((0..11_001).flat_map(|_| [says("x"), says("x"), pauses(1)]));
    check(&script, "11s: 200 <22002>; 86s: closed");
}

#[test]
fn a_body_sent_quickly_buys_no_more_than_one_pause() {
    let script = [says(post("/echo/90000", 60_000)), says("x".repeat(50_000))];
    check(&script, "10s: 408 close; finish; 12s: closed");
}

#[test]
fn an_unwanted_body_has_a_time_of_its_own_too() {
    check(&[says(post("/a", 10) + "01234"), seconds(9), pauses(1000)], "200 a; 10s: closed");
}

#[test]
fn a_handler_that_takes_too_long_is_replaced_by_a_504_and_its_reply_dropped() {
    check(&[says(get("/later"))], "30s: 504 close; finish; 32s: closed");
    let late = [says(get("/later")), seconds(31), Step::Finish];
    check_with_workers(&late, "30s: 504 close; finish; 31s: too late; 32s: closed");
    check(&[says(get("/later")), seconds(29), Step::Finish], "29s: 200 later; 104s: closed");
}

#[test]
fn a_job_that_waits_too_long_for_a_worker_gets_an_early_503() {
    check_with_workers(&[says(get("/work"))], "queued; 1s: 503 retry 1 close; finish; 3s: closed");
    check_with_workers(
        &[says(get("/work")), pauses(900), Step::Finish],
        "queued; 0.9s: 200 work; 75.9s: closed",
    );
}

#[test]
fn a_reader_that_stalls_is_closed() {
    let script = [Step::Room(100), says(get("/long/1000"))];
    check(&script, "<100>; 30s: closed");
    check(&[Step::Room(0), says(get("/a"))], "30s: closed");
}

#[test]
fn a_reader_below_the_rate_is_closed_although_it_never_stalls() {
    let mut script = vec![Step::Room(512), says(get("/long/90000"))];
    script.extend((0..200).flat_map(|_| [pauses(1000), Step::Room(512)]));
    // The first piece is sent before any time is lost; each later piece adds half a second.
    for told in told_by_both(&script) {
        assert!(told.text().ends_with("58s: <512>; 59s: closed"), "{}", told.text());
    }
}

#[test]
fn a_reader_above_the_rate_gets_everything() {
    let mut script = vec![Step::Room(1100), says(get("/file/100000"))];
    script.extend((0..100).flat_map(|_| [pauses(1000), Step::Room(1100)]));
    for told in told_by_both(&script) {
        assert!(told.text().contains("90s: 200 <100000>"), "{}", told.text());
    }
}

#[test]
fn a_peer_that_is_sent_away_has_a_moment_to_read_why() {
    check(&[says("nonsense\r\n\r\n"), pauses(1900)], "400 close; finish; 2s: closed");
    // Further input adds no time.
    let mut script = vec![says("nonsense\r\n\r\n")];
    script.extend(dripping(&["more"; 30], 100));
    check(&script, "400 close; finish; 2s: closed");
}

/// Symptom: a client that sent single bytes kept a thread forever. Cause: the deadline was compared
/// only after a timeout of a blocking call, and the bytes came at intervals shorter than the
/// kernel's timers are late. Fix: the deadline is compared before each wait too.
#[test]
fn bytes_that_come_more_often_than_a_wait_can_end_do_not_hold_a_thread() {
    let late = Step::Late(Duration::from_millis(250));
    let drip = |first: String, count| {
        let mut script = vec![late.clone(), says(first)];
        script.extend(dripping(&vec!["x"; count], 100));
        script
    };
    check(&drip("GET /".to_owned(), 300), "10s: 408 close; finish; 12s: closed");
    // Each byte adds a millisecond, also the last one, for which an event loop would not have
    // waited.
    let slow = drip(post("/echo/9000", 300), 299);
    let told = play::<true>(&slow, Place::Here).told.text();
    assert_eq!(told, "10.2s: 408 close; finish; 12.2s: closed");
    check(&drip("nonsense\r\n\r\n".to_owned(), 300), "400 close; finish; 2s: closed");
}

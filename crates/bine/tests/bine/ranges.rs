//! Channels followed within a range of time: existing messages arrive at once, and the request
//! waits for future ones until the range or the wait ends.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use crate::channels::start;
use crate::harness::{KINDS, PATIENCE, Peer, Program, Reply};

/// A message: time of publication and text.
type Message = (u64, String);

const MEMORY: [&str; 2] = ["--data", "memory"];

fn ask(peer: &mut Peer, query: &str, accept: &str) {
    peer.send(format!("GET /channels?{query} HTTP/1.1\r\nHost: a\r\nAccept: {accept}\r\n\r\n"));
}

fn poll(peer: &mut Peer, query: &str) -> Reply {
    ask(peer, query, "application/json");
    peer.reply()
}

/// Parses the messages of a view in JSON.
fn messages(text: &str) -> Vec<Message> {
    let each = text.split("\"time\":").skip(1);
    let told = each.map(|message| {
        let time = message.split(',').next().unwrap().parse().unwrap();
        let word = message.split("\"data\":\"").nth(1).unwrap().split('"').next().unwrap();
        (time, word.to_owned())
    });
    told.collect()
}

fn cursor(reply: &Reply) -> String {
    reply.header("Cursor").expect("no position to continue from").to_owned()
}

fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_millis() as u64
}

/// Waits until a time, with a range request.
fn await_time(peer: &mut Peer, time: u64) {
    assert_eq!(poll(peer, &format!("c=idle&after=earliest&before={time}")).status(), 204);
    assert!(now() >= time);
}

/// Starts a program with the channels `a`, `b` and `idle`, and four messages at different times in
/// `a` and `b`.
fn start_with_messages(options: &[&str]) -> (Program, Vec<Message>) {
    let program = start(options);
    let mut peer = program.connect();
    for name in ["a", "b", "idle"] {
        peer.expect_post(&format!("/create/{name}"), "");
    }
    for (word, channel) in
        ["one", "two", "three", "four"].into_iter().zip(["a", "b"].iter().cycle())
    {
        let next = now() + 2;
        await_time(&mut peer, next);
        peer.expect_post(&format!("/say/{channel}/{word}"), "");
    }
    let all = messages(poll(&mut peer, "c=a&c=b&after=earliest").text());
    assert!(all.len() == 4 && all.is_sorted_by(|one, next| one.0 < next.0), "{all:?}");
    (program, all)
}

/// Formats milliseconds since 1970 by RFC 3339.
fn rfc3339(time: u64) -> String {
    let (days, of_day) = (time / 86_400_000, time % 86_400_000);
    // Howard Hinnant's civil_from_days, for days after 1970.
    let shifted = days + 719_468;
    let (era, of_era) = (shifted / 146_097, shifted % 146_097);
    let year = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    let year = year + era * 400 + u64::from(month <= 2);
    let (hour, minute) = (of_day / 3_600_000, of_day / 60_000 % 60);
    let (second, rest) = (of_day / 1000 % 60, of_day % 1000);
    format!("{year}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{rest:03}Z")
}

#[test]
fn range_includes_its_start_and_excludes_its_end() {
    let (program, all) = start_with_messages(&MEMORY);
    let mut peer = program.connect();
    for start in 0..all.len() {
        for end in start..all.len() {
            let (from, to) = (all[start].0, all[end].0);
            for range in [
                format!("after={from}&before={to}"),
                format!("after={}&before={}", rfc3339(from), rfc3339(to)),
                format!("after={}&before={to}", rfc3339(from).replace('Z', "+00:00")),
            ] {
                let reply = poll(&mut peer, &format!("c=a&c=b&{range}"));
                assert_eq!(messages(reply.text()), all[start..end], "{range}");
                assert_eq!(reply.status(), if start == end { 204 } else { 200 }, "{range}");
                // The cursor continues at the end of the range.
                let rest = poll(&mut peer, &format!("c=a&c=b&wait=0&after={}", cursor(&reply)));
                assert_eq!(messages(rest.text()), all[end..], "{range}");
                let only = poll(&mut peer, &format!("c=b&{range}"));
                let mut due = all[start..end].to_vec();
                due.retain(|(_, word)| word == "two" || word == "four");
                assert_eq!(messages(only.text()), due, "{range}");
            }
        }
    }
    // Without a start the range begins with the first message.
    let reply = poll(&mut peer, &format!("c=a&c=b&before={}", all[2].0));
    assert_eq!(messages(reply.text()), all[..2]);
    // Page through the range.
    let (mut after, mut got) = (all[0].0.to_string(), Vec::new());
    loop {
        let range = format!("c=a&c=b&limit=1&after={after}&before={}", all[3].0);
        let reply = poll(&mut peer, &range);
        if reply.status() == 204 {
            break;
        }
        got.extend(messages(reply.text()));
        after = cursor(&reply);
    }
    assert_eq!(got, all[..3]);
}

#[test]
fn answers_past_range_at_once_in_each_view() {
    let (program, all) = start_with_messages(&MEMORY);
    let (from, to) = (all[1].0, all[3].0);
    let (empty, range) = (from - 1, format!("c=a&c=b&after={from}&before={to}"));
    for (accept, status) in
        [("application/x-ndjson", 200), ("text/event-stream", 200), ("multipart/mixed", 200)]
    {
        let mut peer = program.connect();
        ask(&mut peer, &range, accept);
        let reply = peer.reply();
        let text = reply.text();
        assert_eq!(reply.status(), status, "{accept}");
        assert!(text.contains("two") && text.contains("three"), "{accept}: {text}");
        assert!(!text.contains("one") && !text.contains("four"), "{accept}: {text}");
    }
    let mut peer = program.connect();
    ask(&mut peer, &format!("c=a&after={empty}&before={from}"), "application/x-ndjson");
    assert_eq!(messages(peer.reply().text()), []);
    assert_eq!(poll(&mut peer, &format!("c=a&after=now&before={from}")).status(), 204);
    // An `EventSource` reconnects after a 200 but not after a 204.
    ask(&mut peer, &format!("c=a&after={empty}&before={from}"), "text/event-stream");
    let reply = peer.reply();
    assert_eq!((reply.status(), cursor(&reply).len()), (204, 25));
}

#[test]
fn waits_for_future_range_until_its_end() {
    for scheduler in KINDS {
        let (program, all) =
            start_with_messages(&["--data", "memory", "--scheduler", scheduler, "--workers", "6"]);
        let end = now() + 400;
        let range = |from: u64| format!("c=a&c=b&after={from}&before={end}&wait=50");
        let mut writer = program.connect();
        // Existing messages arrive at once.
        let there = poll(&mut writer, &range(all[3].0));
        assert_eq!(messages(there.text()), all[3..], "{scheduler}");
        let behind = format!("c=a&c=b&before={end}&wait=50&after={}", cursor(&there));
        let (mut idle, mut lines, mut events) =
            (program.connect(), program.connect(), program.connect());
        ask(&mut idle, &format!("c=idle&after=earliest&before={end}&wait=50"), "*/*");
        ask(&mut lines, &range(all[3].0), "application/x-ndjson");
        ask(&mut events, &behind, "text/event-stream");
        await_time(&mut writer, end);
        writer.expect_post("/say/a/late", "");
        assert_eq!(idle.reply().status(), 204, "{scheduler}");
        assert_eq!(messages(lines.reply().text()), all[3..], "{scheduler}");
        let events = events.reply();
        assert!(!events.text().contains("late"), "{scheduler}: {}", events.text());
        let over = poll(&mut writer, &behind);
        assert_eq!(over.status(), 204, "{scheduler}");
        let late = poll(&mut writer, &format!("c=a&c=b&after={}", cursor(&over)));
        assert_eq!(messages(late.text())[0].1, "late", "{scheduler}");
    }
}

/// Regression: a message delayed the end of a stream's range to its next keep-alive, twenty seconds
/// later.
#[test]
fn message_does_not_delay_end_of_range() {
    let program = start(&MEMORY);
    let mut writer = program.connect();
    writer.expect_post("/create/a", "");
    // On a busy machine the range may end before the message: try a longer one.
    let mut ends = [3000, 6000, 12_000].into_iter().filter_map(|length| {
        let (mut events, end) = (program.connect(), now() + length);
        ask(&mut events, &format!("c=a&before={end}&after=now"), "text/event-stream");
        if events.reply_to_head().status() != 200 {
            return None;
        }
        writer.expect_post("/say/a/one", "");
        (now() < end).then_some((events, end))
    });
    let (mut events, end) = ends.next().expect("the machine is too slow for twelve seconds");
    events.await_text("data: one");
    events.await_text("0\r\n\r\n");
    let late = now().saturating_sub(end);
    assert!(Duration::from_millis(late) < PATIENCE / 2, "{late} ms late");
}

#[test]
fn omits_messages_before_start_of_range() {
    for scheduler in KINDS {
        // On a busy machine the range may begin before the early message: try a later one.
        let mut begun = [600, 3000, 12_000].into_iter().filter_map(|lead| {
            let (program, _) = start_with_messages(&[
                "--data",
                "memory",
                "--scheduler",
                scheduler,
                "--workers",
                "6",
            ]);
            let (mut peer, mut lines) = (program.connect(), program.connect());
            let (mut short, mut writer) = (program.connect(), program.connect());
            let begin = now() + lead;
            ask(&mut peer, &format!("c=a&c=b&after={begin}&wait=50"), "*/*");
            ask(&mut lines, &format!("c=a&c=b&after={}", rfc3339(begin)), "application/x-ndjson");
            ask(&mut short, &format!("c=a&after={}&wait=1", begin + 60_000), "*/*");
            writer.expect_post("/say/a/early", "");
            (now() < begin).then_some((program, [peer, lines, short, writer], begin))
        });
        let (_program, peers, begin) =
            begun.next().expect("the machine is too slow for twelve seconds");
        let [mut peer, mut lines, mut short, mut writer] = peers;
        await_time(&mut writer, begin);
        writer.expect_post("/say/b/due", "");
        let due = poll(&mut writer, &format!("c=a&c=b&after={begin}"));
        let due = messages(due.text());
        assert_eq!(messages(peer.reply().text()), due, "{scheduler}");
        assert_eq!(messages(&lines.await_text("\"due\"}\n")), due, "{scheduler}");
        // The wait has ended, although the range has not begun.
        assert_eq!(short.reply().status(), 204, "{scheduler}");
    }
}

#[test]
fn rejects_range_that_ends_before_it_begins() {
    let (program, all) = start_with_messages(&MEMORY);
    let mut peer = program.connect();
    let (first, last) = (all[0].0, all[3].0);
    let early = cursor(&poll(&mut peer, "c=a&c=b&after=earliest&limit=1"));
    let late = cursor(&poll(&mut peer, "c=a&c=b&after=earliest"));
    for (range, told) in [
        (format!("after={last}&before={first}"), "exchange them"),
        (format!("after={}&before={first}", rfc3339(last)), "exchange them"),
        (format!("after={late}&before={early}"), "exchange them"),
        ("before=earliest".to_owned(), "there is nothing before `earliest`"),
        ("after=2026-02-30T00:00:00Z".to_owned(), "a time like 2026-11-20T21:00:00Z"),
        ("before=tomorrow".to_owned(), "a time like 2026-11-20T21:00:00Z"),
        ("after=%2B5".to_owned(), "a time like 2026-11-20T21:00:00Z"),
    ] {
        let reply = poll(&mut peer, &format!("c=a&{range}"));
        assert_eq!(reply.status(), 400, "{range}");
        assert!(reply.text().contains(told), "{range}: {}", reply.text());
    }
}

//! A checker for followers of channels, over real sockets: messages are neither lost nor repeated
//! and have one order, in any view and after any disconnection.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use crate::app::program;
use crate::harness::{Folder, KINDS, PATIENCE, Peer, Program, find_member};

/// Cursor and text of each message that a follower has received.
type History = Vec<(String, String)>;

/// A response format for followers.
#[derive(Clone, Copy, Debug, PartialEq)]
enum View {
    Poll,
    Events,
    Lines,
    Parts,
}

const VIEWS: [View; 4] = [View::Poll, View::Events, View::Lines, View::Parts];
const CHANNELS: [&str; 3] = ["a", "b", "c"];
/// The last message, sent to all channels.
const END: &str = "end";

fn start(options: &[&str]) -> Program {
    Program::start(&mut program("channels::serve_channel_program", options))
}

fn create(address: SocketAddr, name: &str) {
    let mut peer = Peer::tcp(address);
    peer.send(format!("POST /create/{name} HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n"));
    assert_eq!(peer.reply().status(), 200);
}

#[test]
fn followers_receive_each_message_once_in_one_order_across_views_and_reconnects() {
    const WRITERS: u64 = 3;
    const MESSAGES: u64 = 120;
    const FOLLOWERS: u64 = 9;
    for scheduler in KINDS {
        println!("on {scheduler}:");
        // A follower may occupy a thread, and the writers need threads too.
        let workers = (FOLLOWERS + WRITERS + 2).to_string();
        let program = start(&["--data", "memory", "--scheduler", scheduler, "--workers", &workers]);
        let address = program.address();
        for name in CHANNELS {
            create(address, name);
        }
        let (told, seen) = thread::scope(|scope| {
            let followers: Vec<_> =
                (0..FOLLOWERS).map(|number| scope.spawn(move || follow(address, number))).collect();
            let writers: Vec<_> = (0..WRITERS)
                .map(|writer| scope.spawn(move || write(address, writer, MESSAGES)))
                .collect();
            let told: Vec<_> = writers.into_iter().map(|writer| writer.join().unwrap()).collect();
            publish(&mut Peer::tcp(address), &CHANNELS, &[END.to_owned()]);
            let seen: Vec<_> = followers.into_iter().map(|one| one.join().unwrap()).collect();
            (told, seen)
        });
        let record = read_all(address, &CHANNELS);
        assert_eq!(record.len() as u64, WRITERS * MESSAGES + 1);
        assert!(record.is_sorted_by(|one, next| one.0 < next.0), "one order");
        for written in &told {
            // In the writer's order, with the cursors of the acknowledgments.
            let own: History =
                record.iter().filter(|message| written.contains(message)).cloned().collect();
            assert_eq!(&own, written);
        }
        for (number, (channels, history)) in (0..).zip(seen) {
            let due: History = record
                .iter()
                .filter(|(_, word)| {
                    channels_of(word).iter().any(|channel| channels.contains(channel))
                })
                .cloned()
                .collect();
            assert_eq!(history, due, "follower {number} of {channels:?}");
        }
    }
}

/// Returns the channels of a message, which follow from its name.
fn channels_of(word: &str) -> Vec<&'static str> {
    let number = word.rsplit('-').next().unwrap().parse::<usize>();
    match number {
        Ok(number) if number % 5 == 0 => vec!["a", "b"],
        Ok(number) => vec![CHANNELS[number % 3]],
        Err(_) => CHANNELS.to_vec(),
    }
}

/// Publishes this number of messages, some in batches, and returns their cursors.
fn write(address: SocketAddr, writer: u64, messages: u64) -> History {
    let (mut history, mut next, mut random) = (History::new(), 0, Random::new(writer));
    while next < messages {
        let many = (1 + random.below(4)).min(messages - next);
        let words: Vec<_> =
            (next..next + many).map(|number| format!("{writer}-{number}")).collect();
        next += many;
        // A fully occupied pool closes idle connections, so each publication opens its own.
        history.extend(publish(&mut Peer::tcp(address), &[], &words));
    }
    history
}

/// Publishes a batch in these channels, or else in those of each word.
fn publish(peer: &mut Peer, channels: &[&str], words: &[String]) -> History {
    peer.send(publication(channels, words));
    let reply = peer.reply();
    assert_eq!(reply.status(), 200, "{}", reply.text());
    told(reply.text(), words)
}

fn publication(channels: &[&str], words: &[String]) -> String {
    let messages = words.iter().map(|word| {
        let own = channels_of(word);
        let channels = if channels.is_empty() { &own } else { channels };
        format!("{{\"channels\":{channels:?},\"data\":\"{word}\"}}")
    });
    let body = format!("[{}]", messages.collect::<Vec<_>>().join(","));
    let length = body.len();
    format!("POST /channels HTTP/1.1\r\nHost: a\r\nContent-Length: {length}\r\n\r\n{body}")
}

/// Pairs each word with the cursor in its acknowledgment.
fn told(acknowledgment: &str, words: &[String]) -> History {
    let cursors: Vec<_> =
        acknowledgment.split('{').skip(1).filter_map(|one| find_member(one, "cursor")).collect();
    assert_eq!(cursors.len(), words.len(), "{acknowledgment}");
    cursors.into_iter().zip(words.iter().cloned()).collect()
}

/// Follows until the last message, with changing views and some disconnections. Returns the
/// channels and the messages.
fn follow(address: SocketAddr, number: u64) -> (Vec<&'static str>, History) {
    let sets: [&[&str]; 4] = [&["a"], &["b", "c"], &["c", "a", "b"], &["b"]];
    let channels = sets[(number % 4) as usize];
    let mut random = Random::new(1000 + number);
    let (mut history, mut after) = (History::new(), "earliest".to_owned());
    loop {
        let view = VIEWS[random.below(4) as usize];
        let patience = 1 + random.below(30) as usize;
        let (seen, last) = look(address, channels, view, &after, patience);
        after = last;
        let is_over = seen.last().is_some_and(|(_, word)| word == END);
        history.extend(seen);
        if is_over {
            return (channels.to_vec(), history);
        }
    }
}

/// Follows from a cursor, disconnects after `most` messages or the last one, and returns the
/// messages with the next cursor.
fn look(
    address: SocketAddr,
    channels: &[&str],
    view: View,
    after: &str,
    most: usize,
) -> (History, String) {
    let mut peer = Peer::tcp(address);
    peer.send(request(channels, view, after, most));
    if view == View::Poll {
        let reply = peer.reply();
        let cursor = reply.header("Cursor").unwrap().to_owned();
        let mut seen = Vec::new();
        read_objects(reply.text(), &mut seen);
        let messages = seen.into_iter().map(|(cursor, word)| (cursor, word.unwrap()));
        return (messages.collect(), cursor);
    }
    let head = peer.reply_to_head();
    assert_eq!(head.status(), 200, "{}", head.head);
    let (mut reader, mut history) = (Reader::new(view), Vec::new());
    loop {
        let chunk = peer.chunk();
        assert!(!chunk.is_empty(), "the stream ended unexpectedly");
        for (cursor, word) in reader.read(&chunk) {
            // Messages after the limit in the same chunk arrive again later.
            if let Some(word) = word {
                history.push((cursor.clone(), word));
                if history.len() == most || history.last().is_some_and(|(_, word)| word == END) {
                    return (history, cursor);
                }
            }
        }
    }
}

fn request(channels: &[&str], view: View, after: &str, most: usize) -> String {
    let names: String = channels.iter().flat_map(|name| ["c=", name, "&"]).collect();
    let accept = match view {
        View::Poll => "application/json",
        View::Events => "text/event-stream",
        View::Lines => "application/x-ndjson",
        View::Parts => "multipart/mixed",
    };
    // A browser resumes an event stream with `Last-Event-ID`.
    let (query, field) = match view {
        View::Events if after != "earliest" => {
            (String::new(), format!("Last-Event-ID: {after}\r\n"))
        }
        _ => (format!("after={after}&"), String::new()),
    };
    format!(
        "GET /channels?{names}{query}limit={most} HTTP/1.1\r\nHost: a\r\nAccept: {accept}\r\n{field}\r\n"
    )
}

/// Reads all retained messages by polls that do not wait.
fn read_all(address: SocketAddr, channels: &[&str]) -> History {
    read_behind(address, channels, "earliest").0
}

fn read_behind(address: SocketAddr, channels: &[&str], after: &str) -> (History, String) {
    let (mut history, mut after) = (History::new(), after.to_owned());
    let names: String = channels.iter().flat_map(|name| ["c=", name, "&"]).collect();
    let mut peer = Peer::tcp(address);
    loop {
        let reply = peer.get(&format!("/channels?{names}after={after}&limit=100&wait=0"));
        let cursor = reply.header("Cursor").unwrap_or_else(|| panic!("{reply:?}"));
        cursor.clone_into(&mut after);
        if reply.status() == 204 {
            return (history, after);
        }
        let mut seen = Vec::new();
        read_objects(reply.text(), &mut seen);
        history.extend(seen.into_iter().map(|(cursor, word)| (cursor, word.unwrap())));
    }
}

/// Parses messages and marks from a stream, in pieces of any size.
struct Reader {
    view: View,
    text: String,
    /// The latest cursor. It must not exceed what the server has sent, because a disconnected
    /// reader resumes there.
    last: String,
}

impl Reader {
    const fn new(view: View) -> Self {
        Self { view, text: String::new(), last: String::new() }
    }

    /// Returns each new cursor, with its message unless it is from a mark.
    fn read(&mut self, bytes: &[u8]) -> Vec<(String, Option<String>)> {
        self.text.push_str(std::str::from_utf8(bytes).unwrap());
        let mut seen: Vec<(String, Option<String>)> = Vec::new();
        while let Some(end) = self.end() {
            let one: String = self.text.drain(..end).collect();
            match self.view {
                View::Events => {
                    let field = |name: &str| {
                        let value = one.lines().find_map(|line| line.strip_prefix(name));
                        value.map(ToOwned::to_owned)
                    };
                    if let Some(cursor) = field("id: ") {
                        seen.push((cursor, field("data: ")));
                    }
                }
                View::Parts => {
                    let (head, body) = one.split_once("\r\n\r\n").unwrap();
                    let cursor = head.lines().find_map(|line| line.strip_prefix("Cursor: "));
                    seen.push((cursor.unwrap().to_owned(), Some(body.trim_end().to_owned())));
                }
                View::Lines | View::Poll => read_objects(&one, &mut seen),
            }
        }
        for (cursor, word) in &seen {
            let is_on = self.last < *cursor || word.is_none() && self.last == *cursor;
            assert!(is_on, "{cursor} of {word:?} comes behind {}", self.last);
            self.last.clone_from(cursor);
        }
        seen
    }

    /// Returns the end of the first complete item.
    fn end(&self) -> Option<usize> {
        if self.view != View::Parts {
            let end = if self.view == View::Events { "\n\n" } else { "\n" };
            return Some(self.text.find(end)? + end.len());
        }
        let (head, _) = self.text.split_once("\r\n\r\n")?;
        let length = head.lines().find_map(|line| line.strip_prefix("Content-Length: "));
        let end = head.len() + 4 + length.unwrap().parse::<usize>().unwrap() + 2;
        (self.text.len() >= end).then_some(end)
    }
}

/// Parses messages and marks from JSON objects.
fn read_objects(text: &str, seen: &mut Vec<(String, Option<String>)>) {
    for one in text.split("{\"cursor\":").skip(1) {
        let cursor = one.split('"').nth(1).unwrap();
        seen.push((cursor.to_owned(), find_member(one, "data")));
    }
}

/// `BINE_KILLS` sets the number of kills.
#[test]
fn acknowledged_messages_survive_kills_and_cursors_stay_valid() {
    let kills = std::env::var("BINE_KILLS").map_or(20, |times| times.parse().unwrap());
    let folder = Folder::new();
    let data = folder.join("data");
    let options = ["--data", data.to_str().unwrap()];
    let mut random = Random::new(kills);
    let (mut acknowledged, mut recovered) = (0, 0);
    let (mut behind, mut followed) = ("earliest".to_owned(), "earliest".to_owned());
    // Messages that the followers have still to receive.
    let mut owed = History::new();
    let mut program = start(&options);
    for name in CHANNELS {
        create(program.address(), name);
    }
    for kill in 0..kills {
        let address = program.address();
        let view = VIEWS[1 + random.below(3) as usize];
        let count = AtomicU64::new(0);
        let enough = 1 + random.below(60);
        let (told, seen) = thread::scope(|scope| {
            let follower = {
                let request = request(&CHANNELS, view, &followed, 100);
                scope.spawn(move || read_until_cut(address, view, &request))
            };
            let writers: Vec<_> = (0..3)
                .map(|writer| {
                    let count = &count;
                    scope.spawn(move || write_until_cut(address, kill, writer, count))
                })
                .collect();
            while count.load(Ordering::Acquire) < enough {
                thread::yield_now();
            }
            program.kill();
            let told: Vec<_> = writers.into_iter().map(|writer| writer.join().unwrap()).collect();
            (told, follower.join().unwrap())
        });
        program = start(&options);
        let (found, last) = read_behind(program.address(), &CHANNELS, &behind);
        assert!(
            last > behind || behind == "earliest",
            "the cursor decreased: {behind}, then {last}"
        );
        assert!(found.is_sorted_by(|one, next| one.0 < next.0), "one order");
        for written in &told {
            let own: History =
                found.iter().filter(|message| written.contains(message)).cloned().collect();
            assert_eq!(&own, written, "acknowledged messages after kill {kill}");
        }
        let most: usize = told.iter().map(|written| written.len() + 1).sum();
        let kept = told.iter().map(Vec::len).sum::<usize>();
        assert!((kept..=most).contains(&found.len()), "messages are lost or duplicated");
        acknowledged += kept;
        recovered += found.len() - kept;
        owed.extend(found);
        assert!(owed.starts_with(&seen), "received across kill {kill}: {seen:?} of {owed:?}");
        if let Some((cursor, _)) = seen.last() {
            followed.clone_from(cursor);
        }
        owed.drain(..seen.len());
        behind = last;
    }
    println!(
        "{kills} kills under publishing: {acknowledged} messages of channels were acknowledged and are there, {recovered} more were kept"
    );
}

/// Publishes until the connection breaks. Returns the acknowledged messages.
fn write_until_cut(address: SocketAddr, kill: u64, writer: u64, count: &AtomicU64) -> History {
    let mut history = History::new();
    let Ok(mut stream) = TcpStream::connect(address) else { return history };
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    for number in 0.. {
        let words = [format!("{kill}-{writer}-{number}")];
        if stream.write_all(publication(&[], &words).as_bytes()).is_err() {
            break;
        }
        let Some(reply) = acknowledgment(&mut stream) else { break };
        history.extend(told(&reply, &words));
        count.fetch_add(1, Ordering::Release);
    }
    history
}

/// Reads a complete acknowledgment; `None` if the connection breaks.
fn acknowledgment(stream: &mut TcpStream) -> Option<String> {
    let (mut reply, mut piece) = (Vec::new(), [0; 4096]);
    while !reply.ends_with(b"]\n") {
        let count = stream.read(&mut piece).ok().filter(|count| *count > 0)?;
        reply.extend_from_slice(&piece[..count]);
    }
    let reply = String::from_utf8(reply).unwrap();
    assert!(reply.starts_with("HTTP/1.1 200 "), "{reply}");
    Some(reply)
}

/// Follows until the connection breaks. Returns the complete messages.
fn read_until_cut(address: SocketAddr, view: View, request: &str) -> History {
    let Ok(mut stream) = TcpStream::connect(address) else { return History::new() };
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    let mut bytes = Vec::new();
    // A broken connection ends the stream like any other end.
    let _ = stream.write_all(request.as_bytes()).and_then(|()| stream.read_to_end(&mut bytes));
    let (mut reader, mut history) = (Reader::new(view), History::new());
    let head = bytes.windows(4).position(|four| four == b"\r\n\r\n");
    let Some(mut rest) = head.map(|end| &bytes[end + 4..]) else { return history };
    while let Some(end) = rest.windows(2).position(|two| two == b"\r\n") {
        let size = usize::from_str_radix(std::str::from_utf8(&rest[..end]).unwrap(), 16).unwrap();
        let Some(chunk) = rest[end + 2..].get(..size) else { break };
        let messages = reader.read(chunk).into_iter();
        history.extend(messages.filter_map(|(cursor, word)| Some((cursor, word?))));
        let Some(next) = rest.get(end + 2 + size + 2..) else { break };
        rest = next;
    }
    history
}

/// A deterministic pseudo-random generator (Marsaglia's xorshift).
struct Random(u64);

impl Random {
    const fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1)
    }

    const fn below(&mut self, most: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % most
    }
}

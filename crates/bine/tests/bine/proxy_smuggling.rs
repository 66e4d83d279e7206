//! Requests that are mutated to be understood differently by the proxy and by its origin.
//!
//! The origin of this test parses by rules of its own, which allow one reading only. It must never see a
//! request that breaks them, and must see exactly the requests that the client gets answers to.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;

use crate::harness::PATIENCE;
use crate::proxy::start;

/// The number of mutated requests.
const CASES: u64 = 10_000;

/// Requests that are valid or nearly so. Each hides a second request, `/smuggled`, in its content.
const SEEDS: [&str; 8] = [
    "GET /a HTTP/1.1\r\nHost: a\r\n\r\n",
    "POST /b HTTP/1.1\r\nHost: a\r\nContent-Length: 37\r\n\r\nGET /smuggled HTTP/1.1\r\nHost: evil\r\n\r\n",
    "POST /c HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n25\r\nGET /smuggled HTTP/1.1\r\nHost: evil\r\n\r\n\r\n0\r\n\r\n",
    "POST /d HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nGET /smuggled HTTP/1.1\r\nHost: evil\r\n\r\n",
    "POST /e HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n\r\n0\r\n\r\nGET /smuggled HTTP/1.1\r\nHost: evil\r\n\r\n",
    "GET /f HTTP/1.1\r\nHost: a\r\nX: 1\r\n Content-Length: 37\r\n\r\nGET /smuggled HTTP/1.1\r\nHost: evil\r\n\r\n",
    "GET http://a/g?x=%0d%0aGET%20/smuggled HTTP/1.1\r\nHost: a\r\nConnection: Host, Content-Length\r\n\r\n",
    "PUT /h HTTP/1.0\r\nHost: a\r\nContent-Length: 3\r\n\r\nabc",
];

/// Parts that mutations insert.
const PARTS: [&str; 24] = [
    "\r\n",
    "\n",
    "\r",
    "\0",
    " ",
    "\t",
    ":",
    "\u{b}",
    "Content-Length: 37\r\n",
    "Content-Length: 0\r\n",
    "Content-Length: +3\r\n",
    "Content_Length: 37\r\n",
    "Transfer-Encoding: chunked\r\n",
    "Transfer-Encoding: \u{b}chunked\r\n",
    "Transfer-Encoding : chunked\r\n",
    "transfer-encoding: x\r\n",
    "Connection: close, Transfer-Encoding\r\n",
    "Expect: 100-continue\r\n",
    "Upgrade: h2c\r\nConnection: Upgrade\r\n",
    "0\r\n\r\n",
    "5;a=b\r\nhello\r\n",
    "HTTP/1.1",
    "GET /smuggled HTTP/1.1\r\nHost: evil\r\n\r\n",
    "%2e%2e/%00",
];

/// A sequence of numbers (Marsaglia, "Xorshift RNGs", 2003), the same in each run.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, end: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % end.max(1) as u64) as usize
    }
}

/// A seed with up to three mutations.
fn mutated(numbers: &mut Numbers) -> Vec<u8> {
    let mut bytes = SEEDS[numbers.below(SEEDS.len())].as_bytes().to_vec();
    for _ in 0..numbers.below(4) {
        let place = numbers.below(bytes.len() + 1);
        match numbers.below(5) {
            0 | 1 => {
                let part = PARTS[numbers.below(PARTS.len())].bytes();
                bytes.splice(place..place, part);
            }
            2 => {
                // A part at the start of a line, where it is most likely to be understood.
                let starts = bytes.windows(2).enumerate().filter(|(_, two)| *two == b"\r\n");
                let starts: Vec<_> = starts.map(|(at, _)| at + 2).collect();
                let place = starts.get(numbers.below(starts.len())).copied().unwrap_or(0);
                bytes.splice(place..place, PARTS[numbers.below(PARTS.len())].bytes());
            }
            3 => drop(bytes.drain(place..(place + 1 + numbers.below(4)).min(bytes.len()))),
            _ => {
                if let Some(byte) = bytes.get_mut(place) {
                    *byte = numbers.below(256) as u8;
                }
            }
        }
    }
    bytes
}

/// What the origin has received.
#[derive(Default)]
struct Log {
    /// Method, target and length of the content of each complete request.
    requests: Vec<String>,
    /// Requests that break the rules.
    faults: Vec<String>,
}

/// Serves a connection of the proxy. Each request is answered by its line of the log.
fn serve(socket: TcpStream, log: &Mutex<Log>) {
    let mut reader = BufReader::new(socket.try_clone().unwrap());
    let mut socket = socket;
    while let Some(request) = read_request(&mut reader) {
        let mut log = log.lock().unwrap();
        match request {
            Ok(line) => {
                log.requests.push(line.clone());
                drop(log);
                let length = line.len();
                let reply = format!("HTTP/1.1 200 OK\r\nContent-Length: {length}\r\n\r\n{line}");
                if socket.write_all(reply.as_bytes()).is_err() {
                    return;
                }
            }
            Err(fault) => return log.faults.push(fault),
        }
    }
}

/// Reads a request by strict rules; `None`: the connection has ended, also within a request.
fn read_request(reader: &mut BufReader<TcpStream>) -> Option<Result<String, String>> {
    let first = read_line(reader)?;
    let words: Vec<_> = first.split(' ').collect();
    let is_line = words.len() == 3
        && words[0].bytes().all(|byte| byte.is_ascii_uppercase())
        && words[1].starts_with('/')
        && words[1].bytes().all(|byte| byte.is_ascii_graphic())
        && words[2] == "HTTP/1.1";
    if !is_line {
        return Some(Err(format!("request line {first:?}")));
    }
    let (mut hosts, mut lengths, mut codings) = (0, Vec::new(), Vec::new());
    loop {
        let line = read_line(reader)?;
        if line.is_empty() {
            break;
        }
        let Some((name, value)) = line.split_once(": ") else {
            return Some(Err(format!("field {line:?}")));
        };
        let is_name = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^`|~".contains(&byte);
        if !name.bytes().all(is_name) || value.contains(|c: char| c.is_ascii_control() && c != '\t')
        {
            return Some(Err(format!("field {line:?}")));
        }
        match &*name.to_ascii_lowercase() {
            "host" => hosts += 1,
            "content-length" => lengths.push(value.to_owned()),
            "transfer-encoding" => codings.push(value.to_owned()),
            _ => {}
        }
    }
    if hosts != 1 || lengths.len() + codings.len() > 1 {
        return Some(Err(format!("{first:?} has {hosts} hosts, {lengths:?} and {codings:?}")));
    }
    let mut length = 0;
    if let Some(text) = lengths.first() {
        let is_number = text.bytes().all(|byte| byte.is_ascii_digit());
        let Some(number) = text.parse().ok().filter(|_| is_number) else {
            return Some(Err(format!("length {text:?}")));
        };
        length = number;
        reader.read_exact(&mut vec![0; length]).ok()?;
    } else if let Some(coding) = codings.first() {
        if coding != "chunked" {
            return Some(Err(format!("coding {coding:?}")));
        }
        loop {
            let line = read_line(reader)?;
            let Some(size) = usize::from_str_radix(&line, 16).ok() else {
                return Some(Err(format!("chunk size {line:?}")));
            };
            let mut chunk = vec![0; size];
            reader.read_exact(&mut chunk).ok()?;
            let end = read_line(reader)?;
            if !end.is_empty() {
                return Some(Err(format!("chunk end {end:?}")));
            }
            if size == 0 {
                break;
            }
            length += size;
        }
    }
    Some(Ok(format!("{} {} {length}", words[0], words[1])))
}

/// A line that ends with CRLF and has neither before, lossily decoded.
fn read_line(reader: &mut BufReader<TcpStream>) -> Option<String> {
    let mut line = Vec::new();
    reader.read_until(b'\n', &mut line).ok()?;
    let line = line.strip_suffix(b"\r\n")?;
    Some(line.iter().map(|byte| char::from(*byte)).collect())
}

/// The contents of the responses with status 200, in their order.
fn answered(mut bytes: &[u8]) -> Vec<String> {
    let mut found = Vec::new();
    while let Some(end) = bytes.windows(4).position(|four| four == b"\r\n\r\n") {
        let head = String::from_utf8_lossy(&bytes[..end]).into_owned();
        let field = head.lines().find_map(|line| line.strip_prefix("Content-Length: "));
        let length = field.map_or(0, |text| text.trim().parse().unwrap());
        let content = &bytes[end + 4..end + 4 + length];
        if head.starts_with("HTTP/1.1 200 ") {
            found.push(String::from_utf8(content.to_vec()).unwrap());
        }
        bytes = &bytes[end + 4 + length..];
    }
    assert!(bytes.is_empty(), "bytes without a head: {}", bytes.escape_ascii());
    found
}

#[test]
fn origin_understands_each_request_as_the_proxy_does() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let rule = format!("path=/ to=http://{}", listener.local_addr().unwrap());
    let log = Arc::new(Mutex::new(Log::default()));
    let seen = Arc::clone(&log);
    thread::spawn(move || {
        for socket in listener.incoming() {
            let (socket, seen) = (socket.unwrap(), Arc::clone(&seen));
            thread::spawn(move || serve(socket, &seen));
        }
    });
    let program = start(&["--proxy", &rule, "--unread-body", "1"]);
    let (mut numbers, mut forwarded) = (Numbers(0x2545_f491_4f6c_dd1d), 0);
    for case in 0..CASES {
        let request = mutated(&mut numbers);
        let before = log.lock().unwrap().requests.len();
        let mut socket = TcpStream::connect(program.address()).unwrap();
        socket.set_read_timeout(Some(PATIENCE)).unwrap();
        // The proxy may have rejected the first bytes and closed already.
        let _ = socket.write_all(&request);
        let _ = socket.shutdown(std::net::Shutdown::Write);
        let mut received = Vec::new();
        let _ = socket.read_to_end(&mut received);
        let answers = answered(&received);
        let log = log.lock().unwrap();
        let shown = request.escape_ascii();
        assert!(log.faults.is_empty(), "case {case}: {:?}: {shown}", log.faults);
        let requests = &log.requests[before..];
        assert_eq!(requests, answers, "case {case}: {shown}");
        forwarded += requests.len();
    }
    assert!(forwarded > CASES as usize / 5, "only {forwarded} requests were valid");
}

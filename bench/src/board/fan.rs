//! Updates of one row that is shown to many subscribers by server-sent events.

use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use rustix::buffer::spare_capacity;
use rustix::event::Timespec;
use rustix::event::epoll::{self, CreateFlags, EventData, EventFlags};
use rustix::io::Errno;

use crate::board::generator::Requests;
use crate::board::plan::{BoardCase, BoardServer};
use crate::board::record::BoardSample;
use crate::board::site::BoardSite;
use crate::live_page::stream_target;
use crate::peer::address;
use crate::tools::pause;

/// The row that all subscribers follow.
const ROW: u32 = 1;
/// Numbers of the updates begin above all random ones, so that no other text of a stream is one.
const FIRST_NUMBER: u64 = 1_000_000;
/// Updates before the first that counts.
const WARM_UP_POSTS: u64 = 5;
/// The time between two updates. A live page of Bine is rendered once in 16 to 40 ms while changes last, so
/// updates right after each other would wait for that.
const SPACING: Duration = Duration::from_millis(50);
/// The most updates of a sample.
const MOST_POSTS: u64 = 200;
/// An update must reach all subscribers within this time.
const PATIENCE: Duration = Duration::from_secs(20);
const EVENTS: usize = 512;

/// One stream.
struct Subscriber {
    stream: TcpStream,
    /// The bytes since the last update.
    received: Vec<u8>,
    has_update: bool,
}

struct Fan {
    epoll: OwnedFd,
    subscribers: Vec<Subscriber>,
    /// The connection of the updates.
    control: TcpStream,
    path: String,
    /// Microseconds from before an update is sent until a subscriber has read it.
    trips: Vec<f64>,
}

/// Measures at most `deliveries` of updates to `count` subscribers.
pub(super) fn measure(
    server: BoardServer,
    site: &BoardSite,
    count: u16,
    deliveries: u64,
) -> Result<BoardSample> {
    let mut fan = Fan::open(server, site.port, count)?;
    for number in 0..WARM_UP_POSTS {
        fan.post(FIRST_NUMBER + number)?;
    }
    fan.trips.clear();
    let posts = deliveries.div_ceil(u64::from(count)).min(MOST_POSTS);
    let (begun, before) = (Instant::now(), site.cpu()?);
    for number in 0..posts {
        pause(SPACING);
        fan.post(FIRST_NUMBER + WARM_UP_POSTS + number)?;
    }
    let (cpu, seconds) = (site.cpu()? - before, begun.elapsed().as_secs_f64());
    fan.trips.sort_unstable_by(f64::total_cmp);
    let made = fan.trips.len();
    ensure!(made as u64 == posts * u64::from(count), "{made} deliveries of {posts} updates");
    Ok(BoardSample {
        rate: made as f64 / seconds,
        cpu: 1e6 * cpu / made as f64,
        p50: fan.trips[made / 2],
        p99: fan.trips[made * 99 / 100],
        busy: 100.0 * cpu / seconds,
    })
}

impl Fan {
    /// Subscribes `count` times.
    fn open(server: BoardServer, port: u16, count: u16) -> Result<Self> {
        let mut control = connect(port)?;
        let target = match server {
            BoardServer::PocketBase => "/api/realtime".to_owned(),
            _ => stream_target(port, &format!("/live/{ROW}"))?,
        };
        let epoll = epoll::create(CreateFlags::CLOEXEC)?;
        let mut subscribers = Vec::with_capacity(usize::from(count));
        for number in 0..count {
            let mut stream = connect(port)?;
            let accept = "Accept: text/event-stream";
            write!(stream, "GET {target} HTTP/1.1\r\nHost: 127.0.0.1\r\n{accept}\r\n\r\n")?;
            if server == BoardServer::PocketBase {
                subscribe(&mut stream, &mut control)?;
            } else {
                read_until(&mut stream, |text| text.contains("\r\n\r\n"))?;
            }
            stream.set_nonblocking(true)?;
            epoll::add(&epoll, &stream, EventData::new_u64(u64::from(number)), EventFlags::IN)?;
            subscribers.push(Subscriber { stream, received: Vec::new(), has_update: true });
        }
        let path = Requests::of(server, BoardCase::Change).path_of(ROW);
        Ok(Self { epoll, subscribers, control, path, trips: Vec::new() })
    }

    /// Sends an update, and waits until all subscribers have it.
    fn post(&mut self, number: u64) -> Result<()> {
        for subscriber in &mut self.subscribers {
            subscriber.received.clear();
            subscriber.has_update = false;
        }
        let body = format!("{{\"randomNumber\":{number}}}");
        let posted = Instant::now();
        self.control.write_all(request("PATCH", &self.path, &body).as_bytes())?;
        let text = number.to_string();
        let mut left = self.subscribers.len();
        while left > 0 {
            left -= self.receive(text.as_bytes(), posted)?;
            ensure!(posted.elapsed() < PATIENCE, "{left} subscribers lack the update {number}");
        }
        read_until(&mut self.control, |reply| reply.contains(&text)).map(drop)
    }

    /// Reads what has arrived, and returns the number of subscribers that now have the update.
    fn receive(&mut self, text: &[u8], posted: Instant) -> Result<usize> {
        let mut events = Vec::with_capacity(EVENTS);
        let wait = Timespec::try_from(PATIENCE).context("a wait")?;
        match epoll::wait(&self.epoll, spare_capacity(&mut events), Some(&wait)) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => return Err(error).context("epoll"),
        }
        let mut count = 0;
        let mut chunk = [0; 4096];
        for event in events {
            let subscriber = &mut self.subscribers[event.data.u64() as usize];
            match subscriber.stream.read(&mut chunk) {
                Ok(0) => bail!("the server has closed a stream"),
                Ok(length) => subscriber.received.extend_from_slice(&chunk[..length]),
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                Err(error) => return Err(error.into()),
            }
            let mut windows = subscriber.received.windows(text.len());
            if !subscriber.has_update && windows.any(|window| window == text) {
                subscriber.has_update = true;
                count += 1;
                self.trips.push(posted.elapsed().as_secs_f64() * 1e6);
            }
        }
        Ok(count)
    }
}

/// Subscribes a stream of `PocketBase` to the row, by the id that the stream begins with.
fn subscribe(stream: &mut TcpStream, control: &mut TcpStream) -> Result<()> {
    let text = read_until(stream, |text| client_id(text).is_some())?;
    let client = client_id(&text).context("a stream without an id")?;
    let body = format!("{{\"clientId\":\"{client}\",\"subscriptions\":[\"world/{ROW:015}\"]}}");
    control.write_all(request("POST", "/api/realtime", &body).as_bytes())?;
    read_until(control, |reply| reply.contains("\r\n\r\n")).map(drop)
}

fn client_id(text: &str) -> Option<&str> {
    let (_, rest) = text.split_once("\"clientId\":\"")?;
    Some(rest.split_once('"')?.0)
}

fn connect(port: u16) -> Result<TcpStream> {
    let stream = TcpStream::connect(address(port))?;
    stream.set_nodelay(true)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    Ok(stream)
}

fn request(method: &str, path: &str, body: &str) -> String {
    let length = body.len();
    format!(
        "{method} {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n\
         Content-Length: {length}\r\n\r\n{body}"
    )
}

/// Reads until `is_complete`, from a blocking connection. The status must be one of success.
fn read_until(stream: &mut TcpStream, is_complete: impl Fn(&str) -> bool) -> Result<String> {
    let (mut text, mut chunk) = (String::new(), [0; 4096]);
    while !is_complete(&text) {
        let length = stream.read(&mut chunk).context("no response in time")?;
        ensure!(length > 0, "closed after `{text}`");
        text.push_str(&String::from_utf8_lossy(&chunk[..length]));
        ensure!(text.len() < 12 || text.starts_with("HTTP/1.1 2"), "the response is {text}");
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_the_id_of_a_stream_once_it_is_complete() {
        let text = "id:1\nevent:PB_CONNECT\ndata:{\"clientId\":\"aB3\"}\n\n";
        assert_eq!(client_id(text), Some("aB3"));
        assert_eq!(client_id(&text[..text.len() - 4]), None);
    }
}

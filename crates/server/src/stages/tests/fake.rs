//! The scripted client: a script determines its bytes, its room for output and the time. Records
//! the output as text.

use std::collections::VecDeque;
use std::io::Read;
use std::os::fd::BorrowedFd;
use std::rc::Rc;
use std::time::Duration;

use crate::system::Transfer;
use crate::time::{Clock, Tick};
use crate::transport::{Direction, Transport};

/// The next event outside the server.
#[derive(Clone, Debug)]
pub(super) enum ScriptStep {
    /// These bytes arrive at once.
    Bytes(Vec<u8>),
    /// These bytes arrive, followed by the end of the stream.
    Last(Vec<u8>),
    /// The client reads, so that this many more bytes can be sent.
    Room(usize),
    /// A pause.
    Wait(Duration),
    /// From here on a blocking call may take this much longer than its timeout, as on a socket.
    Late(Duration),
    /// A reply that is written elsewhere is finished.
    Finish,
    /// The server is asked to stop.
    Stop,
    /// The client closes the connection.
    Leave,
}

impl ScriptStep {
    fn bytes(&self) -> &[u8] {
        match self {
            Self::Bytes(bytes) | Self::Last(bytes) => bytes,
            _ => &[],
        }
    }
}

/// The client sends these bytes at once.
pub(super) fn sends(bytes: impl AsRef<[u8]>) -> ScriptStep {
    ScriptStep::Bytes(bytes.as_ref().to_vec())
}

/// A pause in milliseconds.
pub(super) const fn pause(milliseconds: u64) -> ScriptStep {
    ScriptStep::Wait(Duration::from_millis(milliseconds))
}

/// The server's end of a stream to a scripted client.
pub(super) struct FakeTransport<const BLOCKS: bool> {
    pub(super) script: VecDeque<ScriptStep>,
    pub(super) transcript: Transcript,
    clock: Rc<Clock>,
    /// Bytes that arrived and were not received yet, joined as a socket joins them.
    inbox: VecDeque<u8>,
    room: usize,
    ended: bool,
    gone: bool,
    timeout: Duration,
    late: Duration,
}

impl<const BLOCKS: bool> FakeTransport<BLOCKS> {
    pub(super) fn new(script: &[ScriptStep], clock: &Rc<Clock>) -> Self {
        // Without a `Room` step the client reads everything.
        let reads = !script.iter().any(|step| matches!(step, ScriptStep::Room(_)));
        // The concatenation finds a HEAD that is split over several steps.
        let said: Vec<u8> = script.iter().flat_map(ScriptStep::bytes).copied().collect();
        let has_head = said.windows(6).any(|bytes| bytes == b"HEAD /");
        Self {
            script: script.iter().cloned().collect(),
            transcript: Transcript::new(clock, has_head),
            clock: Rc::clone(clock),
            inbox: VecDeque::new(),
            room: if reads { usize::MAX } else { 0 },
            ended: false,
            gone: false,
            timeout: Duration::MAX,
            late: Duration::ZERO,
        }
    }

    pub(super) fn apply(&mut self, step: ScriptStep) {
        match step {
            ScriptStep::Bytes(bytes) => self.inbox.extend(bytes),
            ScriptStep::Last(bytes) => {
                self.inbox.extend(bytes);
                self.ended = true;
            }
            ScriptStep::Room(more) => self.room = self.room.saturating_add(more),
            ScriptStep::Leave => self.gone = true,
            ScriptStep::Late(late) => self.late = late,
            ScriptStep::Wait(_) | ScriptStep::Finish | ScriptStep::Stop => {}
        }
    }

    /// Runs the script for at most `left`. Returns false when that time is over.
    pub(super) fn pass(&mut self, left: &mut Duration) -> bool {
        match self.script.pop_front() {
            None => {
                self.clock.advance(*left);
                false
            }
            Some(ScriptStep::Wait(wait)) if wait >= *left => {
                self.clock.advance(*left);
                self.script.push_front(ScriptStep::Wait(wait.saturating_sub(*left)));
                false
            }
            Some(ScriptStep::Wait(wait)) => {
                self.clock.advance(wait);
                *left -= wait;
                true
            }
            Some(step) => {
                self.apply(step);
                true
            }
        }
    }

    /// Sends the bytes for which there is room.
    fn send_within_room(&mut self, bytes: &[u8], name: &str) -> Transfer {
        let mut left = self.timeout;
        loop {
            if self.gone {
                return Transfer::Broken;
            }
            let count = bytes.len().min(self.room);
            if count > 0 {
                self.room -= if self.room == usize::MAX { 0 } else { count };
                self.transcript.sent(&bytes[..count], name);
                return Transfer::Moved(count);
            }
            if !BLOCKS {
                return Transfer::Again;
            }
            if !self.pass(&mut left) {
                return Transfer::TimedOut;
            }
        }
    }
}

impl<const BLOCKS: bool> Transport for FakeTransport<BLOCKS> {
    const BLOCKS: bool = BLOCKS;

    fn receive(&mut self, space: &mut [u8]) -> Transfer {
        let mut left = self.timeout;
        loop {
            if self.gone {
                return Transfer::Broken;
            }
            if !self.inbox.is_empty() {
                let Ok(count) = self.inbox.read(space) else { unreachable!("memory can be read") };
                return Transfer::Moved(count);
            }
            if self.ended {
                return Transfer::Ended;
            }
            if !BLOCKS {
                return Transfer::Again;
            }
            if !self.pass(&mut left) {
                return Transfer::TimedOut;
            }
        }
    }

    fn receive_preface(
        &mut self,
        space: &mut [u8],
        kept: usize,
        part: impl FnOnce(&[u8]) -> usize,
    ) -> Transfer {
        match self.receive(&mut space[kept..]) {
            Transfer::Moved(count) => {
                let end = part(&space[..kept + count]);
                // The rest stays in the socket.
                space[end..kept + count].iter().rev().for_each(|byte| self.inbox.push_front(*byte));
                Transfer::Moved(end - kept)
            }
            other => other,
        }
    }

    fn send(&mut self, bytes: &[u8], _more: bool) -> Transfer {
        self.send_within_room(bytes, "")
    }

    fn send_file(&mut self, file: BorrowedFd<'_>, offset: u64, count: usize) -> Transfer {
        let mut bytes = vec![0; count];
        let read = rustix::io::pread(file, &mut bytes[..], offset).unwrap();
        assert_eq!(read, count, "the file has the announced length");
        self.send_within_room(&bytes, "file")
    }

    fn finish(&mut self) {
        self.transcript.record("finish");
    }

    fn wait_at_most(&mut self, _way: Direction, duration: Duration) {
        self.timeout = duration + self.late;
    }
}

/// The output that the client receives, in order: each reply by its status and content, and the
/// time after each change of the clock.
pub(super) struct Transcript {
    /// All bytes that were sent.
    pub(super) bytes: Vec<u8>,
    parts: Vec<String>,
    /// The start of the first incomplete reply. `None` if the script contains a HEAD, whose reply
    /// cannot be parsed without its request.
    unread: Option<usize>,
    clock: Rc<Clock>,
    last: Tick,
}

impl Transcript {
    fn new(clock: &Rc<Clock>, has_head: bool) -> Self {
        Self {
            bytes: Vec::new(),
            parts: Vec::new(),
            unread: (!has_head).then_some(0),
            clock: Rc::clone(clock),
            last: clock.now(),
        }
    }

    pub(super) fn text(&self) -> String {
        self.parts.join("; ")
    }

    pub(super) fn record(&mut self, what: &str) {
        let now = self.clock.now();
        let moved = now != self.last;
        self.last = now;
        let seconds = f64::from(now.milliseconds()) / 1000.0;
        self.parts.push(if moved { format!("{seconds}s: {what}") } else { what.to_owned() });
    }

    fn sent(&mut self, bytes: &[u8], name: &str) {
        self.bytes.extend_from_slice(bytes);
        let Some(unread) = &mut self.unread else { return };
        let mut seen = Vec::new();
        while let Some((text, length)) = whole_reply(&self.bytes[*unread..]) {
            *unread += length;
            seen.push(text);
        }
        if *unread < self.bytes.len() {
            let count = bytes.len().min(self.bytes.len() - *unread);
            seen.push(format!("{name}<{count}>"));
        }
        self.record(&seen.join(" + "));
    }
}

/// Parses the reply at the start of `bytes`, if it is complete. Returns its text and its length.
fn whole_reply(bytes: &[u8]) -> Option<(String, usize)> {
    let end = bytes.windows(4).position(|four| four == b"\r\n\r\n")? + 4;
    let head = std::str::from_utf8(&bytes[..end]).unwrap();
    let field =
        |name: &str| head.split("\r\n").find_map(|line| line.strip_prefix(name)).map(str::trim);
    let mut text = head[9..12].to_owned();
    let mut length = end;
    if let Some(count) = field("Content-Length:") {
        let count: usize = count.parse().unwrap();
        let content = bytes.get(end..end + count)?;
        length += count;
        text += &if count > 20 && head[9..12] == *"200" {
            format!(" <{count}>")
        } else if head[9..12] == *"200" {
            format!(" {}", String::from_utf8_lossy(content))
        } else {
            String::new()
        };
    } else if field("Transfer-Encoding:").is_some() {
        let mut count = 0;
        loop {
            let line = bytes[length..].windows(2).position(|two| two == b"\r\n")?;
            let size = std::str::from_utf8(&bytes[length..length + line]).unwrap();
            let size = usize::from_str_radix(size, 16).unwrap();
            length += line + 2 + size + 2;
            bytes.get(length - 1)?;
            count += size;
            if size == 0 {
                break;
            }
        }
        text += &format!(" chunks <{count}>");
    }
    if let Some(seconds) = field("Retry-After:") {
        text += &format!(" retry {seconds}");
    }
    if field("Connection:") == Some("close") {
        text += " close";
    }
    Some((text, length))
}

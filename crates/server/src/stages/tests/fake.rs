//! Decides what a made-up peer does: bytes, room to write and time come from a script, and what it
//! is sent is told as text.

use std::collections::VecDeque;
use std::io::Read;
use std::os::fd::BorrowedFd;
use std::rc::Rc;
use std::time::Duration;

use crate::system::Transfer;
use crate::time::{Clock, Tick};
use crate::transport::{Transport, Way};

/// What happens next outside of the server.
#[derive(Clone, Debug)]
pub(super) enum Step {
    /// These bytes arrive at once.
    Bytes(Vec<u8>),
    /// These bytes arrive, and with them the end of the stream.
    Last(Vec<u8>),
    /// The peer reads, so that so many bytes more can be sent.
    Room(usize),
    /// Nothing, for so long.
    Wait(Duration),
    /// From here on a call that waits may wait so much longer than it was told, as a socket's does.
    Late(Duration),
    /// The reply that is made elsewhere is there.
    Finish,
    /// The server is told to stop.
    Stop,
    /// The peer is gone.
    Leave,
}

impl Step {
    fn bytes(&self) -> &[u8] {
        match self {
            Self::Bytes(bytes) | Self::Last(bytes) => bytes,
            _ => &[],
        }
    }
}

/// These bytes arrive at once.
pub(super) fn says(bytes: impl AsRef<[u8]>) -> Step {
    Step::Bytes(bytes.as_ref().to_vec())
}

/// Nothing happens for so many milliseconds.
pub(super) const fn pauses(milliseconds: u64) -> Step {
    Step::Wait(Duration::from_millis(milliseconds))
}

/// The server's end of a stream to a scripted peer.
pub(super) struct Fake<const BLOCKS: bool> {
    pub(super) script: VecDeque<Step>,
    pub(super) told: Told,
    clock: Rc<Clock>,
    /// What arrived and was not received yet, joined as a socket joins it.
    inbox: VecDeque<u8>,
    room: usize,
    ended: bool,
    gone: bool,
    patience: Duration,
    late: Duration,
}

impl<const BLOCKS: bool> Fake<BLOCKS> {
    pub(super) fn new(script: &[Step], clock: &Rc<Clock>) -> Self {
        // A script that says nothing of room has a peer that reads everything.
        let reads = !script.iter().any(|step| matches!(step, Step::Room(_)));
        // Whatever pieces it arrives in.
        let said: Vec<u8> = script.iter().flat_map(Step::bytes).copied().collect();
        let heads = said.windows(6).any(|bytes| bytes == b"HEAD /");
        Self {
            script: script.iter().cloned().collect(),
            told: Told::new(clock, heads),
            clock: Rc::clone(clock),
            inbox: VecDeque::new(),
            room: if reads { usize::MAX } else { 0 },
            ended: false,
            gone: false,
            patience: Duration::MAX,
            late: Duration::ZERO,
        }
    }

    pub(super) fn apply(&mut self, step: Step) {
        match step {
            Step::Bytes(bytes) => self.inbox.extend(bytes),
            Step::Last(bytes) => {
                self.inbox.extend(bytes);
                self.ended = true;
            }
            Step::Room(more) => self.room = self.room.saturating_add(more),
            Step::Leave => self.gone = true,
            Step::Late(late) => self.late = late,
            Step::Wait(_) | Step::Finish | Step::Stop => {}
        }
    }

    /// Lets the script go on for `left` at most. False when that time is over.
    pub(super) fn pass(&mut self, left: &mut Duration) -> bool {
        match self.script.pop_front() {
            None => {
                self.clock.advance(*left);
                false
            }
            Some(Step::Wait(wait)) if wait >= *left => {
                self.clock.advance(*left);
                self.script.push_front(Step::Wait(wait.saturating_sub(*left)));
                false
            }
            Some(Step::Wait(wait)) => {
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

    /// Sends what there is room for. A piece counts as one however it is cut.
    fn send_within_room(&mut self, bytes: &[u8], name: &str) -> Transfer {
        let mut left = self.patience;
        loop {
            if self.gone {
                return Transfer::Broken;
            }
            let count = bytes.len().min(self.room);
            if count > 0 {
                self.room -= if self.room == usize::MAX { 0 } else { count };
                self.told.sent(&bytes[..count], name);
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

impl<const BLOCKS: bool> Transport for Fake<BLOCKS> {
    const BLOCKS: bool = BLOCKS;

    fn receive(&mut self, space: &mut [u8]) -> Transfer {
        let mut left = self.patience;
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

    fn send(&mut self, bytes: &[u8], _more: bool) -> Transfer {
        self.send_within_room(bytes, "")
    }

    fn send_file(&mut self, file: BorrowedFd<'_>, offset: u64, count: usize) -> Transfer {
        let mut bytes = vec![0; count];
        let read = rustix::io::pread(file, &mut bytes[..], offset).unwrap();
        assert_eq!(read, count, "a file is as long as was said");
        self.send_within_room(&bytes, "file")
    }

    fn finish(&mut self) {
        self.told.say("finish");
    }

    fn wait_at_most(&mut self, _way: Way, duration: Duration) {
        self.patience = duration + self.late;
    }
}

/// What the peer saw, in order: replies by status and content, a time wherever the clock moved.
pub(super) struct Told {
    /// Everything it was sent.
    pub(super) bytes: Vec<u8>,
    parts: Vec<String>,
    /// Where the first reply begins that is not whole yet; `None` when heads alone are asked for,
    /// which only the one who asked can tell apart.
    unread: Option<usize>,
    clock: Rc<Clock>,
    last: Tick,
}

impl Told {
    fn new(clock: &Rc<Clock>, heads: bool) -> Self {
        Self {
            bytes: Vec::new(),
            parts: Vec::new(),
            unread: (!heads).then_some(0),
            clock: Rc::clone(clock),
            last: clock.now(),
        }
    }

    pub(super) fn text(&self) -> String {
        self.parts.join("; ")
    }

    pub(super) fn say(&mut self, what: &str) {
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
        self.say(&seen.join(" + "));
    }
}

/// The reply that `bytes` begin with, if it is whole: as text, and its length.
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

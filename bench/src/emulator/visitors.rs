//! Runs thousands of visitors on one thread, each with its own socket.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Error, Result};
use rustix::buffer::spare_capacity;
use rustix::event::epoll::{self, CreateFlags, EventData, EventFlags};
use rustix::io::Errno;
use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, bind, connect, recv, send,
    socket_with, sockopt,
};
use rustls::ClientConfig;

use super::script::Script;
use super::secure::{SecureLink, SecureVisitors};
use super::session::Session;
use super::tally::Tally;
use super::{Arrivals, Run};

/// Loopback addresses of the visitors: one address has too few ports for all visitors of a minute.
const ADDRESSES: u64 = 32;
/// Bytes per read.
const BUFFER: usize = 256 << 10;
const EVENTS: usize = 256;

/// All active visitors.
struct Visitors<'run> {
    run: &'run Run,
    epoll: OwnedFd,
    places: Vec<Place>,
    free: Vec<usize>,
    timers: BinaryHeap<Reverse<(Duration, usize)>>,
    tally: Tally,
    begun: Instant,
    now: Duration,
    buffer: Vec<u8>,
    /// Decrypted bytes of one read.
    plain: Vec<u8>,
    /// `None`: visitors use no TLS.
    secure: Option<SecureVisitors>,
}

/// A slot for a visitor.
#[derive(Default)]
struct Place {
    session: Option<Session>,
    socket: Option<OwnedFd>,
    /// The TLS settings and tickets of the visitor, and the TLS state of the connection.
    tickets: Option<Arc<ClientConfig>>,
    link: Option<SecureLink>,
    /// Increases with each socket, to detect events of earlier ones.
    generation: u32,
    /// The earliest time in the heap.
    armed: Option<Duration>,
    /// The index of the visitor's address.
    address: u8,
}

/// Runs visitors until the end of the run. `script` creates the session of each.
pub(super) fn run(
    run: &Run,
    tally: Tally,
    script: &mut dyn FnMut(u64) -> Box<dyn Script>,
) -> Result<Tally> {
    let mut visitors = Visitors {
        run,
        epoll: epoll::create(CreateFlags::CLOEXEC)?,
        places: Vec::new(),
        free: Vec::new(),
        timers: BinaryHeap::new(),
        tally,
        begun: Instant::now(),
        now: Duration::ZERO,
        buffer: vec![0; BUFFER],
        plain: Vec::new(),
        secure: run.is_secure.then(SecureVisitors::new).transpose()?,
    };
    let mut arrivals = Arrivals::new(&run.load, run.seed);
    let mut number = 0;
    let mut next = arrivals.next();
    let mut events = Vec::with_capacity(EVENTS);
    let end = run.end();
    loop {
        visitors.now = visitors.begun.elapsed();
        // Before the check of the end: on a busy machine, all due visitors still arrive.
        while let Some(due) = next.take_if(|at| *at <= visitors.now) {
            visitors.tally.on_arrival(visitors.now, visitors.now.saturating_sub(due));
            visitors.arrive(number, script);
            number += 1;
            next = arrivals.next();
        }
        if visitors.now >= end {
            break;
        }
        visitors.pass_time();
        let timer = visitors.timers.peek().map(|Reverse((at, _))| *at);
        let until = [timer, next].into_iter().flatten().fold(end, Duration::min);
        let wait = until.saturating_sub(visitors.begun.elapsed());
        let wait = rustix::event::Timespec::try_from(wait).context("a wait")?;
        match epoll::wait(&visitors.epoll, spare_capacity(&mut events), Some(&wait)) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => return Err(error).context("epoll"),
        }
        visitors.now = visitors.begun.elapsed();
        for event in events.drain(..) {
            let (data, flags) = (event.data.u64(), event.flags);
            visitors.on_event((data >> 32) as usize, data as u32, flags);
        }
    }
    Ok(visitors.finish())
}

impl Visitors<'_> {
    fn arrive(&mut self, number: u64, script: &mut dyn FnMut(u64) -> Box<dyn Script>) {
        // Visitors without a socket also get a script, or all later sessions would differ.
        let script = script(number);
        let is_full = self.free.is_empty() && self.places.len() >= self.run.sockets;
        self.tally.on_begun(self.now, !is_full);
        if is_full {
            return;
        }
        let at = self.free.pop().unwrap_or_else(|| {
            self.places.push(Place::default());
            self.places.len() - 1
        });
        let place = &mut self.places[at];
        place.session = Some(Session::new(script, self.run.patience, self.now));
        place.tickets = self.secure.as_ref().map(SecureVisitors::visitor);
        place.armed = None;
        place.address = (number % ADDRESSES) as u8;
        self.settle(at);
    }

    fn pass_time(&mut self) {
        while let Some(Reverse((at, place))) = self.timers.peek().copied() {
            if at > self.now {
                return;
            }
            self.timers.pop();
            let slot = &mut self.places[place];
            if slot.armed == Some(at) {
                slot.armed = None;
            }
            if let Some(session) = &mut slot.session {
                session.on_time(self.now, &mut self.tally);
                self.settle(place);
            }
        }
    }

    fn on_event(&mut self, at: usize, generation: u32, flags: EventFlags) {
        let place = &mut self.places[at];
        if place.generation != generation {
            return;
        }
        let (Some(session), Some(socket)) = (&mut place.session, &place.socket) else { return };
        let mut is_closed = false;
        if flags.contains(EventFlags::OUT) {
            match sockopt::socket_error(socket) {
                Ok(Ok(())) => session.on_open(),
                _ => is_closed = true,
            }
        }
        let came = EventFlags::IN | EventFlags::RDHUP | EventFlags::HUP | EventFlags::ERR;
        while !is_closed && flags.intersects(came) && session.ended().is_none() {
            match recv(socket, &mut self.buffer[..], RecvFlags::empty()) {
                Ok((0, _)) => is_closed = true,
                Ok((count, _)) => {
                    let bytes = &self.buffer[..count];
                    let Some(link) = &mut place.link else {
                        session.on_bytes(bytes, self.now, &mut self.tally);
                        continue;
                    };
                    self.plain.clear();
                    match link.receive(bytes, &mut self.plain) {
                        Ok(has_closed) => is_closed = has_closed,
                        Err(error) => {
                            self.tally.record_error(&format!("TLS: {error}"));
                            is_closed = true;
                        }
                    }
                    if let Some(is_resumed) = link.finished() {
                        self.tally.on_handshake(self.now, is_resumed);
                    }
                    session.on_bytes(&self.plain, self.now, &mut self.tally);
                }
                Err(Errno::AGAIN) => break,
                Err(Errno::INTR) => {}
                Err(_) => is_closed = true,
            }
        }
        if is_closed {
            (place.socket, place.link) = (None, None);
            session.on_closed(self.now, &mut self.tally);
        }
        self.settle(at);
    }

    /// Performs the visitor's next actions.
    fn settle(&mut self, at: usize) {
        let place = &mut self.places[at];
        let Some(session) = &mut place.session else { return };
        if session.ended().is_none() {
            if session.is_unlinked() {
                (place.socket, place.link) = (None, None);
            }
            if session.wants_connection(self.now) {
                place.generation = place.generation.wrapping_add(1);
                let data = (at as u64) << 32 | u64::from(place.generation);
                session.on_opening();
                let opened = open(&self.epoll, self.run.port, place.address, data);
                let link = place.tickets.as_ref().map(SecureLink::new).transpose();
                match opened.map_err(Error::from).and_then(|socket| Ok((socket, link?))) {
                    Ok((socket, link)) => (place.socket, place.link) = (Some(socket), link),
                    Err(error) => {
                        self.tally.record_error(&format!("a connection: {error}"));
                        session.on_closed(self.now, &mut self.tally);
                    }
                }
            }
            match (&place.socket, &mut place.link) {
                (Some(socket), Some(link)) => {
                    let count = link.write(session.unsent());
                    session.on_sent(count);
                    link.flush(socket);
                }
                (Some(socket), None) if !session.unsent().is_empty() => {
                    // The rest is sent when there is space; an error shows up in the next read.
                    if let Ok(count) = send(socket, session.unsent(), SendFlags::NOSIGNAL) {
                        session.on_sent(count);
                    }
                }
                _ => {}
            }
        }
        if let Some(end) = session.ended() {
            self.tally.on_ended(self.now, session, Some(end));
            (place.socket, place.link) = (None, None);
            place.session = None;
            self.free.push(at);
            return;
        }
        if let Some(deadline) = session.deadline()
            && place.armed.is_none_or(|armed| deadline < armed)
        {
            place.armed = Some(deadline);
            self.timers.push(Reverse((deadline, at)));
        }
    }

    fn finish(mut self) -> Tally {
        for session in self.places.iter().filter_map(|place| place.session.as_ref()) {
            self.tally.on_ended(self.now, session, None);
        }
        self.tally
    }
}

/// Opens a socket and starts to connect it.
fn open(epoll: &OwnedFd, port: u16, address: u8, data: u64) -> rustix::io::Result<OwnedFd> {
    let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
    let socket = socket_with(AddressFamily::INET, SocketType::STREAM, flags, None)?;
    sockopt::set_tcp_nodelay(&socket, true)?;
    sockopt::set_socket_reuseaddr(&socket, true)?;
    bind(&socket, &SocketAddrV4::new(Ipv4Addr::new(127, 0, 1, address), 0))?;
    let events = EventFlags::IN | EventFlags::OUT | EventFlags::RDHUP | EventFlags::ET;
    epoll::add(epoll, &socket, EventData::new_u64(data), events)?;
    match connect(&socket, &SocketAddrV4::new(Ipv4Addr::LOCALHOST, port)) {
        Ok(()) | Err(Errno::INPROGRESS) => Ok(socket),
        Err(error) => Err(error),
    }
}

//! Decides how one thread holds one connection from accept to close, blocking wherever the peer
//! lets it wait: what every scheduler with a thread per connection is made of.

use std::io;
use std::os::fd::{AsFd, AsRawFd};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, PoisonError};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use rustix::net::SocketFlags;
use rustix::time::Timespec;

use crate::connection::{Connection, Context, Errand, Phase};
use crate::handler::{Finished, LaterReply, Retained};
use crate::link::{Blocking, is_exhaustion};
use crate::log;
use crate::server::{Server, State, Station};
use crate::stages::{self, Kind, Next};

/// One thread's means to hold connections, one after the other.
pub(crate) struct Conversations<'s> {
    server: &'s Arc<Server>,
    station: Arc<Station>,
    context: Context,
}

/// How long a thread waits before it tries again to accept when descriptors have run out.
const PAUSE: Timespec = Timespec { tv_sec: 0, tv_nsec: 100_000_000 };

impl<'s> Conversations<'s> {
    pub(crate) fn new(server: &'s Arc<Server>) -> Self {
        let station = Arc::new(Station::default());
        server.stations.lock().unwrap_or_else(PoisonError::into_inner).push(Arc::clone(&station));
        Self { server, station, context: server.context() }
    }

    /// The next connection; `None` when the server stops.
    pub(crate) fn accept(&mut self) -> io::Result<Option<Connection<Blocking>>> {
        let listeners = &self.server.listeners;
        let mut wanted: Vec<PollFd<'_>> =
            listeners.iter().map(|listener| PollFd::new(listener, PollFlags::IN)).collect();
        let bell = self.server.stop_bell();
        wanted.push(PollFd::new(&bell, PollFlags::IN));
        loop {
            match poll(&mut wanted, None) {
                Ok(_) => {}
                Err(Errno::INTR) => continue,
                Err(error) => return Err(error.into()),
            }
            if self.server.state() != State::Serving {
                return Ok(None);
            }
            for (listener, ready) in listeners.iter().zip(&wanted) {
                if ready.revents().is_empty() {
                    continue;
                }
                // Another thread may have been quicker: the listener itself never blocks.
                match listener.accept(SocketFlags::empty()) {
                    Ok((socket, peer)) if self.server.census.enter(peer).is_ok() => {
                        self.context.clock.turn();
                        let link = Blocking::new(socket);
                        return Ok(Some(Connection::new(link, peer, &self.context)));
                    }
                    Err(error) if is_exhaustion(&error) => {
                        log::warn(format_args!("no descriptor for another connection; pausing"));
                        let mut bell = [PollFd::new(&bell, PollFlags::IN)];
                        let _ = poll(&mut bell, Some(&PAUSE));
                    }
                    // Full, and the socket closes as it goes; or one that failed on its way.
                    Ok(_) | Err(_) => {}
                }
            }
        }
    }

    /// Holds `connection` until it is over.
    pub(crate) fn hold(&mut self, mut connection: Connection<Blocking>) {
        let peer = connection.peer;
        // A fault of ours costs this connection and no other.
        let ended = catch_unwind(AssertUnwindSafe(|| self.converse(&mut connection)));
        self.wait_on(None);
        drop(connection);
        if ended.is_err() {
            log::error(format_args!("a connection was closed by a fault of the server"));
            self.context = self.server.context();
        }
        self.context.output.clear();
        self.context.access.flush();
        self.server.census.leave(peer);
    }

    fn converse(&mut self, connection: &mut Connection<Blocking>) {
        // A handler's first poll is in place, and may make timers and sockets there already.
        let background = self.server.background().map(tokio::runtime::Handle::enter);
        if let Err(error) = &background {
            log::error(format_args!("no runtime for handlers that await: {error}"));
        }
        self.context.take_up(connection);
        let mut next = Next::Request;
        loop {
            self.context.stopping = self.server.state() != State::Serving;
            if self.server.state() == State::Over {
                return;
            }
            next = match next {
                Next::Request => self.await_request(connection),
                Next::Response(Kind::Static) => stages::response(connection, &mut self.context),
                Next::Response(Kind::Dynamic) => stages::dynamic(connection, &mut self.context),
                Next::Reply => stages::reply(connection, &mut self.context),
                Next::Park => self.await_handler(connection),
                Next::Idle => {
                    self.context.take_up(connection);
                    if connection.has_unsent() { Next::Reply } else { Next::Request }
                }
                Next::Closed => return,
            };
        }
    }

    fn await_request(&mut self, connection: &mut Connection<Blocking>) -> Next {
        let between = self.context.input.is_empty()
            && matches!(connection.phase, Phase::First | Phase::Idle)
            && connection.machine.phase() == bine_http::Phase::Head;
        if !between {
            return stages::request(connection, &mut self.context);
        }
        self.context.access.flush();
        self.wait_on(Some(connection));
        // Stopping may have begun before this wait was known; then nobody will end it.
        if self.server.state() != State::Serving {
            self.station.wake();
        }
        let next = stages::request(connection, &mut self.context);
        self.wait_on(None);
        next
    }

    fn wait_on(&self, connection: Option<&Connection<Blocking>>) {
        let descriptor = connection.map(|connection| connection.link.as_fd().as_raw_fd());
        *self.station.waiting_on.lock().unwrap_or_else(PoisonError::into_inner) = descriptor;
    }

    fn await_handler(&mut self, connection: &mut Connection<Blocking>) -> Next {
        let Some(Errand::Later(reply, request)) = self.context.errand.take() else {
            return Next::Closed;
        };
        if let Some(mut finished) = self.await_reply(reply) {
            return self.deliver(connection, &mut finished, request.as_deref());
        }
        connection.phase = Phase::Handler;
        stages::expire(connection, &mut self.context)
    }

    fn deliver(
        &mut self,
        connection: &mut Connection<Blocking>,
        finished: &mut Finished,
        request: Option<&Retained>,
    ) -> Next {
        self.context.clock.turn();
        // Earlier replies of a pipeline stand in the buffer: they go first.
        let mut earlier = std::mem::take(&mut self.context.output);
        if !earlier.is_empty() {
            earlier.extend_from_slice(&finished.bytes);
            finished.bytes = earlier;
        }
        stages::finished(connection, &mut self.context, finished, request)
    }

    /// `None`: not in time.
    fn await_reply(&self, reply: LaterReply) -> Option<Finished> {
        let limit = self.server.settings.timeouts.handler;
        let name = self.context.responder.last();
        let awaited = catch_unwind(AssertUnwindSafe(|| {
            let background = self.server.background()?;
            // The timer must be made where the runtime is known, inside.
            Ok::<_, io::Error>(
                background.block_on(async { tokio::time::timeout(limit, reply).await }),
            )
        }));
        match awaited {
            Ok(Ok(Ok(finished))) => Some(finished),
            Ok(Ok(Err(_late))) => None,
            Ok(Err(error)) => {
                log::error(format_args!("{name} cannot be awaited: {error}"));
                Some(stages::failed(&self.context.clock))
            }
            Err(_) => {
                log::error(format_args!("{name} panicked; its peer got a 500"));
                Some(stages::failed(&self.context.clock))
            }
        }
    }
}

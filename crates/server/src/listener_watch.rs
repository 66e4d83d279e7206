//! The epoll instance by which threads that block wait for connections.

use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::time::Duration;

use rustix::event::epoll::{self, CreateFlags, EventData, EventFlags};
use rustix::io::Errno;
use rustix::time::Timespec;

use crate::listener::Listener;

/// The event of a new connection disables its listener until [`Disabled`] is dropped: otherwise the
/// kernel would wake one more thread until the first one has accepted.
const ONE_EVENT: EventFlags = EventFlags::IN.union(EventFlags::ONESHOT);
/// Event data of descriptors that are not listeners.
const INTERRUPT: u64 = u64::MAX;

/// Waits for connections at the listeners of one generation. All threads share one, so that a thread
/// needs no descriptor of its own to wait, and the kernel wakes one of them for each connection.
pub(crate) struct ListenerWatch(OwnedFd);

/// A listener that wakes no thread. When this is dropped, the next connection wakes one, or a
/// connection that is pending already.
pub(crate) struct Disabled<'watch> {
    watch: &'watch ListenerWatch,
    listener: &'watch Listener,
    number: usize,
}

/// The reason why a wait ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum WaitOutcome {
    /// A connection may be pending at the listener with this number.
    Pending(usize),
    /// A descriptor of `interrupts` is readable.
    Interrupted,
    TimedOut,
}

impl ListenerWatch {
    /// Watches `listeners`, whose numbers are their places. A readable descriptor of `interrupts` ends
    /// the waits of all threads.
    pub(crate) fn new(
        listeners: &[Arc<Listener>],
        interrupts: [BorrowedFd<'_>; 2],
    ) -> io::Result<Self> {
        let watch = Self(epoll::create(CreateFlags::CLOEXEC)?);
        for interrupt in interrupts {
            let data = EventData::new_u64(INTERRUPT);
            epoll::add(&watch.0, interrupt, data, EventFlags::IN)?;
        }
        for (number, listener) in listeners.iter().enumerate() {
            epoll::add(&watch.0, &**listener, EventData::new_u64(number as u64), ONE_EVENT)?;
        }
        Ok(watch)
    }

    /// Waits for an event, for at most `wait`.
    pub(crate) fn wait(&self, wait: Option<Duration>) -> io::Result<WaitOutcome> {
        let wait = wait.and_then(|wait| Timespec::try_from(wait).ok());
        // Room for one event: a second one would disable its listener for a thread that cannot know.
        let mut space = [MaybeUninit::uninit()];
        let event = loop {
            match epoll::wait(&self.0, &mut space, wait.as_ref()) {
                Ok((events, _)) => break events.first(),
                Err(Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        };
        Ok(match event.map(|event| event.data.u64()) {
            None => WaitOutcome::TimedOut,
            Some(INTERRUPT) => WaitOutcome::Interrupted,
            Some(number) => WaitOutcome::Pending(number as usize),
        })
    }

    /// The listener of a [`WaitOutcome::Pending`], until the caller has accepted.
    pub(crate) const fn disabled<'watch>(
        &'watch self,
        listener: &'watch Listener,
        number: usize,
    ) -> Disabled<'watch> {
        Disabled { watch: self, listener, number }
    }
}

impl Drop for Disabled<'_> {
    fn drop(&mut self) {
        let data = EventData::new_u64(self.number as u64);
        // Cannot fail: the listener was registered by `new` and is still open.
        let _ = epoll::modify(&self.watch.0, self.listener, data, ONE_EVENT);
    }
}

#[cfg(test)]
mod tests {
    use std::net::TcpStream;
    use std::os::fd::AsFd;

    use rustix::net::SocketFlags;

    use super::*;
    use crate::address::Address;
    use crate::settings::Listen;
    use crate::system::event_counter;

    struct Fixture {
        listeners: [Arc<Listener>; 2],
        interrupt: OwnedFd,
        watch: ListenerWatch,
    }

    impl Fixture {
        fn new() -> Self {
            let listen = Listen::on("127.0.0.1:0".parse().unwrap());
            let open = || Arc::new(Listener::open(&listen, &Arc::default()).unwrap());
            let (listeners, interrupt) = ([open(), open()], event_counter().unwrap());
            let other = event_counter().unwrap();
            let watch = ListenerWatch::new(&listeners, [interrupt.as_fd(), other.as_fd()]).unwrap();
            Self { listeners, interrupt, watch }
        }

        fn connect(&self, number: usize) -> TcpStream {
            let Address::Tcp(address) = self.listeners[number].address() else { unreachable!() };
            TcpStream::connect(address).unwrap()
        }

        fn now(&self) -> WaitOutcome {
            self.watch.wait(Some(Duration::ZERO)).unwrap()
        }

        /// The outcome of a wait that must end.
        fn wait(&self) -> WaitOutcome {
            self.watch.wait(None).unwrap()
        }

        fn accept(&self, number: usize) -> OwnedFd {
            let listener = &self.listeners[number];
            let _disabled = self.watch.disabled(listener, number);
            listener.accept(SocketFlags::empty()).unwrap().0
        }
    }

    #[test]
    fn reports_each_pending_connection_to_one_thread() {
        let fixture = Fixture::new();
        assert_eq!(fixture.now(), WaitOutcome::TimedOut);
        let clients = [fixture.connect(1), fixture.connect(1)];
        assert_eq!(fixture.wait(), WaitOutcome::Pending(1));
        // The second thread is not woken before the first one has accepted.
        assert_eq!(fixture.now(), WaitOutcome::TimedOut);
        let first = fixture.accept(1);
        assert_eq!(fixture.wait(), WaitOutcome::Pending(1), "the second connection is pending");
        let second = fixture.accept(1);
        assert_eq!(fixture.now(), WaitOutcome::TimedOut);
        let third = fixture.connect(1);
        assert_eq!(fixture.wait(), WaitOutcome::Pending(1));
        drop((clients, first, second, third));
    }

    #[test]
    fn reports_another_listener_while_one_is_disabled() {
        let fixture = Fixture::new();
        let first = fixture.connect(0);
        assert_eq!(fixture.wait(), WaitOutcome::Pending(0));
        let second = fixture.connect(1);
        assert_eq!(fixture.wait(), WaitOutcome::Pending(1));
        drop((first, second));
    }

    #[test]
    fn ends_the_waits_of_all_threads_at_an_interrupt() {
        let fixture = Fixture::new();
        std::thread::scope(|scope| {
            let threads = [(); 4].map(|()| scope.spawn(|| fixture.watch.wait(None).unwrap()));
            rustix::io::write(&fixture.interrupt, &1u64.to_ne_bytes()).unwrap();
            let outcomes = threads.map(|thread| thread.join().unwrap());
            assert_eq!(outcomes, [WaitOutcome::Interrupted; 4]);
        });
    }
}

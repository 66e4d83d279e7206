//! A TCP relay between a node and the NATS server, which can withhold what the server sends.

use std::io::{Read as _, Write as _};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::thread;

/// A running relay. It ends when it is dropped.
pub(crate) struct Relay {
    address: SocketAddr,
    state: Arc<RelayState>,
}

#[derive(Default)]
struct RelayState {
    is_paused: Mutex<bool>,
    changed: Condvar,
    is_over: AtomicBool,
    streams: Mutex<Vec<TcpStream>>,
}

impl Relay {
    /// Relays connections to a server on this port.
    pub(crate) fn start(port: u16) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let (address, state) = (listener.local_addr().unwrap(), Arc::<RelayState>::default());
        let own = Arc::clone(&state);
        thread::spawn(move || {
            for node in listener.incoming().map_while(Result::ok) {
                if own.is_over.load(Ordering::SeqCst) {
                    return;
                }
                // Without a server, the node sees a closed connection.
                if let Ok(server) = TcpStream::connect(("127.0.0.1", port)) {
                    own.connect(&node, &server);
                }
            }
        });
        Self { address, state }
    }

    pub(crate) fn url(&self) -> String {
        format!("nats://{}", self.address)
    }

    /// Withholds what the server sends from now on.
    pub(crate) fn pause(&self) {
        *self.state.is_paused.lock().unwrap() = true;
    }

    /// Passes on what was withheld, and what follows.
    pub(crate) fn resume(&self) {
        *self.state.is_paused.lock().unwrap() = false;
        self.state.changed.notify_all();
    }
}

impl RelayState {
    fn connect(self: &Arc<Self>, node: &TcpStream, server: &TcpStream) {
        for stream in [node, server] {
            stream.set_nodelay(true).unwrap();
            self.streams.lock().unwrap().push(stream.try_clone().unwrap());
        }
        for (from, to, is_delivery) in [(node, server, false), (server, node, true)] {
            let (own, from, to) =
                (Arc::clone(self), from.try_clone().unwrap(), to.try_clone().unwrap());
            thread::spawn(move || own.copy(from, to, is_delivery));
        }
    }

    fn copy(&self, mut from: TcpStream, mut to: TcpStream, is_delivery: bool) {
        let mut bytes = [0; 16 << 10];
        while let Ok(count @ 1..) = from.read(&mut bytes) {
            if is_delivery {
                let paused = self.is_paused.lock().unwrap();
                drop(self.changed.wait_while(paused, |is_paused| *is_paused).unwrap());
            }
            if to.write_all(&bytes[..count]).is_err() {
                break;
            }
        }
        // The other side may have closed it.
        let _ = to.shutdown(Shutdown::Write);
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        self.state.is_over.store(true, Ordering::SeqCst);
        self.resume();
        for stream in self.state.streams.lock().unwrap().drain(..) {
            // It may be closed.
            let _ = stream.shutdown(Shutdown::Both);
        }
        // Ends the thread that accepts.
        drop(TcpStream::connect(self.address));
    }
}

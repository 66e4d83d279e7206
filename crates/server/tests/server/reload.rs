//! Tests of new settings in a running server.

use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use bine_http::{Head, Reply, Status};
use bine_server::{
    Address, Answer, Clock, Handler, HandlerContext, Identity, Incoming, Listen, Outgoing,
    Responder, Settings,
};

use crate::house::{AT_ONCE, House, SCHEDULERS, settings, unix};
use crate::peer::Peer;

/// Answers every request with its number, and counts its live parts.
struct Numbered {
    number: usize,
    parts: Arc<AtomicUsize>,
}

struct Part {
    number: usize,
    clock: Rc<Clock>,
    parts: Arc<AtomicUsize>,
}

impl Handler for Numbered {
    fn local(&self, handler_context: HandlerContext) -> Box<dyn Responder> {
        self.parts.fetch_add(1, Ordering::SeqCst);
        let parts = Arc::clone(&self.parts);
        Box::new(Part { number: self.number, clock: handler_context.clock, parts })
    }
}

impl Responder for Part {
    fn identify(&mut self, _head: &Head<'_>, _peer: bine_server::ClientAddress) -> Identity {
        Identity::Anonymous
    }

    fn respond(&mut self, request: &Incoming<'_>, out: &mut Outgoing<'_>) -> Answer {
        let text = self.number.to_string();
        let date = self.clock.date();
        Reply::begin(out.buffer, request.exchange, Status::OK, &date).whole(text.as_bytes());
        Answer::Written { close: false }
    }

    fn last(&self) -> &'static str {
        "numbered"
    }
}

impl Drop for Part {
    fn drop(&mut self) {
        self.parts.fetch_sub(1, Ordering::SeqCst);
    }
}

fn numbered(number: usize, parts: &Arc<AtomicUsize>) -> Arc<Numbered> {
    Arc::new(Numbered { number, parts: Arc::clone(parts) })
}

#[test]
fn applies_new_settings_to_new_connections_only() {
    for scheduler in AT_ONCE {
        let house = House::open(scheduler);
        let parts = Arc::default();
        let mut old = house.connect();
        assert_eq!(old.ask("/"), "200 hello");
        let mut changed = settings(scheduler);
        changed.limits.target = 30;
        house.server.replace(changed, numbered(1, &parts), None).unwrap();
        let mut new = house.connect();
        assert_eq!(new.ask("/"), "200 1", "{scheduler}");
        let long = format!("/{}", "x".repeat(60));
        assert_eq!(old.ask(&long), "200 hello", "{scheduler}");
        assert_eq!(new.ask(&long), "414 close", "{scheduler}");
        assert_eq!(old.ask("/"), "200 hello", "{scheduler}");
    }
}

/// A client that has sent half of a request at the reload gets the old response. A longer head
/// under the new settings keeps the bytes already received.
#[test]
fn keeps_a_partly_received_head_across_a_reload() {
    for scheduler in AT_ONCE {
        let house = House::open(scheduler);
        let parts = Arc::default();
        let mut old = house.connect();
        old.send("GET / HTTP/1.1\r\nHo");
        let mut changed = settings(scheduler);
        changed.limits.head = 1 << 20;
        house.server.replace(changed, numbered(1, &parts), None).unwrap();
        let mut new = house.connect();
        assert_eq!(new.ask("/"), "200 1", "{scheduler}");
        old.send("st: a\r\n\r\n");
        // The client cannot know whether the server accepted it before the reload.
        let reply = old.reply().to_string();
        assert!(["200 hello", "200 1"].contains(&&*reply), "{scheduler}: {reply}");
    }
}

#[test]
fn reloads_a_hundred_times_under_load_without_failures_or_leaks() {
    for scheduler in AT_ONCE {
        // With a thread per connection this is one thread each. With fewer, idle connections are
        // closed for new ones.
        let workers = 8;
        let few = Settings { loops: 2, workers, ..settings(scheduler) };
        let house = House::with(few.clone());
        let parts = Arc::new(AtomicUsize::new(0));
        let address = house.address();
        let over = AtomicBool::new(false);
        thread::scope(|scope| {
            scope.spawn(|| talk(&address, true, &over));
            scope.spawn(|| talk(&address, false, &over));
            let _over = Over(&over);
            for number in 0..100 {
                let next = numbered(number, &parts);
                house.server.replace(few.clone(), next, None).unwrap();
                let mut peer = house.connect();
                assert_eq!(peer.ask("/"), format!("200 {number}"), "{scheduler}");
                leave(peer);
            }
        });
        // The newest part remains, once per thread. A thread notices the end of a connection with a
        // delay, so the test waits for the last of the old parts.
        let most = match scheduler {
            "pool" | "accept-many" => workers,
            // The accepting thread also answers, when requests wait too long.
            "queue" => workers + 1,
            _ => 2,
        };
        let deadline = std::time::Instant::now() + crate::PATIENCE;
        while parts.load(Ordering::SeqCst) > most {
            assert!(std::time::Instant::now() < deadline, "{scheduler}: {parts:?} are left");
            let _ = house.connect().ask("/");
        }
    }
}

/// Sets the flag on drop, also after a failure, because a scope waits for its threads.
struct Over<'o>(&'o AtomicBool);

impl Drop for Over<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::SeqCst);
    }
}

/// Sends requests until `over`, over one connection or a new one each time.
fn talk(address: &Address, kept: bool, over: &AtomicBool) {
    let connect = || Peer::connect(address).unwrap();
    let mut peer = connect();
    while !over.load(Ordering::SeqCst) {
        assert!(peer.ask("/").starts_with("200 "));
        if !kept {
            leave(std::mem::replace(&mut peer, connect()));
        }
    }
}

/// Closes the sending side and waits until the server has closed the connection.
fn leave(mut peer: Peer) {
    peer.finish();
    peer.expect_closed();
}

#[test]
fn adds_and_removes_an_address_on_reload() {
    for scheduler in AT_ONCE {
        let (first, second) = (unix(), unix());
        let on = |listeners: Vec<Listen>| Settings { listeners, ..settings(scheduler) };
        let house = House::with(on(vec![first.clone()]));
        let parts = Arc::default();
        let both = on(vec![first.clone(), second.clone()]);
        house.server.replace(both, numbered(1, &parts), None).unwrap();
        let mut old = Peer::connect(&first.address).unwrap();
        assert_eq!(old.ask("/"), "200 1", "{scheduler}");
        assert_eq!(Peer::connect(&second.address).unwrap().ask("/"), "200 1", "{scheduler}");
        let only = on(vec![second.clone()]);
        house.server.replace(only, numbered(2, &parts), None).unwrap();
        assert_eq!(Peer::connect(&second.address).unwrap().ask("/"), "200 2", "{scheduler}");
        let deadline = std::time::Instant::now() + crate::PATIENCE;
        while Peer::connect(&first.address).is_ok() {
            assert!(std::time::Instant::now() < deadline, "{scheduler}: still there");
        }
        assert_eq!(old.ask("/"), "200 1", "{scheduler}");
    }
}

#[test]
fn keeps_the_old_settings_when_an_address_cannot_be_opened() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let taken = Listen::on(Address::Tcp(taken.local_addr().unwrap()));
    for scheduler in SCHEDULERS {
        let house = House::open(scheduler);
        let mut changed = settings(scheduler);
        changed.listeners.push(taken.clone());
        changed.timeouts.idle = Duration::from_millis(1);
        let error = house.server.replace(changed, numbered(1, &Arc::default()), None).unwrap_err();
        assert_eq!(error.kind(), std::io::ErrorKind::AddrInUse);
        assert_eq!(house.connect().ask("/"), "200 hello", "{scheduler}");
    }
}

#[test]
fn keeps_the_idle_timeout_of_existing_connections_on_reload() {
    for scheduler in SCHEDULERS {
        let mut short = settings(scheduler);
        short.timeouts.idle = Duration::from_millis(50);
        let house = House::with(short);
        let mut old = house.connect();
        assert_eq!(old.ask("/"), "200 hello");
        house.server.replace(settings(scheduler), numbered(1, &Arc::default()), None).unwrap();
        old.expect_closed();
        assert_eq!(house.connect().ask("/"), "200 1", "{scheduler}");
    }
}

//! Whole runs of a loop with real time: how it ends.

use std::net::TcpStream;
use std::thread;

use super::*;
use crate::address::Address;

/// Runs a loop until a stop, while this many requests wait for their handlers. Returns its result and
/// its messages.
fn run(requests: usize, drain: Duration, stops: usize) -> (io::Result<()>, Vec<String>) {
    let timeouts = Timeouts { drain, ..Timeouts::default() };
    let settings = Settings { timeouts, ..Settings::default() };
    let Fixture { event_loop, server, scheduler, runtime } =
        Fixture::new(Placement::SameThread, settings);
    drop((event_loop, runtime));
    let messages = log::test_support::capture();
    let ended = thread::scope(|scope| {
        scope.spawn(|| {
            let Some(Address::Tcp(address)) = server.addresses().next() else { panic!() };
            let _clients: Vec<TcpStream> = (0..requests)
                .map(|_| {
                    let mut client = TcpStream::connect(address).unwrap();
                    client.write_all(b"GET /later HTTP/1.1\r\nHost: a\r\n\r\n").unwrap();
                    client
                })
                .collect();
            while server.running_loops.load(Ordering::Acquire) == 0
                || server.metrics().requests < requests as u64
            {
                thread::yield_now();
            }
            (0..stops).for_each(|_| server.stop());
            // The clients stay until the loop has ended.
            while server.running_loops.load(Ordering::Acquire) > 0 {
                thread::yield_now();
            }
        });
        let own: Arc<dyn Scheduler> = Arc::<TestScheduler>::clone(&scheduler);
        EventLoop::run(Arc::clone(&server), own, 0)
    });
    (ended, messages.end())
}

#[test]
fn ends_without_a_message_when_all_connections_have_ended() {
    let (ended, messages) = run(0, Duration::from_hours(1), 1);
    assert!(ended.is_ok() && messages.is_empty(), "{messages:?}");
}

#[test]
fn reports_the_connections_that_the_end_of_the_drain_cuts() {
    for (requests, expected) in [
        (1, "1 connection was cut by the end of loop 0"),
        (2, "2 connections were cut by the end of loop 0"),
    ] {
        let (ended, messages) = run(requests, Duration::ZERO, 1);
        let error = ended.unwrap_err();
        assert_eq!((error.kind(), error.to_string()), (ErrorKind::TimedOut, expected.to_owned()));
        assert_eq!(messages.len(), 1);
        let handlers = if requests == 1 { "1 handler runs" } else { "2 handlers run" };
        assert!(
            messages[0].contains("is over: ") && messages[0].contains(handlers),
            "{messages:?}"
        );
    }
}

/// A second stop is on purpose: it needs no report.
#[test]
fn reports_no_connections_that_a_second_stop_cuts() {
    let (ended, messages) = run(1, Duration::from_hours(1), 2);
    assert_eq!(ended.unwrap_err().to_string(), "1 connection was cut by the end of loop 0");
    assert!(messages.is_empty(), "{messages:?}");
}

/// A turn answers 16 requests of a connection. No event reports the others.
#[test]
fn continues_without_an_event_while_a_connection_has_more_to_do() {
    let Fixture { event_loop, server, scheduler, runtime } =
        Fixture::new(Placement::SameThread, Settings::default());
    drop((event_loop, runtime));
    thread::scope(|scope| {
        scope.spawn(|| {
            let Some(Address::Tcp(address)) = server.addresses().next() else { panic!() };
            let mut client = TcpStream::connect(address).unwrap();
            let requests = "GET /hello HTTP/1.1\r\nHost: a\r\n\r\n".repeat(40);
            client.write_all(requests.as_bytes()).unwrap();
            let (mut received, mut bytes) = (String::new(), [0; 1000]);
            while received.matches("hello").count() < 40 {
                let count = client.read(&mut bytes).unwrap();
                received.push_str(str::from_utf8(&bytes[..count]).unwrap());
            }
            server.stop();
        });
        let own: Arc<dyn Scheduler> = Arc::<TestScheduler>::clone(&scheduler);
        EventLoop::run(Arc::clone(&server), own, 0).unwrap();
    });
    assert_eq!(server.metrics().requests, 40);
}

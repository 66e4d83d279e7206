//! Tests of upgraded connections: their bytes, their order in a pipeline, and their end.

use std::future::poll_fn;
use std::sync::Arc;
use std::task::{Poll, ready};
use std::time::{Duration, Instant};

use bine_server::{CloseReason, Disconnected, Settings, Upgrade, UpgradedConnection};

use crate::house::{AT_ONCE, House, LOOPS, SCHEDULERS, settings};
use crate::peer::{Peer, get};
use crate::program::{Leaving, Program, fail};
use crate::secrecy::{secret, tls};

/// Returns the upgrade that `/upgrade/..` performs.
pub(crate) fn upgrade(program: &Arc<Program>, what: &str) -> Upgrade {
    let (program, what) = (Arc::clone(program), what.to_owned());
    Upgrade::new(move |mut wire| {
        let leaving = Leaving(Arc::clone(&program));
        if what == "panic" {
            fail();
        }
        Box::pin(async move {
            let _leaving = leaving;
            match &*what {
                "late" => {
                    tokio::task::yield_now().await;
                    fail();
                }
                "alarm" => {
                    alarm(&mut wire).await;
                    let _ = send(&mut wire, b"rang").await;
                }
                "stay" => {
                    program.gate("stay").arrive();
                    std::future::pending::<()>().await;
                }
                "flood" => while send(&mut wire, &[b'f'; 10_000]).await.is_ok() {},
                _ => {
                    program.gate("echo").arrive();
                    echo(&mut wire).await;
                }
            }
            Ok(())
        })
    })
}

/// Echoes bytes until the client closes or the server asks it to end.
async fn echo(wire: &mut UpgradedConnection) {
    let mut said = Vec::new();
    loop {
        said.clear();
        said.extend_from_slice(wire.received());
        wire.consume(said.len());
        if send(wire, &said).await.is_err() {
            return;
        }
        let more = poll_fn(|task| match wire.parting() {
            Some(parting) => Poll::Ready(Err(parting)),
            None => {
                wire.poll_receive(task).map(|more| Ok(more == Ok(0) || more == Err(Disconnected)))
            }
        });
        match more.await {
            Ok(false) => {}
            Ok(true) => return,
            Err(parting) => {
                let told = if parting == CloseReason::Stop { b"stop" } else { b"full" };
                let _ = send(wire, told).await;
                return;
            }
        }
    }
}

async fn send(wire: &mut UpgradedConnection, mut bytes: &[u8]) -> Result<(), Disconnected> {
    poll_fn(|task| {
        loop {
            let count = ready!(wire.poll_send(task, bytes))?;
            bytes = &bytes[count..];
            if count == 0 {
                return Poll::Ready(Ok(()));
            }
        }
    })
    .await
}

async fn alarm(wire: &mut UpgradedConnection) {
    let moment = Instant::now() + Duration::from_millis(5);
    poll_fn(|_task| {
        wire.wake_at(moment);
        if Instant::now() < moment { Poll::Pending } else { Poll::Ready(()) }
    })
    .await;
}

#[track_caller]
fn check_echo(peer: &mut Peer, first: &str) {
    peer.send(get(first) + "behind;");
    assert_eq!(peer.reply().status, 101);
    assert_eq!(peer.until(b";"), b"behind;");
    let long: Vec<u8> = (0..100_000).map(|place: u32| b'a' + (place % 25) as u8).collect();
    peer.send([&long[..], b";"].concat());
    assert_eq!(peer.until(b";")[..100_000], long);
    peer.send("again;");
    assert_eq!(peer.until(b";"), b"again;");
}

#[test]
fn passes_all_bytes_after_the_head_to_an_upgrade() {
    for scheduler in AT_ONCE {
        let house = House::open(scheduler);
        for path in ["/upgrade/echo", "/upgrade-work/echo"] {
            let mut peer = house.connect();
            check_echo(&mut peer, path);
            peer.finish();
            peer.expect_closed();
        }
    }
}

#[test]
fn sends_earlier_pipelined_responses_before_an_upgrade() {
    for scheduler in SCHEDULERS {
        let house = House::open(scheduler);
        let mut peer = house.connect();
        peer.send(get("/say/a") + &get("/upgrade/echo") + "b;");
        assert_eq!(peer.reply().to_string(), "200 a", "{scheduler}");
        assert_eq!(peer.reply().status, 101, "{scheduler}");
        assert_eq!(peer.until(b";"), b"b;");
    }
}

#[test]
fn upgrades_tls_connections() {
    for scheduler in AT_ONCE {
        let house = House::with(secret(scheduler, tls()));
        let mut peer = house.connect_secure();
        check_echo(&mut peer, "/upgrade/echo");
    }
}

#[test]
fn notifies_upgrades_of_a_stop_and_waits_for_them() {
    for scheduler in AT_ONCE {
        let house = House::open(scheduler);
        let mut peer = house.connect();
        peer.send(get("/upgrade/echo"));
        assert_eq!(peer.reply().status, 101);
        house.program.gate("echo").await_arrivals(1);
        house.stop();
        assert_eq!(peer.rest(), b"stop", "{scheduler}");
        house.await_end();
    }
}

#[test]
fn closes_upgraded_connections_at_the_drain_timeout() {
    for scheduler in SCHEDULERS {
        let mut brief = settings(scheduler);
        brief.timeouts.drain = Duration::from_millis(50);
        let house = House::with(brief);
        let mut peer = house.connect();
        peer.send(get("/upgrade/stay"));
        assert_eq!(peer.reply().status, 101);
        house.program.gate("stay").await_arrivals(1);
        house.stop();
        house.await_cut();
        if LOOPS.contains(&scheduler) {
            peer.expect_closed();
        }
    }
}

#[test]
fn ends_upgrades_immediately_on_a_second_stop() {
    for scheduler in SCHEDULERS {
        let house = House::open(scheduler);
        let mut peer = house.connect();
        peer.send(get("/upgrade/stay"));
        assert_eq!(peer.reply().status, 101);
        house.program.gate("stay").await_arrivals(1);
        house.stop();
        house.stop();
        peer.expect_closed();
    }
}

#[test]
fn closes_only_the_connection_of_a_panicking_upgrade() {
    for scheduler in SCHEDULERS {
        let house = House::open(scheduler);
        for path in ["/upgrade/panic", "/upgrade/late"] {
            let mut peer = house.connect();
            peer.send(get(path));
            assert_eq!(peer.reply().status, 101);
            peer.expect_closed();
        }
        house.program.gate("left").await_arrivals(2);
        assert_eq!(house.connect().ask("/"), "200 hello", "{scheduler}");
    }
}

#[test]
fn wakes_an_upgrade_at_its_timer() {
    for scheduler in SCHEDULERS {
        let house = House::open(scheduler);
        let mut peer = house.connect();
        peer.send(get("/upgrade/alarm"));
        assert_eq!(peer.reply().status, 101);
        assert_eq!(peer.rest(), b"rang", "{scheduler}");
    }
}

#[test]
fn detects_a_client_that_leaves_during_a_send() {
    for scheduler in SCHEDULERS {
        let house = House::open(scheduler);
        let mut peer = house.connect();
        peer.send(get("/upgrade/flood"));
        assert_eq!(peer.reply().status, 101);
        peer.reset();
        house.program.gate("left").await_arrivals(1);
    }
}

#[test]
fn counts_upgraded_connections_until_they_close() {
    for scheduler in AT_ONCE {
        let house =
            House::with(Settings { connections: Some(1), workers: 2, ..settings(scheduler) });
        let mut peer = house.connect();
        peer.send(get("/upgrade/echo"));
        assert_eq!(peer.reply().status, 101);
        let mut waiting = house.connect();
        waiting.send(get("/"));
        peer.send("one;");
        assert_eq!(peer.until(b";"), b"one;");
        peer.finish();
        peer.expect_closed();
        assert_eq!(waiting.reply().to_string(), "200 hello", "{scheduler}");
    }
}

#[test]
fn reserves_one_pool_thread_from_upgrades() {
    let house = House::with(Settings { workers: 2, ..settings("pool") });
    let mut first = house.connect();
    check_echo(&mut first, "/upgrade/echo");
    let mut second = house.connect();
    second.send(get("/upgrade/echo"));
    assert_eq!(second.reply().status, 101);
    assert_eq!(second.rest(), b"full");
    assert_eq!(house.connect().ask("/"), "200 hello");
}

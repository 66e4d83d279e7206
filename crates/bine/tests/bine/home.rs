//! The house example, which is two programs: one has the devices, the other displays and controls
//! them.

use std::net::SocketAddr;
use std::thread;
use std::time::Duration;

use bine::prelude::*;
use bine::remote;
use bine::test::{Client, Tab};
use serde_json::json;

use crate::examples::example;
use crate::harness::{PATIENCE, Peer, Program};
use house::{Dial, House};

#[allow(dead_code, reason = "its services are called in the programs")]
#[path = "../../../../examples/house.rs"]
mod house;

fn devices_at(listen: &str) -> Program {
    Program::start(example("devices").args(["--listen", listen]))
}

fn home_of(devices: SocketAddr) -> Program {
    let mut command = example("home");
    command.args(["--listen", "127.0.0.1:0"]).env("DEVICES", format!("http://{devices}"));
    Program::start(&mut command)
}

/// Opens a tab of a home that is connected to its devices.
fn visit(home: &Program) -> Tab {
    let mut tab = Client::at(home.address()).visit("/");
    tab.expect("[role=status]", "The devices are here.");
    tab
}

#[test]
fn devices_reach_their_targets_and_stop() {
    let mut house = House::default();
    (house.warmth, house.shutters) =
        (Dial { now: 20.0, wish: 21.0 }, Dial { now: 50.0, wish: 0.0 });
    let mut seen = Vec::new();
    for _ in 0..3 {
        house.pass(Duration::from_secs(1));
        seen.push((house.warmth.now, house.shutters.now));
    }
    assert_eq!(seen, [(20.5, 30.0), (21.0, 10.0), (21.0, 0.0)]);
}

#[test]
fn wish_from_one_tab_reaches_devices_and_all_tabs() {
    let devices = devices_at("127.0.0.1:0");
    let home = home_of(devices.address());
    let (mut one, mut other) = (visit(&home), visit(&home));
    one.submit("[aria-labelledby=heat] form", [("degrees", "18.5")]);
    other.expect("output", "18.5 \u{b0}C");
    one.submit("[aria-labelledby=shutters] form", [("percent", "10")]);
    other.expect("output", "10 % open");
    one.click("[value='Ode to Joy']");
    other.expect("output", "Ode to Joy");
    Client::at(devices.address()).visit("/").expect("li", "Player: Ode to Joy, 0 listen");
    // A browser rejects this value, but other clients may send it.
    let told = Client::at(home.address())
        .post_json(&["", "home", "heat"].join("/"), &json!({ "degrees": 99.0 }));
    assert!(told.text().contains("must be from 5 to 30"), "{}", told.text());
    one.click("body > form button");
    other.expect("[role=alert]", "Smoke in the kitchen");
}

#[test]
fn killed_devices_are_offline_until_restarted() {
    // No other test opens connections from this address, so its port stays free for the restart.
    let devices = devices_at("127.7.7.8:0");
    let address = devices.address();
    let home = home_of(address);
    let mut tab = visit(&home);
    devices.kill();
    tab.expect("[role=status]", "The devices are away; this is how they were.");
    tab.expect("output", "18.0 \u{b0}C");
    tab.click("[value='Ode to Joy']");
    tab.expect("[role=alert]", "the devices are away, and nothing has changed");
    let _devices = devices_at(&address.to_string());
    tab.expect("[role=status]", "The devices are here.");
    tab.click("[value='Ode to Joy']");
    tab.expect("output", "Ode to Joy");
}

#[test]
fn simultaneous_listeners_hear_the_same_music() {
    const HEAD: usize = 44;
    let devices = devices_at("127.0.0.1:0");
    let home = home_of(devices.address());
    let mut tab = visit(&home);
    tab.click("[value='Brother John']");
    tab.expect("output", "Brother John");
    let mut early = Listener::new(devices.address());
    early.receive(HEAD + 10_000);
    tab.expect("p", "1 listen");
    let mut late = Listener::new(devices.address());
    late.receive(HEAD + 10_000);
    tab.expect("p", "2 listen");
    assert_eq!(early.received[..HEAD], late.received[..HEAD]);
    let own = late.received.split_off(HEAD);
    assert!(own.iter().any(|byte| *byte != 0), "the music is silent");
    // The late listener's music is a part of the early one's, up to the end of what it has
    // received.
    while !early.received.windows(own.len()).any(|part| part == own) {
        assert!(early.received.len() < 1_000_000, "the listeners received different music");
        early.receive(early.received.len() + 1);
    }
    drop(early);
    tab.expect("p", "1 listen");
}

/// A client that receives the music stream.
struct Listener {
    peer: Peer,
    received: Vec<u8>,
}

impl Listener {
    fn new(devices: SocketAddr) -> Self {
        let mut peer = Peer::tcp(devices);
        peer.send("GET /music HTTP/1.1\r\nHost: a\r\n\r\n");
        let head = peer.reply_to_head();
        assert_eq!((head.status(), head.header("Content-Type")), (200, Some("audio/wav")));
        Self { peer, received: Vec::new() }
    }

    fn receive(&mut self, bytes: usize) {
        while self.received.len() < bytes {
            self.received.extend(self.peer.chunk());
        }
    }
}

#[test]
fn alarm_reaches_exactly_one_listener() {
    let devices = devices_at("127.0.0.1:0");
    let address = format!("http://{}", devices.address());
    let mut status = Client::at(devices.address()).visit("/");
    let listen = || {
        let mut alarms = remote(&address).on::<String>("alarm");
        move || [(); 2].map(|()| alarms.wait(PATIENCE).unwrap().unwrap())
    };
    let alarms_received: Vec<_> = thread::scope(|scope| {
        let listeners = [listen(), listen()].map(|listener| scope.spawn(listener));
        status.expect("li", "Alarm: 2 homes hear it");
        for what in ["first", "second", "third", "fourth"] {
            remote(&address).call(house::alarm, (what.into(),)).wait().unwrap();
        }
        listeners.into_iter().map(|listener| listener.join().unwrap()).collect()
    });
    // Alarms alternate: the receiver of the first also gets the third.
    let [mut first, mut second] = [["first", "third"], ["second", "fourth"]];
    if alarms_received[0][0] == second[0] {
        (first, second) = (second, first);
    }
    assert_eq!(alarms_received, [first, second]);
    status.expect("li", "Alarm: 0 homes hear it");
    let told = remote(&address).call(house::alarm, ("fifth".into(),)).wait();
    assert!(
        matches!(told, Err(remote::Error::Refused { status: Status::SERVICE_UNAVAILABLE, .. })),
        "{told:?}"
    );
}

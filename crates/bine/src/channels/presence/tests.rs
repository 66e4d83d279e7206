//! Claims about those who may call themselves anything: from one address a few are listed, and they cannot come and go
//! as fast as they like.

use std::time::Duration;

use bine_http::{Event, Limits, RequestParser};
use bine_server::{Body, Incoming, Peer, Who};
use bine_store::disk::SimulatedFolder;
use bine_store::{Options, Store};

use super::*;
use crate::channels::access::Gate;
use crate::channels::attendee::Attendee;
use crate::channels::{Access, Caps, Channels};

/// Where whoever follows `board` is counted, and gone as soon as they leave.
struct House {
    channels: Channels,
    gate: Arc<Gate>,
    _store: Store,
}

impl House {
    fn with(caps: Caps) -> Self {
        let channels = Channels::new();
        let options = Options::new().extension(channels.guest());
        let disk = SimulatedFolder::new(1, 1 << 30);
        let store = Store::in_folder(Arc::new(disk.process()), options, &mut |_, _| {}).unwrap();
        channels.begin(&store).unwrap();
        channels.count("board", Duration::ZERO).unwrap();
        let gate = Arc::new(channels.gate(Access::everything().caps(caps)).unwrap());
        Self { channels, gate, _store: store }
    }

    /// Somebody from an address comes, and is there until this is dropped.
    fn come(&self, address: &str, name: Option<&str>) -> Arc<Attendee> {
        let bytes = b"GET /channels HTTP/1.1\r\nHost: a\r\n\r\n";
        let Event::Head(head) = RequestParser::new().receive(bytes, &Limits::default()).event
        else {
            panic!("it is a request");
        };
        let request = Incoming {
            head,
            body: Body::None,
            peer: Peer::tcp(format!("{address}:1").parse().unwrap()),
            who: &Who::Anonymous,
            arrival: 0,
            has_begun: false,
            exchange: head.exchange(),
        };
        let visitor = self.gate.recognize(&request);
        Attendee::of(&self.channels.0, &["board".into()], name, Some(&visitor)).unwrap()
    }

    fn count(&self) -> usize {
        let engine = &self.channels.0;
        engine.attendance.look(|order| drop(engine.order(order)));
        self.channels.present("board", 100).unwrap().count
    }
}

#[test]
fn of_those_who_are_known_by_nothing_a_few_are_listed_from_one_address() {
    let house = House::with(Caps { holds_per_address: 3, ..Caps::default() });
    let names = ["a", "b", "c", "d", "e"];
    let mut crowd: Vec<_> = names.iter().map(|name| house.come("192.0.2.1", Some(name))).collect();
    assert_eq!(house.count(), 3);
    // Who is listed already may come once more.
    crowd.push(house.come("192.0.2.1", Some("a")));
    assert_eq!(crowd.iter().filter(|attendee| !attendee.channels.is_empty()).count(), 4);
    crowd.push(house.come("192.0.2.2", None));
    assert_eq!(house.count(), 4);
    // This very machine has no address, and the program's own people are its own matter.
    crowd.extend((0..5).map(|_| house.come("127.0.0.1", None)));
    let (engine, board) = (&house.channels.0, [Box::from("board")]);
    crowd.extend(Attendee::of(engine, &board, Some("own"), None));
    assert_eq!(house.count(), 10);
    drop(crowd);
    assert_eq!(house.count(), 0);
    let hall = engine.attendance.hall();
    assert!(hall.guests.is_empty() && hall.crowds.is_empty());
    drop(hall);
    let again = house.come("192.0.2.1", Some("e"));
    assert_eq!((house.count(), again.channels.len()), (1, 1));
}

#[test]
fn who_comes_and_goes_too_often_is_not_told_of() {
    let caps = Caps { holds_per_address: 3, messages_per_address: 1, ..Caps::default() };
    let house = House::with(caps);
    let listed = |address: &str| {
        let comings = (0..100).map(|_| house.come(address, None).channels.len());
        // One goes before the next comes.
        comings.filter(|listed| house.count() == 0 && *listed > 0).count()
    };
    let from_one = listed("192.0.2.1");
    assert!((3..100).contains(&from_one), "{from_one}");
    assert_eq!(listed("127.0.0.1"), 100);
}

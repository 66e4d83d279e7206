//! Tests the presence of clients without a verified name: their number and their rate of joining
//! are limited by address.

use std::time::Duration;

use bine_http::{Event, Limits, RequestParser};
use bine_server::{Body, ClientAddress, Identity, Incoming};
use bine_store::disk::SimulatedFolder;
use bine_store::{Options, Store};

use super::*;
use crate::channels::access::AccessControl;
use crate::channels::presence_guard::PresenceGuard;
use crate::channels::{Access, Channels, ClientLimits};

/// Channels that track the presence in `board`, without a linger time.
struct House {
    channels: Channels,
    gate: Arc<AccessControl>,
    _store: Store,
}

impl House {
    fn with(client_limits: ClientLimits) -> Self {
        let channels = Channels::new();
        let options = Options::new().extension(channels.store_extension());
        let disk = SimulatedFolder::new(1, 1 << 30);
        let store = Store::in_folder(Arc::new(disk.process()), options, &mut |_, _| {}).unwrap();
        channels.begin(&store).unwrap();
        channels.count("board", Duration::ZERO).unwrap();
        let gate = Arc::new(
            channels.gate(Access::allow_all().client_limits(client_limits), None).unwrap(),
        );
        Self { channels, gate, _store: store }
    }

    /// Makes a session from an address present until the result is dropped.
    fn come(&self, address: &str, name: Option<&str>) -> Arc<PresenceGuard> {
        let bytes = b"GET /channels HTTP/1.1\r\nHost: a\r\n\r\n";
        let Event::Head(head) = RequestParser::new().receive(bytes, &Limits::default()).event
        else {
            panic!("it is a request");
        };
        let request = Incoming {
            head,
            body: Body::None,
            peer: ClientAddress::tcp(format!("{address}:1").parse().unwrap()),
            identity: &Identity::Anonymous,
            arrival: 0,
            has_begun: false,
            exchange: head.exchange(),
        };
        let client = self.gate.recognize(&request);
        PresenceGuard::of(&self.channels.0, &["board".into()], name, Some(&client)).unwrap()
    }

    fn count(&self) -> usize {
        let engine = &self.channels.0;
        engine.presence_tracker.expire(|command| drop(engine.execute(command)));
        self.channels.present("board", 100).unwrap().count
    }
}

#[test]
fn limits_anonymous_sessions_by_address() {
    let house = House::with(ClientLimits { holds_per_address: 3, ..ClientLimits::default() });
    let names = ["a", "b", "c", "d", "e"];
    let mut crowd: Vec<_> = names.iter().map(|name| house.come("192.0.2.1", Some(name))).collect();
    assert_eq!(house.count(), 3);
    // A listed session may join a second time.
    crowd.push(house.come("192.0.2.1", Some("a")));
    assert_eq!(crowd.iter().filter(|attendee| !attendee.channels.is_empty()).count(), 4);
    crowd.push(house.come("192.0.2.2", None));
    assert_eq!(house.count(), 4);
    // Neither this machine's clients nor the program's own sessions are limited.
    crowd.extend((0..5).map(|_| house.come("127.0.0.1", None)));
    let (engine, board) = (&house.channels.0, [Box::from("board")]);
    crowd.extend(PresenceGuard::of(engine, &board, Some("own"), None));
    assert_eq!(house.count(), 10);
    drop(crowd);
    assert_eq!(house.count(), 0);
    let table = engine.presence_tracker.table();
    assert!(table.anonymous_sessions.is_empty() && table.anonymous_counts.is_empty());
    drop(table);
    let again = house.come("192.0.2.1", Some("e"));
    assert_eq!((house.count(), again.channels.len()), (1, 1));
}

#[test]
fn limits_the_rate_of_join_events() {
    let client_limits =
        ClientLimits { holds_per_address: 3, messages_per_address: 1, ..ClientLimits::default() };
    let house = House::with(client_limits);
    let listed = |address: &str| {
        let comings = (0..100).map(|_| house.come(address, None).channels.len());
        // Each session leaves before the next one joins.
        comings.filter(|listed| house.count() == 0 && *listed > 0).count()
    };
    let from_one = listed("192.0.2.1");
    assert!((3..100).contains(&from_one), "{from_one}");
    assert_eq!(listed("127.0.0.1"), 100);
}

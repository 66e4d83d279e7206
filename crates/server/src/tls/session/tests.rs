//! Sessions with each kind of record, from their first byte to their end.

use std::io::Write as _;
use std::os::fd::AsFd as _;
use std::sync::Mutex;

use rustls::version;

use super::*;
use crate::quota::Owner;
use crate::slab::Token;
use crate::tls::test_support::{TlsClients, TlsPair, tls};
use crate::tls::{HandOver, HandshakeLimits};

#[test]
fn registers_a_handshake_from_its_first_message_to_its_end() {
    let mut pair = TlsPair::new(tls(), &[]);
    assert!(pair.session.is_shaking_hands());
    assert_eq!((pair.receive(), pair.under_way()), ((String::new(), Transfer::Again), 0));
    pair.send_all();
    assert_eq!(pair.receive(), (String::new(), Transfer::Again));
    assert!(pair.session.is_shaking_hands() && pair.session.has_emptied());
    assert_eq!(pair.under_way(), 1);
    pair.client_reads().unwrap();
    // The first content arrives with the last message of the handshake.
    let bytes = pair.encrypt(b"content");
    pair.stream.write_all(&bytes).unwrap();
    assert_eq!(pair.receive(), ("content".to_owned(), Transfer::Again));
    assert_eq!((pair.session.is_shaking_hands(), pair.under_way()), (false, 0));
    assert!(!pair.session.is_evicted() && !pair.session.departs());
}

/// The server allocates no state before the first message is complete.
#[test]
fn collects_the_first_message_in_any_pieces() {
    let mut pair = TlsPair::new(tls(), &[]);
    let hello = pair.encrypted();
    let (last, first) = hello.split_last().unwrap();
    for byte in first {
        pair.stream.write_all(&[*byte]).unwrap();
        assert_eq!(pair.receive(), (String::new(), Transfer::Again));
        assert_eq!(pair.under_way(), 0);
    }
    assert_eq!(pair.session.kept, first);
    pair.stream.write_all(&[*last]).unwrap();
    assert_eq!(pair.receive(), (String::new(), Transfer::Again));
    assert_eq!((pair.under_way(), pair.session.kept.len()), (1, 0));
    pair.client_reads().unwrap();
    pair.send_all();
    pair.receive();
    assert!(!pair.session.is_shaking_hands());
}

#[test]
fn tells_a_client_without_tls_to_use_it() {
    for (bytes, answer) in
        [(&b"GET / HTTP/1.1\r\n"[..], HTTPS_REQUIRED), (b"get", b""), (b"\x16", b"")]
    {
        let mut pair = TlsPair::new(tls(), &[]);
        pair.stream.write_all(bytes).unwrap();
        let is_tls = bytes[0] == HANDSHAKE;
        let expected = if is_tls { Transfer::Again } else { Transfer::Fault };
        assert_eq!(pair.receive(), (String::new(), expected));
        assert_eq!(pair.arrived(), answer);
        if !is_tls {
            // The caller reads and drops what follows.
            pair.stream.write_all(b"rest").unwrap();
            let mut space = [0; 8];
            assert_eq!(pair.session.receive(&pair.socket, &mut space), Transfer::Moved(4));
            assert!(pair.session.has_emptied());
            pair.stream.write_all(&[b'x'; 8]).unwrap();
            assert_eq!(pair.session.receive(&pair.socket, &mut space), Transfer::Moved(8));
            assert!(!pair.session.has_emptied(), "there may be more");
            assert!(!pair.session.is_shaking_hands());
            assert_eq!(pair.session.send(&pair.socket, b"reply", false), Transfer::Broken);
        }
    }
}

#[test]
fn closes_the_connection_of_a_refused_handshake() {
    let mut pair = TlsPair::new(tls(), &[]);
    // One per second, with a burst of five.
    let remote = ClientAddress::tcp(([192, 0, 2, 1], 1).into());
    let handshakes = Arc::new(Handshakes::new(HandshakeLimits::new(64, 1)));
    pair.session = Session::new(
        (Arc::new(tls()), false),
        Rc::default(),
        Arc::clone(&handshakes),
        remote.block(),
    );
    let owner = Owner::default();
    let held: Vec<_> = (0..9)
        .map(|_| handshakes.begin(remote.block(), &owner, monotonic_milliseconds(), || false))
        .collect();
    assert!(held.iter().any(Option::is_none));
    pair.send_all();
    let messages = log::test_support::capture();
    assert_eq!(pair.receive(), (String::new(), Transfer::Broken));
    drop(messages);
}

#[test]
fn keeps_an_incomplete_record_when_it_moves_to_another_thread() {
    let mut pair = TlsPair::open();
    let bytes = pair.encrypt(b"one record");
    let (first, rest) = bytes.split_at(bytes.len() / 2);
    pair.stream.write_all(first).unwrap();
    assert_eq!(pair.receive(), (String::new(), Transfer::Again));
    assert_eq!(pair.session.kept, first);
    let TlsPair { session, socket, client, mut stream, handshakes } = pair;
    stream.write_all(rest).unwrap();
    let session = session.detach().attach(Rc::default());
    let mut pair = TlsPair { session, socket, client, stream, handshakes };
    assert_eq!(pair.receive(), ("one record".to_owned(), Transfer::Again));
    assert_eq!(pair.session.kept.capacity(), 0);
}

#[test]
fn delivers_content_before_the_end_of_the_session() {
    let mut pair = TlsPair::open();
    let mut bytes = pair.encrypt(b"last words");
    pair.client.send_close_notify();
    bytes.extend(pair.encrypted());
    pair.stream.write_all(&bytes).unwrap();
    let mut space = [0; 1000];
    assert_eq!(pair.session.receive(&pair.socket, &mut space), Transfer::Moved(10));
    assert!(!pair.session.has_emptied(), "the end follows");
    assert_eq!(pair.session.receive(&pair.socket, &mut space), Transfer::Ended);
    // Its own direction is still open.
    assert_eq!(pair.session.send(&pair.socket, b"reply", false), Transfer::Moved(5));
    assert_eq!(pair.client_reads().unwrap(), b"reply");
    pair.client.send_close_notify();
    assert_eq!(pair.session.receive(&pair.socket, &mut space), Transfer::Ended);
}

#[test]
fn ends_without_content_at_once() {
    let mut pair = TlsPair::open();
    pair.client.send_close_notify();
    pair.send_all();
    assert_eq!(pair.receive(), (String::new(), Transfer::Ended));
}

#[test]
fn sends_an_alert_for_a_record_that_cannot_be_decrypted() {
    for with_content in [false, true] {
        let mut pair = TlsPair::open();
        let mut bytes = if with_content { pair.encrypt(b"good") } else { Vec::new() };
        let mut broken = pair.encrypt(b"broken");
        *broken.last_mut().unwrap() ^= 1;
        bytes.extend(broken);
        pair.stream.write_all(&bytes).unwrap();
        let expected = if with_content { "good" } else { "" };
        assert_eq!(pair.receive(), (expected.to_owned(), Transfer::Fault));
        let alert = rustls::Error::AlertReceived(rustls::AlertDescription::BadRecordMac);
        assert_eq!(pair.client_reads(), Err(alert));
        // The fault is reported once; later data is not decrypted.
        pair.stream.write_all(b"after").unwrap();
        assert_eq!(pair.receive(), ("after".to_owned(), Transfer::Again));
    }
}

#[test]
fn rejects_a_record_longer_than_the_buffer() {
    let mut pair = TlsPair::open();
    let bytes = pair.encrypt(&[b'x'; 1000]);
    pair.stream.write_all(&bytes).unwrap();
    let (content, end) = pair.receive_into(&mut [0; 500]);
    assert_eq!((content.len(), end), (0, Transfer::Broken));
    let mut pair = TlsPair::open();
    let bytes = pair.encrypt(&[b'x'; 1000]);
    pair.stream.write_all(&bytes).unwrap();
    let (content, end) = pair.receive_into(&mut vec![0; bytes.len()]);
    assert_eq!((content.len(), end), (1000, Transfer::Again));
}

#[test]
fn receives_several_records_at_once_and_reports_when_more_may_follow() {
    let mut pair = TlsPair::open();
    let mut bytes = pair.encrypt(b"one,");
    bytes.extend(pair.encrypt(b"two"));
    pair.stream.write_all(&bytes).unwrap();
    let mut space = vec![0; bytes.len()];
    assert_eq!(pair.session.receive(&pair.socket, &mut space), Transfer::Moved(7));
    assert_eq!(&space[..7], b"one,two");
    assert!(!pair.session.has_emptied(), "the buffer was full");
    let bytes = pair.encrypt(b"three");
    pair.stream.write_all(&bytes).unwrap();
    assert_eq!(pair.session.receive(&pair.socket, &mut space), Transfer::Moved(5));
    assert!(pair.session.has_emptied());
}

/// Encrypted bytes that the socket does not accept are sent before any others.
#[test]
fn keeps_encrypted_bytes_for_which_the_socket_has_no_room() {
    let mut pair = TlsPair::open();
    let content: Vec<u8> = (0..2_000_000_u32).map(|place| (place % 251) as u8).collect();
    let (mut sent, mut received) = (0, Vec::new());
    // The client does not read.
    while let Transfer::Moved(count) = pair.session.send(&pair.socket, &content[sent..], false) {
        assert_eq!(count, PIECE);
        sent += count;
    }
    assert!(pair.session.holds_back());
    let again = pair.session.receive(&pair.socket, &mut [0; 1000]);
    assert_eq!(again, Transfer::Again, "it first sends");
    while received.len() < content.len() {
        received.extend(pair.client_reads().unwrap());
        match pair.session.send(&pair.socket, &content[sent..], false) {
            Transfer::Moved(count) => sent += count,
            Transfer::Again => assert!(pair.session.holds_back()),
            other => panic!("{other:?}"),
        }
    }
    assert!(received == content && !pair.session.holds_back());
    assert_eq!((pair.session.sent, pair.session.unsent.capacity()), (0, 0));
}

#[test]
fn sends_parts_of_a_file() {
    let file = rustix::fs::memfd_create("tls test", rustix::fs::MemfdFlags::CLOEXEC).unwrap();
    let content: Vec<u8> = (0..PIECE + 100).map(|place| (place % 251) as u8).collect();
    rustix::io::write(&file, &content).unwrap();
    let mut pair = TlsPair::open();
    let send = |pair: &mut TlsPair, offset: usize, count| {
        pair.session.send_file(&pair.socket, file.as_fd(), offset as u64, count)
    };
    assert_eq!(send(&mut pair, 50, 20), Transfer::Moved(20));
    assert_eq!(pair.client_reads().unwrap(), &content[50..70]);
    assert_eq!(send(&mut pair, 0, content.len()), Transfer::Moved(PIECE));
    assert_eq!(pair.client_reads().unwrap(), &content[..PIECE]);
    // The file is shorter than the reply has announced.
    assert_eq!(send(&mut pair, PIECE, 200), Transfer::Moved(100));
    assert_eq!(send(&mut pair, content.len(), 100), Transfer::Broken);
}

#[test]
fn says_farewell_only_after_all_else() {
    let closes = |pair: &mut TlsPair| {
        pair.session.farewell(&pair.socket);
        let arrived = pair.arrived();
        let (mut arrived, mut has_closed) = (&arrived[..], false);
        while !arrived.is_empty() {
            pair.client.read_tls(&mut arrived).unwrap();
            has_closed |= pair.client.process_new_packets().unwrap().peer_has_closed();
        }
        has_closed
    };
    let mut pair = TlsPair::new(tls(), &[]);
    assert!(!closes(&mut pair), "there is no session yet");
    pair.send_all();
    pair.receive();
    assert!(!closes(&mut pair), "during the handshake");
    let mut pair = TlsPair::open();
    pair.session.unsent = vec![0; 3];
    assert!(!closes(&mut pair), "bytes are unsent");
    pair.session.sent = 3;
    assert!(closes(&mut pair));
}

/// The receivers of another protocol, and what they received.
struct Receiver(Mutex<Vec<bool>>);

impl HandOver for Receiver {
    fn protocols(&self) -> Vec<Vec<u8>> {
        vec![b"other".to_vec()]
    }

    fn take(&self, departure: Departure) {
        let has_name = departure.accepted.client_hello().server_name() == Some("localhost");
        self.0.lock().unwrap().push(has_name);
    }
}

#[test]
fn hands_over_only_clients_of_the_other_protocol() {
    let receiver = Arc::new(Receiver(Mutex::default()));
    let own: Arc<dyn HandOver> = Arc::<Receiver>::clone(&receiver);
    let tls = tls().with_hand_over(own);
    for (protocols, departs) in [
        (&["http/1.1"][..], false),
        (&[], false),
        (&["other"], true),
        (&["http/1.1", "other"], true),
    ] {
        let mut pair = TlsPair::new(tls.clone(), protocols);
        pair.send_all();
        let expected = if departs { Transfer::Ended } else { Transfer::Again };
        assert_eq!(pair.receive(), (String::new(), expected), "{protocols:?}");
        assert_eq!((pair.session.departs(), pair.under_way()), (departs, u64::from(!departs)));
        if departs {
            assert_eq!(pair.receive().1, Transfer::Ended, "it stays so");
        }
        pair.session.depart(pair.socket, ClientAddress::UNIX);
    }
    assert_eq!(*receiver.0.lock().unwrap(), [true, true]);
}

/// The client may ask for new keys at any time (RFC 8446, section 4.6.3). The answer precedes the
/// next content.
#[test]
fn answers_a_key_update_before_its_next_content() {
    let mut pair = TlsPair::open();
    pair.client.refresh_traffic_keys().unwrap();
    let bytes = pair.encrypt(b"with new keys");
    pair.stream.write_all(&bytes).unwrap();
    assert_eq!(pair.receive(), ("with new keys".to_owned(), Transfer::Again));
    for content in [b"one", b"two"] {
        assert_eq!(pair.session.send(&pair.socket, content, false), Transfer::Moved(3));
        assert_eq!(pair.client_reads().unwrap(), content);
    }
}

/// The answer is due even if the message that asks for it was received with content, and was not
/// examined before the reply.
#[test]
fn answers_a_key_update_that_arrived_with_content() {
    let mut pair = TlsPair::open();
    let mut bytes = pair.encrypt(b"request");
    pair.client.refresh_traffic_keys().unwrap();
    bytes.extend(pair.encrypted());
    pair.stream.write_all(&bytes).unwrap();
    let mut space = [0; 1000];
    assert_eq!(pair.session.receive(&pair.socket, &mut space), Transfer::Moved(7));
    for content in [b"one", b"two"] {
        assert_eq!(pair.session.send(&pair.socket, content, false), Transfer::Moved(3));
        assert_eq!(pair.client_reads().unwrap(), content);
    }
    let bytes = pair.encrypt(b"with new keys");
    pair.stream.write_all(&bytes).unwrap();
    assert_eq!(pair.receive(), ("with new keys".to_owned(), Transfer::Again));
}

/// Clients of a thread that begins waiting handshakes in its turns.
fn clients_of_a_loop(handshake_rate: u32) -> TlsClients {
    let limits = HandshakeLimits::new(800, handshake_rate);
    let clients = TlsClients::new(tls(), &[&version::TLS13, &version::TLS12], limits);
    clients.buffers.queue().enable();
    clients
}

/// Sends the first message of client `number` of the block `from`. Returns whether the server has
/// answered it.
fn sends_hello(clients: &TlsClients, from: u8, number: u32) -> (TlsPair, bool) {
    let mut pair = clients.connect(AddressBlock::of([192, 0, 2, from].into()));
    let hello = pair.encrypted();
    sends(clients, pair, &hello, number)
}

fn sends(clients: &TlsClients, mut pair: TlsPair, hello: &[u8], number: u32) -> (TlsPair, bool) {
    clients
        .buffers
        .note_owner(&Owner { thread: None, token: Token { index: number, generation: 0 } });
    pair.stream.write_all(hello).unwrap();
    assert_eq!(pair.receive(), (String::new(), Transfer::Again));
    let is_answered = !pair.session.awaits_turn();
    (pair, is_answered)
}

/// Makes later handshakes compete for the rest of the turn.
fn fill_turn(clients: &TlsClients) -> Vec<TlsPair> {
    clients.buffers.queue().begin_turn();
    let mut number = 0;
    let begins = || {
        number += 1;
        let (pair, is_answered) = sends_hello(clients, 200, number);
        is_answered.then_some(pair)
    };
    std::iter::from_fn(begins).collect()
}

#[test]
fn answers_a_waiting_handshake_in_a_later_turn() {
    let clients = clients_of_a_loop(0);
    let open = fill_turn(&clients);
    assert!(!open.is_empty());
    let (mut pair, is_answered) = sends_hello(&clients, 1, 77);
    assert!(!is_answered && pair.session.is_shaking_hands() && pair.arrived().is_empty());
    let metrics = clients.handshakes.metrics();
    // The last one that filled the turn has waited and closed.
    assert_eq!((metrics.waiting, metrics.delayed), (1, 2));
    assert_eq!(metrics.full, open.len() as u64);
    let queue = clients.buffers.queue();
    assert_eq!(queue.next(), None);
    queue.begin_turn();
    assert_eq!(queue.next().map(|token| token.index), Some(77));
    assert_eq!(pair.receive(), (String::new(), Transfer::Again));
    assert!(!pair.session.awaits_turn() && pair.session.kept.is_empty());
    pair.client_reads().unwrap();
    pair.complete();
    let metrics = clients.handshakes.metrics();
    assert_eq!((metrics.waiting, metrics.full), (0, open.len() as u64 + 1));
}

/// The first message is kept as it arrived, and bytes after it, too.
#[test]
fn keeps_what_a_client_sends_while_its_handshake_waits() {
    let clients = clients_of_a_loop(0);
    let _open = fill_turn(&clients);
    let mut pair = clients.connect(AddressBlock::of([192, 0, 2, 1].into()));
    let hello = pair.encrypted();
    for byte in &hello {
        pair.stream.write_all(&[*byte]).unwrap();
        assert_eq!(pair.receive(), (String::new(), Transfer::Again));
    }
    assert!(pair.session.awaits_turn() && pair.session.kept == hello);
    pair.stream.write_all(b"\x16").unwrap();
    assert_eq!(pair.receive(), (String::new(), Transfer::Again));
    assert_eq!(pair.session.kept.len(), hello.len() + 1);
}

#[test]
fn closes_a_waiting_handshake_whose_client_is_gone() {
    let clients = clients_of_a_loop(0);
    let _open = fill_turn(&clients);
    let (mut pair, _) = sends_hello(&clients, 1, 77);
    pair.stream.shutdown(std::net::Shutdown::Write).unwrap();
    assert_eq!(pair.receive(), (String::new(), Transfer::Ended));
    drop(pair);
    assert!(clients.buffers.queue().is_empty());
    assert_eq!(clients.handshakes.metrics().waiting, 0);
}

#[test]
fn prefers_a_client_that_resumes_a_session() {
    for offered in [&version::TLS13, &version::TLS12] {
        let limits = HandshakeLimits::new(800, 0);
        let clients = TlsClients::new(tls(), &[offered], limits);
        clients.connect(AddressBlock::of([192, 0, 2, 1].into())).complete();
        clients.buffers.queue().enable();
        let strangers = TlsClients {
            handshakes: Arc::clone(&clients.handshakes),
            buffers: Rc::clone(&clients.buffers),
            ..TlsClients::new(tls(), &[offered], limits)
        };
        let _open = fill_turn(&strangers);
        let (_stranger, is_answered) = sends_hello(&strangers, 2, 76);
        assert!(!is_answered);
        let (mut returning, is_answered) = sends_hello(&clients, 1, 77);
        assert!(is_answered, "{offered:?}");
        returning.client_reads().unwrap();
        returning.complete();
        let metrics = clients.handshakes.metrics();
        assert_eq!((metrics.resumed, metrics.misled, metrics.waiting), (1, 0, 1));
    }
}

/// A ticket can be decrypted and not be resumed, as for another host. Its handshake is a full one, and
/// the next offers of its address wait.
#[test]
fn prefers_no_client_whose_offers_are_false() {
    let clients = clients_of_a_loop(0);
    let block = AddressBlock::of([192, 0, 2, 1].into());
    let hellos: Vec<Vec<u8>> = (0..3)
        .map(|_| {
            clients.connect(block).complete();
            clients.connect(block).encrypted()
        })
        .collect();
    let _open = fill_turn(&clients_without_sessions(&clients));
    let mut forged = hellos[0].clone();
    let ticket = crate::tls::offered_ticket(&forged).unwrap().to_vec();
    let place = forged.windows(ticket.len()).position(|bytes| bytes == ticket).unwrap();
    forged[place] ^= 1;
    let (_forged, is_answered) = sends(&clients, clients.connect(block), &forged, 5);
    assert!(!is_answered, "nothing decrypts its ticket");
    let mut false_host = hellos[1].clone();
    let host = b"localhost";
    let place = false_host.windows(host.len()).position(|bytes| bytes == host).unwrap();
    false_host[place..place + host.len()].copy_from_slice(b"otherhost");
    assert_eq!(clients.handshakes.metrics().misled, 0);
    let (_false_host, is_answered) = sends(&clients, clients.connect(block), &false_host, 6);
    assert!(is_answered);
    assert_eq!(clients.handshakes.metrics().misled, 1);
    let (_true_offer, is_answered) = sends(&clients, clients.connect(block), &hellos[2], 7);
    assert!(!is_answered);
}

/// Other clients of the same thread.
fn clients_without_sessions(clients: &TlsClients) -> TlsClients {
    let versions = [&version::TLS13, &version::TLS12];
    TlsClients {
        handshakes: Arc::clone(&clients.handshakes),
        buffers: Rc::clone(&clients.buffers),
        ..TlsClients::new(tls(), &versions, HandshakeLimits::new(8, 0))
    }
}

#[test]
fn resumes_sessions_above_the_rate_of_the_address() {
    let messages = log::test_support::capture();
    // One per second, with a burst of five.
    let clients = clients_of_a_loop(1);
    let block = AddressBlock::of([192, 0, 2, 1].into());
    clients.connect(block).complete();
    let strangers = clients_without_sessions(&clients);
    let open: Vec<TlsPair> = std::iter::from_fn(|| {
        clients.buffers.queue().begin_turn();
        let mut pair = strangers.connect(block);
        pair.send_all();
        (pair.receive().1 == Transfer::Again).then_some(pair)
    })
    .take(100)
    .collect();
    assert!(open.len() < 100, "the rate is not exceeded");
    clients.connect(block).complete();
    assert_eq!(clients.handshakes.metrics().resumed, 1);
    drop(messages);
}

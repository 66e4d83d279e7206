//! Tests channels that several nodes share, on a simulated stream that loses and repeats messages.

use bine_push::{
    ChannelName, Content, Cursor, Draft, Expiry, Fork, Producer, Publish, Retention, Settings,
    Start,
};
use bine_store::{Options, Replica};

use super::tests::read;
use super::*;

/// A reproducible random generator (Marsaglia's xorshift).
struct Random(u64);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % bound
    }
}

struct SharingNode {
    replica: Replica,
    engine: Arc<Engine>,
    /// The number of the last message in the stream or lost.
    sent: u64,
    pending: Vec<PendingCommand>,
    /// The numbers of the next publications of this node's producer, by channel.
    produced: [u64; CHANNELS as usize],
}

/// Several nodes, and the stream that they share.
struct SharedChannels {
    random: Random,
    stream: Vec<Vec<u8>>,
    nodes: Vec<SharingNode>,
    /// Snapshots: their blocks.
    snapshots: Arc<Mutex<Vec<Vec<Vec<u8>>>>>,
}

const CHANNELS: u64 = 4;

impl SharedChannels {
    fn new(seed: u64) -> Self {
        let random = Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
        let mut own =
            Self { random, stream: Vec::new(), nodes: Vec::new(), snapshots: Arc::default() };
        for _ in 0..3 {
            own.join();
        }
        own
    }

    fn join(&mut self) {
        let engine = Arc::new(Engine::new());
        let extension = Arc::clone(&engine) as Arc<dyn Extension>;
        let options = Options::new().extension(extension);
        let snapshot = self.snapshots.lock().unwrap().last().cloned();
        let replica = match snapshot {
            Some(blocks) => Replica::from_snapshot(options, blocks.into_iter().map(Ok), || {}),
            None => Replica::new(options, || {}),
        };
        let (replica, pending) = (replica.unwrap(), Vec::new());
        let (begun, store) = (Arc::clone(&engine), replica.store().clone());
        self.nodes.push(SharingNode { replica, engine, sent: 0, pending, produced: [0; 4] });
        let at = self.nodes.len() - 1;
        self.receive(at, usize::MAX);
        // The begin waits for the record of the epoch, if there is none yet.
        let beginning = thread::spawn(move || begun.begin(&store).unwrap());
        while !beginning.is_finished() {
            self.send(at, false);
            self.receive(at, usize::MAX);
            thread::yield_now();
        }
        beginning.join().unwrap();
    }

    fn send(&mut self, at: usize, is_faulty: bool) {
        let node = &mut self.nodes[at];
        let Some((number, message)) = node.replica.unconfirmed_after(node.sent) else { return };
        node.sent = number;
        if is_faulty && self.random.below(20) == 0 {
            return;
        }
        self.stream.push(message.to_vec());
        if is_faulty && self.random.below(20) == 0 {
            self.stream.push(message.to_vec());
        }
    }

    fn receive(&mut self, at: usize, count: usize) {
        let node = &mut self.nodes[at];
        for _ in 0..count {
            let position = node.replica.position();
            let Some(message) = self.stream.get(position as usize) else { return };
            let delivered = node.replica.deliver(position + 1, message).unwrap();
            if delivered == bine_store::Delivered::NeedsResend {
                node.sent = 0;
            }
        }
    }

    /// Runs a random command on a node.
    fn execute(&mut self, at: usize) {
        let random = &mut self.random;
        let channel = random.below(CHANNELS);
        let name: Arc<str> = format!("c{channel}").into();
        let node = &mut self.nodes[at];
        let command = match random.below(20) {
            0..3 => {
                let retention = Retention { messages: random.below(6), bytes: 0, age: 0 };
                let settings = Settings { retention, ..Settings::default() };
                let source: Arc<str> = format!("c{}", random.below(CHANNELS)).into();
                let fork = Fork { channel: source, until: None, bytes: 0 };
                let fork = (random.below(3) == 0).then_some(fork);
                let name = ChannelName::Given(name);
                Command::Create { name, settings, first: Vec::new(), is_closed: false, fork }
            }
            3 => Command::Remove(name),
            4 => Command::Renew(name),
            5 if random.below(4) == 0 => {
                Command::Publish(Publish { close: vec![name], ..Publish::default() })
            }
            6..10 => {
                // A client that repeats and skips its publications.
                let next = &mut node.produced[channel as usize];
                let sequence = next.saturating_sub(random.below(2)) + random.below(10) / 9;
                *next = sequence + 1;
                let id = format!("p{at}").into();
                let producer = Some(Producer { id, epoch: 0, sequence });
                let messages = vec![draft(&[name], random)];
                Command::Publish(Publish { messages, producer, ..Publish::default() })
            }
            _ => {
                let other: Arc<str> = format!("c{}", random.below(CHANNELS)).into();
                let names = if random.below(3) == 0 { vec![name, other] } else { vec![name] };
                let count = 1 + random.below(3);
                let messages = (0..count).map(|_| draft(&names, random)).collect();
                Command::Publish(Publish { messages, ..Publish::default() })
            }
        };
        let publisher = Publisher { name: format!("u{}", random.below(2)).into(), bytes: 5_000 };
        let publisher = (random.below(2) == 0).then_some(&publisher);
        let pending = node.engine.execute_for(command, publisher);
        node.pending.push(pending);
    }

    fn step(&mut self) {
        let at = self.random.below(self.nodes.len() as u64) as usize;
        match self.random.below(100) {
            0 => self.request_snapshot(at),
            1 if self.nodes.len() < 5 => self.join(),
            2..40 => self.execute(at),
            40..65 => self.send(at, true),
            _ => {
                let count = self.random.below(4) as usize;
                self.receive(at, count);
            }
        }
    }

    fn request_snapshot(&self, at: usize) {
        let snapshots = Arc::clone(&self.snapshots);
        let keep = move |snapshot: bine_store::ReplicaSnapshot| {
            let mut blocks = Vec::new();
            let mut put = |block: &[u8]| {
                blocks.push(block.to_vec());
                Ok(())
            };
            snapshot.write(&mut put).unwrap();
            snapshots.lock().unwrap().push(blocks);
        };
        self.nodes[at].replica.request_snapshot(keep).unwrap();
    }

    fn finish(&mut self) {
        for _ in 0..3 {
            for at in 0..self.nodes.len() {
                self.receive(at, usize::MAX);
                self.nodes[at].sent = 0;
                while self.nodes[at].replica.unconfirmed_after(self.nodes[at].sent).is_some() {
                    self.send(at, false);
                }
            }
        }
        for at in 0..self.nodes.len() {
            self.receive(at, usize::MAX);
        }
    }
}

fn draft(channels: &[Arc<str>], random: &mut Random) -> Draft {
    let id = (random.below(3) == 0).then(|| format!("m{}", random.below(20)).into());
    let body = format!("{}", random.below(1000)).repeat(1 + random.below(20) as usize);
    let content = Content { id, body: body.into_bytes().into(), ..Content::default() };
    Draft { channels: channels.to_vec(), content }
}

/// What a client sees of each channel from its first message on: bodies and the next cursor.
fn seen(engine: &Engine) -> Vec<Result<(Vec<String>, Cursor), Refused>> {
    (0..CHANNELS).map(|channel| read(engine, &format!("c{channel}"), Start::Earliest)).collect()
}

#[test]
fn all_nodes_have_the_same_channels_after_any_commands() {
    let (mut accepted, mut refused) = (0, 0);
    for seed in 0..200 {
        let mut nodes = SharedChannels::new(seed);
        for _ in 0..300 {
            nodes.step();
        }
        nodes.finish();
        let expected = seen(&nodes.nodes[0].engine);
        let image = |node: &SharingNode| node.engine.snapshot().collect::<Vec<_>>();
        let first = image(&nodes.nodes[0]);
        for (at, node) in nodes.nodes.iter_mut().enumerate() {
            assert_eq!(seen(&node.engine), expected, "seed {seed}, node {at}");
            for pending in node.pending.drain(..) {
                // All messages are delivered, so nothing blocks.
                match pending.wait() {
                    Ok(_) => accepted += 1,
                    Err(Error::Refused(_)) => refused += 1,
                    Err(error) => panic!("seed {seed}, node {at}: {error}"),
                }
            }
            assert!(image(node) == first, "seed {seed}, node {at}: the images differ");
            node.engine.end();
        }
    }
    assert!(accepted > 6_000 && refused > 1_000, "{accepted} {refused}");
}

/// A fixed list of nodes.
struct FixedNodes {
    own: &'static str,
    names: &'static [&'static str],
}

impl NodeDirectory for FixedNodes {
    fn own_name(&self) -> Option<Arc<str>> {
        Some(self.own.into())
    }

    fn names(&self) -> Option<Vec<String>> {
        Some(self.names.iter().map(ToString::to_string).collect())
    }
}

/// Runs two nodes, of which only those in `alive` send messages, until both have removed an expired
/// channel. Returns the number of messages of each node for it.
fn expire_on_two_nodes(names: [&'static str; 2], alive: [bool; 2]) -> [usize; 2] {
    const NAMES: &[&str] = &["a", "b", "c", "d", "e", "f"];
    let mut shared = SharedChannels::new(1);
    for node in shared.nodes.drain(2..) {
        node.engine.end();
    }
    for (node, own) in shared.nodes.iter().zip(names) {
        node.engine.set_nodes(Arc::new(FixedNodes { own, names: NAMES }));
    }
    let settings = Settings { expiry: Expiry::AfterPublish(1), ..Settings::default() };
    let create = Command::Create {
        name: ChannelName::Given("brief".into()),
        settings,
        first: Vec::new(),
        is_closed: false,
        fork: None,
    };
    let creating = shared.nodes[0].engine.execute(create);
    shared.send(0, false);
    for at in 0..2 {
        shared.receive(at, usize::MAX);
    }
    creating.wait().unwrap();
    let before = shared.stream.len();
    let mut counts = [0; 2];
    let deadline = std::time::Instant::now() + Duration::from_mins(1);
    let is_there = |node: &SharingNode| node.engine.hub(|hub| hub.len()) != Some(0);
    while shared.nodes.iter().any(is_there) {
        assert!(std::time::Instant::now() < deadline, "the channel does not expire");
        for at in (0..2).filter(|at| alive[*at]) {
            let length = shared.stream.len();
            shared.send(at, false);
            counts[at] += shared.stream.len() - length;
        }
        for at in 0..2 {
            shared.receive(at, usize::MAX);
        }
        thread::park_timeout(Duration::from_millis(1));
    }
    assert_eq!(counts.iter().sum::<usize>(), shared.stream.len() - before);
    shared.nodes.iter().for_each(|node| node.engine.end());
    counts
}

/// Each node wrote a record for each channel that expired.
#[test]
fn one_node_of_two_expires_a_channel() {
    assert_eq!(expire_on_two_nodes(["a", "f"], [true, true]), [1, 0]);
    assert_eq!(expire_on_two_nodes(["f", "a"], [true, true]), [0, 1]);
}

#[test]
fn next_node_expires_a_channel_when_the_first_one_has_ended() {
    assert_eq!(expire_on_two_nodes(["a", "b"], [false, true]), [0, 1]);
}

//! Tests of memory quotas: what counts, when a command is rejected, and whether the counts survive
//! a restart.

use std::sync::Arc;

use bine_push::{
    Applied, BodyFormat, ChannelName, Command, Content, Cursor, Draft, Expiry, Fork, GapPolicy,
    Hub, Limits, Message, Preparation, Prepared, Producer, Publish, Publisher, Quota, Refused,
    Retention, Sequence, Settings, SnapshotReader, Start, Subscription, Until,
};

/// An upper bound for the memory of a message or a channel besides its body.
const SPARE: u64 = 5 << 10;
pub(crate) const BODY: usize = 64 << 10;
pub(crate) const NOW: u64 = 1_000_000;

/// A hub and its journal.
pub(crate) struct Server {
    pub(crate) hub: Hub,
    journal: Vec<Vec<u8>>,
    now: u64,
}

pub(crate) fn server(limits: Limits) -> Server {
    Server { hub: Hub::new(1, limits), journal: Vec::new(), now: NOW }
}

pub(crate) fn limits(bytes: u64, channel_bytes: u64) -> Limits {
    Limits { bytes, channel_bytes, ..Limits::default() }
}

pub(crate) fn draft(channels: &[Arc<str>], length: usize) -> Draft {
    let content = Content { body: vec![b'x'; length].into(), ..Content::default() };
    Draft { channels: channels.to_vec(), content }
}

fn publisher(name: &str, bytes: u64) -> Publisher {
    Publisher { name: name.into(), bytes }
}

impl Server {
    fn prepare(&mut self, command: Command, by: Option<&Publisher>) -> Result<Prepared, Refused> {
        match self.hub.prepare_by(command, by, self.now)? {
            Preparation::Record(prepared) => Ok(prepared),
            Preparation::Done(applied) => panic!("{applied:?}"),
        }
    }

    fn apply(&mut self, prepared: Prepared) -> Applied {
        let mut record = Vec::new();
        prepared.write(&mut record);
        self.journal.push(record);
        self.hub.apply(prepared, self.journal.len() as u64).unwrap()
    }

    pub(crate) fn submit(
        &mut self,
        command: Command,
        by: Option<&Publisher>,
    ) -> Result<Applied, Refused> {
        let prepared = self.prepare(command, by)?;
        Ok(self.apply(prepared))
    }

    pub(crate) fn create(
        &mut self,
        name: &str,
        retention: Retention,
        first: Vec<Draft>,
        by: Option<&Publisher>,
    ) -> Result<Applied, Refused> {
        let settings = Settings { retention, ..Settings::default() };
        let name = ChannelName::Given(name.into());
        self.submit(Command::Create { name, settings, fork: None, first, is_closed: false }, by)
    }

    fn channels(&mut self, count: usize, retention: Retention) -> Vec<Arc<str>> {
        let names: Vec<Arc<str>> = (0..count).map(|number| number.to_string().into()).collect();
        for name in &names {
            self.create(name, retention, vec![], None).unwrap();
        }
        names
    }

    pub(crate) fn publish(
        &mut self,
        channels: &[Arc<str>],
        length: usize,
        by: Option<&Publisher>,
    ) -> Result<Applied, Refused> {
        let messages = vec![draft(channels, length)];
        self.submit(Command::Publish(Publish { messages, ..Publish::default() }), by)
    }

    /// Returns the messages of a channel.
    fn messages(&mut self, channel: &str) -> Vec<Arc<Message>> {
        let subscription = Subscription {
            channels: &[channel],
            start: Start::Earliest,
            end: Until::Open,
            gaps: GapPolicy::Reject,
            limit: 10,
            bytes: 1000,
        };
        self.hub.read(&subscription, NOW).unwrap().messages
    }

    fn remove(&mut self, name: &str) {
        self.submit(Command::Remove(name.into()), None).unwrap();
    }

    /// Restores the hub from the journal, and from a snapshot.
    fn restarted(&self, limits: Limits) -> [Hub; 2] {
        let mut replayed = Hub::new(1, limits);
        for (record, number) in self.journal.iter().zip(1..) {
            replayed.replay(record, number).unwrap();
        }
        let mut restoring = SnapshotReader::new(limits);
        for chunk in self.hub.snapshot() {
            restoring.receive(&chunk).unwrap();
        }
        [replayed, restoring.finish().unwrap()]
    }
}

#[track_caller]
pub(crate) fn quota<T: std::fmt::Debug>(result: Result<T, Refused>) -> Quota {
    match result {
        Err(Refused::QuotaExceeded { quota, .. }) => quota,
        other => panic!("{other:?}"),
    }
}

/// Symptom: one message of 16 MiB to 64 channels was checked once and counted 64 times, so two of
/// them exceeded the quota and blocked every channel for good.
#[test]
fn counts_a_shared_message_once_until_its_last_channel_drops_it() {
    let quota_bytes = 3 * BODY as u64 + 64 * SPARE;
    let mut server = server(limits(quota_bytes, quota_bytes));
    let names = server.channels(64, Retention::UNLIMITED);
    let empty = server.hub.bytes();
    for count in 1..=2 {
        server.publish(&names, BODY, None).unwrap();
        let held = server.hub.bytes() - empty;
        assert!((count * BODY as u64..count * (BODY as u64 + SPARE)).contains(&held), "{held}");
    }
    server.publish(&names[..1], 10, None).unwrap();
    for hub in server.restarted(limits(quota_bytes, quota_bytes)) {
        assert_eq!(hub.bytes(), server.hub.bytes());
    }
    for name in &names[1..] {
        server.remove(name);
    }
    assert!(server.hub.bytes() > 2 * BODY as u64, "one channel holds both");
    server.remove(&names[0]);
    assert_eq!(server.hub.bytes(), 0);
}

#[test]
fn restores_memory_counts_after_restart() {
    let limits = limits(1 << 20, 1 << 20);
    let mut server = server(limits);
    let (ann, ben) = (publisher("ann", 1 << 20), publisher("ben", 1 << 20));
    let two = Retention { messages: 2, ..Retention::UNLIMITED };
    server.create("a", two, vec![draft(&[], 1000)], Some(&ann)).unwrap();
    server.create("b", Retention::UNLIMITED, vec![], Some(&ben)).unwrap();
    let (a, b): (Arc<str>, Arc<str>) = ("a".into(), "b".into());
    for length in [100, 200, 300] {
        server.publish(&[a.clone(), b.clone()], length, Some(&ben)).unwrap();
        server.publish(std::slice::from_ref(&a), length, None).unwrap();
    }
    let mut named = draft(std::slice::from_ref(&b), 10);
    named.content.id = Some("id".into());
    let publish =
        Publish { messages: vec![named], producer: Some(producer("p", 0)), ..Publish::default() };
    server.submit(Command::Publish(publish), Some(&ann)).unwrap();
    let fork = Fork { channel: "b".into(), until: None, bytes: 0 };
    server
        .submit(
            Command::Create {
                name: ChannelName::Given("f".into()),
                settings: Settings::default(),
                fork: Some(fork),
                first: vec![],
                is_closed: false,
            },
            Some(&ann),
        )
        .unwrap();
    let check = |server: &Server| {
        for hub in server.restarted(limits) {
            assert_eq!(hub.bytes(), server.hub.bytes());
            for name in ["ann", "ben"] {
                assert_eq!(hub.publisher_bytes(name), server.hub.publisher_bytes(name), "{name}");
            }
        }
    };
    check(&server);
    assert!(server.hub.publisher_bytes("ben") > 600 && server.hub.publisher_bytes("ann") > 0);
    server.remove("b");
    check(&server);
    for name in ["a", "f"] {
        server.remove(name);
    }
    // The name of a forked channel takes memory until the last fork is removed.
    assert_eq!(
        (server.hub.bytes(), server.hub.publisher_bytes("ann"), server.hub.publisher_bytes("ben")),
        (0, 0, 0)
    );
    check(&server);
}

/// Symptom: the first messages of a new channel were not checked.
#[test]
fn checks_quota_for_first_messages() {
    let quota_bytes = 4 * BODY as u64;
    let mut server = server(limits(quota_bytes, quota_bytes));
    let mut make = |number: usize| {
        let name = ChannelName::Random(number as u128 * 7919);
        let settings = Settings { retention: Retention::UNLIMITED, ..Settings::default() };
        let first = vec![draft(&[], BODY)];
        server.submit(Command::Create { name, settings, fork: None, first, is_closed: false }, None)
    };
    let made = (0..100).take_while(|number| make(*number).is_ok()).count();
    assert_eq!(made, 3);
    assert_eq!(quota(make(100)), Quota::Total);
    assert!(server.hub.bytes() <= quota_bytes);
}

#[test]
fn rejects_first_messages_and_fork_over_channel_quota() {
    let mut server = server(limits(1 << 30, 2 * BODY as u64));
    let first = vec![draft(&[], BODY)];
    server.create("source", Retention::UNLIMITED, first.clone(), None).unwrap();
    let beyond = vec![draft(&[], 2 * BODY)];
    let refused = server.create("beyond", Retention::UNLIMITED, beyond.clone(), None);
    assert_eq!(quota(refused), Quota::Channel("beyond".into()));
    // A channel that drops its oldest messages accepts it.
    let limited = Retention { bytes: u64::MAX, ..Retention::UNLIMITED };
    server.create("limited", limited, beyond, None).unwrap();
    let mut fork = |first: Vec<Draft>| {
        let settings = Settings { retention: Retention::UNLIMITED, ..Settings::default() };
        let fork = Some(Fork { channel: "source".into(), until: None, bytes: 0 });
        let name = ChannelName::Given("fork".into());
        server.submit(Command::Create { name, settings, fork, first, is_closed: false }, None)
    };
    assert_eq!(quota(fork(first)), Quota::Channel("fork".into()));
    fork(vec![]).unwrap();
}

/// Two products in the estimate of a command's memory could become sums without a failing test.
#[test]
fn admits_command_exactly_when_its_memory_fits() {
    let publish = |channels: usize, change: fn(&mut Publish)| {
        move |names: &[Arc<str>]| {
            let messages = vec![draft(&names[..channels], 1000), draft(&names[..1], 10)];
            let mut publish = Publish { messages, ..Publish::default() };
            change(&mut publish);
            Command::Publish(publish)
        }
    };
    let create = |fork: Option<Fork>, first: Vec<Draft>| {
        move |_: &[Arc<str>]| {
            let name = ChannelName::Given("made".into());
            let settings = Settings { retention: Retention::UNLIMITED, ..Settings::default() };
            let (fork, first) = (fork.clone(), first.clone());
            Command::Create { name, settings, fork, first, is_closed: false }
        }
    };
    check_exact("a message", publish(1, |_| {}));
    check_exact("a message of eight channels", publish(8, |_| {}));
    let name_it = |publish: &mut Publish| publish.messages[0].content.id = Some("id".into());
    check_exact("a message with an id", publish(1, name_it));
    check_exact("a message of eight channels with an id", publish(8, name_it));
    let number_it = |publish: &mut Publish| publish.producer = Some(producer("new", 0));
    let label_it = |publish: &mut Publish| {
        publish.messages[0].content.headers = Box::from([("name".into(), "a value".into())]);
    };
    check_exact("a message with a header", publish(1, label_it));
    check_exact("a message of a producer", publish(1, number_it));
    let go_on = |publish: &mut Publish| publish.producer = Some(producer("known", 1));
    check_exact("a message of a producer that is known", publish(1, go_on));
    check_exact("a channel", create(None, vec![]));
    check_exact("a channel with its first messages", create(None, vec![draft(&[], 1000); 3]));
    let fork = Fork { channel: "0".into(), until: None, bytes: 0 };
    check_exact("a fork", create(Some(fork.clone()), vec![]));
    check_exact("a fork with its first message", create(Some(fork.clone()), vec![draft(&[], 9)]));
    // The second message is in record 10, after those of eight channels and of the first message.
    let until = Cursor { epoch: 1, sequence: Sequence::from_number(10 * 1024 - 1) };
    let cut = Fork { until: Some(until), bytes: 7, ..fork };
    check_exact("a fork that ends inside the second message", create(Some(cut), vec![]));
}

fn producer(id: &str, sequence: u64) -> Producer {
    Producer { id: id.into(), epoch: 0, sequence }
}

/// Submits a command to a hub with eight channels. The first channel has eleven messages; the last
/// of them is from a producer.
#[track_caller]
fn check_exact(what: &str, command: impl Fn(&[Arc<str>]) -> Command) {
    let start = || {
        let mut server = server(Limits::default());
        let names = server.channels(8, Retention::UNLIMITED);
        for _ in 0..10 {
            server.publish(&names[..1], 100, None).unwrap();
        }
        let messages = vec![draft(&names[..1], 100)];
        let known = Some(producer("known", 0));
        let publish = Publish { messages, producer: known, ..Publish::default() };
        server.submit(Command::Publish(publish), None).unwrap();
        (server, names)
    };
    let (mut free, names) = start();
    let before = free.hub.bytes();
    free.submit(command(&names), None).unwrap();
    for (quota_bytes, fits) in [(free.hub.bytes(), true), (free.hub.bytes() - 1, false)] {
        let (mut server, names) = start();
        server.hub.set_quotas(quota_bytes, u64::MAX);
        let prepared = server.prepare(command(&names), None);
        let (grown, room) = (free.hub.bytes() - before, quota_bytes - before);
        assert_eq!(prepared.is_ok(), fits, "{what}: takes {grown} of {room}: {prepared:?}");
    }
}

#[test]
fn applies_retention_before_rejecting() {
    let mut server = server(Limits::default());
    let newest = Retention { messages: 1, ..Retention::UNLIMITED };
    let names = server.channels(64, newest);
    let quota_bytes = server.hub.bytes() + 3 * BODY as u64 / 2 + 2 * SPARE;
    server.hub.set_quotas(quota_bytes, quota_bytes);
    for _ in 0..10 {
        server.publish(&names, BODY, None).unwrap();
    }
    // The messages of this channel stay, so a second one does not fit.
    server.create("own", Retention::UNLIMITED, vec![draft(&[], BODY / 2)], None).unwrap();
    server.publish(&names, BODY, None).unwrap();
    assert_eq!(quota(server.publish(&["own".into()], BODY, None)), Quota::Total);
}

#[test]
fn drops_oldest_or_rejects_at_channel_quota() {
    let quota_bytes = 2 * BODY as u64;
    let mut server = server(limits(1 << 30, quota_bytes));
    let names: [Arc<str>; 2] = ["limited".into(), "all".into()];
    let limited = Retention { bytes: u64::MAX, ..Retention::UNLIMITED };
    server.create("limited", limited, vec![], None).unwrap();
    server.create("all", Retention::UNLIMITED, vec![], None).unwrap();
    for _ in 0..5 {
        server.publish(&names[..1], BODY, None).unwrap();
    }
    assert_eq!(server.hub.describe("limited", NOW).unwrap().messages, 1);
    server.publish(&names[1..], BODY, None).unwrap();
    let refused = server.publish(&names[1..], BODY, None);
    assert_eq!(quota(refused.clone()), Quota::Channel("all".into()));
    let text = refused.unwrap_err().to_string();
    assert!(text.starts_with("channel `all` takes 65"), "{text}");
    assert!(
        text.contains("of 131072 bytes") && text.contains("channels-bytes-per-channel"),
        "{text}"
    );
}

#[test]
fn charges_each_publisher_to_its_own_quota() {
    let mut server = server(limits(1 << 30, 1 << 30));
    let names = server.channels(2, Retention::UNLIMITED);
    let (ann, ben) = (publisher("ann", 3 * BODY as u64), publisher("ben", 3 * BODY as u64));
    for _ in 0..2 {
        server.publish(&names, BODY, Some(&ann)).unwrap();
    }
    let refused = server.publish(&names, BODY, Some(&ann));
    assert_eq!(quota(refused.clone()), Quota::Publisher("ann".into()));
    let text = refused.unwrap_err().to_string();
    assert!(text.starts_with("what `ann` has published takes 131"), "{text}");
    assert!(text.contains("channels-bytes-per-subject"), "{text}");
    server.publish(&names, BODY, Some(&ben)).unwrap();
    server.publish(&names, BODY, None).unwrap();
    for hub in &mut server.restarted(limits(1 << 30, 1 << 30)) {
        let messages = vec![draft(&names, BODY)];
        let command = Command::Publish(Publish { messages, ..Publish::default() });
        assert_eq!(quota(hub.prepare_by(command, Some(&ann), NOW)), Quota::Publisher("ann".into()));
    }
    // Channels without messages count too.
    let made = (0..10_000).take_while(|number| {
        server.create(&format!("new/{number}"), Retention::default(), vec![], Some(&ben)).is_ok()
    });
    assert!((1..1000).contains(&made.count()));
}

#[test]
fn counts_prepared_commands_against_quota() {
    let mut server = server(limits(4 * BODY as u64, 1 << 30));
    let names = server.channels(1, Retention::UNLIMITED);
    let command = || {
        let messages = vec![draft(&names, BODY)];
        Command::Publish(Publish { messages, ..Publish::default() })
    };
    let mut under_way: Vec<Prepared> =
        (0..3).map(|_| server.prepare(command(), None).unwrap()).collect();
    assert_eq!(quota(server.prepare(command(), None)), Quota::Total);
    // A command that could not be journaled releases its memory.
    drop(under_way.pop());
    under_way.push(server.prepare(command(), None).unwrap());
    for prepared in under_way {
        server.apply(prepared);
    }
    assert_eq!(quota(server.prepare(command(), None)), Quota::Total);
}

/// Symptom: the ring kept up to 64 MiB of messages that no channel held any more, and no quota
/// counted them.
#[test]
fn removes_dropped_messages_from_ring() {
    let mut server = server(limits(1 << 30, 1 << 30));
    let retention = Retention { messages: 1, ..Retention::UNLIMITED };
    let names = server.channels(2, retention);
    let body: Arc<[u8]> = vec![b'x'; BODY].into();
    let mut publish = |channels: &[Arc<str>]| {
        let content = Content { body: body.clone(), ..Content::default() };
        let messages = vec![Draft { channels: channels.to_vec(), content }];
        server.submit(Command::Publish(Publish { messages, ..Publish::default() }), None).unwrap();
    };
    for _ in 0..10 {
        publish(&names[..1]);
    }
    // The test's own reference and the channel's message, which the ring shares.
    assert_eq!(Arc::strong_count(&body), 2);
    publish(&names);
    publish(&names[..1]);
    assert_eq!(Arc::strong_count(&body), 3);
    server.remove("0");
    server.remove("1");
    assert_eq!(Arc::strong_count(&body), 1);
    // The same for messages that become too old or are removed with their channel.
    let retention = Retention { age: 100, ..Retention::UNLIMITED };
    server.create("old", retention, vec![], None).unwrap();
    let settings = Settings { expiry: Expiry::AfterPublish(200), ..Settings::default() };
    let name = ChannelName::Given("short".into());
    let content = Content { body: body.clone(), ..Content::default() };
    let first = vec![Draft { channels: vec![], content: content.clone() }];
    server
        .submit(Command::Create { name, settings, fork: None, first, is_closed: false }, None)
        .unwrap();
    let messages = vec![Draft { channels: vec!["old".into()], content }];
    server.submit(Command::Publish(Publish { messages, ..Publish::default() }), None).unwrap();
    // The test's own reference, the message from `content`, and the one from `first`.
    assert_eq!(Arc::strong_count(&body), 3);
    assert!(server.hub.expire(NOW + 101, 100).is_none());
    assert_eq!(Arc::strong_count(&body), 2);
    let due = server.hub.expire(NOW + 300, 100).unwrap();
    server.apply(due);
    assert_eq!(Arc::strong_count(&body), 1);
}

#[test]
fn counts_channel_name_and_content_type() {
    let bytes_of = |name: &str, content_type: Option<&str>| {
        let mut own = server(Limits::default());
        let settings =
            Settings { content_type: content_type.map(Into::into), ..Settings::default() };
        let (name, first) = (ChannelName::Given(name.into()), vec![]);
        own.submit(Command::Create { name, settings, fork: None, first, is_closed: false }, None)
            .unwrap();
        let listed: Vec<_> = own.hub.list_after("").collect();
        assert_eq!(listed.iter().map(|each| each.bytes).collect::<Vec<_>>(), [own.hub.bytes()]);
        own.hub.bytes()
    };
    let least = bytes_of("a", None);
    assert!((512..8 << 10).contains(&least), "{least}");
    assert_eq!(bytes_of(&"a".repeat(201), None), least + 200);
    assert_eq!(bytes_of("a", Some("text/plain")), least + 10);
}

#[test]
fn reports_channels_and_free_memory() {
    let mut own = server(limits(100_000, 100_000));
    assert!(own.hub.is_empty() && own.hub.has_room(100_000) && !own.hub.has_room(100_001));
    for (count, name) in (1..).zip(["a", "b", "c"]) {
        own.create(name, Retention::default(), vec![], None).unwrap();
        assert_eq!(own.hub.len(), count);
    }
    assert!(!own.hub.is_empty() && !own.hub.has_room(100_000));
    for name in ["a", "b", "c"] {
        own.remove(name);
    }
    assert!(own.hub.is_empty());
}

#[test]
fn creates_fork_once_when_requested_twice() {
    let mut own = server(Limits::default());
    own.create("a", Retention::default(), vec![], None).unwrap();
    let fork = || {
        let fork = Some(Fork { channel: "a".into(), until: None, bytes: 0 });
        let (settings, first) = (Settings::default(), vec![]);
        Command::Create {
            name: ChannelName::Given("b".into()),
            settings,
            fork,
            first,
            is_closed: false,
        }
    };
    let commands = [own.prepare(fork(), None).unwrap(), own.prepare(fork(), None).unwrap()];
    let [first, second] = commands.map(|command| own.apply(command));
    assert!(matches!(first, Applied::Created { .. }) && matches!(second, Applied::Existed { .. }));
}

/// A million messages of one channel share one list of channels.
#[test]
fn shares_channel_list_between_messages() {
    let mut own = server(Limits::default());
    own.create("a", Retention::default(), vec![], None).unwrap();
    for _ in 0..2 {
        own.publish(&["a".into()], 10, None).unwrap();
    }
    let messages = own.messages("a");
    let [one, other] = &messages[..] else { panic!("{} messages", messages.len()) };
    assert!(Arc::ptr_eq(&one.channels, &other.channels));
}

/// A message that a second channel still holds frees no memory.
#[test]
fn frees_message_when_last_channel_drops_it() {
    let newest = Retention { messages: 1, ..Retention::default() };
    let mut own = server(Limits::default());
    let both = own.channels(2, newest);
    own.publish(&both, BODY, None).unwrap();
    own.hub.set_quotas(own.hub.bytes() + BODY as u64 / 2, u64::MAX);
    let refused = own.publish(&both[..1], BODY, None).unwrap_err();
    assert!(matches!(refused, Refused::QuotaExceeded { quota: Quota::Total, .. }), "{refused:?}");
    own.publish(&both, BODY, None).unwrap();
}

#[test]
fn frees_quota_of_publisher_whose_message_retention_drops() {
    let newest = Retention { messages: 1, ..Retention::default() };
    let mut own = server(Limits::default());
    let channels = own.channels(2, newest);
    let quota_bytes = BODY as u64 * 3 / 2;
    let (ann, ben) = (publisher("ann", quota_bytes), publisher("ben", quota_bytes));
    for _ in 0..3 {
        own.publish(&channels[..1], BODY, Some(&ann)).unwrap();
    }
    own.publish(&channels[1..], BODY, Some(&ben)).unwrap();
    // The new message replaces one of another publisher, which frees nothing in its own quota.
    let refused = own.publish(&channels[1..], BODY, Some(&ann)).unwrap_err();
    assert!(
        matches!(refused, Refused::QuotaExceeded { quota: Quota::Publisher(_), .. }),
        "{refused:?}"
    );
}

#[test]
fn accepts_first_message_that_exactly_fills_channel() {
    let create = |quota_bytes: u64| {
        let mut own = server(limits(1 << 30, quota_bytes));
        let first = vec![draft(&[], BODY)];
        own.create("a", Retention::UNLIMITED, first, None)?;
        Ok::<_, Refused>(own.hub.describe("a", NOW).unwrap().bytes)
    };
    let weight = create(1 << 30).unwrap();
    assert_eq!(create(weight), Ok(weight));
    assert!(create(weight - 1).is_err());
}

#[test]
fn explains_corrupt_record() {
    let text = Hub::new(1, Limits::default()).replay(b"?", 1).unwrap_err().to_string();
    assert!(text.contains("not a channel record"), "{text}");
}

#[test]
fn creates_closed_channel() {
    let mut own = server(Limits::default());
    for is_closed in [true, false] {
        let name = ChannelName::Given(is_closed.to_string().into());
        let (settings, first) = (Settings::default(), vec![]);
        own.submit(Command::Create { name, settings, fork: None, first, is_closed }, None).unwrap();
        let there = own.hub.describe(&is_closed.to_string(), NOW).unwrap();
        assert_eq!(there.is_closed, is_closed);
    }
}

/// A prefix that ends inside a UTF-8 character is not text.
#[test]
fn recomputes_body_format_of_truncated_message() {
    let forms = |bytes: u64| {
        let mut own = server(Limits::default());
        let settings =
            || Settings { content_type: Some("text/plain".into()), ..Settings::default() };
        let (name, first) = (ChannelName::Given("a".into()), vec![]);
        let made =
            Command::Create { name, settings: settings(), fork: None, first, is_closed: false };
        own.submit(made, None).unwrap();
        let until = Some(own.hub.watermark());
        let content = Content { body: "\u{e4}\u{f6}".as_bytes().into(), ..Content::default() };
        let messages = vec![Draft { channels: vec!["a".into()], content }];
        own.submit(Command::Publish(Publish { messages, ..Publish::default() }), None).unwrap();
        let fork = Some(Fork { channel: "a".into(), until, bytes });
        let (name, first) = (ChannelName::Given("b".into()), vec![]);
        own.submit(
            Command::Create { name, settings: settings(), fork, first, is_closed: false },
            None,
        )
        .unwrap();
        let messages = own.messages("b");
        let each = |message: &Arc<Message>| (message.format, message.body.len());
        messages.iter().map(each).collect::<Vec<_>>()
    };
    assert_eq!(forms(2), [(BodyFormat::Text, 2)]);
    assert_eq!(forms(3), [(BodyFormat::Binary, 3)]);
}

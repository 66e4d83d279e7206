//! Tests followers: each message arrives once and in order, and only the followed channels wake a
//! task.

use std::sync::atomic::{AtomicUsize, Ordering};

use bine_push::{Command, Publish};
use bine_store::disk::SimulatedFolder;
use bine_store::{Options, Store};

use super::*;
use crate::channels::async_waiter::AsyncWaiter;
use crate::channels::async_waiters::{RingPosition, WaitOutcome};
use crate::channels::clock::now;
use crate::channels::{Channels, Retention, Settings};

fn begin() -> (Channels, Store) {
    let channels = Channels::new();
    let options = Options::new().extension(channels.store_extension());
    let disk = SimulatedFolder::new(1, 1 << 30);
    let store = Store::in_folder(Arc::new(disk.process()), options, &mut |_, _| {}).unwrap();
    channels.begin(&store).unwrap();
    (channels, store)
}

fn create(channels: &Channels, name: &str) {
    let retention = Retention { messages: 3, ..Retention::default() };
    channels.create(name, Settings { retention, ..Settings::default() }).wait().unwrap();
}

fn say(channels: &Channels, name: &str, word: &str) {
    channels.publish(name, word).wait().unwrap();
}

/// Reads without blocking: bodies, `lost` for a gap, `end` for the end.
fn heard(follower: &mut Follower) -> Vec<String> {
    let mut heard = Vec::new();
    loop {
        heard.push(match follower.wait(Duration::ZERO) {
            Some(Ok(message)) => message.text().unwrap().to_owned(),
            Some(Err(Interruption::Gap { .. })) => "lost".to_owned(),
            Some(Err(Interruption::TimedOut)) => return heard,
            Some(Err(Interruption::Refused(refused))) => refused.to_string(),
            None => {
                heard.push("end".to_owned());
                return heard;
            }
        });
    }
}

#[derive(Default)]
struct Count(AtomicUsize);

impl Wake for Count {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

#[test]
fn wakes_a_task_for_its_own_channels_only() {
    let (channels, _store) = begin();
    for name in ["news", "weather", "sport"] {
        create(&channels, name);
    }
    let count = Arc::new(Count::default());
    let waker = Waker::from(Arc::clone(&count));
    let mut task = Context::from_waker(&waker);
    let mut follower = channels.follow(["news", "weather"]);
    assert!(follower.poll_next(&mut task).is_pending());
    say(&channels, "sport", "unheard");
    assert_eq!(count.0.load(Ordering::Relaxed), 0);
    say(&channels, "weather", "rain");
    assert_eq!(count.0.load(Ordering::Relaxed), 1);
    say(&channels, "news", "one");
    // The task is awake now.
    assert_eq!(count.0.load(Ordering::Relaxed), 1);
    let Poll::Ready(Some(Ok(message))) = follower.poll_next(&mut task) else { panic!() };
    assert_eq!(message.text(), Ok("rain"));
    assert_eq!(message.channels().collect::<Vec<_>>(), ["weather"]);
    assert_eq!(heard(&mut follower), ["one"]);
}

#[test]
fn begins_at_its_creation_or_at_a_given_position() {
    let (channels, _store) = begin();
    create(&channels, "news");
    say(&channels, "news", "one");
    let mut from_now = channels.follow(["news"]);
    say(&channels, "news", "two");
    assert_eq!(heard(&mut from_now), ["two"]);
    let mut earliest = channels.follow(["news"]).earliest();
    let Some(Ok(one)) = earliest.wait(Duration::ZERO) else { panic!() };
    assert_eq!((one.text(), one.content_type()), (Ok("one"), "text/plain; charset=utf-8"));
    assert_eq!(heard(&mut channels.follow(["news"]).after(one.cursor())), ["two"]);
    assert_eq!(heard(&mut channels.follow(["news"]).since(one.time())), ["one", "two"]);
    assert_eq!(heard(&mut channels.follow(["nowhere"])).len(), 2);
}

#[test]
fn reports_a_gap_before_the_messages_after_it() {
    let (channels, _store) = begin();
    create(&channels, "news");
    let mut follower = channels.follow(["news"]);
    for number in 1..=5 {
        say(&channels, "news", &number.to_string());
    }
    assert_eq!(heard(&mut follower), ["lost", "3", "4", "5"]);
    say(&channels, "news", "6");
    assert_eq!(heard(&mut follower), ["6"]);
}

#[test]
fn ends_after_the_last_message_of_a_closed_channel_and_with_the_server() {
    let (channels, store) = begin();
    create(&channels, "news");
    create(&channels, "weather");
    let (mut follower, mut other) = (channels.follow(["news"]), channels.follow(["weather"]));
    say(&channels, "news", "last");
    let publish = Publish { close: vec!["news".into()], ..Publish::default() };
    channels.execute(Command::Publish(publish)).wait().unwrap();
    assert_eq!(heard(&mut follower), ["last", "end"]);
    let waits = thread::spawn(move || other.wait(Duration::from_mins(5)).is_none());
    channels.end();
    store.close();
    assert!(waits.join().unwrap());
}

#[test]
fn yields_between_full_batches() {
    let (channels, _store) = begin();
    channels.create("many", Settings::default()).wait().unwrap();
    (0..250).for_each(|number| say(&channels, "many", &number.to_string()));
    let mut follower = channels.follow(["many"]).earliest();
    let count = Arc::new(Count::default());
    let waker = Waker::from(Arc::clone(&count));
    let (mut task, mut messages) = (Context::from_waker(&waker), 0);
    while messages < 250 {
        messages += usize::from(follower.poll_next(&mut task).is_ready());
    }
    assert_eq!(count.0.load(Ordering::Relaxed), 2);
}

#[test]
fn waiting_threads_miss_no_message() {
    let (channels, _store) = begin();
    channels.create("many", Settings::default()).wait().unwrap();
    let followers: Vec<_> = (0..4)
        .map(|_| {
            let mut follower = channels.follow(["many"]);
            thread::spawn(move || {
                let mut next = || follower.wait(Duration::from_mins(1)).unwrap().unwrap();
                (0..1000).map(|_| next().json::<u32>().unwrap()).collect::<Vec<_>>()
            })
        })
        .collect();
    (0..1000).for_each(|number| say(&channels, "many", &number.to_string()));
    for follower in followers {
        assert_eq!(follower.join().unwrap(), (0..1000).collect::<Vec<_>>());
    }
}

#[test]
fn follower_is_send() {
    fn is_send<T: Send>() {}
    is_send::<Follower>();
    is_send::<ReceivedMessage>();
}

/// Symptom: a lone follower was never woken. Cause: only waiting followers recorded the position up
/// to which they were notified.
#[test]
fn reads_again_when_a_publication_precedes_the_wait() {
    let (channels, _store) = begin();
    create(&channels, "news");
    let engine = &channels.0;
    let seat = AsyncWaiter::new(Arc::clone(engine));
    let spec = SubscriptionSpec::of(["news".into()].into());
    let names = spec.names();
    let subscription = spec.subscription(&names, Start::Now, spec.holes);
    let read = engine.hub(|hub| {
        let moment = RingPosition { ring: hub.ring().position(), epoch: hub.watermark().epoch };
        (hub.read(&subscription, now()).unwrap().rest, moment)
    });
    let Some((Rest::Wait(parking), moment)) = read else { panic!("there is nothing yet") };
    say(&channels, "news", "one");
    assert_eq!(seat.wait(&parking, moment, Waker::noop()), WaitOutcome::Stale);
}

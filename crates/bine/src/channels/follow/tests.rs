//! Claims about followers: they get every message once and in order, and are woken by their own channels alone.

use std::sync::atomic::{AtomicUsize, Ordering};

use bine_push::{Command, Publish};
use bine_store::disk::SimulatedFolder;
use bine_store::{Options, Store};

use super::*;
use crate::channels::audience::{Moment, Waiting};
use crate::channels::clock::now;
use crate::channels::seat::Seat;
use crate::channels::{Channels, Retention, Settings};

fn begin() -> (Channels, Store) {
    let channels = Channels::new();
    let options = Options::new().extension(channels.guest());
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

/// What is there for it now: words, holes as `lost`, an end as `end`.
fn heard(follower: &mut Follower) -> Vec<String> {
    let mut heard = Vec::new();
    loop {
        heard.push(match follower.wait(Duration::ZERO) {
            Some(Ok(message)) => message.text().unwrap().to_owned(),
            Some(Err(Interruption::Lost { .. })) => "lost".to_owned(),
            Some(Err(Interruption::Quiet)) => return heard,
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
fn a_task_is_woken_by_its_own_channels_alone() {
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
    // It is awake.
    assert_eq!(count.0.load(Ordering::Relaxed), 1);
    let Poll::Ready(Some(Ok(message))) = follower.poll_next(&mut task) else { panic!() };
    assert_eq!(message.text(), Ok("rain"));
    assert_eq!(message.channels().collect::<Vec<_>>(), ["weather"]);
    assert_eq!(heard(&mut follower), ["one"]);
}

#[test]
fn a_follower_begins_when_it_is_made_or_where_it_is_told_to() {
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
fn a_hole_is_told_before_what_comes_behind_it() {
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
fn a_closed_channel_ends_it_behind_its_last_message_and_the_server_ends_it_too() {
    let (channels, store) = begin();
    create(&channels, "news");
    create(&channels, "weather");
    let (mut follower, mut other) = (channels.follow(["news"]), channels.follow(["weather"]));
    say(&channels, "news", "last");
    let publish = Publish { close: vec!["news".into()], ..Publish::default() };
    channels.order(Command::Publish(publish)).wait().unwrap();
    assert_eq!(heard(&mut follower), ["last", "end"]);
    let waits = thread::spawn(move || other.wait(Duration::from_mins(5)).is_none());
    channels.end();
    store.close();
    assert!(waits.join().unwrap());
}

#[test]
fn whoever_has_much_to_read_lets_others_have_their_turn() {
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
fn threads_that_wait_while_others_publish_miss_nothing() {
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
fn a_follower_may_go_to_another_thread() {
    fn is_send<T: Send>() {}
    is_send::<Follower>();
    is_send::<Received>();
}

/// It was never woken, when nobody else waited: only those who wait were told up to where.
#[test]
fn one_who_reads_before_a_publication_and_waits_behind_it_reads_again() {
    let (channels, _store) = begin();
    create(&channels, "news");
    let engine = &channels.0;
    let seat = Seat::new(Arc::clone(engine));
    let watch = Watch::of(["news".into()].into());
    let names = watch.names();
    let subscription = watch.subscription(&names, Start::Now, watch.holes);
    let read = engine.hub(|hub| {
        let moment = Moment { ring: hub.ring().position(), epoch: hub.watermark().epoch };
        (hub.read(&subscription, now()).unwrap().rest, moment)
    });
    let Some((Rest::Wait(parking), moment)) = read else { panic!("there is nothing yet") };
    say(&channels, "news", "one");
    assert_eq!(seat.wait(&parking, moment, Waker::noop()), Waiting::Late);
}

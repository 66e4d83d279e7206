//! Measures the data structures of channels alone, without sockets, threads or disk.

use std::fs;
use std::hint::black_box;
use std::sync::Arc;
use std::time::Instant;

use anyhow::{Context, Result, bail};
use bine_push::{
    AfterDelivery, ChannelName, Command, Content, Draft, GapPolicy, Hub, Limits, MessageBatch,
    Preparation, Publish, Rest, Retention, Settings, SnapshotReader, Start, Subscription, Until,
    View, WaitKind, WaitOptions, WaitPoint, WaiterLimits, Waiters,
};

use crate::arguments::Arguments;
use crate::figures::Spread;
use crate::machine;

/// A fixed time, in milliseconds since 1970.
const NOW: u64 = 1_700_000_000_000;

/// Prints the cost of waiting, delivering, publishing and reading.
pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    let waiters = arguments.number("--waiters", 100_000)? as usize;
    let messages = arguments.number("--messages", 1_000_000)?;
    let rounds = arguments.number("--rounds", 21)?;
    println!("{}\n\n| operation | figure |\n|---|---|", machine::facts());
    wait(waiters, rounds)?;
    keep(messages, rounds)
}

/// The memory of waiters, and the time of a delivery.
fn wait(count: usize, rounds: u64) -> Result<()> {
    let mut hub = hub()?;
    let Rest::Wait(parking) = read(&hub, Start::Now, 1)?.rest else {
        bail!("the channel is closed")
    };
    let before = resident()?;
    let mut waiters = park(&hub, count, &parking, WaitKind::Poll)?;
    let bytes = (resident()? - before) as f64 / count as f64;
    println!("| resident bytes of a parked poll ({count}) | {bytes:.0} |");

    let mut record = 2;
    let mut polls = Vec::new();
    let mut streams = Vec::new();
    for _ in 0..rounds {
        polls.push(deliver(&mut hub, &mut waiters, &mut record, count)?);
        waiters = park(&hub, count, &parking_now(&hub)?, WaitKind::Stream)?;
        streams.push(deliver(&mut hub, &mut waiters, &mut record, count)?);
        waiters = park(&hub, count, &parking_now(&hub)?, WaitKind::Poll)?;
    }
    print("ns per delivery to a poll, which then ends", polls)?;
    print("ns per delivery to a stream", streams)
}

/// Publishes once and delivers to all waiters, in slices of 256; returns nanoseconds per waiter.
fn deliver(hub: &mut Hub, waiters: &mut Waiters, record: &mut u64, count: usize) -> Result<f64> {
    publish(hub, *record)?;
    *record += 1;
    let mut delivered = 0;
    let begin = Instant::now();
    waiters.receive(hub.ring());
    while waiters.advance(256, |delivery| {
        black_box(delivery);
        delivered += 1;
        AfterDelivery::Keep
    }) {}
    let time = begin.elapsed().as_secs_f64() * 1e9;
    if delivered != count {
        bail!("delivered to {delivered} of {count}");
    }
    Ok(time / count as f64)
}

/// The cost of publishing, finding, writing and restoring `count` retained messages.
fn keep(count: u64, rounds: u64) -> Result<()> {
    let mut hub = hub()?;
    let before = resident()?;
    let begin = Instant::now();
    for record in 0..count {
        publish(&mut hub, record + 2)?;
    }
    let time = begin.elapsed().as_secs_f64() * 1e9 / count as f64;
    println!("| ns per publication, {count} retained | {time:.0} |");
    let bytes = (resident()? - before) as f64 / count as f64;
    println!("| resident bytes of a retained message of 100 bytes | {bytes:.0} |");

    let middle = read(&hub, Start::Since(NOW + count / 2), 1)?.next;
    for (what, start) in [
        ("ns to read 10 from a cursor in the middle", Start::After(middle)),
        ("ns to read 10 from a time in the middle", Start::Since(NOW + count / 2)),
    ] {
        let sample = || -> Result<f64> {
            let begin = Instant::now();
            for _ in 0..1000 {
                black_box(read(&hub, start, 10)?);
            }
            Ok(begin.elapsed().as_secs_f64() * 1e9 / 1000.0)
        };
        print(what, (0..rounds).map(|_| sample()).collect::<Result<_>>()?)?;
    }

    let begin = Instant::now();
    let snapshot = hub.snapshot();
    let taken = begin.elapsed().as_secs_f64() * 1e3;
    let chunks: Vec<Vec<u8>> = snapshot.collect();
    let written = begin.elapsed().as_secs_f64() * 1e3;
    let bytes: usize = chunks.iter().map(Vec::len).sum();
    println!(
        "| ms to take a snapshot, and to write its {} MB | {taken:.1}, {written:.0} |",
        bytes >> 20
    );
    let begin = Instant::now();
    let mut restoring = SnapshotReader::new(limits());
    for chunk in &chunks {
        restoring.receive(chunk)?;
    }
    black_box(restoring.finish()?);
    println!("| ms to restore it | {:.0} |", begin.elapsed().as_secs_f64() * 1e3);
    Ok(())
}

fn print(what: &str, samples: Vec<f64>) -> Result<()> {
    println!("| {what} | {} |", Spread::of(samples).context("no samples")?);
    Ok(())
}

fn limits() -> Limits {
    Limits { bytes: u64::MAX, channel_bytes: u64::MAX, ..Limits::default() }
}

/// A hub with one channel.
fn hub() -> Result<Hub> {
    let mut hub = Hub::new(1, limits());
    let name = ChannelName::Given("news".into());
    let settings = Settings { retention: Retention::UNLIMITED, ..Settings::default() };
    let first = Vec::new();
    give(&mut hub, 1, Command::Create { name, settings, fork: None, first, is_closed: false })?;
    Ok(hub)
}

/// Publishes one message of 100 bytes per millisecond.
fn publish(hub: &mut Hub, record: u64) -> Result<()> {
    let body = Arc::from([b'x'; 100]);
    let content = Content { content_type: Some("text/plain".into()), body, ..Content::default() };
    let messages = vec![Draft { channels: vec!["news".into()], content }];
    give(hub, record, Command::Publish(Publish { messages, ..Publish::default() }))
}

fn give(hub: &mut Hub, record: u64, order: Command) -> Result<()> {
    let Preparation::Record(prepared) = hub.prepare(order, NOW + record)? else {
        bail!("already done")
    };
    hub.apply(prepared, record)?;
    Ok(())
}

fn read(hub: &Hub, start: Start, limit: usize) -> Result<MessageBatch> {
    let subscription = Subscription {
        channels: &["news"],
        start,
        end: Until::Open,
        gaps: GapPolicy::Reject,
        limit,
        bytes: usize::MAX,
    };
    Ok(hub.read(&subscription, NOW)?)
}

fn parking_now(hub: &Hub) -> Result<WaitPoint> {
    match read(hub, Start::Now, 1)?.rest {
        Rest::Wait(parking) => Ok(parking),
        _ => bail!("the channel is closed"),
    }
}

/// Room for waiters in ten channels each.
fn crowd(waiters: usize) -> WaiterLimits {
    WaiterLimits { waiters, subscriptions: 10 * waiters }
}

fn park(hub: &Hub, count: usize, parking: &WaitPoint, kind: WaitKind) -> Result<Waiters> {
    let mut waiters = Waiters::new(1, crowd(count), hub.ring().position());
    for token in 0..count as u64 {
        let wait = WaitOptions { view: View::Json, kind };
        waiters.park(token, parking, wait).ok().context("no space for a waiter")?;
    }
    Ok(waiters)
}

/// The resident bytes of this process.
fn resident() -> Result<u64> {
    let words = fs::read_to_string("/proc/self/statm")?;
    let pages = words.split_whitespace().nth(1).context("statm has no second word")?;
    Ok(pages.parse::<u64>()? * 4096)
}

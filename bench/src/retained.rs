//! Shows that reads and expiry cost the same when the number of retained messages grows a
//! thousandfold.

use std::hint::black_box;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use bine_push::{
    ChannelName, Command, Content, Draft, Expiry, GapPolicy, Hub, Limits, Preparation, Publish,
    Retention, Settings, Start, Subscription, Until,
};

use crate::arguments::Arguments;
use crate::figures::Spread;
use crate::machine;
use crate::random::Random;

/// A fixed time, in milliseconds since 1970.
const NOW: u64 = 1_700_000_000_000;
/// Reads or expirations per sample.
const SAMPLE: u64 = 200;

/// Prints one column per number of messages and channels.
pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    let words =
        arguments.names("--counts").unwrap_or_else(|| vec!["1000", "10000", "100000", "1000000"]);
    let counts: Vec<u64> = words
        .into_iter()
        .map(|word| word.parse().with_context(|| format!("--counts {word}")))
        .collect::<Result<_>>()?;
    let rounds = arguments.number("--rounds", 21)?;
    let least = 2 * SAMPLE;
    ensure!(counts.iter().all(|count| *count >= least), "--counts must be at least {least}");

    let columns: Vec<String> = counts.iter().map(u64::to_string).collect();
    let columns = columns.join(" | ");
    println!(
        "{}\n\n| ns, medians of {rounds}, by number of retained | {columns} |",
        machine::facts()
    );
    println!("|---|{}", "---|".repeat(counts.len()));
    let mut rows: Vec<(&str, Vec<String>)> = Vec::new();
    for count in counts {
        for (place, (title, spread)) in measure(count, rounds)?.into_iter().enumerate() {
            if rows.len() <= place {
                rows.push((title, Vec::new()));
            }
            rows[place]
                .1
                .push(format!("{:.0} ({:.0}-{:.0})", spread.median, spread.least, spread.most));
        }
    }
    for (title, cells) in rows {
        println!("| {title} | {} |", cells.join(" | "));
    }
    Ok(())
}

/// The cost of each operation with `count` messages or channels, in nanoseconds.
fn measure(count: u64, rounds: u64) -> Result<Vec<(&'static str, Spread)>> {
    let mut random = Random(count);
    let mut hub = Hub::new(1, limits());
    let retention = Retention { age: count, ..Retention::UNLIMITED };
    create(&mut hub, 1, "news", Settings { retention, ..Settings::default() })?;
    // One message per millisecond: from now on each new message expires an old one.
    for record in 2..count + 2 {
        publish(&mut hub, record, NOW + record)?;
    }
    let end = NOW + count + 1;
    let since = |random: &mut Random| Start::Since(end - random.below(count));

    let mut figures = Vec::new();
    let samples =
        |title, sample: &mut dyn FnMut() -> Result<f64>| -> Result<(&'static str, Spread)> {
            let all = (0..rounds).map(|_| sample()).collect::<Result<Vec<_>>>()?;
            Ok((title, Spread::of(all).context("no rounds")?))
        };
    figures.push(samples("read 10 after a cursor", &mut || {
        let cursors: Vec<Start> = (0..SAMPLE)
            .map(|_| Ok(Start::After(read(&hub, since(&mut random), end)?)))
            .collect::<Result<_>>()?;
        reads(&hub, &cursors, end)
    })?);
    figures.push(samples("read 10 from a time", &mut || {
        let times: Vec<Start> = (0..SAMPLE).map(|_| since(&mut random)).collect();
        reads(&hub, &times, end)
    })?);
    let mut record = count + 2;
    figures.push(samples("publish one, which expires one", &mut || {
        let begin = Instant::now();
        for _ in 0..SAMPLE {
            publish(&mut hub, record, NOW + record)?;
            record += 1;
        }
        Ok(per_operation(begin))
    })?);
    let mut now = NOW + record - 1;
    figures.push(samples("expire one message by its age", &mut || {
        let mut time = Duration::ZERO;
        for _ in 0..SAMPLE {
            now += 1;
            let begin = Instant::now();
            ensure!(hub.expire(now, usize::MAX).is_none(), "a channel was due");
            time += begin.elapsed();
            publish(&mut hub, record, now)?;
            record += 1;
        }
        Ok(time.as_secs_f64() * 1e9 / SAMPLE as f64)
    })?);
    drop(hub);
    figures.push(channels(count, rounds)?);
    Ok(figures)
}

/// The cost of expiring one of `count` channels, which is due before the rest.
fn channels(count: u64, rounds: u64) -> Result<(&'static str, Spread)> {
    let mut hub = Hub::new(1, Limits { channels: usize::MAX, ..limits() });
    for record in 1..=count {
        let expiry = Expiry::At(NOW + 2 * count + record);
        create(&mut hub, record, &record.to_string(), Settings { expiry, ..Settings::default() })?;
    }
    let (mut record, mut now) = (count + 1, NOW + 2 * count);
    let mut samples = Vec::new();
    for _ in 0..rounds.min(count / SAMPLE - 1) {
        let begin = Instant::now();
        for _ in 0..SAMPLE {
            now += 1;
            let due = hub.expire(now, usize::MAX).context("no channel was due")?;
            hub.apply(due, record)?;
            record += 1;
        }
        samples.push(per_operation(begin));
    }
    ensure!(hub.names_after("").next().is_some(), "all channels expired");
    Ok(("expire one channel", Spread::of(samples).context("no rounds")?))
}

fn reads(hub: &Hub, starts: &[Start], now: u64) -> Result<f64> {
    let begin = Instant::now();
    for start in starts {
        black_box(read(hub, *start, now)?);
    }
    Ok(per_operation(begin))
}

/// Reads ten messages; returns the next cursor.
fn read(hub: &Hub, start: Start, now: u64) -> Result<bine_push::Cursor> {
    let subscription = Subscription {
        channels: &["news"],
        start,
        end: Until::Open,
        gaps: GapPolicy::Reject,
        limit: 10,
        bytes: usize::MAX,
    };
    Ok(hub.read(&subscription, now)?.next)
}

fn per_operation(begin: Instant) -> f64 {
    begin.elapsed().as_secs_f64() * 1e9 / SAMPLE as f64
}

fn limits() -> Limits {
    Limits { bytes: u64::MAX, channel_bytes: u64::MAX, ..Limits::default() }
}

fn create(hub: &mut Hub, record: u64, name: &str, settings: Settings) -> Result<()> {
    let (name, first) = (ChannelName::Given(name.into()), Vec::new());
    let order = Command::Create { name, settings, fork: None, first, is_closed: false };
    give(hub, record, order, NOW)
}

fn publish(hub: &mut Hub, record: u64, now: u64) -> Result<()> {
    let body = Arc::from([b'x'; 100]);
    let content = Content { content_type: Some("text/plain".into()), body, ..Content::default() };
    let messages = vec![Draft { channels: vec!["news".into()], content }];
    give(hub, record, Command::Publish(Publish { messages, ..Publish::default() }), now)
}

fn give(hub: &mut Hub, record: u64, order: Command, now: u64) -> Result<()> {
    let Preparation::Record(prepared) = hub.prepare(order, now)? else { bail!("already done") };
    hub.apply(prepared, record)?;
    Ok(())
}

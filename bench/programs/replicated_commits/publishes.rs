//! Publishes of NATS alone, to compare commits with: the time of an acknowledgment, and the rate.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use async_nats::jetstream;
use async_nats::jetstream::context::PublishAckFuture;
use bytes::Bytes;

use crate::{DEADLINE, Target};

/// The bytes of a message: the length of a commit of one row.
const LENGTH: usize = 300;
/// Publishes without an acknowledgment, as in the link of a node.
const IN_FLIGHT: usize = 64;

/// Measures `single` publishes, one at a time, and the rate of `many`.
pub(crate) fn measure(target: &Target, stream: &str, [single, many]: [usize; 2]) {
    let mut builder = tokio::runtime::Builder::new_current_thread();
    let runtime = builder.enable_all().build().expect("a runtime");
    runtime.block_on(async {
        let context = open_stream(target, stream).await;
        let payload = Bytes::from(vec![b'x'; LENGTH]);
        let publish = || context.publish(stream.to_owned(), payload.clone());
        let mut times = Vec::with_capacity(single);
        for _ in 0..single {
            let begun = Instant::now();
            publish().await.expect("it is sent").await.expect("it is acknowledged");
            times.push(begun.elapsed());
        }
        times.sort_unstable();
        let milliseconds = |time: Duration| time.as_secs_f64() * 1e3;
        let (p50, p99) = (times[single / 2], times[single * 99 / 100]);
        let begun = Instant::now();
        let mut in_flight = VecDeque::<PublishAckFuture>::new();
        for _ in 0..many {
            if in_flight.len() == IN_FLIGHT {
                let oldest = in_flight.pop_front().expect("it is full");
                oldest.await.expect("it is acknowledged");
            }
            in_flight.push_back(publish().await.expect("it is sent"));
        }
        for publish in in_flight {
            publish.await.expect("it is acknowledged");
        }
        println!(
            "NATS alone, {LENGTH} bytes: acknowledgment p50 {:.2} ms, p99 {:.2} ms; {IN_FLIGHT} in flight: {:.0} messages/s",
            milliseconds(p50),
            milliseconds(p99),
            many as f64 / begun.elapsed().as_secs_f64(),
        );
    });
}

/// Connects, and opens a stream whose subject has its name.
pub(crate) async fn open_stream(target: &Target, name: &str) -> jetstream::Context {
    let context = connect(target).await;
    let config = jetstream::stream::Config {
        name: name.to_owned(),
        subjects: vec![name.to_owned()],
        num_replicas: target.copies,
        ..jetstream::stream::Config::default()
    };
    // Servers that have just started elect a leader first.
    let deadline = Instant::now() + DEADLINE;
    while let Err(error) = context.get_or_create_stream(config.clone()).await {
        assert!(Instant::now() < deadline, "{error}");
    }
    context
}

pub(crate) async fn connect(target: &Target) -> jetstream::Context {
    let servers: Vec<&str> = target.url.split(',').collect();
    jetstream::new(async_nats::connect(servers).await.expect("a server answers"))
}

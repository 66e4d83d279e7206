//! How long responses take on one kept connection, with and without the algorithm of Nagle, and with
//! a small send buffer.

use std::time::{Duration, Instant};

use anyhow::Result;

use super::{Bench, FILES, LONG_PAGE, SHORT_PAGE, shown};
use crate::peer::Peer;
use crate::samples::figures;

/// Linux delays an acknowledgment by at least 40 ms; a response that takes nearly 40 ms has waited
/// for an acknowledgment.
const DELAYED: Duration = Duration::from_millis(35);

/// Options of a listener.
struct Choice {
    title: &'static str,
    listen: &'static str,
}

/// Hop's send buffer has 12 KB.
const CHOICES: [Choice; 4] = [
    Choice { title: "the defaults", listen: "" },
    Choice { title: "Nagle", listen: ",nodelay=off" },
    Choice { title: "12 KB to send", listen: ",send-buffer=12288" },
    Choice { title: "12 KB to send, Nagle", listen: ",send-buffer=12288,nodelay=off" },
];

/// The times of the requests of one round.
#[derive(Clone, Copy, Debug)]
struct Sample {
    /// In milliseconds.
    p50: f64,
    p99: f64,
    /// The percentage that waited for an acknowledgment.
    delayed: f64,
}

figures!(Sample { p50: "p50_ms", p99: "p99_ms", delayed: "delayed_percent" });

/// Requests the responses in sequence, and prints the table.
pub(super) fn measure(bench: &Bench<'_>) -> Result<()> {
    let files = FILES.map(|size| (format!("file of {size} bytes"), format!("/{size}.html")));
    let pages = [("page of 0.3 KB", SHORT_PAGE), ("page of 1 MB in chunks", LONG_PAGE)];
    let pages = pages.map(|(title, path)| (title.to_owned(), path.to_owned()));
    let contents: Vec<(String, String)> = files.into_iter().chain(pages).collect();
    let cells = || contents.iter().flat_map(|content| CHOICES.iter().map(move |c| (content, c)));
    let mut all: Vec<Vec<Sample>> = cells().map(|_| Vec::new()).collect();
    let mut samples = bench.samples("hop-io-delays", "response,listener", all.len())?;
    for round in 1..=bench.rounds {
        for (((title, path), choice), own) in cells().zip(&mut all) {
            own.push(samples.take(&[title.as_str(), choice.title], round, || {
                let running = bench.start(choice.listen, &[])?;
                let sample = sample(running.port, path, bench.requests)?;
                running.stop()?;
                Ok(sample)
            })?);
        }
    }
    let mut lines = vec![
        format!(
            "Times of {} requests, one after the other on a kept connection. *Delayed* responses took at least {} ms: \
             their last packet waited for an acknowledgment, which Linux delays by 40 ms.\n",
            bench.requests,
            DELAYED.as_millis()
        ),
        "| response | listener | p50, ms | p99, ms | delayed, % |".to_owned(),
        "|---|---|---|---|---|".to_owned(),
    ];
    for (((title, _), choice), samples) in cells().zip(&all) {
        let of = |figure| shown(samples, figure);
        lines.push(format!(
            "| {title} | {} | {} | {} | {} |",
            choice.title,
            of(|sample| sample.p50),
            of(|sample| sample.p99),
            of(|sample| sample.delayed)
        ));
    }
    println!("{}\n", lines.join("\n"));
    samples.finish()
}

fn sample(port: u16, path: &str, requests: u64) -> Result<Sample> {
    let mut peer = Peer::connect(port)?;
    let mut times = Vec::new();
    for _ in 0..requests {
        let begun = Instant::now();
        peer.get(path)?;
        times.push(begun.elapsed());
    }
    Ok(Sample::of(times))
}

impl Sample {
    /// Of at least one time.
    fn of(mut times: Vec<Duration>) -> Self {
        times.sort_unstable();
        let at = |percent: usize| times[(times.len() - 1) * percent / 100].as_secs_f64() * 1e3;
        let delayed = times.iter().filter(|time| **time >= DELAYED).count();
        Self { p50: at(50), p99: at(99), delayed: 100.0 * delayed as f64 / times.len() as f64 }
    }
}

#[cfg(test)]
mod tests {
    //! The figures of some times.

    use super::*;

    #[test]
    fn counts_responses_that_waited_for_an_acknowledgment() {
        let times = (0..100).map(|number| Duration::from_millis(if number < 25 { 41 } else { 2 }));
        let sample = Sample::of(times.collect());
        let figures = [sample.p50, sample.p99, sample.delayed];
        assert_eq!(figures.map(|figure| figure.round() as i64), [2, 41, 25]);
    }
}

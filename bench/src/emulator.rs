//! Emulates visitors: their arrivals, their sessions, and the counts.
//!
//! Visitors arrive as a Poisson process, independently of the server's speed, as on a real site.
//! Each sends requests on one kept connection, waits for the response, fetches embedded files,
//! thinks, and requests the next page. A response that takes more than ten seconds, or a 503, ends
//! the session. A connection that the server closed is counted and opened again.

mod answer;
mod histogram;
pub(crate) mod page_client;
pub(crate) mod script;
mod secure;
mod session;
mod tally;
mod visitors;

use std::time::Duration;

use anyhow::Result;

use crate::random::Random;
use crate::surge::models::exponential;
use script::Script;
pub(crate) use session::End;
pub(crate) use tally::{Close, SLOT, Tally};

/// The time limit for a response: httperf's timeout in Carrera et al.
pub(crate) const PATIENCE: Duration = Duration::from_secs(10);

/// A rate of visitors per second, for some time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Stretch {
    pub(crate) length: Duration,
    pub(crate) rate: f64,
}

/// The parameters of one run.
pub(crate) struct Run {
    pub(crate) port: u16,
    /// The stretches, one after the next.
    pub(crate) load: Vec<Stretch>,
    /// The part of the run that counts.
    pub(crate) window: std::ops::Range<Duration>,
    pub(crate) patience: Duration,
    /// Sockets open at one time; visitors who arrive when all are taken are counted as turned away.
    pub(crate) sockets: usize,
    pub(crate) seed: u64,
    /// Whether visitors use TLS, each with its own tickets.
    pub(crate) is_secure: bool,
    /// The longest sessions of each class except the last, in pages.
    pub(crate) bounds: &'static [u64],
}

impl Run {
    fn end(&self) -> Duration {
        self.load.iter().map(|stretch| stretch.length).sum()
    }

    /// Runs the emulation. `script` creates the session of each visitor, by number and in order.
    pub(crate) fn emulate(&self, script: &mut dyn FnMut(u64) -> Box<dyn Script>) -> Result<Tally> {
        visitors::run(self, Tally::new(self.window.clone(), self.bounds), script)
    }
}

/// The arrival times of visitors.
struct Arrivals {
    /// The end of each stretch, and its rate.
    stretches: Vec<(f64, f64)>,
    random: Random,
    /// In seconds.
    now: f64,
}

impl Arrivals {
    fn new(load: &[Stretch], seed: u64) -> Self {
        let mut end = 0.0;
        let stretches = load.iter().map(|stretch| {
            end += stretch.length.as_secs_f64();
            (end, stretch.rate)
        });
        Self { stretches: stretches.collect(), random: Random::of(seed, 0), now: 0.0 }
    }
}

impl Iterator for Arrivals {
    type Item = Duration;

    fn next(&mut self) -> Option<Duration> {
        // The drawn value is the expected number of arrivals until the next; each stretch uses up
        // its part.
        let mut left = exponential(1.0, &mut self.random);
        for (end, rate) in &self.stretches {
            if self.now >= *end {
                continue;
            }
            let within = (end - self.now) * rate;
            if left < within {
                self.now += left / rate;
                return Some(Duration::from_secs_f64(self.now));
            }
            left -= within;
            self.now = *end;
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead, BufReader, Write};
    use std::net::TcpListener;

    use super::*;
    use crate::emulator::script::Reader;
    use crate::surge::Surge;

    #[test]
    fn visitors_arrive_at_the_rate_of_each_stretch() {
        let stretch = |seconds, rate| Stretch { length: Duration::from_secs(seconds), rate };
        let load = [stretch(100, 20.0), stretch(50, 80.0), stretch(10, 0.0), stretch(100, 20.0)];
        let times: Vec<f64> = Arrivals::new(&load, 1).map(|at| at.as_secs_f64()).collect();
        let within = |from, to| times.iter().filter(|at| **at >= from && **at < to).count();
        assert!(within(0.0, 100.0).abs_diff(2000) < 200);
        assert!(within(100.0, 150.0).abs_diff(4000) < 280);
        assert_eq!(within(150.0, 160.0), 0);
        assert!(within(160.0, 260.0).abs_diff(2000) < 200);
        assert!(times.is_sorted());
    }

    /// A server with one thread per connection that sends the same response to every request.
    fn answering() -> u16 {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        std::thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                std::thread::spawn(move || {
                    let mut lines = BufReader::new(stream.try_clone().unwrap()).lines();
                    let mut stream = stream;
                    while let Some(Ok(line)) = lines.next() {
                        let answer = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello";
                        if line.is_empty() && stream.write_all(answer).is_err() {
                            return;
                        }
                    }
                });
            }
        });
        port
    }

    #[test]
    fn completes_sessions_of_surge_on_real_sockets() {
        let run = Run {
            port: answering(),
            load: vec![
                Stretch { length: Duration::from_millis(200), rate: 200.0 },
                Stretch { length: Duration::from_secs(1), rate: 0.0 },
            ],
            window: Duration::ZERO..Duration::from_secs(9),
            patience: PATIENCE,
            sockets: 1000,
            seed: 1,
            is_secure: false,
            bounds: &[1],
        };
        let mut surge = Surge::new(1, 50, 500);
        let tally = run.emulate(&mut |_| Box::new(Reader::new(surge.session(0.001)))).unwrap();
        assert!(tally.begun > 0);
        let ended = tally.ends.iter().sum::<u64>() + tally.open;
        assert_eq!(ended, tally.begun, "every session is counted: {tally:?}");
        assert_eq!(tally.ends[End::Faulty as usize], 0, "{:?}", tally.errors);
        assert_eq!(tally.closed, [0; 4]);
    }
}

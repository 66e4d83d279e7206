//! Simulation of a server with two workers: admitted sessions are completed under any load.
//! Compares session admission with other queue policies.
//!
//! `cargo test -p bine-admission simulation -- --nocapture` prints the table.
//!
//! A request takes 10 ms, and the mean think time is 2 s. A session ends when a request is rejected
//! or has no response within 10 s. This is a model, not a measurement: it has no network and no
//! retries. The tests compare the results with the numbers in the guide. The random numbers are the
//! same in each run, but machines round logarithms differently.

#![expect(clippy::cast_sign_loss, reason = "times and random numbers are not negative")]

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use super::{
    Admission, AdmissionOutcome, AdmissionSettings, Duration, LoopTurn, PresentedTicket,
    RequestIdentity,
};

const WORKERS: usize = 2;
/// The run time of a request in microseconds, the unit of all times here.
const SERVICE: u64 = 10_000;
const THINK: f64 = 2_000_000.0;
const PATIENCE: u64 = 10_000_000;
const SECOND: u64 = 1_000_000;
/// The capacity in requests per second.
const CAPACITY: f64 = WORKERS as f64 * SECOND as f64 / SERVICE as f64;
const LENGTH: u32 = 20;
/// Sessions that start in this range are measured. The longest one ends before [`END`].
const WARM_UP: u64 = 30 * SECOND;
const LAST: u64 = 270 * SECOND;
const END: u64 = 390 * SECOND;

const GUIDE: &str = include_str!("../../../../../docs/guide/overload.md");

/// The load at a time, as a share of the capacity.
type Load = fn(u64) -> f64;

/// The policy that admits requests and orders them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Discipline {
    Fifo,
    /// A queue of this length.
    TailDrop(usize),
    /// Controlled delay (RFC 8289): once all requests have waited for more than 5 ms during 100 ms,
    /// such requests are dropped at an increasing rate.
    CoDel,
    Sessions,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Lengths {
    Fixed,
    /// Uniformly distributed from 1 to 39.
    Random,
}

#[derive(Clone, Copy, Debug, Default)]
struct Session {
    began: u64,
    length: u32,
    done: u32,
    ticket: Option<u64>,
    was_admitted: bool,
    is_over: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Event {
    /// A new visitor arrives.
    Arrival,
    /// A visitor requests the next page.
    Request(usize),
    /// A worker completes a request that arrived at this time.
    Completion(usize, u64),
}

/// The results of the measured sessions.
#[derive(Clone, Copy, Debug, Default)]
struct Outcome {
    /// The share of the capacity that completed sessions used.
    useful: f64,
    /// The share of completed sessions among the admitted ones.
    finished: f64,
    /// The same for sessions of at least twenty requests, and for shorter ones.
    long: f64,
    short: f64,
    /// The share of rejected sessions.
    refused: f64,
    /// The 99th percentile of the response time in milliseconds.
    p99: u64,
}

struct Model {
    discipline: Discipline,
    lengths: Lengths,
    load: Load,
    admission: Admission,
    random: u64,
    now: u64,
    events: BinaryHeap<Reverse<(u64, u64, Event)>>,
    count: u64,
    sessions: Vec<Session>,
    queue: VecDeque<(usize, u64)>,
    busy: usize,
    codel: CoDel,
    /// The time of each response, and its response time.
    responses: Vec<(u64, u64)>,
    refusals: Vec<u64>,
}

#[derive(Default)]
struct CoDel {
    above_since: Option<u64>,
    next_drop: Option<u64>,
    drops: u32,
}

impl Model {
    fn new(discipline: Discipline, lengths: Lengths, load: Load) -> Self {
        Self {
            discipline,
            lengths,
            load,
            admission: Admission::with_test_clock(AdmissionSettings::default(), WORKERS),
            random: 1,
            now: 0,
            events: BinaryHeap::new(),
            count: 0,
            sessions: Vec::new(),
            queue: VecDeque::new(),
            busy: 0,
            codel: CoDel::default(),
            responses: Vec::new(),
            refusals: Vec::new(),
        }
    }

    fn run(&mut self, until: u64) {
        self.schedule(0, Event::Arrival);
        while let Some(Reverse((time, _, event))) = self.events.pop()
            && time <= until
        {
            self.now = time;
            self.admission.set_time(time / 1000);
            match event {
                Event::Arrival => self.arrive(),
                Event::Request(session) => self.request(session),
                Event::Completion(session, arrived) => self.complete(session, arrived),
            }
        }
    }

    fn arrive(&mut self) {
        let length = match self.lengths {
            Lengths::Fixed => LENGTH,
            Lengths::Random => 1 + (self.random_unit() * f64::from(2 * LENGTH - 1)) as u32,
        };
        self.sessions.push(Session { began: self.now, length, ..Session::default() });
        self.request(self.sessions.len() - 1);
        let per_second = (self.load)(self.now) * CAPACITY / f64::from(LENGTH);
        let gap = self.exponential(SECOND as f64 / per_second);
        self.schedule(gap, Event::Arrival);
    }

    fn request(&mut self, number: usize) {
        let is_admitted = match self.discipline {
            Discipline::Fifo | Discipline::CoDel => true,
            Discipline::TailDrop(most) => self.queue.len() < most,
            Discipline::Sessions => self.admit(number),
        };
        if !is_admitted {
            self.refusals.push(self.now);
            self.sessions[number].is_over = true;
            return;
        }
        self.sessions[number].was_admitted = true;
        self.admission.handed_over();
        self.queue.push_back((number, self.now));
        self.start_waiting();
    }

    fn admit(&mut self, number: usize) -> bool {
        if !self.admission.is_awake() {
            return true;
        }
        let session = &mut self.sessions[number];
        let ticket = session.ticket.map_or(PresentedTicket::None, PresentedTicket::Valid);
        let identity = RequestIdentity { ticket, has_begun: false, stand_in: None };
        match self.admission.admit(identity) {
            AdmissionOutcome::Known => true,
            AdmissionOutcome::Reissue(id) | AdmissionOutcome::Admitted(id) => {
                session.ticket = Some(id);
                true
            }
            AdmissionOutcome::Rejected => false,
        }
    }

    /// Starts waiting requests on idle workers.
    fn start_waiting(&mut self) {
        while self.busy < WORKERS
            && let Some((number, arrived)) = self.queue.pop_front()
        {
            let wait = self.now - arrived;
            if self.discipline == Discipline::CoDel && self.codel.drops(wait, self.now) {
                self.sessions[number].is_over = true;
                continue;
            }
            self.admission.waited(Duration::from_micros(wait));
            self.busy += 1;
            // A server does not notice that the visitor has given up.
            self.schedule(SERVICE, Event::Completion(number, arrived));
        }
    }

    fn complete(&mut self, number: usize, arrived: u64) {
        self.busy -= 1;
        self.admission.ran(Duration::from_micros(SERVICE), true);
        self.admission.turned(LoopTurn::default());
        let took = self.now - arrived;
        if took > PATIENCE {
            self.sessions[number].is_over = true;
        } else {
            self.responses.push((self.now, took));
            let session = &mut self.sessions[number];
            session.done += 1;
            session.is_over = session.done == session.length;
            if !session.is_over {
                let think = self.exponential(THINK);
                self.schedule(think, Event::Request(number));
            }
        }
        self.start_waiting();
    }

    fn outcome(&self) -> Outcome {
        let measured = |session: &&Session| (WARM_UP..LAST).contains(&session.began);
        let all: Vec<&Session> = self.sessions.iter().filter(measured).collect();
        let is_finished = |session: &&&Session| session.done == session.length;
        let share = |part: usize, whole: usize| part as f64 / whole.max(1) as f64;
        let finished_of = |matches: &dyn Fn(&Session) -> bool| {
            let admitted: Vec<_> =
                all.iter().filter(|session| session.was_admitted && matches(session)).collect();
            share(admitted.iter().copied().filter(is_finished).count(), admitted.len())
        };
        let useful: u32 = all.iter().filter(is_finished).map(|session| session.length).sum();
        let seconds = (LAST - WARM_UP) as f64 / SECOND as f64;
        let admitted = all.iter().filter(|session| session.was_admitted).count();
        Outcome {
            useful: f64::from(useful) / (CAPACITY * seconds),
            finished: finished_of(&|_| true),
            long: finished_of(&|session| session.length >= LENGTH),
            short: finished_of(&|session| session.length < LENGTH),
            refused: 1.0 - share(admitted, all.len()),
            p99: self.p99(WARM_UP..END),
        }
    }

    fn p99(&self, time: std::ops::Range<u64>) -> u64 {
        let responses = self.responses.iter().filter(|(when, _)| time.contains(when));
        let mut took: Vec<u64> = responses.map(|(_, took)| took / 1000).collect();
        took.sort_unstable();
        took.get(took.len() * 99 / 100).copied().unwrap_or(0)
    }

    fn schedule(&mut self, after: u64, event: Event) {
        self.count += 1;
        self.events.push(Reverse((self.now + after, self.count, event)));
    }

    fn exponential(&mut self, mean: f64) -> u64 {
        (-(1.0 - self.random_unit()).ln() * mean) as u64
    }

    /// Returns a random number from 0 to 1 (`SplitMix64`).
    fn random_unit(&mut self) -> f64 {
        self.random = self.random.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut bits = self.random;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((bits ^ (bits >> 31)) >> 11) as f64 / (1u64 << 53) as f64
    }
}

impl CoDel {
    fn drops(&mut self, wait: u64, now: u64) -> bool {
        if wait < 5000 {
            *self = Self::default();
            return false;
        }
        let since = *self.above_since.get_or_insert(now);
        if now < since + 100_000 || self.next_drop.is_some_and(|next| now < next) {
            return false;
        }
        self.drops += 1;
        let gap = 100_000.0 / f64::from(self.drops).sqrt();
        self.next_drop = Some(self.next_drop.unwrap_or(now) + gap as u64);
        true
    }
}

/// Finds the sentence `pattern` in the guide and returns the numbers in place of each `#`.
fn quoted<const COUNT: usize>(pattern: &str) -> [f64; COUNT] {
    let guide = GUIDE.split_whitespace().collect::<Vec<_>>().join(" ");
    let (first, rest_of_pattern) = pattern.split_once('#').unwrap();
    let numbers_at = |(place, _): (usize, &str)| {
        let mut rest = &guide[place + first.len()..];
        let number = |piece: &str| {
            let (number, after) = rest.split_once(piece)?;
            rest = after;
            number.parse().ok()
        };
        rest_of_pattern.split('#').map(number).collect::<Option<Vec<f64>>>()
    };
    let numbers = guide.match_indices(first).find_map(numbers_at);
    numbers.unwrap_or_else(|| panic!("the guide has no `{pattern}`")).try_into().unwrap()
}

/// Checks that a number in the guide is within `bound` of the simulated one.
fn check(quoted: f64, actual: f64, bound: f64, what: &str) {
    assert!((quoted - actual).abs() <= bound, "{what}: the guide has {quoted}, the model {actual}");
}

fn outcome(discipline: Discipline, lengths: Lengths, load: Load) -> Outcome {
    let mut model = Model::new(discipline, lengths, load);
    model.run(END);
    model.outcome()
}

#[test]
fn finishes_admitted_sessions_at_two_and_four_times_capacity() {
    println!("| load | policy | lengths | useful | finished | long | short | refused | p99 |");
    println!("|---|---|---|---|---|---|---|---|---|");
    let loads: [(&str, Load); 3] = [("1.2", |_| 1.2), ("2", |_| 2.0), ("4", |_| 4.0)];
    for (name, load) in loads {
        for lengths in [Lengths::Fixed, Lengths::Random] {
            let mut results = Vec::new();
            for discipline in [
                Discipline::Fifo,
                Discipline::TailDrop(100),
                Discipline::CoDel,
                Discipline::Sessions,
            ] {
                let outcome = outcome(discipline, lengths, load);
                let Outcome { useful, finished, long, short, refused, p99 } = outcome;
                println!(
                    "| {name} | {discipline:?} | {lengths:?} | {useful:.2} | {finished:.3} | {long:.3} | {short:.3} | {refused:.2} | {p99} ms |"
                );
                if discipline == Discipline::Sessions {
                    assert!(useful >= 0.8, "{outcome:?}");
                    assert!(finished >= 0.99, "{outcome:?}");
                    assert!(
                        lengths == Lengths::Fixed || (long - short).abs() <= 0.02,
                        "{outcome:?}"
                    );
                } else if load(0) > 1.9 {
                    assert!(useful < 0.6, "{discipline:?} is expected to be worse: {outcome:?}");
                }
                results.push((format!("{discipline:?}"), useful));
                if discipline == Discipline::Sessions {
                    results.push(("finished".to_owned(), finished));
                }
            }
            if lengths == Lengths::Fixed && load(0) > 1.9 {
                let row = quoted::<5>(&format!("| {name} x | # % | # % | # % | # % | # % |"));
                for ((what, actual), quoted) in results.iter().zip(row) {
                    check(quoted, 100.0 * actual, 1.5, &format!("at {name} x, {what}, %"));
                }
            }
        }
    }
}

#[test]
fn recovers_within_two_seconds_of_a_surge() {
    const SURGE: std::ops::Range<u64> = 60 * SECOND..120 * SECOND;
    let load = |now: u64| if SURGE.contains(&now) { 4.0 } else { 0.7 };
    let mut times = [const { Vec::new() }; 3];
    for seed in 1..=4 {
        let mut model = Model::new(Discipline::Sessions, Lengths::Fixed, load);
        model.random = seed;
        model.run(200 * SECOND);
        let calm = model.p99(WARM_UP..SURGE.start);
        let back = SURGE.end + 2 * SECOND;
        let (during, after) = (model.p99(SURGE), model.p99(back..200 * SECOND));
        println!("p99: calm {calm} ms, in the surge {during} ms, after it {after} ms");
        let late = model.refusals.iter().filter(|time| **time > back).count();
        let early = model.refusals.iter().filter(|time| **time < SURGE.start).count();
        let arrivals = model.sessions.iter().filter(|session| session.began > back).count();
        println!(
            "refused: before {early}, after {late} of {arrivals}, in all {}",
            model.refusals.len()
        );
        assert_eq!(early, 0);
        assert!(during <= 2 * calm, "calm {calm} ms, in the surge {during} ms");
        assert!(after <= 2 * calm, "calm {calm} ms, after it {after} ms");
        // While the last sessions of the surge end, a new session may be rejected.
        assert!(late * 50 <= arrivals, "{late} of {arrivals} were refused");
        for (times, time) in times.iter_mut().zip([during, calm, after]) {
            times.push(time as f64);
        }
    }
    let quoted = [
        quoted("| in the surge | 4 x | # to # ms |"),
        quoted("| before the surge | 0.7 x | # to # ms |"),
        quoted("| two seconds after the surge | 0.7 x | # to # ms"),
    ];
    for ([least, most], times) in quoted.into_iter().zip(times) {
        check(least, times.iter().copied().fold(f64::MAX, f64::min), 2.0, "least p99, ms");
        check(most, times.iter().copied().fold(0.0, f64::max), 2.0, "longest p99, ms");
    }
}

/// Each visit has twenty pages, each on a new connection. A visit that began before admission woke
/// is unknown until its next request.
#[test]
fn rejects_few_existing_sessions_in_a_sudden_surge() {
    const BEGIN: u64 = 60 * SECOND;
    let calm: [Load; 3] = [
        |now| if now < BEGIN { 0.1 } else { 4.0 },
        |now| if now < BEGIN { 0.3 } else { 4.0 },
        |now| if now < BEGIN { 0.5 } else { 4.0 },
    ];
    let expected = ["0.1", "0.3", "0.5"].map(|load| quoted::<2>(&format!("| {load} x | # of # |")));
    for (load, [expected_cut, expected_all]) in calm.into_iter().zip(expected) {
        let (mut cut, mut all) = (0, 0);
        for seed in 1..=8 {
            let mut model = Model::new(Discipline::Sessions, Lengths::Fixed, load);
            model.random = seed;
            model.run(140 * SECOND);
            for session in &model.sessions {
                let counts =
                    session.was_admitted && (1..BEGIN + 20 * SECOND).contains(&session.began);
                all += u32::from(counts);
                cut += u32::from(counts && session.is_over && session.done < session.length);
            }
        }
        println!("at {} before, {cut} of {all} were cut off", load(0));
        assert!(cut * 100 <= all, "{cut} of {all}");
        let what = format!("at {} before", load(0));
        check(expected_cut, f64::from(cut), 3.0, &format!("{what}, cut off"));
        check(expected_all, f64::from(all), expected_all / 500.0, &what);
    }
}

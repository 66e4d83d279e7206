//! Decides that sessions are finished whatever comes: the model of a server with two workers, as it was done before there
//! was a server, against what others do. `cargo test -p bine-admission simulation -- --nocapture` prints the table.
//!
//! A request takes 10 ms; between two a visitor thinks for 2 s on average. Who gets no answer in 10 s is gone, and so is
//! whoever is refused. A model, not a measurement: there is no network, and nobody tries again. What the guide tells of it
//! is read there and compared; chances are the same in each run, but not every machine rounds a logarithm alike.

#![expect(clippy::cast_sign_loss, reason = "times and chances are not below zero")]

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use super::{Admission, Asker, Duration, Shown, Terms, Turn, Verdict};

const WORKERS: usize = 2;
/// Microseconds, as all times here.
const SERVICE: u64 = 10_000;
const THINK: f64 = 2_000_000.0;
const PATIENCE: u64 = 10_000_000;
const SECOND: u64 = 1_000_000;
/// Requests a second.
const CAPACITY: f64 = WORKERS as f64 * SECOND as f64 / SERVICE as f64;
const LENGTH: u32 = 20;
/// Sessions that begin in between are measured; the longest of them end in time.
const WARM_UP: u64 = 30 * SECOND;
const LAST: u64 = 270 * SECOND;
const END: u64 = 390 * SECOND;

const GUIDE: &str = include_str!("../../../../../docs/guide/overload.md");

/// What comes at each time, as a share of the capacity.
type Load = fn(u64) -> f64;

/// Who is let in, and in which order they are served.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Door {
    Fifo,
    /// A queue of so many.
    TailDrop(usize),
    /// Controlled delay (RFC 8289): who has waited for more than 5 ms is dropped, more and more often, once all have for
    /// 100 ms.
    CoDel,
    Sessions,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Lengths {
    Fixed,
    /// One to 39, all alike.
    Random,
}

#[derive(Clone, Copy, Debug, Default)]
struct Session {
    began: u64,
    length: u32,
    done: u32,
    ticket: Option<u64>,
    was_let_in: bool,
    is_over: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Event {
    /// A new visitor comes.
    Comes,
    /// A visitor asks for the next page.
    Asks(usize),
    /// A worker is done with a request that was asked so long ago.
    Done(usize, u64),
}

/// What came of the sessions that began in time.
#[derive(Clone, Copy, Debug, Default)]
struct Outcome {
    /// Of the capacity, what went into sessions that were finished.
    useful: f64,
    /// Of the sessions whose first request was let in.
    finished: f64,
    /// The same of those with twenty requests and more, and of those with fewer.
    long: f64,
    short: f64,
    /// Of all that came.
    refused: f64,
    /// Milliseconds to an answer, of which one in a hundred is longer.
    p99: u64,
}

struct Model {
    door: Door,
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
    /// When each answer came, and after which time.
    answers: Vec<(u64, u64)>,
    refusals: Vec<u64>,
}

#[derive(Default)]
struct CoDel {
    above_since: Option<u64>,
    next_drop: Option<u64>,
    drops: u32,
}

impl Model {
    fn new(door: Door, lengths: Lengths, load: Load) -> Self {
        Self {
            door,
            lengths,
            load,
            admission: Admission::told(Terms::default(), WORKERS),
            random: 1,
            now: 0,
            events: BinaryHeap::new(),
            count: 0,
            sessions: Vec::new(),
            queue: VecDeque::new(),
            busy: 0,
            codel: CoDel::default(),
            answers: Vec::new(),
            refusals: Vec::new(),
        }
    }

    fn run(&mut self, until: u64) {
        self.plan(0, Event::Comes);
        while let Some(Reverse((time, _, event))) = self.events.pop()
            && time <= until
        {
            self.now = time;
            self.admission.move_to(time / 1000);
            match event {
                Event::Comes => self.come(),
                Event::Asks(session) => self.ask(session),
                Event::Done(session, asked) => self.done(session, asked),
            }
        }
    }

    fn come(&mut self) {
        let length = match self.lengths {
            Lengths::Fixed => LENGTH,
            Lengths::Random => 1 + (self.chance() * f64::from(2 * LENGTH - 1)) as u32,
        };
        self.sessions.push(Session { began: self.now, length, ..Session::default() });
        self.ask(self.sessions.len() - 1);
        let per_second = (self.load)(self.now) * CAPACITY / f64::from(LENGTH);
        let gap = self.exponential(SECOND as f64 / per_second);
        self.plan(gap, Event::Comes);
    }

    fn ask(&mut self, number: usize) {
        let is_let_in = match self.door {
            Door::Fifo | Door::CoDel => true,
            Door::TailDrop(most) => self.queue.len() < most,
            Door::Sessions => self.pass(number),
        };
        if !is_let_in {
            self.refusals.push(self.now);
            self.sessions[number].is_over = true;
            return;
        }
        self.sessions[number].was_let_in = true;
        self.admission.handed_over();
        self.queue.push_back((number, self.now));
        self.begin();
    }

    fn pass(&mut self, number: usize) -> bool {
        if !self.admission.is_awake() {
            return true;
        }
        let session = &mut self.sessions[number];
        let ticket = session.ticket.map_or(Shown::Nothing, Shown::Ticket);
        let asker = Asker { ticket, has_begun: false, stand_in: None };
        match self.admission.ask(asker) {
            Verdict::Known => true,
            Verdict::Again(id) | Verdict::Admitted(id) => {
                session.ticket = Some(id);
                true
            }
            Verdict::Refused => false,
        }
    }

    /// Workers that are free take what waits.
    fn begin(&mut self) {
        while self.busy < WORKERS
            && let Some((number, asked)) = self.queue.pop_front()
        {
            let wait = self.now - asked;
            if self.door == Door::CoDel && self.codel.drops(wait, self.now) {
                self.sessions[number].is_over = true;
                continue;
            }
            self.admission.waited(Duration::from_micros(wait));
            self.busy += 1;
            // A server does not see that nobody waits for it any more.
            self.plan(SERVICE, Event::Done(number, asked));
        }
    }

    fn done(&mut self, number: usize, asked: u64) {
        self.busy -= 1;
        self.admission.ran(Duration::from_micros(SERVICE), true);
        self.admission.turned(Turn::default());
        let took = self.now - asked;
        if took > PATIENCE {
            self.sessions[number].is_over = true;
        } else {
            self.answers.push((self.now, took));
            let session = &mut self.sessions[number];
            session.done += 1;
            session.is_over = session.done == session.length;
            if !session.is_over {
                let think = self.exponential(THINK);
                self.plan(think, Event::Asks(number));
            }
        }
        self.begin();
    }

    fn outcome(&self) -> Outcome {
        let measured = |session: &&Session| (WARM_UP..LAST).contains(&session.began);
        let all: Vec<&Session> = self.sessions.iter().filter(measured).collect();
        let is_finished = |session: &&&Session| session.done == session.length;
        let share = |part: usize, whole: usize| part as f64 / whole.max(1) as f64;
        let finished_of = |fits: &dyn Fn(&Session) -> bool| {
            let those: Vec<_> =
                all.iter().filter(|session| session.was_let_in && fits(session)).collect();
            share(those.iter().copied().filter(is_finished).count(), those.len())
        };
        let useful: u32 = all.iter().filter(is_finished).map(|session| session.length).sum();
        let seconds = (LAST - WARM_UP) as f64 / SECOND as f64;
        let let_in = all.iter().filter(|session| session.was_let_in).count();
        Outcome {
            useful: f64::from(useful) / (CAPACITY * seconds),
            finished: finished_of(&|_| true),
            long: finished_of(&|session| session.length >= LENGTH),
            short: finished_of(&|session| session.length < LENGTH),
            refused: 1.0 - share(let_in, all.len()),
            p99: self.p99(WARM_UP..END),
        }
    }

    fn p99(&self, time: std::ops::Range<u64>) -> u64 {
        let answers = self.answers.iter().filter(|(when, _)| time.contains(when));
        let mut took: Vec<u64> = answers.map(|(_, took)| took / 1000).collect();
        took.sort_unstable();
        took.get(took.len() * 99 / 100).copied().unwrap_or(0)
    }

    fn plan(&mut self, after: u64, event: Event) {
        self.count += 1;
        self.events.push(Reverse((self.now + after, self.count, event)));
    }

    fn exponential(&mut self, mean: f64) -> u64 {
        (-(1.0 - self.chance()).ln() * mean) as u64
    }

    /// 0 to 1 (`SplitMix64`).
    fn chance(&mut self) -> f64 {
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

/// The numbers that the guide has where `words`, which begin and end otherwise, have `#`.
fn quoted<const COUNT: usize>(words: &str) -> [f64; COUNT] {
    let guide = GUIDE.split_whitespace().collect::<Vec<_>>().join(" ");
    let (first, others) = words.split_once('#').unwrap();
    let numbers_at = |(place, _): (usize, &str)| {
        let mut rest = &guide[place + first.len()..];
        let number = |piece: &str| {
            let (number, behind) = rest.split_once(piece)?;
            rest = behind;
            number.parse().ok()
        };
        others.split('#').map(number).collect::<Option<Vec<f64>>>()
    };
    let numbers = guide.match_indices(first).find_map(numbers_at);
    numbers.unwrap_or_else(|| panic!("the guide has no `{words}`")).try_into().unwrap()
}

/// The guide tells a number as it is, or next to it.
fn check(quoted: f64, is: f64, bound: f64, what: &str) {
    assert!((quoted - is).abs() <= bound, "{what}: the guide says {quoted}, the model {is}");
}

fn outcome(door: Door, lengths: Lengths, load: Load) -> Outcome {
    let mut model = Model::new(door, lengths, load);
    model.run(END);
    model.outcome()
}

#[test]
fn finishes_admitted_sessions_at_two_and_four_times_capacity() {
    println!("| load | door | lengths | useful | finished | long | short | refused | p99 |");
    println!("|---|---|---|---|---|---|---|---|---|");
    let loads: [(&str, Load); 3] = [("1.2", |_| 1.2), ("2", |_| 2.0), ("4", |_| 4.0)];
    for (name, load) in loads {
        for lengths in [Lengths::Fixed, Lengths::Random] {
            let mut told = Vec::new();
            for door in [Door::Fifo, Door::TailDrop(100), Door::CoDel, Door::Sessions] {
                let outcome = outcome(door, lengths, load);
                let Outcome { useful, finished, long, short, refused, p99 } = outcome;
                println!(
                    "| {name} | {door:?} | {lengths:?} | {useful:.2} | {finished:.3} | {long:.3} | {short:.3} | {refused:.2} | {p99} ms |"
                );
                if door == Door::Sessions {
                    assert!(useful >= 0.8, "{outcome:?}");
                    assert!(finished >= 0.99, "{outcome:?}");
                    assert!(
                        lengths == Lengths::Fixed || (long - short).abs() <= 0.02,
                        "{outcome:?}"
                    );
                } else if load(0) > 1.9 {
                    assert!(useful < 0.6, "{door:?} is no match: {outcome:?}");
                }
                told.push((format!("{door:?}"), useful));
                if door == Door::Sessions {
                    told.push(("finished".to_owned(), finished));
                }
            }
            if lengths == Lengths::Fixed && load(0) > 1.9 {
                let row = quoted::<5>(&format!("| {name} x | # % | # % | # % | # % | # % |"));
                for ((what, is), quoted) in told.iter().zip(row) {
                    check(quoted, 100.0 * is, 1.5, &format!("at {name} x, {what}, %"));
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
        let mut model = Model::new(Door::Sessions, Lengths::Fixed, load);
        model.random = seed;
        model.run(200 * SECOND);
        let calm = model.p99(WARM_UP..SURGE.start);
        let back = SURGE.end + 2 * SECOND;
        let (during, after) = (model.p99(SURGE), model.p99(back..200 * SECOND));
        println!("p99: calm {calm} ms, in the surge {during} ms, after it {after} ms");
        let late = model.refusals.iter().filter(|time| **time > back).count();
        let early = model.refusals.iter().filter(|time| **time < SURGE.start).count();
        let comers = model.sessions.iter().filter(|session| session.began > back).count();
        println!(
            "refused: before {early}, after {late} of {comers}, in all {}",
            model.refusals.len()
        );
        assert_eq!(early, 0);
        assert!(during <= 2 * calm, "calm {calm} ms, in the surge {during} ms");
        assert!(after <= 2 * calm, "calm {calm} ms, after it {after} ms");
        // While the last of the surge leave, there may be a moment without a place.
        assert!(late * 50 <= comers, "{late} of {comers} were refused");
        for (times, time) in times.iter_mut().zip([during, calm, after]) {
            times.push(time as f64);
        }
    }
    let one_in_a_hundred = "one answer in a hundred takes longer than # to # ms in a surge of four times what can be \
                            done; while all was calm, at 0.7, it was # to # ms (";
    let [during, to_during, calm, to_calm] = quoted(one_in_a_hundred);
    let [after, to_after] = quoted("Two seconds after the surge it is # to # ms");
    let quoted = [(during, to_during), (calm, to_calm), (after, to_after)];
    for ((least, most), times) in quoted.into_iter().zip(times) {
        check(least, times.iter().copied().fold(f64::MAX, f64::min), 2.0, "least p99, ms");
        check(most, times.iter().copied().fold(0.0, f64::max), 2.0, "longest p99, ms");
    }
}

/// Of visits of twenty pages, on a new connection each. Whoever was here before is a stranger until seen once more.
#[test]
fn rejects_few_existing_sessions_in_a_sudden_surge() {
    const BEGIN: u64 = 60 * SECOND;
    let calm: [Load; 3] = [
        |now| if now < BEGIN { 0.1 } else { 4.0 },
        |now| if now < BEGIN { 0.3 } else { 4.0 },
        |now| if now < BEGIN { 0.5 } else { 4.0 },
    ];
    let [tenth, of_tenth, three_tenths, of_three_tenths, of_half] = quoted(
        "four times out of the blue, # of # visits around its beginning are cut off when a tenth was in use before, # of \
         # with three tenths, none of # with a half",
    );
    let told = [(tenth, of_tenth), (three_tenths, of_three_tenths), (0.0, of_half)];
    for (load, (told_cut, told_all)) in calm.into_iter().zip(told) {
        let (mut cut, mut all) = (0, 0);
        for seed in 1..=8 {
            let mut model = Model::new(Door::Sessions, Lengths::Fixed, load);
            model.random = seed;
            model.run(140 * SECOND);
            for session in &model.sessions {
                let counts =
                    session.was_let_in && (1..BEGIN + 20 * SECOND).contains(&session.began);
                all += u32::from(counts);
                cut += u32::from(counts && session.is_over && session.done < session.length);
            }
        }
        println!("at {} before, {cut} of {all} were cut off", load(0));
        assert!(cut * 100 <= all, "{cut} of {all}");
        let what = format!("at {} before", load(0));
        check(told_cut, f64::from(cut), 3.0, &format!("{what}, cut off"));
        check(told_all, f64::from(all), told_all / 500.0, &what);
    }
}

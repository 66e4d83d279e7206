//! Decides whether the order holds, by hand and in a simulation whose clock is moved.

use proptest::prelude::*;

use super::*;

const MS: Duration = Duration::from_millis(1);
const PATIENCE: Duration = Duration::from_secs(1);

fn wish(name: &'static str, now: Instant) -> Wish {
    Wish { name, patience: PATIENCE, now }
}

const fn threads(all: usize, free: usize) -> Threads {
    Threads { all, free }
}

/// Has `count` tasks run alone that take so long each.
fn teach(
    waiting: &mut TaskQueue<u32>,
    name: &'static str,
    count: u32,
    time: Duration,
    now: &mut Instant,
) {
    for number in 0..count {
        waiting.push(number, wish(name, *now), threads(8, 8)).unwrap();
        let run = run(waiting, 8, *now);
        *now += time;
        assert_eq!(waiting.ended(run.run, 8, *now), time);
    }
}

#[track_caller]
fn run(waiting: &mut TaskQueue<u32>, all: usize, now: Instant) -> Turn<u32> {
    match waiting.next(all, now) {
        Some(Next::Run(turn)) => turn,
        other => panic!("{other:?}"),
    }
}

#[test]
fn gives_every_worker_to_the_only_service() {
    let (mut waiting, now) = (TaskQueue::new(100), Instant::now());
    for number in 0..10 {
        waiting.push(number, wish("a", now), threads(8, 8)).unwrap();
    }
    for number in 0..8 {
        assert_eq!(run(&mut waiting, 8, now).task, number);
    }
    assert_eq!(waiting.len(), 2);
}

#[test]
fn reserves_last_worker_for_another_known_service() {
    let (mut waiting, mut now) = (TaskQueue::new(100), Instant::now());
    teach(&mut waiting, "b", 1, MS, &mut now);
    now += Duration::from_secs(2);
    for number in 0..8 {
        waiting.push(number, wish("a", now), threads(8, 8)).unwrap();
    }
    for _ in 0..7 {
        run(&mut waiting, 8, now);
    }
    assert!(waiting.next(8, now).is_none());
    waiting.push(100, wish("b", now), threads(8, 1)).unwrap();
    assert_eq!(run(&mut waiting, 8, now).task, 100);
    // Of one that nobody has asked for in ten seconds nothing is expected.
    let later = now + Duration::from_secs(11);
    assert!(matches!(waiting.next(8, later), Some(Next::Late(7))));
}

#[test]
fn rejects_overdue_task_when_a_worker_takes_it() {
    let (mut waiting, now) = (TaskQueue::new(100), Instant::now());
    waiting.push(1, wish("a", now), threads(1, 0)).unwrap();
    waiting.push(2, wish("a", now + 500 * MS), threads(1, 0)).unwrap();
    let now = now + 1001 * MS;
    assert!(matches!(waiting.next(1, now), Some(Next::Late(1))));
    assert!(waiting.is_over(now));
    assert_eq!(run(&mut waiting, 1, now).task, 2);
    assert!(waiting.is_over(now), "half a second is not soon");
    assert!(waiting.next(1, now).is_none());
    assert!(!waiting.is_over(now), "a worker has nothing to do");
    assert_eq!(waiting.metrics(1, now)[0].refused, 1);
}

#[test]
fn rejects_task_whose_expected_wait_is_too_long() {
    let (mut waiting, mut now) = (TaskQueue::new(100), Instant::now());
    teach(&mut waiting, "a", 5, 400 * MS, &mut now);
    let accepted =
        (0..100).take_while(|it| waiting.push(*it, wish("a", now), threads(2, 0)).is_ok());
    // Two workers, 0.4 s each: the sixth would begin after 1.2 s at the latest.
    assert_eq!(accepted.count(), 6);
    assert!(waiting.is_over(now));
    assert!(!waiting.is_over(now + KNOWN), "it does not last when nobody tells");
    // Somebody with more patience may.
    let patient = Wish { patience: Duration::from_mins(1), ..wish("a", now) };
    waiting.push(7, patient, threads(2, 0)).unwrap();
}

#[test]
fn prevents_one_service_from_filling_the_queue() {
    let (mut waiting, now) = (TaskQueue::new(16), Instant::now());
    waiting.push(0, wish("b", now), threads(2, 0)).unwrap();
    let accepted =
        (1..100).take_while(|it| waiting.push(*it, wish("a", now), threads(2, 0)).is_ok());
    assert_eq!(accepted.count(), 8);
    waiting.push(0, wish("b", now), threads(2, 0)).unwrap();
}

/// Of thousands of runs of a page three never ended. Their peers had long been answered, and other workers stood in their
/// place, and yet the page never ran again: it had as many under way as it may have while it hangs.
#[test]
fn excludes_replaced_runs_from_the_service_limit() {
    let (mut waiting, mut now) = (TaskQueue::new(100), Instant::now());
    teach(&mut waiting, "a", 100, 10 * MS, &mut now);
    let hang = |waiting: &mut TaskQueue<u32>, now| {
        waiting.push(0, wish("a", now), threads(8, 8)).unwrap();
        run(waiting, 8, now).run
    };
    let hung = [(); 3].map(|()| hang(&mut waiting, now));
    now += Duration::from_secs(30);
    waiting.push(1, wish("b", now), threads(8, 5)).unwrap();
    let other = run(&mut waiting, 8, now);
    waiting.push(2, wish("a", now), threads(8, 4)).unwrap();
    assert!(waiting.next(8, now).is_none(), "it hangs");
    (0..3).for_each(|_| waiting.replaced());
    assert_eq!(run(&mut waiting, 11, now).task, 2);
    // Still it has not the last of those who are left.
    for number in 0..8 {
        waiting.push(number, wish("a", now), threads(11, 6)).unwrap();
    }
    let begun = (0..8).take_while(|_| matches!(waiting.next(11, now), Some(Next::Run(_))));
    assert_eq!(begun.count(), 6);
    assert_eq!(waiting.metrics(11, now)[0].running, 10);
    waiting.ended(other.run, 11, now);
    for run in hung {
        waiting.ended(run, 11, now);
    }
    assert_eq!(waiting.metrics(8, now)[0].running, 7);
}

#[test]
fn accepts_tasks_without_a_queue_bound() {
    let (mut waiting, now) = (TaskQueue::new(usize::MAX), Instant::now());
    waiting.push(1, wish("a", now), threads(1, 1)).unwrap();
    waiting.push(2, wish("b", now), threads(1, 1)).unwrap();
}

#[test]
fn groups_services_beyond_the_maximum() {
    let (mut waiting, now) = (TaskQueue::new(1000), Instant::now());
    let names: Vec<&'static str> =
        (0..MOST_SERVICES + 2).map(|number| &*number.to_string().leak()).collect();
    for name in names {
        waiting.push(0, wish(name, now), threads(1, 0)).unwrap();
    }
    let metrics = waiting.metrics(1, now);
    let count = |place: usize| (metrics[place].name, metrics[place].waiting);
    assert_eq!(metrics.len(), MOST_SERVICES + 1);
    assert_eq!([count(127), count(128)], [("127", 1), ("(others)", 2)]);
}

#[test]
fn does_not_run_withdrawn_task() {
    let (mut waiting, now) = (TaskQueue::new(16), Instant::now());
    waiting.push(1, wish("a", now), threads(1, 0)).unwrap();
    waiting.push(2, wish("b", now), threads(1, 0)).unwrap();
    assert_eq!(waiting.withdraw(now, |task| *task == 1), Some(1));
    assert_eq!(waiting.withdraw(now, |task| *task == 1), None);
    assert!(!waiting.is_over(now), "its peer has gone");
    assert_eq!(run(&mut waiting, 1, now).task, 2);
}

/// A linear congruence: the same in every run.
struct Chance(u64);

impl Chance {
    /// Exponentially distributed around `mean`.
    fn around(&mut self, mean: Duration) -> Duration {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let unit = ((self.0 >> 11) as f64 + 1.0) / (1u64 << 53) as f64;
        mean.mul_f64(-unit.ln())
    }
}

/// Someone who asks for a service, each request after the other, whether or not it is answered.
struct Load {
    name: &'static str,
    every: Duration,
    takes: Duration,
    /// From here on it takes so long.
    changes: Option<(Duration, Duration)>,
}

/// What came of the requests of one load within a time.
struct Outcome {
    p99: Duration,
    refused: usize,
    done: usize,
}

struct Simulated {
    load: usize,
    began: Duration,
    takes: Duration,
}

/// Runs `loads` on so many workers until `end`; the outcome of each from `from` on.
fn simulate(loads: &[Load], all: usize, [from, end]: [Duration; 2]) -> Vec<Outcome> {
    let mut chance = Chance(7);
    let zero = Instant::now();
    let mut waiting = TaskQueue::new(1024);
    let mut arrivals: Vec<Duration> = loads.iter().map(|load| chance.around(load.every)).collect();
    let mut running: Vec<(Duration, Run, usize, Duration)> = Vec::new();
    let mut took: Vec<Vec<Duration>> = loads.iter().map(|_| Vec::new()).collect();
    let mut refused = vec![0; loads.len()];
    loop {
        let first =
            running.iter().enumerate().min_by_key(|(_, run)| run.0).map(|(it, run)| (run.0, it));
        let (next, load) = arrivals.iter().zip(0..).min().map(|(at, load)| (*at, load)).unwrap();
        let now = first.map_or(next, |(end, _)| end.min(next));
        if now >= end {
            break;
        }
        let at = zero + now;
        if let Some((_, place)) = first.filter(|(end, _)| *end <= next) {
            let (_, run, load, began) = running.swap_remove(place);
            waiting.ended(run, all, at);
            if began >= from {
                took[load].push(now.saturating_sub(began));
            }
        } else {
            let Load { name, every, takes, changes } = &loads[load];
            arrivals[load] = now + chance.around(*every);
            let mean = changes.filter(|(when, _)| now >= *when).map_or(*takes, |(_, then)| then);
            let task = Simulated { load, began: now, takes: chance.around(mean) };
            let wish = Wish { name, patience: PATIENCE, now: at };
            let free = all - running.len();
            if waiting.push(task, wish, Threads { all, free }).is_err() && now >= from {
                refused[load] += 1;
            }
        }
        while running.len() < all {
            match waiting.next(all, at) {
                Some(Next::Run(Turn { task, run, .. })) => {
                    running.push((now + task.takes, run, task.load, task.began));
                }
                Some(Next::Late(task)) if task.began >= from => refused[task.load] += 1,
                Some(Next::Late(_)) => {}
                None => break,
            }
        }
    }
    let outcomes = took.into_iter().zip(refused).map(|(mut took, refused)| {
        took.sort_unstable();
        let p99 = took.get(took.len() * 99 / 100).copied().unwrap_or_default();
        Outcome { p99, refused, done: took.len() }
    });
    outcomes.collect()
}

fn seconds(from: u64, end: u64) -> [Duration; 2] {
    [Duration::from_secs(from), Duration::from_secs(end)]
}

/// What the limit is for: a neighbor that gets a hundred times slower takes workers until somebody notices, and a fast
/// service notices nothing of it, from the first second on and after minutes.
#[test]
fn keeps_p99_of_fast_service_while_another_slows_a_hundredfold() {
    for (all, every) in [(8, 5), (16, 3), (64, 1)] {
        let loads = |changes| {
            [
                Load { name: "fast", every: MS * every, takes: MS * 10, changes: None },
                Load { name: "slow", every: MS * 10, takes: MS * 10, changes },
            ]
        };
        let calm = simulate(&loads(None), all, seconds(10, 40));
        let changes = Some((Duration::from_secs(10), MS * 1000));
        for span in [seconds(10, 20), seconds(10, 40), seconds(160, 190)] {
            let beside = simulate(&loads(changes), all, span);
            let (p99, bound) = (beside[0].p99, calm[0].p99 * 2);
            assert!(p99 <= bound, "{all} workers, {span:?}: {p99:?} is over {bound:?}");
            assert_eq!(beside[0].refused, 0, "{all} workers, {span:?}");
            // What is slow goes on too.
            assert!(beside[1].done > 0);
        }
    }
}

/// Limits are for others: a service that nobody stands beside loses nothing by them.
#[test]
fn never_limits_the_only_service() {
    let load = |takes| Load { name: "one", every: MS * 10, takes, changes: None };
    let changes = Some((Duration::from_secs(10), MS * 70));
    let changed = Load { changes, ..load(MS) };
    let (steady, changed) =
        (simulate(&[load(MS * 70)], 8, seconds(10, 40)), simulate(&[changed], 8, seconds(10, 40)));
    assert!(
        changed[0].done * 100 >= steady[0].done * 97,
        "{} of {}",
        changed[0].done,
        steady[0].done
    );
}

/// Two that take as long as each other share the workers without loss.
#[test]
fn keeps_throughput_of_equal_services() {
    let load = |name, every| Load { name, every, takes: MS * 40, changes: None };
    let together = simulate(&[load("a", MS * 8), load("b", MS * 32)], 8, seconds(10, 60));
    let alone = simulate(&[load("a", MS * 32 / 5)], 8, seconds(10, 60));
    let done = together[0].done + together[1].done;
    assert!(done * 100 >= alone[0].done * 97, "{done} of {}", alone[0].done);
}

proptest! {
    #[test]
    fn runs_or_rejects_every_task_exactly_once(
        steps in prop::collection::vec((0u8..4, 0usize..3, 0u64..800), 1..200),
        all in 1usize..6,
        most in 0usize..20,
    ) {
        const NAMES: [&str; 3] = ["a", "b", "c"];
        let mut now = Instant::now();
        let mut waiting = TaskQueue::new(most);
        let mut running: Vec<Run> = Vec::new();
        let (mut came, mut left) = (0u32, 0u32);
        for (what, which, passes) in steps {
            now += MS * passes as u32;
            match what {
                0 | 1 => {
                    let free = all - running.len();
                    came += 1;
                    let wish = Wish { name: NAMES[which], patience: PATIENCE, now };
                    left += u32::from(waiting.push(came, wish, Threads { all, free }).is_err());
                }
                2 if !running.is_empty() => {
                    waiting.ended(running.remove(which % running.len()), all, now);
                }
                _ => left += u32::from(waiting.withdraw(now, |task| task % 3 == which as u32).is_some()),
            }
            while running.len() < all {
                match waiting.next(all, now) {
                    Some(Next::Run(turn)) => {
                        prop_assert!(turn.waited <= PATIENCE);
                        running.push(turn.run);
                        left += 1;
                    }
                    Some(Next::Late(_)) => left += 1,
                    None => break,
                }
            }
            prop_assert_eq!(came - left, waiting.len() as u32);
            // Somebody is always at work while somebody waits.
            prop_assert!(waiting.is_empty() || !running.is_empty());
            let metrics = waiting.metrics(all, now);
            prop_assert_eq!(metrics.iter().map(|each| each.running).sum::<usize>(), running.len());
        }
    }
}

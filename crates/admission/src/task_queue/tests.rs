//! Tests of the task queue: single steps, and a simulation with a clock that the test sets.

use proptest::prelude::*;

use super::*;

const MS: Duration = Duration::from_millis(1);
const PATIENCE: Duration = Duration::from_secs(1);

fn task_request(name: &'static str, now: Instant) -> TaskRequest {
    TaskRequest { name, patience: PATIENCE, now }
}

const fn threads(all: usize, free: usize) -> WorkerCounts {
    WorkerCounts { all, free }
}

/// Runs `count` tasks of a service sequentially, each for `time`.
fn run_tasks(
    queue: &mut TaskQueue<u32>,
    name: &'static str,
    count: u32,
    time: Duration,
    now: &mut Instant,
) {
    for number in 0..count {
        queue.push(number, task_request(name, *now), threads(8, 8)).unwrap();
        let run = run(queue, 8, *now);
        *now += time;
        assert_eq!(queue.ended(run.run, 8, *now), time);
    }
}

#[track_caller]
fn run(queue: &mut TaskQueue<u32>, all: usize, now: Instant) -> ReadyTask<u32> {
    match queue.next(all, now) {
        Some(QueueOutcome::Run(turn)) => turn,
        other => panic!("{other:?}"),
    }
}

#[test]
fn gives_every_worker_to_the_only_service() {
    let (mut queue, now) = (TaskQueue::new(100), Instant::now());
    for number in 0..10 {
        queue.push(number, task_request("a", now), threads(8, 8)).unwrap();
    }
    for number in 0..8 {
        assert_eq!(run(&mut queue, 8, now).task, number);
    }
    assert_eq!(queue.len(), 2);
}

#[test]
fn reserves_last_worker_for_another_known_service() {
    let (mut queue, mut now) = (TaskQueue::new(100), Instant::now());
    run_tasks(&mut queue, "b", 1, MS, &mut now);
    now += Duration::from_secs(2);
    for number in 0..8 {
        queue.push(number, task_request("a", now), threads(8, 8)).unwrap();
    }
    for _ in 0..7 {
        run(&mut queue, 8, now);
    }
    assert!(queue.next(8, now).is_none());
    queue.push(100, task_request("b", now), threads(8, 1)).unwrap();
    assert_eq!(run(&mut queue, 8, now).task, 100);
    // After ten seconds without a request of `b`, no worker is reserved for it.
    let later = now + Duration::from_secs(11);
    assert!(matches!(queue.next(8, later), Some(QueueOutcome::Late(7))));
}

#[test]
fn rejects_overdue_task_when_a_worker_takes_it() {
    let (mut queue, now) = (TaskQueue::new(100), Instant::now());
    queue.push(1, task_request("a", now), threads(1, 0)).unwrap();
    queue.push(2, task_request("a", now + 500 * MS), threads(1, 0)).unwrap();
    let now = now + 1001 * MS;
    assert!(matches!(queue.next(1, now), Some(QueueOutcome::Late(1))));
    assert!(queue.is_over(now));
    assert_eq!(run(&mut queue, 1, now).task, 2);
    assert!(queue.is_over(now), "a wait of more than half of the patience is not in time");
    assert!(queue.next(1, now).is_none());
    assert!(!queue.is_over(now), "a worker is idle");
    assert_eq!(queue.metrics(1, now)[0].refused, 1);
}

#[test]
fn rejects_task_whose_expected_wait_is_too_long() {
    let (mut queue, mut now) = (TaskQueue::new(100), Instant::now());
    run_tasks(&mut queue, "a", 5, 400 * MS, &mut now);
    let accepted =
        (0..100).take_while(|it| queue.push(*it, task_request("a", now), threads(2, 0)).is_ok());
    // Two workers and 0.4 s for each task: with six tasks in the queue, the next would wait for 1.2
    // s.
    assert_eq!(accepted.count(), 6);
    assert!(queue.is_over(now));
    assert!(!queue.is_over(now + KNOWN), "the state expires without further tasks");
    // A task with more patience is accepted.
    let patient = TaskRequest { patience: Duration::from_mins(1), ..task_request("a", now) };
    queue.push(7, patient, threads(2, 0)).unwrap();
}

#[test]
fn prevents_one_service_from_filling_the_queue() {
    let (mut queue, now) = (TaskQueue::new(16), Instant::now());
    queue.push(0, task_request("b", now), threads(2, 0)).unwrap();
    let accepted =
        (1..100).take_while(|it| queue.push(*it, task_request("a", now), threads(2, 0)).is_ok());
    assert_eq!(accepted.count(), 8);
    queue.push(0, task_request("b", now), threads(2, 0)).unwrap();
}

/// Symptom: after three runs of a page hung, the page never ran again, although its clients had an
/// answer and other workers had replaced the hung ones. Cause: the hung runs counted against the
/// limit of the page. Fix: runs with replaced workers do not count.
#[test]
fn excludes_replaced_runs_from_the_service_limit() {
    let (mut queue, mut now) = (TaskQueue::new(100), Instant::now());
    run_tasks(&mut queue, "a", 100, 10 * MS, &mut now);
    let hang = |queue: &mut TaskQueue<u32>, now| {
        queue.push(0, task_request("a", now), threads(8, 8)).unwrap();
        run(queue, 8, now).run
    };
    let hung = [(); 3].map(|()| hang(&mut queue, now));
    now += Duration::from_secs(30);
    queue.push(1, task_request("b", now), threads(8, 5)).unwrap();
    let other = run(&mut queue, 8, now);
    queue.push(2, task_request("a", now), threads(8, 4)).unwrap();
    assert!(queue.next(8, now).is_none(), "the service has reached the limit of a hanging service");
    (0..3).for_each(|_| queue.replaced());
    assert_eq!(run(&mut queue, 11, now).task, 2);
    // The service still does not get the last of the remaining workers.
    for number in 0..8 {
        queue.push(number, task_request("a", now), threads(11, 6)).unwrap();
    }
    let started = (0..8).take_while(|_| matches!(queue.next(11, now), Some(QueueOutcome::Run(_))));
    assert_eq!(started.count(), 6);
    assert_eq!(queue.metrics(11, now)[0].running, 10);
    queue.ended(other.run, 11, now);
    for run in hung {
        queue.ended(run, 11, now);
    }
    assert_eq!(queue.metrics(8, now)[0].running, 7);
}

#[test]
fn accepts_tasks_without_a_queue_bound() {
    let (mut queue, now) = (TaskQueue::new(usize::MAX), Instant::now());
    queue.push(1, task_request("a", now), threads(1, 1)).unwrap();
    queue.push(2, task_request("b", now), threads(1, 1)).unwrap();
}

#[test]
fn groups_services_beyond_the_maximum() {
    let (mut queue, now) = (TaskQueue::new(1000), Instant::now());
    let names: Vec<&'static str> =
        (0..MOST_SERVICES + 2).map(|number| &*number.to_string().leak()).collect();
    for name in names {
        queue.push(0, task_request(name, now), threads(1, 0)).unwrap();
    }
    let metrics = queue.metrics(1, now);
    let count = |place: usize| (metrics[place].name, metrics[place].waiting);
    assert_eq!(metrics.len(), MOST_SERVICES + 1);
    assert_eq!([count(127), count(128)], [("127", 1), ("(others)", 2)]);
}

#[test]
fn does_not_run_withdrawn_task() {
    let (mut queue, now) = (TaskQueue::new(16), Instant::now());
    queue.push(1, task_request("a", now), threads(1, 0)).unwrap();
    queue.push(2, task_request("b", now), threads(1, 0)).unwrap();
    assert_eq!(queue.withdraw(now, |task| *task == 1), Some(1));
    assert_eq!(queue.withdraw(now, |task| *task == 1), None);
    assert!(!queue.is_over(now), "a task that is withdrawn early is no sign of overload");
    assert_eq!(run(&mut queue, 1, now).task, 2);
}

#[test]
fn fills_the_queue_with_the_only_service_and_counts_rejections() {
    let (mut queue, now) = (TaskQueue::new(4), Instant::now());
    let accepted =
        (0..9).filter(|it| queue.push(*it, task_request("a", now), threads(2, 0)).is_ok());
    assert_eq!(accepted.count(), 4);
    assert!(!queue.is_empty());
    run(&mut queue, 2, now);
    run(&mut queue, 2, now);
    let metrics = &queue.metrics(2, now)[0];
    assert_eq!((metrics.waiting, metrics.begun, metrics.refused), (2, 2, 5));
}

#[test]
fn leaves_as_much_of_the_queue_free_as_one_of_several_services_fills() {
    for (capacity, most) in [(16, 8), (17, 8), (18, 9)] {
        let (mut queue, now) = (TaskQueue::new(capacity), Instant::now());
        queue.push(0, task_request("b", now), threads(2, 0)).unwrap();
        let accepted =
            (0..99).filter(|it| queue.push(*it, task_request("a", now), threads(2, 0)).is_ok());
        assert_eq!(accepted.count(), most, "{capacity}");
    }
}

#[test]
fn runs_task_whose_wait_equals_its_patience() {
    let (mut queue, now) = (TaskQueue::new(16), Instant::now());
    queue.push(1, task_request("a", now), threads(1, 0)).unwrap();
    assert_eq!(run(&mut queue, 1, now + PATIENCE).waited, PATIENCE);
}

#[test]
fn ends_overload_with_a_task_that_waits_less_than_half_of_its_patience() {
    for (wait, is_over) in [(499 * MS, false), (500 * MS, true)] {
        let (mut queue, now) = (TaskQueue::new(1), Instant::now());
        queue.push(1, task_request("a", now), threads(1, 0)).unwrap();
        queue.push(2, task_request("a", now), threads(1, 0)).unwrap_err();
        run(&mut queue, 1, now + wait);
        assert_eq!(queue.is_over(now + wait), is_over, "{wait:?}");
    }
}

#[test]
fn counts_task_withdrawn_after_half_of_its_patience_as_rejected() {
    for (wait, refused) in [(499 * MS, 0), (500 * MS, 2)] {
        let (mut queue, now) = (TaskQueue::new(16), Instant::now());
        queue.push(1, task_request("a", now), threads(1, 0)).unwrap();
        queue.push(2, task_request("a", now), threads(1, 0)).unwrap();
        assert_eq!(queue.withdraw(now + wait, |task| *task == 1), Some(1));
        assert_eq!(queue.withdraw(now + wait, |task| *task == 2), Some(2));
        assert_eq!(queue.metrics(1, now)[0].refused, refused, "{wait:?}");
        assert_eq!(queue.is_over(now + wait), refused > 0, "{wait:?}");
    }
}

/// A worker whose run timed out is replaced, and counts again after the run has ended.
#[test]
fn restores_the_number_of_workers_after_replaced_runs_end() {
    let (mut queue, now) = (TaskQueue::new(16), Instant::now());
    let runs = [1, 2, 3].map(|number| {
        queue.push(number, task_request("a", now), threads(8, 8)).unwrap();
        run(&mut queue, 8, now).run
    });
    let limit = |queue: &TaskQueue<u32>| queue.metrics(8, now)[0].limit;
    (0..3).for_each(|_| queue.replaced());
    assert_eq!(limit(&queue), 5);
    let limits = runs.map(|run| {
        queue.ended(run, 8, now);
        limit(&queue)
    });
    assert_eq!(limits, [6, 7, 8]);
}

/// Runs `count` batches of `width` concurrent tasks of a service, each for `time`.
fn run_batches(
    queue: &mut TaskQueue<u32>,
    name: &'static str,
    (width, count): (u32, u32),
    time: Duration,
    now: &mut Instant,
) {
    for _ in 0..count {
        let started: Vec<Run> = (0..width)
            .map(|number| {
                queue.push(number, task_request(name, *now), threads(8, 8)).unwrap();
                run(queue, 8, *now).run
            })
            .collect();
        *now += time;
        for run in started {
            queue.ended(run, 8, *now);
        }
    }
}

/// The number of eight workers that `slow` may use, after it has run once for this time, while
/// `fast` is active.
fn limit_of_slow(
    fast: (u32, u32),
    fast_time: Duration,
    slow_time: Duration,
) -> (TaskQueue<u32>, Instant, usize) {
    let (mut queue, mut now) = (TaskQueue::new(100), Instant::now());
    run_batches(&mut queue, "fast", fast, fast_time, &mut now);
    run_tasks(&mut queue, "slow", 1, slow_time, &mut now);
    run_tasks(&mut queue, "fast", 1, fast_time, &mut now);
    let limit = queue.metrics(8, now)[1].limit;
    (queue, now, limit)
}

/// A service that runs one task at a time uses half a worker in the smoothed mean, and with twice
/// the square root of that it gets two.
#[test]
fn reserves_workers_for_services_more_than_four_times_as_fast() {
    let limit = |slow_time| limit_of_slow((1, 2), 600 * MS, slow_time).2;
    assert_eq!([limit(2400 * MS), limit(2401 * MS)], [7, 6]);
}

#[test]
fn leaves_a_slow_service_its_share_of_the_workers_while_others_are_active() {
    // With five concurrent runs, six workers would be reserved for `fast`.
    let (mut queue, now, limit) = limit_of_slow((5, 10), 100 * MS, 500 * MS);
    assert_eq!(limit, 4, "half of the workers");
    let limit = |queue: &TaskQueue<u32>, now| queue.metrics(8, now)[1].limit;
    // The last request of `fast` was 100 ms ago.
    for (time, before, after) in [(ACTIVE, 4, 7), (KNOWN, 7, 8)] {
        let left = time.saturating_sub(100 * MS);
        assert_eq!(limit(&queue, now + left.saturating_sub(Duration::from_nanos(1))), before);
        assert_eq!(limit(&queue, now + left), after);
    }
    queue.push(0, task_request("fast", now), threads(8, 0)).unwrap();
    assert_eq!(limit(&queue, now + KNOWN), 4, "a task of `fast` waits");
}

#[test]
fn judges_present_runs_by_their_median_age() {
    let (mut queue, mut now) = (TaskQueue::new(100), Instant::now());
    run_tasks(&mut queue, "a", 1, 10 * MS, &mut now);
    let start = |queue: &mut TaskQueue<u32>, now| {
        queue.push(0, task_request("a", now), threads(8, 8)).unwrap();
        run(queue, 8, now);
    };
    // Two of four runs hang.
    (0..2).for_each(|_| start(&mut queue, now));
    now += Duration::from_secs(1);
    (0..2).for_each(|_| start(&mut queue, now));
    queue.push(0, task_request("b", now), threads(8, 4)).unwrap();
    assert_eq!(queue.metrics(8, now)[0].limit, 7);
}

/// A service waits for the tasks of services up to four times as slow. Slower services keep the
/// workers that they use, and get no more.
#[test]
fn expects_to_wait_for_services_up_to_four_times_as_slow() {
    for (slow_time, wait) in [(40 * MS, 200 * MS), (41 * MS, Duration::ZERO)] {
        let (mut queue, mut now) = (TaskQueue::new(100), Instant::now());
        run_tasks(&mut queue, "own", 1, 10 * MS, &mut now);
        run_tasks(&mut queue, "slow", 1, slow_time, &mut now);
        for number in 0..10 {
            queue.push(number, task_request("slow", now), threads(2, 0)).unwrap();
        }
        let mut is_accepted = |patience| {
            let own = TaskRequest { patience, ..task_request("own", now) };
            queue.push(0, own, threads(2, 0)).is_ok()
        };
        assert!(wait.is_zero() || !is_accepted(wait.saturating_sub(MS)), "{slow_time:?}");
        assert!(is_accepted(wait), "{slow_time:?}");
    }
}

/// A linear congruential generator, with the same numbers in every run.
struct Random(u64);

impl Random {
    /// Returns an exponentially distributed time with this mean.
    fn exponential(&mut self, mean: Duration) -> Duration {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let unit = ((self.0 >> 11) as f64 + 1.0) / (1u64 << 53) as f64;
        mean.mul_f64(-unit.ln())
    }
}

/// An open load: requests arrive at random intervals, independent of the responses.
struct Load {
    name: &'static str,
    interval: Duration,
    run_time: Duration,
    /// From this time on, the run time has this mean.
    change: Option<(Duration, Duration)>,
}

/// The results of the requests of one load within a time span.
struct Outcome {
    p99: Duration,
    refused: usize,
    done: usize,
}

struct Simulated {
    load: usize,
    began: Duration,
    run_time: Duration,
}

/// Runs `loads` on `all` workers until `end`, and returns the results from `from` on.
fn simulate(loads: &[Load], all: usize, [from, end]: [Duration; 2]) -> Vec<Outcome> {
    let mut random = Random(7);
    let zero = Instant::now();
    let mut queue = TaskQueue::new(1024);
    let mut arrivals: Vec<Duration> =
        loads.iter().map(|load| random.exponential(load.interval)).collect();
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
            queue.ended(run, all, at);
            if began >= from {
                took[load].push(now.saturating_sub(began));
            }
        } else {
            let Load { name, interval, run_time, change } = &loads[load];
            arrivals[load] = now + random.exponential(*interval);
            let mean = change.filter(|(when, _)| now >= *when).map_or(*run_time, |(_, then)| then);
            let task = Simulated { load, began: now, run_time: random.exponential(mean) };
            let task_request = TaskRequest { name, patience: PATIENCE, now: at };
            let free = all - running.len();
            if queue.push(task, task_request, WorkerCounts { all, free }).is_err() && now >= from {
                refused[load] += 1;
            }
        }
        while running.len() < all {
            match queue.next(all, at) {
                Some(QueueOutcome::Run(ReadyTask { task, run, .. })) => {
                    running.push((now + task.run_time, run, task.load, task.began));
                }
                Some(QueueOutcome::Late(task)) if task.began >= from => refused[task.load] += 1,
                Some(QueueOutcome::Late(_)) => {}
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

/// The purpose of the limit: when one service becomes a hundred times slower, the p99 of a fast
/// service stays within its bound, from the first second on and after minutes.
#[test]
fn keeps_p99_of_fast_service_while_another_slows_a_hundredfold() {
    for (all, interval) in [(8, 5), (16, 3), (64, 1)] {
        let loads = |change| {
            [
                Load { name: "fast", interval: MS * interval, run_time: MS * 10, change: None },
                Load { name: "slow", interval: MS * 10, run_time: MS * 10, change },
            ]
        };
        let calm = simulate(&loads(None), all, seconds(10, 40));
        let change = Some((Duration::from_secs(10), MS * 1000));
        for span in [seconds(10, 20), seconds(10, 40), seconds(160, 190)] {
            let slowed = simulate(&loads(change), all, span);
            let (p99, bound) = (slowed[0].p99, calm[0].p99 * 2);
            assert!(p99 <= bound, "{all} workers, {span:?}: {p99:?} is over {bound:?}");
            assert_eq!(slowed[0].refused, 0, "{all} workers, {span:?}");
            // The slow service continues to run.
            assert!(slowed[1].done > 0);
        }
    }
}

/// Limits protect other services: a service without others loses no throughput.
#[test]
fn never_limits_the_only_service() {
    let load = |run_time| Load { name: "one", interval: MS * 10, run_time, change: None };
    let change = Some((Duration::from_secs(10), MS * 70));
    let changed = Load { change, ..load(MS) };
    let (steady, changed) =
        (simulate(&[load(MS * 70)], 8, seconds(10, 40)), simulate(&[changed], 8, seconds(10, 40)));
    assert!(
        changed[0].done * 100 >= steady[0].done * 97,
        "{} of {}",
        changed[0].done,
        steady[0].done
    );
}

/// Two services with equal run times share the workers without a loss of throughput.
#[test]
fn keeps_throughput_of_equal_services() {
    let load = |name, interval| Load { name, interval, run_time: MS * 40, change: None };
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
        let mut queue = TaskQueue::new(most);
        let mut running: Vec<Run> = Vec::new();
        let (mut pushed, mut removed) = (0u32, 0u32);
        for (action, which, milliseconds) in steps {
            now += MS * milliseconds as u32;
            match action {
                0 | 1 => {
                    let free = all - running.len();
                    pushed += 1;
                    let task_request = TaskRequest { name: NAMES[which], patience: PATIENCE, now };
                    removed += u32::from(queue.push(pushed, task_request, WorkerCounts { all, free }).is_err());
                }
                2 if !running.is_empty() => {
                    queue.ended(running.remove(which % running.len()), all, now);
                }
                _ => removed += u32::from(queue.withdraw(now, |task| task % 3 == which as u32).is_some()),
            }
            while running.len() < all {
                match queue.next(all, now) {
                    Some(QueueOutcome::Run(turn)) => {
                        prop_assert!(turn.waited <= PATIENCE);
                        running.push(turn.run);
                        removed += 1;
                    }
                    Some(QueueOutcome::Late(_)) => removed += 1,
                    None => break,
                }
            }
            prop_assert_eq!(pushed - removed, queue.len() as u32);
            // While a task waits, at least one task runs.
            prop_assert!(queue.is_empty() || !running.is_empty());
            let metrics = queue.metrics(all, now);
            prop_assert_eq!(metrics.iter().map(|each| each.running).sum::<usize>(), running.len());
        }
    }
}

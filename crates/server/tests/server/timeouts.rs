//! Tests of `timeout` against a model: the result, its time, and that every value is dropped.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::pin::Pin;
use std::rc::Rc;
use std::time::Duration;

use bine_server::timeout;
use proptest::prelude::{Just, Strategy, prop_assert_eq, prop_oneof, proptest};
use tokio::runtime::{Builder, Runtime};
use tokio::time::{Instant, sleep};

/// An action to run. Times are in milliseconds.
#[derive(Clone, Debug)]
enum Action {
    /// Returns at once.
    Value(u8),
    /// Fails at once.
    Fail(u8),
    /// Panics at once.
    Panic(u8),
    /// Waits, then runs the action.
    After(u64, Box<Action>),
    /// Runs the first action with a timeout, or else the second one.
    Timeout(u64, Box<Action>, Box<Action>),
}

/// The result of an action.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Outcome {
    Value(u8),
    Failure(u8),
    Panic(u8),
}

/// Returns the end time and result that the model predicts.
fn model(action: &Action) -> (u64, Outcome) {
    match action {
        Action::Value(number) => (0, Outcome::Value(*number)),
        Action::Fail(number) => (0, Outcome::Failure(*number)),
        Action::Panic(number) => (0, Outcome::Panic(*number)),
        Action::After(wait, next) => {
            let (time, outcome) = model(next);
            (wait + time, outcome)
        }
        Action::Timeout(limit, action, otherwise) => {
            let (time, outcome) = model(action);
            if time <= *limit {
                return (time, outcome);
            }
            let (time, outcome) = model(otherwise);
            (limit + time, outcome)
        }
    }
}

/// A value that must be dropped.
struct Guard(Rc<Cell<usize>>);

impl Guard {
    fn new(alive: &Rc<Cell<usize>>) -> Self {
        alive.set(alive.get() + 1);
        Self(Rc::clone(alive))
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        self.0.set(self.0.get() - 1);
    }
}

type Running<'a> = Pin<Box<dyn Future<Output = Result<u8, u8>> + 'a>>;

fn run<'a>(action: &'a Action, alive: &'a Rc<Cell<usize>>) -> Running<'a> {
    Box::pin(async move {
        let _guard = Guard::new(alive);
        match action {
            Action::Value(number) => Ok(*number),
            Action::Fail(number) => Err(*number),
            // Panics without a message on standard error.
            Action::Panic(number) => resume_unwind(Box::new(*number)),
            Action::After(wait, next) => {
                sleep(Duration::from_millis(*wait)).await;
                run(next, alive).await
            }
            Action::Timeout(limit, action, otherwise) => {
                let limit = Duration::from_millis(*limit);
                timeout(limit, run(action, alive), async || run(otherwise, alive).await).await
            }
        }
    })
}

/// A runtime with a simulated clock, which jumps to the next timer when no task is ready.
fn runtime() -> Runtime {
    Builder::new_current_thread().enable_time().start_paused(true).build().unwrap()
}

fn observe(action: &Action) -> (u64, Outcome, usize) {
    let runtime = runtime();
    let alive = Rc::new(Cell::new(0));
    let (elapsed, result) = runtime.block_on(async {
        let began = Instant::now();
        let mut running = Box::pin(run(action, &alive));
        let result = std::future::poll_fn(|task| {
            match catch_unwind(AssertUnwindSafe(|| running.as_mut().poll(task))) {
                Ok(polled) => polled.map(Ok),
                Err(panic) => std::task::Poll::Ready(Err(panic)),
            }
        })
        .await;
        (began.elapsed().as_millis() as u64, result)
    });
    let outcome = match result {
        Ok(Ok(number)) => Outcome::Value(number),
        Ok(Err(number)) => Outcome::Failure(number),
        Err(panic) => Outcome::Panic(*panic.downcast::<u8>().unwrap()),
    };
    (elapsed, outcome, alive.get())
}

fn actions() -> impl Strategy<Value = Action> {
    let number = 0..100u8;
    let leaf = prop_oneof![
        number.clone().prop_map(Action::Value),
        number.clone().prop_map(Action::Fail),
        number.prop_map(Action::Panic),
    ];
    // Few distinct times, so that many coincide.
    let time = prop_oneof![Just(1u64), Just(2), Just(5), Just(10), Just(100)];
    leaf.prop_recursive(6, 40, 2, move |inner| {
        prop_oneof![
            (time.clone(), inner.clone())
                .prop_map(|(wait, next)| Action::After(wait, Box::new(next))),
            (time.clone(), inner.clone(), inner).prop_map(|(limit, action, otherwise)| {
                Action::Timeout(limit, Box::new(action), Box::new(otherwise))
            }),
        ]
    })
}

proptest! {
    #[test]
    fn nested_timeouts_agree_with_the_model(action in actions()) {
        let (time, outcome) = model(&action);
        let (elapsed, observed, alive) = observe(&action);
        prop_assert_eq!((elapsed, observed), (time, outcome));
        prop_assert_eq!(alive, 0, "guards that were not dropped");
    }
}

#[test]
fn drops_the_inner_timeout_when_the_outer_expires_first() {
    let alive = Rc::new(Cell::new(0));
    let never = Action::After(1000, Box::new(Action::Value(1)));
    let inner = Action::Timeout(500, Box::new(never), Box::new(Action::Value(2)));
    let left = runtime().block_on(async {
        let held = alive.clone();
        timeout(Duration::from_millis(10), run(&inner, &alive), async || {
            // The inner action is dropped before its replacement runs.
            Ok(held.get() as u8)
        })
        .await
    });
    assert_eq!(left, Ok(0));
}

#[test]
fn drops_an_action_that_exceeds_its_timeout() {
    let reached = Cell::new(false);
    let value = runtime().block_on(timeout(
        Duration::from_millis(10),
        async {
            sleep(Duration::from_millis(11)).await;
            reached.set(true);
            "late"
        },
        async || "instead",
    ));
    assert_eq!((value, reached.get()), ("instead", false));
}

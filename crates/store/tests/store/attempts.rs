//! Tests of parts of a transaction that fail, against a model of the tables.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bine_store::{Error, Store};

use crate::model::{IdPool, Model, Operation};
use crate::random::Random;
use crate::tables;

#[test]
fn failed_attempts_leave_no_writes() {
    for seed in 0..200 {
        let store = Store::in_memory(tables::options()).unwrap();
        let mut random = Random(seed);
        let mut pool = IdPool::default();
        let mut model = Model::default();
        let mut change = store.begin();
        for _ in 0..20 {
            let fails = random.below(2) == 0;
            let before = model.clone();
            let attempted = change.attempt(|change| {
                for _ in 0..random.below(6) {
                    let operation = Operation::draw(&pool, &mut random);
                    let outcome = operation.apply_to(change);
                    assert_eq!(model.apply(&operation, &outcome), outcome, "seed {seed}");
                    pool.learn(&operation, &outcome);
                    // A read applies the writes.
                    if random.below(3) == 0 {
                        assert_eq!(Model::of(change), model, "seed {seed}");
                    }
                }
                if fails { Err("it fails") } else { Ok(()) }
            });
            assert_eq!(attempted.is_err(), fails);
            if fails {
                model = before;
            }
            if random.below(3) == 0 {
                assert_eq!(Model::of(&change), model, "seed {seed}");
            }
        }
        store.commit(change).unwrap().wait().unwrap();
        assert_eq!(Model::of(&store.read()), model, "seed {seed}");
    }
}

#[test]
fn failed_attempts_run_no_actions() {
    let store = Store::in_memory(tables::options()).unwrap();
    let ran = Arc::new(AtomicU64::new(0));
    let change = store.change(|change| {
        for (number, fails) in [(1, false), (10, true), (100, false)] {
            let ran = Arc::clone(&ran);
            let attempted = change.attempt(|change| {
                change.after_commit(move || {
                    ran.fetch_add(number, Ordering::Relaxed);
                });
                if fails { Err(number) } else { Ok(()) }
            });
            assert_eq!(attempted, if fails { Err(number) } else { Ok(()) });
        }
        Ok::<_, Error>(())
    });
    change.wait().unwrap();
    assert_eq!(ran.load(Ordering::Relaxed), 101);
}

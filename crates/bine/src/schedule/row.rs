//! The rows that decide when a service is due, and which process runs it. Time is an argument, in
//! milliseconds since 1970.

use bine_macros::Table;

use super::job::Job;
use crate::store::{self, Id, Options, Transaction};
use crate::text::Text;

/// The state of one scheduled service.
#[derive(Clone, PartialEq, Eq, Debug, Table)]
#[table(crate = crate, name = "schedule")]
pub(super) struct ScheduleRow {
    pub(super) id: Id<ScheduleRow>,
    /// The address of the service.
    #[table(unique, private)]
    pub(super) path: Text,
    /// The time of the next run.
    #[table(private)]
    pub(super) due: u64,
    /// The process that runs it now, or empty.
    #[table(private)]
    pub(super) holder: Text,
    /// The time at which the claim of the holder ends.
    #[table(private)]
    pub(super) until: u64,
}

/// The outcome of a claim.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Claim {
    /// This process runs the service now.
    Granted,
    /// There is nothing to do before this time.
    Wait(u64),
}

/// Milliseconds for which a claim holds without a renewal. A claim is renewed after a third of it, so
/// clocks of nodes may differ by two thirds of it.
pub(super) const CLAIM_TIME: u64 = 60_000;

/// Adds the table.
pub(super) fn declare(options: Options) -> Options {
    options.table::<ScheduleRow>()
}

/// Claims the next run of a service, if it is due and no process runs it. A new service is due after
/// its first interval.
///
/// # Errors
///
/// The row cannot be written.
pub(super) fn claim(
    change: &mut Transaction,
    job: &Job,
    holder: &str,
    now: u64,
) -> Result<Claim, store::Error> {
    let latest = now.saturating_add(job.milliseconds());
    let Some(row) = change.one(ScheduleRow::BY_PATH, job.path.clone()) else {
        let (path, holder) = (job.path.clone(), Text::default());
        change.insert(ScheduleRow { id: Id::unassigned(), path, due: latest, holder, until: 0 })?;
        return Ok(Claim::Wait(latest));
    };
    // A claim that lasts longer than any was made by a clock that was wrong.
    let is_held = !row.holder.is_empty()
        && *row.holder != *holder
        && row.until > now
        && row.until <= now.saturating_add(2 * CLAIM_TIME);
    if is_held {
        return Ok(Claim::Wait(row.until));
    }
    if row.due > now {
        // The interval may have become shorter, and the clock may have been wrong.
        let due = row.due.min(latest);
        if due < row.due {
            change.update(row.id, |row: &mut ScheduleRow| row.due = due)?;
        }
        return Ok(Claim::Wait(due));
    }
    change.update(row.id, |row: &mut ScheduleRow| {
        row.holder = holder.into();
        row.until = now.saturating_add(CLAIM_TIME);
    })?;
    Ok(Claim::Granted)
}

/// Renews the claim of a run. Returns false if it is lost to another process.
///
/// # Errors
///
/// The row cannot be written.
pub(super) fn renew(
    change: &mut Transaction,
    job: &Job,
    holder: &str,
    now: u64,
) -> Result<bool, store::Error> {
    let row = change.one(ScheduleRow::BY_PATH, job.path.clone());
    let Some(row) = row.filter(|row| *row.holder == *holder) else { return Ok(false) };
    change.update(row.id, |row: &mut ScheduleRow| row.until = now.saturating_add(CLAIM_TIME))?;
    Ok(true)
}

/// Ends a run: the next one is a whole number of intervals after the time at which this one was due.
/// Runs that were missed are not repeated.
///
/// # Errors
///
/// The row cannot be written.
pub(super) fn finish(
    change: &mut Transaction,
    job: &Job,
    holder: &str,
    now: u64,
) -> Result<(), store::Error> {
    let row = change.one(ScheduleRow::BY_PATH, job.path.clone());
    let Some(row) = row.filter(|row| *row.holder == *holder) else { return Ok(()) };
    let due = next_due(row.due, job.milliseconds(), now);
    change.update(row.id, |row: &mut ScheduleRow| {
        row.due = due;
        row.holder = Text::default();
        row.until = 0;
    })
}

/// The first time after `now` that is a whole number of intervals after `due`.
fn next_due(due: u64, interval: u64, now: u64) -> u64 {
    let late = now.saturating_sub(due);
    let intervals = late / interval + 1;
    due.saturating_add(intervals.saturating_mul(interval))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::store::Store;

    const MINUTE: u64 = 60_000;

    struct Rows(Store, Job);

    impl Rows {
        fn new() -> Self {
            let job = Job { path: "/a".into(), interval: Duration::from_mins(10) };
            Self(Store::in_memory(declare(Options::new())).unwrap(), job)
        }

        fn claim(&self, holder: &str, now: u64) -> Claim {
            self.0.change(|change| claim(change, &self.1, holder, now)).wait().unwrap()
        }

        fn renew(&self, holder: &str, now: u64) -> bool {
            self.0.change(|change| renew(change, &self.1, holder, now)).wait().unwrap()
        }

        fn finish(&self, holder: &str, now: u64) {
            self.0.change(|change| finish(change, &self.1, holder, now)).wait().unwrap();
        }
    }

    #[test]
    fn one_process_runs_what_is_due() {
        let rows = Rows::new();
        assert_eq!(rows.claim("a", 0), Claim::Wait(10 * MINUTE));
        assert_eq!(rows.claim("b", 10 * MINUTE - 1), Claim::Wait(10 * MINUTE));
        assert_eq!(rows.claim("b", 10 * MINUTE), Claim::Granted);
        assert_eq!(rows.claim("a", 10 * MINUTE + 1), Claim::Wait(11 * MINUTE));
        assert!(rows.renew("b", 11 * MINUTE - 1) && !rows.renew("a", 11 * MINUTE - 1));
        assert_eq!(rows.claim("a", 11 * MINUTE), Claim::Wait(12 * MINUTE - 1));
        rows.finish("b", 12 * MINUTE - 2);
        assert_eq!(rows.claim("a", 12 * MINUTE), Claim::Wait(20 * MINUTE));
        assert_eq!(rows.claim("a", 20 * MINUTE), Claim::Granted);
    }

    #[test]
    fn run_of_a_process_that_has_crashed_is_repeated() {
        let rows = Rows::new();
        rows.claim("a", 0);
        assert_eq!(rows.claim("a", 10 * MINUTE), Claim::Granted);
        assert_eq!(rows.claim("b", 11 * MINUTE), Claim::Granted);
        // The first process was suspended, and goes on.
        assert!(!rows.renew("a", 11 * MINUTE + 1));
        rows.finish("a", 11 * MINUTE + 2);
        assert_eq!(rows.claim("a", 11 * MINUTE + 3), Claim::Wait(12 * MINUTE));
        rows.finish("b", 11 * MINUTE + 4);
        assert_eq!(rows.claim("a", 11 * MINUTE + 5), Claim::Wait(20 * MINUTE));
    }

    #[test]
    fn missed_runs_are_not_repeated() {
        let rows = Rows::new();
        rows.claim("a", 0);
        assert_eq!(rows.claim("a", 95 * MINUTE), Claim::Granted);
        rows.finish("a", 96 * MINUTE);
        assert_eq!(rows.claim("a", 97 * MINUTE), Claim::Wait(100 * MINUTE));
        assert_eq!(next_due(0, 7, u64::MAX), u64::MAX);
    }

    #[test]
    fn shorter_interval_and_wrong_clock_cause_no_long_wait() {
        let mut rows = Rows::new();
        rows.claim("a", 1_000_000 * MINUTE);
        assert_eq!(rows.claim("a", 0), Claim::Wait(10 * MINUTE));
        rows.1.interval = Duration::from_mins(1);
        assert_eq!(rows.claim("a", 0), Claim::Wait(MINUTE));
        assert_eq!(rows.claim("a", 2_000_000 * MINUTE), Claim::Granted);
        // The clock of that process was wrong.
        assert_eq!(rows.claim("b", 3 * MINUTE), Claim::Granted);
    }
}

//! Calculates the reported figures from the counts.

use std::time::Duration;

use super::plan::Workload;
use super::raw::{Record, Slot};
use crate::emulator::{End, SLOT};

/// The unit of a server's work, by workload: for the auction only pages count, because files are
/// cheap.
pub(crate) const UNITS: [&str; 3] = ["requests", "pages", "pages"];
/// The kinds of closes by the server: of idle connections, within a response, after a response that
/// announced it, and after a 503 that announced it.
pub(crate) const CLOSES: [&str; 4] = ["closed-idle", "closed-asked", "closed-told", "closed-503"];
/// With fewer refusals, their cost is not reported.
const ENOUGH_REFUSALS: f64 = 100.0;
/// The number of consecutive calm slots after which a surge is over.
const CALM_SLOTS: usize = 4;

pub(crate) fn replies(record: &Record) -> f64 {
    rate(record, "page-count") + rate(record, "file-count")
}

/// The mean response time of pages and files, in milliseconds.
pub(crate) fn response(record: &Record) -> f64 {
    let of = |name: &str| {
        (record.figure(&format!("{name}-count")), record.figure(&format!("{name}-mean")))
    };
    let ((pages, page), (files, file)) = (of("page"), of("file"));
    (pages * page + files * file) / (pages + files) / 1e3
}

/// Response times in milliseconds of the more frequent kind, including requests that timed out.
pub(crate) fn time(record: &Record, part: &str) -> f64 {
    let kind = match record.point.workload {
        Workload::Static => "file",
        Workload::Dynamic | Workload::Database => "page",
    };
    record.figure(&format!("{kind}-wait-{part}")) / 1e3
}

/// Connections closed by the server, per second.
pub(crate) fn closed(record: &Record) -> f64 {
    CLOSES.iter().map(|name| rate(record, name)).sum()
}

/// CPU time of the server per reply over the whole run, in microseconds.
pub(crate) fn cpu_of_a_reply(record: &Record) -> f64 {
    1e6 * record.figure("cpu-server") / record.figure("all-replies")
}

/// The CPU time of a side, in percent of a core.
pub(crate) fn core(record: &Record, name: &str) -> f64 {
    100.0 * record.figure(name) / record.figure("all-seconds")
}

/// New sessions per second, as they arrived.
pub(crate) fn offered(record: &Record) -> f64 {
    (record.figure("begun") + record.figure("turned-away")) / record.figure("seconds")
}

pub(crate) fn completed(record: &Record) -> f64 {
    rate(record, "completed")
}

/// Requests per completed session.
pub(crate) fn length(record: &Record) -> f64 {
    record.figure("completed-length") / record.figure("completed")
}

pub(crate) fn late(record: &Record) -> f64 {
    rate(record, "late")
}

pub(crate) fn rate(record: &Record, name: &str) -> f64 {
    record.figure(name) / record.figure("seconds")
}

/// The percentage of the capacity spent in sessions that were still open at the end, whose result
/// is unknown.
pub(crate) fn open_share(record: &Record, capacity: f64) -> f64 {
    100.0 * rate(record, &work(record, "open")) / capacity
}

/// The percentage of the capacity spent in sessions that completed.
pub(crate) fn work_share(record: &Record, capacity: f64) -> f64 {
    100.0 * rate(record, &work(record, End::Completed.name())) / capacity
}

/// The percentage of all answered work spent in completed sessions, without sessions that were
/// still open.
pub(crate) fn work_of_all(record: &Record) -> f64 {
    let all: f64 = End::ALL.iter().map(|end| record.figure(&work(record, end.name()))).sum();
    100.0 * record.figure(&work(record, End::Completed.name())) / all
}

/// The percentage of completed sessions among the ended admitted ones.
pub(crate) fn finished(record: &Record) -> f64 {
    let (ended, completed) =
        record.classes.iter().fold((0.0, 0.0), |sum, class| (sum.0 + class[0], sum.1 + class[1]));
    100.0 * completed / ended
}

/// The CPU time of a refusal relative to a mean request, estimated from the CPU time beyond the
/// cost of replies in the calm record.
pub(crate) fn refusal_cost(record: &Record, calm: &Record) -> Option<f64> {
    let refusals = record.figure("all-refusals");
    if refusals < ENOUGH_REFUSALS || calm.figure("all-refusals") > 0.0 {
        return None;
    }
    let request = calm.figure("cpu-server") / calm.figure("all-replies");
    let beyond = record.figure("cpu-server") - request * record.figure("all-replies");
    // A busy server has cheaper replies than a calm one; the rest may be too small to measure.
    Some(beyond / refusals / request).filter(|share| *share > 0.0)
}

/// The slots between two seconds.
pub(crate) fn between(slots: &[Slot], from: u64, to: u64) -> &[Slot] {
    let place = |seconds: u64| {
        ((Duration::from_secs(seconds).as_micros() / SLOT.as_micros()) as usize).min(slots.len())
    };
    &slots[place(from)..place(to)]
}

/// Seconds from the end of a surge until the slots are as good as in the later half of the calm
/// before it; `None` if they never are.
pub(crate) fn time_back(slots: &[Slot], [calm, surge, after]: [Duration; 3]) -> Option<f64> {
    let (calm, surge, after) = (calm.as_secs(), surge.as_secs(), after.as_secs());
    let before = between(slots, calm / 2, calm);
    let worst = |of: fn(&Slot) -> f64| before.iter().map(of).fold(0.0, f64::max);
    let (p99, refused) = (worst(|slot| slot.p99), worst(|slot| slot.refused));
    let later = between(slots, calm + surge, calm + surge + after);
    let is_calm = |slot: &Slot| slot.p99 <= p99 && slot.refused <= refused && slot.replies > 0.0;
    let place = later.windows(CALM_SLOTS).position(|slots| slots.iter().all(is_calm))?;
    Some(place as f64 * SLOT.as_secs_f64())
}

/// Seconds from the end of a surge until the last refusal.
pub(crate) fn last_refusal(slots: &[Slot], [calm, surge, after]: [Duration; 3]) -> f64 {
    let begin = (calm + surge).as_secs();
    let later = between(slots, begin, begin + after.as_secs());
    let last = later.iter().rposition(|slot| slot.refused > 0.0);
    last.map_or(0.0, |place| (place + 1) as f64 * SLOT.as_secs_f64())
}

/// Three significant digits; a dash for a missing value.
pub(crate) fn short(value: f64) -> String {
    match value {
        none if !none.is_finite() => "-".to_owned(),
        0.0 => "0".to_owned(),
        _ => crate::figures::short(value),
    }
}

/// The name of the figure for work in sessions that ended this variant.
fn work(record: &Record, end: &str) -> String {
    format!("{end}-{}", UNITS[record.point.workload as usize])
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn slot(p99: f64, refused: f64) -> Slot {
        Slot { begun: 1.0, refused, replies: 9.0, completed: 1.0, p50: 1.0, p99 }
    }

    fn back(after: &[Slot]) -> Option<f64> {
        let before = [slot(10.0, 0.0); 8].into_iter().chain([slot(900.0, 5.0); 4]);
        let all: Vec<Slot> = before.chain(after.iter().copied()).collect();
        time_back(&all, [2 * SECOND, SECOND, 3 * SECOND])
    }

    #[test]
    fn ends_a_surge_after_one_second_no_worse_than_the_calm() {
        assert_eq!(back(&[slot(9.0, 0.0); 12]), Some(0.0));
        let mut after = [slot(10.0, 0.0); 12];
        after[1] = slot(11.0, 0.0);
        assert_eq!(back(&after), Some(0.5), "two slots on");
        after[4] = slot(1.0, 1.0);
        assert_eq!(back(&after), Some(1.25), "a refusal is not calm");
    }

    #[test]
    #[expect(clippy::float_cmp, reason = "the values are exact")]
    fn finds_the_last_refusal_after_the_surge() {
        let last = |after: &[Slot]| {
            let all: Vec<Slot> = [slot(9.0, 7.0); 12].iter().chain(after).copied().collect();
            last_refusal(&all, [2 * SECOND, SECOND, 3 * SECOND])
        };
        assert_eq!(last(&[slot(9.0, 0.0); 12]), 0.0);
        assert_eq!(last(&[slot(9.0, 1.0), slot(9.0, 0.0), slot(9.0, 1.0), slot(9.0, 0.0)]), 0.75);
    }

    #[test]
    fn prints_a_dash_for_a_missing_value() {
        let cells = [f64::NAN, 0.0, 0.123, 12.34, 999.6].map(short);
        assert_eq!(cells, ["-", "0", "0.12", "12.3", "1 000"]);
    }

    #[test]
    fn returns_no_time_if_it_never_calms_down() {
        assert_eq!(back(&[slot(11.0, 0.0); 12]), None);
        let silent = Slot { replies: 0.0, ..slot(0.0, 0.0) };
        assert_eq!(back(&[silent; 12]), None, "a slot without replies is not calm");
        assert_eq!(back(&[]), None);
    }
}

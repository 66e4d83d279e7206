//! The claim of the paper for each figure, the result of a run, and why the two differ. All
//! sentences about a run follow from its points.

use std::fmt::Write;

use super::figures::{
    self, CLOSES, closed, completed, core, cpu_of_a_reply, late, length, rate, replies, response,
    short,
};
use super::groups::{Group, load_text};
use super::plan::Variant;
use super::raw::Record;

/// Values that differ by less count as about the same.
const ABOUT: f64 = 0.1;
/// "Many" and "few" differ by this factor at least.
const MANY: f64 = 10.0;
/// The load from which a server is saturated, in percent.
const SATURATED: u64 = 100;

/// A figure of a record.
type Figure = fn(&Record) -> f64;

/// The points that a claim compares: both architectures under the highest common load.
pub(super) struct Evidence<'r, 'g> {
    groups: &'g [Group<'r>],
    load: u64,
    pool: &'g Group<'r>,
    hybrid: &'g Group<'r>,
}

/// Whether a claim holds, and the explanation of what was seen.
struct Verdict {
    holds: bool,
    why: String,
}

impl<'r, 'g> Evidence<'r, 'g> {
    /// `None` if the run has no load under which both were measured.
    pub(super) fn of(groups: &'g [Group<'r>]) -> Option<Self> {
        let at = |variant: Variant, load: u64| {
            groups.iter().find(|group| group.variant == variant && group.load() == Some(load))
        };
        let mut loads: Vec<u64> = groups.iter().filter_map(Group::load).collect();
        loads.sort_unstable();
        loads.iter().rev().find_map(|&load| {
            let (pool, hybrid) = (at(Variant::Pool, load)?, at(Variant::Hybrid, load)?);
            Some(Self { groups, load, pool, hybrid })
        })
    }

    fn is_saturated(&self) -> bool {
        self.load >= SATURATED
    }

    /// The group of the pool at the load nearest above saturation, if it is not the highest one.
    fn pool_at_saturation(&self) -> Option<&Group<'r>> {
        let pools = self.groups.iter().filter(|group| group.variant == Variant::Pool);
        let loads = pools.filter(|group| group.load().is_some_and(|load| load >= SATURATED));
        loads.min_by_key(|group| group.load()).filter(|group| group.load() != Some(self.load))
    }

    fn both(&self, figure: Figure) -> [f64; 2] {
        [self.pool, self.hybrid].map(|group| group.median(figure))
    }

    /// All servers at the compared load.
    fn seen(&self, figure: Figure, unit: &str) -> String {
        let own = self.groups.iter().filter(|group| group.load() == Some(self.load));
        let all = own.map(|group| format!("{} {}", group.variant.title(), group.cell(figure)));
        let all: Vec<String> = all.collect();
        format!("at load {}, in {unit}: {}", load_text(self.load), all.join("; "))
    }

    fn costs(&self) -> String {
        let [pool, hybrid] = self.both(cpu_of_a_reply).map(short);
        let [one, other] = self.both(|record| core(record, "cpu-server")).map(short);
        format!(
            "a reply cost {pool} us of CPU time on the pool, which used {one} % of the core, and {hybrid} us on the \
             hybrid, which used {other} %"
        )
    }
}

/// The paragraph below a figure of the paper.
pub(super) fn comment(number: u8, groups: &[Group<'_>]) -> String {
    let Some(evidence) = Evidence::of(groups) else {
        return "The claim cannot be judged: this run has no load under which the pool and the hybrid were both measured."
            .to_owned();
    };
    let (claim, unit, figure, verdict): (&str, &str, Figure, Verdict) = match number {
        3 => (
            "the same with 500 threads or 10 workers",
            "replies/s",
            replies,
            about_the_same(&evidence),
        ),
        4 => ("twice as long on the pool when saturated", "ms", response, twice_as_long(&evidence)),
        5 => (
            "many connections closed by the pool, none by the hybrid",
            "connections/s",
            closed,
            closes(&evidence),
        ),
        6 => (
            "about the same, the pool slightly ahead when saturated",
            "replies/s",
            replies,
            about_the_same(&evidence),
        ),
        7 => (
            "clearly more sessions completed on the hybrid past saturation, where the number of the pool falls",
            "sessions/s",
            completed,
            more_sessions(&evidence),
        ),
        8 => (
            "longer sessions completed on the hybrid; the pool completes short ones only",
            "requests",
            length,
            longer_sessions(&evidence),
        ),
        _ => (
            "many timeouts of clients on the pool, few on the hybrid",
            "timeouts/s",
            late,
            timeouts(&evidence),
        ),
    };
    let result = match (verdict.holds, evidence.is_saturated()) {
        (true, _) => "as claimed",
        (false, true) => "**not as claimed**",
        (false, false) => "not as claimed, but the highest load of this run is below saturation",
    };
    let mut text =
        format!("*Claim*: {claim}. *Seen* {}. The result is {result}", evidence.seen(figure, unit));
    let _ = write!(text, ". *Why*: {}.{}", verdict.why, tomcat(&evidence, figure));
    text
}

fn about_the_same(evidence: &Evidence<'_, '_>) -> Verdict {
    let [pool, hybrid] = evidence.both(replies);
    let holds = (pool / hybrid - 1.0).abs() <= ABOUT;
    let [reopened, _] = evidence.both(closed);
    let mut why = format!(
        "the pool answered {} of the hybrid's number; {}",
        short(pool / hybrid),
        evidence.costs()
    );
    if reopened >= 1.0 {
        let _ = write!(
            why,
            "; the pool closed {} connections a second, which visitors opened again",
            short(reopened)
        );
    }
    Verdict { holds, why }
}

fn twice_as_long(evidence: &Evidence<'_, '_>) -> Verdict {
    let [pool, hybrid] = evidence.both(response);
    let ratio = pool / hybrid;
    let gave_up = evidence.both(late);
    let bound = if gave_up.iter().all(|rate| *rate <= 0.0) {
        "No visitor waited for 10 s and gave up".to_owned()
    } else {
        let [pool, hybrid] = gave_up.map(short);
        format!(
            "It has answered requests only, and visitors who waited for 10 s gave up: {pool} a second on the pool and \
             {hybrid} on the hybrid, which bounds both means"
        )
    };
    Verdict {
        holds: (1.5..=3.0).contains(&ratio),
        why: format!("the mean of the pool is {} times that of the hybrid. {bound}", short(ratio)),
    }
}

fn closes(evidence: &Evidence<'_, '_>) -> Verdict {
    let [pool, _] = evidence.both(closed);
    let kinds = CLOSES.map(|kind| evidence.hybrid.median(|record| rate(record, kind)));
    let unannounced = kinds[0] + kinds[1];
    let mut why = if pool >= 1.0 {
        "the pool closes connections when all of its threads have one, and the hybrid gives idle connections no thread"
            .to_owned()
    } else {
        let used = evidence.pool.median(|record| core(record, "cpu-server"));
        format!(
            "the pool was not short of threads when {} visitors a second gave up; it used {} % of the core",
            short(evidence.pool.median(late)),
            short(used)
        )
    };
    let _ = write!(
        why,
        ". The hybrid closed {} idle connections a second, {} with a request under way, {} by announcement and {} with a \
         503",
        short(kinds[0]),
        short(kinds[1]),
        short(kinds[2]),
        short(kinds[3])
    );
    Verdict { holds: pool >= 1.0 && unannounced * MANY < pool, why }
}

fn more_sessions(evidence: &Evidence<'_, '_>) -> Verdict {
    let [pool, hybrid] = evidence.both(completed);
    let before = evidence.pool_at_saturation();
    let falls = before.is_none_or(|group| group.median(completed) > pool);
    let lengths = evidence.both(length).map(short);
    let ended = evidence.both(figures::finished).map(short);
    let open = evidence.both(open_sessions).map(short);
    let mut why = format!(
        "of the admitted sessions that ended, the pool completed {} % and the hybrid {} %, with {} and {} requests on \
         average",
        ended[0], ended[1], lengths[0], lengths[1]
    );
    if let Some(group) = before {
        let _ = write!(
            why,
            "; at load {} the pool completed {} a second",
            group.load_text(),
            group.cell(completed)
        );
    }
    let _ = write!(
        why,
        "; {} % of its sessions and {} % of the hybrid's were still open at the end of a point, and count as not completed",
        open[0], open[1]
    );
    Verdict { holds: hybrid > pool * (1.0 + ABOUT) && falls, why }
}

/// The percentage of begun sessions that were still open at the end.
fn open_sessions(record: &Record) -> f64 {
    100.0 * record.figure("open") / record.figure("begun")
}

fn longer_sessions(evidence: &Evidence<'_, '_>) -> Verdict {
    let [pool, hybrid] = evidence.both(length);
    let longest = |group: &Group<'_>| {
        short(group.median(|record| {
            let [ended, completed] = record.classes.last().copied().unwrap_or([0.0; 2]);
            100.0 * completed / ended
        }))
    };
    Verdict {
        holds: hybrid > pool * (1.0 + ABOUT),
        why: format!(
            "a timeout or a 503 ends a session at any of its requests, so that long sessions meet one more often: of the \
             longest class, the pool completed {} % and the hybrid {} %",
            longest(evidence.pool),
            longest(evidence.hybrid)
        ),
    }
}

fn timeouts(evidence: &Evidence<'_, '_>) -> Verdict {
    let [pool, hybrid] = evidence.both(late);
    let refused = |group: &Group<'_>| {
        short(group.median(|record| rate(record, "refused") + rate(record, "dropped")))
    };
    Verdict {
        holds: pool > 0.0 && pool >= hybrid * MANY,
        why: format!(
            "the servers answered {} sessions a second with a 503 on the pool and {} on the hybrid, instead of letting \
             them wait; {}",
            refused(evidence.pool),
            refused(evidence.hybrid),
            evidence.costs()
        ),
    }
}

/// A sentence about the descendant of the paper's server.
fn tomcat(evidence: &Evidence<'_, '_>, figure: Figure) -> String {
    let own = evidence.groups.iter().filter(|group| {
        group.load() == Some(evidence.load) && group.variant.tomcat_threads().is_some()
    });
    let mut text = String::new();
    for group in own {
        let (tomcat, hybrid) = (group.median(figure), evidence.hybrid.median(figure));
        let [used, cost] =
            [group.median(|record| core(record, "cpu-server")), group.median(cpu_of_a_reply)];
        let place = match tomcat / hybrid {
            ratio if ratio.is_finite() => format!("has {} times the hybrid's value", short(ratio)),
            _ => format!("has {} where the hybrid has {}", short(tomcat), short(hybrid)),
        };
        let _ = write!(
            text,
            " {}, whose connector gives idle connections no thread either, {place}; it used {} % of the core, with {} us \
             for a reply.",
            group.variant.title(),
            short(used),
            short(cost)
        );
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::overload::groups::groups;
    use crate::overload::groups::tests::sample;

    /// Points under the highest load, with a number of completed sessions and closed connections.
    fn records(pool: [f64; 2], hybrid: [f64; 2]) -> Vec<Record> {
        let of = |variant, load, [completed, closed]: [f64; 2]| {
            let replies = [("page-count", 800.0), ("file-count", 200.0)];
            let ends = [("completed", completed), ("closed-idle", closed), ("seconds", 10.0)];
            sample(variant, load, 1, &[&replies[..], &ends[..]].concat())
        };
        vec![
            of(Variant::Pool, 100, [500.0, 0.0]),
            of(Variant::Pool, 400, pool),
            of(Variant::Hybrid, 400, hybrid),
        ]
    }

    fn text(number: u8, records: &[Record]) -> String {
        comment(number, &groups(&records.iter().collect::<Vec<_>>()))
    }

    #[test]
    fn judges_a_claim_by_the_highest_common_load() {
        let as_claimed = records([100.0, 50.0], [300.0, 0.0]);
        let seven = text(7, &as_claimed);
        assert!(
            seven.contains("at load 4.00, in sessions/s: pool, 500 threads 10.0; hybrid"),
            "{seven}"
        );
        assert!(seven.contains("is as claimed. *Why*"), "{seven}");
        assert!(seven.contains("at load 1.00 the pool completed 50.0 a second"), "{seven}");
        assert!(text(5, &as_claimed).contains("is as claimed"));
        let reversed = records([300.0, 0.0], [100.0, 0.0]);
        assert!(text(7, &reversed).contains("**not as claimed**"));
        assert!(text(5, &reversed).contains("was not short of threads"));
        assert!(text(6, &reversed).contains("is as claimed"), "equal numbers of replies");
    }

    #[test]
    fn judges_nothing_without_both_architectures() {
        let own = records([1.0, 1.0], [1.0, 1.0]);
        let text = text(3, &own[..2]);
        assert!(text.starts_with("The claim cannot be judged"), "{text}");
    }

    #[test]
    fn describes_tomcat_relative_to_the_hybrid() {
        let mut own = records([100.0, 50.0], [300.0, 0.0]);
        let figures = [("completed", 150.0), ("seconds", 10.0)];
        own.push(sample(Variant::Tomcat200, 400, 1, &figures));
        let text = text(7, &own);
        assert!(text.contains("Tomcat, 200 threads, whose connector"), "{text}");
        assert!(text.contains("has 0.50 times the hybrid's value"), "{text}");
    }
}

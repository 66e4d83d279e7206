//! The program of `rights`: 10 000 rules, users with groups, and a page that times checks.

use std::hint::black_box;
use std::time::Instant;

use bine::prelude::*;
use bine::{AccessRules, Right, Rights, Who};

/// The rules of all kinds together.
const RULES: usize = 10_000;
/// The groups that rules name.
const GROUPS: usize = 100;
/// The users, each with the number of its groups.
const USERS: [(&str, usize); 3] = [("none", 0), ("three", 3), ("twenty", 20)];
const PATHS: usize = 2000;
/// The checks of a batch: so few that the kernel interrupts few batches.
const BATCH: usize = 20;
/// How often all paths are checked.
const TURNS: usize = 500;

/// Logs in as one of the users.
#[page(POST "/enter/{user}")]
async fn enter(session: Session, user: Path<Text>) -> Result<Json<bool>, Error> {
    session.log_in(&user).await?;
    Ok(Json(true))
}

/// Checks paths of one kind for the client. Returns the median and the 99th percentile of the
/// batches, in nanoseconds per check.
#[page("/checks/{kind}")]
fn checks(rights: Rights, kind: Path<Text>) -> Json<[f64; 2]> {
    let paths: Vec<String> = (0..PATHS).map(|place| path(&kind, place * 7919)).collect();
    let right = if kind.starts_with("channel") { Right::Follow } else { Right::Read };
    let batch = |paths: &[String]| {
        let begin = Instant::now();
        for path in paths {
            black_box(rights.may(right, black_box(path)));
        }
        begin.elapsed().as_secs_f64() * 1e9 / paths.len() as f64
    };
    let mut times = Vec::new();
    for _ in 0..TURNS {
        times.extend(paths.chunks(BATCH).map(batch));
    }
    times.sort_by(f64::total_cmp);
    Json([times[times.len() / 2], times[times.len() * 99 / 100]])
}

/// A path or channel that a rule of this kind decides about. Each kind has a fifth of the rules.
fn path(kind: &str, number: usize) -> String {
    let (area, part) = (number % 100, number / 100 % 20);
    match kind {
        "literal" => format!("/area{area}/page{part}"),
        "segment" => format!("/area{area}/list{part}/any-{number}/edit"),
        "rest" => format!("/area{area}/part{part}/deep/er/file-{number}.html"),
        "index" => format!("/area{area}/folder{part}/index.html"),
        "channel" => format!("area{area}/room{part}/lobby"),
        _ => format!("/elsewhere/{area}/{part}"),
    }
}

/// The rule that decides about [`path`] of the same kind and number.
fn pattern(kind: &str, number: usize) -> String {
    let (area, part) = (number % 100, number / 100 % 20);
    match kind {
        "segment" => format!("/area{area}/list{part}/{{item}}/edit"),
        "rest" => format!("/area{area}/part{part}/*"),
        "index" => format!("/area{area}/folder{part}/*"),
        "channel" => format!("area{area}/room{part}/*"),
        _ => path(kind, number),
    }
}

fn rules() -> AccessRules {
    let mut rules = AccessRules::new().read("/", Who::Anonymous);
    for number in 0..RULES / 5 {
        // Subjects of all kinds; for a client without rights, the check reads all subjects.
        let who = match number % 4 {
            0 => Who::Users,
            1 => Who::user("three"),
            _ => Who::group(format!("group{}", number % GROUPS)),
        };
        for kind in ["literal", "segment", "rest", "index", "channel"] {
            let right = if kind == "channel" { Right::Follow } else { Right::Read };
            rules = rules.with(&pattern(kind, number), right, who.clone());
        }
    }
    for (user, groups) in USERS {
        for number in 0..groups {
            rules = rules.member(&format!("group{}", number * 5), user);
        }
    }
    rules.allow("/enter/*", Who::Anonymous).allow("/checks/*", Who::Anonymous)
}

fn main() -> Exit {
    App::new().rights(rules()).page(enter).page(checks).run()
}

//! A model check of live regions: after any sequence of reads and changes, each open page equals a
//! new response for it.
//!
//! The comparison happens without a further change, which could hide a missed update.

use std::thread;

use bine::Sessions;
use bine::prelude::*;
use proptest::collection::vec;
use proptest::prelude::{Just, Strategy, prop_oneof};
use proptest::test_runner::{Config, TestRunner};

use super::viewer::{Event, Viewer};
use crate::app::{options, program};
use crate::harness::{KINDS, Program};

#[derive(Clone, Table)]
struct Thing {
    id: Id<Thing>,
    #[table(index)]
    kind: u32,
    #[table(index)]
    size: u32,
}

/// The program under test. Ordinary test runs skip it.
#[test]
fn serve_plan_program() -> Exit {
    let Some(options) = options() else { return Exit::success() };
    App::new()
        .table::<Thing>()
        .sessions(Sessions::new())
        .page(add)
        .page(turn)
        .page(drop_one)
        .page(clear)
        .page(log_in)
        .page(keep)
        .page(planned)
        .page(planned_by_worker)
        .run_with("Usage: model", options.lines())
}

#[page(POST "/add/{kind}/{size}")]
async fn add(store: Store, kind: Path<u32>, size: Path<u32>) -> Result<Response, Error> {
    store.insert(Thing { id: Id::unassigned(), kind: *kind, size: *size }).await?;
    Ok(Response::text("added"))
}

/// Changes kind and size of the thing at this position.
#[page(POST "/turn/{place}/{kind}/{size}")]
async fn turn(
    store: Store,
    place: Path<usize>,
    kind: Path<u32>,
    size: Path<u32>,
) -> Result<Response, Error> {
    if let Some(thing) = store.read().all::<Thing>().nth(*place) {
        store.update(thing.id, |thing| (thing.kind, thing.size) = (*kind, *size)).await?;
    }
    Ok(Response::text("turned"))
}

#[page(POST "/drop/{place}")]
async fn drop_one(store: Store, place: Path<usize>) -> Result<Response, Error> {
    if let Some(thing) = store.read().all::<Thing>().nth(*place) {
        store.remove(thing.id).await?;
    }
    Ok(Response::text("gone"))
}

#[page(POST "/clear")]
async fn clear(store: Store) -> Result<Response, Error> {
    store
        .change(|change| {
            let things: Vec<Thing> = change.all().collect();
            things.iter().try_for_each(|thing| change.remove(thing.id).map(drop))
        })
        .await?;
    Ok(Response::text("all gone"))
}

#[page(POST "/login/{user}")]
async fn log_in(session: Session, user: Path<Text>) -> Result<Response, Error> {
    session.log_in(user).await?;
    Ok(Response::text("in"))
}

#[page(POST "/keep/{word}")]
async fn keep(session: Session, word: Path<u32>) -> Result<Response, Error> {
    session.set("word", *word).await?;
    Ok(Response::text("kept"))
}

/// Parses a plan into its parts, each a letter and reads. `b` reads before the page is rendered,
/// for all regions; `p` reads outside of regions, `r` in one; `0` to `3` in a region that exists
/// only if there are things of that kind.
fn parts(plan: &str) -> Vec<(char, String)> {
    let parts = plan.split('.').filter_map(|part| {
        let kind = part.chars().next()?;
        Some((kind, part[1..].to_owned()))
    });
    parts.collect()
}

/// Performs reads, each a letter and a digit.
fn show(now: &bine::store::Snapshot, session: &Session, looks: &str) -> String {
    let looks = looks.as_bytes().chunks_exact(2);
    let texts = looks.map(|look| {
        let number = u32::from(look[1] - b'0');
        let things = |things: &mut dyn Iterator<Item = Thing>| -> String {
            let texts = things.map(|thing| format!("{}/{}", thing.kind, thing.size));
            texts.collect::<Vec<_>>().join(" ")
        };
        match look[0] {
            b'i' => things(&mut now.find(Thing::BY_KIND, number)),
            b'l' => things(&mut now.find(Thing::BY_KIND, number).rev().take(1)),
            b'r' => things(&mut now.range(Thing::BY_SIZE, number..number + 3)),
            b'n' => things(&mut now.newest(number as usize).into_iter()),
            b'o' => things(&mut now.one(Thing::BY_SIZE, number).into_iter()),
            // This read depends on the result of an earlier read.
            b'g' => {
                let kind = now.newest::<Thing>(1).first().map_or(number, |newest| newest.size);
                things(&mut now.find(Thing::BY_KIND, kind))
            }
            b'c' => now.count::<Thing>().to_string(),
            b'a' => things(&mut now.all()),
            b'u' => session.user().unwrap_or_default().to_string(),
            _ => session.get::<u32>("word").unwrap_or_default().to_string(),
        }
    });
    texts.collect::<Vec<_>>().join(", ")
}

/// Renders the page of a plan with the result of its earlier reads.
fn page_of(
    parts: Vec<(char, String)>,
    before: String,
    store: Store,
    session: Session,
) -> impl Page {
    html! {
        {for (kind, looks) in parts {
            {if is_region(&store, kind) {
                <Live><p>{&before}: {show(&store.read(), &session, &looks)}</p></Live>
            } else if kind == 'p' {
                <p>{show(&store.read(), &session, &looks)}</p>
            }}
        }}
    }
}

fn is_region(store: &Store, kind: char) -> bool {
    match kind.to_digit(10) {
        Some(kind) => store.read().find(Thing::BY_KIND, kind).next().is_some(),
        None => kind == 'r',
    }
}

fn before(parts: &[(char, String)]) -> String {
    parts.iter().filter(|(kind, _)| *kind == 'b').map(|(_, looks)| looks.as_str()).collect()
}

#[page("/planned")]
async fn planned(store: Store, session: Session, plan: Query<Text>) -> impl Page {
    let parts = parts(&plan);
    let now = store.read();
    tokio::task::yield_now().await;
    let before = show(&now, &session, &before(&parts));
    drop(now);
    page_of(parts, before, store, session)
}

/// Performs the earlier reads in a change without writes.
#[page("/planned/worker")]
fn planned_by_worker(
    store: Store,
    session: Session,
    plan: Query<Text>,
) -> Result<impl Page, Error> {
    let parts = parts(&plan);
    let looks = before(&parts);
    let before = store.change(|now| Ok::<_, Error>(show(now, &session, &looks))).wait()?;
    Ok(page_of(parts, before, store, session))
}

/// A step of the test.
#[derive(Clone, Debug)]
enum Step {
    /// A request that changes the program's data.
    Change(String),
    /// Changes the session of a visitor.
    Keep(usize, u32),
    /// Logs in a visitor, who reloads all their pages.
    LogIn(usize, &'static str),
    /// A viewer reconnects with the regions it shows.
    Return(usize),
    /// A viewer reloads its page and follows it.
    Reload(usize),
    /// Each viewer waits until it shows the current page, so that the next change is observed
    /// alone.
    Settle,
}

/// A viewer of a page.
#[derive(Clone, Debug)]
struct Look {
    target: String,
    visitor: usize,
    is_poll: bool,
}

const VISITORS: usize = 3;
const LOOKS: usize = 5;

fn looks() -> impl Strategy<Value = Look> {
    // A read of the whole table would hide missed updates, so most reads are narrower.
    let of_rows = || prop_oneof![8 => "([ilrnogg][0-2]){1,2}", 1 => "[ca]0"];
    let looks = prop_oneof![4 => of_rows(), 1 => Just("u0".to_owned()), 1 => Just("s0".to_owned())];
    let part = ("[bbpprrrr012]", looks).prop_map(|(kind, looks)| kind + &looks);
    // Other parts may read the same rows outside of regions.
    let plan = (vec(part, 0..4), of_rows())
        .prop_map(|(parts, last)| format!("{}.r{last}", parts.join(".")));
    let way = prop_oneof![Just("/planned"), Just("/planned/worker")];
    (way, plan, 0..VISITORS, proptest::bool::ANY).prop_map(|(way, plan, visitor, is_poll)| Look {
        target: format!("{way}?plan={plan}"),
        visitor,
        is_poll,
    })
}

fn steps() -> impl Strategy<Value = Step> {
    let change = prop_oneof![
        (0..3_u32, 0..4_u32).prop_map(|(kind, size)| format!("/add/{kind}/{size}")),
        (0..6_usize, 0..3_u32, 0..4_u32)
            .prop_map(|(place, kind, size)| format!("/turn/{place}/{kind}/{size}")),
        (0..6_usize).prop_map(|place| format!("/drop/{place}")),
    ];
    prop_oneof![
        8 => change.prop_map(Step::Change),
        1 => (0..VISITORS, 0..9_u32).prop_map(|(visitor, word)| Step::Keep(visitor, word)),
        1 => (0..VISITORS, prop_oneof![Just("ann"), Just("ben")])
            .prop_map(|(visitor, user)| Step::LogIn(visitor, user)),
        1 => (0..LOOKS).prop_map(Step::Return),
        1 => (0..LOOKS).prop_map(Step::Reload),
        6 => Just(Step::Settle),
    ]
}

/// Posts as a visitor and updates the visitor's `Cookie` line.
fn post(program: &Program, fields: &mut String, target: &str) {
    let reply = program.connect().request("POST", target, fields, "");
    assert_eq!(reply.status(), 200, "{target}: {reply:?}");
    if let Some(told) = reply.header("Set-Cookie") {
        *fields = format!("Cookie: {}\r\n", told.split(';').next().unwrap());
    }
}

/// Waits until a viewer shows the current page.
fn settle(viewer: &mut Viewer) {
    while viewer.regions != viewer.fresh() {
        match viewer.next() {
            Event::Patch(_) => {}
            Event::Reload | Event::Over(_) => open(viewer),
        }
    }
}

fn open(viewer: &mut Viewer) {
    viewer.load();
    assert_eq!(viewer.follow(), 200);
}

fn play(program: &Program, looks: &[Look], steps: &[Step]) {
    post(program, &mut String::new(), "/clear");
    let mut visitors: [String; VISITORS] = Default::default();
    for fields in &mut visitors {
        post(program, fields, "/keep/0");
    }
    let mut viewers: Vec<Viewer> = looks
        .iter()
        .map(|Look { target, visitor, is_poll }| {
            let mut viewer = Viewer::with(program, target, &visitors[*visitor], *is_poll);
            open(&mut viewer);
            viewer
        })
        .collect();
    for step in steps {
        match step {
            Step::Change(target) => post(program, &mut String::new(), target),
            Step::Keep(visitor, word) => {
                post(program, &mut visitors[*visitor], &format!("/keep/{word}"));
            }
            Step::LogIn(visitor, user) => {
                post(program, &mut visitors[*visitor], &format!("/login/{user}"));
                for (viewer, look) in viewers.iter_mut().zip(looks) {
                    if look.visitor == *visitor {
                        viewer.fields.clone_from(&visitors[*visitor]);
                        open(viewer);
                    }
                }
            }
            Step::Return(viewer) => assert_eq!(viewers[*viewer].follow(), 200),
            Step::Reload(viewer) => open(&mut viewers[*viewer]),
            Step::Settle => viewers.iter_mut().for_each(settle),
        }
    }
    viewers.iter_mut().for_each(settle);
    // A late change must not break this.
    post(program, &mut String::new(), "/add/0/0");
    viewers.iter_mut().for_each(settle);
}

#[test]
fn open_pages_equal_new_responses_after_any_changes() {
    let check = |scheduler: &str| {
        let options = ["--data", "memory", "--scheduler", scheduler, "--workers", "32"];
        let test = "live::model::serve_plan_program";
        let program = Program::start(&mut program(test, &options));
        // The failure lists pages and steps. Shrinking would wait for a timeout in each attempt.
        let config = Config {
            cases: 40,
            max_shrink_iters: 0,
            failure_persistence: None,
            ..Config::default()
        };
        let scenario = (vec(looks(), LOOKS), vec(steps(), 12..32));
        let outcome = TestRunner::new(config).run(&scenario, |(looks, steps)| {
            play(&program, &looks, &steps);
            Ok(())
        });
        outcome.unwrap_or_else(|error| panic!("{scheduler}: {error}"));
    };
    thread::scope(|scope| {
        for scheduler in KINDS {
            scope.spawn(move || check(scheduler));
        }
    });
}

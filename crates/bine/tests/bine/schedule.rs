//! Services that run at intervals.

use std::time::{Duration, Instant};

use bine::Rule;
use bine::prelude::*;
use bine::test::Site;
use serde_json::json;

#[derive(Table)]
struct Run {
    id: Id<Run>,
    user: Option<Text>,
}

/// Notes a run.
#[service(who = Rule::PROGRAM)]
fn note_run(call: &mut Call) -> Result<(), Error> {
    let user = call.session().user();
    call.insert(Run { id: Id::unassigned(), user })?;
    Ok(())
}

#[service(who = Rule::PROGRAM)]
async fn fail(caller: Caller) -> Result<(), Error> {
    caller.store().insert(Run { id: Id::unassigned(), user: Some("failed".into()) }).await?;
    Err(std::io::Error::other("planned").into())
}

#[service]
fn with_argument(name: Text) -> Text {
    name
}

#[page("/runs")]
async fn runs(store: Store) -> impl Page {
    html!(<Live><ul>{for run in store.read().all::<Run>() { <li>{run.user}</li> }}</ul></Live>)
}

fn app() -> App {
    App::new().table::<Run>().page(runs).service(note_run).service(fail).service(with_argument)
}

fn wait_for_runs(site: &Site, count: usize) {
    let begun = Instant::now();
    while site.get("/runs").text().matches("<li").count() < count {
        assert!(begun.elapsed() < Duration::from_mins(1), "{}", site.get("/runs").text());
        std::thread::yield_now();
    }
}

fn failure(start: impl FnOnce() -> Site + std::panic::UnwindSafe) -> String {
    let panicked = std::panic::catch_unwind(start).expect_err("the program must not start");
    panicked.downcast_ref::<String>().unwrap().clone()
}

#[test]
fn service_runs_at_its_interval_without_a_client() {
    let site = Site::new(app().every(Duration::from_secs(1), note_run));
    let mut tab = site.visit("/runs");
    wait_for_runs(&site, 2);
    tab.expect("li:nth-child(2)", "");
    // Clients may not call it.
    assert_eq!(site.post_json("/bine/note_run", &json!({})).status(), 401);
}

#[test]
fn service_that_fails_runs_again() {
    let site = Site::with_settings(app(), &["--every", "1s /bine/fail"]);
    wait_for_runs(&site, 2);
}

#[test]
fn start_names_services_that_cannot_be_scheduled() {
    let start =
        |every: &'static str| failure(move || Site::with_settings(app(), &["--every", every]));
    let arguments = start("1m /bine/with_argument");
    assert!(arguments.contains("because it has arguments"), "{arguments}");
    let unknown = start("1m /nowhere/at_all");
    assert!(unknown.contains("the program has no such service"), "{unknown}");
    let wrong = start("soon /a");
    assert!(wrong.contains("like 10m /board/clean_up"), "{wrong}");
    let twice = failure(|| {
        let minute = Duration::from_mins(1);
        Site::new(app().every(minute, note_run).every(minute, note_run))
    });
    assert!(twice.contains("is scheduled twice"), "{twice}");
}

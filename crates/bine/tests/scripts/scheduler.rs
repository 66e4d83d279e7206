//! A scheduler in the start script: the order in which requests run, and what a broken one does.

use std::fmt::Debug;
use std::sync::{Arc, Condvar, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use bine::prelude::*;
use bine::test::{Client, Method, Site};
use bine::{App, Filter, FilterDecision, FilterRequest, State};
use serde_json::json;

use crate::folder::Folder;

/// More than any change takes.
const PATIENCE: Duration = Duration::from_mins(1);

/// A log of the handlers of one program, and a gate for the waiting ones.
#[derive(Default)]
struct Course {
    turns: Mutex<Vec<String>>,
    /// How often filters have run; a request with a body runs them twice, and any other counts twice.
    seen: Mutex<usize>,
    is_open: Mutex<bool>,
    opened: Condvar,
}

impl Course {
    fn note(&self, turn: &str) {
        self.turns.lock().unwrap().push(turn.to_owned());
    }

    fn turns(&self) -> Vec<String> {
        self.turns.lock().unwrap().clone()
    }

    fn open(&self) {
        *self.is_open.lock().unwrap() = true;
        self.opened.notify_all();
    }
}

/// Takes its place until the test opens the course.
#[page("/hold")]
fn hold(course: State<Arc<Course>>) -> impl Page {
    course.note("hold");
    drop(course.opened.wait_while(course.is_open.lock().unwrap(), |is_open| !*is_open).unwrap());
    html!("held")
}

#[page("/say/{word}")]
fn say(course: State<Arc<Course>>, word: Path<Text>) -> impl Page {
    course.note(&word);
    html!("said")
}

/// Is called by services in TSX.
#[service]
async fn note(caller: Caller, word: Text) -> Result<(), Error> {
    caller.state::<Arc<Course>>()?.note(&word);
    Ok(())
}

/// Is no request for a worker, so that the event loop answers it at once.
#[page("/seen")]
async fn seen(course: State<Arc<Course>>) -> Response {
    Response::text(course.seen.lock().unwrap().to_string())
}

/// Counts requests on the loop, before the loop passes them to the scheduler.
struct Counting(Arc<Course>);

impl Filter for Counting {
    fn filter(&self, request: &FilterRequest<'_>) -> FilterDecision {
        if request.path() != "/seen" {
            *self.0.seen.lock().unwrap() += if request.method() == Method::Post { 1 } else { 2 };
        }
        FilterDecision::Continue
    }
}

/// A program with a scheduler that has one place.
pub(crate) struct Program {
    site: Site,
    course: Arc<Course>,
    folder: Folder,
    sent: usize,
    waiting: Vec<thread::JoinHandle<u16>>,
}

const TALK: &str = r#"import { page, service } from "bine";
import { note } from "bine:services";
export const say = service(async (ctx, { word }: { word: string }) => { await note({ word }); });
export default page(async (ctx, { word = "" }) => { await note({ word }); return <p>said</p>; });
"#;

impl Program {
    fn with(policy: &str) -> Self {
        Self::with_script(&format!(
            "import {{ scheduler }} from \"bine:start\";\nscheduler(() => {{ {policy} }}, {{ places: 1 }});\n"
        ))
    }

    pub(crate) fn with_script(script: &str) -> Self {
        let folder = Folder::with(&[("talk/index.tsx", TALK), ("start.ts", script)]);
        let course = Arc::<Course>::default();
        let app = folder.app();
        let site = Site::new(Self::pages(app, &course));
        Self { site, course, folder, sent: 0, waiting: Vec::new() }
    }

    fn pages(app: App, course: &Arc<Course>) -> App {
        let app = app.state(Arc::clone(course)).filter(Counting(Arc::clone(course)));
        app.page(hold).page(say).page(seen).service(note)
    }

    /// Sends a request and returns when the only loop has passed it to the scheduler.
    pub(crate) fn send(&mut self, method: Method, path: &str, body: Option<&str>) {
        let (address, path) = (self.site.address(), path.to_owned());
        let body = body.map(str::to_owned);
        self.waiting.push(thread::spawn(move || {
            let client = Client::at(address);
            match body {
                Some(body) => client.post_json(&path, &json!({ "word": body })).status(),
                None => client.request(method, &path).send().status(),
            }
        }));
        self.await_arrival();
    }

    /// Waits until the loop has passed one more request to the scheduler.
    fn await_arrival(&mut self) {
        self.sent += 1;
        let expected = (2 * self.sent).to_string();
        self.until(|own| own.site.get("/seen").text() == expected);
    }

    fn until(&self, is_so: impl Fn(&Self) -> bool) {
        let began = Instant::now();
        while !is_so(self) {
            assert!(began.elapsed() < PATIENCE, "{:?}", self.course.turns());
        }
    }

    /// Takes the only place.
    pub(crate) fn hold(&mut self) {
        self.send(Method::Get, "/hold", None);
        self.until(|own| !own.course.turns().is_empty());
    }

    /// Lets all requests run. Returns the order in which they ran, and their statuses in the order in
    /// which they were sent.
    pub(crate) fn finish(self) -> (Vec<String>, Vec<u16>) {
        self.course.open();
        let statuses = self.waiting.into_iter().map(|reply| reply.join().unwrap()).collect();
        let mut turns = self.course.turns();
        assert_eq!(turns.remove(0), "hold");
        (turns, statuses)
    }
}

/// Reports wait for all other requests; of two reports the newer one runs first.
const REPORTS_LAST: &str = "return { next: (waiting) => waiting.find((one) => !one.path.includes(\"report\")) ?? waiting.at(-1) };";

const WORDS: [&str; 5] = ["report-1", "page-1", "report-2", "page-2", "page-3"];
const IN_ORDER: [&str; 5] = WORDS;
const REPORTS_AT_THE_END: [&str; 5] = ["page-1", "page-2", "page-3", "report-2", "report-1"];

/// The order of five handlers that may block.
fn order_of_handlers(policy: &str) -> Vec<String> {
    let mut program = Program::with(policy);
    program.hold();
    for word in WORDS {
        program.send(Method::Get, &format!("/say/{word}"), None);
    }
    let (turns, statuses) = program.finish();
    assert_eq!(statuses, [200; 6]);
    turns
}

/// Checks that an attempt has the expected result. On a machine that stops for half a second, the
/// scheduler is late and requests run in order of arrival, so this makes several attempts.
#[track_caller]
pub(crate) fn succeeds<T: PartialEq<E> + Debug, E: Debug>(expected: E, attempt: impl Fn() -> T) {
    const ATTEMPTS: usize = 5;
    if (1..ATTEMPTS).all(|_| attempt() != expected) {
        assert_eq!(attempt(), expected);
    }
}

#[test]
fn script_decides_the_order_of_two_classes_of_handlers() {
    succeeds(REPORTS_AT_THE_END, || order_of_handlers(REPORTS_LAST));
}

#[test]
fn script_decides_the_order_of_pages_and_services_in_tsx() {
    let policy = "return { next: (waiting) => waiting.find((one) => one.method === \"POST\" && one.handler === \"script talk\") ?? waiting.at(-1) };";
    succeeds(["service-1", "service-2", "handler", "page-2", "page-1"], || {
        let mut program = Program::with(policy);
        program.hold();
        program.send(Method::Get, "/talk/?word=page-1", None);
        program.send(Method::Post, "/talk/say", Some("service-1"));
        program.send(Method::Get, "/talk/?word=page-2", None);
        program.send(Method::Post, "/talk/say", Some("service-2"));
        program.send(Method::Get, "/say/handler", None);
        let (turns, statuses) = program.finish();
        assert_eq!(statuses, [200, 200, 204, 200, 204, 200]);
        turns
    });
}

#[test]
fn broken_schedulers_run_requests_in_order_of_arrival() {
    for policy in [
        "return { next: () => { throw new Error(\"broken\"); } };",
        "return { next: () => ({}) as any };",
        "return { next: (waiting) => { waiting.length = 0; return null; } };",
        "return { next: () => null };",
        "return { admit: () => { throw new Error(\"broken\"); } };",
        "return { admit: () => 7 as any };",
        "let count = 0; return { next: (waiting) => { if (count++ > 0) for (;;); return waiting[0]; } };",
        "let count = 0; return { next: (waiting) => { const f = (n: number): number => f(n + 1) + 1; if (count++ > 0) f(0); return waiting[0]; } };",
        "let count = 0; return { next: (waiting) => { const list: unknown[] = []; if (count++ > 0) for (;;) list.push(new Array(1000).fill(list)); return waiting[0]; } };",
        "return { next: (waiting) => Promise.resolve(waiting.at(-1)) as any };",
    ] {
        assert_eq!(order_of_handlers(policy), IN_ORDER, "{policy}");
    }
}

#[test]
fn script_rejects_requests() {
    let policy = "return { admit: (request, load) => !request.path.includes(\"report\") || load.waiting < 1 };";
    let turns = ["report-1", "page-1", "page-2", "page-3"].map(str::to_owned).to_vec();
    succeeds((turns, vec![200, 200, 200, 503, 200, 200, 503]), || {
        let mut program = Program::with(policy);
        program.hold();
        for word in WORDS {
            program.send(Method::Get, &format!("/say/{word}"), None);
        }
        program.send(Method::Get, "/talk/report-3", None);
        program.finish()
    });
}

#[test]
fn script_knows_what_runs_and_who_waits() {
    let policy = "return { next: (waiting, { running, places }) => {
  const last = waiting.at(-1)!;
  if (waiting.length > 1) console.log(last.age >= 0);
  if (running.length !== 0 || places !== 1 || last.address !== \"127.0.0.1\" || last.method !== \"GET\") throw new Error(\"wrong\");
  return last.handler === \"say\" || last.handler.endsWith(\"::say\") ? last : waiting[0];
} };";
    let mut expected = IN_ORDER;
    expected.reverse();
    succeeds(expected, || order_of_handlers(policy));
}

#[test]
fn a_changed_policy_decides_about_requests_that_wait_already() {
    succeeds(REPORTS_AT_THE_END, || {
        let mut program = Program::with("return { next: (waiting) => waiting[0] };");
        program.hold();
        for word in WORDS {
            program.send(Method::Get, &format!("/say/{word}"), None);
        }
        program.folder.write(
            "start.ts",
            &format!(
                "import {{ filter, respond, scheduler }} from \"bine:start\";\nfilter(() => respond(\"new\"), {{ paths: [\"/version\"] }});\nscheduler(() => {{ {REPORTS_LAST} }}, {{ places: 1 }});\n"
            ),
        );
        program.until(|own| own.site.get("/version").text() == "new");
        // The thread of the policy loads the new version before it decides again.
        program.finish().0
    });
}

#[test]
fn a_client_that_leaves_gives_its_place_in_the_queue_back() {
    let mut program = Program::with(REPORTS_LAST);
    program.hold();
    {
        use std::io::Write as _;
        let mut leaving = std::net::TcpStream::connect(program.site.address()).unwrap();
        leaving.write_all(b"GET /talk/?word=left HTTP/1.1\r\nHost: a\r\n\r\n").unwrap();
        program.await_arrival();
    }
    program.send(Method::Get, "/say/stays", None);
    let (turns, statuses) = program.finish();
    assert_eq!(statuses, [200, 200]);
    assert!(turns.contains(&"stays".to_owned()), "{turns:?}");
}

#[test]
fn a_program_with_two_schedulers_does_not_start() {
    let folder = Folder::with(&[]);
    folder.write("start.ts", "import { scheduler } from \"bine:start\";\nscheduler(() => ({ next: (waiting) => waiting[0] }));\n");
    let own = bine::scheduler::Hybrid::new(1, 1);
    let failed = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        Site::new(folder.app().page(seen).state(Arc::<Course>::default()).scheduler(Arc::new(own)))
    }));
    let reason = failed.err().unwrap();
    assert!(reason.downcast_ref::<String>().unwrap().contains("two schedulers"));
}

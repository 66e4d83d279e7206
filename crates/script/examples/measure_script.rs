//! Measures where a script should run, and its cost: the figures of decision 0017.
//!
//! (a) calls the instance in place, on the event loop; (b) sends each call to a thread of the
//! application and waits for its answer. Both run the same pages with 1 and 64 concurrent callers.

use std::future::Future;
use std::pin::Pin;
use std::time::{Duration, Instant};

use bine_script::{
    Clock, Function, Host, HostModule, Instance, Level, Limits, LoadError, Messages, ModuleLoader,
    MonotonicStart, Randomness, RecordKeys, Records, ScriptError, Settings, Value,
};
use tokio::sync::{mpsc, oneshot};

/// The hello page, a page of about 984 bytes with 20 rows that need escapes, and 1 000 lines.
const PAGES: &str = r#"
import { $markup, $html } from "bine:runtime";
import { objects, records } from "bine:measure";
const hello = $markup(["<p>Hello, ", "</p>"], ["t"]);
const page = $markup(["<!DOCTYPE html><html><head><title>", "</title></head><body><h1>", "</h1><ul>", "</ul></body></html>"], ["u", "t", "t"]);
const row = $markup(["<li", ">", "</li>"], ["aid", "t"]);
const rows = Array.from({ length: 20 }, (_, id) => ({ id, text: `Rows & <columns> ${id}` }));
export const sayHello = (name) => $html(hello, name);
export const showPage = (title) => $html(page, title, title, rows.map((one) => $html(row, one.id, one.text)));
export const showPageAsync = async (title) => showPage(title);
const show = (title, rows) => $html(page, title, title, rows.map((one) => $html(row, one.id, one.text)));
export const showObjects = (title) => show(title, objects());
export const showRecords = (title) => show(title, records());
export const takeObjects = () => objects().length;
export const takeRecords = () => records().length;
"#;

const COLUMNS: [&str; 4] = ["id", "text", "author", "time"];

/// A host with 20 rows of four columns, as objects and as records.
fn tables() -> HostModule {
    let texts: Vec<String> = (0..20).map(|id| format!("Rows & <columns> {id}")).collect();
    let shared = texts.clone();
    let keys = RecordKeys::new(COLUMNS);
    HostModule::new("bine:measure")
        .function("objects", move |_| {
            let row = |(id, text): (usize, &String)| {
                let values = [
                    Value::Number(id as f64),
                    text.as_str().into(),
                    "an author".into(),
                    Value::Number(1.7e12 + id as f64),
                ];
                let names = COLUMNS.iter().map(|name| (*name).to_owned());
                Value::Object(names.zip(values).collect())
            };
            Ok(Value::Array(texts.iter().enumerate().map(row).collect()))
        })
        .function("records", move |_| {
            let mut records = Records::with_capacity(&keys, shared.len());
            for (id, text) in shared.iter().enumerate() {
                records.push_number(id as f64);
                records.push_text(text);
                records.push_text("an author");
                records.push_number(1.7e12 + id as f64);
            }
            Ok(records.into())
        })
}

/// Five lines.
const FUNCTION: &str = r"export function handlerNUMBER(request, count = NUMBER) {
  const parts = request.path.split('/').filter((part) => part !== '');
  if (parts.length > count) return { status: 404, body: `not found: ${parts.join('/')}` };
  return { status: 200, body: parts.map((part, at) => `${at}: ${part}`).join(', ') };
}
";

struct Files(String);

impl ModuleLoader for Files {
    fn load(&self, _path: &str) -> Result<String, LoadError> {
        Ok(self.0.clone())
    }

    fn load_built_in(&self, _name: &str) -> Option<String> {
        Some("export * from 'bine:internal/markup';".to_owned())
    }
}

struct System(MonotonicStart);

impl Clock for System {
    fn now(&self) -> Duration {
        self.0.elapsed()
    }

    fn thread_time(&self) -> Duration {
        let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
        Duration::new(time.tv_sec.unsigned_abs(), time.tv_nsec.unsigned_abs() as u32)
    }

    fn sleep_until(&self, time: Duration) -> Pin<Box<dyn Future<Output = ()>>> {
        Box::pin(tokio::time::sleep_until(self.0.at(time).into()))
    }
}

struct Silence;

impl Randomness for Silence {
    fn fill(&self, bytes: &mut [u8]) {
        bytes.fill(0);
    }
}

impl Messages for Silence {
    fn log(&self, _level: Level, text: &str) {
        println!("{text}");
    }

    fn report(&self, error: &ScriptError) {
        println!("{error}");
    }
}

fn start(source: &str) -> Instance {
    let started = Instance::new(Settings {
        limits: Limits::default(),
        host: Host {
            clock: Box::new(System(MonotonicStart::new())),
            randomness: Box::new(Silence),
            messages: Box::new(Silence),
        },
        loader: Box::new(Files(source.to_owned())),
        modules: vec![tables()],
    });
    started.unwrap_or_else(|fault| panic!("{fault}"))
}

fn load(instance: &Instance) -> Value {
    let loaded = instance.load("index.js").finished();
    loaded.expect("no promise waits").unwrap_or_else(|fault| panic!("{fault}"))
}

fn function(exports: &Value, name: &str) -> Function {
    match exports.property(name) {
        Some(Value::Function(function)) => function.clone(),
        other => panic!("{name} is {other:?}"),
    }
}

/// The processor time of this process. Other programs on the machine do not count.
fn cpu_time() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    Duration::new(time.tv_sec.unsigned_abs(), time.tv_nsec.unsigned_abs() as u32)
}

/// The processor time of some work.
fn cpu_time_of(work: impl FnOnce()) -> Duration {
    let begun = cpu_time();
    work();
    cpu_time().saturating_sub(begun)
}

/// Resident memory that is not backed by files, in bytes.
fn anonymous_memory() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find(|line| line.starts_with("RssAnon:"));
    let kib = line.and_then(|line| line.split_whitespace().nth(1)?.parse::<usize>().ok());
    kib.unwrap_or(0) << 10
}

fn median(times: &mut [Duration]) -> Duration {
    times.sort_unstable();
    times[times.len() / 2]
}

/// A call to the thread of an application.
struct Letter {
    page: usize,
    answer: oneshot::Sender<String>,
}

fn html(value: Value) -> String {
    match value {
        Value::Html(markup) => markup.text().into_owned(),
        other => panic!("{other:?}"),
    }
}

const NAMES: [&str; 3] = ["sayHello", "showPage", "showPageAsync"];
/// Functions that take rows of the host.
const WITH_ROWS: [&str; 4] = ["showObjects", "showRecords", "takeObjects", "takeRecords"];

/// The thread of an application, with a mailbox of bounded length.
fn application_thread() -> mpsc::Sender<Letter> {
    let (sender, mut receiver) = mpsc::channel::<Letter>(1024);
    std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build();
        runtime.expect("a runtime").block_on(async move {
            let instance = start(PAGES);
            let exports = load(&instance);
            let functions = NAMES.map(|name| function(&exports, name));
            while let Some(letter) = receiver.recv().await {
                let call = instance.call(&functions[letter.page], &["a & b".into()]);
                let page = html(call.await.unwrap_or_else(|fault| panic!("{fault}")));
                // The caller may be gone.
                let _ = letter.answer.send(page);
            }
        });
    });
    sender
}

/// Calls one page by `callers` concurrent tasks and prints the cost.
async fn measure(label: &str, page: usize, callers: usize, mailbox: Option<mpsc::Sender<Letter>>) {
    const CALLS: usize = 40_000;
    let instance = start(PAGES);
    let exports = load(&instance);
    let target = function(&exports, NAMES[page]);
    let each = CALLS / callers;
    let begun = cpu_time();
    let started = Instant::now();
    let local = tokio::task::LocalSet::new();
    let instance = std::rc::Rc::new(instance);
    let tasks: Vec<_> = (0..callers)
        .map(|_| {
            let (instance, target, mailbox) = (instance.clone(), target.clone(), mailbox.clone());
            local.spawn_local(async move {
                let mut latencies = Vec::with_capacity(each);
                for _ in 0..each {
                    let asked = Instant::now();
                    let text = match &mailbox {
                        None => {
                            let call = instance.call(&target, &["a & b".into()]);
                            html(call.await.unwrap_or_else(|fault| panic!("{fault}")))
                        }
                        Some(mailbox) => {
                            let (answer, answered) = oneshot::channel();
                            let sent = mailbox.send(Letter { page, answer }).await;
                            sent.unwrap_or_else(|_| panic!("the thread has ended"));
                            answered.await.expect("an answer")
                        }
                    };
                    assert!(text.ends_with('>'));
                    latencies.push(asked.elapsed());
                    // As a loop serves other connections between two requests of one.
                    tokio::task::yield_now().await;
                }
                latencies
            })
        })
        .collect();
    let mut latencies = Vec::new();
    local
        .run_until(async {
            for task in tasks {
                latencies.extend(task.await.expect("a task"));
            }
        })
        .await;
    let (wall, cpu) = (started.elapsed(), cpu_time().saturating_sub(begun));
    let count = latencies.len();
    let middle = median(&mut latencies);
    let late = latencies[count * 99 / 100];
    println!(
        "{label:<10} {:<14} {callers:>3} callers: CPU {:>6.2} us, wall {:>6.2} us per call; \
         latency median {:>7.1} us, 99 % {:>7.1} us",
        NAMES[page],
        cpu.as_secs_f64() * 1e6 / count as f64,
        wall.as_secs_f64() * 1e6 / count as f64,
        middle.as_secs_f64() * 1e6,
        late.as_secs_f64() * 1e6,
    );
}

fn main() {
    let instance = start(PAGES);
    let exports = load(&instance);
    for name in NAMES.into_iter().chain(WITH_ROWS) {
        let target = function(&exports, name);
        let mut length = 0;
        let mut times: Vec<_> = (0..200)
            .map(|_| {
                cpu_time_of(|| {
                    for _ in 0..100 {
                        let result = instance.call(&target, &["a & b".into()]).finished();
                        length = match result.expect("no promise waits").expect("a result") {
                            Value::Html(markup) => markup.len(),
                            _ => 0,
                        };
                    }
                }) / 100
            })
            .collect();
        println!("{name}: {length} bytes in {:?}", median(&mut times));
    }
    println!("an instance with these pages: {} bytes", instance.usage().memory);

    let mut times: Vec<_> = (0..50).map(|_| cpu_time_of(|| drop(load(&start(PAGES))))).collect();
    println!("start, load and end: {:?}", median(&mut times));

    let mut lines = String::new();
    for n in 0..200 {
        lines += &FUNCTION.replace("NUMBER", &n.to_string());
    }
    let mut times: Vec<_> = (0..50)
        .map(|_| {
            let instance = start(&lines);
            cpu_time_of(|| drop(load(&instance)))
        })
        .collect();
    let (count, bytes) = (lines.lines().count(), lines.len());
    println!("{count} lines of {bytes} bytes load in {:?}", median(&mut times));

    let before = anonymous_memory();
    let many: Vec<_> = (0..100)
        .map(|_| {
            let instance = start(PAGES);
            load(&instance);
            instance
        })
        .collect();
    let each = (anonymous_memory() - before) / many.len();
    println!("100 instances: {each} bytes of resident memory each");
    drop(many);

    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build();
    runtime.expect("a runtime").block_on(async {
        let mailbox = application_thread();
        for callers in [1, 64] {
            for page in 0..NAMES.len() {
                for _ in 0..2 {
                    measure("in place", page, callers, None).await;
                    measure("by mailbox", page, callers, Some(mailbox.clone())).await;
                }
            }
        }
    });
}

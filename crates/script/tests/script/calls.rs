//! Calls of functions, promises, timers and host functions.

use std::cell::RefCell;
use std::future::Future;
use std::rc::Rc;
use std::task::{Poll, Waker};

use bine_script::{Fault, HostError, HostModule, Instance, Limit, Limits, Misuse, Value};
use proptest::prelude::*;

use crate::support::{Setup, run, script};

#[test]
fn calls_functions_with_values() {
    let script = script(
        "export const add = (a, b) => a + b;
         export async function later(a) { await null; return [a, a]; }
         export const nothing = () => {};",
    );
    assert_eq!(script.call("add", &[1.0.into(), 2.0.into()]), Ok(Value::Number(3.0)));
    let twice = vec![Value::from("x"), Value::from("x")];
    assert_eq!(script.call("later", &["x".into()]), Ok(Value::Array(twice)));
    assert_eq!(script.call("nothing", &[]), Ok(Value::Undefined));
    script.close();
}

#[test]
fn lists_the_exports_of_a_module() {
    let script = script(
        "export const title = 'Board'; export default function page() {}
         export class Other {} export const when = new Date(0);",
    );
    let Value::Object(exports) = script.load() else { panic!() };
    let kinds: Vec<_> =
        exports.iter().map(|(name, value)| format!("{name}: {}", value.kind())).collect();
    let expected =
        ["Other: a function", "default: a function", "title: a string", "when: undefined"];
    assert_eq!(kinds, expected);
}

#[test]
fn finishes_without_a_task_if_no_promise_waits() {
    let script = script("export const f = async () => { await 1; await 2; return 3; }");
    let mut call = script.instance.call(&script.function("f"), &[]);
    assert_eq!(call.finished(), Some(Ok(Value::Number(3.0))));
}

#[test]
fn timers_fire_in_order_of_time() {
    let script = script(
        "let seen = [];
         const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
         export async function order() {
           setTimeout((text) => seen.push(text), 20, 'b');
           setTimeout(() => seen.push('a'), 10);
           const cleared = setTimeout(() => seen.push('never'), 15);
           clearTimeout(cleared);
           let ticks = 0;
           const interval = setInterval(() => { if (++ticks == 3) clearInterval(interval); }, 7);
           await sleep(30);
           return `${seen} ${ticks}`;
         }",
    );
    assert_eq!(script.text("order"), "a,b 3");
    assert!(script.instance.is_idle());
    script.close();
}

#[test]
fn background_work_continues_without_a_call() {
    let script = script(
        "export function begin() { setTimeout(() => console.log('done'), 1000);
           setTimeout(() => { throw new Error('late') }, 2000); }",
    );
    script.call("begin", &[]).unwrap();
    assert!(!script.instance.is_idle());
    script.run_background();
    let log = script.log.borrow().clone();
    assert_eq!(log[0], "Info: done");
    assert!(log[1].starts_with("reported: Error: late"), "{log:?}");
    drop(log);
    script.close();
}

/// Host functions that echo, fail, panic, wait and call back.
fn host() -> HostModule {
    HostModule::new("bine:test")
        .function("echo", |call| call.value(0))
        .function("fail", |_| Err(HostError::Range("beyond".to_owned())))
        .function("panics", |_| panic!("a defect of the host"))
        .function("apply", |call| {
            let function = call.function(0)?;
            call.call(&function, &[call.value(1)?])
        })
        .function("text", |call| Ok(Value::Number(call.with_text(0, str::len)? as f64)))
        .function("number", |call| Ok(Value::Number(call.number(0)?)))
        .function("count", |call| Ok(Value::Number(call.len() as f64)))
        .async_function("later", |call| Ok(std::future::ready(Ok(call.value(0)?))))
        .async_function("rejects", |_| Ok(async { Err(HostError::Other("no".to_owned())) }))
        .async_function("never", |_| Ok(std::future::pending()))
        .async_function("panics_later", |_| Ok(async { panic!("a defect of the host") }))
        .value("version", Value::Number(7.0))
}

fn with_host(source: &str) -> crate::support::Script {
    let mut setup = Setup::of(&[("index.js", source)]);
    setup.modules.push(host());
    let script = setup.start();
    script.load();
    script
}

#[test]
fn host_functions_return_throw_and_call_back() {
    let script = with_host(
        "import { echo, fail, apply, later, rejects, version, text } from 'bine:test';
         const message = (f) => { try { f() } catch (e) { return `${e.name} ${e.message}` } };
         export const echoed = () => JSON.stringify(echo({ a: [1, 'x', null] }));
         export const failed = () => message(fail);
         export const applied = () => apply((x) => x + version, 1) + '';
         export const mistyped = () => message(() => text(12));
         export const missing = () => message(() => text());
         export class Own extends Error { name = 'Own' }
         export const rethrown = () => {
           const own = new Own('mine');
           try { apply(() => { throw own }, 1) } catch (e) { return `${e === own}` }
         };
         export const awaited = async () => `${await later('x')} ${await rejects().catch((e) => e.message)}`;
         export const many = async () => {
           let all = [];
           for (let i = 0; i < 500; i++) all.push(later(i));
           return `${(await Promise.all(all)).reduce((a, b) => a + b)}`;
         };",
    );
    for (name, expected) in [
        ("echoed", r#"{"a":[1,"x",null]}"#),
        ("failed", "RangeError beyond"),
        ("applied", "8"),
        ("mistyped", "TypeError argument 1 must be a string, not 12"),
        ("missing", "TypeError argument 1 must be a string, not undefined"),
        ("rethrown", "true"),
        ("awaited", "x no"),
        ("many", "124750"),
    ] {
        assert_eq!(script.text(name), expected, "{name}");
    }
    script.close();
}

#[test]
fn panics_of_host_functions_become_exceptions() {
    let script = with_host(
        "import { panics, panics_later } from 'bine:test';
         export const now = () => { try { panics() } catch (e) { return e.message } };
         export const later = () => panics_later().catch((e) => e.message);",
    );
    assert_eq!(script.text("now"), "the host function has failed");
    assert_eq!(script.text("later"), "the host function has failed");
    script.close();
}

#[test]
fn a_host_function_cannot_reenter_its_instance() {
    let own: Rc<RefCell<Option<Rc<Instance>>>> = Rc::default();
    let shared = Rc::clone(&own);
    let module = HostModule::new("bine:test").function("reenter", move |call| {
        let instance = shared.borrow().clone().unwrap();
        let fault = instance.call(&call.function(0)?, &[]).finished().unwrap();
        assert_eq!(fault, Err(Fault::Misuse(Misuse::Reentered)));
        assert!(matches!(
            instance.load("index.js").finished(),
            Some(Err(Fault::Misuse(Misuse::Reentered)))
        ));
        Ok("refused".into())
    });
    let mut setup = Setup::of(&[(
        "index.js",
        "import { reenter } from 'bine:test'; export const f = () => reenter(() => 1);",
    )]);
    setup.modules.push(module);
    let script = setup.start();
    let function = script.function("f");
    let (instance, clock) = (Rc::new(script.instance), script.clock);
    own.replace(Some(Rc::clone(&instance)));
    assert_eq!(run(&clock, instance.call(&function, &[])), Ok("refused".into()));
    own.take();
}

#[test]
fn a_call_may_await_another_call_ten_thousand_times() {
    // A service that calls itself through the host: each call is a task, so no stack grows.
    let own: Rc<RefCell<Option<Rc<Instance>>>> = Rc::default();
    let shared = Rc::clone(&own);
    let module = HostModule::new("bine:test").async_function("remote", move |call| {
        let instance = shared.borrow().clone().unwrap();
        let (function, depth) = (call.function(0)?, call.value(1)?);
        Ok(async move {
            let call = instance.call(&function, &[depth]);
            call.await.map_err(|fault| HostError::Other(fault.to_string()))
        })
    });
    let source = "import { remote } from 'bine:test';
         export async function down(n) { return n == 0 ? 'bottom' : await remote(down, n - 1); }";
    let mut setup = Setup::of(&[("index.js", source)]);
    setup.modules.push(module);
    setup.limits = Limits {
        calls: 20_000,
        operations: 20_000,
        functions: 40_000,
        await_time: std::time::Duration::from_hours(1),
        ..Limits::default()
    };
    let script = setup.start();
    let function = script.function("down");
    let (instance, clock) = (Rc::new(script.instance), script.clock);
    own.replace(Some(Rc::clone(&instance)));
    let result = run(&clock, instance.call(&function, &[10_000.0.into()]));
    assert_eq!(result, Ok("bottom".into()));
    own.take();
    drop(instance);
}

#[test]
fn recursion_without_end_through_the_host_is_an_error() {
    let own: Rc<RefCell<Option<Rc<Instance>>>> = Rc::default();
    let shared = Rc::clone(&own);
    let module = HostModule::new("bine:test").async_function("remote", move |call| {
        let instance = shared.borrow().clone().unwrap();
        let function = call.function(0)?;
        Ok(async move {
            let call = instance.call(&function, &[]);
            call.await.map_err(|fault| HostError::Other(fault.to_string()))
        })
    });
    let source = "import { remote } from 'bine:test';
         export async function down() { return await remote(down); }
         export const fine = () => 'fine';";
    let mut setup = Setup::of(&[("index.js", source)]);
    setup.modules.push(module);
    setup.limits.calls = 100;
    let script = setup.start();
    let (down, fine) = (script.function("down"), script.function("fine"));
    let (instance, clock) = (Rc::new(script.instance), script.clock);
    own.replace(Some(Rc::clone(&instance)));
    let fault = run(&clock, instance.call(&down, &[])).unwrap_err();
    assert!(fault.to_string().contains("too many calls"), "{fault}");
    assert_eq!(run(&clock, instance.call(&fine, &[])), Ok("fine".into()));
    own.take();
}

#[test]
fn synchronous_recursion_through_the_host_ends_with_the_stack() {
    let script = with_host(
        "import { apply } from 'bine:test';
         let depth = 0;
         export const down = () => { depth++; return apply(down, 1); };
         export const caught = () => { try { apply(down, 1) } catch (e) { return e.message } };",
    );
    assert_eq!(script.text("caught"), "Maximum call stack size exceeded");
    let fault = script.call("down", &[]).unwrap_err();
    assert!(matches!(fault, Fault::Limit(Limit::Stack, _)), "{fault}");
    script.close();
}

#[test]
fn functions_are_released_with_their_last_handle() {
    let script = script("export const make = () => () => 1;");
    let make = script.function("make");
    for _ in 0..10_000 {
        drop(script.run(script.instance.call(&make, &[])).unwrap());
    }
    // The exports of each load, and no result.
    assert!(script.instance.usage().functions < 5, "{:?}", script.instance.usage());
    script.close();
}

#[test]
fn memory_does_not_grow_from_call_to_call() {
    let script = with_host(
        "import { echo, later } from 'bine:test';
         export const f = async (x) => {
           const cycle = { x }; cycle.self = cycle;
           await later(x);
           try { echo(cycle) } catch {}
           return echo({ x, list: [1, 2, 3] });
         };",
    );
    let f = script.function("f");
    let work = |count| {
        for _ in 0..count {
            script.run(script.instance.call(&f, &["text".into()])).unwrap();
        }
        script.instance.collect_garbage();
        script.instance.usage().memory
    };
    let before = work(200);
    let after = work(2000);
    assert!(after <= before + 4096, "{before} and then {after} bytes");
    script.close();
}

#[test]
fn a_function_of_another_instance_is_refused() {
    let (one, two) = (script("export const f = () => 1"), script("export const f = () => 2"));
    let foreign = one.function("f");
    let fault = two.run(two.instance.call(&foreign, &[]));
    assert_eq!(fault, Err(Fault::Misuse(Misuse::ForeignFunction)));
    drop(one);
    let fault = two.run(two.instance.call(&foreign, &[]));
    assert_eq!(fault, Err(Fault::Misuse(Misuse::ForeignFunction)));
}

#[test]
fn another_call_drives_when_the_driver_is_dropped() {
    let script = with_host(
        "import { later } from 'bine:test';
         const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
         export const f = async (ms) => { await sleep(ms); return await later('done'); };",
    );
    let f = script.function("f");
    let mut first = Box::pin(script.instance.call(&f, &[10.0.into()]));
    let mut second = Box::pin(script.instance.call(&f, &[20.0.into()]));
    let mut task = std::task::Context::from_waker(Waker::noop());
    assert_eq!(second.as_mut().poll(&mut task), Poll::Pending);
    assert_eq!(first.as_mut().poll(&mut task), Poll::Pending);
    drop(first);
    assert_eq!(run(&script.clock, second), Ok("done".into()));
    script.run_background();
    script.close();
}

#[test]
fn the_number_of_waiting_things_is_bounded() {
    let mut setup = Setup::of(&[(
        "index.js",
        "import { never } from 'bine:test';
         export const timers = () => { for (;;) setTimeout(() => {}, 1e6) };
         export const operations = () => { for (;;) never() };
         export const wait = () => new Promise(() => {});",
    )]);
    setup.modules.push(host());
    setup.limits.timers = 10;
    setup.limits.operations = 10;
    setup.limits.calls = 10;
    let script = setup.start();
    let message = |name| script.call(name, &[]).unwrap_err().error().unwrap().message.clone();
    assert_eq!(message("timers"), "more than 10 timers");
    assert_eq!(message("operations"), "more than 10 unfinished host functions");
    let wait = script.function("wait");
    let mut calls: Vec<_> = (0..11).map(|_| script.instance.call(&wait, &[])).collect();
    let refused = calls.iter_mut().filter_map(bine_script::Call::finished).collect::<Vec<_>>();
    assert_eq!(refused, [Err(Fault::Misuse(Misuse::TooManyCalls))]);
    drop(calls);
    assert_eq!(script.instance.usage().calls, 0);
    script.close();
}

#[test]
fn await_time_ends_the_call_and_retires_the_instance() {
    let script = script(
        "export const wait = () => new Promise(() => {});
         export const slow = () => new Promise((resolve) => setTimeout(() => resolve('late'), 29_000));
         \n   export async function hang() { await wait(); }",
    );
    let (hang, slow) = (script.function("hang"), script.function("slow"));
    let hanging = script.instance.call(&hang, &[]);
    let slow = {
        let pause = script.instance.call(&slow, &[]);
        let fault = script.run(hanging).unwrap_err();
        let Fault::Limit(Limit::AwaitTime, error) = &fault else { panic!("{fault}") };
        assert_eq!(error.position().unwrap().to_string(), "index.js:4:11");
        pause
    };
    assert_eq!(script.instance.retired(), Some(Limit::AwaitTime));
    assert_eq!(script.run(slow), Ok("late".into()));
    let fault = script.instance.call(&hang, &[]).finished();
    assert_eq!(fault, Some(Err(Fault::Ended(Limit::AwaitTime))));
    script.close();
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    /// Wrong types, numbers and orders of calls end in a value or an exception, and leak nothing.
    #[test]
    fn host_functions_survive_any_arguments(
        calls in prop::collection::vec((0..9_usize, prop::collection::vec(0..20_usize, 0..4)), 1..12)
    ) {
        const FUNCTIONS: [&str; 9] = [
            "echo", "fail", "apply", "text", "number", "count", "later", "rejects", "never",
        ];
        const ARGUMENTS: [&str; 20] = [
            "undefined", "null", "true", "-0", "NaN", "1e308", "9n", "'x'", "'\\ud800'",
            "Symbol()", "[]", "[[[1]], , 2]", "{}", "{ get a() { throw 1 } }", "() => 1",
            "(x) => x", "new Proxy({}, {})", "new Uint8Array(3)", "Promise.reject(1)", "new Date()",
        ];
        let mut body = String::new();
        for (function, arguments) in &calls {
            let arguments: Vec<_> = arguments.iter().map(|at| ARGUMENTS[*at]).collect();
            let (function, arguments) = (FUNCTIONS[*function], arguments.join(", "));
            body.extend(["try { t.", function, "(", &arguments, ") } catch (e) { e.stack }\n"]);
        }
        let script = with_host(&format!(
            "import * as t from 'bine:test'; export const f = () => {{ {body} }};"
        ));
        script.call("f", &[]).unwrap();
        script.close();
    }
}

//! Scripts that misbehave: nothing ends the process, and other instances do not notice.

use bine_script::{Fault, Limit, Limits, Value};

use crate::support::{Script, Setup, script};

/// Runs `f` of a module. It must exceed a limit at a position; afterwards the engine is dropped.
fn exceeds(source: &str, limit: Limit, position: &str) {
    let mut setup = Setup::of(&[("index.js", source)]);
    setup.limits = Limits { memory: 8 << 20, ..Limits::default() };
    let script = setup.start();
    let neighbor = script_of("export const f = () => 'fine'");
    script.load();
    let function = script.function("f");
    let fault = script.run(script.instance.call(&function, &[])).unwrap_err();
    let Fault::Limit(found, error) = &fault else { panic!("{source}: {fault}") };
    assert_eq!(*found, limit, "{source}: {fault}");
    let place = error.position().map(ToString::to_string).unwrap_or_default();
    assert!(place.starts_with(position), "{source}: {place:?} in {fault}");
    assert_eq!(script.instance.retired(), Some(limit));
    let again = script.instance.call(&function, &[]).finished();
    assert_eq!(again, Some(Err(Fault::Ended(limit))));
    assert_eq!(script.instance.usage().memory, 0, "{source}");
    assert_eq!(neighbor.text("f"), "fine");
    script.close();
    neighbor.close();
}

fn script_of(source: &str) -> Script {
    script(source)
}

#[test]
fn endless_loops_are_interrupted() {
    exceeds("export const f = () => {\n let n = 0; for (;;) n++;\n};", Limit::RunTime, "index.js:");
    exceeds(
        "export const f = () => {\n for (;;) try { for (;;); } catch {} finally { continue }\n};",
        Limit::RunTime,
        "index.js:",
    );
    exceeds(
        "export const f = async () => {\n  await 1;\n  for (let n = 0;;) n++;\n};",
        Limit::RunTime,
        "index.js:",
    );
    exceeds("export const f = async () => {\n  for (;;) await 1;\n};", Limit::RunTime, "");
    exceeds(
        "export const f = () => {\n const g = () => queueMicrotask(g); g();\n return new Promise(() => {}) };",
        Limit::RunTime,
        "",
    );
    exceeds(
        "export const f = () => /(a+)+$/.test('a'.repeat(40) + 'b');",
        Limit::RunTime,
        "index.js:1:",
    );
    exceeds("export const f = () => ({ get a() { for (;;); } }).a;", Limit::RunTime, "index.js:1:");
    exceeds(
        "export const f = () => [3, 2, 1].sort(() => { for (;;); });",
        Limit::RunTime,
        "index.js:1:",
    );
}

#[test]
fn a_busy_machine_does_not_end_a_script() {
    // A call failed on a machine with a load of 30: the system had run other programs for longer
    // than the limit of run time, which was compared with the wall clock only.
    let script =
        script("export const f = () => { let n = 0; while (n < 1e5) n++; return `${n}` };");
    let function = script.function("f");
    script.clock.step.set(std::time::Duration::from_secs(1));
    script.clock.is_preempted.set(true);
    let result = script.instance.call(&function, &[]).finished();
    assert_eq!(result, Some(Ok("100000".into())));
    script.close();
}

#[test]
fn endless_recursion_ends_with_the_stack() {
    exceeds("export function f() {\n  return f() + 1;\n}", Limit::Stack, "index.js:");
    // Regression: an `async` function answered with the exception, and its instance continued.
    exceeds(
        "export const f = async () => {\n const g = () => g() + 1; return g();\n};",
        Limit::Stack,
        "index.js:2:",
    );
    exceeds(
        "export const f = async () => {\n await 1; const g = () => g() + 1; return g();\n};",
        Limit::Stack,
        "index.js:2:",
    );
    exceeds(
        "const g = async () => {\n const h = () => h() + 1; h();\n};\nexport const f = () => g().then((x) => x);",
        Limit::Stack,
        "index.js:2:",
    );
    exceeds(
        "export const f = () => {\n const o = { toString() { return `${o}` } }; return `${o}` };",
        Limit::Stack,
        "index.js:2:",
    );
    exceeds(
        "export const f = () => { let a = []; for (let i = 0; i < 2e4; i++) a = [a];\n return JSON.stringify(a) };",
        Limit::Stack,
        "index.js:2:",
    );
}

#[test]
fn memory_is_bounded() {
    exceeds(
        "export const f = () => {\n  return 'x'.repeat(2 ** 30 - 1);\n};",
        Limit::Memory,
        "index.js:2:",
    );
    exceeds(
        "export const f = () => {\n let s = 'x'; for (;;) { s += s; s.charCodeAt(0) } };",
        Limit::Memory,
        "index.js:2:",
    );
    exceeds(
        "export const f = () => {\n const all = []; for (;;) all.push({ a: [1] }) };",
        Limit::Memory,
        "index.js:2:",
    );
    exceeds("export const f = () => {\n new Uint8Array(2 ** 30) };", Limit::Memory, "index.js:2:");
    // A script that catches the error is ended all the same.
    exceeds(
        "export const f = () => {\n try { new Uint8Array(2 ** 30) } catch {} return 1 };",
        Limit::Memory,
        "",
    );
    exceeds(
        "export const f = async () => {\n const a = []; for (;;) { a.push(new Array(100).fill(0)); await 0; } };",
        Limit::Memory,
        "",
    );
    exceeds("import { $markup, $html } from 'bine:runtime'; const m = $markup(['<p>', '', '</p>'], ['t', 't']);
             export const f = () => { let h = $html(m, 'xxxxxxxxxx'); for (;;)\n h = $html(m, h, h) };", Limit::Memory, "");
}

#[test]
fn a_string_of_four_gigabytes_is_an_error() {
    // The engine's strings are shorter than this, so the script gets an exception.
    let script = script("export const f = () => 'x'.repeat(2 ** 32);");
    let fault = script.call("f", &[]).unwrap_err();
    assert!(matches!(&fault, Fault::Exception(error) if error.name == "RangeError"), "{fault}");
    script.close();
}

#[test]
fn an_instance_that_is_too_small_does_not_start() {
    for memory in [0, 1000, 50_000, 100_000, 150_000] {
        let mut setup = Setup::of(&[]);
        setup.limits.memory = memory;
        let started = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| setup.start()));
        assert!(started.is_err(), "{memory}");
    }
}

#[test]
fn memory_that_ends_during_a_load_is_reported() {
    for memory in (180..400).step_by(10) {
        let source =
            "const a = []; export const f = () => 1; for (let i = 0; i < 1e5; i++) a.push({ i });";
        let mut setup = Setup::of(&[("index.js", source)]);
        setup.limits.memory = memory << 10;
        let Ok(script) = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| setup.start()))
        else {
            continue;
        };
        let fault = script.run(script.instance.load("index.js")).unwrap_err();
        assert!(matches!(fault, Fault::Limit(Limit::Memory, _)), "{fault}");
        script.close();
    }
}

#[test]
fn exceptions_end_nothing() {
    let script = script(
        "export const text = () => { throw 'plain' };
         export const nothing = () => { throw undefined };
         export const object = () => { throw { a: 1 } };
         export const later = async () => { await 0; throw new TypeError('later') };
         export const getter = () => { throw Object.defineProperty(new Error('x'), 'message', { get() { for (;;); } }) };
         export const stack = () => { throw Object.defineProperty(new Error('x'), 'stack', { get() { for (;;); } }) };
         export const prepared = () => { Error.prepareStackTrace = () => { throw 1 }; throw new Error('prepared') };
         export const proxy = () => { throw new Proxy(new Error('x'), { get() { for (;;); } }) };
         export const fine = () => 'fine';",
    );
    for name in ["text", "nothing", "object", "later", "getter", "stack", "prepared", "proxy"] {
        let fault = script.call(name, &[]).unwrap_err();
        assert!(matches!(fault, Fault::Exception(_)), "{name}: {fault}");
        assert_eq!(script.text("fine"), "fine", "{name}");
    }
    script.close();
}

#[test]
fn rejections_without_a_handler_are_reported() {
    let script = script(
        "export const f = () => { Promise.reject(new Error('lost')); return 'done' };
         export const g = async () => { const p = Promise.reject(new Error('kept')); try { await p } catch {} return 'done' };
         queueMicrotask(() => { throw new Error('thrown') });",
    );
    assert_eq!((script.text("f"), script.text("g")), ("done".to_owned(), "done".to_owned()));
    let log = script
        .log
        .borrow()
        .iter()
        .map(|line| line.lines().next().unwrap().to_owned())
        .collect::<Vec<_>>();
    assert_eq!(log, ["reported: Error: thrown", "reported: Error: lost"]);
}

#[test]
fn polluted_prototypes_stay_in_their_instance() {
    let polluted = script(
        "Object.prototype.admin = true;
         Array.prototype.push = () => 666;
         Promise.prototype.then = () => { throw new Error('then') };
         Object.defineProperty(Object.prototype, 'value', { get() { for (;;); }, set() { for (;;); } });
         globalThis.Promise = globalThis.Uint8Array = globalThis.Error = undefined;
         export const f = async (x) => { return { x, value: 1 } };
         export const g = () => new URL('https://a/?b=1').searchParams.get('b');",
    );
    let neighbor = script("export const f = () => `${({}).admin} ${[].push(1)}`;");
    let result = polluted.call("f", &[Value::Object(vec![("value".to_owned(), 1.0.into())])]);
    let inner = Value::Object(vec![("value".to_owned(), 1.0.into())]);
    let expected = Value::Object(vec![("x".to_owned(), inner), ("value".to_owned(), 1.0.into())]);
    assert_eq!(result, Ok(expected));
    assert_eq!(neighbor.text("f"), "undefined 1");
    polluted.close();
    neighbor.close();
}

#[test]
fn many_instances_come_and_go() {
    for _ in 0..50 {
        let script = script("export const f = () => [1, 2, 3].map((x) => `${x}`).join('');");
        assert_eq!(script.text("f"), "123");
        script.close();
    }
}

#[test]
fn dropping_an_instance_with_waiting_calls_frees_it() {
    let script = script("export const f = () => new Promise((r) => setTimeout(r, 1000));");
    let f = script.function("f");
    let call = script.instance.call(&f, &[]);
    assert_eq!(script.instance.close(), 0);
    drop(call);
}

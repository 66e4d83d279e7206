//! Contexts of calls: what a host function learns about the call for which it runs.

use std::cell::RefCell;
use std::future::Future;
use std::pin::pin;
use std::rc::{Rc, Weak};
use std::task::{Context, Poll, Waker};

use bine_script::{Call, HostCall, HostError, HostModule, Instance, Value};

use crate::support::{Script, Setup, run};

/// The name in the context of a call; `none` without a context.
fn name(call: &HostCall<'_, '_>) -> Value {
    let context = call.context();
    let name = context.and_then(|context| context.downcast::<String>().ok());
    Value::from(name.as_deref().map_or("none", String::as_str))
}

/// Host functions that name the context, wait and call back.
fn host() -> HostModule {
    HostModule::new("bine:test")
        .function("name", |call| Ok(name(call)))
        .function("apply", |call| {
            let result = call.call(&call.function(0)?, &[name(call)])?;
            let (Some(result), Value::Text(name)) = (result.as_text(), name(call)) else {
                return Err(HostError::Type("a text is expected".to_owned()));
            };
            Ok(Value::Text(format!("{result}, {name}")))
        })
        .function("panics", |_| panic!("a defect of the host"))
        .async_function("nameLater", |call| {
            let name = name(call);
            Ok(async { Ok(name) })
        })
        .async_function("takesText", |call| {
            let text = call.text(0)?;
            Ok(async { Ok(Value::Text(text)) })
        })
        .async_function("never", |_| Ok(std::future::pending()))
}

fn with_host(source: &str) -> Script {
    let mut setup = Setup::of(&[("index.js", source)]);
    setup.modules.push(host());
    let script = setup.start();
    script.load();
    script
}

/// Begins a call with a name as its context.
fn begin(script: &Script, function: &str, name: &str, arguments: &[Value]) -> Call {
    let function = script.function(function);
    script.instance.call_within(&function, arguments, Rc::new(name.to_owned()))
}

/// Begins a call whose context is observed.
fn begin_observed(script: &Script, function: &str) -> (Call, Weak<String>) {
    let context = Rc::new("observed".to_owned());
    let observer = Rc::downgrade(&context);
    (script.instance.call_within(&script.function(function), &[], context), observer)
}

const SLEEP: &str = "const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));";

#[test]
fn interleaved_calls_keep_their_own_contexts() {
    let script = with_host(&format!(
        "import {{ name, nameLater, apply }} from 'bine:test';
         {SLEEP}
         export async function f(ms) {{
           const seen = [name()];
           for (let round = 0; round < 3; round++) {{
             await sleep(ms);
             seen.push(name());
             seen.push(await nameLater());
             await null;
             seen.push(name());
             seen.push(apply((outer) => `${{outer}} ${{name()}} ${{[1].map(name)}}`));
             setTimeout(() => seen.push(name()), 1);
             await Promise.all([sleep(ms), nameLater()]);
             seen.push(name());
           }}
           return [...new Set(seen)].sort().join('; ');
         }}"
    ));
    // The delays differ, so the steps of both calls alternate.
    let mut one = pin!(begin(&script, "f", "one", &[5.0.into()]));
    let mut two = pin!(begin(&script, "f", "two", &[3.0.into()]));
    let both = std::future::poll_fn(|task| {
        let results = (one.as_mut().poll(task), two.as_mut().poll(task));
        if let (Poll::Pending, Poll::Pending) = results {
            return Poll::Pending;
        }
        Poll::Ready(results)
    });
    let (first, second) = run(&script.clock, both);
    let expected = |name: &str| Ok(Value::Text(format!("{name}; {name} {name} {name}, {name}")));
    assert_eq!(second, Poll::Ready(expected("two")));
    assert!(first.is_pending());
    assert_eq!(run(&script.clock, one), expected("one"));
    script.close();
}

#[test]
fn later_calls_without_a_context_have_none() {
    let script = with_host(&format!(
        "import {{ name, nameLater, panics, takesText }} from 'bine:test';
         {SLEEP}
         export const now = () => name();
         export const fails = () => {{ try {{ panics() }} catch {{ throw new Error(name()) }} }};
         export const refused = () => {{ try {{ takesText(1) }} catch {{ return `refused ${{name()}}` }} }};
         export const later = async () => {{ await sleep(1); return `${{name()}} ${{await nameLater()}}` }};
         console.log(`load: ${{name()}}`);"
    ));
    assert_eq!(script.log.borrow().as_slice(), ["Info: load: none"]);
    for (function, expected) in
        [("now", "one"), ("fails", "Error: one"), ("refused", "refused one"), ("later", "one one")]
    {
        let found = match script.run(begin(&script, function, "one", &[])) {
            Ok(Value::Text(text)) => text,
            other => other.unwrap_err().to_string(),
        };
        assert_eq!(found.lines().next(), Some(expected), "{function}");
        assert_eq!(script.text("now"), "none", "after {function}");
        assert_eq!(script.text("later"), "none none", "after {function}");
    }
    script.close();
}

#[test]
fn a_panic_of_the_host_ends_the_context() {
    let script = with_host(
        "import { name } from 'bine:test';
         export const now = () => name();
         export const fails = () => { Promise.reject(new Error('panic')) };",
    );
    let fails = script.function("fails");
    let context = Rc::new("one".to_owned());
    let observer = Rc::downgrade(&context);
    let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        drop(script.instance.call_within(&fails, &[], context));
    }));
    assert!(panicked.is_err(), "the host panics while it takes the report");
    assert!(observer.upgrade().is_none());
    assert_eq!(script.text("now"), "none");
    script.close();
}

#[test]
fn a_call_within_a_host_function_has_its_own_context() {
    let own: Rc<RefCell<Option<Rc<Instance>>>> = Rc::default();
    let shared = Rc::clone(&own);
    let module = host().async_function("remote", move |call| {
        let instance = shared.borrow().clone().unwrap();
        let (function, name) = (call.function(0)?, call.value(1)?);
        Ok(async move {
            let call = match name {
                Value::Text(name) => instance.call_within(&function, &[], Rc::new(name)),
                _ => instance.call(&function, &[]),
            };
            call.await.map_err(|fault| HostError::Other(fault.to_string()))
        })
    });
    let source = format!(
        "import {{ name, remote, nameLater }} from 'bine:test';
         {SLEEP}
         const inner = async () => {{ await sleep(1); return `${{name()}} ${{await nameLater()}}` }};
         export const f = async () =>
           [name(), await remote(inner, 'inner'), name(), await remote(inner), name()].join(', ');"
    );
    let mut setup = Setup::of(&[("index.js", &source)]);
    setup.modules.push(module);
    let script = setup.start();
    let function = script.function("f");
    let (instance, clock) = (Rc::new(script.instance), script.clock);
    own.replace(Some(Rc::clone(&instance)));
    let call = instance.call_within(&function, &[], Rc::new("outer".to_owned()));
    assert_eq!(run(&clock, call), Ok("outer, inner inner, outer, none none, outer".into()));
    own.take();
}

#[test]
fn intervals_keep_the_context_in_which_they_were_set() {
    let script = with_host(
        "import { name } from 'bine:test';
         let seen = [];
         export const begin = () => {
           const interval = setInterval(() => {
             seen.push(name());
             if (seen.length === 3) clearInterval(interval);
           }, 5);
         };
         export const show = () => seen.join();",
    );
    script.run(begin(&script, "begin", "one", &[])).unwrap();
    script.run_background();
    assert_eq!(script.text("show"), "one,one,one");
    script.close();
}

#[test]
fn a_shared_promise_continues_in_the_context_that_began_its_operation() {
    // A documented limit of contexts, which this test records.
    let script = with_host(&format!(
        "import {{ name }} from 'bine:test';
         {SLEEP}
         let shared;
         export const f = async () => {{ shared ??= sleep(5); await shared; return name(); }};"
    ));
    let (one, two) = (begin(&script, "f", "one", &[]), begin(&script, "f", "two", &[]));
    assert_eq!((script.run(one), script.run(two)), (Ok("one".into()), Ok("one".into())));
    script.close();
}

#[test]
fn contexts_are_dropped_when_their_work_has_ended() {
    let script = with_host(&format!(
        "import {{ name, never }} from 'bine:test';
         {SLEEP}
         export const now = () => name();
         export const later = async () => {{ await sleep(5); return name() }};
         export const lost = async () => {{ setTimeout(() => {{}}, 1000); await sleep(5) }};
         export const forever = async () => {{ await never() }};"
    ));
    for function in ["now", "later"] {
        let (call, observer) = begin_observed(&script, function);
        assert_eq!(script.run(call), Ok("observed".into()));
        assert!(observer.upgrade().is_none(), "{function}");
    }
    // A dropped call does not stop the script, whose timers still need the context.
    let (call, observer) = begin_observed(&script, "lost");
    drop(call);
    assert!(observer.upgrade().is_some());
    script.run_background();
    assert!(observer.upgrade().is_none());
    assert!(script.instance.is_idle());

    let (call, observer) = begin_observed(&script, "forever");
    let mut task = Context::from_waker(Waker::noop());
    let mut call = Box::pin(call);
    assert_eq!(call.as_mut().poll(&mut task), Poll::Pending);
    drop(call);
    assert!(observer.upgrade().is_some());
    script.close();
    assert!(observer.upgrade().is_none());
}

//! Values that pass between scripts and the host.

use bine_script::{HostModule, Limits, Value, ValueLimits};

use crate::support::{Script, Setup, script};

/// A script with `take`, which describes the value that the host has read.
fn taking(body: &str) -> Script {
    let take = HostModule::new("bine:test")
        .function("take", |call| Ok(format!("{:?}", call.value(0)?).as_str().into()));
    let source = format!("import {{ take }} from 'bine:test'; {body}");
    let mut setup = Setup::of(&[("index.js", &source)]);
    setup.modules.push(take);
    setup.limits = Limits {
        values: ValueLimits { depth: 4, bytes: 10_000, entries: 20 },
        ..Limits::default()
    };
    let script = setup.start();
    script.load();
    script
}

/// The host's value of an expression, or the message of the error.
fn check(expression: &str, expected: &str) {
    let script = taking(&format!(
        "let ran = '';
         export const f = () => {{ try {{ return take({expression}) + ran }} catch (e) {{ return e.message + ran }} }};"
    ));
    assert_eq!(script.text("f"), expected, "{expression}");
    script.close();
}

#[test]
fn plain_values_pass() {
    check("null", "Null");
    check("undefined", "Undefined");
    check("true", "Bool(true)");
    check("12", "Number(12.0)");
    check("-0", "Number(0.0)");
    check("0.1", "Number(0.1)");
    check("'a\\u00e9\\u{1f600}'", "Text(\"a\u{e9}\u{1f600}\")");
    check("'x'.repeat(3) + 'y'", "Text(\"xxxy\")");
    check("[1, 'a', [null]]", "Array([Number(1.0), Text(\"a\"), Array([Null])])");
    check("({ a: 1, b: undefined, 2: 3 })", "Object([(\"2\", Number(3.0)), (\"a\", Number(1.0))])");
    check("new Uint8Array([1, 2]).subarray(1)", "Bytes([2])");
    check("new (class { x = 1; #y = 2; z() {} })()", "Object([(\"x\", Number(1.0))])");
    check("Object.create(null)", "Object([])");
}

#[test]
fn half_surrogates_become_replacement_characters() {
    check("'a\\ud800b'", "Text(\"a\u{fffd}b\")");
}

#[test]
fn values_without_a_plain_form_are_refused() {
    let subject = "argument 1 is ";
    let check = |expression, reason: &str| check(expression, &format!("{subject}{reason}"));
    check("NaN", "NaN, which is not allowed");
    check("-Infinity", "an infinite number, which is not allowed");
    check("1n", "a bigint; convert it with Number() or String()");
    check("Symbol('x')", "a symbol, which is not allowed");
    check("new Date(0)", "a Date; pass getTime() or toISOString()");
    check("new Error('x')", "an Error; pass its message");
    check("Promise.resolve(1)", "a promise; await it first");
    check("new Proxy({}, {})", "a proxy, which is not allowed");
    for builtin in ["new Map()", "/x/", "new Float64Array(1)", "Object('x')", "new ArrayBuffer(1)"]
    {
        let reason = "an object of a built-in class, which is not allowed; \
                      use a plain object, an array or a Uint8Array";
        check(builtin, reason);
    }
}

#[test]
fn errors_name_the_place_in_the_value() {
    let check =
        |expression, reason: &str| check(expression, &format!("argument 1 cannot pass: {reason}"));
    check("({ a: [0, { b: NaN }] })", "a[1].b is NaN, which is not allowed");
    check("[1, , 2]", "[1] is a hole; use null in an array");
    check("[undefined]", "[0] is undefined; use null in an array");
    check(
        "({ a: { __proto__: null, ['__proto__']: 1 } })",
        "a.__proto__ is a key that is not allowed, because it may change prototypes",
    );
    check(
        "JSON.parse('{\"__proto__\": {\"admin\": true}}')",
        "__proto__ is a key that is not allowed, because it may change prototypes",
    );
    check(
        "({ constructor: 1 })",
        "constructor is a key that is not allowed, because it may change prototypes",
    );
    check("[[[[[1]]]]]", "[0][0][0][0] is nested more than 4 levels deep, or contains itself");
    check(
        "(() => { const a = {}; a.a = a; return a })()",
        "a.a.a.a is nested more than 4 levels deep, or contains itself",
    );
    check("['x'.repeat(20_000)]", "[0] is beyond the 10000 bytes that one value may have");
}

#[test]
fn large_collections_are_refused() {
    check("new Array(21).fill(1)", "argument 1 is larger than the 20 entries that are allowed");
    check("new Array(2 ** 32 - 1)", "argument 1 is larger than the 20 entries that are allowed");
    let keys = "Object.fromEntries(new Array(21).fill(0).map((_, i) => ['k' + i, i]))";
    check(keys, "argument 1 is larger than the 20 entries that are allowed");
}

#[test]
fn reading_a_value_runs_no_code_of_the_script() {
    check(
        "({ get a() { ran = '!'; return 1 } })",
        "argument 1 cannot pass: a is a getter; pass its value",
    );
    check(
        "Object.defineProperty([], 0, { get() { ran = '!' } })",
        "argument 1 cannot pass: [0] is a getter; pass its value",
    );
    check(
        "({ toJSON() { ran = '!' }, valueOf() { ran = '!' } })",
        "Object([(\"toJSON\", Function(Function(1))), (\"valueOf\", Function(Function(2)))])",
    );
    check(
        "new Proxy([], { get() { ran = '!' }, ownKeys() { ran = '!' } })",
        "argument 1 is a proxy, which is not allowed",
    );
    check(
        "(Object.prototype.x = 1, Object.defineProperty(Object.prototype, 'y', { get() { ran = '!' }, enumerable: true }), { a: 1 })",
        "Object([(\"a\", Number(1.0))])",
    );
}

#[test]
fn values_of_the_host_arrive_as_plain_values() {
    let script = script(
        "Object.defineProperty(Object.prototype, 'a', { set() { throw new Error('setter') } });
         export const show = (value) => JSON.stringify(value) + Object.getPrototypeOf(value).constructor.name;
         export const bytes = (value) => `${value instanceof Uint8Array} ${value}`;
         export const call = (f) => f();
         export const make = () => () => 'called';",
    );
    let object = Value::Object(vec![
        ("a".to_owned(), Value::Array(vec![Value::Null, Value::Bool(true), 0.5.into()])),
        ("b".to_owned(), "\u{1f600}".into()),
    ]);
    let shown = script.call("show", &[object]);
    assert_eq!(shown, Ok("{\"a\":[null,true,0.5],\"b\":\"\u{1f600}\"}Object".into()));
    assert_eq!(script.call("bytes", &[Value::Bytes(vec![1, 2])]), Ok("true 1,2".into()));
    let made = script.call("make", &[]).unwrap();
    assert_eq!(script.call("call", &[made]), Ok("called".into()));
    let hostile = Value::Object(vec![("__proto__".to_owned(), Value::Null)]);
    let fault = script.call("show", &[hostile]).unwrap_err().to_string();
    assert!(fault.contains("__proto__ is a key that is not allowed"), "{fault}");
    let fault = script.call("show", &[f64::NAN.into()]).unwrap_err().to_string();
    assert!(fault.contains("not finite"), "{fault}");
    script.close();
}

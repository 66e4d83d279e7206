//! Rows of the host as objects of a script.

use bine_script::{Fault, Limit, Limits, RecordKeys, Records, Value, ValueLimits};
use proptest::prelude::*;

use crate::support::{Script, Setup, script};

const SHOW: &str = "export const show = (rows) => JSON.stringify(rows);
    export const back = (rows) => rows;";

/// The script's view of a value, as JSON, or the message of the error.
fn shown(script: &Script, value: &Value) -> String {
    match script.call("show", std::slice::from_ref(value)) {
        Ok(Value::Text(text)) => text,
        Ok(other) => format!("{other:?}"),
        Err(fault) => fault.error().map_or_else(String::new, |error| error.message.clone()),
    }
}

/// Two posts.
fn posts() -> Records {
    let keys = RecordKeys::new(["id", "text", "likes"]);
    let mut posts = Records::with_capacity(&keys, 2);
    for (id, text) in [(1.0, "a \u{e9}"), (2.0, "")] {
        posts.push_number(id);
        posts.push_text(text);
        posts.push(Value::Null);
    }
    posts
}

#[test]
fn rows_arrive_as_ordinary_objects() {
    let script = script(&format!(
        "{SHOW}
         Object.defineProperty(Object.prototype, 'id', {{ set() {{ throw new Error('setter') }} }});
         export const kinds = (rows) => {{
           rows[0].text = 'changed'; rows[0].more = 1; delete rows[1].id; rows.push(3);
           return `${{Array.isArray(rows)}} ${{Object.getPrototypeOf(rows[0]) === Object.prototype}} ${{JSON.stringify(rows)}}`;
         }};"
    ));
    let rows = Value::from(posts());
    let expected =
        "[{\"id\":1,\"text\":\"a \u{e9}\",\"likes\":null},{\"id\":2,\"text\":\"\",\"likes\":null}]";
    assert_eq!(shown(&script, &rows), expected);
    let changed = "true true [{\"id\":1,\"text\":\"changed\",\"likes\":null,\"more\":1},{\"text\":\"\",\"likes\":null},3]";
    assert_eq!(script.call("kinds", std::slice::from_ref(&rows)), Ok(changed.into()));
    // The objects of the next call are not those that the script has changed.
    assert_eq!(shown(&script, &rows), expected);
    script.close();
}

#[test]
fn no_setter_of_a_script_sees_rows() {
    // `JSON.stringify` of the engine would run the setter of an array's element.
    let script = script(
        "for (const [object, key] of [[Object.prototype, 'text'], [Array.prototype, 0]]) {
           Object.defineProperty(object, key, { set() { throw new Error('setter') } });
         }
         export const first = (rows) => rows[0].text;",
    );
    assert_eq!(script.call("first", &[posts().into()]), Ok("a \u{e9}".into()));
    let entries = vec![("text".to_owned(), "b".into())];
    let objects = Value::Array(vec![Value::Object(entries)]);
    assert_eq!(script.call("first", &[objects]), Ok("b".into()));
    script.close();
}

#[test]
fn rows_of_a_script_arrive_as_objects() {
    let script = script(SHOW);
    let object = |id: f64, text: &str| {
        let entries = [("id", id.into()), ("text", text.into()), ("likes", Value::Null)];
        Value::Object(entries.map(|(key, value)| (key.to_owned(), value)).to_vec())
    };
    let rows = vec![object(1.0, "a \u{e9}"), object(2.0, "")];
    assert_eq!(script.call("back", &[posts().into()]), Ok(Value::Array(rows.clone())));
    assert_eq!(script.call("back", &[Value::Record(Box::new(posts()))]), Ok(rows[0].clone()));
    script.close();
}

#[test]
fn missing_rows_are_empty_or_null() {
    let script = script(SHOW);
    let keys = RecordKeys::new(["a", "b"]);
    let mut records = Records::with_capacity(&keys, usize::MAX);
    let both = |records: &Records| {
        let one = shown(&script, &Value::Record(Box::new(records.clone())));
        format!("{} {one}", shown(&script, &records.clone().into()))
    };
    assert_eq!(both(&records), "[] null");
    records.push(Value::Undefined);
    // An unfinished row does not count.
    assert_eq!(both(&records), "[] null");
    records.push(Value::Bool(true));
    records.push("left".into());
    assert_eq!(both(&records), "[{\"a\":null,\"b\":true}] {\"a\":null,\"b\":true}");
    let none: [&str; 0] = [];
    assert_eq!(both(&Records::new(&RecordKeys::new(none))), "[] null");
    script.close();
}

#[test]
fn all_limits_of_values_count_for_rows() {
    let mut setup = Setup::of(&[("index.js", SHOW)]);
    setup.limits =
        Limits { values: ValueLimits { depth: 3, bytes: 1000, entries: 10 }, ..Limits::default() };
    let script = setup.start();
    let check = |keys: &[&str], cells: Vec<Value>, expected: &str| {
        let mut records = Records::new(&RecordKeys::new(keys.iter().copied()));
        for cell in cells {
            records.push(cell);
        }
        assert_eq!(shown(&script, &records.into()), expected, "{keys:?}");
    };
    let nested = |depth| (0..depth).fold(Value::Null, |inner, _| Value::Array(vec![inner]));
    check(&["a"], vec![nested(1)], "[{\"a\":[null]}]");
    check(
        &["a"],
        vec![Value::Null, nested(2)],
        "argument 1 cannot pass: [1].a[0] is nested more than 3 levels deep, or contains itself",
    );
    check(
        &["a"],
        vec![Value::Null; 11],
        "argument 1 is larger than the 10 entries that are allowed",
    );
    let names: Vec<String> = (0..11).map(|at| format!("k{at}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let many = "argument 1 is larger than the 10 entries that are allowed";
    check(&names, vec![Value::Null; 11], many);
    let large = "is beyond the 1000 bytes that one value may have";
    let text = Value::Text("x".repeat(600));
    check(
        &["a", "b"],
        vec![Value::Null, text.clone(), Value::Null, text],
        &format!("argument 1 cannot pass: [1].b {large}"),
    );
    let name = "n".repeat(320);
    check(&[&name], vec![Value::Null; 4], &format!("argument 1 cannot pass: [2] {large}"));
    let proto = "is a key that is not allowed, because it may change prototypes";
    check(
        &["a", "__proto__"],
        vec![Value::Null; 2],
        &format!("argument 1 cannot pass: __proto__ {proto}"),
    );
    check(
        &["a"],
        vec![f64::NAN.into()],
        "argument 1 cannot pass: [0].a is a number that is not finite",
    );
    script.close();
}

#[test]
fn rows_beyond_the_memory_end_the_instance() {
    for (memory, count) in [(8 << 20, 80_000), (1 << 20, 20_000), (1 << 20, 5000)] {
        let mut setup = Setup::of(&[("index.js", SHOW)]);
        setup.limits = Limits { memory, ..Limits::default() };
        let script = setup.start();
        let show = script.function("show");
        let mut records = Records::new(&RecordKeys::new(["a", "b"]));
        for row in 0..count {
            records.push_text("a text of a row that is not short");
            records.push(Value::Array(vec![f64::from(row).into()]));
        }
        let fault = script.run(script.instance.call(&show, &[records.into()])).unwrap_err();
        assert!(matches!(fault, Fault::Limit(Limit::Memory, _)), "{fault}");
        script.close();
    }
}

#[test]
fn any_number_of_columns_and_keys_can_be_used() {
    let script = script(SHOW);
    let columns = |count: usize| (0..count).map(|at| format!("k{at}")).collect::<Vec<_>>();
    for count in [1, 31, 32, 33, 200] {
        let mut records = Records::new(&RecordKeys::new(columns(count)));
        (0..count).for_each(|at| records.push_number(at as f64));
        let entries: Vec<_> = (0..count).map(|at| format!("\"k{at}\":{at}")).collect();
        assert_eq!(shown(&script, &records.into()), format!("[{{{}}}]", entries.join(",")));
    }
    // Keys that are made for each call are a waste, but they are freed: both amounts of work leave
    // the same number of them, because an instance keeps at most 1024.
    let back = script.function("back");
    let work = |count| {
        for at in 0..count {
            let mut records =
                Records::new(&RecordKeys::new([format!("k{}", at % 7), "b".to_owned()]));
            records.push_number(1.0);
            records.push_number(2.0);
            script.run(script.instance.call(&back, &[records.into()])).unwrap();
        }
        script.instance.collect_garbage();
        script.instance.usage().memory
    };
    let before = work(2100);
    let after = work(10_240);
    assert!(after <= before + 4096, "{before} and then {after} bytes");
    script.close();
}

#[test]
fn keys_are_shared_by_instances() {
    let (one, two) = (script(SHOW), script(SHOW));
    let rows = Value::from(posts());
    let expected = shown(&one, &rows);
    assert_eq!(shown(&two, &rows), expected);
    one.close();
    assert_eq!(shown(&two, &rows), expected);
    two.close();
}

/// A value as the host passes it.
fn values() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::Bool),
        (-1e9..1e9).prop_map(Value::Number),
        ".{0,8}".prop_map(Value::Text),
    ];
    leaf.prop_recursive(3, 12, 3, |inner| prop::collection::vec(inner, 0..3).prop_map(Value::Array))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    /// Rows are the same objects as those of a list of objects.
    #[test]
    fn rows_equal_objects(
        names in prop::collection::btree_set("[a-z0-9]{1,3}|\u{e9}|length", 1..6),
        cells in prop::collection::vec(values(), 0..30),
    ) {
        let script = script(SHOW);
        let names: Vec<String> = names.into_iter().collect();
        let mut records = Records::new(&RecordKeys::new(names.clone()));
        for cell in &cells {
            records.push(cell.clone());
        }
        let rows = cells.chunks_exact(names.len());
        let objects = rows.map(|row| Value::Object(names.iter().cloned().zip(row.to_vec()).collect()));
        let objects = Value::Array(objects.collect());
        prop_assert_eq!(shown(&script, &records.into()), shown(&script, &objects));
        script.close();
    }
}

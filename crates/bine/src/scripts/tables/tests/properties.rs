//! Queries equal a naive filter, and no argument breaks the host.

use bine_script::{Fault, Value};
use proptest::prelude::*;

use super::{App, load, text};

/// A row: its number, and values, many of them equal.
#[derive(Clone, Debug)]
struct Row {
    stars: Option<i8>,
    name: String,
}

#[derive(Clone, Debug)]
enum Condition {
    Stars(Option<i8>),
    Name(String),
    /// `from` or `after`, and `to` or `before`.
    StarsWithin(Option<(bool, i8)>, Option<(bool, i8)>),
}

#[derive(Clone, Debug)]
struct Query {
    conditions: Vec<Condition>,
    order: Option<&'static str>,
    is_descending: bool,
    limit: usize,
}

impl Condition {
    fn code(&self) -> String {
        match self {
            Self::Stars(None) => ".by('stars', null)".to_owned(),
            Self::Stars(Some(stars)) => format!(".by('stars', {stars})"),
            Self::Name(name) => format!(".where({{ name: '{name}' }})"),
            Self::StarsWithin(from, until) => {
                let from = from.map(|(is_included, from)| {
                    format!("{}: {from}", if is_included { "from" } else { "after" })
                });
                let until = until.map(|(is_included, until)| {
                    format!("{}: {until}", if is_included { "to" } else { "before" })
                });
                let bounds: Vec<_> = from.into_iter().chain(until).collect();
                format!(".where({{ stars: {{ {} }} }})", bounds.join(", "))
            }
        }
    }

    fn admits(&self, row: &Row) -> bool {
        match self {
            Self::Stars(stars) => row.stars == *stars,
            Self::Name(name) => row.name == *name,
            Self::StarsWithin(from, until) => row.stars.is_some_and(|stars| {
                from.is_none_or(|(included, from)| stars > from || included && stars == from)
                    && until
                        .is_none_or(|(included, until)| stars < until || included && stars == until)
            }),
        }
    }
}

impl Query {
    fn code(&self) -> String {
        let conditions: String = self.conditions.iter().map(Condition::code).collect();
        let Self { is_descending, limit, .. } = *self;
        let direction = if is_descending { "descending" } else { "ascending" };
        let end = match self.order {
            None if is_descending => format!(".newest({limit})"),
            None => format!(".oldest({limit})"),
            Some(order) => format!(".orderBy('{order}', '{direction}').list({limit})"),
        };
        format!("rows{conditions}{end}")
    }

    /// The numbers of the rows that the query finds.
    fn expected(&self, rows: &[Row]) -> Vec<usize> {
        let admits = |number: &usize| self.conditions.iter().all(|own| own.admits(&rows[*number]));
        let mut found: Vec<usize> = (0..rows.len()).filter(admits).collect();
        match self.order {
            Some("stars") => found.sort_by_key(|number| rows[*number].stars),
            Some(_) => found.sort_by_key(|number| rows[*number].name.clone()),
            None => {}
        }
        if self.is_descending {
            found.reverse();
        }
        found.truncate(self.limit);
        found
    }
}

fn rows() -> impl Strategy<Value = Vec<Row>> {
    let row = (prop::option::of(-2_i8..3), "[ab]{0,2}");
    prop::collection::vec(row.prop_map(|(stars, name)| Row { stars, name }), 0..24)
}

fn queries() -> impl Strategy<Value = Vec<Query>> {
    let bound = || prop::option::of((any::<bool>(), -3_i8..4));
    let within = (bound(), bound())
        .prop_filter("has a bound", |(from, until)| from.is_some() || until.is_some());
    let condition = prop_oneof![
        prop::option::of(-2_i8..3).prop_map(Condition::Stars),
        "[ab]{0,2}".prop_map(Condition::Name),
        within.prop_map(|(from, until)| Condition::StarsWithin(from, until)),
    ];
    let order = prop::sample::select(vec![None, Some("stars"), Some("name")]);
    let query = (prop::collection::vec(condition, 0..3), order, any::<bool>(), 0_usize..30);
    let query = query.prop_map(|(conditions, order, is_descending, limit)| Query {
        conditions,
        order,
        is_descending,
        limit,
    });
    prop::collection::vec(query, 1..8)
}

/// Values of every kind that a script may pass, as expressions.
const SAMPLES: &str = r#"[
    undefined, null, true, 0, -0, 1, 2, 3, -1, 1.5, NaN, Infinity, 2 ** 53, 1e300, 10n, Symbol("a"), "",
    "forum", "body", "at", "id", "descending", "is", "all", "\ud800", "x".repeat(1 << 16), "__proto__", "constructor",
    "00000000-0000-7000-8000-000000000000", [], [undefined], [, 1], ["forum", "a"], ["at", { from: 0 }], [[]], {},
    { forum: "a", body: "b", author: "c" }, { forum: 1 }, { size: 2 }, { size: 1, after: "x" }, { at: { from: 1 } },
    { get forum() { throw new Error("getter"); } }, new Proxy({}, {}), new Proxy([], { get() { throw 1; } }),
    JSON.parse('{"__proto__":{"a":1}}'), (() => { const a = {}; a.a = a; return a; })(), Object.create(null),
    Object.create({ forum: "a" }), new Date(0), new Date(NaN), new Uint8Array(3), new Map(), /x/, () => 1, class {},
    Promise.resolve(1), new Error("x"), new String("forum"), { valueOf() { throw 2; }, toString() { throw 3; } },
    globalThis, messages, text(), messages.by("forum", "a"), messages.by, table, TableError,
    { kind: "text" }, [["a", { kind: "text", max: -1 }]], [["a", { kind: "choice", words: [1] }]], ref("messages"),
]"#;

/// A module that calls words, methods and host functions with any values, and catches all exceptions.
fn fuzzed_module(end: &str) -> String {
    format!(
        r#"
        import {{ table, text, number, integer, boolean, bytes, time, now, choice, ref, TableError, host }} from "bine";
        const messages = table("messages", {{
            forum: text().index(), body: text().max(500), author: text().index(), at: now(),
        }});
        const samples = {SAMPLES};
        const query = messages.by("forum", "a");
        const methods = (object) => Object.getOwnPropertyNames(Object.getPrototypeOf(object)).map((name) => object[name]);
        const functions = [
            ...Object.values(host), ...methods(messages), ...methods(query), ...methods(query.groupBy("forum")), ...methods(text()),
            table, text, number, integer, choice, ref,
        ].filter((each) => typeof each === "function");
        const receivers = [undefined, messages, query, text(), messages];
        export const fuzz = (calls) => {{
            let thrown = 0;
            for (const [place, receiver, ...args] of calls) {{
                const called = functions[place % functions.length];
                try {{
                    const passed = args.map((each) => samples[each % samples.length]);
                    const result = called.apply(receivers[receiver % receivers.length], passed);
                    if (result !== null && typeof result === "object") receivers[4] = result;
                }} catch {{ thrown++; }}
            }}
            return thrown;
        }};
        export const insert = (body) => messages.insert({{ forum: "f", body, author: "a" }});
        export const last = () => messages.newest(1)[0].body;
        {end}
        "#
    )
}

proptest! {
    // Each case starts engines.
    #![proptest_config(ProptestConfig::with_cases(100))]

    #[test]
    fn finds_the_rows_that_a_naive_filter_finds(rows in rows(), queries in queries()) {
        let app = App::new(
            "import { table, text, integer } from 'bine';
             const rows = table('rows', {
                 number: integer(), stars: integer().optional(), name: text().index(),
             }, { indexes: [['stars', 'name']] });
             export const fill = (list) => rows.insertAll(list);
             export const run = (code) =>
                 new Function('rows', `return ${code}`)(rows).map((row) => row.number).join();",
        );
        let entry = |key: &str, value: Value| (key.to_owned(), value);
        let objects = rows.iter().enumerate().map(|(number, row)| {
            let stars = row.stars.map_or(Value::Null, |stars| Value::Number(stars.into()));
            let number = entry("number", Value::Number(number as f64));
            Value::Object(vec![number, entry("stars", stars), entry("name", text(&row.name))])
        });
        app.service("fill", &[Value::Array(objects.collect())]).result.unwrap();
        for query in queries {
            let expected: Vec<String> =
                query.expected(&rows).iter().map(ToString::to_string).collect();
            prop_assert_eq!(app.text("run", &[text(&query.code())]), expected.join(","), "{}", query.code());
        }
    }

    #[test]
    fn survives_wrong_arguments_in_any_order(
        calls in prop::collection::vec((0_u16..100, 0_u8..5, prop::collection::vec(0_u8..80, 0..6)), 1..60),
    ) {
        let list = calls.iter().map(|(place, receiver, args)| {
            let numbers = [f64::from(*place), f64::from(*receiver)].into_iter().chain(args.iter().map(|arg| f64::from(*arg)));
            Value::Array(numbers.map(Value::Number).collect())
        });
        let list = Value::Array(list.collect());
        let app = App::new(&fuzzed_module(""));
        let list = [list];
        for outcome in [app.page("fuzz", &list), app.service("fuzz", &list)] {
            prop_assert!(matches!(outcome.result, Ok(Value::Number(_))), "{:?}", outcome.result);
        }
        let inserted = app.service("insert", &[text("still works")]);
        prop_assert!(matches!(inserted.result, Ok(Value::Text(_))), "{:?}", inserted.result);
        prop_assert_eq!(app.text("last", &[]), "still works");
        // The same calls while the module loads.
        let code: Vec<String> = calls.iter().map(|(place, receiver, args)| format!("[{place}, {receiver}, ...{args:?}]")).collect();
        let (_instance, tables, exports) = load(&fuzzed_module(&format!("fuzz([{}]);", code.join(", "))));
        match exports {
            Ok(_) => drop(tables.schemas()),
            Err(Fault::Exception(error)) => prop_assert!(false, "{error}"),
            Err(fault) => prop_assert!(false, "{fault}"),
        }
    }
}

//! Rows in markup: the host writes what the callback of the script would write, and reads the same.

use bine_script::Value;
use proptest::prelude::*;

use super::{App, text};

/// A table with a column of each kind, and functions that show its rows by the callback and by the
/// row template.
const ROWS: &str = r#"
    import { table, text, integer, number, boolean, bytes, time, choice, ref } from "bine";
    import { $markup, $html, $row, $rows } from "bine:runtime";
    const rows = table("rows", {
        number: integer(), stars: integer().optional(), name: text().index(), weight: number().optional(),
        at: time(), kind: choice("a<", "b"), isOpen: boolean(), other: ref("rows").optional(), data: bytes(),
    }, { indexes: [["stars", "name"]] });
    export const fill = (list) => {
        let other = null;
        for (const row of list) {
            other = rows.insert({
                ...row, other, at: `2026-11-25T00:00:0${row.number % 10}.5Z`, kind: row.number % 3 ? "a<" : "b",
                isOpen: row.number % 2 === 0, weight: row.number % 4 ? row.number / 8 : null, data: new Uint8Array(1),
            });
        }
    };
    const all = $markup(["", ""], ["t"]);
    const shown = (code, values) => {
        try {
            return String($html(all, new Function(...Object.keys(values), `return ${code}`)(...Object.values(values))));
        } catch (error) {
            return `${error.name}: ${error.message}`;
        }
    };
    const templates = {};
    /** Shows `list[method](limit)` with holes of these kinds and columns; `isFast`: by the row template. */
    export const show = (isFast, list, method, limit, kinds, columns) => {
        const key = kinds.join() + columns.join();
        const own = (templates[key] ??= (() => {
            const m = $markup([..."x".repeat(kinds.length + 1)], kinds);
            return { m, row: $row(m, columns) };
        })());
        const each = (row) => $html(own.m, ...columns.map((column) => (column === 0 ? "c & d" : row[column])));
        const call = method === "map" ? "" : method === "all" ? ".all()" : `.${method}(${limit})`;
        const code = isFast
            ? `$rows(row, ${list}, method, limit, each, "c & d")`
            : `${list}${call}.map(each)`;
        return shown(code, { rows, $rows, row: own.row, method, limit, each });
    };
    /** The same, with a callback that must not run. */
    export const fast = (list, method, limit) => {
        const m = $markup(["<li", ">", " ", " ", " ", " ", " ", " ", " ", "</li>"], ["aid", "t", "t", "t", "t", "t", "t", "t", "t"]);
        const row = $row(m, ["id", "number", "stars", "name", "weight", "at", "kind", "isOpen", "other"]);
        const each = () => { throw new Error("the callback runs"); };
        return shown("$rows(row, list, method, limit, each)", { $rows, row, list: rows[list]?.call(rows, "stars", 1) ?? rows, method, limit, each });
    };
"#;

fn row(number: u32) -> Value {
    let name = ["a", "b<", "c"][number as usize % 3];
    let stars = if number.is_multiple_of(5) { Value::Null } else { f64::from(number % 3).into() };
    Value::Object(vec![
        ("number".to_owned(), f64::from(number).into()),
        ("stars".to_owned(), stars),
        ("name".to_owned(), text(name)),
    ])
}

fn filled(count: u32) -> App {
    let app = App::new(ROWS);
    let rows = Value::Array((0..count).map(row).collect());
    assert_eq!(app.service("fill", &[rows]).result, Ok(Value::Undefined));
    app
}

#[test]
fn writes_columns_of_all_kinds_without_the_callback() {
    let app = filled(12);
    for (list, method, limit) in [
        ("", "newest", 3.0),
        ("", "oldest", 20.0),
        ("by", "list", 4.0),
        ("by", "all", 0.0),
        ("", "map", 0.0),
    ] {
        let shown = app.text("fast", &[text(list), text(method), limit.into()]);
        assert!(shown.starts_with("<li id=\""), "{list} {method}: {shown}");
        assert!(shown.contains(".500Z a&lt;"), "{list} {method}: {shown}");
    }
    assert_eq!(app.text("fast", &[text(""), text("newest"), 0.0.into()]), "");
}

#[test]
fn reports_wrong_queries_as_the_methods_do() {
    let app = filled(2);
    let kinds = Value::Array(vec![text("t")]);
    let columns = Value::Array(vec![text("name")]);
    for (list, method, limit) in [
        ("rows", "newest", Value::Number(-1.0)),
        ("rows", "newest", Value::Null),
        ("rows", "list", text("'2'")),
        ("rows.orderBy('name')", "newest", 2.0.into()),
        ("rows.by('nmae', 1)", "all", Value::Null),
        ("rows.by('name', 1)", "list", 2.0.into()),
        ("({ newest: () => [] })", "newest", 1.0.into()),
        ("({})", "newest", 1.0.into()),
        ("(undefined)", "map", Value::Null),
        ("(5)", "all", Value::Null),
        ("[{ name: 'own' }]", "map", Value::Null),
        (
            "Object.assign(rows.by('stars', 1), { newest: () => [{ name: 'own' }] })",
            "newest",
            1.0.into(),
        ),
    ] {
        let show = |is_fast| {
            let arguments = [
                Value::Bool(is_fast),
                text(list),
                text(method),
                limit.clone(),
                kinds.clone(),
                columns.clone(),
            ];
            app.text("show", &arguments)
        };
        assert_eq!(show(true), show(false), "{list} {method}");
    }
}

const LISTS: [&str; 7] = [
    "rows",
    "rows.by('stars', 1)",
    "rows.by('stars', null)",
    "rows.where({ name: { from: 'b' } })",
    "rows.orderBy('weight', 'descending')",
    "rows.by('stars', 2).orderBy('name')",
    "rows.by('number', 3)",
];
const METHODS: [&str; 5] = ["newest", "oldest", "list", "all", "map"];
const KINDS: [&str; 6] = ["t", "u", "atitle", "lhref", "isrc", "sa"];
const COLUMNS: [&str; 12] = [
    "id", "number", "stars", "name", "weight", "at", "kind", "isOpen", "other", "name", "data",
    "toString",
];

proptest! {
    // Each case starts an engine.
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn shows_and_reads_what_the_callback_shows_and_reads(
        count in 0_u32..24,
        pages in prop::collection::vec(
            (
                prop::sample::select(LISTS.to_vec()),
                prop::sample::select(METHODS.to_vec()),
                0_u32..30,
                prop::collection::vec((prop::sample::select(KINDS.to_vec()), 0..COLUMNS.len() + 1), 1..5),
            ),
            1..12,
        ),
    ) {
        let app = filled(count);
        for (list, method, limit, holes) in pages {
            let kinds = Value::Array(holes.iter().map(|(kind, _)| text(kind)).collect());
            let column = |(_, column): &(&str, usize)| {
                COLUMNS.get(*column).map_or(Value::Number(0.0), |column| text(column))
            };
            let columns = Value::Array(holes.iter().map(column).collect());
            let show = |is_fast| {
                let limit = f64::from(limit).into();
                let arguments = [Value::Bool(is_fast), text(list), text(method), limit, kinds.clone(), columns.clone()];
                let (shown, recorder) = app.recorded("show", &arguments);
                (shown, recorder.reads())
            };
            let (own, expected) = (show(true), show(false));
            prop_assert_eq!(own, expected, "{} {} {:?}", list, method, holes);
        }
    }
}

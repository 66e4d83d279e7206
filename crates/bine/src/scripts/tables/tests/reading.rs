//! Queries: conditions, orders, limits, pages, figures, and what they record.

use std::sync::{Arc, Mutex};

use bine_script::Value;

use super::{App, text};
use crate::store::{ReadSet, Value as StoreValue};

/// The board with functions to fill and to query it. `show` evaluates an expression.
fn board() -> App {
    let app = App::board(
        r#"
        const stars = table("stars", {
            name: text().unique(), stars: integer().optional(), weight: number().default(0.5), at: time().index(),
        }, { indexes: [["stars", "at"]] });
        export const fill = () => {
            for (let n = 0; n < 6; n++) {
                messages.insert({ forum: n % 2 ? "Ubuntu" : "Debian", body: `body ${n}`, author: "Ada" });
                const at = new Date(Date.UTC(2026, 10, 21 + n));
                stars.insert({ name: `star ${n}`, stars: n % 3 === 2 ? null : n % 3, at });
            }
        };
        export const insert = (forum, body) => messages.insert({ forum, body, author: "Ben" });
        export const show = (code) => JSON.stringify(new Function("messages", "stars", "forums", `return ${code}`)(messages, stars, forums));
        "#,
    );
    let filled = app.service("fill", &[]);
    assert_eq!(filled.result, Ok(Value::Undefined));
    app
}

fn show(app: &App, code: &str) -> String {
    app.text("show", &[text(code)])
}

#[test]
fn finds_the_newest_rows_of_an_index() {
    let app = board();
    let bodies = "messages.by('forum', 'Ubuntu').newest(2).map((m) => m.body)";
    assert_eq!(show(&app, bodies), r#"["body 5","body 3"]"#);
    let row = show(&app, "messages.newest(1)[0]");
    let keys = show(&app, "Object.keys(messages.first())");
    assert_eq!(keys, r#"["id","forum","body","author","at"]"#);
    assert!(row.contains(r#""forum":"Ubuntu","body":"body 5","author":"Ada","at":"20"#), "{row}");
    assert_eq!(show(&app, "messages.get(messages.first().id).body"), r#""body 0""#);
    assert_eq!(show(&app, "/^[0-9a-f]{8}-[0-9a-f]{4}-7/.test(messages.first().id)"), "true");
    assert_eq!(
        show(&app, "/^2\\d{3}-..-..T..:..:..[.]\\d{3}Z$/.test(messages.first().at)"),
        "true"
    );
}

#[test]
fn answers_each_kind_of_query() {
    let app = board();
    for (code, expected) in [
        ("messages.count()", "6"),
        ("messages.all().length", "6"),
        ("[...messages].length", "6"),
        ("messages.map((m) => m.body)[1]", r#""body 1""#),
        ("messages.oldest(1)[0].body", r#""body 0""#),
        ("messages.list(0)", "[]"),
        ("messages.by('forum', 'x').first()", "null"),
        ("messages.where({ forum: 'Debian', body: 'body 2' }).count()", "1"),
        ("messages.by('forum', 'Debian').by('forum', 'Ubuntu').count()", "0"),
        (
            "messages.orderBy('body', 'descending').list(2).map((m) => m.body)",
            r#"["body 5","body 4"]"#,
        ),
        ("messages.orderBy('id', 'descending').first().body", r#""body 5""#),
        ("stars.by('stars', null).count()", "2"),
        ("stars.first().weight", "0.5"),
        ("stars.where({ stars: { from: 0 } }).count()", "4"),
        // As in SQL, null is in no range.
        ("stars.where({ stars: { before: 1 } }).count()", "2"),
        ("stars.where({ stars: { after: 0, to: 1 } }).count()", "2"),
        ("stars.where({ stars: { from: 1, to: 0 } }).count()", "0"),
        ("stars.by('at', '2026-11-22T00:00:00Z').first().name", r#""star 1""#),
        ("stars.by('at', new Date('2026-11-22')).first().at", r#""2026-11-22T00:00:00.000Z""#),
        ("stars.by('at', Date.UTC(2026, 10, 22)).count()", "1"),
        (
            "stars.where({ at: { from: '2026-11-22T00:00:00.000Z', before: new Date('2026-11-25') } }).count()",
            "3",
        ),
        ("stars.by('stars', 1).orderBy('at').explain().index", r#"["stars","at"]"#),
        (
            "stars.by('weight', 0.5).explain()",
            r#"{"index":null,"isSorted":false,"examined":6,"returned":6}"#,
        ),
        ("stars.sum('stars')", "2"),
        ("stars.average('stars')", "0.5"),
        ("stars.sum('weight')", "3"),
        ("stars.by('name', 'x').average('stars')", "null"),
        ("[stars.min('stars'), stars.max('stars')]", "[0,1]"),
        ("stars.max('at')", r#""2026-11-26T00:00:00.000Z""#),
        ("messages.groupBy('forum').count()", r#"[["Debian",3],["Ubuntu",3]]"#),
        ("stars.groupBy('stars').count()", "[[null,2],[0,2],[1,2]]"),
        ("stars.where({ stars: { from: 1 } }).groupBy('stars').sum('weight')", "[[1,1]]"),
        ("stars.groupBy('stars').max('at')[0]", r#"[null,"2026-11-26T00:00:00.000Z"]"#),
        ("stars.groupBy('weight').average('stars')", "[[0.5,0.5]]"),
        ("stars.groupBy('weight').min('stars')", "[[0.5,0]]"),
        ("stars.by('name', 'x').groupBy('name').count()", "[]"),
        ("messages.get('no id')", "null"),
        ("messages.get(stars.first().id)", "null"),
    ] {
        assert_eq!(show(&app, code), expected, "{code}");
    }
}

/// It is long because each mistake is one entry.
#[test]
fn reports_wrong_queries() {
    let app = board();
    for (code, expected) in [
        (
            "messages.by('forun', 'x').all()",
            "TypeError: the table `messages` has no column `forun`; did you mean `forum`?",
        ),
        (
            "messages.orderBy('bodi').all()",
            "TypeError: the table `messages` has no column `bodi`; did you mean `body`?",
        ),
        (
            "messages.orderBy('bodi').count()",
            "TypeError: the table `messages` has no column `bodi`; did you mean `body`?",
        ),
        (
            "messages.by('x', 'x').all()",
            "TypeError: the table `messages` has no column `x`; it has `forum`, `body`, `author`, `at`",
        ),
        ("messages.by('id', 'x').all()", "TypeError: the row of `messages` with an id is get(id)"),
        (
            "messages.by('forum', 7).all()",
            "TypeError: the condition on `messages.forum` must be text",
        ),
        (
            "messages.by('forum', undefined)",
            "TypeError: by(\"forum\", undefined): give a value, or null for rows without one",
        ),
        (
            "messages.where({ forum: undefined })",
            "TypeError: by(\"forum\", undefined): give a value, or null for rows without one",
        ),
        (
            "messages.where('forum')",
            "TypeError: where takes an object with the conditions on columns, like { forum: \"Ubuntu\" }",
        ),
        (
            "messages.by('at', 'yesterday').all()",
            "TypeError: the condition on `messages.at` must be a moment: a Date, or 2026-11-21T09:30:00Z",
        ),
        (
            "stars.where({ stars: {} }).all()",
            "TypeError: the range of `stars.stars` has no bound: write { from, to, after, before } with one or two of them",
        ),
        (
            "stars.where({ stars: { form: 1 } }).all()",
            "TypeError: the range of `stars.stars` has no `form`; did you mean `from`?",
        ),
        (
            "stars.where({ stars: { from: 1, after: 1 } }).all()",
            "TypeError: the range of `stars.stars` has two bounds at the same end: remove one",
        ),
        (
            "stars.where({ stars: { from: null } }).all()",
            "TypeError: the range of `stars.stars` has null as a bound: omit it",
        ),
        (
            "stars.where({ stars: { from: 'x' } }).all()",
            "TypeError: the condition on `stars.stars` must be a whole number from -9007199254740991 to 9007199254740991",
        ),
        (
            "messages.orderBy('body', 'up')",
            "TypeError: orderBy(column, direction): the direction is \"ascending\" or \"descending\"",
        ),
        (
            "messages.orderBy('body').newest(3)",
            "TypeError: newest(n) has its own order: write list(n) after orderBy",
        ),
        (
            "messages.newest()",
            "RangeError: newest(n) takes the number of rows, a whole number from 0 to 50000; read more with page({ size, after })",
        ),
        (
            "messages.list(-1)",
            "RangeError: list(n) takes the number of rows, a whole number from 0 to 50000; read more with page({ size, after })",
        ),
        (
            "messages.list('9')",
            "RangeError: list(n) takes the number of rows, a whole number from 0 to 50000; read more with page({ size, after })",
        ),
        ("messages.get(7)", "TypeError: the id of a row is a string, as in `row.id`, not a number"),
        ("messages.sum('body')", "TypeError: `messages.body` has no sum: it is text"),
        (
            "messages.page()",
            "TypeError: page takes an object, like { size: 20, after: query.after, before: query.before }",
        ),
        (
            "messages.page({ size: 0 })",
            "RangeError: page needs its size, a whole number from 1 to 50000",
        ),
        (
            "messages.page({ size: 1, afer: 'x' })",
            "TypeError: page has no option `afer`; did you mean `after`?",
        ),
        (
            "messages.insert({ forum: 'a', body: 'b', author: 'c' })",
            "Error: only a service changes tables; in an async function, write `await change(() => ..)`",
        ),
    ] {
        assert_eq!(show(&app, code), expected, "{code}");
    }
}

#[test]
fn turns_pages_by_cursors() {
    let app = board();
    let pages = "(() => {
        const query = messages.orderBy('body', 'descending');
        const one = query.page({ size: 2 });
        const two = query.page({ size: 2, after: one.next });
        const back = query.page({ size: 2, before: two.previous, after: undefined });
        const bodies = (page) => page.rows.map((m) => m.body);
        return [one.previous, bodies(one), bodies(two), bodies(back), back.next === one.next];
    })()";
    let expected = r#"[null,["body 5","body 4"],["body 3","body 2"],["body 5","body 4"],true]"#;
    assert_eq!(show(&app, pages), expected);
}

#[test]
fn reports_more_rows_than_fit_without_a_limit() {
    let app = App::board(
        "
        export const fill = (count) => {
            for (let n = 0; n < count; n++) forums.insert({ name: `forum ${n}` });
        };
        export const all = () => String(forums.all().length);
        export const listed = () => String(forums.list(20000).length);
        ",
    );
    app.service("fill", &[Value::Number(10_000.0)]).result.unwrap();
    assert_eq!(app.text("all", &[]), "10000");
    let state = app.service("fill", &[Value::Number(0.0)]);
    assert_eq!(state.result, Ok(Value::Undefined));
    let one = App::in_store(
        "import { table, text } from 'bine';
         const forums = table('forums', { name: text().unique() });
         export const one = () => forums.insert({ name: 'one more' });",
        app.store.clone(),
    );
    one.change("one", &[]);
    assert_eq!(
        app.text("all", &[]),
        "RangeError: the query finds more than 10000 rows of `forums`: write list(n), newest(n) or page({ size }) to read a part"
    );
    assert_eq!(app.text("listed", &[]), "10001");
}

/// A region is rendered again only if a change may affect the part that it has read.
#[test]
fn records_the_part_of_an_index_that_a_query_has_read() {
    let app = board();
    let changes = Arc::new(Mutex::new(Vec::new()));
    let noted = Arc::clone(&changes);
    app.store.observe(move |change| noted.lock().unwrap().push(Arc::clone(change)));
    let is_touched = |reads: &ReadSet, forum: &str| {
        app.change("insert", &[text(forum), text("new")]);
        reads.is_touched_by(&changes.lock().unwrap().pop().unwrap())
    };
    for (code, debian, ubuntu) in [
        ("messages.by('forum', 'Ubuntu').newest(2)", false, true),
        ("messages.by('forum', 'Ubuntu').count()", false, true),
        ("messages.where({ forum: { from: 'T' } }).all()", false, true),
        ("messages.by('forum', 'Ubuntu').oldest(1)", false, false),
        ("messages.get(messages.oldest(1)[0].id)", false, false),
        ("messages.count()", true, true),
        ("messages.by('body', 'x').all()", true, true),
        ("stars.all()", false, false),
        ("messages.orderBy('forum', 'descending').list(1)", false, true),
    ] {
        let (_, recorder) = app.recorded("show", &[text(code)]);
        let reads = recorder.reads();
        assert!(!reads.is_empty());
        let touched = (is_touched(&reads, "Debian"), is_touched(&reads, "Ubuntu"));
        assert_eq!(touched, (debian, ubuntu), "{code}");
    }
}

#[test]
fn records_the_same_reads_as_a_query_in_rust() {
    let app = board();
    let (_, script) =
        app.recorded("show", &[text("messages.by('forum', 'Ubuntu').newest(2).length")]);
    let snapshot = app.store.read();
    let table = snapshot.table_named("board.messages").unwrap();
    let column = table.column("forum").unwrap();
    let select = table.select().equals_value(column, StoreValue::Text("Ubuntu")).unwrap();
    assert_eq!(select.rev().limit(2).rows().len(), 2);
    assert_eq!(script.reads(), snapshot.reads());
}

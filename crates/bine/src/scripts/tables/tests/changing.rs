//! Changes, and what a script learns about those that fail.

use bine_script::Value;

use super::{App, text};
use crate::Error;
use crate::store::{self, ValueFault};

const LIBRARY: &str = r#"
    import { table, text, integer, number, boolean, bytes, time, now, choice, ref, TableError } from "bine";
    const users = table("users", { name: text().unique().min(1).max(8).label("Name") });
    const books = table("books", {
        title: text(),
        owner: ref(users),
        lender: ref(users).optional().onRemove("null"),
        stars: integer().min(0).max(5).default(0),
        price: number().optional(),
        open: boolean().default(false),
        cover: bytes().optional(),
        due: time().optional(),
        mood: choice("grave", "cheerful").default("grave"),
    }, { unique: [["owner", "title"]] });
    const notes = table("notes", { book: ref(books).onRemove("remove"), at: now() });
    export const run = (code) => {
        const result = new Function("users", "books", "notes", "TableError", code)(users, books, notes, TableError);
        return typeof result === "string" ? result : JSON.stringify(result) ?? "nothing";
    };
"#;

fn run(app: &App, code: &str) -> String {
    app.change("run", &[text(code)])
}

#[test]
fn writes_and_reads_each_kind_of_value() {
    let app = App::new(LIBRARY);
    let owner = run(&app, "return users.insert({ name: 'Ada' });");
    let code = format!(
        "const id = books.insert({{ title: 'a\\u0000\\ud83d\\ude00', owner: '{owner}', price: -0.25, open: true,
             cover: new Uint8Array([0, 255]), due: new Date(1.5), mood: 'cheerful', stars: 5 }});
         const {{ cover, ...row }} = books.get(id);
         return {{ ...row, id: row.id === id, owner: row.owner === '{owner}', cover: [...cover] }};"
    );
    let expected = concat!(
        r#"{"id":true,"title":"a\u0000"#,
        "\u{1f600}",
        r#"","owner":true,"lender":null,"stars":5,"price":-0.25,"open":true,"due":"1970-01-01T00:00:00.001Z","mood":"cheerful","cover":[0,255]}"#
    );
    assert_eq!(run(&app, &code), expected);
    let defaults = "const { id, title, owner, ...rest } = books.get(books.insert({ title: 'b', owner: users.first().id }));
        return rest;";
    assert_eq!(
        run(&app, defaults),
        r#"{"lender":null,"stars":0,"price":null,"open":false,"cover":null,"due":null,"mood":"grave"}"#
    );
}

#[test]
fn reads_times_as_it_has_written_them() {
    let app = App::new(LIBRARY);
    let code = "
        const book = books.insert({ title: 'a', owner: users.insert({ name: 'Ada' }) });
        const { at } = notes.get(notes.insert({ book }));
        const early = notes.get(notes.insert({ book, at: '0001-01-01T00:00:00Z' })).at;
        const found = [notes.by('at', at), notes.by('at', new Date(at)), notes.where({ at: { after: at } })];
        return [found.map((query) => query.count()), new Date(at).toISOString() === at, early];";
    assert_eq!(run(&app, code), r#"[[1,1,0],true,"0001-01-01T00:00:00.000Z"]"#);
}

#[test]
fn updates_and_removes_rows() {
    let app = App::new(LIBRARY);
    let code = "
        const owner = users.insert({ name: 'Ada' });
        const id = books.insert({ title: 'a', owner });
        books.update(id, { stars: 3, title: undefined });
        const book = books.get(id);
        books.update(book.id, { ...book, price: 2 });
        const { stars, price, title } = books.get(id);
        return [stars, price, title, books.remove(id), books.remove(id), books.get(id), books.remove('no id')];";
    assert_eq!(run(&app, code), r#"[3,2,"a",true,false,null,false]"#);
    assert_eq!(run(&app, "return books.count();"), "0");
}

#[test]
fn inserts_all_rows_of_a_list_or_none() {
    let app = App::new(LIBRARY);
    assert_eq!(run(&app, "return users.insertAll([{ name: 'a' }, { name: 'b' }]).length;"), "2");
    let code = "
        try { users.insertAll([{ name: 'c' }, { name: 'a' }]); }
        catch (error) { return [error.reason, users.count()]; }";
    assert_eq!(run(&app, code), r#"["duplicate",2]"#);
    let code = "
        try { users.insertAll([{ name: 'c' }, { nam: 'a' }]); }
        catch (error) { return [error.message, users.count()]; }";
    assert_eq!(
        run(&app, code),
        r#"["the table `users` has no column `nam`; did you mean `name`?",2]"#
    );
    assert_eq!(run(&app, "return users.count();"), "2");
}

#[test]
fn removes_and_detaches_rows_that_refer_to_a_removed_one() {
    let app = App::new(LIBRARY);
    let code = "
        const [ada, ben] = users.insertAll([{ name: 'Ada' }, { name: 'Ben' }]);
        const book = books.insert({ title: 'a', owner: ada, lender: ben });
        notes.insert({ book });
        users.remove(ben);
        const { lender } = books.get(book);
        let reason;
        try { users.remove(ada); } catch (error) { reason = error.reason; }
        books.remove(book);
        return [lender, reason, notes.count(), users.remove(ada)];";
    assert_eq!(run(&app, code), r#"[null,"referenced",0,true]"#);
}

#[test]
fn discards_the_changes_of_a_call_that_fails() {
    let app = App::new(LIBRARY);
    assert_eq!(run(&app, "users.insert({ name: 'Ada' }); throw new Error('no');"), "Error: no");
    assert_eq!(run(&app, "return users.count();"), "0");
}

/// A service that does not catch the exception answers as the same service in Rust.
#[test]
fn keeps_the_failure_of_an_uncaught_exception() {
    let app = App::new(LIBRARY);
    run(&app, "users.insert({ name: 'Ada' });");
    for (code, status) in [
        ("users.insert({});", 422),
        ("users.insert({ name: 'Ada' });", 409),
        (
            "users.remove(users.first().id); users.update(users.insert({ name: 'x' }), { name: 'far too long' })",
            422,
        ),
        ("users.update('no id', { name: 'x' });", 404),
        ("books.insert({ title: 'a', owner: '00000000-0000-7000-8000-000000000000' });", 404),
        (
            "books.insert({ title: 'a', owner: users.first().id }); users.remove(users.first().id);",
            409,
        ),
        ("users.page({ size: 1, after: 'no cursor' });", 400),
        (
            "try { users.insert({}); } catch (error) { try { users.insert({ name: 'Ada' }); } catch {} throw error; }",
            422,
        ),
    ] {
        let outcome = app.service("run", &[text(code)]);
        let failure = outcome.failure.clone().unwrap_or_else(|| panic!("{code}: {outcome:?}"));
        assert_eq!(Error::from(failure).code().code(), status, "{code}");
        assert!(outcome.text().starts_with("TableError: "), "{code}");
    }
    for code in
        ["throw new Error('`Name` must be given')", "users.insert({ nam: 'x' })", "users.insert(7)"]
    {
        let outcome = app.service("run", &[text(code)]);
        assert!(outcome.result.is_err() && outcome.failure.is_none(), "{code}");
    }
}

#[test]
fn reports_all_invalid_columns_at_once() {
    let app = App::new(LIBRARY);
    let code = "books.insert({ title: 7, owner: 'x', stars: 1.5, price: 'x', open: 'yes', cover: 'x', due: 'x', mood: 'x' });";
    let outcome = app.service("run", &[text(code)]);
    let Some(failure) = outcome.failure else { panic!("{outcome:?}") };
    let crate::scripts::table_failure::TableFailure::Store(store::Error::InvalidValues(invalid)) =
        failure
    else {
        panic!("{failure:?}")
    };
    let columns: Vec<_> = invalid.iter().map(|own| &*own.column).collect();
    assert_eq!(columns, ["title", "owner", "stars", "price", "open", "cover", "due", "mood"]);
    assert!(invalid.iter().all(|own| matches!(own.fault, ValueFault::Type(_))), "{invalid:?}");
    let code = "
        try { books.insert({ stars: 9 }); }
        catch (error) { return [error instanceof TableError, error.reason, error.errors]; }";
    let expected = r#"[true,"invalid",[{"column":"title","message":"must be given"},{"column":"owner","message":"must be given"},{"column":"stars","message":"must be from 0 to 5, not 9"}]]"#;
    assert_eq!(run(&app, code), expected);
}

#[test]
fn rejects_values_with_behavior() {
    let app = App::new(LIBRARY);
    for (code, expected) in [
        (
            "users.insert({ get name() { return 'a'; } });",
            "TypeError: argument 2 cannot pass: name is a getter; pass its value",
        ),
        (
            "users.insert(JSON.parse('{\"__proto__\": 1}'));",
            "TypeError: argument 2 cannot pass: __proto__ is a key that is not allowed, because it may change prototypes",
        ),
        (
            "users.insert(new Proxy({}, {}));",
            "TypeError: argument 2 is a proxy, which is not allowed",
        ),
        (
            "users.insert({ name: NaN });",
            "TypeError: argument 2 cannot pass: name is NaN, which is not allowed",
        ),
        (
            "users.insert({ name: Promise.resolve('a') });",
            "TypeError: argument 2 cannot pass: name is a promise; await it first",
        ),
        (
            "users.insert('Ada');",
            "TypeError: insert takes an object with the values of columns, like { body: \"Hello\" }, not a string",
        ),
        (
            "users.insert({ id: 'x', name: 'a' });",
            "TypeError: the id of a row of `users` cannot be set: insert returns a new one, and no row changes its own",
        ),
        ("users.insertAll({});", "TypeError: insertAll takes a list of objects"),
        (
            "users.update(users.insert({ name: 'a' }));",
            "TypeError: update takes an object with the values of columns, like { body: \"Hello\" }, not undefined",
        ),
    ] {
        assert_eq!(run(&app, code), expected, "{code}");
    }
    let cyclic = run(&app, "const a = { name: 'a' }; a.a = a; users.insert(a);");
    assert!(cyclic.contains("contains itself"), "{cyclic}");
    let huge = run(&app, "users.insert({ name: 'x'.repeat(9000000) });");
    assert!(huge.starts_with("TypeError: argument 2 cannot pass: name is beyond"), "{huge}");
    assert_eq!(run(&app, "return users.count();"), "0");
}

#[test]
fn gives_each_service_a_transaction_that_sees_its_own_writes() {
    let app = App::new(LIBRARY);
    assert_eq!(
        run(&app, "users.insert({ name: 'a' }); return users.by('name', 'a').count();"),
        "1"
    );
    let outcome = app.page("run", &[text("users.insert({ name: 'b' })")]);
    assert!(outcome.failure.is_none());
    assert!(outcome.text().contains("only a service changes tables"));
    assert_eq!(
        app.page("run", &[text("return users.count();")]).result,
        Ok(Value::Text("1".to_owned()))
    );
}

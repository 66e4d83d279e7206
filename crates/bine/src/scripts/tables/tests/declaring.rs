//! Tests of valid and of rejected declarations.

use bine_script::Fault;

use super::{App, load};
use crate::store::{Constant, Kind, OnRemove, Options, Store};

/// Loads a module with this declaration, and returns the error with its line.
fn error(declaration: &str) -> String {
    let words = "table, text, number, integer, boolean, time, now, bytes, choice, ref";
    let source = format!("import {{ {words} }} from 'bine';\n{declaration}");
    let (_instance, tables, exports) = load(&source);
    let Err(fault) = exports else {
        return tables.schemas().expect_err("the declaration is wrong");
    };
    let Fault::Exception(error) = fault else { panic!("{fault}") };
    let line = error.position().map_or(0, |position| position.line);
    format!("{line}: {}", error.message)
}

#[test]
fn declares_all_kinds_of_columns() {
    let app = App::new(
        r#"
        import { table, text, number, integer, boolean, time, now, bytes, choice, ref } from "bine";
        const users = table("users", { name: text().unique().min(1).max(40).label("Name") });
        table("things", {
            by: ref(users).onRemove("remove"),
            parent: ref("things").optional().onRemove("null"),
            size: number().min(0).default(1.5),
            stars: integer().min(0).max(5).default(0).index(),
            open: boolean().default(true),
            due: time().optional(),
            at: now(),
            scan: bytes().max(9).private().optional(),
            mood: choice("grave", "cheerful").default("grave"),
            title: text().was("name").default("none"),
        }, { indexes: [["by", "at"]], unique: [["title", "open"]], dropped: ["old"] });
        "#,
    );
    let schemas = app.tables.schemas().unwrap();
    let [users, things] = &schemas[..] else { panic!("{schemas:?}") };
    assert_eq!((&*users.name, &*things.name), ("board.users", "board.things"));
    let name = &users.columns[0];
    assert_eq!((name.length, name.label.as_deref()), (Some((1, 40)), Some("Name")));
    assert!(users.indexes[0].is_unique);
    let column = |name: &str| &things.columns[things.position(name).unwrap()];
    assert_eq!(column("by").kind, Kind::Reference("board.users".into()));
    assert_eq!(column("by").on_remove, OnRemove::Cascade);
    assert_eq!(column("parent").on_remove, OnRemove::SetNone);
    assert!(column("parent").is_optional);
    assert_eq!(column("size").range, Some((0.0, f64::INFINITY)));
    assert_eq!(column("size").default, Some(Constant::Float(1.5)));
    assert_eq!(column("stars").range, Some((0.0, 5.0)));
    assert_eq!(column("stars").default, Some(Constant::Integer(0)));
    assert_eq!(column("at").default, Some(Constant::Now));
    assert_eq!(column("mood").default, Some(Constant::Enum(0)));
    assert_eq!(column("scan").length, Some((0, 9)));
    assert!(column("scan").is_private);
    assert_eq!(column("title").former_name.as_deref(), Some("name"));
    assert_eq!(things.dropped, ["old"]);
    let indexes: Vec<_> =
        things.indexes.iter().map(|index| (&index.columns[..], index.is_unique)).collect();
    assert_eq!(indexes, [(&[3][..], false), (&[0, 6], false), (&[9, 4], true)]);
}

/// It is long because each mistake is one entry.
#[test]
fn rejects_wrong_declarations_and_names_the_fix() {
    for (declaration, expected) in [
        ("table(7, {});", "2: the name of a table is a string, not a number"),
        (
            "table('a b', {});",
            "2: a table cannot have the name `a b`: use up to 64 letters, digits, `_` and `-`, and begin with a letter",
        ),
        (
            "table('__proto__', {});",
            "2: a table cannot have the name `__proto__`: use up to 64 letters, digits, `_` and `-`, and begin with a letter",
        ),
        (
            "table('a');",
            "2: table takes a name and columns, like table(\"messages\", { body: text() })",
        ),
        (
            "table('a', { b: 'text' });",
            "2: `a.b` is no column: write text(), number(), integer(), boolean(), time(), now(), bytes(), choice(..) or ref(..)",
        ),
        (
            "table('a', { b: text });",
            "2: `a.b` is no column: write text(), number(), integer(), boolean(), time(), now(), bytes(), choice(..) or ref(..)",
        ),
        (
            "table('a', { id: text() });",
            "2: `a.id` is there without a declaration: each row has an `id`",
        ),
        (
            "table('a', { 'x y': text() });",
            "2: `a.x y` cannot be the name of a column: use up to 64 letters, digits and `_`, and begin with a letter",
        ),
        (
            "table('a', { constructor: text() });",
            "2: `a.constructor` cannot be the name of a column: use up to 64 letters, digits and `_`, and begin with a letter",
        ),
        (
            "table('a', { b: text().max('9') });",
            "2: `a.b` has a max that is a string, not a number",
        ),
        ("table('a', { b: text().max() });", "2: `a.b` has a max that is null, not a number"),
        (
            "table('a', { b: text().max(1.5) });",
            "2: `a.b` has a limit of 1.5: the limit of a length is a whole number from 0 to 8388608",
        ),
        (
            "table('a', { b: text().min(3).max(2) });",
            "2: `a.b` has a min above its max: no value would be valid",
        ),
        (
            "table('a', { b: time().max(2) });",
            "2: `a.b` has min or max, which only text, bytes and numbers have: remove it",
        ),
        (
            "table('a', { b: text().onRemove('null') });",
            "2: `a.b` refers to no row, so it has no onRemove: remove it, or write ref(..)",
        ),
        (
            "table('a', { b: ref('a').onRemove('null') });",
            "2: `a.b` cannot become null when its row is removed: add .optional()",
        ),
        (
            "table('a', { b: ref('a').onRemove('delete') });",
            "2: `a.b` has an unknown onRemove: it is \"reject\", \"remove\" or \"null\"",
        ),
        (
            "table('a', { b: ref() });",
            "2: `a.b` refers to no table: write ref(users) with a table that is declared before, or ref(\"users\") with the name of any table of the application",
        ),
        ("table('a', { b: choice() });", "2: `a.b` needs its words: choice(\"open\", \"closed\")"),
        ("table('a', { b: choice('x', 'x') });", "2: `a.b` has the word `x` twice: remove one"),
        (
            "table('a', { b: choice('x').default('y') });",
            "2: `a.b` has a default that is not one of x",
        ),
        (
            "table('a', { b: integer().default(1.5) });",
            "2: `a.b` has a default that must be a whole number from -9007199254740991 to 9007199254740991, not a number",
        ),
        (
            "table('a', { b: integer().max(5).default(6) });",
            "2: `a.b` has a default outside of its min and max",
        ),
        (
            "table('a', { b: text().max(1).default('xy') });",
            "2: `a.b` has a default outside of its min and max",
        ),
        (
            "table('a', { b: time().default('today') });",
            "2: `a.b` has a default that is no time: write a Date, or a text like 2026-11-21T09:30:00Z",
        ),
        (
            "table('a', { b: time().default(new Date('x')) });",
            "2: a Date is invalid: check how it was made",
        ),
        (
            "table('a', { b: text().default(null) });",
            "2: `a.b` has no value as its default: remove .default(..), and add .optional()",
        ),
        (
            "table('a', { b: bytes().default('x') });",
            "2: `a.b` is of a kind without defaults: remove .default(..)",
        ),
        (
            "table('a', { b: text().label(7) });",
            "2: `a.b` has a label that is a number, not a string",
        ),
        (
            "table('a', { body: text() }, { indexs: [] });",
            "2: the table `a` has an unknown option `indexs`; did you mean `indexes`?",
        ),
        (
            "table('a', { body: text() }, { indexes: [['boddy']] });",
            "2: the table `a` has no column `boddy` for `indexes`; did you mean `body`?",
        ),
        (
            "table('a', { body: text() }, { unique: ['body'] });",
            "2: the table `a` needs lists of up to 4 columns in `unique`: [[\"forum\", \"at\"]]",
        ),
        (
            "table('a', { body: text() }, { unique: [['body', 'body']] });",
            "2: the table `a` has `body` twice in one index of `unique`: remove one",
        ),
        (
            "table('a', { body: text() }, 7);",
            "2: the table `a` has options that are no object, but a number",
        ),
        (
            "table('a', {});\ntable('a', {});",
            "3: the table `a` is declared twice: export it from one module, and import it in the others",
        ),
        (
            "table('messages', {}); table('b', { to: ref('mesages') });",
            "`b.to` refers to the table `mesages`, which no module of the application declares; did you mean `messages`?",
        ),
    ] {
        assert_eq!(error(declaration), expected, "{declaration}");
    }
}

#[test]
fn rejects_tables_that_are_declared_too_late() {
    let app = App::board("export const late = () => table('late', { a: text() });");
    let late = "Error: a table is declared while the application loads: move `table(..)` to the top of a module";
    assert_eq!(app.text("late", &[]), late);
}

#[test]
fn rejects_the_use_of_tables_while_a_module_loads() {
    for usage in ["first()", "insert({ name: 'a' })", "get('x')", "count()", "remove('x')"] {
        let (_instance, _tables, exports) = load(&format!("{}forums.{usage};", super::BOARD));
        let Err(Fault::Exception(error)) = exports else { panic!("{exports:?}") };
        assert!(error.message.contains("for pages and services"), "{usage}: {}", error.message);
    }
}

#[test]
fn adapts_tables_to_a_changed_declaration() {
    let store = Store::in_memory(Options::new()).unwrap();
    let before = App::in_store(
        "import { table, text } from 'bine';
         const notes = table('notes', { name: text(), old: text() });
         export const keep = () => notes.insert({ name: 'hops', old: 'x' });",
        store.clone(),
    );
    before.change("keep", &[]);
    let after = App::in_store(
        "import { table, text, integer } from 'bine';
         const notes = table('notes',
             { title: text().was('name').index(), stars: integer().default(3) }, { dropped: ['old'] });
         export const show = () => JSON.stringify(notes.by('title', 'hops').map(({ id, ...rest }) => rest));",
        store.clone(),
    );
    assert_eq!(after.text("show", &[]), r#"[{"title":"hops","stars":3}]"#);
    let (_instance, tables, _) =
        load("import { table, integer } from 'bine'; table('notes', { title: integer() });");
    let rejected = store.declare(&tables.schemas().unwrap()).err().unwrap().to_string();
    assert!(rejected.starts_with("the column `board.notes.title` is a whole number"), "{rejected}");
}

#[test]
fn keeps_the_tables_of_applications_apart() {
    let store = Store::in_memory(Options::new()).unwrap();
    let source = "import { table, text } from 'bine';
        const notes = table('notes', { name: text() });
        export const keep = () => notes.insert({ name: 'hops' });
        export const count = () => String(notes.count());";
    let one = App::named("board.", source, store.clone());
    let other = App::named("shop.", source, store.clone());
    one.change("keep", &[]);
    assert_eq!(
        (one.text("count", &[]), other.text("count", &[])),
        ("1".to_owned(), "0".to_owned())
    );
    assert_eq!(format!("{store:?}"), r#"["board.notes", "shop.notes"]"#);
}

//! Row templates: lists of objects in markup, without a call of the script for each.

use bine_script::{HostModule, RowCell, RowSource, Unwritten, Value};
use proptest::prelude::*;

use crate::support::{Script, Setup, script};

/// Compares `$fillRows` with the callback for `list`: the markup of both, or `callback` if the list
/// needs it.
const COMPARE: &str = r#"
    import { $markup, $html, $row, $fillRows, raw } from "bine:runtime";
    import { tree } from "bine:trees";
    const all = $markup(["", ""], ["t"]);
    export const compare = (pieces, kinds, columns, captured, list) => {
        const m = $markup(pieces, kinds);
        const row = $row(m, columns);
        const value = (one, column) => (typeof column === "string" ? one[column] : captured[column]);
        const filled = $fillRows(row, list, Array.prototype, ...captured);
        if (filled === undefined) return "callback";
        const each = (one) => $html(m, ...columns.map((column) => value(one, column)));
        const [own, expected] = [String(filled), String($html(all, list.map(each)))];
        return own === expected ? own : `${own} differs from ${expected}`;
    };
    const of = (list) => compare(["<", "|", ">"], ["t", "aid"], ["text", 0], ["c & d"], list);
"#;

fn check(list: &str, expected: &str) {
    let script = script(&format!("{COMPARE} export const f = () => of({list});"));
    assert_eq!(script.text("f"), expected, "{list}");
    script.close();
}

#[test]
fn writes_plain_objects_as_the_callback_does() {
    let id = " id=\"c &amp; d\"";
    check("[]", "");
    check("[{ text: 'a < b' }, { text: 3, more: 1 }]", &format!("<a &lt; b|{id}><3|{id}>"));
    check("[{ text: null }, { text: undefined }, { text: true }]", &format!("<|{id}>").repeat(3));
    check("[{ text: raw('<b>') }, { text: ['a', raw('<')] }]", &format!("<<b>|{id}><a<|{id}>"));
    check(
        "[{ text: 0.1 }, { text: 1e21 }, { text: -0 }]",
        &format!("<0.1|{id}><1e+21|{id}><0|{id}>"),
    );
    check("[{ text: '\\ud800' }]", &format!("<\u{fffd}|{id}>"));
}

/// A list whose rows are not read by own data properties alone: the callback could do anything.
#[test]
fn leaves_other_lists_to_the_callback() {
    for list in [
        "[{ get text() { throw new Error('getter') } }]",
        "[{ text: 'a' }, {}]",
        "[Object.create({ text: 'a' })]",
        "[null]",
        "['text']",
        "[['a']]",
        "[new Map()]",
        "[raw('text')]",
        "[new Proxy({ text: 'a' }, {})]",
        "new Proxy([{ text: 'a' }], {})",
        "[, { text: 'a' }]",
        "Object.assign([{ text: 'a' }], { map: () => 'own' })",
        "Object.assign([{ text: 'a' }], { constructor: null })",
        "new (class extends Array {})({ text: 'a' })",
        "({ map: () => 'own' })",
        "'text'",
        "undefined",
        "[{ text: {} }]",
        "[{ text: () => 1 }]",
        "[{ text: Symbol() }]",
        "[{ text: 1n }]",
        "[{ text: Promise.resolve(1) }]",
        "[{ text: tree(raw('a')) }]",
        "[{ text: [tree(raw('a'))] }]",
    ] {
        check(list, "callback");
    }
}

#[test]
fn refuses_row_templates_that_do_not_fit() {
    let failure = |code: &str| {
        let script = script(&format!(
            "import {{ $markup, $row }} from 'bine:runtime';
             const m = $markup(['', ''], ['t']), head = $markup(['', '', ''], ['t', 'h']);
             export const f = () => {{ try {{ {code}; return 'made' }} catch (e) {{ return e.message }} }};"
        ));
        let text = script.text("f");
        script.close();
        text
    };
    assert_eq!(failure("$row(m, ['a'])"), "made");
    let values = "a row template has a value for each hole";
    assert_eq!(failure("$row(m, [])"), values);
    assert_eq!(failure("$row(m, ['a', 'b'])"), values);
    assert_eq!(failure("$row(head, ['a', 'b'])"), values);
    let kinds = "a row template has a template and an array of values";
    for code in ["$row(9, ['a'])", "$row(m, 'a')", "$row(m, [-1])", "$row(m, [{}])", "$row()"] {
        assert_eq!(failure(code), kinds, "{code}");
    }
}

struct Cells<'r>(&'r [RowCell<'r>]);

impl RowSource for Cells<'_> {
    fn cell(&mut self, column: usize) -> Result<RowCell<'_>, Unwritten> {
        self.0.get(column).copied().ok_or(Unwritten)
    }
}

/// A host with its own rows: the writer's output, or null for the callback.
fn host(cells: Vec<Vec<RowCell<'static>>>) -> HostModule {
    HostModule::new("bine:rows").function("write", move |call| {
        let Some(mut writer) = call.row_writer(0) else { return Ok("no row template".into()) };
        for row in &cells {
            let position = |name: &String| usize::from(name.as_bytes()[0] - b'a');
            let row: Vec<_> = writer.columns().iter().map(|name| row[position(name)]).collect();
            if writer.write(&mut Cells(&row)).is_err() {
                return Ok(Value::Null);
            }
        }
        Ok(Value::Html(writer.finish()))
    })
}

fn with_host(cells: Vec<Vec<RowCell<'static>>>, code: &str) -> Script {
    let source = format!("{COMPARE} import {{ write }} from 'bine:rows'; {code}");
    let script =
        Setup { modules: vec![host(cells)], ..Setup::of(&[("index.js", &source)]) }.start();
    script.load();
    script
}

#[test]
fn host_functions_write_rows() {
    let row = vec![RowCell::Text("a < b"), RowCell::Number(7.0)];
    let code =
        "const r = $row($markup(['<li', '>', ' ', '</li>'], ['aid', 't', 't']), ['b', 'a', 0]);
        export const f = () => write(r, 'c & d');
        export const none = () => write(99);";
    let script = with_host(vec![row.clone(), row], code);
    let expected = "<li id=\"7\">a &lt; b c &amp; d</li>";
    assert_eq!(script.text("f"), expected.repeat(2));
    assert_eq!(script.text("none"), "no row template");
    script.close();
}

/// A list larger than the memory of the script fails as the callback fails, not in the host.
#[test]
fn large_lists_are_left_to_the_callback() {
    let mut setup = Setup::of(&[(
        "index.js",
        &format!(
            "{COMPARE} export const f = () => of(Array.from({{ length: 4000 }}).fill({{ text: 'x'.repeat(1000) }}));"
        ),
    )]);
    setup.limits.memory = 2 << 20;
    let script = setup.start();
    script.load();
    assert_eq!(script.text("f"), "callback");
    script.close();
}

fn cells() -> impl Strategy<Value = RowCell<'static>> {
    let texts = ["", "a", "<&>\"'", "javascript:x", "/a?b&c", "data:image/png;base64,AA", "\u{e9}"];
    prop_oneof![
        Just(RowCell::Null),
        any::<bool>().prop_map(RowCell::Bool),
        prop::sample::select(texts.to_vec()).prop_map(RowCell::Text),
        prop_oneof![
            any::<i32>().prop_map(f64::from),
            any::<f64>(),
            Just(-0.0),
            Just(9_007_199_254_740_993.0),
            Just(1e300),
            Just(-1.5)
        ]
        .prop_map(RowCell::Number),
    ]
}

/// A cell as an expression of the script. A number that is not finite cannot pass to it.
fn code(cell: RowCell<'_>) -> String {
    match cell {
        RowCell::Null => "null".to_owned(),
        RowCell::Bool(truth) => truth.to_string(),
        RowCell::Number(number) if number.is_finite() => format!("({number:e}) + 0"),
        RowCell::Number(_) => "({})".to_owned(),
        RowCell::Text(text) => format!("{text:?}"),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn rows_of_the_host_are_those_of_the_callback(
        rows in prop::collection::vec(prop::collection::vec(cells(), 3), 0..6),
        holes in prop::collection::vec(
            (prop::sample::select(vec!["t", "u", "aclass", "lhref", "isrc", "cstyle", "paction", "sa"]), 0_usize..3),
            1..5,
        ),
    ) {
        let kinds: Vec<_> = holes.iter().map(|(kind, _)| *kind).collect();
        let columns: Vec<_> = holes.iter().map(|(_, column)| ["a", "b", "c"][*column]).collect();
        let pieces = vec!["."; kinds.len() + 1];
        let objects: Vec<String> = rows
            .iter()
            .map(|row| format!("{{ a: {}, b: {}, c: {} }}", code(row[0]), code(row[1]), code(row[2])))
            .collect();
        let script = with_host(rows, &format!(
            "const m = $markup({pieces:?}, {kinds:?}), columns = {columns:?};
             const r = $row(m, columns), list = [{}];
             const each = (row) => $html(m, ...columns.map((column) => row[column]));
             const callback = () => {{ try {{ return String($html(all, list.map(each))) }} catch (e) {{ return `throws: ${{e.message}}` }} }};
             export const f = () => {{
                 const [own, expected] = [write(r), callback()];
                 if (own === null) return expected.startsWith('throws') ? 'same' : `left to the callback: ${{expected}}`;
                 if (String(own) !== expected) return `${{own}} differs from ${{expected}}`;
                 const filled = $fillRows(r, list, Array.prototype);
                 return String(filled) === expected ? 'same' : `${{filled}} of objects differs from ${{expected}}`;
             }};",
            objects.join(", ")
        ));
        prop_assert_eq!(script.text("f"), "same");
        script.close();
    }
}

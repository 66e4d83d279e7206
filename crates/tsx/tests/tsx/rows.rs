//! Lists of rows: which callbacks become row templates, and that their pages stay the same.

use crate::engine::{compiled, page};

/// The list of a page as generated code, from the call on, or `callback`.
#[track_caller]
fn list(hole: &str) -> String {
    let source = format!(
        "import {{ Live }} from \"bine\";\nconst Card = (props) => props.children;\nconst early = 1;\n\
         export default ({{ list, limit, label }}, ...more) => {{ let shown = label; return <ul>{{{hole}}}</ul>; \
         var late = 1; const later = 2; }};"
    );
    let code = compiled(&source).code;
    let Some((_, call)) = code.split_once("$rows($r0,") else { return "callback".to_owned() };
    let (_, values) = code.split_once("$r0=$row(").expect("a row template");
    let (values, _) = values.split_once(')').expect("an end");
    let (call, _) = call.split_once("; var late").expect("an end");
    format!("{values} {}", call.trim_end_matches(')'))
}

#[test]
fn finds_callbacks_that_only_read_columns() {
    for (hole, expected) in [
        (
            "list.map((row) => <li id={row.id}>{row.text} <b>{row.id}</b></li>)",
            r#"$m1,["id","text","id"] list,"map",null,(row) => $html($m1,row.id,row.text,row.id)))"#,
        ),
        (
            "list.newest(20).map((row) => (<li>a</li>))",
            r#"$m1,[] list,"newest",20,(row) => ($html($m1))))"#,
        ),
        (
            "list.by(1).oldest(limit).map(({ id, text: body }) => <li id={id}>{body}</li>)",
            r#"$m1,["id","text"] list.by(1),"oldest",limit,({ id, text: body }) => $html($m1,id,body)))"#,
        ),
        (
            "list.all().map((row) => { return <li>{row.text}</li>; })",
            r#"$m1,["text"] list,"all",null,(row) => { return $html($m1,row.text); }))"#,
        ),
        (
            "list.list(3).map((row) => <li>{label} {row.text} {label} {shown}</li>)",
            r#"$m1,[0,"text",0,1] list,"list",3,(row) => $html($m1,label,row.text,label,shown),label,shown))"#,
        ),
        (
            "limit > 1 && (list.map((row) => <li>{row.text}</li>))",
            r#"$m1,["text"] list,"map",null,(row) => $html($m1,row.text))))"#,
        ),
        (
            "list.map((row) => <li>{/* no */}{\"a\"}{row.text}</li>)",
            r#"$m1,["text"] list,"map",null,(row) => $html($m1,row.text)))"#,
        ),
    ] {
        assert_eq!(list(hole), expected.trim_end_matches(')'), "{hole}");
    }
}

#[test]
fn leaves_other_callbacks_as_they_are() {
    for hole in [
        "list.map((row, index) => <li>{index}</li>)",
        "list.map((row) => <li>{row.text.length}</li>)",
        "list.map((row) => <li>{row.show()}</li>)",
        "list.map((row) => <li>{row?.text}</li>)",
        "list.map((row) => <li>{row[\"text\"]}</li>)",
        "list.map((row) => <li>{row}</li>)",
        "list.map((row) => <li {...row}></li>)",
        "list.map((row) => <Card>{row.text}</Card>)",
        "list.map((row) => <li><Live>{row.text}</Live></li>)",
        "list.map((row) => <li>{row.isOpen ? <b>a</b> : null}</li>)",
        "list.map((row) => row.text)",
        "list.map(function (row) { return <li>{row.text}</li>; })",
        "list.map(async (row) => <li>{row.text}</li>)",
        "list.map((row = {}) => <li>{row.text}</li>)",
        "list.map(({ text = 1 }) => <li>{text}</li>)",
        // A pattern reads what no hole shows.
        "list.map(({ id, text }) => <li>{text}</li>)",
        "list.map(({ text, ...rest }) => <li>{text}</li>)",
        "list.map(([text]) => <li>{text}</li>)",
        "list.map((row) => { early; return <li>{row.text}</li>; })",
        "list.map((row) => <li>{row.text}</li>, 1)",
        "list.flatMap((row) => <li>{row.text}</li>)",
        "list?.map((row) => <li>{row.text}</li>)",
        // A callback that does not run throws no error for a variable without a value.
        "list.map((row) => <li>{later}</li>)",
        "list.map((row) => <li>{early}</li>)",
        "list.map((row) => <li>{missing}</li>)",
        "[list.map((row) => <li>{row.text}</li>)]",
        "list.map((row) => <li>{row.text}</li>).slice(1)",
    ] {
        assert_eq!(list(hole), "callback", "{hole}");
    }
    let many = "list.map((row) => <li>{list}{limit}{label}{more}{shown}</li>)";
    assert_eq!(list(many), "callback");
    // The value of an attribute is not the value of a hole in text.
    let attribute = "<li title={list.map((row) => <b>{row.text}</b>)}></li>";
    assert_eq!(list(attribute), "callback");
}

/// Each page runs with the reference implementation, which always calls the callback.
#[test]
fn pages_with_lists_stay_the_same() {
    let source = "
        const rows = [{ id: 1, text: '<' }, { id: 2, text: null }];
        const query = { newest: (n) => rows.slice(0, n), all: () => rows };
        export default (given, label = 'x') => (
          <main>
            <ul>{rows.map((row) => <li id={row.id}>{row.text}</li>)}</ul>
            <ul>{query
              .newest(1)
              .map(({ id }) => (
                <li>{label}{id}</li>
              ))}</ul>
            {rows.length > 1 ? query.all().map((row) => <p>{row.id}</p>) : <p>none</p>}
          </main>
        );";
    let expected = "<main><ul><li id=\"1\">&lt;</li><li id=\"2\"></li></ul><ul><li>x1</li></ul><p>1</p><p>2</p></main>";
    assert_eq!(page(source).as_deref(), Ok(expected));
    let source = "const list = undefined;\nexport default () => (\n  <ul>\n    {list.map((row) => <li>{row.id}</li>)}\n  </ul>\n);";
    let error = page(source).unwrap_err();
    assert!(error.starts_with("4:") && error.contains("cannot read property 'map'"), "{error}");
}

//! Generated markup: a tree has the bytes of the same markup written directly.

use std::fmt::Write as _;

use proptest::prelude::*;
use proptest::strategy::ValueTree as _;
use proptest::test_runner::TestRunner;

use crate::folder::Folder;

/// Pieces of markup of one page, and pages.
const PIECES: usize = 40;
const PAGES: usize = 5;

/// A string of JavaScript.
fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

fn text() -> impl Strategy<Value = String> {
    prop_oneof![
        "[ -~]{0,12}",
        "[<>&\"'a;#]{0,8}",
        any::<String>().prop_map(|text| text.replace('\r', "")),
    ]
}

/// An expression that a hole in text shows.
fn value() -> BoxedStrategy<String> {
    prop_oneof![
        text().prop_map(|text| quoted(&text)),
        // In a function, so that the compiler does not merge it.
        text().prop_map(|text| format!("same({})", quoted(&text))),
        any::<i32>().prop_map(|number| number.to_string()),
        any::<f64>().prop_map(|number| format!("same({number:e})").replace("inf", "Infinity")),
        prop::sample::select(vec![
            "null",
            "undefined",
            "true",
            "false",
            "[]",
            "raw(\"<u>&amp;</u>\")"
        ])
        .prop_map(ToOwned::to_owned),
        prop::collection::vec(text(), 0..3).prop_map(|texts| {
            let items: Vec<_> = texts.iter().map(|text| quoted(text)).collect();
            format!("[{}]", items.join(", "))
        }),
    ]
    .boxed()
}

/// Attributes that any element may have, each with a value of its kind.
fn attributes() -> impl Strategy<Value = String> {
    let one = prop_oneof![
        value()
            .prop_filter("no markup", |value| !value.contains("raw("))
            .prop_map(|value| format!("title={{{value}}}")),
        text().prop_map(|text| format!("id={{same({})}}", quoted(&text))),
        text().prop_map(|text| format!("class={{[{}, false, \"b\"]}}", quoted(&text))),
        any::<bool>().prop_map(|is_hidden| format!("hidden={{same({is_hidden})}}")),
        text().prop_map(|text| format!("style={{raw({})}}", quoted(&text))),
        text().prop_map(|text| format!("{{...{{ lang: {}, \"data-a\": 1 }}}}", quoted(&text))),
    ];
    prop::collection::vec(one, 0..4).prop_map(|mut attributes| {
        // An attribute is written once.
        let name =
            |one: &str| one.chars().take_while(|letter| letter.is_alphabetic()).collect::<String>();
        attributes.sort_by_key(|one| name(one));
        attributes.dedup_by_key(|one| name(one));
        attributes.iter().fold(String::new(), |mut all, one| {
            let _ = write!(all, " {one}");
            all
        })
    })
}

/// Markup without the elements in which a browser ignores a line feed.
fn markup() -> impl Strategy<Value = String> {
    let leaf = prop_oneof![
        value().prop_map(|value| format!("{{{value}}}")),
        "[a-z ]{1,8}".prop_map(|text| text),
        Just("&lt;b&gt; &amp;amp;".to_owned()),
        Just("<br />".to_owned()),
        attributes().prop_map(|attributes| format!("<hr{attributes} />")),
        text().prop_map(|text| format!("<img alt=\"\" src={{same({})}} />", quoted(&text))),
        text().prop_map(|text| format!("<a href={{same({})}}>a</a>", quoted(&text))),
        Just("<script>{\"let a = 1 < 2;\"}{raw(\"&\")}</script>".to_owned()),
    ];
    leaf.prop_recursive(4, 30, 5, |inner| {
        let children = prop::collection::vec(inner, 0..5).prop_map(|children| children.concat());
        prop_oneof![
            (
                prop::sample::select(vec!["div", "section", "article", "my-element"]),
                attributes(),
                children.clone()
            )
                .prop_map(|(name, attributes, children)| format!(
                    "<{name}{attributes}>{children}</{name}>"
                )),
            children.clone().prop_map(|children| format!("<>{children}</>")),
            children
                .clone()
                .prop_map(|children| format!("{{same(true) && <div>{children}</div>}}")),
            children.clone().prop_map(|children| format!(
                "{{[1, 2].map((n) => <div id={{n}}>{children}</div>)}}"
            )),
            children
                .clone()
                .prop_map(|children| format!("<Card name=\"a &lt;\">{children}</Card>")),
            children.prop_map(|children| format!("<Card name={{<>{children}</>}} />")),
        ]
    })
}

/// A page that compares each piece of markup with a tree of it.
fn comparison(pieces: &[String]) -> String {
    let mut source = "import { page, raw, tree } from \"bine\";\n\
         const same = (value: any) => value;\n\
         const Card = ({ name, children }: any) => <section><b>{name}</b>{children}</section>;\n\
         const pieces: [string, () => any, () => any][] = [\n"
        .to_owned();
    for markup in pieces {
        let own = quoted(markup);
        let _ = writeln!(
            source,
            "  [{own}, () => <main>{markup}</main>, () => tree(<main>{markup}</main>)],"
        );
    }
    source.push_str(
        "];\n\
         export default page(() => {\n\
           const wrong = pieces.filter(([, direct, built]) => {\n\
             const [html, one] = [String(direct()), built()];\n\
             return [one, one.clone(), tree(<>{one}</>), <>{one}</>, <>{one}</>].some((own) => String(own) !== html);\n\
           });\n\
           return <p>{wrong.length} of {pieces.length}: {wrong.slice(0, 1).map(([source, direct, built]) =>\n\
             `${source}\\n${direct()}\\n${built()}`)}</p>;\n\
         });\n",
    );
    source
}

#[test]
fn any_tree_has_the_bytes_of_its_markup() {
    let mut runner = TestRunner::default();
    let generated = |runner: &mut TestRunner| markup().new_tree(runner).unwrap().current();
    let mut pages: Vec<(String, String)> = Vec::new();
    for page in 0..PAGES {
        let pieces: Vec<_> = (0..PIECES).map(|_| generated(&mut runner)).collect();
        pages.push((format!("{page}.tsx"), comparison(&pieces)));
    }
    // The one known difference, which the comparison notices.
    let different = ["<pre>{same(\"a\")}</pre>".to_owned()];
    pages.push(("different.tsx".to_owned(), comparison(&different)));
    let mut files: Vec<_> =
        pages.iter().map(|(name, text)| (name.as_str(), text.as_str())).collect();
    files.push(("app.toml", "timeout_ms = 30000\n"));
    files.push((
        "index.tsx",
        "import { page } from \"bine\";\nexport default page(() => <p>a</p>);\n",
    ));
    let folder = Folder::with(&files);
    let site = folder.site();
    for page in 0..PAGES {
        let reply = site.get(&format!("/{page}"));
        let expected = format!("<p>0 of {PIECES}: </p>");
        assert!(reply.text().contains(&expected), "{}\n{}", reply.status(), reply.text());
    }
    let different = site.get("/different").text().to_owned();
    assert!(different.contains("<p>1 of 1: "), "{different}");
}

//! The files for newcomers: the templates of `bine new`, and types for editors that declare exactly
//! the names of the run-time.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::json;

use crate::folder::Folder;

fn starter(file: &str) -> String {
    let path: PathBuf = Path::new(env!("CARGO_MANIFEST_DIR")).join("../cli/starter").join(file);
    fs::read_to_string(path).unwrap()
}

/// The names of the values that a file declares after this word, such as `export`.
fn declared(types: &str, word: &str) -> BTreeSet<String> {
    let lines = types.lines().filter_map(|line| line.strip_prefix(word)?.strip_prefix(' '));
    lines
        .filter_map(|line| {
            let (kind, rest) = line.split_once(' ')?;
            let end = rest.find(|letter: char| !letter.is_ascii_alphanumeric())?;
            ["class", "const", "function"].contains(&kind).then(|| rest[..end].to_owned())
        })
        .collect()
}

/// The words in the paragraph with this id.
fn shown(page: &str, id: &str) -> BTreeSet<String> {
    let (_, rest) = page.split_once(&format!("<p id=\"{id}\">")).unwrap();
    let (text, _) = rest.split_once("</p>").unwrap();
    text.split(' ').filter(|word| !word.is_empty()).map(ToOwned::to_owned).collect()
}

#[test]
fn declares_every_word_and_only_existing_names_for_editors() {
    let globals: Vec<&str> = bine_tsx::browser_globals().collect();
    assert!(globals.contains(&"document") && !globals.contains(&"fetch"), "{globals:?}");
    let source = format!(
        "import * as words from \"bine\";\n\
         const globals: string[] = {globals:?};\n\
         export default words.page(() => <main>\n\
         <p id=\"words\">{{Object.keys(words).join(\" \")}}</p>\n\
         <p id=\"globals\">{{globals.filter((name) => name in globalThis).join(\" \")}}</p>\n\
         </main>);\n",
    );
    let folder = Folder::with(&[("index.tsx", &source)]);
    let page = folder.site().get("/").text().to_owned();
    assert_eq!(shown(&page, "words"), declared(&starter("types/bine.d.ts"), "export"));
    // Those that the compiler rejects in code of the server.
    assert_eq!(shown(&page, "globals"), BTreeSet::new());
}

#[test]
fn declares_every_word_of_the_start_script_for_editors() {
    let types = starter("types/start.d.ts");
    // The types are in the braces of `declare module`.
    let types = types.lines().map(str::trim_start).collect::<Vec<_>>().join("\n");
    let folder = Folder::with(&[(
        "start.ts",
        "import * as words from \"bine:start\";\n\
         words.filter(() => words.respond(`<p id=\"words\">${Object.keys(words).join(\" \")}</p>`));\n",
    )]);
    let page = folder.site().get("/").text().to_owned();
    assert_eq!(shown(&page, "words"), declared(&types, "export"));
}

#[test]
fn serves_the_board() {
    let files = ["index.tsx", "_layout.tsx", "public/style.css"];
    let files = files.map(|file| (file, starter(&format!("board/{file}"))));
    let files = files.each_ref().map(|(file, text)| (*file, text.as_str()));
    let folder = Folder::with(&files);
    let site = folder.site();
    assert_eq!(site.get("/style.css").status(), 200);
    let (mut one, mut other) = (site.visit("/"), site.visit("/"));
    one.submit("form", [("body", "Which <b>seed</b>?")]);
    one.expect("li", "Which <b>seed</b>?");
    other.expect("li", "Which <b>seed</b>?");
    let long = site.post_json("/post", &json!({ "body": "x".repeat(501) }));
    assert_eq!(long.status(), 422, "{}", long.text());
}

#[test]
fn serves_the_blank_template() {
    let page = starter("blank/index.tsx");
    let folder =
        Folder::with(&[("index.tsx", &page), ("_layout.tsx", &starter("blank/_layout.tsx"))]);
    let page = folder.site().get("/").text().to_owned();
    assert!(page.contains("<main><h1>It works</h1>"), "{page}");
}

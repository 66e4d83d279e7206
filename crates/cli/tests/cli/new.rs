//! Tests of `bine new` and `bine types`.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

#[cfg(feature = "script")]
use crate::bine;
use crate::harness::Folder;
#[cfg(feature = "script")]
use crate::harness::Program;
use crate::run;

/// The paths of all files below a folder.
fn files(folder: &Path) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(next) = folders.pop() {
        for entry in fs::read_dir(next).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else {
                let name = path.strip_prefix(folder).unwrap();
                found.insert(name.to_str().unwrap().to_owned());
            }
        }
    }
    found
}

/// Asserts that the command fails with this code and this first line, and writes no file.
#[track_caller]
fn check_refused(folder: &Folder, arguments: &[&str], code: i32, message: &str) {
    let before = files(folder.path());
    let ended = run(arguments);
    assert_eq!((ended.code, &*ended.output), (Some(code), ""), "{ended:?}");
    let first = ended.errors.lines().next().unwrap_or_default();
    assert!(first.contains(message), "{first}");
    assert_eq!(files(folder.path()), before);
}

#[test]
fn writes_an_application() {
    let folder = Folder::new();
    for (arguments, name, title) in [
        (&[][..], "my-board", "My board"),
        (&["--template", "board"], "second", "Second"),
        (&["--template=blank"], "third", "Third"),
    ] {
        let path = folder.join(name);
        let path = path.to_str().unwrap();
        let ended = run(&[&["new", path], arguments].concat());
        assert_eq!((ended.code, &*ended.errors), (Some(0), ""), "{ended:?}");
        assert!(
            ended.output.ends_with(&format!("\n  bine serve {path} --development on\n")),
            "{}",
            ended.output
        );
        let expected = [
            ".bine/types/bine.d.ts",
            ".bine/types/browser.d.ts",
            ".bine/types/elements.d.ts",
            ".bine/types/globals.d.ts",
            ".bine/types/jsx-dev-runtime.d.ts",
            ".bine/types/jsx-runtime.d.ts",
            ".bine/types/markup.d.ts",
            ".bine/types/start.d.ts",
            ".bine/types/trees.d.ts",
            ".gitignore",
            "_layout.tsx",
            "app.toml",
            "index.tsx",
            "public/icon.svg",
            "public/style.css",
            "tsconfig.json",
        ];
        assert_eq!(files(path.as_ref()), expected.map(ToOwned::to_owned).into());
        let settings = fs::read_to_string(folder.join(name).join("app.toml")).unwrap();
        assert_eq!(settings, format!("title = \"{title}\"\n"));
    }
    let page = |name: &str| fs::read_to_string(folder.join(name).join("index.tsx")).unwrap();
    assert_eq!(page("my-board"), page("second"));
    assert!(page("second").contains("<Live>") && !page("third").contains("<Live>"));
}

/// The chapter of applications in TSX begins with the board.
#[test]
fn writes_the_program_that_the_guide_explains() {
    let folder = Folder::new();
    let site = folder.join("board");
    assert_eq!(run(&["new", site.to_str().unwrap()]).code, Some(0));
    let chapter = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/guide/scripts.md");
    let chapter = fs::read_to_string(chapter).unwrap();
    let page = fs::read_to_string(site.join("index.tsx")).unwrap();
    assert!(chapter.contains(&format!("\n```tsx index.tsx\n{page}```\n")));
}

#[test]
fn writes_every_type_that_the_sources_have() {
    let folder = Folder::new();
    let site = folder.join("board");
    assert_eq!(run(&["new", site.to_str().unwrap()]).code, Some(0));
    let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("starter/types");
    assert_eq!(files(&site.join(".bine/types")), files(&sources));
}

#[test]
fn writes_into_an_empty_folder_only() {
    let folder = Folder::new();
    let empty = folder.join("empty");
    fs::create_dir(&empty).unwrap();
    assert_eq!(run(&["new", empty.to_str().unwrap()]).code, Some(0));
    let again = ["new", empty.to_str().unwrap()];
    check_refused(&folder, &again, 1, "empty is not empty; choose another name");
    let file = folder.write("file", b"");
    check_refused(
        &folder,
        &["new", file.to_str().unwrap()],
        1,
        "path, is a file; choose another name",
    );
    let below = folder.join("file/board");
    let below = ["new", below.to_str().unwrap()];
    check_refused(&folder, &below, 1, "path, is a file; choose another name");
}

#[test]
fn explains_wrong_arguments() {
    let folder = Folder::new();
    let path = |name: &str| folder.join(name).to_str().unwrap().to_owned();
    let (board, upper) = (path("board"), path("Board"));
    for (arguments, message) in [
        (&["new"][..], "bine: `bine new` needs one name, such as `bine new board`"),
        (&["new", &board, "more"], "bine: `bine new` needs one name"),
        (&["new", &upper], "bine: `Board` is no name of an application; it has 1 to 40 lower-case"),
        (&["new", ".."], "bine: `` is no name of an application"),
        (&["new", &board, "--template"], "bine: --template needs the name of a template"),
        (
            &["new", &board, "--template", "bord"],
            "bine: there is no template `bord`; did you mean `board`? (all: board, blank)",
        ),
        (&["new", &board, "--templates=board"], "bine: `bine new` has no option --templates=board"),
        (&["types", &board, "more"], "bine: `bine types` needs at most one folder"),
        (&["types", "--all"], "bine: `bine types` has no option --all"),
    ] {
        check_refused(&folder, arguments, 2, message);
    }
    check_refused(&folder, &["types", &board], 1, "is no folder; name the folder of a site");
}

#[test]
fn prints_help() {
    for (command, usage) in [("new", "Usage: bine new NAME"), ("types", "Usage: bine types [DIR]")]
    {
        let ended = run(&[command, "--help"]);
        assert_eq!((ended.code, &*ended.errors), (Some(0), ""));
        assert!(ended.output.starts_with(usage), "{}", ended.output);
    }
}

#[test]
fn refreshes_types_and_keeps_a_configuration() {
    let folder = Folder::new();
    folder.write("index.tsx", b"1;\n");
    folder.write(".bine/types/bine.d.ts", b"old");
    let site = folder.path().to_str().unwrap();
    let ended = run(&["types", site]);
    assert_eq!((ended.code, &*ended.errors), (Some(0), ""), "{ended:?}");
    assert!(ended.output.trim_end().ends_with(".bine/types"), "{}", ended.output);
    let read = |name: &str| fs::read_to_string(folder.join(name)).unwrap();
    assert!(read(".bine/types/bine.d.ts").contains("export function page"));
    assert!(read("tsconfig.json").contains("\"jsxImportSource\": \"bine\""));
    assert_eq!(read("index.tsx"), "1;\n");
    folder.write("tsconfig.json", b"{}\n");
    assert_eq!(run(&["types", site]).code, Some(0));
    assert_eq!(read("tsconfig.json"), "{}\n");
}

/// Regression: the style sheet of the demo, which is linked into the program, changed the look of
/// every application. `bine serve` now leaves it out.
#[cfg(feature = "script")]
#[test]
fn serves_an_application_with_its_own_style_sheet_only() {
    let folder = Folder::new();
    let site = folder.join("board");
    let site = site.to_str().unwrap();
    assert_eq!(run(&["new", site]).code, Some(0));
    let program = Program::start(&mut bine(&["serve", site, "--listen", "127.0.0.1:0"]));
    let reply = program.connect().get("/");
    let page = String::from_utf8(reply.body).unwrap();
    let links: Vec<&str> = page.split("<link ").skip(1).collect();
    assert_eq!(links.len(), 2, "{page}");
    assert!(links[0].starts_with("rel=\"stylesheet\" href=\"/style.css\""), "{page}");
    assert!(links[1].starts_with("rel=\"icon\" href=\"/icon.svg\""), "{page}");
}

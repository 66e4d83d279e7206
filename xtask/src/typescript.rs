//! Checks with the TypeScript compiler what an editor reports about applications in TSX.
//!
//! The compiler accepts the templates of `bine new`, the programs of the guide and the golden files
//! of the crate `tsx`. In `xtask/typescript`, it rejects exactly the lines with a comment
//! `// rejected: ` and a part of the message.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};

use crate::report::Tally;
use crate::{paths, tools};

/// The files that `bine new` writes, and the types.
const STARTER: &str = "crates/cli/starter";
/// The templates of `bine new`.
const TEMPLATES: [&str; 2] = ["blank", "board"];
/// The chapters of the guide that write the files of a site, one after the other, each with its
/// template.
const TUTORIALS: [(&str, &str); 5] = [
    ("docs/guide/scripts.md", "board"),
    ("docs/guide/scripts-browser.md", "blank"),
    ("docs/guide/scripts-channels.md", "blank"),
    ("docs/guide/scripts-forms.md", "board"),
    ("docs/guide/scripts-start.md", "board"),
];
/// The chapters whose blocks of `tsx` are modules of their own.
const MODULES: [&str; 4] = [
    "docs/guide/scripts-channels.md",
    "docs/guide/scripts-forms.md",
    "docs/guide/scripts-tables.md",
    "docs/guide/scripts-trees.md",
];
/// The chapters that show both languages, whose files of TSX are one application each.
const CHAPTERS: [&str; 19] = [
    "accounts",
    "actions",
    "api-tokens",
    "channels",
    "files",
    "headers",
    "live",
    "markup",
    "overload",
    "pages",
    "remote",
    "rights",
    "schedulers",
    "services",
    "sessions",
    "style",
    "tables",
    "testing",
    "trees",
];
/// An example that calls services of Rust.
const AUCTION: &str = "examples/auction/site/tsx";
/// The folder of the files with mistakes. Its folder `services` has the declarations that a test of
/// `bine` writes for the services of a program.
const MISTAKES: &str = "xtask/typescript";
/// A file that declares services of any types, in place of the declarations that a program in Rust
/// writes.
const ANY_SERVICES: &str = "any-services.d.ts";
/// The folder of a file of the browser with mistakes. Its declarations of services are those that a test
/// of `bine` writes, and its configuration is the one of the guide.
const BROWSER: &str = "xtask/typescript/browser";
/// The chapter about files of the browser in programs in Rust.
const BROWSER_CHAPTER: &str = "docs/guide/browser.md";
/// The types of the script of pages.
const BROWSER_WORDS: &str = "crates/browser/src/browser.d.ts";
/// Folders of programs in Rust with files of the browser.
const BROWSER_FILES: [&str; 3] = [
    "crates/bine/tests/browser_files",
    "crates/bine/tests/browser_files/folder",
    "crates/cli/demo",
];
/// The comment on a line that the compiler rejects, before a part of the message.
const REJECTED: &str = "// rejected: ";
/// The golden files test the erasure of types; they import files that need not exist, and have
/// values of any type.
const STUBS: [(&str, &str); 7] = [
    (
        "effects.browser.ts",
        "export const MAX = 1;\nexport const flash = (element: unknown, color?: string) => {};\n",
    ),
    ("news.ts", "import { channel } from \"bine\";\nexport const news = channel(\"news\");\n"),
    ("forums.ts", "export const post = (values: unknown) => values;\n"),
    ("sounds.browser.ts", "export const play = (volume: number, options: unknown) => {};\n"),
    ("rooms.ts", "export default [1];\n"),
    ("rows.ts", "export type Row = 1;\nexport type Two = 2;\nexport const one = 1;\n"),
    (
        "tsconfig.json",
        "{ \"extends\": \"./tsconfig.strict.json\", \"compilerOptions\": { \"strict\": false } }\n",
    ),
];

/// Installs the compiler and runs the check alone.
pub(crate) fn run() -> Result<()> {
    tools::install_typescript()?;
    let mut tally = Tally::default();
    check(&mut tally)?;
    ensure!(tally.failed == 0, "the types are wrong");
    Ok(())
}

/// Runs all checks.
pub(crate) fn check(tally: &mut Tally) -> Result<()> {
    for template in TEMPLATES {
        let folder = site(template, &paths::root().join(STARTER).join(template))?;
        tally.check(&format!("TypeScript accepts the template {template}"), accept(&folder));
    }
    let golden = site("golden", &paths::root().join("crates/tsx/tests/tsx/golden"))?;
    fs::rename(golden.join("tsconfig.json"), golden.join("tsconfig.strict.json"))?;
    for (name, text) in STUBS {
        fs::write(golden.join(name), text)?;
    }
    tally.check("TypeScript accepts the golden files of the compiler", accept(&golden));
    tally.check("TypeScript accepts the pages of the auction", accept_auction());
    let mistakes = site("mistakes", &paths::root().join(MISTAKES))?;
    copy(&paths::root().join(MISTAKES).join("services"), &mistakes.join(".bine/types"))?;
    fs::remove_file(mistakes.join(ANY_SERVICES))?;
    tally.check("TypeScript rejects exactly the wrong lines", reject(&mistakes));
    tally.check("TypeScript accepts the files of the browser in programs", accept_browser_files());
    tally.check("TypeScript rejects wrong uses of services in the browser", reject_browser_file());
    for (chapter, template) in TUTORIALS {
        let followed = follow_tutorial(chapter, template);
        tally.check(&format!("TypeScript accepts each step of {chapter}"), followed);
    }
    for chapter in MODULES {
        let accepted = accept_modules(chapter);
        tally.check(&format!("TypeScript accepts the modules of {chapter}"), accepted);
    }
    for chapter in CHAPTERS {
        let claim = format!("TypeScript accepts the files of the chapter {chapter}");
        tally.check(&claim, accept_chapter(chapter));
    }
    Ok(())
}

/// A new folder with the files of `from`, the types and the configuration.
fn site(name: &str, from: &Path) -> Result<PathBuf> {
    let folder = paths::target().join("typescript").join(name);
    if folder.exists() {
        fs::remove_dir_all(&folder)?;
    }
    let starter = paths::root().join(STARTER);
    copy(&starter.join("types"), &folder.join(".bine/types"))?;
    copy(from, &folder)?;
    fs::copy(starter.join("tsconfig.json"), folder.join("tsconfig.json"))?;
    fs::write(folder.join(ANY_SERVICES), "declare module \"bine:services\";\n")?;
    Ok(folder)
}

/// Copies the files of a folder, without its folders.
fn copy(from: &Path, to: &Path) -> Result<()> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from).with_context(|| from.display().to_string())? {
        let entry = entry?;
        if entry.file_type()?.is_file() {
            fs::copy(entry.path(), to.join(entry.file_name()))?;
        }
    }
    Ok(())
}

/// The output of the compiler for a folder: no line, or one for each error, and more that are
/// indented.
fn compile(folder: &Path) -> Result<String> {
    let mut compiler = Command::new(tools::typescript());
    compiler.args(["--project", ".", "--pretty", "false"]).current_dir(folder);
    let output = compiler.output().context("cannot start the TypeScript compiler")?;
    let text = String::from_utf8(output.stdout)?;
    let errors = String::from_utf8_lossy(&output.stderr);
    ensure!(errors.is_empty(), "the compiler failed: {errors}");
    ensure!(output.status.success() == text.is_empty(), "{}: {text}", output.status);
    Ok(text)
}

fn accept(folder: &Path) -> Result<()> {
    let errors = compile(folder)?;
    ensure!(errors.is_empty(), "{errors}");
    Ok(())
}

fn reject(folder: &Path) -> Result<()> {
    let mut expected = BTreeMap::new();
    for name in [
        "browser.tsx",
        "forms.ts",
        "markup.tsx",
        "services.tsx",
        "start.ts",
        "trees.tsx",
        "words.ts",
    ] {
        expected.extend(marked(name, &fs::read_to_string(folder.join(name))?));
    }
    compare(&expected, &errors(&compile(folder)?)?)
}

/// A line: the name of the file and the number of the line.
type Line = (String, usize);

/// The lines that the compiler must reject, with a part of the message.
fn marked(name: &str, text: &str) -> BTreeMap<Line, String> {
    let lines = text.lines().enumerate();
    let lines = lines.filter_map(|(at, line)| Some((at + 1, line.split_once(REJECTED)?.1)));
    lines.map(|(at, part)| ((name.to_owned(), at), part.to_owned())).collect()
}

/// The errors of the compiler by line: `words.ts(3,1): error TS2345: ..`.
fn errors(output: &str) -> Result<BTreeMap<Line, String>> {
    let mut errors = BTreeMap::<Line, String>::new();
    let mut last = None;
    for text in output.lines() {
        if !text.starts_with(' ') {
            let (name, rest) = text.split_once('(').with_context(|| text.to_owned())?;
            let line = rest.split(',').next().unwrap_or_default().parse();
            last = Some((name.to_owned(), line.with_context(|| text.to_owned())?));
        }
        let Some(line) = last.clone() else { bail!("an error without a line: {text}") };
        let message = errors.entry(line).or_default();
        message.push_str(text);
        message.push('\n');
    }
    Ok(errors)
}

fn compare(expected: &BTreeMap<Line, String>, found: &BTreeMap<Line, String>) -> Result<()> {
    ensure!(!expected.is_empty(), "no line is marked");
    let mut wrong = Vec::new();
    for ((name, line), part) in expected {
        match found.get(&(name.clone(), *line)) {
            None => wrong.push(format!("{name}:{line}: no error, expected `{part}`")),
            Some(message) if message.contains(part) => {}
            Some(message) => wrong.push(format!("{message}expected `{part}`")),
        }
    }
    let others = found.iter().filter(|(line, _)| !expected.contains_key(line));
    wrong.extend(others.map(|(_, message)| message.clone()));
    ensure!(wrong.is_empty(), "{}", wrong.join("\n"));
    Ok(())
}

/// Writes the files of a chapter one after the other, and compiles the site after each.
fn follow_tutorial(chapter: &str, template: &str) -> Result<()> {
    let text = fs::read_to_string(paths::root().join(chapter))?;
    let folder = site("guide", &paths::root().join(STARTER).join(template))?;
    let files: Vec<_> = files(&text).collect();
    ensure!(!files.is_empty(), "{chapter} has no program");
    for (name, text) in files {
        let path = folder.join(name);
        fs::create_dir_all(path.parent().context("a file is in a folder")?)?;
        fs::write(&path, text)?;
        accept(&folder).with_context(|| format!("after {name}"))?;
    }
    Ok(())
}

/// Compiles the modules of a chapter together.
fn accept_modules(chapter: &str) -> Result<()> {
    let text = fs::read_to_string(paths::root().join(chapter))?;
    let folder = site("modules", &paths::root().join(STARTER).join("blank"))?;
    let is_module = |kind: &str| kind == "tsx" || kind.starts_with("tsx ");
    let modules: Vec<_> = blocks(&text).filter(|(kind, _)| is_module(kind)).collect();
    ensure!(!modules.is_empty(), "{chapter} has no module");
    for (number, (_, text)) in modules.into_iter().enumerate() {
        fs::write(folder.join(format!("module-{number}.tsx")), text)?;
    }
    accept(&folder)
}

/// Compiles the example whose pages call services of Rust.
fn accept_auction() -> Result<()> {
    let pages = paths::root().join(AUCTION);
    let folder = site("auction", &pages)?;
    copy(&pages.join("items"), &folder.join("items"))?;
    accept(&folder)
}

/// A new folder for files of the browser, with the types and the configuration. `services`: the
/// declarations of the services.
fn browser_folder(name: &str, services: &str) -> Result<PathBuf> {
    let folder = paths::target().join("typescript").join(name);
    if folder.exists() {
        fs::remove_dir_all(&folder)?;
    }
    fs::create_dir_all(&folder)?;
    let root = paths::root();
    fs::copy(root.join(BROWSER).join("tsconfig.json"), folder.join("tsconfig.json"))?;
    fs::copy(root.join(BROWSER_WORDS), folder.join("browser.d.ts"))?;
    fs::write(folder.join("browser-services.d.ts"), services)?;
    Ok(folder)
}

/// Compiles the files of the browser of the tests, the demo and the guide.
fn accept_browser_files() -> Result<()> {
    let root = paths::root();
    let folder = browser_folder("browser-files", "declare module \"bine:services\";\n")?;
    let mut count = 0;
    for name in BROWSER_FILES {
        for entry in fs::read_dir(root.join(name))? {
            let path = entry?.path();
            let text = path.to_string_lossy().into_owned();
            if text.ends_with(".browser.ts") {
                let own = folder.join(path.strip_prefix(root)?);
                fs::create_dir_all(own.parent().context("a file is in a folder")?)?;
                fs::copy(&path, own)?;
                count += 1;
            }
        }
    }
    let chapter = fs::read_to_string(root.join(BROWSER_CHAPTER))?;
    for (name, text) in files(&chapter) {
        fs::write(folder.join(name), text)?;
        count += 1;
    }
    ensure!(count > 3, "only {count} files of the browser were found");
    let configuration = fs::read_to_string(root.join(BROWSER).join("tsconfig.json"))?;
    let shown = blocks(&chapter).find(|(kind, _)| *kind == "json").map(|(_, text)| text);
    let options = |text: &str| text.split("\"include\"").next().map(str::to_owned);
    ensure!(shown.and_then(options) == options(&configuration), "the guide has other options");
    accept(&folder)
}

/// Compiles a file of the browser with mistakes.
fn reject_browser_file() -> Result<()> {
    let source = paths::root().join(BROWSER);
    let services = fs::read_to_string(source.join("browser-services.d.ts"))?;
    let folder = browser_folder("browser-mistakes", &services)?;
    let text = fs::read_to_string(source.join("files.browser.ts"))?;
    fs::write(folder.join("files.browser.ts"), &text)?;
    compare(&marked("files.browser.ts", &text), &errors(&compile(&folder)?)?)
}

/// Compiles the files of a chapter together.
fn accept_chapter(name: &str) -> Result<()> {
    let path = paths::root().join("docs/guide").join(name).with_extension("md");
    let chapter = fs::read_to_string(path)?;
    let folder = site(&format!("chapter-{name}"), &paths::root().join(STARTER).join("blank"))?;
    let files: Vec<_> = files(&chapter).collect();
    ensure!(!files.is_empty(), "{name} has no file of TSX");
    for (name, text) in files {
        let path = folder.join(name);
        fs::create_dir_all(path.parent().context("a file is in a folder")?)?;
        fs::write(&path, text)?;
    }
    accept(&folder)
}

/// The files in a chapter: blocks that begin with the name of the language and of the file.
fn files(chapter: &str) -> impl Iterator<Item = (&str, &str)> {
    blocks(chapter).filter_map(|(kind, text)| {
        let (language, name) = kind.split_once(' ')?;
        ["ts", "tsx"].contains(&language).then_some((name, text))
    })
}

/// The fenced blocks of a chapter: their kind and their text.
fn blocks(chapter: &str) -> impl Iterator<Item = (&str, &str)> {
    chapter.split("\n```").skip(1).step_by(2).filter_map(|block| block.split_once('\n'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reports_missing_wrong_and_unexpected_errors() {
        let expected =
            marked("a.ts", "a; // rejected: one\nb; // rejected: two\nc; // rejected: x\n");
        let output = "a.ts(1,2): error TS1: number one\na.ts(3,1): error TS2: y\n  and more\nb.ts(4,1): error TS3: z\n";
        let message = compare(&expected, &errors(output).unwrap()).unwrap_err().to_string();
        let lines = [
            "a.ts:2: no error, expected `two`",
            "a.ts(3,1): error TS2: y\n  and more\nexpected `x`",
            "b.ts(4,1): error TS3: z\n",
        ];
        assert_eq!(message, lines.join("\n"));
        let found = errors("a.ts(1,1): one\na.ts(2,1): two\na.ts(3,1): x\n").unwrap();
        assert!(compare(&expected, &found).is_ok());
        assert!(compare(&marked("a.ts", "a;\n"), &BTreeMap::new()).is_err());
        assert!(errors("no place\n").is_err());
    }

    #[test]
    fn finds_the_files_of_a_chapter() {
        let chapter =
            "a\n\n```tsx index.tsx\n<p />\n```\n\n```sh\nls\n```\n\n```ts lib/a.ts\nb\n```\n";
        let found: Vec<_> = files(chapter).collect();
        assert_eq!(found, [("index.tsx", "<p />"), ("lib/a.ts", "b")]);
    }
}

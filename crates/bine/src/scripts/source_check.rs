//! The check of applications without running them: by the compiler, and by `tsc` if it is installed.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

use super::folders::AppFolder;
use super::generation::{Generation, START};
use super::source_mistakes::{SourceCheck, SourceMistake};
use crate::service::in_process::ServiceDirectory;

/// Checks the applications of a site, and its start script. `services`: those of the program in Rust.
///
/// # Errors
///
/// `tsc` cannot be run.
pub(super) fn check(
    root: &Path,
    apps: Vec<AppFolder>,
    services: &ServiceDirectory,
) -> Result<SourceCheck, String> {
    let mut check = SourceCheck::default();
    for app in apps {
        let path = app.path.clone();
        match Generation::compile(1, app, Some(services)) {
            Ok(generation) => {
                check.files += generation.files().count();
                // It has the path of the application.
                let mistake = generation.service_mistake(Some(services));
                check.mistakes.extend(mistake.map(|text| SourceMistake::of_text("", &text)));
            }
            Err(failure) => {
                check.files += failure.files();
                let found = failure.errors.iter();
                check.mistakes.extend(found.map(|text| SourceMistake::of_text(&path, text)));
            }
        }
    }
    if root.join(START).is_file() {
        match Generation::compile_start(1, root) {
            Ok(generation) => check.files += generation.files().count(),
            Err(failure) => {
                check.files += failure.files();
                let found = failure.errors.iter();
                check.mistakes.extend(found.map(|text| SourceMistake::of_text("", text)));
            }
        }
    }
    check.note = match (root.join("tsconfig.json").is_file(), type_checker(root)) {
        (false, _) => "types are not checked, because there is no tsconfig.json: `bine types` writes it"
            .to_owned(),
        (true, None) => "types are not checked, because there is no `tsc`: `npm install --save-dev typescript` installs it"
            .to_owned(),
        (true, Some(program)) => {
            check.mistakes.extend(check_types(root, &program)?);
            "types are checked by `tsc`".to_owned()
        }
    };
    Ok(check)
}

/// The compiler of TypeScript: that of the site or of a folder around it, or of the search path.
fn type_checker(root: &Path) -> Option<PathBuf> {
    let root = fs::canonicalize(root).ok()?;
    let own = root.ancestors().map(|folder| folder.join("node_modules/.bin/tsc"));
    let path = env::var_os("PATH").unwrap_or_default();
    let others: Vec<PathBuf> = env::split_paths(&path).map(|folder| folder.join("tsc")).collect();
    own.chain(others).find(|program| program.is_file())
}

/// The mistakes that `tsc` reports.
fn check_types(root: &Path, program: &Path) -> Result<Vec<SourceMistake>, String> {
    let shown = program.display();
    let arguments = ["--noEmit", "--pretty", "false", "--project", "."];
    let ran = Command::new(program).args(arguments).current_dir(root).output();
    let ran = ran.map_err(|error| format!("cannot run {shown}: {error}"))?;
    let text = String::from_utf8_lossy(&ran.stdout);
    let mut found: Vec<SourceMistake> = Vec::new();
    for line in text.lines() {
        match type_mistake(line) {
            Some(mistake) => found.push(mistake),
            // The details of the mistake before are indented.
            None => {
                if let Some(last) = found.last_mut() {
                    last.message.push('\n');
                    last.message.push_str(line);
                }
            }
        }
    }
    if found.is_empty() && !ran.status.success() {
        let errors = String::from_utf8_lossy(&ran.stderr);
        return Err(format!("{shown} failed ({}): {}{}", ran.status, text.trim(), errors.trim()));
    }
    Ok(found)
}

/// A line such as `board/index.tsx(3,14): error TS2322: Type ..`.
fn type_mistake(line: &str) -> Option<SourceMistake> {
    let (place, message) = line.split_once("): error ")?;
    let (file, place) = place.rsplit_once('(')?;
    let (line, column) = place.split_once(',')?;
    Some(SourceMistake {
        file: file.to_owned(),
        line: Some(line.parse().ok()?),
        column: Some(column.parse().ok()?),
        message: message.to_owned(),
        excerpt: String::new(),
        source: "typescript",
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scripts::folders;
    use crate::scripts::testing::Folder;

    fn checked(files: &[(&str, &str)]) -> SourceCheck {
        let folder = Folder::with(files);
        let apps = folders::find(folder.path()).unwrap();
        check(folder.path(), apps, &ServiceDirectory::default()).unwrap()
    }

    const PAGE: &str = "import { page } from \"bine\";\nexport default page(() => <h1>a</h1>);\n";

    #[test]
    fn reads_what_the_compiler_of_typescript_prints() {
        let found = type_mistake("board/a(1).tsx(3,14): error TS2322: Type 'a' is (b).").unwrap();
        assert_eq!((&*found.file, found.line, found.column), ("board/a(1).tsx", Some(3), Some(14)));
        assert_eq!(found.message, "TS2322: Type 'a' is (b).");
        assert_eq!(type_mistake("  Type 'a' is not assignable."), None);
    }

    #[test]
    fn reports_the_mistakes_of_all_applications() {
        let check = checked(&[
            ("good/index.tsx", PAGE),
            (
                "board/index.tsx",
                "import { page } from \"bine\";\nexport default page(() => <h1 onclick={() => documnet.title}>a</h1>);\n",
            ),
            (
                "shop/index.tsx",
                "import { page } from \"bine\";\nimport { post } from \"bine:services\";\nexport default page(() => <form action={post}><button>a</button></form>);\n",
            ),
            (
                "missing/index.tsx",
                "import { page } from \"bine\";\nimport { a } from \"./a.ts\";\nexport default page(() => <h1>{a}</h1>);\n",
            ),
            ("start.ts", ""),
        ]);
        let places: Vec<_> = check
            .mistakes
            .iter()
            .map(|one| (&*one.file, one.line.unwrap_or(0), one.column.unwrap_or(0)))
            .collect();
        assert_eq!(
            places,
            [
                ("board/index.tsx", 2, 46),
                ("missing/index.tsx", 2, 19),
                ("shop/index.tsx", 2, 22),
                ("start.ts", 1, 1),
            ],
            "{:?}",
            check.mistakes
        );
        let messages: Vec<_> = check.mistakes.iter().map(|one| &*one.message).collect();
        assert!(messages[0].starts_with("browsers have no global `documnet`"), "{messages:?}");
        assert!(check.mistakes[0].excerpt.contains('^'));
        assert!(check.note.contains("there is no tsconfig.json"), "{}", check.note);
        assert_eq!(check.files, 6);
    }

    #[test]
    fn reports_nothing_about_correct_applications() {
        let check = checked(&[("index.tsx", PAGE)]);
        assert!(check.mistakes.is_empty(), "{:?}", check.mistakes);
        assert_eq!(check.files, 1);
    }
}

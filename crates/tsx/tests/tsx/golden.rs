//! Golden files: `golden/*.tsx` with the code, `refused/*.tsx` with the errors.
//! `UPDATE_GOLDENS=1` writes them.

use std::path::Path;
use std::{env, fs};

use bine_tsx::{BrowserModule, Module, compile};

#[test]
fn compiles_each_module_to_its_golden_file() {
    check("golden", "js", |name, source| match compile(name, source) {
        Ok(Module { code, facts, browser, .. }) => {
            let browser = browser.map(|BrowserModule { imports, code, .. }| {
                format!("\n// In the browser:\n{code}\n/*\n{imports:#?}\n*/\n")
            });
            format!("{code}\n/*\n{facts:#?}\n*/\n{}", browser.unwrap_or_default())
        }
        Err(errors) => panic!("{name}: {errors:?}"),
    });
}

#[test]
fn keeps_every_line_in_place() {
    for_each("golden", |path, source| {
        let name = path.to_string_lossy();
        let Ok(module) = compile(&name, source) else { panic!("{name}") };
        assert_eq!(module.code.lines().count(), source.lines().count(), "{name}");
    });
}

#[test]
fn reports_each_mistake_at_its_location() {
    check("refused", "txt", |name, source| match compile(name, source) {
        Ok(_) => panic!("{name} compiles"),
        Err(errors) => {
            errors.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n\n") + "\n"
        }
    });
}

fn for_each(folder: &str, mut visit: impl FnMut(&Path, &str)) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/tsx").join(folder);
    let entries = fs::read_dir(folder).expect("the folder of golden files");
    let mut paths: Vec<_> = entries.map(|entry| entry.expect("an entry").path()).collect();
    paths.retain(|path| path.extension().is_some_and(|end| end == "tsx" || end == "ts"));
    paths.sort();
    assert!(!paths.is_empty());
    for path in paths {
        visit(&path, &fs::read_to_string(&path).expect("a module"));
    }
}

fn check(folder: &str, end: &str, write: impl Fn(&str, &str) -> String) {
    let mut wrong = Vec::new();
    for_each(folder, |path, source| {
        let name = path.file_name().expect("a name").to_string_lossy();
        let written = write(&name, source);
        let golden = path.with_extension(end);
        if env::var_os("UPDATE_GOLDENS").is_some() {
            fs::write(&golden, &written).expect("a golden file");
        } else if fs::read_to_string(&golden).ok().as_deref() != Some(&*written) {
            wrong.push(format!("{name}:\n{written}"));
        }
    });
    assert!(wrong.is_empty(), "differ from their golden files:\n{}", wrong.join("\n"));
}

//! The programs that newcomers get: the templates of `bine new`, and the programs of the guide.

use std::fs;
use std::path::{Path, PathBuf};

use bine_tsx::compile;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Asserts that a module compiles.
#[track_caller]
fn check(name: &str, source: &str) {
    if let Err(errors) = compile(name, source) {
        let errors: Vec<String> = errors.iter().map(ToString::to_string).collect();
        panic!("{}", errors.join("\n\n"));
    }
}

#[test]
fn compiles_the_templates() {
    for template in ["blank", "board"] {
        for file in ["index.tsx", "_layout.tsx"] {
            let path = root().join("crates/cli/starter").join(template).join(file);
            check(&format!("{template}/{file}"), &fs::read_to_string(path).expect("a template"));
        }
    }
}

#[test]
fn compiles_the_programs_of_the_guide() {
    let chapter = fs::read_to_string(root().join("docs/guide/scripts.md")).expect("the chapter");
    let blocks = chapter.split("\n```").skip(1).step_by(2);
    let mut count = 0;
    for (kind, text) in blocks.filter_map(|block| block.split_once('\n')) {
        if kind.starts_with("tsx ") || kind.starts_with("ts ") {
            check(kind, text);
            count += 1;
        }
    }
    assert!(count >= 5, "{count} programs");
}

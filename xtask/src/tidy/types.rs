//! Rule: inside a crate, the name of a type means one thing.
//!
//! A second type of the same name makes a reader look up which one is meant. Tests and examples of
//! documents do not count, nor do names that are always written with their module.

use std::collections::BTreeMap;

use super::{Complaint, Tree};

/// Names that a crate may define several times: public types of public modules, which are written
/// as `channels::Error`. The list may only shrink.
const EXCEPTIONS: [(&str, &str); 4] =
    [("bine", "Error"), ("store", "Error"), ("store", "Options"), ("store", "Warning")];

/// Reports each name that has several definitions.
pub(super) fn check(tree: &Tree, complaints: &mut Vec<Complaint>) {
    let mut definitions: BTreeMap<(String, String), Vec<String>> = BTreeMap::new();
    for file in &tree.files {
        let Some((name, rest)) =
            file.path.strip_prefix("crates/").and_then(|path| path.split_once("/src/"))
        else {
            continue;
        };
        let is_for_tests =
            |part: &str| matches!(part.trim_end_matches(".rs"), "tests" | "testing" | "simulation");
        let Some(rust) = file.rust.as_ref().filter(|_| !rest.split('/').any(is_for_tests)) else {
            continue;
        };
        for kind in names(&without_conditional_modules(&rust.code)) {
            definitions.entry((name.to_owned(), kind)).or_default().push(file.path.clone());
        }
    }
    for ((name, kind), mut files) in definitions {
        if files.len() > 1 && !EXCEPTIONS.contains(&(&*name, &*kind)) {
            files.dedup();
            let what = format!(
                "`{kind}` is defined several times in the crate: {}; give each type a name of its own",
                files.join(", ")
            );
            complaints.push(Complaint { path: files.remove(0), line: 0, what });
        }
    }
}

/// The names of the types that code defines.
fn names(code: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut is_next = false;
    for word in code.split(|char: char| !char.is_alphanumeric() && char != '_') {
        if is_next && word.starts_with(char::is_uppercase) {
            found.push(word.to_owned());
        }
        if !word.is_empty() {
            is_next = matches!(word, "struct" | "enum" | "trait");
        }
    }
    found
}

/// The code of a file without modules that exist for tests or for examples in documents.
fn without_conditional_modules(code: &str) -> String {
    let mut rest = code;
    let mut kept = String::with_capacity(code.len());
    let marks = ["#[cfg(test)]", "#[cfg(doctest)]"];
    while let Some(at) = marks.iter().filter_map(|mark| rest.find(mark)).min() {
        kept.push_str(&rest[..at]);
        rest = &rest[at..];
        let end = rest.find([';', '{']).unwrap_or(rest.len());
        rest = if rest[end..].starts_with('{') { behind_block(&rest[end..]) } else { &rest[end..] };
    }
    kept.push_str(rest);
    kept
}

/// The text after the block with which `code` begins.
fn behind_block(code: &str) -> &str {
    let mut depth = 0_usize;
    for (at, char) in code.char_indices() {
        match char {
            '{' => depth += 1,
            '}' if depth == 1 => return &code[at + 1..],
            '}' => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    ""
}

#[cfg(test)]
mod tests {
    use super::super::check as check_rule;
    use super::*;

    #[test]
    fn accepts_one_type_of_each_name_and_types_of_tests() {
        check_rule(
            check,
            &[
                (
                    "crates/a/src/lib.rs",
                    "struct One;\n#[cfg(doctest)]\nmod guide { struct Two; }\n",
                ),
                ("crates/a/src/b.rs", "enum Two { A }\n#[cfg(test)]\nmod tests { struct One; }\n"),
                ("crates/a/src/tests.rs", "struct One;\n"),
                ("crates/b/src/lib.rs", "struct One; // struct Two\n"),
                ("crates/store/src/a.rs", "struct Error;\n"),
                ("crates/store/src/b.rs", "enum Error {}\n"),
            ],
            &[],
        );
    }

    #[test]
    fn reports_a_name_with_two_meanings() {
        check_rule(
            check,
            &[
                ("crates/a/src/b.rs", "pub(crate) struct One<T>(T);\n"),
                ("crates/a/src/c.rs", "trait One {}\n"),
            ],
            &[
                "crates/a/src/b.rs: `One` is defined several times in the crate: crates/a/src/b.rs, crates/a/src/c.rs; give each type a name of its own",
            ],
        );
    }
}

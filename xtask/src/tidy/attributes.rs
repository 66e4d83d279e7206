//! Rule: every lint that the code disables has a reason.

use super::rust::Rust;
use super::{Complaint, File};

/// Reports each `allow` and `expect` attribute without a reason.
pub(super) fn check(file: &File, rust: &Rust, complaints: &mut Vec<Complaint>) {
    for (open, _) in rust.code.match_indices('[') {
        if !rust.code[..open].trim_end_matches('!').ends_with('#') {
            continue;
        }
        let attribute = &rust.code[open..rust.behind_bracket(open)];
        for lint in ["allow", "expect"] {
            let disables = attribute.match_indices(lint).any(|(at, _)| {
                attribute[..at].ends_with(['[', ' ', ',', '('])
                    && attribute[at..].starts_with(&format!("{lint}("))
            });
            if disables && !attribute.contains("reason =") {
                let what = format!("`{lint}` without `reason = \"..\"`");
                file.complain(complaints, rust.line(open), what);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{check, source};

    #[test]
    fn catches_a_disabled_lint_without_a_reason() {
        let text = "//! A.\n#![allow(dead_code)]\n#[expect(\n    unused\n)]\nfn a() {}\n";
        let expected = [
            "a.rs:2: `allow` without `reason = \"..\"`",
            "a.rs:3: `expect` without `reason = \"..\"`",
        ];
        check(source::check, &[("a.rs", text)], &expected);
    }

    #[test]
    fn catches_a_conditionally_disabled_lint() {
        let text = "//! A.\n#[cfg_attr(test, allow(dead_code))]\nfn a() {}\n";
        check(source::check, &[("a.rs", text)], &["a.rs:2: `allow` without `reason = \"..\"`"]);
    }

    #[test]
    fn accepts_a_disabled_lint_with_a_reason() {
        let text =
            "//! A.\n#[expect(dead_code, reason = \"kept for b\")]\nfn a() { b.expect(\"c\") }\n";
        check(source::check, &[("a.rs", text)], &[]);
    }
}

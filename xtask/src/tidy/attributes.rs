//! Decides that every lint set aside in the code says why.

use super::rust::Rust;
use super::{Complaint, File};

/// Tells each `allow` and `expect` attribute without a reason.
pub(super) fn check(file: &File, rust: &Rust, complaints: &mut Vec<Complaint>) {
    for (open, _) in rust.code.match_indices('[') {
        if !rust.code[..open].trim_end_matches('!').ends_with('#') {
            continue;
        }
        let attribute = &rust.code[open..rust.behind_bracket(open)];
        for lint in ["allow", "expect"] {
            let sets_aside = attribute.match_indices(lint).any(|(at, _)| {
                attribute[..at].ends_with(['[', ' ', ',', '('])
                    && attribute[at..].starts_with(&format!("{lint}("))
            });
            if sets_aside && !attribute.contains("reason =") {
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
    fn a_lint_set_aside_in_silence_is_caught() {
        let text = "//! A.\n#![allow(dead_code)]\n#[expect(\n    unused\n)]\nfn a() {}\n";
        let told = [
            "a.rs:2: `allow` without `reason = \"..\"`",
            "a.rs:3: `expect` without `reason = \"..\"`",
        ];
        check(source::check, &[("a.rs", text)], &told);
    }

    #[test]
    fn a_conditional_one_is_caught_too() {
        let text = "//! A.\n#[cfg_attr(test, allow(dead_code))]\nfn a() {}\n";
        check(source::check, &[("a.rs", text)], &["a.rs:2: `allow` without `reason = \"..\"`"]);
    }

    #[test]
    fn one_with_a_reason_stands() {
        let text =
            "//! A.\n#[expect(dead_code, reason = \"kept for b\")]\nfn a() { b.expect(\"c\") }\n";
        check(source::check, &[("a.rs", text)], &[]);
    }
}

//! Rule: a function too long for one screen gives a reason.

use super::rust::Rust;
use super::{Complaint, File};

/// A longer function needs a comment with the words `long because`.
const LONGEST: usize = 80;

/// Reports each long function without a reason in the comments above it or inside it.
pub(super) fn check(file: &File, rust: &Rust, complaints: &mut Vec<Complaint>) {
    for (at, word) in rust.words() {
        if word != "fn" {
            continue;
        }
        let Some((name, end)) = signature(rust, at) else { continue };
        let (first, last) = (rust.line(at), rust.line(end - 1));
        let lines = last - first + 1;
        if lines > LONGEST && !gives_a_reason(rust, at, end) {
            let what = format!("`{name}` has {lines} lines; say why: `long because ..`");
            file.complain(complaints, first, what);
        }
    }
}

/// The name of the function whose `fn` is at byte `at`, and the end of its body. A type `fn(..)`
/// has no name; a declaration has no body.
fn signature(rust: &Rust, at: usize) -> Option<(&str, usize)> {
    let rest = rust.code[at + 2..].trim_start();
    let length = rest.find(|char: char| !(char.is_alphanumeric() || char == '_'))?;
    let name = &rest[..length];
    if name.is_empty() {
        return None;
    }
    let mut at = rust.code.len() - rest.len() + length;
    loop {
        match rust.code.as_bytes().get(at)? {
            b';' => return None,
            b'{' => return Some((name, rust.behind_bracket(at))),
            b'(' | b'[' => at = rust.behind_bracket(at),
            _ => at += 1,
        }
    }
}

fn gives_a_reason(rust: &Rust, at: usize, end: usize) -> bool {
    let begin = first_line_of_comments(rust, at);
    rust.comments[begin..end].to_ascii_lowercase().contains("long because")
}

/// The first byte of the unbroken run of comments and attributes above a line.
fn first_line_of_comments(rust: &Rust, at: usize) -> usize {
    let mut begin = rust.code[..at].rfind('\n').map_or(0, |end| end + 1);
    while begin > 0 {
        let above = rust.code[..begin - 1].rfind('\n').map_or(0, |end| end + 1);
        let is_comment = !rust.comments[above..begin].trim().is_empty();
        if !is_comment && !rust.code[above..begin].trim_start().starts_with("#[") {
            break;
        }
        begin = above;
    }
    begin
}

#[cfg(test)]
mod tests {
    use super::super::{check, source};

    #[test]
    fn catches_a_long_function_without_a_reason() {
        let expected = ["a.rs:3: `a` has 81 lines; say why: `long because ..`"];
        check(source::check, &[("a.rs", &long("", "", 79))], &expected);
        check(source::check, &[("a.rs", &long("", "", 78))], &[]);
    }

    #[test]
    fn accepts_a_reason_above_or_inside() {
        check(source::check, &[("a.rs", &long("/// Long because b.\n#[inline]", "", 90))], &[]);
        check(source::check, &[("a.rs", &long("", "// long because b", 90))], &[]);
    }

    #[test]
    fn ignores_the_reason_of_the_item_above() {
        let text = format!("//! A.\n// long because b\nconst C: u8 = 0;\n{}", body("", 90));
        let expected = ["a.rs:4: `a` has 92 lines; say why: `long because ..`"];
        check(source::check, &[("a.rs", &text)], &expected);
    }

    #[test]
    fn ignores_declarations_and_types() {
        let text =
            format!("//! A.\ntrait B {{ fn b(c: [u8; 2]); }}\ntype D = fn();\n{}", "\n".repeat(99));
        check(source::check, &[("a.rs", &text)], &[]);
    }

    fn long(above: &str, within: &str, lines: usize) -> String {
        format!("//! A.\n{above}\n{}", body(within, lines))
    }

    fn body(within: &str, lines: usize) -> String {
        format!("fn a() {{{within}\n{}}}\n", "    b();\n".repeat(lines))
    }
}

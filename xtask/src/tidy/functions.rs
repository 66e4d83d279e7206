//! Decides that a function too long for one screen says why.

use super::rust::Rust;
use super::{Complaint, File};

/// Past this a function carries a comment with the words `long because`.
const LONGEST: usize = 80;

/// Tells each long function whose comments, above it or within, give no reason.
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

/// The name of the function whose `fn` stands at this byte, and where its body ends. A type `fn(..)` has
/// no name, a declaration no body.
fn signature(rust: &Rust, at: usize) -> Option<(&str, usize)> {
    let behind = rust.code[at + 2..].trim_start();
    let length = behind.find(|char: char| !(char.is_alphanumeric() || char == '_'))?;
    let name = &behind[..length];
    if name.is_empty() {
        return None;
    }
    let mut at = rust.code.len() - behind.len() + length;
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

/// Where the unbroken run of comments and attributes above a line begins.
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
    fn a_long_function_without_a_reason_is_caught() {
        let told = ["a.rs:3: `a` has 81 lines; say why: `long because ..`"];
        check(source::check, &[("a.rs", &long("", "", 79))], &told);
        check(source::check, &[("a.rs", &long("", "", 78))], &[]);
    }

    #[test]
    fn a_reason_stands_above_or_within() {
        check(source::check, &[("a.rs", &long("/// Long because b.\n#[inline]", "", 90))], &[]);
        check(source::check, &[("a.rs", &long("", "// long because b", 90))], &[]);
    }

    #[test]
    fn the_reason_of_a_neighbor_does_not_count() {
        let text = format!("//! A.\n// long because b\nconst C: u8 = 0;\n{}", body("", 90));
        let told = ["a.rs:4: `a` has 92 lines; say why: `long because ..`"];
        check(source::check, &[("a.rs", &text)], &told);
    }

    #[test]
    fn declarations_and_types_have_no_length() {
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

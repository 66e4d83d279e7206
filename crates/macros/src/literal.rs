//! Values of string literals, as the compiler evaluates them.

use crate::fault::Fault;
use crate::token::{Kind, Token};

/// The value of a plain or raw string literal; `None` for any other token.
pub(crate) fn string(token: &Token) -> Option<Result<String, Fault>> {
    if !matches!(token.kind, Kind::Literal) {
        return None;
    }
    let text = token.text.as_str();
    let prefix = &text[..text.find('"')?];
    let suffix = &text[text.rfind('"')? + 1..];
    if !suffix.trim_start_matches('#').is_empty() && !prefix.contains('\'') {
        let why =
            format!("put a space between the string and `{suffix}`, or put both in one string");
        return Some(Err(Fault::new(token, why)));
    }
    match prefix.trim_end_matches('#') {
        "" => Some(Ok(unescape(between_quotes(text)))),
        "r" => Some(Ok(between_quotes(text).to_owned())),
        "b" | "br" | "c" | "cr" => {
            Some(Err(Fault::new(token, format!("a plain string is expected: drop the `{prefix}`"))))
        }
        // The quote belongs to a character literal: '"'.
        _ => None,
    }
}

fn between_quotes(literal: &str) -> &str {
    let (start, end) = (literal.find('"'), literal.rfind('"'));
    start.zip(end).map_or("", |(start, end)| &literal[start + 1..end])
}

/// Decodes the escapes of a string literal. The compiler has already rejected invalid escapes.
fn unescape(text: &str) -> String {
    let mut value = String::with_capacity(text.len());
    let mut rest = text.chars();
    while let Some(next) = rest.next() {
        if next != '\\' {
            value.push(next);
            continue;
        }
        match rest.next() {
            Some('n') => value.push('\n'),
            Some('r') => value.push('\r'),
            Some('t') => value.push('\t'),
            Some('0') => value.push('\0'),
            Some('x') => value.extend(code_point(&rest.by_ref().take(2).collect::<String>())),
            Some('u') => {
                let digits: String = rest.by_ref().take_while(|&digit| digit != '}').collect();
                value.extend(code_point(digits.trim_start_matches('{')));
            }
            // A backslash at the end of a line skips white space up to the next character.
            Some('\n') => rest = rest.as_str().trim_start().chars(),
            Some(itself) => value.push(itself),
            None => {}
        }
    }
    value
}

fn code_point(digits: &str) -> Option<char> {
    u32::from_str_radix(&digits.replace('_', ""), 16).ok().and_then(char::from_u32)
}

#[cfg(test)]
mod tests {
    use crate::sample::Sample;

    use super::*;

    #[track_caller]
    fn check(source: &str, expected: Option<&str>) {
        let sample = Sample::new(source);
        let value =
            string(&sample.tokens[0]).map(|value| value.unwrap_or_else(|fault| fault.message));
        assert_eq!(value.as_deref(), expected);
    }

    #[test]
    fn decodes_escapes_as_the_compiler_does() {
        check(r#""a\n\t\\\"\x41\u{e9}\u{1F_600}""#, Some("a\n\t\\\"A\u{e9}\u{1F600}"));
        check("\"one \\\n    line\"", Some("one line"));
    }

    #[test]
    fn keeps_raw_strings_unchanged() {
        check(r##"r#"a\n"b"#"##, Some(r#"a\n"b"#));
    }

    #[test]
    fn rejects_other_literals_and_suffixes() {
        check("12", None);
        check("'\"'", None);
        check("b\"x\"", Some("a plain string is expected: drop the `b`"));
        let why = "put a space between the string and `b`, or put both in one string";
        check("\"a\"b", Some(why));
    }
}

//! Text of JSX as a reader sees it, and its form in generated code.

use oxc_syntax::xml_entities::XML_ENTITIES;

/// The text of a child as JSX defines it: line breaks next to a tag or a hole vanish with the blanks
/// around them, others become one space. As in `html!`, several blanks are one space as well.
pub(crate) fn child(raw: &str) -> String {
    let lines: Vec<&str> = raw.split(['\n', '\r']).collect();
    let last = lines.len() - 1;
    let mut text = String::new();
    for (index, line) in lines.iter().enumerate() {
        let line = if index > 0 { line.trim_start_matches(is_blank) } else { line };
        let line = if index < last { line.trim_end_matches(is_blank) } else { line };
        if line.is_empty() {
            continue;
        }
        if index > 0 && !text.is_empty() {
            text.push(' ');
        }
        let mut was_blank = false;
        for letter in line.chars() {
            if !is_blank(letter) {
                text.push(letter);
            } else if !was_blank {
                text.push(' ');
            }
            was_blank = is_blank(letter);
        }
    }
    decoded(&text)
}

const fn is_blank(letter: char) -> bool {
    matches!(letter, ' ' | '\t')
}

/// Decodes character references: `&nbsp;`, `&#160;` and `&#xa0;`. Other text stays unchanged.
pub(crate) fn decoded(text: &str) -> String {
    let mut decoded = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(start) = rest.find('&') {
        decoded.push_str(&rest[..start]);
        rest = &rest[start..];
        match reference(rest) {
            Some((letter, length)) => {
                decoded.push(letter);
                rest = &rest[length..];
            }
            None => {
                decoded.push('&');
                rest = &rest[1..];
            }
        }
    }
    decoded + rest
}

/// The character that a reference at the start of `text` means, and the length of the reference.
fn reference(text: &str) -> Option<(char, usize)> {
    let end = text.bytes().take(16).position(|byte| byte == b';')?;
    let word = text.get(1..end)?;
    let code =
        |digits: &str, radix| u32::from_str_radix(digits, radix).ok().and_then(char::from_u32);
    let letter = match word.strip_prefix('#') {
        Some(digits) => match digits.strip_prefix(['x', 'X']) {
            Some(digits) => code(digits, 16),
            None => code(digits, 10),
        },
        None => XML_ENTITIES.get(word).copied(),
    };
    letter.map(|letter| (letter, end + 1))
}

/// Escapes a constant, exactly as the run-time escapes the value of a hole.
pub(crate) fn escaped(text: &str) -> String {
    let mut markup = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '&' => markup.push_str("&amp;"),
            '<' => markup.push_str("&lt;"),
            '>' => markup.push_str("&gt;"),
            '"' => markup.push_str("&quot;"),
            '\'' => markup.push_str("&#39;"),
            plain => markup.push(plain),
        }
    }
    markup
}

/// A string literal of JavaScript on one line.
pub(crate) fn literal(text: &str) -> String {
    let mut literal = String::with_capacity(text.len() + 2);
    literal.push('"');
    for letter in text.chars() {
        match letter {
            '"' => literal.push_str("\\\""),
            '\\' => literal.push_str("\\\\"),
            '\n' => literal.push_str("\\n"),
            '\r' => literal.push_str("\\r"),
            letter if letter.is_control() || matches!(letter, '\u{2028}' | '\u{2029}') => {
                let code = format!("\\u{:04x}", u32::from(letter));
                literal.push_str(&code);
            }
            letter => literal.push(letter),
        }
    }
    literal.push('"');
    literal
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn joins_lines_as_jsx_does() {
        for (raw, expected) in [
            ("a b", "a b"),
            (" a ", " a "),
            ("\n  a\n  b\n", "a b"),
            ("\n", ""),
            ("  \n  ", ""),
            ("   ", " "),
            ("a  \t b", "a b"),
            ("a\r\nb", "a b"),
            (" \n a", "a"),
            ("a&nbsp;&nbsp;b", "a\u{a0}\u{a0}b"),
        ] {
            assert_eq!(child(raw), expected, "{raw:?}");
        }
    }

    #[test]
    fn decodes_only_known_references() {
        for (text, expected) in [
            ("&lt;&amp;&quot;", "<&\""),
            ("&#65;&#x42;", "AB"),
            ("a & b &unknown; &", "a & b &unknown; &"),
            ("&#xd800;&#99999999;", "&#xd800;&#99999999;"),
            ("&&amp;", "&&"),
        ] {
            assert_eq!(decoded(text), expected);
        }
    }

    #[test]
    fn writes_literals_on_one_line() {
        assert_eq!(literal("a\"\\\n\r\t\u{2028}\u{e4}"), "\"a\\\"\\\\\\n\\r\\u0009\\u2028\u{e4}\"");
    }
}

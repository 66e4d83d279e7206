//! Colors source code: HTML with spans around comments, strings, keywords and names.
//!
//! One scanner serves all languages of the guide. It knows their comments and keywords, and no
//! grammar: text that it does not recognize stays plain, so an error costs a color and never text.

use std::fmt::Write as _;

/// The lexical rules of a language.
struct Language {
    names: &'static [&'static str],
    line_comment: Option<&'static str>,
    /// The start and the end of a comment that may span lines.
    block_comment: Option<(&'static str, &'static str)>,
    /// The quotes around strings.
    quotes: &'static str,
    keywords: &'static [&'static str],
    is_rust: bool,
    has_tags: bool,
    has_numbers: bool,
}

const PLAIN: Language = Language {
    names: &[],
    line_comment: None,
    block_comment: None,
    quotes: "",
    keywords: &[],
    is_rust: false,
    has_tags: false,
    has_numbers: false,
};

const LANGUAGES: [Language; 8] = [
    Language {
        names: &["rust", "rs"],
        line_comment: Some("//"),
        block_comment: Some(("/*", "*/")),
        quotes: "\"",
        keywords: &[
            "as", "async", "await", "break", "const", "continue", "crate", "dyn", "else", "enum",
            "extern", "false", "fn", "for", "if", "impl", "in", "let", "loop", "match", "mod",
            "move", "mut", "pub", "ref", "return", "self", "Self", "static", "struct", "super",
            "trait", "true", "type", "unsafe", "use", "where", "while",
        ],
        is_rust: true,
        has_tags: true,
        has_numbers: true,
    },
    Language {
        names: &["sh", "service", "socket"],
        line_comment: Some("#"),
        quotes: "\"'",
        keywords: &["do", "done", "else", "exit", "fi", "for", "if", "in", "then", "while"],
        ..PLAIN
    },
    Language {
        names: &["toml"],
        line_comment: Some("#"),
        quotes: "\"'",
        keywords: &["false", "true"],
        has_numbers: true,
        ..PLAIN
    },
    Language {
        names: &["html"],
        block_comment: Some(("<!--", "-->")),
        quotes: "\"",
        has_tags: true,
        ..PLAIN
    },
    Language { names: &["css"], block_comment: Some(("/*", "*/")), quotes: "\"'", ..PLAIN },
    Language {
        names: &["js"],
        line_comment: Some("//"),
        block_comment: Some(("/*", "*/")),
        quotes: "\"'`",
        keywords: &[
            "async", "await", "const", "else", "false", "for", "function", "if", "import", "from",
            "let", "new", "null", "return", "true", "while",
        ],
        ..PLAIN
    },
    Language {
        names: &["py"],
        line_comment: Some("#"),
        quotes: "\"'",
        keywords: &[
            "and", "as", "assert", "class", "def", "else", "except", "False", "finally", "for",
            "from", "if", "import", "in", "lambda", "None", "not", "or", "raise", "return", "True",
            "try", "while", "with", "yield",
        ],
        ..PLAIN
    },
    Language { names: &["json"], quotes: "\"", keywords: &["false", "null", "true"], ..PLAIN },
];

/// Writes `code` as HTML, colored as this language, which may be unknown.
pub(crate) fn highlight(code: &str, language: &str) -> String {
    let language = LANGUAGES.iter().find(|known| known.names.contains(&language));
    let mut out = String::with_capacity(code.len() * 2);
    let Some(language) = language else {
        escape(code, &mut out);
        return out;
    };
    let (mut rest, mut before) = (code, None);
    while !rest.is_empty() {
        let (length, class) = language.token(rest, before);
        let (token, behind) = rest.split_at(length);
        match class {
            Some(class) => {
                let _ = write!(out, "<span class=\"{class}\">");
                escape(token, &mut out);
                out.push_str("</span>");
            }
            None => escape(token, &mut out),
        }
        before = token.chars().next_back();
        rest = behind;
    }
    out
}

impl Language {
    /// The length of the first token of `rest`, and its class. `before` is the preceding character.
    fn token(&self, rest: &str, before: Option<char>) -> (usize, Option<&'static str>) {
        let first = rest.chars().next().unwrap_or_default();
        let follows_name = before.is_some_and(is_of_name);
        if let Some(start) = self.line_comment
            && rest.starts_with(start)
            && (start != "#" || before.is_none_or(char::is_whitespace))
        {
            return (rest.find('\n').unwrap_or(rest.len()), Some("hc"));
        }
        if let Some((start, end)) = self.block_comment
            && let Some(content) = rest.strip_prefix(start)
        {
            let length = content.find(end).map_or(rest.len(), |at| start.len() + at + end.len());
            return (length, Some("hc"));
        }
        if self.quotes.contains(first) {
            return (string_length(rest, first), Some("hs"));
        }
        if self.is_rust
            && let Some((length, class)) = rust_token(rest, follows_name)
        {
            return (length, Some(class));
        }
        let is_generic = follows_name || before == Some(':');
        if self.has_tags && first == '<' && (!is_generic || rest.starts_with("</")) {
            let name = rest[1..].trim_start_matches('/');
            let length = name.find(|char| !is_of_name(char)).unwrap_or(name.len());
            if name.starts_with(|char: char| char.is_ascii_alphabetic()) {
                return (rest.len() - name.len() + length, Some("ht"));
            }
        }
        if self.has_numbers && first.is_ascii_digit() && !follows_name {
            let is_number = |char: char| is_of_name(char) || char == '.';
            let length = rest.find(|char| !is_number(char)).unwrap_or(rest.len());
            // A range is not a fraction.
            let length = rest[..length].find("..").unwrap_or(length);
            return (length, Some("hn"));
        }
        if is_of_name(first) {
            let length = rest.find(|char| !is_of_name(char)).unwrap_or(rest.len());
            let class = if self.keywords.contains(&&rest[..length]) {
                Some("hk")
            } else if self.is_rust {
                rust_name(&rest[..length], &rest[length..])
            } else {
                None
            };
            return (length, class);
        }
        (first.len_utf8(), None)
    }
}

/// Attributes, lifetimes, character literals and raw strings.
fn rust_token(rest: &str, follows_name: bool) -> Option<(usize, &'static str)> {
    if rest.starts_with("#[") || rest.starts_with("#![") {
        return Some((rest.find(']').map_or(rest.len(), |at| at + 1), "ha"));
    }
    if !follows_name && let Some(raw) = rest.strip_prefix("r#\"") {
        return Some((raw.find("\"#").map_or(rest.len(), |at| at + 5), "hs"));
    }
    let quoted = rest.strip_prefix('\'')?;
    let mut chars = quoted.char_indices();
    let (_, first) = chars.next()?;
    let end = match first {
        '\\' => quoted.get(2..)?.find('\'').map(|at| at + 2),
        _ => chars.next().filter(|(_, second)| *second == '\'').map(|(at, _)| at),
    };
    Some(match end {
        Some(end) => (end + 2, "hs"),
        None => (1 + quoted.find(|char| !is_of_name(char)).unwrap_or(quoted.len()), "ha"),
    })
}

/// The class of a name that is no keyword, by its spelling and by what follows it.
fn rust_name(name: &str, behind: &str) -> Option<&'static str> {
    let is_macro = behind.starts_with('!') && !behind.starts_with("!=");
    if is_macro || behind.starts_with('(') {
        return Some("hf");
    }
    name.starts_with(char::is_uppercase).then_some("hy")
}

/// The length of a string from its opening quote on.
fn string_length(rest: &str, quote: char) -> usize {
    let mut is_escaped = false;
    for (at, char) in rest.char_indices().skip(1) {
        if is_escaped {
            is_escaped = false;
        } else if char == '\\' {
            is_escaped = true;
        } else if char == quote {
            return at + 1;
        }
    }
    rest.len()
}

fn is_of_name(char: char) -> bool {
    char.is_alphanumeric() || char == '_'
}

/// Appends text as HTML.
pub(crate) fn escape(text: &str, out: &mut String) {
    for char in text.chars() {
        match char {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            other => out.push(other),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use super::*;

    /// Writes each colored token as `class(token)`.
    fn check(language: &str, code: &str, colored: &str) {
        let html = highlight(code, language);
        let html = html.replace("<span class=\"", "\u{1}").replace("\">", "(");
        let html = html.replace('\u{1}', "").replace("</span>", ")");
        assert_eq!(html, colored, "{code}");
    }

    #[test]
    fn colors_rust() {
        check("rust", "let a = 'x';", "hk(let) a = hs('x');");
        check("rust", "fn f<'a>(n: &'a str)", "hk(fn) f&lt;ha('a)&gt;(n: &amp;ha('a) str)");
        check("rust", "Vec<u8> // <b>", "hy(Vec)&lt;u8&gt; hc(// &lt;b&gt;)");
        check("rust", "1..=500, 1.5", "hn(1)..=hn(500), hn(1.5)");
        check("rust", "#[page(\"/\")]\nx()", "ha(#[page(&quot;/&quot;)])\nhf(x)()");
        check("rust", r#""a\"b" '\n'"#, r"hs(&quot;a\&quot;b&quot;) hs('\n')");
        check("rust", "<p>{x} y</p>", "ht(&lt;p)&gt;{x} yht(&lt;/p)&gt;");
    }

    #[test]
    fn colors_other_languages() {
        check("sh", "curl a#b:80 # all", "curl a#b:80 hc(# all)");
        check("toml", "on = true # yes", "on = hk(true) hc(# yes)");
        check("html", "<b id=\"a\">", "ht(&lt;b) id=hs(&quot;a&quot;)&gt;");
        check("text", "let \"a\" < 'b'", "let &quot;a&quot; &lt; 'b'");
    }

    #[test]
    fn colors_unfinished_tokens_to_the_end() {
        for (code, colored) in [
            ("\"a", "hs(&quot;a)"),
            ("/* a", "hc(/* a)"),
            ("#[a", "ha(#[a)"),
            ("'", "'"),
            ("'\\", "'\\"),
            ("r#\"a", "hs(r#&quot;a)"),
            ("<", "&lt;"),
        ] {
            check("rust", code, colored);
        }
    }

    #[test]
    fn changes_no_character_of_a_source_file() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples");
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.extension().is_none_or(|extension| extension != "rs") {
                continue;
            }
            let source = fs::read_to_string(&path).unwrap();
            let html = highlight(&source, "rust");
            let parts =
                html.split('<').map(|part| part.split_once('>').map_or(part, |(_, text)| text));
            let text: String = parts.collect();
            let text = text.replace("&lt;", "<").replace("&gt;", ">").replace("&quot;", "\"");
            assert!(text.replace("&amp;", "&") == source, "{}", path.display());
        }
    }
}

//! Splits a Rust file into code, comments and literals.

/// One Rust file, split. Both texts have the length of the file, and line numbers stay valid.
pub(super) struct Rust {
    /// The file with comments and the contents of literals replaced by blanks.
    pub(super) code: String,
    /// The file with everything except comments replaced by blanks.
    pub(super) comments: String,
}

impl Rust {
    pub(super) fn read(text: &str) -> Self {
        let mut cutter = Cutter {
            bytes: text.as_bytes(),
            code: Vec::with_capacity(text.len()),
            comments: Vec::with_capacity(text.len()),
        };
        cutter.cut();
        let whole = |bytes| String::from_utf8(bytes).expect("cut only beside ASCII bytes");
        Self { code: whole(cutter.code), comments: whole(cutter.comments) }
    }

    /// Every identifier and keyword of the code, with its first byte.
    pub(super) fn words(&self) -> impl Iterator<Item = (usize, &str)> {
        let mut at = 0;
        self.code.split(|char: char| !is_word(char)).filter_map(move |word| {
            let begin = at;
            // Every separator here is ASCII: other characters are blanked or are part of a word.
            at += word.len() + 1;
            (!word.is_empty()).then_some((begin, word))
        })
    }

    /// The line of a byte, counted from one.
    pub(super) fn line(&self, at: usize) -> usize {
        self.code[..at].matches('\n').count() + 1
    }

    /// The first byte after the bracket that closes the one at byte `open`.
    pub(super) fn behind_bracket(&self, open: usize) -> usize {
        let mut depth = 0;
        for (at, byte) in self.code.bytes().enumerate().skip(open) {
            match byte {
                b'(' | b'[' | b'{' => depth += 1,
                b')' | b']' | b'}' => depth -= 1,
                _ => {}
            }
            if depth == 0 {
                return at + 1;
            }
        }
        self.code.len()
    }

    /// The first byte of the tests of the file.
    pub(super) fn tests_begin(&self) -> usize {
        self.code.find("#[cfg(test)]").unwrap_or(self.code.len())
    }
}

struct Cutter<'t> {
    bytes: &'t [u8],
    code: Vec<u8>,
    comments: Vec<u8>,
}

#[derive(Clone, Copy)]
enum Kind {
    Code,
    Comment,
    Literal,
}

impl Cutter<'_> {
    fn cut(&mut self) {
        while self.at() < self.bytes.len() {
            let rest = &self.bytes[self.at()..];
            match rest {
                [b'/', b'/', ..] => {
                    let end = rest.iter().position(|byte| *byte == b'\n');
                    self.take(Kind::Comment, end.unwrap_or(rest.len()));
                }
                [b'/', b'*', ..] => self.take(Kind::Comment, block_comment(rest)),
                [b'"', ..] => self.literal(1, quoted(&rest[1..], b'"'), 1),
                [b'r', b'"' | b'#', ..] if !self.is_in_word() => self.raw_string(rest),
                [b'\'', b'\\', ..] => self.literal(1, quoted(&rest[1..], b'\''), 1),
                [b'\'', ..] if is_char(rest) => self.literal(1, quoted(&rest[1..], b'\''), 1),
                _ => self.take(Kind::Code, 1),
            }
        }
    }

    /// Reads `r"..."` and `r#"..."#`. The prefix of a byte string is already read as code.
    fn raw_string(&mut self, rest: &[u8]) {
        let hashes = rest[1..].iter().take_while(|byte| **byte == b'#').count();
        if rest.get(1 + hashes) != Some(&b'"') {
            return self.take(Kind::Code, 1);
        }
        let open = hashes + 2;
        let mut close = vec![b'"'];
        close.resize(hashes + 1, b'#');
        let inside = &rest[open..];
        let end = inside.windows(close.len()).position(|window| window == close);
        self.literal(open, end.unwrap_or(inside.len()), close.len());
    }

    /// Keeps the quotation marks of a literal in the code and blanks its contents.
    fn literal(&mut self, open: usize, inside: usize, close: usize) {
        self.take(Kind::Code, open);
        self.take(Kind::Literal, inside);
        self.take(Kind::Code, close);
    }

    fn take(&mut self, kind: Kind, length: usize) {
        let begin = self.at();
        let end = self.bytes.len().min(begin + length);
        for &byte in &self.bytes[begin..end] {
            let blank = if byte == b'\n' { b'\n' } else { b' ' };
            self.code.push(if matches!(kind, Kind::Code) { byte } else { blank });
            self.comments.push(if matches!(kind, Kind::Comment) { byte } else { blank });
        }
    }

    fn at(&self) -> usize {
        self.code.len()
    }

    /// Whether the previous byte belongs to a name: the `r` of `for` opens no raw string.
    fn is_in_word(&self) -> bool {
        let before = |back: usize| self.at().checked_sub(back).map(|at| char::from(self.bytes[at]));
        match before(1) {
            // `br"` and `cr"` are prefixes, unless they end a longer name.
            Some('b' | 'c') => before(2).is_some_and(is_word),
            Some(char) => is_word(char),
            None => false,
        }
    }
}

/// The length of a block comment; block comments nest.
fn block_comment(rest: &[u8]) -> usize {
    let mut depth = 0;
    let mut at = 0;
    while at < rest.len() {
        match &rest[at..] {
            [b'/', b'*', ..] => {
                depth += 1;
                at += 2;
            }
            [b'*', b'/', ..] => {
                depth -= 1;
                at += 2;
                if depth == 0 {
                    return at;
                }
            }
            _ => at += 1,
        }
    }
    rest.len()
}

/// The number of bytes before the closing mark; a backslash escapes the next byte.
fn quoted(inside: &[u8], mark: u8) -> usize {
    let mut at = 0;
    while at < inside.len() && inside[at] != mark {
        at += if inside[at] == b'\\' { 2 } else { 1 };
    }
    at.min(inside.len())
}

/// Whether a quotation mark opens a character literal, not a lifetime: one character, then a mark.
fn is_char(rest: &[u8]) -> bool {
    let width = match rest.get(1) {
        Some(0..0x80) => 1,
        Some(0x80..0xe0) => 2,
        Some(0xe0..0xf0) => 3,
        _ => 4,
    };
    rest.get(1 + width) == Some(&b'\'')
}

fn is_word(char: char) -> bool {
    char.is_alphanumeric() || char == '_'
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn separates_comments_from_code() {
        check("a // b\nc", "a     \nc", "  // b\n ");
        check("a /* b /* c */ d */ e", "a                   e", "  /* b /* c */ d */  ");
    }

    #[test]
    fn blanks_the_contents_of_literals() {
        check(r#"f("a // \" b") + g"#, r#"f("         ") + g"#, &" ".repeat(18));
        check(r##"r#"a " b"# c"##, r##"r#"     "# c"##, &" ".repeat(12));
        check(r#"br"\" x"#, r#"br" " x"#, &" ".repeat(7));
        check(r"'\'' '{' 'a", r"'  ' ' ' 'a", &" ".repeat(11));
    }

    #[test]
    fn does_not_open_a_raw_string_after_a_name_that_ends_in_r() {
        check(r#"for"r" r#fn"#, r#"for" " r#fn"#, &" ".repeat(11));
    }

    #[test]
    fn lists_words_with_their_lines() {
        let rust = Rust::read("let a_1 = \"b\";\nfn c() {}");
        let words: Vec<_> = rust.words().map(|(at, word)| (rust.line(at), word)).collect();
        assert_eq!(words, [(1, "let"), (1, "a_1"), (2, "fn"), (2, "c")]);
    }

    #[test]
    fn finds_the_matching_bracket() {
        let rust = Rust::read("f(a, [b], \")\") c");
        assert_eq!(rust.behind_bracket(1), 14);
    }

    fn check(text: &str, code: &str, comments: &str) {
        let rust = Rust::read(text);
        assert_eq!((rust.code.as_str(), rust.comments.as_str()), (code, comments));
    }
}

//! Decides which bytes of a Rust file are code, which are comments and which are neither.

/// One Rust file taken apart. Both texts are as long as the file, and lines stay where they are.
pub(super) struct Rust {
    /// The file with comments and the insides of literals blanked.
    pub(super) code: String,
    /// The file with everything but comments blanked.
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

    /// Every identifier and keyword of the code with the byte it begins at.
    pub(super) fn words(&self) -> impl Iterator<Item = (usize, &str)> {
        let mut at = 0;
        self.code.split(|char: char| !is_word(char)).filter_map(move |word| {
            let begin = at;
            // Every separator here is ASCII: what is not has been blanked or is a word.
            at += word.len() + 1;
            (!word.is_empty()).then_some((begin, word))
        })
    }

    /// The line a byte lies in, counted from one.
    pub(super) fn line(&self, at: usize) -> usize {
        self.code[..at].matches('\n').count() + 1
    }

    /// Behind the bracket that closes the one opened at this byte.
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

    /// The byte at which the tests of the file begin.
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

    /// `r"..."` and `r#"..."#`; the prefix of a byte string has gone before as code.
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

    /// A literal: its marks stay in the code, its inside does not.
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

    /// Whether the byte before belongs to a name: the `r` of `for` opens no raw string.
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

/// The length of a block comment; they nest.
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

/// The bytes before the closing mark; a backslash takes the next byte with it.
fn quoted(inside: &[u8], mark: u8) -> usize {
    let mut at = 0;
    while at < inside.len() && inside[at] != mark {
        at += if inside[at] == b'\\' { 2 } else { 1 };
    }
    at.min(inside.len())
}

/// Whether a quotation mark opens a character and not a lifetime: one character, then a mark.
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
    fn comments_leave_the_code() {
        check("a // b\nc", "a     \nc", "  // b\n ");
        check("a /* b /* c */ d */ e", "a                   e", "  /* b /* c */ d */  ");
    }

    #[test]
    fn the_insides_of_literals_are_neither() {
        check(r#"f("a // \" b") + g"#, r#"f("         ") + g"#, &" ".repeat(18));
        check(r##"r#"a " b"# c"##, r##"r#"     "# c"##, &" ".repeat(12));
        check(r#"br"\" x"#, r#"br" " x"#, &" ".repeat(7));
        check(r"'\'' '{' 'a", r"'  ' ' ' 'a", &" ".repeat(11));
    }

    #[test]
    fn a_name_that_ends_in_r_opens_no_raw_string() {
        check(r#"for"r" r#fn"#, r#"for" " r#fn"#, &" ".repeat(11));
    }

    #[test]
    fn words_are_told_with_their_place() {
        let rust = Rust::read("let a_1 = \"b\";\nfn c() {}");
        let words: Vec<_> = rust.words().map(|(at, word)| (rust.line(at), word)).collect();
        assert_eq!(words, [(1, "let"), (1, "a_1"), (2, "fn"), (2, "c")]);
    }

    #[test]
    fn a_bracket_is_closed_by_its_own() {
        let rust = Rust::read("f(a, [b], \")\") c");
        assert_eq!(rust.behind_bracket(1), 14);
    }

    fn check(text: &str, code: &str, comments: &str) {
        let rust = Rust::read(text);
        assert_eq!((rust.code.as_str(), rust.comments.as_str()), (code, comments));
    }
}

//! Parser of selectors and its error messages.

use alloc::boxed::Box;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use super::nth::Nth;
use super::{Condition, Fault, MAX_STEPS, Path, Relation, Selector, SelectorError, Step};

/// The operators between an attribute and its value.
const RELATIONS: [(&str, Relate); 5] = [
    ("=", Relation::Equal),
    ("~=", Relation::Word),
    ("^=", Relation::Start),
    ("$=", Relation::End),
    ("*=", Relation::Part),
];

type Relate = fn(Box<str>) -> Relation;

/// The supported pseudo-classes, for messages.
const PSEUDO_CLASSES: &str = "`:first-child`, `:last-child`, `:nth-child(..)` and \
                              `:nth-last-child(..)`";

/// Whether a name may contain the character: any non-ASCII character, a letter, a digit, `-` or
/// `_`.
fn is_of_a_name(char: char) -> bool {
    !char.is_ascii() || char.is_ascii_alphanumeric() || "-_".contains(char)
}

fn is_blank(char: char) -> bool {
    char.is_ascii_whitespace()
}

pub(super) fn selector(text: &str) -> Result<Selector, SelectorError> {
    Parser { text, rest: text }.selector()
}

struct Parser<'t> {
    text: &'t str,
    rest: &'t str,
}

impl<'t> Parser<'t> {
    fn selector(mut self) -> Result<Selector, SelectorError> {
        let mut alternatives = Vec::new();
        loop {
            alternatives.push(self.path()?);
            if !self.takes(',') {
                break;
            }
        }
        if self.rest.is_empty() {
            return Ok(Selector { alternatives });
        }
        self.wrong(
            "expected `,`, `>`, a space, or more of an element (`.class`, `#id`, `[a=b]`, \
             `:first-child`)",
        )
    }

    /// Parses up to a comma, the end, or a character that cannot continue the path.
    fn path(&mut self) -> Result<Path, SelectorError> {
        self.skip_blanks();
        let mut steps = Vec::from([Step { is_child: false, conditions: self.element()? }]);
        loop {
            let is_apart = self.skip_blanks();
            self.check_combinator()?;
            let is_child = self.takes('>');
            if is_child {
                self.skip_blanks();
            } else if !is_apart || self.rest.is_empty() || self.rest.starts_with(',') {
                return Ok(Path { steps });
            }
            if steps.len() == MAX_STEPS {
                let most = format!("a selector has at most {MAX_STEPS} elements in a row");
                return self.wrong(&most);
            }
            steps.push(Step { is_child, conditions: self.element()? });
        }
    }

    /// Rejects the combinators of CSS that are not supported.
    fn check_combinator(&self) -> Result<(), SelectorError> {
        for (sign, meaning) in
            [("+", "the next sibling"), ("~", "later siblings"), ("||", "columns")]
        {
            if self.rest.starts_with(sign) {
                let part = format!("`{sign}` ({meaning}); combinators are a space and `>`");
                return self.unsupported(&part);
            }
        }
        Ok(())
    }

    /// Parses a compound selector; `*` adds no condition.
    fn element(&mut self) -> Result<Vec<Condition>, SelectorError> {
        let before = self.rest;
        let mut tests = Vec::new();
        if !self.takes('*') && self.rest.starts_with(is_of_a_name) {
            tests.push(Condition::Type(self.name("an element's name")?));
        }
        loop {
            let test = if self.takes('#') {
                let id = self.name("an id after `#`")?;
                Condition::Attribute("id".into(), Relation::Equal(id))
            } else if self.takes('.') {
                let class = self.name("a class after `.`")?;
                Condition::Attribute("class".into(), Relation::Word(class))
            } else if self.takes('[') {
                self.attribute()?
            } else if self.rest.starts_with(':') {
                Condition::Position(self.pseudo_class()?)
            } else if self.rest.starts_with('|') && !self.rest.starts_with("||") {
                return self.unsupported("namespaces; write the name without its prefix");
            } else if self.rest.starts_with('\\') {
                return self.unsupported("an escape; write `[id=\"..\"]` or `[class~=\"..\"]`");
            } else {
                break;
            };
            tests.push(test);
        }
        if self.rest.len() == before.len() {
            return self.wrong(
                "expected an element: a name, `*`, `#id`, `.class`, `[attribute]` or a position \
                 such as `:first-child`",
            );
        }
        Ok(tests)
    }

    /// Parses a pseudo-class from its colon.
    fn pseudo_class(&mut self) -> Result<Nth, SelectorError> {
        let start = self.rest;
        if start.starts_with("::") {
            let part = format!("pseudo-elements; pseudo-classes are {PSEUDO_CLASSES}");
            return self.unsupported(&part);
        }
        self.rest = &start[1..];
        let name = self.name("a pseudo-class after `:`")?.to_ascii_lowercase();
        let is_function = self.takes('(');
        let nth = match (&*name, is_function) {
            ("first-child", false) => return Ok(Nth { step: 0, offset: 1, is_from_end: false }),
            ("last-child", false) => return Ok(Nth { step: 0, offset: 1, is_from_end: true }),
            ("nth-child", true) => self.nth(false)?,
            ("nth-last-child", true) => self.nth(true)?,
            ("nth-child" | "nth-last-child", false) => {
                return self.wrong("expected `(` and a position, such as `(2)` or `(odd)`");
            }
            _ => {
                let brackets = if is_function { "(..)" } else { "" };
                self.rest = start;
                let part = format!("`:{name}{brackets}`; pseudo-classes are {PSEUDO_CLASSES}");
                return self.unsupported(&part);
            }
        };
        self.skip_blanks();
        if self.rest.get(..2).is_some_and(|word| word.eq_ignore_ascii_case("of")) {
            return self.unsupported("`of` in a position; count all elements of the parent");
        }
        if !self.takes(')') {
            return self.wrong("expected `)`");
        }
        Ok(nth)
    }

    /// Parses `odd`, `even`, `B` or `An+B` (CSS Syntax 6). Blanks are allowed around the second
    /// sign only. A number that is too large is cut to the range of `i32`.
    fn nth(&mut self, is_from_end: bool) -> Result<Nth, SelectorError> {
        const EXPECTED: &str =
            "expected a position: `odd`, `even`, a number, or `An+B` such as `2n+1`";
        self.skip_blanks();
        for (word, offset) in [("odd", 1), ("even", 0)] {
            if self.takes_word(word) {
                return Ok(Nth { step: 2, offset, is_from_end });
            }
        }
        let sign = self.sign();
        let number = self.digits();
        if !self.takes('n') && !self.takes('N') {
            let Some(number) = number else { return self.wrong(EXPECTED) };
            return Ok(Nth { step: 0, offset: signed(sign, number), is_from_end });
        }
        let step = signed(sign, number.unwrap_or(1));
        let before = self.rest;
        self.skip_blanks();
        let Some(sign) = self.sign() else {
            self.rest = before;
            return Ok(Nth { step, offset: 0, is_from_end });
        };
        self.skip_blanks();
        let Some(number) = self.digits() else {
            return self.wrong("expected a number after the sign");
        };
        Ok(Nth { step, offset: signed(Some(sign), number), is_from_end })
    }

    /// Takes a whole word, in any case.
    fn takes_word(&mut self, word: &str) -> bool {
        let end = self.rest.find(|char| !is_of_a_name(char)).unwrap_or(self.rest.len());
        let is_word = self.rest[..end].eq_ignore_ascii_case(word);
        if is_word {
            self.rest = &self.rest[end..];
        }
        is_word
    }

    fn sign(&mut self) -> Option<char> {
        ['+', '-'].into_iter().find(|sign| self.takes(*sign))
    }

    /// Parses digits, if there are any.
    fn digits(&mut self) -> Option<i32> {
        let end = self.rest.find(|char: char| !char.is_ascii_digit()).unwrap_or(self.rest.len());
        let (digits, rest) = self.rest.split_at(end);
        self.rest = rest;
        // The only error of a parser that gets digits is a number too large.
        (!digits.is_empty()).then(|| digits.parse().unwrap_or(i32::MAX))
    }

    fn attribute(&mut self) -> Result<Condition, SelectorError> {
        self.skip_blanks();
        // `xlink:href` needs no escape here, although CSS requires one for the colon.
        let name = self.word(|char| is_of_a_name(char) || char == ':', "an attribute's name")?;
        self.skip_blanks();
        let relation = RELATIONS.iter().find(|(sign, _)| self.rest.starts_with(sign));
        let relation = match relation {
            None => Relation::Present,
            Some((sign, relation)) => {
                self.rest = &self.rest[sign.len()..];
                self.skip_blanks();
                relation(self.value()?)
            }
        };
        self.skip_blanks();
        if !self.takes(']') {
            return self.wrong("expected `]`, or one of `=`, `~=`, `^=`, `$=`, `*=` and a value");
        }
        Ok(Condition::Attribute(name, relation))
    }

    /// Parses a name, or a quoted string, where a backslash escapes a quote or another backslash.
    fn value(&mut self) -> Result<Box<str>, SelectorError> {
        let Some(quote) = self.rest.chars().next().filter(|first| "\"'".contains(*first)) else {
            return self.name("a value, in quotes if it is more than a word,");
        };
        self.rest = &self.rest[1..];
        let mut value = String::new();
        let mut chars = self.rest.char_indices();
        while let Some((place, char)) = chars.next() {
            match char {
                '\\' => value.extend(chars.next().map(|(_, escaped)| escaped)),
                _ if char == quote => {
                    self.rest = &self.rest[place + 1..];
                    return Ok(value.into());
                }
                _ => value.push(char),
            }
        }
        self.rest = "";
        self.wrong("expected the quote that ends the value")
    }

    fn name(&mut self, what: &str) -> Result<Box<str>, SelectorError> {
        self.word(is_of_a_name, what)
    }

    fn word(
        &mut self,
        belongs: impl Fn(char) -> bool,
        what: &str,
    ) -> Result<Box<str>, SelectorError> {
        let end = self.rest.find(|char| !belongs(char)).unwrap_or(self.rest.len());
        if end == 0 {
            return self.wrong(&format!("expected {what}"));
        }
        let (word, rest) = self.rest.split_at(end);
        self.rest = rest;
        Ok(word.into())
    }

    fn skip_blanks(&mut self) -> bool {
        let before = self.rest.len();
        self.rest = self.rest.trim_start_matches(is_blank);
        self.rest.len() < before
    }

    fn takes(&mut self, mark: char) -> bool {
        let rest: Option<&'t str> = self.rest.strip_prefix(mark);
        self.rest = rest.unwrap_or(self.rest);
        rest.is_some()
    }

    fn wrong<T>(&self, expected: &str) -> Result<T, SelectorError> {
        Err(self.error(Fault::Syntax(expected.into())))
    }

    fn unsupported<T>(&self, part: &str) -> Result<T, SelectorError> {
        Err(self.error(Fault::Unsupported(part.into())))
    }

    fn error(&self, fault: Fault) -> SelectorError {
        let place = self.text.len() - self.rest.len();
        SelectorError { selector: self.text.into(), place, fault }
    }
}

const fn signed(sign: Option<char>, number: i32) -> i32 {
    if matches!(sign, Some('-')) { -number } else { number }
}

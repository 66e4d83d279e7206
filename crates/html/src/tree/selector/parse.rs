//! Parser of selectors and its error messages.

use alloc::boxed::Box;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use super::{Condition, MAX_STEPS, Path, Relation, Selector, SelectorError, Step};

/// The operators between an attribute and its value.
const RELATIONS: [(&str, Relate); 5] = [
    ("=", Relation::Equal),
    ("~=", Relation::Word),
    ("^=", Relation::Start),
    ("$=", Relation::End),
    ("*=", Relation::Part),
];

type Relate = fn(Box<str>) -> Relation;

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
        self.wrong("expected `,`, `>`, a space, or more of an element (`.class`, `#id`, `[a=b]`)")
    }

    /// Parses up to a comma, the end, or a character that cannot continue the path.
    fn path(&mut self) -> Result<Path, SelectorError> {
        self.skip_blanks();
        let mut steps = Vec::from([Step { is_child: false, conditions: self.element()? }]);
        loop {
            let is_apart = self.skip_blanks();
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
            } else {
                break;
            };
            tests.push(test);
        }
        if self.rest.len() == before.len() {
            return self
                .wrong("expected an element: a name, `*`, `#id`, `.class` or `[attribute]`");
        }
        Ok(tests)
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

    fn wrong<T>(&self, wrong: &str) -> Result<T, SelectorError> {
        let place = self.text.len() - self.rest.len();
        Err(SelectorError { selector: self.text.into(), place, wrong: wrong.into() })
    }
}

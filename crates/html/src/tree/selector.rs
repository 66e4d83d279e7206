//! [`Selector`]: matching of elements (a subset of Selectors Level 4).

use alloc::boxed::Box;
use alloc::string::String;
use alloc::vec::Vec;
use core::error::Error;
use core::fmt;
use core::str::FromStr;

use super::Element;

mod nth;
mod parse;

use nth::Nth;
pub(super) use nth::Position;

/// The maximum number of compound selectors in a path: each takes one bit of a [`Trail`].
const MAX_STEPS: usize = 64;

/// A selector of elements: `main > h2.title, a[href^="/"]`.
///
/// Supported are types (`p`, `*`), `#id`, `.class`, attributes (`[a]`, `[a=b]`, `~=`, `^=`, `$=`,
/// `*=`), positions among the elements of the same parent (`:first-child`, `:last-child`,
/// `:nth-child(2n+1)`, `:nth-last-child(odd)`), descendants (a space), children (`>`) and lists
/// (`,`). Names of elements and attributes match without regard to case, values exactly. Other
/// pseudo-classes, pseudo-elements, the combinators `+`, `~` and `||`, namespaces and escapes are
/// not supported: a selector with such a part is an error.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Selector {
    alternatives: Vec<Path>,
}

/// A sequence of compound selectors, from ancestor to descendant.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Path {
    steps: Vec<Step>,
}

#[derive(Clone, PartialEq, Eq, Debug)]
struct Step {
    /// Whether the element must be a child of the previous step's, not any descendant.
    is_child: bool,
    conditions: Vec<Condition>,
}

/// A condition on one element.
#[derive(Clone, PartialEq, Eq, Debug)]
enum Condition {
    Type(Box<str>),
    Attribute(Box<str>, Relation),
    Position(Nth),
}

/// The relation of an attribute's value to the selector's value.
#[derive(Clone, PartialEq, Eq, Debug)]
enum Relation {
    Present,
    Equal(Box<str>),
    /// Equal to one of the words of the value.
    Word(Box<str>),
    Start(Box<str>),
    End(Box<str>),
    Part(Box<str>),
}

/// A syntax error in a selector, or a part of it that is not supported, with its position.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SelectorError {
    selector: Box<str>,
    /// The byte offset in the selector.
    place: usize,
    fault: Fault,
}

#[derive(Clone, PartialEq, Eq, Debug)]
enum Fault {
    /// The text at the position is wrong; the message says what was expected there.
    Syntax(String),
    /// The text may be valid in CSS, but is not supported.
    Unsupported(String),
}

impl Selector {
    /// Parses a selector.
    ///
    /// # Errors
    ///
    /// The syntax error, or the part that is not supported, and its position.
    pub fn parse(text: &str) -> Result<Self, SelectorError> {
        parse::selector(text)
    }

    /// Whether the selector matches an element that has no ancestors and no siblings.
    pub fn matches(&self, element: &Element) -> bool {
        let trail = |path: &Path| path.step_into(Trail::default(), element, Position::ONLY);
        self.alternatives.iter().any(|path| trail(path).is_end(path))
    }

    /// Whether a condition depends on the position of an element.
    pub(super) fn has_positions(&self) -> bool {
        let is_position = |condition: &Condition| matches!(condition, Condition::Position(_));
        let mut steps = self.alternatives.iter().flat_map(|path| &path.steps);
        steps.any(|step| step.conditions.iter().any(is_position))
    }

    /// The initial trails, one for each alternative.
    pub(super) fn trails(&self) -> Vec<Trail> {
        self.alternatives.iter().map(|_| Trail::default()).collect()
    }

    /// The trails below an element, and whether the element matches.
    pub(super) fn step_into(
        &self,
        trails: &[Trail],
        element: &Element,
        position: Position,
    ) -> (Vec<Trail>, bool) {
        let mut is_match = false;
        let step = |(path, trail): (&Path, &Trail)| {
            let trail = path.step_into(*trail, element, position);
            is_match |= trail.is_end(path);
            trail
        };
        (self.alternatives.iter().zip(trails).map(step).collect(), is_match)
    }
}

/// The part of a path that an element and its ancestors match, with one bit for each step. It
/// contains everything that descendants need to know, so the search never walks back up.
#[derive(Clone, Copy, Default)]
pub(super) struct Trail {
    /// Steps that the element itself matches, with all previous steps among its ancestors.
    here: u64,
    /// Steps that the element or any of its ancestors matches.
    above: u64,
}

impl Trail {
    const fn is_end(self, path: &Path) -> bool {
        self.here >> (path.steps.len() - 1) & 1 == 1
    }
}

impl Path {
    fn step_into(&self, trail: Trail, element: &Element, position: Position) -> Trail {
        let mut here = 0;
        for (index, step) in self.steps.iter().enumerate() {
            let before = if step.is_child { trail.here } else { trail.above };
            let is_reached = index == 0 || before >> (index - 1) & 1 == 1;
            if is_reached && step.conditions.iter().all(|test| test.holds(element, position)) {
                here |= 1 << index;
            }
        }
        Trail { here, above: trail.above | here }
    }
}

impl Condition {
    fn holds(&self, element: &Element, position: Position) -> bool {
        match self {
            Self::Position(nth) => nth.holds(position),
            Self::Type(name) => element.name().eq_ignore_ascii_case(name),
            Self::Attribute(name, relation) => {
                element.attribute(name).is_some_and(|value| relation.holds(value))
            }
        }
    }
}

impl Relation {
    /// Whether the relation holds. An empty substring matches no value (Selectors 6.2).
    fn holds(&self, value: &str) -> bool {
        match self {
            Self::Present => true,
            Self::Equal(whole) => *value == **whole,
            Self::Word(word) => value.split_ascii_whitespace().any(|own| *own == **word),
            Self::Start(start) => !start.is_empty() && value.starts_with(&**start),
            Self::End(end) => !end.is_empty() && value.ends_with(&**end),
            Self::Part(part) => !part.is_empty() && value.contains(&**part),
        }
    }
}

impl FromStr for Selector {
    type Err = SelectorError;

    fn from_str(text: &str) -> Result<Self, SelectorError> {
        Self::parse(text)
    }
}

impl fmt::Display for SelectorError {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { selector, place, fault } = self;
        let (before, after) = selector.split_at_checked(*place).unwrap_or((selector, ""));
        let column = before.chars().count() + 1;
        let wrong = match fault {
            Fault::Syntax(wrong) => wrong,
            Fault::Unsupported(part) => {
                return write!(
                    to,
                    "the selector {selector:?} is not supported at character {column}: {part}"
                );
            }
        };
        write!(to, "the selector {selector:?} is wrong at character {column}: {wrong}")?;
        match after.chars().next() {
            Some(found) => write!(to, ", found {found:?}"),
            None => to.write_str(", found the end"),
        }
    }
}

impl Error for SelectorError {}

/// A [`Selector`], or text to parse as one.
pub trait AsSelector {
    /// Calls `then` with the selector.
    ///
    /// # Errors
    ///
    /// The text is not a valid selector.
    fn with<T>(&self, then: impl FnOnce(&Selector) -> T) -> Result<T, SelectorError>;
}

impl AsSelector for Selector {
    fn with<T>(&self, then: impl FnOnce(&Selector) -> T) -> Result<T, SelectorError> {
        Ok(then(self))
    }
}

impl AsSelector for str {
    fn with<T>(&self, then: impl FnOnce(&Selector) -> T) -> Result<T, SelectorError> {
        Selector::parse(self).map(|selector| then(&selector))
    }
}

impl AsSelector for String {
    fn with<T>(&self, then: impl FnOnce(&Selector) -> T) -> Result<T, SelectorError> {
        self.as_str().with(then)
    }
}

#[cfg(test)]
mod tests;
